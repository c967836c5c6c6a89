"""Whether a feed-forward layer without gate is as large as one with it: widths and parameters."""

from dataclasses import replace

from workbook import accounting, config
from workbook.checks.experiments_run import ReportedRun
from workbook.checks.verdicts import NotAttempted, Words, Wrong
from workbook.config import ModelConfig

NEAR = 0.05  # relative: widths that are nearly the same
MATCHED = 0.13  # relative: the course's own rule, 4·d, is so far off on the small model
WIDEST = 20_000  # of an inner width; larger numbers are parameters


def _models() -> tuple[ModelConfig, ...]:
    return config.tinystories(), config.laptop()


def matching(d_ff: float) -> str:
    """Praise for an inner width of the plain layer with about the gated one's parameters."""
    for model in _models():
        exact = 3 * model.d_ff // 2
        course = 4 * model.d_model
        if abs(d_ff / exact - 1) <= NEAR or d_ff == course:
            gated, plain = 3 * model.d_model * model.d_ff, int(2 * model.d_model * d_ff)
            return (
                f"2 · {model.d_model} · {d_ff:g} = {plain:,} parameters a layer, beside"
                f" 3 · {model.d_model} · {model.d_ff} = {gated:,}: {plain / gated - 1:+.1%}."
            )
    if not any(abs(d_ff / model.d_ff - 1) <= NEAR for model in _models()):
        raise NotAttempted(
            "That width belongs to no model of this workbook. Hand in both widths of yours, such as"
            " (1344, 2048), or both numbers of parameters."
        )
    wide = " or ".join(f"{4 * model.d_model:,}" for model in _models())
    raise Wrong(
        "With that inner width the parameters are not matched.",
        expected=Words(f"2·d·d_ff' about 3·d·d_ff, such as 4·d: {wide}"),
        got=Words(f"{d_ff:,.10g}"),
        mistake="That is the width of the gated layer: with two matrices in place of three it has"
        " a third fewer parameters.",
    )


def refuse_pair(one: float, other: float) -> None:
    """Raise unless two inner widths, or two numbers of parameters, go together."""
    if max(one, other) < WIDEST:
        refuse_unmatched(3 * min(one, other), 2 * max(one, other))
    else:
        refuse_unmatched(one, other)


def refuse_sizes(usual: ReportedRun, other: ReportedRun) -> None:
    """Raise where two runs name sizes that are not matched: parameters, or inner widths."""
    for quantity, matrices in (("parameters", (1, 1)), ("d_ff", (3, 2))):
        sizes = usual.get(quantity), other.get(quantity)
        if None not in sizes:
            refuse_unmatched(matrices[0] * sizes[0], matrices[1] * sizes[1])


def refuse_unmatched(gated: float, plain: float) -> None:
    """Raise where one has far more parameters, or where the plain one kept the inner width."""
    for model in _models():
        whole = [
            accounting.parameters(replace(model, ffn=kind)).total for kind in ("swiglu", "silu")
        ]
        if [gated, plain] == whole or [plain, gated] == whole:
            break
    else:
        if max(gated, plain) <= (1 + MATCHED) * min(gated, plain):
            return
    raise Wrong(
        "The parameters are not matched.",
        expected=Words("3·d·d_ff about 2·d·d_ff': an inner width half as large again, or 4·d"),
        got=Words(f"{gated:,.10g} and {plain:,.10g}, a factor of {gated / plain:.2f}"),
        mistake="The plain layer kept the inner width of the gated one: it has two matrices in"
        " place of three.",
    )
