"""The `workbook` command: each subcommand reads its arguments here and calls one function.

What a subcommand needs is imported inside it, so that `workbook --help` answers at once.
"""

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

from workbook import __version__, experiment_commands, model_commands
from workbook import config as settings
from workbook.study import problems
from workbook.training import presets

PACKAGE = Path(__file__).resolve().parent
JUDGE = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback: this process is not the user's own
sys.path.insert(0, {root!a})
import workbook  # this one, whichever is installed
sys.path.append(sys.path.pop(0))
from workbook.cli import judge
judge({!a}, {!a}, {!a}, {!a}, {!a})
"""


def main(arguments: list[str] | None = None) -> int:
    """The exit status of one command: 0 done, 1 a wrong attempt, 2 something to mend first."""
    options = parser().parse_args(arguments)
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until we end
    sys.stdout.reconfigure(errors="replace")  # an old console may lack a sign that we print
    try:
        settings.profile()  # a wrong switch is refused even where nothing asks for it
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
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="workbook",
        description="The CS336 workbook: study in notebooks, have your code checked.",
        epilog="`workbook COMMAND --help` says more about one command.",
    )
    top.add_argument("--version", action="version", version=f"workbook {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    lab = commands.add_parser("lab", help="open JupyterLab on your own copy of the notebooks")
    port = presets.between(1, 2**16 - 1)
    lab.add_argument("--port", type=port, help="default: the next free one from 8888")
    lab.set_defaults(run=run_lab)

    study = commands.add_parser("study", help="show what you have attempted, solved and answered")
    study.add_argument("--reset", metavar="PROBLEM", help="start this problem over")
    study.set_defaults(run=run_study)

    check = commands.add_parser(
        "check",
        help="check an attempt that you wrote in a Python file",
        description="Check an attempt in a Python file; exit status 0 says that it is correct.",
    )
    check.add_argument("problem", metavar="PROBLEM", help="such as train_bpe")
    check.add_argument(
        "file",
        metavar="FILE.py[:NAME]",
        help="NAME may be left out where it is the problem's own, such as train_bpe or Tokenizer",
    )
    check.add_argument("--part", help="of a written problem, such as a")
    check.set_defaults(run=run_check)

    data = commands.add_parser("data", help="list, make or download the corpora")
    kinds = data.add_subparsers(metavar="list | make | get | tokenize", required=True)
    kinds.add_parser("list", help="what there is, and what lies on this disk").set_defaults(
        run=run_data_list
    )
    make = kinds.add_parser("make", help="write a corpus that needs no network")
    make.add_argument("name", metavar="NAME")
    make.add_argument("--size", metavar="100MB", help="for `stories`: of the split, any size")
    make.add_argument(
        "--split",
        choices=("train", "validation"),
        help="default: both in their usual sizes; with --size, train",
    )
    make.set_defaults(run=run_data_make)
    get = kinds.add_parser("get", help="download a corpus; goes on where it was cut off")
    get.add_argument("name", metavar="NAME")
    get.set_defaults(run=run_data_get)
    tokenize = kinds.add_parser("tokenize", help="encode a corpus; goes on where it was cut off")
    tokenize.add_argument("name", metavar="NAME")
    tokenize.add_argument("--size", metavar="100MB", help="for `stories`: of the train split")
    tokenize.add_argument("--vocab", metavar="vocab.json", help="with --merges: of your tokenizer")
    tokenize.add_argument("--merges", metavar="merges.txt", help="default: this corpus' own")
    workers = presets.between(1, presets.MOST_WORKERS)
    tokenize.add_argument("--workers", type=workers, metavar="N", help="default: one a core")
    tokenize.set_defaults(run=run_data_tokenize)

    train = commands.add_parser(
        "train",
        help="train a model; goes on where it was stopped",
        description="Train a model. The settings that are not given are those of the preset.",
    )
    presets.add_options(train)
    train.set_defaults(run=run_train)
    model_commands.add_to(commands)
    experiment_commands.add_to(commands)

    export = commands.add_parser(
        "export", help="write-up of saved answers: Markdown, HTML, PDF and code.zip"
    )
    export.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="such as study; default: the worked notebooks"
    )
    export.add_argument("--edition", help="2025 or 2026; default: WORKBOOK_EDITION, or 2025")
    export.add_argument("--strict", action="store_true", help="fail where anything is missing")
    export.add_argument("--to", metavar="FOLDER", default="build", help="default: build")
    export.set_defaults(run=run_export)

    count = presets.between(1, 10**9)
    bench = commands.add_parser("bench", help="time our code beside that of other libraries")
    subjects = bench.add_subparsers(metavar="tokenizer | train | generate | scaling", required=True)
    tokenizer = subjects.add_parser(
        "tokenizer", help="training and encoding, on one core, in turns"
    )
    tokenizer.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: two texts")
    tokenizer.add_argument("--size", default="100MB", metavar="100MB", help="of the default texts")
    tokenizer.add_argument("--vocab-size", type=int, metavar="N", help="default: 10000 or 32000")
    tokenizer.add_argument("--rounds", type=count, default=3, metavar="N", help="default: 3")
    tokenizer.set_defaults(run=run_bench_tokenizer)
    training = subjects.add_parser("train", help="our trainer beside other loops, in turns")
    training.add_argument("shapes", metavar="PRESET", nargs="*", help="default: laptop tinystories")
    training.add_argument("--rounds", type=count, default=5, metavar="N", help="default: 5")
    training.add_argument("--steps", type=count, default=5, metavar="N", help="a turn; default: 5")
    training.set_defaults(run=run_bench_train)
    generate = subjects.add_parser("generate", help="writing with a model, on one thread")
    generate.add_argument("--rounds", type=count, default=5, metavar="N", help="default: 5")
    generate.set_defaults(run=run_bench_generate)
    scaling = subjects.add_parser("scaling", help="two workers beside one, and memory on more text")
    scaling.add_argument(
        "--size", default="1GB", metavar="1GB", help="and twice that; default: 1GB"
    )
    scaling.add_argument("--rounds", type=count, default=3, metavar="N", help="default: 3")
    scaling.set_defaults(run=run_bench_scaling)

    notebooks = commands.add_parser(
        "notebooks", help="run the worked notebooks again and store their outputs"
    )
    notebooks.add_argument("names", metavar="NAME", nargs="*", help="such as 02_bpe; default: all")
    notebooks.add_argument(
        "--fresh", action="store_true", help="store the new run also where only noise differs"
    )
    notebooks.add_argument(
        "--check", action="store_true", help="run nothing, name the cells not in normal form"
    )
    notebooks.set_defaults(run=run_notebooks)
    return top


def attempt_place(file: str, problem: problems.Problem) -> tuple[Path, str]:
    """The parts of "path.py:name"; without a name, the one that the problem asks for."""
    path, name = re.fullmatch(r"(.*?)(?::([^\W\d]\w*))?", file, re.DOTALL).groups()
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}; expected FILE.py or FILE.py:NAME")
    return Path(path), name or asked_name(problem)


def load_attempt(path: Path, name: str):
    """The object of this name in the file `path`."""
    defined = vars(load_module(path))
    if name not in defined:
        raise ValueError(f"{path} defines no {name}; name what it defines, as in {path}:NAME")
    return defined[name]


def asked_name(problem: problems.Problem) -> str:
    """The name of the function or class to hand in, such as "Tokenizer"."""
    names = [signature.name for signature in problem.signatures if signature.name]
    if len(names) != 1:
        raise ValueError(f"{problem.id} asks for no single name; say which, as in FILE.py:NAME")
    return names[0]


def load_module(path: Path):
    """The module in the file `path`, run as an import would run it, but not for ever."""
    from workbook.checks.guard import TimedOut, limited
    from workbook.study.verbs import TOTAL_SECONDS

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Where Python has a module of this name, as in random.py, everybody else goes on to get that.
    if path.stem not in sys.modules and PathFinder.find_spec(path.stem) is None:
        sys.modules[path.stem] = module  # worker processes look its functions up by name
    sys.path.append(str(path.resolve().parent))  # the file may import its neighbours
    try:
        limited(TOTAL_SECONDS, lambda: spec.loader.exec_module(module))
    except KeyboardInterrupt:
        raise
    except TimedOut as error:
        raise ValueError(
            f"{path} does not run: it was {error}; put what takes long"
            ' under `if __name__ == "__main__":`'
        ) from error
    except BaseException as error:  # a script that ends with sys.exit() too
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error
    return module


def run_lab(options: argparse.Namespace) -> None:
    from workbook.study import lab

    lab.start(options.port)


def run_study(options: argparse.Namespace) -> None:
    from workbook.study import copy

    if options.reset is not None:
        copy.reset(options.reset)
    print(copy.overview())


def run_check(options: argparse.Namespace) -> int:
    """Have an attempt judged in a process of its own, which the attempt may end."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise FileNotFoundError("this folder was deleted; change to one that exists") from None
    problem = problems.get(options.problem)
    part = problems.part_of(problem, options.part)
    path, name = attempt_place(options.file, problem)
    with tempfile.TemporaryDirectory() as folder:
        verdict = Path(folder, "verdict.json")
        arguments = (problem.id, part, str(path), name, str(verdict))
        code = JUDGE.format(*arguments, root=str(PACKAGE.parent))
        # -P: no file of the learner's folder is imported in place of Python's own
        ended = subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode
        if ended in (130, -signal.SIGINT):
            raise KeyboardInterrupt
        if not verdict.exists():
            raise OSError(f"the check could not begin: Python ended with status {ended}")
        written = verdict.read_text()
    status, words = json.loads(written) if written else (1, str(ended_early(problem, part, ended)))
    if status == 2:
        raise ValueError(words)
    print(words)
    return status


def judge(problem: str, part: str | None, path: str, name: str, verdict: str) -> None:
    """Write the exit status and the words for an attempt to the file `verdict`."""
    from workbook.study import verbs

    try:
        problems.get(problem).checker()  # imported before an attempt can be in its way
        Path(verdict).touch()  # from here on, what ends the process is the attempt
        report = verbs.check(problem, load_attempt(Path(path), name), part)
        said = (0 if report.status == "correct" else 1, str(report))
    except (OSError, ValueError) as error:
        said = (2, str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    Path(verdict).write_text(json.dumps(said))


def ended_early(problem: problems.Problem, part: str | None, ended: int):
    """The report on an attempt that ended the process which ran it."""
    from workbook.study.progress import record_check
    from workbook.study.verbs import Report

    if ended < 0:
        how = f"by signal {-ended} ({signal.strsignal(-ended)})"
        likely = "It took more memory than there is, or a recursion went too deep."
    else:
        how = f"with exit status {ended}"
        likely = "`os._exit` ends Python itself. A function hands its result back with `return`."
    if part or not problem.parts:
        record_check(problem.id, part, "wrong", None)
    claim = f"It ended the Python process, {how}, before the check was over."
    return Report("wrong", problem.id, part, claim, likely=likely)


def run_data_list(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    print(corpora.overview())


def run_data_make(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    size = None if options.size is None else corpora.parse_size(options.size)
    splits = corpora.SPLITS if size is None else corpora.SPLITS[:1]
    for split in [options.split] if options.split else splits:
        print(corpora.path(options.name, split, size))


def run_data_get(options: argparse.Namespace) -> None:
    from workbook.corpora import corpora

    print(*corpora.fetch(options.name), sep="\n")


def run_export(options: argparse.Namespace) -> None:
    from workbook.export import export

    lines = export(options.folder, edition=options.edition, strict=options.strict, to=options.to)
    print(*lines, sep="\n")


def run_data_tokenize(options: argparse.Namespace) -> None:
    from concurrent.futures import ProcessPoolExecutor

    from workbook.corpora import corpora
    from workbook.tokenization import token_files

    size = None if options.size is None else corpora.parse_size(options.size)
    with ProcessPoolExecutor(options.workers) as executor:
        made = token_files.tokenize_corpus(
            options.name, size, options.vocab, options.merges, executor
        )
    for path, number in made.items():
        print(f"{path}  {number:,} ids")


def run_train(options: argparse.Namespace) -> int:
    from workbook.experiments import dry_run
    from workbook.training import train

    config = presets.chosen(options)
    if options.dry_run:
        return dry_run.tell_run(config)
    train.train_and_tell(config, options.folder)
    return 0


def run_bench_train(options: argparse.Namespace) -> None:
    from workbook.bench import training as train_bench

    print(train_bench.run(options.rounds, options.steps, options.shapes))


def run_bench_tokenizer(options: argparse.Namespace) -> None:
    from workbook.bench import tokenizers
    from workbook.corpora import corpora

    size = corpora.parse_size(options.size)
    print(tokenizers.run(size, options.rounds, options.file, options.vocab_size))


def run_bench_generate(options: argparse.Namespace) -> None:
    from workbook.bench import generation

    print(generation.run(options.rounds))


def run_bench_scaling(options: argparse.Namespace) -> None:
    from workbook.bench import tokenizers
    from workbook.corpora import corpora

    print(tokenizers.run_scaling(corpora.parse_size(options.size), options.rounds))


def run_notebooks(options: argparse.Namespace) -> int:
    from workbook.study import notebooks

    if not options.check:
        notebooks.run(options.names, fresh=options.fresh)
        return 0
    paths = notebooks.find(options.names)
    found = [f"{path}: {line}" for path in paths for line in notebooks.complaints(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0
