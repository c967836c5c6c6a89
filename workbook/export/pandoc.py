"""Pandoc, shut in a sandbox: texts in, syntax trees out, and trees in, formats out."""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workbook.export.nodes import Node

INSTALL = 'pip install -e ".[export]"'
MARKDOWN = "gfm-yaml_metadata_block-emoji-alerts-gfm_auto_identifiers+tex_math_dollars"
HTML = "html"
LIMITS = ["+RTS", "-M2g", "-RTS", "--sandbox"]  # of memory; and no file or address is opened
SECONDS = 30.0  # for one call
UNREAD_FORMULA = re.compile(r"Could not convert TeX math (.*), rendering as TeX")


def require() -> str:
    """The path of the program; raises ValueError where the `export` extra is not installed."""
    try:
        import pypandoc
        import typst  # noqa: F401  # the other half of the extra: better missed now than later

        return pypandoc.get_pandoc_path()
    except (ImportError, OSError) as error:
        name = getattr(error, "name", None) or "pandoc"
        raise ValueError(f"the export needs {name}, which is not installed: {INSTALL}") from None


def read(texts: Sequence[str], source: str) -> list[list[Node]]:
    """The blocks of each text, written in the format `source`.

    Each is a file of its own to pandoc, so that what one text leaves open does not swallow the
    next. What stands between them cannot be forged: a text does not know its own digest.
    """
    if not texts:
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = []
        mark = f"workbook-{_digest(texts)}"
        for number, text in enumerate(texts):
            for name, content in ((f"{number}", text), (f"{number}-end", _marked(mark, source))):
                path = Path(folder, name)
                path.write_text(content, encoding="utf-8", newline="\n")
                files.append(str(path))
        # Hundreds of names would not fit on a command line of Windows: they go into a file.
        defaults = Path(folder, "defaults.json")
        defaults.write_text(
            json.dumps({"from": source, "to": "json", "file-scope": True, "input-files": files})
        )
        tree = json.loads(_run(["--defaults", str(defaults)], b"")[0])
    found, blocks = [], []
    for block in tree["blocks"]:
        if block["t"] == "CodeBlock" and block["c"][1].strip() == mark:
            found.append(blocks)
            blocks = []
        else:
            blocks.append(block)
    return found


def write(blocks: Sequence[Node], target: str, *options: str) -> tuple[str, list[str]]:
    """The blocks in the format `target`, and the formulas that it could not set."""
    tree = {"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": list(blocks)}
    arguments = ["--from", "json", "--to", target, "--wrap", "none", *options]
    done, said = _run(arguments, json.dumps(tree).encode())
    return done.decode(), UNREAD_FORMULA.findall(said)


def _run(arguments: list[str], given: bytes) -> tuple[bytes, str]:
    """What pandoc wrote, and what it said beside."""
    command = [require(), *LIMITS, *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"pandoc did not finish within {SECONDS:.0f} s") from None
    said = done.stderr.decode(errors="replace")
    if done.returncode:
        raise ValueError(f"pandoc failed: {(said.strip().splitlines() or ['it said nothing'])[0]}")
    return done.stdout, said


def _digest(texts: Sequence[str]) -> str:
    from hashlib import sha256

    return sha256("\0".join(texts).encode()).hexdigest()


def _marked(mark: str, source: str) -> str:
    return f"<pre>{mark}</pre>\n" if source == HTML else f"```\n{mark}\n```\n"
