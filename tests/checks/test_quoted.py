"""Numbers are read out of a text as people write them, with their units and digits."""

import pytest

from workbook.checks.quoted import number, numbers, quoted_in


@pytest.mark.parametrize(
    ("text", "value", "kind", "digits"),
    [
        ("2,127,057,600", 2_127_057_600, "", 10),
        ("2 127 057 600", 2_127_057_600, "", 10),
        ("2_127_057_600", 2_127_057_600, "", 10),
        ("2.13B parameters", 2.13e9, "count", 3),
        ("1.56 Billion", 1.56e9, "count", 3),
        ("8.51GB", 8.51e9, "bytes", 3),
        ("8.51 gigabytes", 8.51e9, "bytes", 3),
        ("7.92 GiB", 7.92 * 1024**3, "bytes", 3),
        ("8,508,230,400 B", 8_508_230_400, "bytes", 10),
        ("4.51 TFLOPs", 4.51e12, "flops", 3),
        ("4,513 GFLOPs", 4.513e12, "flops", 4),
        ("4.5 trillion FLOPs", 4.5e12, "flops", 2),
        ("4.51 × 10^12 FLOPs", 4.51e12, "flops", 3),
        ("4.51·10¹²", 4.51e12, "", 3),
        ("4.51*10**12", 4.51e12, "", 3),
        (r"$4.51 \times 10^{12}$", 4.51e12, "", 3),
        ("10^12", 1e12, "", 1),
        ("66.9 %", 0.669, "share", 3),
        (r"66.9\%", 0.669, "share", 3),
        ("5,115 days", 5_115 * 86_400, "seconds", 4),
        ("14P", 14, "per parameter", 2),
        ("14 FLOPs per parameter", 14, "per parameter", 2),
        ("x33.2", 33.2, "factor", 3),
        ("33.1 times", 33.1, "factor", 3),
        ("3,590,000 FLOPs", 3_590_000, "flops", 3),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value, kind, digits):
    (found,) = numbers(text)
    assert (found.value, found.kind, found.digits) == (pytest.approx(value), kind, digits)


def test_rates_are_no_quantities():
    assert [each.value for each in numbers("19.5 TFLOP/s, 2 TB/s, 5 days")] == [5 * 86_400]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "expected a finite number, got nan"),
        (-3, "expected a positive number, got -3"),
        (1e61, "expected a number below 1e60"),
    ],
)
def test_what_is_no_amount_is_a_clear_error(value, message):
    with pytest.raises(ValueError, match=message):
        number(value)


def test_numbers_are_found_in_lists_and_dicts_and_nowhere_else():
    assert [each.value for each in quoted_in([3, "4 and 5", {"GB": 6.5}])] == [3, 4, 5, 6.5]
    with pytest.raises(TypeError, match="expected a number or a text, got a object"):
        quoted_in(object())
