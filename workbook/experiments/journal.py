"""The log of all experiments, read from their records: what was tried, why, and what came out.

Nothing in it is typed by hand, so nothing can be forgotten: a run that failed is a row like any
other.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbook.config import TrainConfig
from workbook.experiments.records import Result, differing, settings_of

if TYPE_CHECKING:
    import pandas as pd

# Settings that follow from others: who reads what was changed need not see them.
FOLLOWING = {
    "warmup_iters",
    "log_every",
    "eval_every",
    "checkpoint_every",
    "corpus_bytes",
}


def journal(
    studied: Mapping[str, Mapping[str, Result]], bases: Mapping[str, TrainConfig]
) -> "pd.DataFrame":
    """A row a run: who asked for it first, how it differs from the base, and what came out.

    `studied` holds the runs of each experiment by their labels, `bases` a config for each corpus.
    """
    import pandas as pd  # here: whoever only trains need not load it

    rows = [
        {
            "experiment": name,
            "run": label,
            "corpus": result.config.corpus,
            "changed": changes(result.config, bases[result.config.corpus]),
            "outcome": outcome(result),
            "steps": result.outcome["step"],
            "seconds": result.seconds,
            "loss": result.loss,
        }
        for name, label, result in each_once(studied)
    ]
    return pd.DataFrame(rows).set_index("experiment")


def journal_text(table: "pd.DataFrame", questions: Mapping[str, str]) -> str:
    """The whole table as text, a line a run, under the question of its experiment.

    Losses are those of validation in nats a token.
    """
    lines = []
    for name, rows in table.groupby("experiment", sort=False):
        lines += ["", f"{name}: {questions[name]}"]
        for row in rows.itertuples():
            came_out = f"loss {row.loss:.3f}" if row.outcome == "finished" else row.outcome
            lines.append(f"  {row.run:28} {row.steps:5,} steps {row.seconds:4.0f} s  {came_out}")
            lines.append(f"      {row.corpus}, {row.changed}")
    return "\n".join(lines[1:])


def each_once(studied: Mapping[str, Mapping[str, Result]]) -> list[tuple[str, str, Result]]:
    """The experiment, the label and the result of every run, each where it was first asked for."""
    seen: dict[str, tuple[str, str, Result]] = {}
    for name, results in studied.items():
        for label, result in results.items():
            seen.setdefault(result.config.key, (name, label, result))
    return list(seen.values())


def overview(
    studied: Mapping[str, Mapping[str, Result]], questions: Mapping[str, str]
) -> "pd.DataFrame":
    """A row an experiment: its question, its runs, those that no other had asked for before it."""
    import pandas as pd

    fresh = each_once(studied)
    rows = []
    for name, results in studied.items():
        own = [result for asked_by, _, result in fresh if asked_by == name]
        rows.append(
            {
                "experiment": name,
                "question": questions[name],
                "runs": len(results),
                "of them new": len(own),
                "diverged": sum(result.diverged for result in own),
                "minutes": sum(result.seconds for result in own) / 60,
            }
        )
    return pd.DataFrame(rows).set_index("experiment")


def environments(studied: Mapping[str, Mapping[str, Result]]) -> "pd.DataFrame":
    """A row for every kind of place that runs were made in: device, versions, commit."""
    import pandas as pd

    rows = []
    for _, _, result in each_once(studied):
        found = result.environment
        rows.append(
            {
                "machine": machine(result),
                "system": found["system"],
                "threads": found["threads"],
                **found["versions"],
                "commit": str(found["commit"])[:10],
            }
        )
    table = pd.DataFrame(rows)
    return table.groupby(list(table.columns), sort=False).size().rename("runs").reset_index()


def machine(result: Result) -> str:
    """Where a run was made, in words: the machine, its threads, and the precision of matmuls."""
    found = result.environment
    device = found["device"]
    cores = f"{found['processor']}, {found['cores']} cores"
    on_cpu = f"{cores}, {found['threads']} thread per run"
    return f"{on_cpu if device == 'cpu' else f'{device}, {cores}'}, {found['precision']}"


def changes(config: TrainConfig, base: TrainConfig) -> str:
    """How a config differs from the base, such as "batch_size=64, steps=48"."""
    hidden = FOLLOWING | ({"min_learning_rate"} if last_part(config) == last_part(base) else set())
    names = [name for name in differing({"it": config, "base": base}) if name not in hidden]
    values = settings_of(config)
    return ", ".join(f"{name}={short(values[name])}" for name in names) or "the base run"


def last_part(config: TrainConfig) -> float:
    """The smallest learning rate as a part of the largest."""
    rates = config.optimizer
    return round(rates.min_learning_rate / rates.max_learning_rate, 9)


def short(value) -> str:
    """A value of a setting as a person would write it."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def outcome(result: Result) -> str:
    """How a run ended: "finished", or why it was given up, in a few words."""
    if not result.diverged:
        return "finished"
    return "diverged: " + result.outcome["reason"].split(";")[0]
