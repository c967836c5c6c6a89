"""Memory access by address, eight bytes at a time, for which numba has no functions.

    text      O n c e   u p o n
    address   7 8 9 ...              byte(8) == ord("n")
              [ O n c e   u p o ]    word(7): one load, one number, "O" in its lowest byte

Compiled functions here take addresses instead of arrays: numba counts the references to every array
that a function is called with, which is most of the work in a function that reads three bytes.
The price is that nothing checks an address. So every caller ensures that the array outlives the
call, and that `PADDING` zeros follow a text, because `word` may read past its end.
"""

import os
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import platformdirs
from llvmlite import ir
from numba import config, njit, types
from numba.core import event
from numba.extending import intrinsic

from workbook.config import DISTRIBUTION, checkout

PADDING = 16


def compiled(function):
    """`function` compiled on its first call, without the interpreter's lock, and kept on disk.

    If no folder can be written to, every process compiles for itself.
    """
    before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder() or "")
    try:
        return njit(
            cache=cache_folder() is not None,
            nogil=True,
            boundscheck=False,
            error_model="numpy",
        )(function)
    finally:
        config.CACHE_DIR = before


@cache
def cache_folder() -> Path | None:
    """The folder for compiled code: next to the sources in a checkout, else the user's, or None.

    numba compiles a function again when its own file changes, but not when a file that it calls
    into does. So the folder's name is a hash of all the sources together.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    folders = [platformdirs.user_cache_path(DISTRIBUTION, appauthor=False)]
    if checkout():  # an installed package is not written to
        folders.insert(0, Path(__file__).parent / "__pycache__")
    for folder in folders:
        try:
            (folder / digest[:16]).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder / digest[:16], os.W_OK):
            return folder / digest[:16]
    return None


class Announcement(event.Listener):
    """Prints a line when the first function of this package is compiled, which takes seconds."""

    announced = False

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if not self.announced and function.__module__.startswith("workbook.tokenization.compiled."):
            self.announced = True
            print("workbook: compiling the fast engine, once, about 10 s ...", file=sys.stderr)

    def on_end(self, event):
        """Do nothing; numba requires this method."""


event.register("numba:compile", Announcement())


def padded(data: bytes) -> np.ndarray:
    """The bytes as an array, followed by `PADDING` zeros."""
    text = np.zeros(len(data) + PADDING, np.uint8)
    text[: len(data)] = np.frombuffer(data, np.uint8)
    return text


def _load(bits: int, result: types.Type):
    """An intrinsic that reads `bits` bits at an address and widens them to `result`."""

    @intrinsic
    def load(context, address):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer)
            value.align = 1  # texts begin anywhere
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return result(types.int64), generate

    return load


byte = _load(8, types.int64)  # byte(address) -> 0..255
word = _load(64, types.uint64)  # word(address) -> the next eight bytes, the first one lowest


@intrinsic
def store(context, address, value):
    """Write a 64-bit number to the eight bytes at an address."""

    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], pointer).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def trailing_zeros(context, value):
    """How many of the lowest bits are 0; 64 if all are."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


# Unsigned 64-bit constants: numba would turn a mix of signed and unsigned numbers into floats.
LOW_CASE = np.uint64(0x2020_2020_2020_2020)
SEVEN_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
TOP_BITS = np.uint64(0x8080_8080_8080_8080)
REACH_A = np.uint64(0x1F1F_1F1F_1F1F_1F1F)  # 0x80 - ord("a"): from "a" on the top bit is set
PASS_Z = np.uint64(0x0505_0505_0505_0505)  # 0x7f - ord("z"): beyond "z" the top bit is set


@compiled
def leading_letters(eight):
    """How many of eight bytes, from the first on, are ASCII letters: all eight at once.

    In each byte, the top bit of (lower case + 0x1f) means "a or more", that of (lower case + 0x05)
    "more than z", and its own "not ASCII". The first byte that is not a letter ends the run.
    """
    lower = (eight | LOW_CASE) & SEVEN_BITS
    letter = (lower + REACH_A) & ~(lower + PASS_Z) & ~eight & TOP_BITS
    return trailing_zeros(letter ^ TOP_BITS) >> 3
