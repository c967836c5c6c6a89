"""The `workbook` command: a function for each subcommand, below its name, help and arguments.

What a subcommand needs is imported inside it, so that `workbook --help` answers at once.
"""

import argparse
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import fields
from datetime import date
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path

from workbook import config as settings
from workbook.classroom import problems
from workbook.files import write_json
from workbook.lazy import __version__
from workbook.training import presets

COMMANDS: list[tuple[str, str, tuple, Callable]] = []  # name, help, arguments, what it runs
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}  # of a separator, as it is typed
ALSO_CALLED = dict.fromkeys(("lr", "learning-rate"), "max-learning-rate")
COMMAND_GROUPS = {
    "data": "list, make or download the corpora",
    "experiments": "sweeps and ablations: run what is missing, show the results",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status.

    It is 0 for success, 1 for a wrong attempt or something that is missing, 2 for an error to fix
    first, and 128 plus the number of the signal that ended the command. Nothing asks for the help.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options, unknown = parser().parse_known_args(given or ["--help"])
    if unknown:  # under the usage of the subcommand: argparse would show the list of all
        options.parser.error(words_for_unknown(unknown, options.parser.format_help()))
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until we end
    # An old console may lack a character that we print.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        try:
            os.getcwd()
        except FileNotFoundError:
            raise FileNotFoundError("this folder was deleted; go to one that exists") from None
        settings.profile()  # a wrong value is refused even if nothing uses it
        settings.edition()
        settings.precision()
        status = options.run(options) or 0
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as stop:
        for words in stop.args:  # training says what it has saved
            print(words, file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough, as in `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as for other programs: 128 + SIGPIPE
    except (OSError, ValueError) as error:
        print(f"workbook: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="workbook",
        description="The CS336 workbook: study in notebooks, have your code checked.",
        epilog="`workbook COMMAND --help` says more about one command.",
    )
    top.add_argument("--version", action="version", version=f"workbook {__version__}")
    places = {"": top.add_subparsers(metavar="COMMAND", required=True)}
    for name, help, arguments, run in COMMANDS:
        group, _, kind = name.rpartition(" ")
        if group not in places:
            kinds = [other.split()[1] for other, *_ in COMMANDS if other.startswith(f"{group} ")]
            added = places[""].add_parser(group, help=COMMAND_GROUPS[group])
            places[group] = added.add_subparsers(metavar=" | ".join(kinds), required=True)
        added = places[group].add_parser(kind, help=help, description=run.__doc__)
        added.set_defaults(run=run, parser=added)
        for add in arguments:
            add(added)
    return top


def words_for_unknown(unknown: list[str], help: str) -> str:
    """Say which arguments a subcommand does not know, and which option may be meant."""
    words = f"unrecognized arguments: {' '.join(unknown)}"
    options = re.findall(r"--([a-z][\w-]*)", help)
    asked = next((word for word in unknown if word.startswith("--")), "").strip("-")
    name = asked.partition("=")[0]
    near = [ALSO_CALLED.get(name, ""), *get_close_matches(name, options, n=1)]
    meant = next((option for option in near if option in options), None)
    return f"{words}; is --{meant} meant?" if meant else words


def command(name: str, help: str, *arguments: Callable) -> Callable:
    """Make the function below a subcommand, such as "lab", or "data make" in the group "data".

    Its docstring, if any, is the description in its own help.
    """

    def register(run: Callable) -> Callable:
        COMMANDS.append((name, help, arguments, run))
        return run

    return register


def argument(name: str, help: str | None = None, **options) -> Callable:
    """Describe an argument that argparse is to add to a subcommand's parser."""
    return lambda parser: parser.add_argument(name, help=help, **options)


def flag(name: str, help: str) -> Callable:
    """Describe an option that takes no value."""
    return argument(name, help, action="store_true")


def load_quickly() -> None:
    """Save more than a second when this process first loads nbformat or JupyterLab.

    Both load jsonschema, and that, if it can, `rfc3987_syntax`, which then builds 38 parsers for
    a format that no schema of theirs uses (IRI). None makes the import fail as if it were missing.
    """
    sys.modules.setdefault("rfc3987_syntax", None)


def between(least: float, most: float, kind: type = int) -> Callable[[str], float]:
    """A parser of numbers from `least` to `most`, whole ones or of another `kind`."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            text.encode("ascii")  # Python takes other scripts' digits, too
            if least <= kind(text) <= most:
                return kind(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")

    return parse


NAME = argument("name", metavar="NAME")
SPOT = "PROBLEM=MODULE:NAME"
TICKED = "PROBLEM", "PART"
COUNT = between(1, 10**9)
SEED = between(0, 2**63 - 1)
PORT = between(1, 65_535)
TWIN_STEPS = between(1, 200)
HEAT = between(0, 1000, float)
SHARE = between(1e-6, 1, float)  # top-p 0 leaves no token
WORKERS = between(1, 1_000)  # all are started at once, and far too many bring the machine down
ELSEWHERE = "JUPYTER_CONFIG_DIR, JUPYTER_DATA_DIR, JUPYTER_RUNTIME_DIR and IPYTHONDIR to others"
SIZE = argument("--size", "for `stories`: the size of the split, or of train", metavar="100MB")
SCALE = argument("--scale", f"{', '.join(settings.PROFILES)}; default: the profile")


@command(
    "lab",
    "open JupyterLab on your own copy of the notebooks",
    argument("--port", "default: the first free port from 8888 on", type=PORT),
)
def run_lab(options: argparse.Namespace) -> None:
    load_quickly()
    from workbook.classroom.study import lab

    try:
        lab.start_lab(options.port)
    except OSError as error:  # Jupyter keeps files in the home folder unless it is told another
        if os.access(Path.home(), os.W_OK):
            raise
        raise OSError(f"{error}. Your home folder is not writable: set {ELSEWHERE}") from error


@command(
    "study",
    "show your progress and what comes next",
    flag("--make", "make your notebooks, as `lab` does"),
    argument("--reset", "start this problem over; a backup is kept", metavar="PROBLEM"),
    argument("--tick", "tick off facts: all, or with these numbers", nargs="+", metavar=TICKED),
    flag("--update", "bring in what is new in the notebooks, and keep what you wrote"),
)
def run_study(options: argparse.Namespace) -> None:
    load_quickly()
    from workbook.classroom.mine import hardening
    from workbook.classroom.study import copy, mistakes, progress, recall, update, verbs

    study = progress.nearest()
    os.environ["WORKBOOK_STUDY"] = str(study)
    if options.make:
        copy.make_copies(study)
    if options.reset is not None:
        update.reset(options.reset)
    if options.update:
        update.update(study)
    if options.tick:
        problem, *rest = options.tick
        part = rest.pop(0) if rest and not rest[0].isdecimal() else None
        facts = (int(word) if word.isdecimal() else word for word in rest)
        print(verbs.tick(problem, part, *facts), end="\n\n")
    record = progress.Progress(study)
    if any((options.make, options.reset, options.update, options.tick)):
        print(progress.progress_summary(record))  # what was done just now stays in sight
    else:
        print(progress.progress_table(record))
    for notice in (
        *hardening.found_mistakes(study),
        *mistakes.notices(study),
        *recall.notices(study),
        *update.notices(study),
    ):
        print(notice)


@command("recall", "answer three questions about problems that you solved days ago")
def run_recall(options: argparse.Namespace) -> None:
    from workbook.classroom.study import progress, recall

    study = progress.Progress(progress.nearest())
    today = date.today()
    asked = recall.questions_on(study, recall.due_now(study, today))
    print(recall.ask(study, asked, "Enter alone skips one, Ctrl-D all."))
    with suppress(EOFError):
        answers = [input(f"{number}. ") or None for number in range(1, len(asked) + 1)]
        if asked:
            print(recall.settle(study, asked, answers, today))


@command(
    "check",
    "check code that you wrote in a Python file",
    argument("problem", "such as train_bpe; none: all in FILE.py", metavar="PROBLEM", nargs="?"),
    argument("file", "NAME: if it is not the usual one", metavar="FILE.py[:NAME]", nargs="?"),
    argument("--part", "part of a written problem, such as a"),
    flag("--all", "check all your code: what you adopted, or else solved in the notebooks"),
    argument("--json", "also write what was found there", metavar="FILE", type=Path),
)
def run_check(options: argparse.Namespace) -> int:
    """Check code in a Python file and count it in your progress; exit status 0: it is correct."""
    if options.all:
        outcomes = check_all_found(options)
    elif options.file is None:
        names = problems_in(options.problem)
        file = options.problem
        outcomes = [check_in_file(name, file, options.part) for name in names]
    else:
        outcomes = [check_in_file(options.problem, options.file, options.part)]
    if options.json is not None:
        write_json(options.json, [outcome.as_json() for outcome in outcomes])
    good = ("correct", "possible", "not found")
    return 0 if all(outcome.status in good for outcome in outcomes) else 1


def problems_in(file: str | None) -> list[str]:
    """The problems whose functions or classes a file defines, in the handout's order."""
    if not (file and Path(file).is_file()):
        raise ValueError("expected a problem and a file, such as `softmax mine.py`, or --all")
    text = Path(file).read_text("utf-8", errors="replace")
    defined = set(re.findall(r"(?m)^(?:def|class) (\w+)", text))
    found = [
        problem.id
        for problem in problems.PROBLEMS.values()
        if problem.names and (defined.issuperset(problem.names) or problem.id in defined)
    ]
    if not found:
        raise ValueError(f"{file} defines nothing that a problem asks for: name the problem too")
    return found


def check_in_file(problem_id: str, file: str, asked_part: str | None):
    """Check an attempt in a file, print the verdict, and count it; return the `CheckOutcome`."""
    from workbook.classroom.checks.machinery import judging, worker
    from workbook.classroom.mine.check_all import CheckOutcome
    from workbook.classroom.study import verbs
    from workbook.classroom.study.progress import Progress, nearest

    problem = problems.with_id(problem_id)
    part = problems.part_of(problem, asked_part)
    path, name = attempt_place(file, problem)
    study = nearest(path)
    if not (study.is_dir() or settings.checkout() or os.environ.get("WORKBOOK_STUDY")):
        study = None  # we make no study folder among other things
    if study:
        os.environ["WORKBOOK_STUDY"] = str(study)
        Progress(study).read()  # what is wrong with it is said here: a worker is not heard
    seconds = 2 * judging.seconds_for(problem)  # its import has as much time as its check
    try:
        fields = worker.result(judged, problem.id, part, path, name, seconds=seconds)
        report = judging.Report.from_json(fields)
    except worker.EndedError as error:
        report = verbs.note_outcome(judging.ended_early(problem.id, part, error))
    message = report.message_with(step_in_a_terminal)
    print(f"{report.heading}\n{message}".rstrip())
    if study is None:
        print("Not counted: there is no study folder; `workbook study --make` makes one here.")
    return CheckOutcome(problem.id, file, report.status, message)


def step_in_a_terminal(report) -> str:
    """What a `Report` asks for next, for somebody who works in a terminal."""
    if report.next_step == "again":
        return "Then check again."
    place = f"{report.problem} {report.part or ''}".rstrip()
    return f"If it does, run `workbook study --tick {place}`."


def check_all_found(options: argparse.Namespace) -> list:
    """Check all the learner's code that can be found; print each problem's line when it is done.

    Returns the `CheckOutcome` of every code problem, also of those that were not found.
    """
    from workbook.classroom.mine import check_all
    from workbook.classroom.study.progress import nearest

    if options.problem is not None or options.part is not None:
        raise ValueError("--all checks all your code: leave out the problem, the file and the part")
    outcomes = []
    for outcome in check_all.check_all(nearest()):
        print(outcome.row(), flush=True)
        outcomes.append(outcome)
    print("", check_all.summary_of(outcomes), sep="\n")
    return check_all.for_every_problem(outcomes)


def judged(problem: str, part: str | None, path: Path, name: str) -> Iterator[dict]:
    """Yield the report on an attempt in a file, and count it; this runs in a worker."""
    from workbook.classroom.study import verbs

    attempt = load_attempt(path, name, problems.with_id(problem))
    yield verbs.check(problem, attempt, part).to_json()


def attempt_place(file: str, problem: problems.Problem) -> tuple[Path, str]:
    """Split "path.py:name", with the path in full; the name is "" if the problem's own is meant."""
    path, name = re.fullmatch(r"(.*?)(?::([^\W\d]\w*))?", file, re.DOTALL).groups()
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}; expected FILE.py or FILE.py:NAME")
    if not (name or problem.names):
        raise ValueError(f"{problem.id} asks for no particular name; add yours, as in FILE.py:NAME")
    return Path(path).resolve(), name or ""


def load_attempt(path: Path, name: str, problem: problems.Problem):
    """Load the object of this name from the file `path`, or else what the problem asks for.

    In a file that was kept for a learner `__all__` says what that is: the problem's own name may
    stand for something else there.
    """
    from workbook.classroom.study import solutions

    is_kept = solutions.status_of(path.read_text("utf-8", errors="replace"), problem.id)
    if problem.form == "script" and not (name or is_kept):
        from workbook.classroom.checks.training_together import function_that_trains

        name = function_that_trains(path)
        if not name:
            return path  # it is run, not imported
    defined = vars(load_module(path))
    asked = (name,) if name else problem.names
    if not name and is_kept:
        asked = tuple(defined.get("__all__", asked))  # its own lines alone may have none
    if not name and len(asked) == 1 and asked[0] not in defined and problem.id in defined:
        asked = (problem.id,)
    if missing := [name for name in asked if name not in defined]:
        raise ValueError(f"{path} does not define {missing[0]}; for another name: {path.name}:NAME")
    objects = tuple(defined[name] for name in asked)
    return objects if len(objects) > 1 else objects[0]


def load_module(path: Path):
    """Run the file `path` as an import would, under a time limit; return the module."""
    from workbook.classroom.checks.machinery.judging import TOTAL_SECONDS
    from workbook.classroom.checks.machinery.loading import load_file
    from workbook.classroom.checks.machinery.timeout import TimedOut

    if path.suffix != ".py":
        raise ValueError(f"{path} is not a Python file; its name must end in .py")
    name = path.stem
    root = path.resolve().parent
    while (root / "__init__.py").is_file():  # the file may import `from .neighbour`
        name = f"{root.name}.{name}"
        root = root.parent
    # If Python has a module of this name, as with random.py, all other code must still get that.
    known = PathFinder.find_spec(path.stem)
    if path.stem in sys.modules or (known is not None and known.origin != str(path)):
        name += "_of_yours"
    # The file may import its neighbours.
    sys.path += dict.fromkeys(map(str, (path.resolve().parent, root)))
    try:
        return load_file(path, name, TOTAL_SECONDS)
    except TimedOut as error:
        remedy = 'put code that takes long under `if __name__ == "__main__":`'
        raise ValueError(f"{path} does not run: it was {error}; {remedy}") from error
    except BaseException as error:  # sys.exit() too, and KeyboardInterrupt: no Ctrl-C comes here
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error


@command(
    "adopt",
    "find your parts in your checkout of the course's repository",
    argument("path", "its folder; nothing in it is changed", metavar="PATH"),
    argument("--set", "where a part is; `PROBLEM=`: look again", metavar=SPOT, action="append"),
)
def run_adopt(options: argparse.Namespace) -> None:
    """Find your parts in your checkout of the course's repository, and note where they are.

    Its modules are imported in a separate process; nothing else in it is run. The file
    `adopted.toml` in your study folder says what was found, and you may edit it.
    """
    from workbook.classroom.mine import adopt
    from workbook.classroom.study import progress

    if not options.path:
        raise ValueError("the path is empty: give the folder of your checkout")
    places = adopt.read_options(options.set or [])
    print(adopt.adopt(options.path, places, progress.nearest()))


@command("data list", "show the corpora, and which are on this disk")
def run_data_list(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    print(corpora.describe_corpora())


@command(
    "data make",
    "write a corpus that needs no network",
    NAME,
    SIZE,
    argument("--split", "default: both; with --size, train", choices=("train", "validation")),
)
def run_data_make(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    size = None if options.size is None else corpora.parse_size(options.size)
    splits = corpora.SPLITS if size is None else corpora.SPLITS[:1]
    if options.split:
        splits = (options.split,)
    for split in splits:
        print(corpora.path(options.name, split, size))


@command("data get", "download a corpus; continues where it was cut off", NAME)
def run_data_get(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    print(*corpora.fetch(options.name), sep="\n")


@command(
    "data tokenize",
    "encode a corpus; continues where it was cut off",
    NAME,
    SIZE,
    argument("--vocab", "with --merges: a tokenizer of yours", metavar="vocab.json"),
    argument("--merges", "default: the corpus's own tokenizer", metavar="merges.txt"),
    argument("--workers", "default: one per core", type=WORKERS, metavar="N"),
)
def run_data_tokenize(options: argparse.Namespace) -> None:
    from concurrent.futures import ProcessPoolExecutor

    from workbook.corpora import corpora
    from workbook.tokenization import token_files

    size = None if options.size is None else corpora.parse_size(options.size)
    corpora.is_here(options.name, size=size)  # what cannot be is told before a tokenizer is trained
    how = options.vocab, options.merges
    with ProcessPoolExecutor(options.workers or one_per_core()) as executor:
        made = token_files.tokenize_corpus(options.name, size, *how, executor)
    for path, number in made.items():
        print(f"{path}  {number:,} tokens")


@command(
    "train",
    "train a model; continues where it stopped",
    presets.add_options,
    argument("--folder", "of the run; default: one for each config", metavar="FOLDER"),
    flag("--dry-run", "only say what is needed; exit status 1: something is missing"),
    flag("--mine", "use your own parts in place of ours"),
    argument("--text", "your own: files, or folders of .txt and .md", metavar="PATH", nargs="+"),
    argument("--separator", "of its documents; default: <|endoftext|>", default="<|endoftext|>"),
)
def run_train(options: argparse.Namespace) -> int:
    """Train a model. Settings that you do not give are those of the preset, here of laptop."""
    from workbook.experiments import dry_run
    from workbook.training import trainer
    from workbook.training.parts import Parts

    tries_text = options.dry_run and options.text
    folder = settings.data_folder()
    # A dry run tries a text out, and keeps nothing of it.
    with settings.temporary_data() if tries_text else nullcontext():
        config, parts = asked_run(options)
        if tries_text:
            (parts or Parts.ours(config)).prepare(config)
        if options.dry_run:
            return dry_run.report_runs([config], folder=folder)
    run = trainer.train_and_print(config, options.folder, parts)
    is_first = os.environ.get("RANK", "0") == "0"
    if is_first:
        print("Your runs as a table:  from workbook.experiments import my_runs; my_runs()")
    if options.text and is_first:
        print()
        main(["generate", str(run.folder), "--tokens", "100", "--seed", "0"])
        print(f"\nMore of it:    workbook generate {run.folder} 'How it begins'")
        print(f"Train longer:  this command with --folder {run.folder} --steps {2 * config.steps}")
    return 0


def asked_run(options: argparse.Namespace) -> tuple:
    """The config that options ask for, once its text is a corpus, and the learner's parts if any.

    Raises: ValueError.
    """
    from workbook.corpora import corpora

    if options.preset is None:  # `--text` took it: `train --text mine.txt laptop`
        *files, last = options.text or [""]
        if not files or last not in presets.PRESETS or Path(last).exists():
            raise ValueError(f"give a preset first: workbook train {' | '.join(presets.PRESETS)}")
        options.text = files
        options.preset = last
    config = chosen_config(options)  # an error in it is told before a text is read
    if options.text:
        if "corpus" in options:
            raise ValueError("give either --text or --corpus")
        if config.model.vocab_size < 257:
            raise ValueError("--vocab-size is at least 257: 256 bytes and the end of a document")
        separator = re.sub(r"\\([nrt\\])", lambda typed: ESCAPES[typed[1]], options.separator)
        options.corpus = corpora.add_text(options.text, separator)
        vars(options).setdefault("name", options.corpus)
        config = chosen_config(options)
    if not options.mine:
        return config, None
    from workbook.classroom import mine

    parts = mine.expect_some(mine.parts())
    config = mine.rehearsed(config, parts)
    if os.environ.get("RANK", "0") == "0":
        print(parts)
    return config, parts


def chosen_config(options: argparse.Namespace) -> settings.TrainConfig:
    """The config that these options choose; fewer steps than its warm-up has shorten that too.

    Raises: ValueError, which names each setting as it is typed.
    """
    given = vars(options)
    if "steps" in given and not given.get("cosine_cycle_iters"):
        usual = presets.preset(options.preset)
        warmup = usual.optimizer.warmup_iters
        if options.steps < warmup:
            given.setdefault("warmup_iters", max(1, warmup * options.steps // usual.steps))
    kinds = (settings.TrainConfig, *presets.INNER_CONFIGS.values())
    names = {each.name for kind in kinds for each in fields(kind)}

    def as_typed(found: re.Match) -> str:
        name, sign = found.groups()
        is_setting = name in names and ("_" in name or sign)
        return f"--{name.replace('_', '-')}{sign}" if is_setting else found[0]

    try:
        return presets.chosen(options)
    except ValueError as error:
        raise ValueError(re.sub(r"\b([a-z][a-z_0-9]*)\b(=?)", as_typed, str(error))) from error


@command(
    "twin",
    "train your parts beside ours, and name the part that differs",
    argument("preset", "default: laptop", metavar="PRESET", nargs="?", default="laptop"),
    argument("--steps", "default: 20", type=TWIN_STEPS, default=20, metavar="N"),
)
def run_twin(options: argparse.Namespace) -> int:
    """Train your parts beside ours at a small size, with equal weights, batches and settings.

    Exit status 0: nothing differs.
    """
    from workbook.classroom.mine.twin import twin

    report = twin(options.preset, options.steps)
    print(report)
    return 1 if report.differs else 0


@command(
    "generate",
    "generate text with a trained model",
    argument("folder", "of a run of `workbook train`", metavar="FOLDER"),
    argument("prompt", "default: none", metavar="PROMPT", nargs="?", default=""),
    argument("--tokens", "default: 256", type=between(0, 10**9), default=256, metavar="N"),
    argument("--temperature", "0: greedy; default: 0.8", type=HEAT, default=0.8, metavar="X"),
    argument("--top-p", "default: 0.95", type=SHARE, default=0.95, metavar="X"),
    argument("--top-k", "default: all tokens", type=COUNT, metavar="N"),
    argument("--seed", "default: a different text each time", type=SEED, metavar="N"),
)
def run_generate(options: argparse.Namespace) -> None:
    import torch

    from workbook.generation import formats, sampling

    if formats.is_of_other_parts(options.folder):
        from workbook.classroom import mine

        model, tokenizer, decoding = mine.open_run(Path(options.folder))
    else:
        model, tokenizer = formats.open_model(options.folder)
        decoding = None
    generator = torch.Generator()
    if options.seed is None:
        generator.seed()  # a random one
    else:
        generator.manual_seed(options.seed)
    how = (options.tokens, options.temperature, options.top_p, options.top_k, generator)
    pieces = sampling.write_text(model, tokenizer, options.prompt, *how, decoding)
    print(options.prompt, end="", flush=True)  # now that it is known to be text
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


@command(
    "export-model",
    "write a trained model in the format of Hugging Face's Llama",
    argument("folder", "of a run of `workbook train`", metavar="FOLDER"),
    argument("--to", "default: a folder `llama` inside it", metavar="FOLDER"),
)
def run_export_model(options: argparse.Namespace) -> None:
    from workbook.generation import formats

    model, tokenizer = formats.open_model(options.folder)
    target = Path(options.to) if options.to else Path(options.folder) / "llama"
    print(formats.save_model(model, target, tokenizer))


@command(
    "experiments run",
    "make the runs that have no record; continues where it stopped",
    argument("names", "see `list`; default: all", metavar="NAME", nargs="*"),
    argument("--workers", "default: one per GPU, or else per core", type=WORKERS, metavar="N"),
    argument("--minutes", "then stop; the same command continues", type=COUNT, metavar="N"),
    argument("--accumulation", "in N parts: less memory", type=COUNT, default=1, metavar="N"),
    flag("--dry-run", "only say what is needed; exit status 1: something is missing"),
    SCALE,
)
def run_experiments(options: argparse.Namespace) -> int:
    """Make the runs that have no record. Continues where it stopped."""
    from workbook.experiments import dry_run, plans, records
    from workbook.training import devices

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("torchrun is for `workbook train`; leave it out, and give --workers N")
    asked = plans_of(options.names, options.scale)
    gpus = len(devices.gpus())
    one_device = devices.pick_device().type != "cpu" and options.workers is None and gpus < 2
    workers = None if one_device else options.workers or gpus or one_per_core()
    if options.dry_run:
        return dry_run.report_plans(asked, workers)
    until = time.time() + 60 * options.minutes if options.minutes else math.inf
    pool = nullcontext() if one_device else plans.process_pool(workers)
    try:
        with pool as executor:  # without one, the runs are made one after the other
            results_of = plans.run_plans(asked, executor, until, options.accumulation)
    except KeyboardInterrupt:
        if time.time() < until:
            raise
        print("The time is up, and all runs are saved; the same command continues.")
        return 0
    for name, results in results_of.items():
        print(f"{name}: {len(results)} runs in {records.folders()[0]}")
    return 0


@command("experiments list", "list the experiments and how many runs each has", SCALE)
def list_experiments(options: argparse.Namespace) -> None:
    from workbook.experiments.studies import STUDIES

    print("experiment      runs  (+: more to come)")
    for name, stage in stages_of([], options.scale).items():
        runs = f"{len(stage.so_far())}{' ' if stage.over else '+'}"
        print(f"{name:15} {runs:>4}  {STUDIES[name].question}")


@command(
    "experiments show",
    "show a table of an experiment's runs",
    argument("names", "see `list`", metavar="NAME", nargs="+"),
    SCALE,
)
def show_experiments(options: argparse.Namespace) -> None:
    from workbook.experiments import results

    for name, stage in stages_of(options.names, options.scale).items():
        runs = stage.so_far()
        missing = len(stage.missing())
        print(name, end="\n\n")
        if runs:
            print(results.runs_table(runs).to_string(float_format="{:,.4g}".format), end="\n\n")
        if missing:
            scale = f" --scale {options.scale}" if options.scale else ""
            todo = f"`workbook experiments run {name}{scale}` makes them"
            print(f"{missing} more runs are needed before it can continue; {todo}\n")


def one_per_core() -> int:
    """How many processes to start: one for each core; on Windows a pool has 61 at most."""
    return min(settings.cores(), 61)


def plans_of(names: list[str], scale: str | None) -> dict:
    """Make the plans of these experiments, or of all. Raises: ValueError for an unknown name."""
    from workbook.experiments import studies
    from workbook.experiments.studies import STUDIES

    size = studies.scale_named(scale or settings.profile().name, settings.edition())
    if unknown := [name for name in names if name not in STUDIES]:
        raise ValueError(f"{unknown[0]!r} is not an experiment; pick from {', '.join(STUDIES)}")
    return {name: STUDIES[name].plan(size) for name in names or STUDIES}


def stages_of(names: list[str], scale: str | None) -> dict:
    """Advance each of these experiments as far as its records allow."""
    from workbook.experiments.plans import Stage

    stages = {name: Stage(plan) for name, plan in plans_of(names, scale).items()}
    for stage in stages.values():
        stage.advance()
    return stages


@command(
    "export",
    "make the write-up from saved notebooks: PDF, HTML, Markdown and code.zip",
    argument("folder", "default: your study folder", metavar="FOLDER", nargs="?"),
    argument("--edition", "2025 or 2026; default: WORKBOOK_EDITION, or 2025"),
    flag("--strict", "write nothing if anything is missing or wrong, and list it"),
    argument("--name", "your name, for the first page; remembered for the next time"),
    argument("--to", "where to write; default: build", metavar="FOLDER", default="build"),
    argument("--adapters", "instead: write a course repository", metavar="FOLDER", type=Path),
)
def run_export(options: argparse.Namespace) -> None:
    from workbook.classroom.export import export
    from workbook.classroom.study.progress import nearest

    study = Path(options.folder) if options.folder else nearest()
    if options.adapters is not None:
        from workbook.classroom.mine import adapters

        if options.strict or options.name is not None:
            raise ValueError("--adapters writes no write-up; leave out --strict and --name")
        print(*adapters.export_repository(study, options.adapters), sep="\n")
        return
    choices = {name: getattr(options, name) for name in ("edition", "strict", "name", "to")}
    print(*export(study, **choices), sep="\n")


@command("doctor", "say what a bug report needs, and what is wrong here")
def run_doctor(options: argparse.Namespace) -> int:
    """Say what a bug report needs; exit status 1: something is wrong, with the remedy."""
    from workbook.classroom.doctor import doctor

    report, is_well = doctor()
    print(report)
    return 0 if is_well else 1


@command(
    "notebooks",
    "run the worked notebooks again and store their outputs, if the machine is quiet",
    argument("names", "such as 02_bpe; default: all", metavar="NAME", nargs="*"),
    flag("--check", "run nothing; list the notebooks that are not in normal form"),
)
def run_notebooks(options: argparse.Namespace) -> int:
    from workbook.classroom.study import notebooks

    if not options.check:
        notebooks.run_worked(options.names)
        return 0
    paths = [path for path in notebooks.find_worked(options.names) if not notebooks.is_normal(path)]
    for path in paths:
        print(f"{path} is not in normal form: run it with `workbook notebooks {path.stem}`")
    return 1 if paths else 0
