"""English prose that ships with Python: the help topics and docstrings of the standard library.

It stands in for messy web text: many authors, many habits, half of it about code. All of it is
read from source files with `ast`; no module is imported, so neither side effects nor a broken
installation can get in the way.
"""

import ast
import platform
import re
import sys
import sysconfig
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import Path

# Not part of what Python explains to its users: tests, demos, an editor, a retired converter.
SKIPPED = {"test", "tests", "idlelib", "idle_test", "turtledemo", "lib2to3", "pydoc_data"}
LONG_PARAGRAPH = 40  # characters; anything shorter ("Example:") may come twice
FEWEST_LETTERS = 0.3  # of a long paragraph's characters; below it, it is drawn and not written
SHORTEST_DOCUMENT = 200  # characters; below it a "document" is a title and a shrug
VALIDATION_SHARE = 10  # one document in ten

# Control characters and lone surrogates: legal in a docstring, a nuisance in a text file.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")

Section = tuple[str, str]  # a heading ("" for none) and the text below it


def harvest(
    library: Traversable | None = None, progress: Callable[[Iterable], Iterable] = iter
) -> dict[str, str]:
    """The text of every document by its name, `topic:if` or `module:json.decoder`, in name order.

    No docstring and no paragraph of more than a few words comes twice. The longest document keeps
    what it shares with others, because a long text with holes teaches less than a short one that
    is gone.
    `library` is the folder or zip file of a standard library, by default that of this Python;
    `progress` wraps the list of modules to be read, the slow part.
    """
    library = standard_library() if library is None else library
    found = {f"topic:{name}": [("", text)] for name, text in _topics(library)}
    for name, file in progress(sorted(_modules(library))):
        found[f"module:{name}"] = list(_sections(name, file.read_bytes()))
    seen: set[str] = set()
    documents = {}
    size = {name: sum(len(text) for _, text in sections) for name, sections in found.items()}
    for name in sorted(found, key=lambda name: (-size[name], name)):
        text = _deduplicated(found[name], seen)
        if len(text) >= SHORTEST_DOCUMENT:
            documents[name] = text
    return dict(sorted(documents.items()))


def split_of(name: str) -> str:
    """`train` or `validation`, decided by a hash of the document's name: always the same."""
    digest = sha256(name.encode()).digest()
    return "train" if int.from_bytes(digest[:8], "big") % VALIDATION_SHARE else "validation"


def python_version() -> str:
    """The Python whose library is read, such as `CPython 3.12.4`."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def standard_library() -> Traversable:
    """The folder with the sources of the running Python's standard library, or the zip file.

    Raises FileNotFoundError where the library has no sources, as in some bundled applications.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    if (folder / "json" / "decoder.py").is_file():
        return folder
    for entry in map(Path, sys.path):
        if entry.suffix == ".zip" and entry.is_file():
            archive = zipfile.Path(entry)
            if (archive / "json" / "decoder.py").is_file():
                return archive
    raise FileNotFoundError(
        f"{python_version()} has no sources of its standard library in {folder} or in a zip file on"
        " sys.path, so there is no pydocs corpus; use a Python from python.org, conda, uv or your"
        " system's packages"
    )


def _topics(library: Traversable) -> Iterator[tuple[str, str]]:
    """Name and text of each help topic: a dict in `topics.py`, or text files, or nothing."""
    folder = library / "pydoc_data"
    if not folder.is_dir():
        return
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name == "topics.py":
            for node in _parsed(file.read_bytes()).body:
                value = getattr(node, "value", None)  # of `topics = {...}`, annotated or not
                if isinstance(value, ast.Dict):
                    yield from ast.literal_eval(value).items()
        elif file.name.endswith((".txt", ".rst")):
            yield file.name[:-4], file.read_text(encoding="utf-8")


def _modules(library: Traversable, package: str = "") -> Iterator[tuple[str, Traversable]]:
    """Name and file of every module below a folder of the library."""
    for entry in library.iterdir():
        name = entry.name.removesuffix(".py")
        if name in SKIPPED or not name.isidentifier():
            continue
        if not package and name not in sys.stdlib_module_names:
            continue  # a stranger that was put into the library's folder
        if entry.is_dir() and entry.name == name:
            yield from _modules(entry, f"{package}{name}.")
        elif entry.name.endswith(".py"):
            yield (package.rstrip(".") if name == "__init__" else package + name), entry


def _parsed(source: bytes) -> ast.Module:
    """The syntax tree of a module, an empty one where it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old modules have invalid escapes in their strings
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _sections(module: str, source: bytes) -> Iterator[Section]:
    """The docstrings of a module, its classes and their functions, each under its name."""
    tree = _parsed(source)
    yield module, ast.get_docstring(tree) or ""
    yield from _definitions(tree, "")


def _definitions(parent: ast.AST, owner: str) -> Iterator[Section]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield f"class {owner}{node.name}", ast.get_docstring(node) or ""
            yield from _definitions(node, f"{owner}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{owner}{node.name}({_parameters(node.args)})", ast.get_docstring(node) or ""
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
    """The sections as one text, without what was `seen` before; adds to `seen` what is new."""
    kept = []
    for heading, text in sections:
        whole = " ".join(text.split())
        if not whole or whole in seen:
            continue
        seen.add(whole)
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", _clean(text)):
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
        kept.insert(0, title)  # the module itself says nothing, its classes do
    return "\n\n".join(filter(None, kept)) + "\n"


def _is_drawing(paragraph: str) -> bool:
    """Whether a paragraph is a table in a frame, a diagram or a column of numbers."""
    characters = paragraph.replace(" ", "")
    return sum(map(str.isalpha, characters)) < FEWEST_LETTERS * len(characters)


def _clean(text: str) -> str:
    """The text without control characters, tabs and blanks at the ends of lines."""
    lines = UNPRINTABLE.sub("", text.expandtabs()).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")
