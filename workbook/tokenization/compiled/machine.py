"""Memory access by address, eight bytes at a time, for which numba has no functions.

    text      O n c e   u p o n
    address   7 8 9 ...              byte(8) == ord("n")
              [ O n c e   u p o ]    word(7): one load, one number, "O" in its lowest byte

An array of bytes yields them one at a time, and an array of 64-bit numbers only those that begin at
every eighth byte. So compiled functions here take addresses instead of arrays. The price is that
nothing checks an address: every caller must see to it that the array outlives the call, and that
`PADDING` zeros follow a text, because `word` may read past its end.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from workbook.tokenization.compiled.kernels import compiled, intrinsic

PADDING = 16


def padded(data: bytes) -> np.ndarray:
    """The bytes as an array, followed by `PADDING` zeros."""
    text = np.zeros(len(data) + PADDING, np.uint8)
    text[: len(data)] = np.frombuffer(data, np.uint8)
    return text


def _load(bits: int, result: str) -> Any:
    """An intrinsic that reads `bits` bits at an address and widens them to the type `result`."""

    @intrinsic
    def load(context, address):
        from numba import types

        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer)
            value.align = 1  # texts begin anywhere
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return getattr(types, result)(types.int64), generate

    return load


byte = _load(8, "int64")  # byte(address) -> 0..255
word = _load(64, "uint64")  # word(address) -> the next eight bytes, the first one lowest


@intrinsic
def store(context, address, value):
    """Write a 64-bit number to the eight bytes at an address."""
    from numba import types

    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], pointer).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def trailing_zeros(context, value):
    """How many of the lowest bits are 0; 64 if all are."""
    from numba import types

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(context, address):
    """Begin to load the cache line at an address, and do not wait for it."""
    from numba import types
    from numba.core.cgutils import get_or_insert_function

    def generate(context, builder, signature, arguments):
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        hints = [ir.Constant(number, hint) for hint in (0, 3, 1)]  # to read, soon again, data
        builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return types.void(types.int64), generate


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
