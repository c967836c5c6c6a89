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

BLOCK = 64  # bytes that are compared together: as many as a number has bits
PADDING = BLOCK
# Vectors: 64 bytes, one bit for each, and 64 indices into them.
BYTES, BITS = ir.VectorType(ir.IntType(8), BLOCK), ir.VectorType(ir.IntType(1), BLOCK)
PLACE = ir.IntType(32)
PLACES = ir.VectorType(PLACE, BLOCK)


def padded(data: bytes | np.ndarray) -> np.ndarray:
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
def numbers(context, address, length):
    """The `length` 64-bit numbers at an address as an array."""
    from numba import types
    from numba.np.arrayobj import make_array, populate_array

    def generate(context, builder, signature, arguments):
        made, size = make_array(signature.return_type)(context, builder), ir.IntType(64)(8)
        data = builder.inttoptr(arguments[0], made.data.type)
        populate_array(made, data, [arguments[1]], [size], size, meminfo=None)
        return made._getvalue()

    return types.int64[::1](types.int64, types.int64), generate


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


def _block(builder: Any, address: Any) -> Any:
    """LLVM's code for the 64 bytes at an address."""
    block = builder.load(builder.inttoptr(address, BYTES.as_pointer()))
    block.align = 1
    return block


def bytes_within(*ranges: str) -> Any:
    """An intrinsic that compares the 64 bytes at an address with ranges, such as "az".

    Its result has a bit for each byte, the lowest for the first. LLVM makes of it what vectors the
    processor has: one comparison of 64 bytes, two of 32, or four of 16.
    """

    @intrinsic
    def within(context, address):
        from numba import types

        def generate(context, builder, signature, arguments):
            block, found = _block(builder, arguments[0]), ir.Constant(BITS, [0] * BLOCK)
            for low, high in ranges:
                # Unsigned, so that what is below the range is a large number.
                above = builder.sub(block, ir.Constant(BYTES, [ord(low)] * BLOCK))
                width = ir.Constant(BYTES, [ord(high) - ord(low)] * BLOCK)
                found = builder.or_(found, builder.icmp_unsigned("<=", above, width))
            return builder.bitcast(found, ir.IntType(BLOCK))

        return types.uint64(types.int64), generate

    return within


@intrinsic
def bytes_equal(context, address, value):
    """Compare the 64 bytes at an address with a byte, as `bytes_within` does."""
    from numba import types

    def generate(context, builder, signature, arguments):
        value = builder.trunc(arguments[1], ir.IntType(8))
        one = builder.insert_element(ir.Constant(BYTES, None), value, PLACE(0))
        same = builder.shuffle_vector(one, one, ir.Constant(PLACES, [0] * BLOCK))
        found = builder.icmp_unsigned("==", _block(builder, arguments[0]), same)
        return builder.bitcast(found, ir.IntType(BLOCK))

    return types.uint64(types.int64, types.int64), generate


@compiled
def same_bytes(one, other, length):
    """Whether `length` bytes at two addresses are equal."""
    step = 0
    while step < length and byte(one + step) == byte(other + step):
        step += 1
    return step == length
