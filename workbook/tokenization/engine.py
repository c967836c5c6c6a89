"""When a text goes through the compiled engine, and where its machine code is kept.

    loaded in this process      for every file to train on, and for every text, once a tokenizer
                                has its encoder
    kept on disk                from 50 kB: loading it takes 60 ms, Python as long to train on 30 kB
    to be compiled first        from 5 MiB: that takes about 10 s, once on a machine

A tokenizer needs an encoder of its own, which takes 10 to 40 ms to make: it makes one when it has
read 100 kB, all its texts together. Reading them in Python took about as long. So twice the text
never takes many times as long, nor do a thousand short texts instead of a long one. The question is
asked for every text, so it must be cheap: for short ones the answer is known, for others the disk
is looked at once in a process, and LLVM is never loaded just to find out.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import platformdirs

from workbook.config import DISTRIBUTION, checkout

FROM_IF_READY = 50_000  # bytes
FROM_IF_NOT = 5 << 20

loaded = False  # set by `compiled.kernels.load_kernels`


def pays_off(size: float) -> bool:
    """Whether so many bytes are worth loading the engine, or an encoder."""
    # The cheapest question first: most texts are short.
    return size >= FROM_IF_READY and (loaded or size >= FROM_IF_NOT or is_on_disk())


def memory_is_limited() -> bool:
    """Whether this process may not take all memory that there is, as under `ulimit -v`.

    A stream then stays with Python, which needs less than 1 MB for it: that is what such a limit
    tests.
    """
    try:
        import resource
    except ImportError:  # Windows
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


@cache
def is_on_disk() -> bool:
    """Whether machine code of these sources is kept on this machine.

    It may be of another kind of processor, if machines share a disk. Then the first text of 50 kB
    waits for the compiler: which kind this one is, only LLVM could say.
    """
    # Code of other sources does not count: it would be compiled anew.
    pattern = f"kernels-{sources_digest()}-*.o"
    return any(any(folder.glob(pattern)) for folder in code_folders())


@cache
def sources_digest() -> str:
    """A hash of the sources of the engine, which is part of the name of its machine code."""
    # Whatever changes in a source, a comment too, gives another name: old code is never loaded.
    sources = sorted((Path(__file__).parent / "compiled").glob("*.py"))
    content = b"".join(source.read_bytes() for source in sources)
    return sha256(content).hexdigest()[:12]


def code_folders() -> Iterator[Path]:
    """Where machine code may be kept, the best place first."""
    # Several checkouts on one machine may differ, so each keeps its own.
    if checkout():  # an installed package is not written to
        yield Path(__file__).parent / "compiled" / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        yield platformdirs.user_cache_path(DISTRIBUTION, appauthor=False)
