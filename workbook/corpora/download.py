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
import hashlib
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx2
from filelock import Timeout
from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import WeakFileLock
from tqdm import tqdm

from workbook.files import atomic_write, make_folder

BLOCK = 2**20  # bytes read, hashed or written at a time
TIMEOUT = 30.0  # seconds to wait for the announcement
UNPACKED = 2.8  # times the packed size, at most: gzip shrinks English by a factor of about 2.6
TRY_LATER = {408, 429, 500, 502, 503, 504}  # temporary statuses


class DownloadError(OSError):
    """A download that failed; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Announced:
    """The facts that the Hub announces about a file."""

    url: str  # of this very version
    commit: str
    size: int  # bytes
    sha256: str


def fetch(repository: str, name: str, target: Path, endpoint: str | None = None) -> dict:
    """Download, verify and unpack a file to `target`; return where it came from, for its record.

    `repository` is a dataset on the Hub, `name` its file, which is unpacked if it ends in ".gz".
    `endpoint` is the Hub's address; by default `HF_ENDPOINT` or the public one. Raises OSError if
    the disk is too small, else DownloadError; what has arrived by then is kept for the next call,
    unless it is wrong.
    """
    if target.is_dir():
        raise DownloadError(f"{target} is a folder where a file is to be written; rename it")
    announced = _announced(repository, name, endpoint)
    make_folder(target.parent)
    partial = target.with_name(f".{target.name}.{announced.sha256[:16]}.part")
    try:
        with WeakFileLock(target.with_name(f".{target.name}.lock"), timeout=0.5):
            for left in target.parent.glob(f".{target.name}.*"):  # of downloads that were killed
                if left.suffix in (".part", ".tmp") and left != partial:
                    left.unlink()
            packed = name.endswith(".gz")
            unpacked = round(announced.size * UNPACKED) if packed else 0
            check_disk(target, announced.size - _size(partial) + unpacked)
            _download(announced, partial)
            _verify(announced, partial)
            if packed:
                _unpack(partial, target)
            else:
                partial.replace(target)
    except Timeout:
        raise DownloadError(
            f"another process is downloading {target.name}; wait for it, then call again"
        ) from None
    return {
        "repository": repository,
        "file": name,
        "commit": announced.commit,
        "download_bytes": announced.size,
        "download_sha256": announced.sha256,
    }


def _announced(repository: str, name: str, endpoint: str | None) -> Announced:
    """The size, sha256 and commit of the newest version; only the headers are requested."""

    def url(revision: str) -> str:
        kind = {"repo_type": "dataset", "endpoint": endpoint}
        return hf_hub_url(repository, name, revision=revision, **kind)

    try:
        # No token: the files are public, and a stale one would be refused.
        found = get_hf_file_metadata(url("main"), token=False, timeout=TIMEOUT, endpoint=endpoint)
    except (httpx2.HTTPError, httpx2.InvalidURL, OfflineModeIsEnabled) as error:
        raise _failure(error, url("main")) from error
    if (
        not found.commit_hash
        or (found.size or 0) < 1
        or not re.fullmatch("[0-9a-f]{64}", found.etag or "")
    ):
        raise DownloadError(
            f"{url('main')} answered without a commit, a size or a sha256, so nothing from"
            " there can be verified; is it a Hub? Check HF_ENDPOINT, and whether you are behind a"
            " login page"
        )
    return Announced(
        url=url(found.commit_hash), commit=found.commit_hash, size=found.size, sha256=found.etag
    )


def check_disk(target: Path, size: int) -> None:
    """Raise OSError if the disk has no room for `size` bytes at `target`."""
    folder = next(folder for folder in target.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{target.name} needs {size / 1e9:,.2f} GB, and {folder} has {free / 1e9:,.2f} GB free;"
            " make room, or set WORKBOOK_DATA to a folder elsewhere"
        )


def _download(announced: Announced, partial: Path) -> None:
    """Bring `partial` to its full size, over as many connections as it takes.

    `http_get` retries by itself after some errors; after the others we do, as long as bytes arrive.
    """
    while (have := _size(partial)) < announced.size:
        try:
            with partial.open("ab") as file:
                http_get(
                    announced.url,
                    file,
                    resume_size=have,
                    expected_size=announced.size,
                    # The hash is of the plain bytes, so nothing on the way may compress them.
                    headers={"Accept-Encoding": "identity"},
                )
        except (httpx2.HTTPError, OSError) as error:
            if getattr(error, "errno", None):  # of this machine, such as a full disk
                raise
            if _size(partial) <= have:
                raise _failure(error, announced.url) from error


def _verify(announced: Announced, partial: Path) -> None:
    """Raise DownloadError and remove `partial` if its sha256 is not the announced one."""
    digest = hashlib.sha256()
    with _reading(partial, "verify") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != announced.sha256:
        partial.unlink()
        raise DownloadError(
            f"{announced.url} arrived with sha256 {digest.hexdigest()}, but the Hub announced"
            f" {announced.sha256}; it was removed. Call again; if it happens twice, a proxy changes"
            " it or the copy on the Hub is damaged"
        )


def _unpack(packed: Path, target: Path) -> None:
    """Write what `packed` contains to `target`, and remove `packed`."""
    try:
        with (
            _reading(packed, "unpack") as source,
            gzip.open(source) as text,
            atomic_write(target, "wb") as out,
        ):
            shutil.copyfileobj(text, out, BLOCK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        packed.unlink()
        raise DownloadError(
            f"{target.name} cannot be unpacked although it arrived as announced ({error}): the copy"
            " on the Hub is damaged. It was removed; call again later"
        ) from error
    packed.unlink()


@contextmanager
def _reading(path: Path, title: str) -> Iterator[IO[bytes]]:
    """A file open for reading, with a progress bar."""
    bar = {"desc": f"{title} {path.stem}", "total": _size(path)}
    with path.open("rb") as file, tqdm.wrapattr(file, "read", **bar) as reader:
        yield reader


def _failure(error: Exception, url: str) -> DownloadError:
    """The DownloadError for a network error: what happened and what to do, in one line."""
    host = "/".join(url.split("/")[:3])
    if isinstance(error, OfflineModeIsEnabled):
        return DownloadError(
            "HF_HUB_OFFLINE is set, which forbids downloads; unset it and call again"
        )
    if (response := getattr(error, "response", None)) is not None:
        advice = (
            "this is temporary: call again later, and it continues where it stopped"
            if response.status_code in TRY_LATER
            else "the file may have been moved, or HF_ENDPOINT may be wrong"
        )
        return DownloadError(f"{url} answered with HTTP status {response.status_code}; {advice}")
    reason = " ".join(str(error).split())
    if type(error) is OSError:  # what `http_get` raises if bytes are missing
        reason = "the connection ends early every time"
    return DownloadError(
        f"cannot download from {host} ({reason}); check the network and call again: the download"
        " continues where it stopped. The corpora stories and docstrings need no network"
    )


def _size(path: Path) -> int:
    """The number of bytes in a file, 0 if there is none."""
    return path.stat().st_size if path.exists() else 0
