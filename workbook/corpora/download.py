"""Large files from the Hugging Face Hub: resumed, verified, unpacked, and only then used.

The Hub announces the size and the sha256 of every large file. The bytes that arrive are kept in a
hidden `.part` file with that sha256 in its name, so an interrupted download continues where it
stopped, even days later, and never on top of another version. Nothing is used before its hash is
verified.

`huggingface_hub.hf_hub_download` will not do: since 2.x it starts over after an interruption, it
does not verify the hash of what it received, and its cache keeps a second copy of 4 GB. The
function that it calls, `http_get`, can continue where a file ends.
"""

import gzip
import os
import re
import time
import zlib
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import httpx2
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.file_download import http_get

from workbook.files import atomic_write, expect_room, file_sha256, say

TIMEOUT = 30.0  # seconds to wait for the announcement
UNPACKED = 2.8  # times the packed size, at most: gzip shrinks English by a factor of about 2.6
PATIENCE = 60.0  # seconds in which at least `PACE` bytes have to arrive for each of them
PACE = 10_000  # else a server that sends a byte now and then would keep us for years
# None: `http_get` passes on what arrives. What it held back would be lost with a connection that
# breaks, and would hide how slowly bytes arrive.
constants.DOWNLOAD_CHUNK_SIZE = None  # type: ignore[assignment]
# What a network or a server can do wrong: addresses that are none, answers that are no text, too.
FAULTS = (httpx2.HTTPError, httpx2.InvalidURL, OfflineModeIsEnabled, ValueError)


class DownloadError(OSError):
    """A download that failed; the message says why, and what to do."""


class Announced(NamedTuple):
    """The facts that the Hub announces about a file."""

    url: str  # of this very version
    commit: str
    size: int  # bytes
    sha256: str


def download_file(repository: str, name: str, target: Path) -> dict[str, str | int]:
    """Download, verify and unpack a file to `target`; return where it came from, for its record.

    `repository` is a dataset on the Hub, whose address `HF_ENDPOINT` may change; `name` is its
    file, which is unpacked if it ends in ".gz". The caller has made and locked the folder. Raises
    OSError if the disk is too small, else DownloadError; what has arrived by then is kept for the
    next call, unless it is wrong.
    """
    announced = _announced(repository, name)
    part = target.with_name(f".{target.name}.{announced.sha256[:16]}.part")
    for left in target.parent.glob(f".{target.name}.*"):  # of another version, or killed
        if left.is_symlink() or not left.is_file():  # we would write where somebody else's file is
            raise DownloadError(f"{left} is no file of ours; remove it, then call again")
        if left != part:
            left.unlink()
    part.touch()
    packed = name.endswith(".gz")
    unpacked = round(announced.size * UNPACKED) if packed else 0
    expect_room(target, announced.size - part.stat().st_size + unpacked)
    _download(announced, part)
    todo = "verifying and unpacking" if packed else "verifying"
    say(f"{target.name}: all bytes have arrived; {todo} them")
    _verify(announced, part)
    if packed:
        try:
            with gzip.open(part) as text, atomic_write(target, "wb") as out:
                while block := text.read(2**20):
                    out.write(block)
                    if out.tell() > unpacked:  # so it never fills more of the disk than was free
                        raise gzip.BadGzipFile(f"it grows to over {UNPACKED} times its size")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            why = f"{error}; the copy there is damaged, or HF_ENDPOINT is no Hub"
            raise DownloadError(f"{announced.url} cannot be unpacked: {why}") from error
        part.unlink()
    else:
        part.replace(target)
    origin = {"repository": repository, "file": name, "commit": announced.commit}
    return {**origin, "download_bytes": announced.size, "download_sha256": announced.sha256}


def _announced(repository: str, name: str) -> Announced:
    """The size, sha256 and commit of the newest version; only the headers are requested."""
    url_of = partial(hf_hub_url, repository, name, repo_type="dataset")
    url = url_of(revision="main")
    try:
        # No token: the files are public, and a stale one would be refused.
        facts = get_hf_file_metadata(url, token=False, timeout=TIMEOUT)
    except FAULTS as error:
        raise _failure(error, url) from error
    commit = facts.commit_hash
    size = facts.size or 0
    sha256 = facts.etag or ""
    is_commit = re.fullmatch("[0-9a-f]{40}", commit or "")
    if commit is None or not is_commit or size < 1 or not re.fullmatch("[0-9a-f]{64}", sha256):
        raise DownloadError(
            f"{url} answered without a commit, a size or a sha256, so nothing from there can be"
            " verified; is it a Hub? Check HF_ENDPOINT, and whether you are behind a login page"
        )
    return Announced(url=url_of(revision=commit), commit=commit, size=size, sha256=sha256)


class _Pace:
    """How fast bytes arrive, over all connections of a download."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.bytes = 0  # that have arrived since then

    def expect(self, arrived: int) -> None:
        """Raise TimeoutError if too few bytes have arrived in a while."""
        self.bytes += arrived
        seconds = time.monotonic() - self.since
        if seconds >= PATIENCE:
            if self.bytes < seconds * PACE:
                raise TimeoutError(f"only {self.bytes:,} bytes arrived in {seconds:,.0f} seconds")
            self.since += seconds
            self.bytes = 0


class _Arriving:
    """Where `http_get` writes: behind the bytes that are here, or, if all come anew, beside them.

    So a login page in place of the rest costs nothing of what is here, and a server that never
    stops fills no disk: it may write what was announced, and no more.
    """

    def __init__(self, part: Path, size: int, pace: _Pace) -> None:
        self.pace = pace
        self.part = part
        self.size = size
        self.beside = part.with_suffix(".anew")
        self.file = part.open("ab")

    def tell(self) -> int:
        return self.file.tell()

    def seek(self, place: int) -> int:
        """Nothing: `truncate` follows, as the server answers with the file from its beginning."""
        return place

    def truncate(self) -> None:
        self.file.close()
        self.file = self.beside.open("wb")

    def write(self, block: bytes) -> int:
        if self.file.tell() + len(block) > self.size:
            raise OSError(f"more than the {self.size:,} bytes that were announced arrive")
        written = self.file.write(block)
        self.pace.expect(written)
        return written

    def settle(self, have: int, is_whole_answer: bool) -> None:
        """Keep the longer of the two; nothing of an answer that ended and was not the file."""
        if self.file.closed:
            return
        self.file.close()
        came_anew = self.beside.exists()
        if is_whole_answer and (came_anew or not have):
            self.beside.unlink(missing_ok=True)
            os.truncate(self.part, have)
        elif came_anew and self.beside.stat().st_size > have:
            self.beside.replace(self.part)
        else:
            self.beside.unlink(missing_ok=True)


def _download(announced: Announced, part: Path) -> None:
    """Bring `part` to its full size, over as many connections as it takes.

    `http_get` retries by itself after some errors; after the others we do, as long as bytes arrive.
    """
    # The hash is of the plain bytes, so nothing on the way may compress them.
    headers = {"Accept-Encoding": "identity"}
    size = announced.size
    anew = False
    pace = _Pace()
    while (have := part.stat().st_size) < size:
        arriving = _Arriving(part, size, pace)
        if anew:
            arriving.truncate()
        whole = False
        try:
            file = cast(BinaryIO, arriving)
            start = 0 if anew else have
            http_get(announced.url, file, resume_size=start, expected_size=size, headers=headers)
        except (*FAULTS, OSError, RecursionError) as error:  # it calls itself at each new attempt
            if getattr(error, "errno", None):  # of this machine, such as a full disk
                raise
            # The answer ended as it should, or never would: it is something else than the file.
            whole = "Consistency check" in str(error) or "were announced" in str(error)
            arriving.settle(have, whole)
            status = getattr(getattr(error, "response", None), "status_code", 0)
            if have and not anew and status == 416:
                anew = True  # it does not have what follows: all from the beginning, beside these
                continue
            anew = False
            if part.stat().st_size <= have or isinstance(error, TimeoutError):
                if not part.stat().st_size:
                    part.unlink()
                raise _failure(error, announced.url) from error
        finally:
            arriving.settle(have, whole)


def _verify(announced: Announced, part: Path) -> None:
    """Raise DownloadError and remove `part` if its sha256 is not the announced one."""
    sha256 = file_sha256(part)
    if sha256 != announced.sha256:
        part.unlink()
        raise DownloadError(
            f"{announced.url} arrived with sha256 {sha256}, but the Hub announced"
            f" {announced.sha256}; it was removed. Call again; if it happens twice, a proxy changes"
            " it or the copy on the Hub is damaged"
        )


def _failure(error: Exception, url: str) -> DownloadError:
    """The DownloadError for an error of the network or the Hub, in one line."""
    return DownloadError(
        f"cannot download {url} ({' '.join(str(error).split())}); check the network and"
        " HF_ENDPOINT, and call again later: the download continues where it stopped. The corpora"
        " stories and docstrings need no network"
    )
