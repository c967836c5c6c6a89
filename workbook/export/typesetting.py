"""Typst in a process of its own, which reads a job in JSON and writes the PDF.

Deep nesting overflows typst's stack and ends the process that it runs in, which must not be a
learner's kernel. This file is also the program that runs in that process.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

SECONDS = 120.0  # for one document


def compiled(source: str, root: str, fonts: Sequence[str]) -> bytes:
    """Typeset a source in typst's language as a PDF.

    `root` is the folder of its pictures, and `fonts` are files. Raises ValueError if typst refuses
    the source, or crashes.
    """
    job = {"source": source, "root": root, "fonts": list(fonts)}
    # By its path, so that the package need not be found again; -P, so that its neighbours are
    # not taken for modules of the standard library.
    command = [sys.executable, "-P", __file__]
    try:
        done = subprocess.run(
            command, input=json.dumps(job).encode(), capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"typst did not finish within {SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said and done.returncode == 1 else "it crashed"
        raise ValueError(f"typst could not typeset the write-up: {reason}")
    return done.stdout


def main() -> None:
    """Read the job, and write the PDF."""
    import typst

    job = json.load(sys.stdin.buffer)
    try:
        done = typst.compile(
            job["source"].encode(),
            root=job["root"],
            font_paths=typst.Fonts(font_paths=job["fonts"]),
            package_path=job["root"],
            package_cache_path=job["root"],
            timestamp=0,
        )
    except Exception as error:
        sys.exit(" ".join(str(error).split()))
    sys.stdout.buffer.write(done)


if __name__ == "__main__":
    main()
