"""The formats are torch's, and the bits of a number mean its value."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from workbook.optimizer import floats
from workbook.optimizer.floats import FORMATS

every_format = pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)


@every_format
def test_the_limits_are_those_of_torch(format):
    info = torch.finfo(format.dtype)
    assert format.bits == info.bits
    assert format.largest == info.max
    assert format.smallest_normal == info.smallest_normal
    assert format.epsilon == info.eps
    bits = format.store(format.smallest_subnormal)
    assert bits.exponent + bits.mantissa == "1".zfill(format.bits - 1)


@every_format
@given(value=st.floats(width=32))
@example(value=65_519.0)
@example(value=65_520.0)
@example(value=-0.0)
@example(value=math.inf)
@example(value=2.0**-25)
@example(value=2.0**-140)
@example(value=3 * 2.0**-26)
def test_the_bits_of_every_number_mean_what_torch_rounds_it_to(format, value):
    stored = format.store(value)
    if math.isnan(value):
        assert stored.kind == "not a number" and math.isnan(stored.value)
        return
    mantissa = int(stored.mantissa, 2) * format.epsilon
    exponent = int(stored.exponent, 2)
    leading = 1 if stored.kind == "normal" else 0
    size = (leading + mantissa) * 2.0 ** (max(exponent, 1) - format.bias)
    meant = math.copysign(math.inf if stored.kind == "infinity" else size, value)
    assert stored.sign == ("1" if math.copysign(1, value) < 0 else "0")
    assert stored.value == meant == torch.tensor(value, dtype=format.dtype).item()
    assert (stored.kind == "zero") == (meant == 0)
    assert (stored.kind == "subnormal") == (0 < size < format.smallest_normal)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("65504", 65_504),
        ("65,504", 65_504),
        ("1e-7", 1e-7),
        ("2^-24", 2**-24),
        ("2**10", 1024),
        ("1/3", 1 / 3),
        (" -0.5 ", -0.5),
        ("inf", math.inf),
        ("1e999", math.inf),
    ],
)
def test_what_is_typed_is_read(text, number):
    assert floats.read_number(text) == number


@pytest.mark.parametrize("text", ["", "one", "1/0", "2^^3", "1/2/3", "10^999", "-8^0.5", "0x10"])
def test_what_is_no_number_is_told_so(text):
    with pytest.raises(ValueError, match="is not a number; try"):
        floats.read_number(text)
