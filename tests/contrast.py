"""How far two colours are apart, as WCAG 2 reckons it: 4.5 and more is easy to read."""

from collections.abc import Sequence


def contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """The contrast of two colours, each given as red, green and blue from 0 to 255."""
    dark, bright = sorted([luminance(one), luminance(other)])
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: Sequence[int]) -> float:
    """The relative luminance of a colour: 0 for black, 1 for white."""
    parts = [part / 255 for part in colour]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
