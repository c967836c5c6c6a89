"""The live views of notebook 01."""

from matplotlib.axes import Axes

from workbook.tokenization.utf8 import template_bits
from workbook.views import plots
from workbook.views.live import Live, escape, number, text_field, well_formed
from workbook.views.visible import drawable, name, visible

MOST_SHOWN = 64  # characters in the live table
MOST_DRAWN = 8  # and in the picture

ENCODINGS = {"UTF-8": "utf-8", "UTF-16": "utf-16-le", "UTF-32": "utf-32-le"}


def utf8_explorer(text: str = "héllo") -> Live:
    """A field to type in, and each character's code point, bytes and bits in UTF-8 below it."""
    return Live({"text": text_field("Text", text)}, _html, _picture, _words)


def _sizes(text: str) -> dict[str, int]:
    """How many bytes the text has in each encoding."""
    return {title: len(text.encode(codec)) for title, codec in ENCODINGS.items()}


def _roles(data: bytes) -> list[str]:
    """What each byte of one character is, in a word or two."""
    if len(data) == 1:
        return ["single"]
    return [f"first of {len(data)}"] + ["continues"] * (len(data) - 1)


def _html(text: str) -> str:
    text = well_formed(text)
    sizes = ", ".join(f"<b>{size:,}</b> in {title}" for title, size in _sizes(text).items())
    rows = "".join(map(_row, text[:MOST_SHOWN]))
    hidden = len(text) - MOST_SHOWN
    more = f"<p>The first {MOST_SHOWN} characters are shown, {hidden:,} are not.</p>"
    return f"""
<p><b>{number(len(text), "code point")}</b>. Bytes: {sizes}.</p>
<p><span class="bits"><span class="strong">110</span></span> bold on blue: the template of a byte.
<span class="bits"><span class="plain">00011</span></span> thin: the code point's own bits.</p>
<table aria-label="The characters of the text, their code points and their bytes in UTF-8">
<thead><tr><th scope="col">character</th><th scope="col">code point and name</th>
<th scope="col">bytes in UTF-8: hexadecimal, bits, role</th></tr></thead>
<tbody>{rows}</tbody></table>{more if hidden > 0 else ""}"""


def _row(character: str) -> str:
    """One character as a row of the table."""
    data = character.encode()
    cells = "".join(map(_byte, data, _roles(data)))
    return (
        f'<tr><td class="glyph">{escape(visible(character))}</td>'
        f"<td>U+{ord(character):04X}<small>{escape(name(character))}</small></td>"
        f'<td><div class="tokens">{cells}</div></td></tr>'
    )


def _byte(byte: int, role: str) -> str:
    """One byte: in hexadecimal, bit by bit, and what it is for."""
    bits, fixed = f"{byte:08b}", template_bits(byte)
    template, own = bits[:fixed], bits[fixed:]
    return (
        f'<div><code>{byte:02X}</code> <span class="bits"><span class="strong">{template}</span>'
        f'<span class="plain">{own}</span></span><small>{role}</small></div>'
    )


def _picture(text: str) -> Axes:
    rows = {}
    for place, character in enumerate(well_formed(text)[:MOST_DRAWN], start=1):
        glyph, code = drawable(visible(character)), f"U+{ord(character):04X}"
        label = f"{glyph}  {code}" if len(glyph) < 3 else code  # escaped, it would say that twice
        rows[f"{place}.  {label}"] = character.encode()
    ax = plots.bit_layout(rows or {"no text": b""})
    ax.set_xlabel("dark: the template of a byte; light: the code point's own bits")
    return ax


def _words(text: str) -> str:
    text = well_formed(text)
    told = "; ".join(
        f"{visible(character)} is U+{ord(character):04X}, "
        f"bytes {character.encode().hex(' ').upper()}"
        for character in text[:MOST_DRAWN]
    )
    hidden = len(text) - MOST_DRAWN
    more = f"; and {hidden:,} more" if hidden > 0 else ""
    sizes = ", ".join(f"{size:,} in {title}" for title, size in _sizes(text).items())
    return (
        f"UTF-8 explorer, live when the cell is run. {text!r}: {number(len(text), 'code point')}; "
        f"bytes: {sizes}.{' ' + told if told else ''}{more}"
    )
