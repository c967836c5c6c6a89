"""Large files from the Hugging Face Hub: resumed, verified, unpacked, and only then used.

The Hub announces the size and the sha256 of every large file. The bytes that arrive are kept under
a hidden `.part` name with that sha256 in it, so an interrupted download continues where it stopped,
even days later, and never on top of another version. Nothing is used before its hash is right.

`huggingface_hub.hf_hub_download` does not do here: since 2.x it starts over after an interruption,
it does not compare the hash of what it received, and its cache keeps a second copy of 4 GB.
"""

import gzip
import hashlib
import re
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2
from filelock import Timeout
from huggingface_hub import get_hf_file_metadata, get_session, hf_hub_url
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import WeakFileLock
from tqdm import tqdm

from workbook import __version__
from workbook.files import atomic_write, make_folder

BLOCK = 2**20  # bytes read, hashed or written at a time
TIMEOUT = 30.0  # seconds without a byte before a connection counts as lost
ATTEMPTS = 6  # in a row without a new byte before we give up
PAUSE = 1.0  # seconds before the second attempt; doubles every time
UNPACKED = 2.8  # times the packed size, at most: English under gzip shrinks some 2.6 times
SLACK = 16 * BLOCK  # bytes more that a small file, which may repeat itself, unpacks to
TRY_LATER = {408, 429, 500, 502, 503, 504}  # statuses that pass


class DownloadError(OSError):
    """A download that failed; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file in a dataset repository of the Hub."""

    repository: str
    name: str  # ends in .gz: unpacked on arrival


@dataclass(frozen=True, kw_only=True)
class Announced:
    """The facts that the Hub announces about a file."""

    url: str  # of this very version
    commit: str
    size: int  # bytes
    sha256: str


def fetch(
    file: HubFile, target: Path, watch: Callable[[bytes], object], endpoint: str | None = None
) -> dict:
    """Download, verify and unpack a file to `target`; return where it came from, for its record.

    `watch` is called with every block of the content, in order. `endpoint` is the Hub's address; by
    default `HF_ENDPOINT` or the public one. Raises DownloadError; what has arrived by then is kept
    for the next call, unless it is wrong.
    """
    if target.is_dir():
        raise DownloadError(f"{target} is a folder where a file is to lie; rename it")
    announced = _announced(file, endpoint)
    make_folder(target.parent)
    partial = target.with_name(f".{target.name}.{announced.sha256[:16]}.part")
    try:
        with WeakFileLock(target.with_name(f".{target.name}.lock"), timeout=0.5):
            _tidy(target, partial)
            _check_disk(file, announced, partial)
            _download(announced, partial)
            _verify(announced, partial)
            if file.name.endswith(".gz"):
                _unpack(announced, partial, target, watch)
            else:
                _read(partial, watch)
                partial.replace(target)
    except Timeout:
        raise DownloadError(
            f"another process is downloading {target.name}; wait for it, then call again"
        ) from None
    return {
        "repository": file.repository,
        "file": file.name,
        "commit": announced.commit,
        "download_bytes": announced.size,
        "download_sha256": announced.sha256,
    }


def _announced(file: HubFile, endpoint: str | None) -> Announced:
    """Size, sha256 and commit of the newest version; asks for no more than the headers."""

    def url(revision: str) -> str:
        kind = {"repo_type": "dataset", "endpoint": endpoint}
        return hf_hub_url(file.repository, file.name, revision=revision, **kind)

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
            f"{url('main')} answers without a commit, a size or a sha256, so nothing from there can"
            " be verified; is it a Hub? Check HF_ENDPOINT, and whether you are behind a login page"
        )
    return Announced(
        url=url(found.commit_hash), commit=found.commit_hash, size=found.size, sha256=found.etag
    )


def _tidy(target: Path, partial: Path) -> None:
    """Remove what killed downloads left behind, except for `partial`, which can be continued.

    Where `partial` is a link it is removed too: the file that it points to is not ours to write to.
    """
    for left in target.parent.glob(f".{target.name}.*"):
        of_use = left == partial and not left.is_symlink()
        if left.suffix == ".tmp" or (left.suffix == ".part" and not of_use):
            left.unlink()


def _check_disk(file: HubFile, announced: Announced, partial: Path) -> None:
    """Raise DownloadError where the disk cannot hold what is still to come."""
    unpacked = round(announced.size * UNPACKED) if file.name.endswith(".gz") else 0
    needed = announced.size - _size(partial) + unpacked
    free = shutil.disk_usage(partial.parent).free
    if free < needed:
        unpacking = f", about {unpacked / 1e9:.2f} GB of it for unpacking" if unpacked else ""
        raise DownloadError(
            f"{file.name} needs {needed / 1e9:.2f} GB more{unpacking}, and {partial.parent} has"
            f" {free / 1e9:.2f} GB free; make room, or set WORKBOOK_DATA to a folder elsewhere"
        )


def _download(announced: Announced, partial: Path) -> None:
    """Bring `partial` to its full size, over as many connections as it takes."""
    if _size(partial) > announced.size:
        partial.unlink()
    failures = 0
    with _bar("download", announced.size) as bar:
        bar.initial = _size(partial)  # counts, but not for the speed
        while (have := _size(partial)) < announced.size:
            bar.n = have
            error = None
            try:
                _receive(announced, partial, bar)
            except (httpx2.HTTPError, OfflineModeIsEnabled) as caught:
                error = caught
                if _status(error) not in TRY_LATER | {None}:
                    raise _failure(error, announced.url) from error
            arrived = _size(partial)
            failures = 0 if arrived > have else failures + 1
            if failures == ATTEMPTS:
                raise _failure(error, announced.url) from error
            if arrived < announced.size:
                time.sleep(PAUSE * 2 ** max(0, failures - 1))


def _receive(announced: Announced, partial: Path, bar: tqdm) -> None:
    """Append to `partial` what it lacks, by one request, as far as the connection lasts."""
    start = _size(partial)
    # The hash is of the plain bytes, so nothing on the way may compress them.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"workbook/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with get_session().stream("GET", announced.url, headers=headers, timeout=TIMEOUT) as response:
        response.raise_for_status()
        if response.status_code != 206:
            start = bar.n = 0  # the server sends the whole file, asked or not
        _check_offer(announced, start, response.headers)
        with open(partial, "ab" if start else "wb") as part:
            for block in response.iter_raw():
                if part.tell() + len(block) > announced.size:
                    raise DownloadError(
                        f"{announced.url} sends more than the {announced.size:,} bytes that were"
                        " announced; stopped. Call again later"
                    )
                part.write(block)
                bar.update(len(block))


def _check_offer(announced: Announced, start: int, headers: httpx2.Headers) -> None:
    """Raise DownloadError where an answer is not about the bytes from `start` to the end."""
    if start:
        offered = headers.get("Content-Range", "nothing")
        right = offered.startswith(f"bytes {start}-") and offered.endswith(f"/{announced.size}")
    else:
        offered = headers.get("Content-Length", str(announced.size))  # may be left out
        right = offered == str(announced.size)
    if not right:
        raise DownloadError(
            f"{announced.url} was asked for bytes {start:,} to {announced.size:,} and offers"
            f" {offered}; nothing was kept of it. Call again later"
        )


def _verify(announced: Announced, partial: Path) -> None:
    """Raise DownloadError, and remove `partial`, where its sha256 is not the announced one."""
    digest = hashlib.sha256()
    _read(partial, digest.update, bar="verify")
    if digest.hexdigest() != announced.sha256:
        partial.unlink()
        raise DownloadError(
            f"{announced.url} arrived with sha256 {digest.hexdigest()}, announced was"
            f" {announced.sha256}; it was removed. Call again; if it happens twice, a proxy or the"
            " copy on the Hub is damaged"
        )


def _read(path: Path, watch: Callable[[bytes], object], bar: str | None = None) -> None:
    """Call `watch` with every block of a file."""
    with open(path, "rb") as file, _bar(bar, _size(path)) as progress:
        while block := file.read(BLOCK):
            watch(block)
            progress.update(len(block))


def _unpack(
    announced: Announced, packed: Path, target: Path, watch: Callable[[bytes], object]
) -> None:
    """Write what `packed` contains to `target`, and remove `packed`.

    Stop at twice the size that `_check_disk` assumes: zeros unpack to a thousand times their packed
    size and could fill the disk.
    """
    most = round(2 * UNPACKED * announced.size) + SLACK
    try:
        with (
            open(packed, "rb") as source,
            gzip.open(source) as text,
            atomic_write(target, "wb") as out,
            _bar("unpack", _size(packed)) as bar,
        ):
            while block := text.read(BLOCK):
                if out.tell() + len(block) > most:
                    raise gzip.BadGzipFile(f"more than {most:,} bytes come out")
                out.write(block)
                watch(block)
                bar.update(source.tell() - bar.n)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        packed.unlink()
        raise DownloadError(
            f"{target.name} cannot be unpacked although it arrived as announced ({error}): the copy"
            " on the Hub is damaged. It was removed; call again later"
        ) from error
    packed.unlink()


def _failure(error: Exception | None, url: str) -> DownloadError:
    """The DownloadError for a network error: what happened and what to do, in one line."""
    host = "/".join(url.split("/")[:3])
    if isinstance(error, OfflineModeIsEnabled):
        return DownloadError(
            "HF_HUB_OFFLINE is set, which forbids downloads; unset it and call again"
        )
    if status := _status(error):
        advice = (
            "that will pass: call again later, and it goes on where it stopped"
            if status in TRY_LATER
            else "the file may have been moved, or HF_ENDPOINT may be wrong"
        )
        return DownloadError(f"{url} answers with HTTP status {status}; {advice}")
    reason = " ".join(str(error or "the connection ends early every time").split())
    return DownloadError(
        f"cannot download from {host} ({reason}); check the network and call again, it goes on"
        " where it stopped. The corpora stories and pydocs need no network"
    )


def _status(error: Exception | None) -> int | None:
    """The HTTP status that an error is about; None where no server has answered."""
    response = getattr(error, "response", None)
    return None if response is None else response.status_code


def _size(path: Path) -> int:
    """The bytes in a file, 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def _bar(title: str | None, total: int) -> tqdm:
    """A progress bar in bytes; none without a title."""
    return tqdm(desc=title, total=total, unit="B", unit_scale=True, disable=title is None)
