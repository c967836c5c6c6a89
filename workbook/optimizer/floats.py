"""How float32, float16 and bfloat16 store a number: a sign, an exponent and a mantissa.

A normal number is ± 1.mantissa · 2^(exponent - bias): the leading 1 is not stored. An exponent of
all zeros means a subnormal number, 0.mantissa · 2^(1 - bias), and one of all ones means infinity,
or, with a mantissa that is not zero, no number at all (NaN).
Source: IEEE 754-2019, sections 3.3 and 3.4; bfloat16 is float32 without its last 16 bits.
"""

import math
from dataclasses import dataclass
from typing import Literal

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
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bytes(self) -> int:
        """The memory of one number."""
        return self.bits // 8

    @property
    def bias(self) -> int:
        """The number subtracted from the stored exponent, so that exponents can be negative."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2 - self.epsilon) * 2.0**self.bias

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its digits."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number at all: half of it, or less, rounds to zero."""
        return self.smallest_normal * self.epsilon

    @property
    def epsilon(self) -> float:
        """The step from 1 to the next number: half of it is the largest relative error."""
        return 2.0**-self.mantissa_bits

    def store(self, value: float) -> "Stored":
        """The number of this format nearest to `value`, bit by bit; ties go to an even last bit.

        >>> FLOAT16.store(0.1)
        Stored(sign='0', exponent='01011', mantissa='1001100110', value=0.0999755859375)
        >>> FLOAT16.store(65_520).kind, FLOAT16.store(2e-8).kind
        ('infinity', 'zero')
        """
        sign = "1" if math.copysign(1, value) < 0 else "0"
        size = self._rounded(abs(value))
        if math.isnan(size):
            exponent, mantissa = 2**self.exponent_bits - 1, 2 ** (self.mantissa_bits - 1)
        elif math.isinf(size):
            exponent, mantissa = 2**self.exponent_bits - 1, 0
        elif size < self.smallest_normal:
            exponent, mantissa = 0, int(size / self.smallest_subnormal)
        else:
            fraction, power = math.frexp(size)  # 0.5 <= fraction < 1
            exponent = power - 1 + self.bias
            mantissa = int((2 * fraction - 1) / self.epsilon)
        return Stored(
            sign,
            f"{exponent:0{self.exponent_bits}b}",
            f"{mantissa:0{self.mantissa_bits}b}",
            math.copysign(size, value),
        )

    def _rounded(self, size: float) -> float:
        """The positive number of this format nearest to `size`."""
        if not math.isfinite(size) or size == 0:
            return size
        power = max(math.frexp(size)[1] - 1, 1 - self.bias)  # 2^power <= size, or subnormal
        step = 2.0 ** (power - self.mantissa_bits)  # between neighbours there
        near = round(size / step) * step  # by a power of two: exact; `round` takes the even one
        return near if near <= self.largest else math.inf


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
        if "0" not in self.exponent:
            return "not a number" if "1" in self.mantissa else "infinity"
        if "1" in self.exponent:
            return "normal"
        return "subnormal" if "1" in self.mantissa else "zero"


FLOAT32 = FloatFormat("float32", 8, 23)
FLOAT16 = FloatFormat("float16", 5, 10)
BFLOAT16 = FloatFormat("bfloat16", 8, 7)
FORMATS = {each.name: each for each in (FLOAT32, FLOAT16, BFLOAT16)}


def read(text: str) -> float:
    """The number in a text that somebody typed: "65504", "1e-7", "2^-24", "1/3", "-0", "inf".

    >>> read("2^-24") == 2**-24, read("1/4")
    (True, 0.25)
    """
    try:
        if "^" in text or "**" in text:
            base, exponent = text.replace("**", "^").split("^")
            return math.pow(float(base), float(exponent))
        if "/" in text:
            above, below = text.split("/")
            return float(above) / float(below)
        return float(text.replace(",", ""))
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise ValueError(f"{text!r} is no number; try 0.1, 1e-7, 2^-24 or 1/3") from None
