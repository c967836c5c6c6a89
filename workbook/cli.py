"""The `workbook` command: each subcommand reads its arguments here and calls one function.

What a subcommand needs is imported inside it, so that `workbook --help` answers at once.
"""

import argparse
import importlib.util
import re
import sys
from pathlib import Path

from workbook import __version__

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def main(arguments: list[str] | None = None) -> int:
    """The exit status of one command: 0 done, 1 a wrong attempt, 2 something to mend first."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        return 130
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
    kinds = data.add_subparsers(metavar="list | make | get", required=True)
    kinds.add_parser("list", help="what there is, and what lies on this disk").set_defaults(
        run=run_data_list
    )
    make = kinds.add_parser("make", help="write a corpus that needs no network")
    make.add_argument("name", metavar="NAME")
    make.add_argument("--size", type=size, metavar="100MB", help="for `stories`: any size")
    make.add_argument("--split", choices=("train", "validation"), help="default: both")
    make.set_defaults(run=run_data_make)
    get = kinds.add_parser("get", help="download a corpus; goes on where it was cut off")
    get.add_argument("name", metavar="NAME")
    get.set_defaults(run=run_data_get)

    notebooks = commands.add_parser(
        "notebooks", help="run the worked notebooks again and store their outputs"
    )
    notebooks.add_argument("names", metavar="NAME", nargs="*", help="such as 02_bpe; default: all")
    notebooks.set_defaults(run=run_notebooks)
    return top


def port(text: str) -> int:
    """The number of a port."""
    if not (text.isdecimal() and 0 < int(text) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 1 to 65535")
    return int(text)


def size(text: str) -> int:
    """The bytes that a size names.

    >>> size("100MB"), size("1.5 GB"), size("4096")
    (100000000, 1500000000, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not match or match[2] not in UNITS or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give one such as 500kB, 100MB, 1GB")
    return round(float(match[1]) * UNITS[match[2]])


def load_attempt(file: str, problem: str):
    """The object named by "path.py:name", or the one in "path.py" that is named like the problem.

    Case and underscores do not matter: `RMSNorm` is named like rmsnorm.
    """
    path, name = re.fullmatch(r"(.*?)(?::([^\W\d]\w*))?", file).groups()
    defined = vars(load_module(Path(path)))
    if name is not None:
        if name not in defined:
            raise ValueError(f"{path} defines no {name}")
        return defined[name]
    alike = [own for own in defined if own.lower().replace("_", "") == problem.replace("_", "")]
    if len(alike) != 1:
        raise ValueError(
            f"{path} should define one object named like {problem}, and defines "
            f"{', '.join(alike) or 'none'}; say which one you mean, as in {path}:NAME"
        )
    return defined[alike[0]]


def load_module(path: Path):
    """The module in the file `path`, run as an import would run it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; expected FILE.py or FILE.py:NAME")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # the file may import its neighbours
    sys.modules.setdefault(path.stem, module)  # worker processes look its functions up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error
    return module


def run_lab(options: argparse.Namespace) -> None:
    from workbook import lab

    lab.start(options.port)


def run_study(options: argparse.Namespace) -> None:
    from workbook import study

    if options.reset:
        study.reset(options.reset)
    print(study.overview())


def run_check(options: argparse.Namespace) -> int:
    from workbook import exercise, problems

    problem = problems.get(options.problem)
    attempt = load_attempt(options.file, problem.id)
    report = exercise.check(problem.id, attempt, part=options.part)
    print(report)
    return 0 if report.status == "correct" else 1


def run_data_list(options: argparse.Namespace) -> None:
    from workbook import corpora

    print(corpora.overview())


def run_data_make(options: argparse.Namespace) -> None:
    from workbook import corpora

    for split in [options.split] if options.split else ["train", "validation"]:
        print(corpora.path(options.name, split, options.size))


def run_data_get(options: argparse.Namespace) -> None:
    from workbook import corpora

    corpora.get(options.name)


def run_notebooks(options: argparse.Namespace) -> None:
    from workbook import notebooks

    notebooks.main(options.names)
