"""How float32, float16 and bfloat16 store a number: a sign, an exponent and a mantissa.

A normal number is ± 1.mantissa · 2^(exponent - bias): the leading 1 is not stored. An exponent of
all zeros means a subnormal number, 0.mantissa · 2^(1 - bias), or zero; one of all ones means
infinity or, with a nonzero mantissa, "not a number" (NaN).
Source: IEEE 754-2019, sections 3.3 and 3.4; bfloat16 is float32 without its last 16 bits.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

Kind = Literal["normal", "subnormal", "zero", "infinity", "not a number"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary format: how many bits each of its three fields has, and what follows from that."""

    name: str
    exponent_bits: int
    mantissa_bits: int

    @property
    def bits(self) -> int:
        """All its bits, the sign included."""
        # One sign, then the exponent, then the mantissa, from the highest bit to the lowest.
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bytes(self) -> int:
        """The number of bytes that one number takes."""
        return self.bits // 8

    @property
    def bias(self) -> int:
        """The number subtracted from the stored exponent, so that exponents can be negative."""
        # With a bias in place of a sign, positive numbers are in the order of their bits.
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        # An exponent of all ones is taken, so the largest is one less; 1.11…1 in base 2 is 2 - ε.
        return (2 - self.epsilon) * 2.0**self.bias

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with its full precision."""
        # A stored exponent of 0 means subnormal, so the smallest is 1.
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number at all: half of it, or less, rounds to zero."""
        # 0.00…01: a subnormal number pays for its size with its digits, down to one.
        return self.smallest_normal * self.epsilon

    @property
    def epsilon(self) -> float:
        """The step from 1 to the next number: half of it is the largest relative error."""
        # The last bit of the mantissa, for a number from 1 to 2. From 2 to 4 the step is twice
        # that.
        return 2.0**-self.mantissa_bits

    @property
    def dtype(self) -> torch.dtype:
        """torch's dtype for this format."""
        # The names above are torch's own.
        return getattr(torch, self.name)

    def store(self, value: float) -> "Stored":
        """The number nearest to `value`, as torch stores it; ties go to an even last bit.

        >>> FLOAT16.store(0.1)
        Stored(sign='0', exponent='01011', mantissa='1001100110', value=0.0999755859375)
        >>> FLOAT16.store(65_520).kind, FLOAT16.store(2e-8).kind
        ('infinity', 'zero')
        """
        # torch rounds to nearest, and a tie to the even neighbour, so that errors do not add up.
        stored = torch.tensor(value, dtype=self.dtype)
        # The same bits read as an integer, which can be printed in base 2.
        pattern = stored.view({2: torch.int16, 4: torch.int32}[self.bytes]).item()
        bits = f"{pattern % 2**self.bits:0{self.bits}b}"  # the integer is negative for sign 1
        # "0 01011 1001100110" without its blanks.
        mantissa_at = 1 + self.exponent_bits
        return Stored(bits[0], bits[1:mantissa_at], bits[mantissa_at:], stored.item())


@dataclass(frozen=True)
class Stored:
    """A number as a format holds it: the bits of its three fields, and what they mean."""

    sign: str
    exponent: str
    mantissa: str
    value: float

    @property
    def kind(self) -> Kind:
        """Which of the five kinds of bit patterns this is."""
        # All ones: infinity, or what is no number, such as 0 / 0.
        if "0" not in self.exponent:
            return "not a number" if "1" in self.mantissa else "infinity"
        # Neither all ones nor all zeros: the leading 1 is implied.
        if "1" in self.exponent:
            return "normal"
        return "subnormal" if "1" in self.mantissa else "zero"


FLOAT32 = FloatFormat("float32", 8, 23)
FLOAT16 = FloatFormat("float16", 5, 10)
BFLOAT16 = FloatFormat("bfloat16", 8, 7)
FORMATS = {format.name: format for format in (FLOAT32, FLOAT16, BFLOAT16)}


def read_number(text: str) -> float:
    """The number in a typed text: "65504", "1e-7", "2^-24", "1/3", "-0", "inf".

    >>> read_number("2^-24") == 2**-24, read_number("1/4")
    (True, 0.25)
    """
    try:
        if "^" in text or "**" in text:
            base, exponent = text.replace("**", "^").split("^")
            # Unlike `**`, it never gives a complex number: (-1)^0.5 is an error.
            return math.pow(float(base), float(exponent))
        if "/" in text:
            above, below = text.split("/")
            return float(above) / float(below)
        return float(text.replace(",", ""))
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise ValueError(f"{text!r} is not a number; try 0.1, 1e-7, 2^-24 or 1/3") from None
