"""Memory access by address, 8 or 64 bytes at a time, for which numba has no functions.

    text      O n c e   u p o n
    address   7 8 9 ...              byte(8) == ord("n")
              [ O n c e   u p o ]    word(7): one load, one number, "O" in its lowest byte

An array of bytes yields them one at a time, and an array of 64-bit numbers only those that begin at
every eighth byte. So compiled functions here take addresses instead of arrays. The price is that
nothing checks an address: every caller must see to it that the array outlives the call, and that
`PADDING` bytes that can be read follow a text, because a load may reach past its end. It takes the
address of a text from `text_address`, which asks for them.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from workbook.tokenization.compiled.kernels import compiled, intrinsic

BLOCK = PADDING = 64  # bytes that are compared together: as many as a number has bits
# Types of LLVM: numbers of 1, 8, 32 and 64 bits, and 64 of them as a vector.
BIT, BYTE, INDEX, WORD = map(ir.IntType, (1, 8, 32, 64))
BITS, BYTES, INDICES = (ir.VectorType(kind, BLOCK) for kind in (BIT, BYTE, INDEX))


def padded(data: bytes | np.ndarray) -> np.ndarray:
    """The bytes as an array, followed by `PADDING` zeros."""
    # Zeros, which are no letters: what is read behind the end never looks like text.
    text = np.zeros(len(data) + PADDING, np.uint8)
    text[: len(data)] = np.frombuffer(data, np.uint8)
    return text


def text_address(text: np.ndarray) -> int:
    """The address of a text, which is the beginning or the middle of a longer array of bytes.

    Raises: ValueError unless `PADDING` bytes of that array follow it.
    """
    if text.dtype != np.uint8 or text.ndim != 1 or not text.flags.c_contiguous:
        raise ValueError(f"a text is bytes in a row, got {text.dtype} with strides {text.strides}")
    # NumPy knows which array a part belongs to, and so how far the memory reaches behind it.
    at = text.ctypes.data
    behind = 0
    whole = text.base  # the array that holds the memory, if the text is a part of one
    if isinstance(whole, np.ndarray):
        behind = whole.ctypes.data + whole.nbytes - (at + text.nbytes)
    if behind < PADDING:
        raise ValueError(f"{PADDING} bytes are read behind a text, and this one has {behind}")
    return at


def load(builder: Any, address: Any, kind: Any) -> Any:
    """LLVM's code that reads a value of a type at an address."""
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    # LLVM would otherwise assume an address that is a multiple of eight, and may use instructions
    # that fail elsewhere.
    value.align = 1  # texts begin anywhere
    return value


@intrinsic("int64(int64)")
def byte(builder, address):
    """The byte at an address: 0 to 255."""
    # `zext` fills with zeros: 200 stays 200, and does not become -56.
    return builder.zext(load(builder, address, BYTE), WORD)


@intrinsic("uint64(int64)")
def word(builder, address):
    """The eight bytes at an address as one number, the first one lowest."""
    # The first byte lowest: little-endian, as are all processors that numba comes for.
    return load(builder, address, WORD)


@intrinsic("void(int64, uint64)")
def store(builder, address, value):
    """Write a 64-bit number to the eight bytes at an address."""
    builder.store(value, builder.inttoptr(address, WORD.as_pointer())).align = 1


@intrinsic("int64[::1](int64, int64)")
def array_at(builder, address, length):
    """The 64-bit numbers at an address as one of numba's arrays, without an owner."""
    pointer = BYTE.as_pointer()
    row = ir.ArrayType(WORD, 1)
    # As numba lays out an array: owner and parent, number and size of elements, data, shape,
    # strides.
    kind = ir.LiteralStructType([pointer, pointer, WORD, WORD, WORD.as_pointer(), row, row])
    data = builder.inttoptr(address, WORD.as_pointer())
    array = ir.Constant(kind, None)
    parts = {2: length, 3: WORD(8), 4: data, (5, 0): length, (6, 0): WORD(8)}  # sizes, strides
    for place, value in parts.items():
        array = builder.insert_value(array, value, place)
    return array


@intrinsic("int64(uint64)")
def trailing_zeros(builder, value):
    """How many of the lowest bits are 0; 64 if all are."""
    # The bit says that a value of 0 is allowed, and gives 64.
    return builder.cttz(value, BIT(0))


@intrinsic("int64(uint64)")
def ones(builder, value):
    """How many bits are 1."""
    # Most processors have an instruction for it; a loop would take 64 steps.
    return builder.ctpop(value)


@intrinsic("void(int64)")
def prefetch(builder, address):
    """Begin to load what is at an address into the processor's cache, and do not wait for it."""
    pointer = BYTE.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, INDEX, INDEX, INDEX])
    # A hint: at an address that does not exist, nothing happens.
    name = "llvm.prefetch.p0"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    hints = INDEX(0), INDEX(3), INDEX(1)  # to read it; it is used again soon; it is data
    builder.call(function, [builder.inttoptr(address, pointer), *hints])


def bytes_within(*ranges: str) -> Any:
    """An intrinsic that compares the 64 bytes at an address with ranges, such as "az".

    Its result has a bit for each byte, the lowest for the first. LLVM makes of it what vectors the
    processor has: one comparison of 64 bytes, two of 32, or four of 16.
    """

    @intrinsic("uint64(int64)")
    def within(builder, address):
        # 64 comparisons side by side, one for each byte, and one bit from each.
        found = BITS([0] * BLOCK)
        for low, high in ranges:
            # Unsigned, so that what is below the range is a large number.
            above = builder.sub(load(builder, address, BYTES), BYTES([ord(low)] * BLOCK))
            width = BYTES([ord(high) - ord(low)] * BLOCK)
            found = builder.or_(found, builder.icmp_unsigned("<=", above, width))
        return builder.bitcast(found, WORD)

    return within


@intrinsic("uint64(int64, int64)")
def bytes_equal(builder, address, value):
    """Compare the 64 bytes at an address with one byte, as `bytes_within` does."""
    # The byte into the first place of a vector, then from there into all 64.
    one = builder.insert_element(BYTES(None), builder.trunc(value, BYTE), INDEX(0))
    same = builder.shuffle_vector(one, one, INDICES([0] * BLOCK))
    found = builder.icmp_unsigned("==", load(builder, address, BYTES), same)
    return builder.bitcast(found, WORD)


@compiled
def same_bytes(one, other, length):
    """Whether `length` bytes at two addresses are equal."""
    # Byte by byte, as long pre-tokens and special tokens are rare.
    step = 0
    while step < length and byte(one + step) == byte(other + step):
        step += 1
    return step == length
