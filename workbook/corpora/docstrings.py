"""The docstrings of the libraries that come with the workbook: English prose with examples.

They stand in for messy web text: many authors, many habits, all of it about code. The versions
that `constraints.txt` pins give the same text with every Python, on every system and for every
device. All of it is read from source files with `ast`; no module is imported, so neither side
effects nor a broken installation can get in the way.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib import util
from inspect import cleandoc
from pathlib import Path

from workbook import config
from workbook.files import no_collection, progress_bar

# Every install has these libraries, because the workbook or one of its libraries depends on them;
# each has at least 100 kB of docstrings. The versions are those in constraints.txt.
LIBRARIES = {
    "babel": "2.18.0",
    "click": "8.5.1",
    "fontTools": "4.68.0",
    "fsspec": "2026.9.0",
    "huggingface_hub": "2.4.0",
    "IPython": "9.18.1",
    "jinja2": "3.1.6",
    "matplotlib": "3.11.2",
    "mpmath": "1.3.0",
    "networkx": "3.6.1",
    "numba": "0.68.1",
    "numpy": "2.4.6",
    "pandas": "3.1.1",
    "prompt_toolkit": "3.0.53",
    "pygments": "2.21.0",
    "pyparsing": "3.3.3",
    "sympy": "1.14.0",
    "torch": "2.13.0",
    "tornado": "6.6.1",
}
# What is not written for a library's users, or what some of its builds lack: tests, copies of other
# libraries, and numpy's `distutils`, which exists only for Python 3.11.
SKIPPED = {"test", "tests", "testing", "conftest", "_vendor", "vendored_templates", "distutils"}
LONG_PARAGRAPH = 40  # characters; anything shorter ("Example:") may be repeated
FEWEST_LETTERS = 0.3  # of a long paragraph's characters; with fewer, it is a drawing, not prose
SHORTEST_DOCUMENT = 200  # characters; a shorter "document" is little more than a title
VALIDATION_SHARE = 10  # one document in ten

# Control characters and lone surrogates: legal in a docstring, a nuisance in a text file.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
BLANK = re.compile(r"[^\S\n]")

Section = tuple[str, str]  # a heading and the text below it


def harvest(folders: Iterable[Path]) -> dict[str, str]:
    """The text of every module by its name, such as `numpy.linalg`; the order mixes the libraries.

    No docstring and no paragraph of more than a few words is repeated. What several documents share
    stays in the longest one, because it is better to lose a short text than to leave holes in a
    long one. `folders` are those of the libraries.
    """
    modules = [pair for folder in folders for pair in _modules(folder, folder.name)]
    bar = progress_bar(modules, desc="read the libraries")  # parsing is the slow part
    with no_collection():  # a quarter of the time would go on it, and trees have no cycles
        sections = {name: _sections(name, file.read_bytes()) for name, file in bar}
    sizes = {name: sum(len(text) for _, text in parts) for name, parts in sections.items()}
    seen: set[str] = set()
    documents = {}
    for name in sorted(sections, key=lambda name: (-sizes[name], name)):  # the longest first
        text = _deduplicated(sections[name], seen)
        if len(text) >= SHORTEST_DOCUMENT:
            documents[name] = text
    return dict(sorted(documents.items(), key=lambda item: _digest(item[0])))


def split_of(name: str) -> str:
    """`train` or `validation`, decided by a hash of the document's name: always the same."""
    return "train" if _digest(name) % VALIDATION_SHARE else "validation"


def library_versions() -> dict[str, str]:
    """The installed versions of `LIBRARIES` by name, without those that are missing.

    Builds for CPU and GPU, such as torch 2.13.0+cpu, have the same docstrings, so count as one
    version.
    """
    installed = config.versions(LIBRARIES)
    return {name: installed[name].partition("+")[0] for name in LIBRARIES if name in installed}


def _digest(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")


def library_folders() -> Iterator[Path]:
    """The folders of those of `LIBRARIES` that are installed."""
    for name in library_versions():
        spec = util.find_spec(name)
        if spec and spec.submodule_search_locations:
            yield Path(spec.submodule_search_locations[0])


def _modules(folder: Path, package: str) -> Iterator[tuple[str, Path]]:
    """Name and file of every module below a folder of a library, in the order of the names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = entry.name.removesuffix(".py")
        if name in SKIPPED or not name.isidentifier():
            continue
        if entry.is_dir():
            yield from _modules(entry, f"{package}.{name}")
        elif entry.suffix == ".py":
            yield (package if name == "__init__" else f"{package}.{name}"), entry


def _sections(module: str, source: bytes) -> list[Section]:
    """The docstrings of a module, its classes and their functions, each under its name."""
    tree = ast.Module(body=[], type_ignores=[])
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError):  # it is not valid Python
        warnings.simplefilter("ignore")  # old modules have invalid escapes in their strings
        tree = ast.parse(source)
    return [(module, _docstring(tree)), *_definitions(tree, "")]


def _definitions(parent: ast.AST, owner: str) -> Iterator[Section]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield f"class {owner}{node.name}", _docstring(node)
            yield from _definitions(node, f"{owner}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{owner}{node.name}({_parameters(node.args)})", _docstring(node)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _definitions(node, owner)  # a definition for one platform, or a fallback


def _parameters(args: ast.arguments) -> str:
    """The names of a function's parameters, without `self`, types and default values."""
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    if args.vararg:
        names.append(f"*{args.vararg.arg}")
    names += [arg.arg for arg in args.kwonlyargs]
    if args.kwarg:
        names.append(f"**{args.kwarg.arg}")
    return ", ".join(names)


def _deduplicated(sections: list[Section], seen: set[str]) -> str:
    """The sections as one text, without what is in `seen`; what is new is added to `seen`."""
    kept = []
    for heading, text in sections:
        whole = " ".join(text.split())
        if not whole or whole in seen:
            continue
        seen.add(whole)
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", text):
            key = " ".join(paragraph.split())
            if len(key) > LONG_PARAGRAPH and key != whole:
                if key in seen or _is_drawing(key):
                    continue
                seen.add(key)
            paragraphs.append(paragraph)
        if paragraphs:
            kept += [heading, *paragraphs]
    title = sections[0][0]
    if kept and kept[0] != title:
        kept.insert(0, title)  # the module has no docstring, but its classes do
    return "\n\n".join(kept) + "\n"


def _is_drawing(paragraph: str) -> bool:
    """Whether a paragraph is a table in a frame, a diagram or a column of numbers."""
    characters = paragraph.replace(" ", "")
    return sum(map(str.isalpha, characters)) < FEWEST_LETTERS * len(characters)


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The docstring without indentation, control characters and trailing blanks.

    `cleandoc` in Python 3.13 knows fewer kinds of blanks than in older versions, so all become
    spaces.
    """
    text = ast.get_docstring(node, clean=False) or ""
    text = BLANK.sub(" ", UNPRINTABLE.sub("", text.expandtabs()))
    return "\n".join(line.rstrip() for line in cleandoc(text).split("\n")).strip("\n")
