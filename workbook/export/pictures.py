"""The pictures of a write-up: looked into before they are shown, numbered, never fetched."""

import warnings
from contextlib import suppress
from io import BytesIO

WIDEST = 2_000  # pixels; more than paper shows at the width of a page
MOST = 40_000_000  # pixels: a larger picture is a trap, or a mistake
FORMATS = ("PNG", "JPEG")


class Album:
    """Pictures by the name of their file, in the order in which they were kept."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def keep(self, data: bytes) -> str | None:
        """The name for a picture, None where the bytes are no whole picture."""
        data = _checked(data)
        if data is None:
            return None
        for name, other in self.files.items():
            if data == other:
                return name
        kind = "png" if data.startswith(b"\x89PNG") else "jpg"
        name = f"figure-{len(self.files) + 1:02}.{kind}"
        self.files[name] = data
        return name

    def size(self, name: str) -> tuple[int, int]:
        """Width and height of a picture in pixels."""
        from PIL import Image

        with Image.open(BytesIO(self.files[name])) as picture:
            return picture.size


def _checked(data: bytes) -> bytes | None:
    """The picture drawn anew, smaller where it is huge; None where it cannot be drawn.

    Only the pixels stay, turned as a camera says. What else a file holds, such as where a photo was
    taken or what follows the picture's end, is not for readers.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings(), Image.open(BytesIO(data), formats=FORMATS) as picture:
            warnings.simplefilter("ignore")  # of metadata that is odd; only the pixels are used
            if picture.width * picture.height > MOST:
                return None
            picture.load()
            kind, drawn = "png" if picture.format == "PNG" else "jpeg", picture
            with suppress(Exception):  # of metadata that cannot be read
                drawn = ImageOps.exif_transpose(picture)
            if drawn.width > WIDEST:
                kind, drawn = "png", drawn.convert("RGBA" if "A" in drawn.getbands() else "RGB")
                drawn.thumbnail((WIDEST, 4 * WIDEST))
            drawn.info = {k: v for k, v in drawn.info.items() if k == "transparency"}
            done = BytesIO()
            drawn.save(done, kind, quality=95, optimize=True)
    except Exception:  # Pillow raises many kinds for what is no picture
        return None
    return done.getvalue()
