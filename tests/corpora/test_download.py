"""What `workbook.corpora.download` does when the Hub keeps its word, and when it does not."""

import errno
import gzip
import hashlib
import shutil
from collections import namedtuple
from random import Random

import huggingface_hub
import pytest
from fake_hub import COMMIT, running_hub

from workbook.corpora import download
from workbook.corpora.download import DownloadError

TEXT = Random(0).randbytes(300_000).hex().encode()  # gzip takes half of it away, as of English
PLAIN, PACKED = "tales.txt", "tales.txt.gz"
GIVEN_UP = 12  # requests: six by `http_get` in a row, and six when the first have brought something


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch, TEXT) as hub:
        yield hub


def fetch(hub, folder, file=PLAIN):
    """Download `file` to folder/tales.txt; where it came from."""
    return download.download_file("someone/tales", file, folder / "tales.txt")


def refused(hub, folder, match, file=PLAIN):
    """Fails the test unless the download is refused, in one line, and nothing can be used of it."""
    with pytest.raises(DownloadError, match=match) as caught:
        fetch(hub, folder, file)
    assert "\n" not in str(caught.value)
    assert not (folder / "tales.txt").exists()


def left_over(folder):
    return sorted(path.suffix for path in folder.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("file", [PLAIN, PACKED])
def test_a_file_arrives_whole_with_its_origin(hub, tmp_path, file):
    hub.content = gzip.compress(TEXT) if file is PACKED else TEXT
    origin = fetch(hub, tmp_path, file)
    assert (tmp_path / "tales.txt").read_bytes() == TEXT
    facts = {"repository": "someone/tales", "file": file, "commit": COMMIT}
    digest = hashlib.sha256(hub.content).hexdigest()
    assert origin == facts | {"download_bytes": len(hub.content), "download_sha256": digest}
    assert left_over(tmp_path) == [".txt"]
    paths = [path for _, path, _ in hub.requests]
    assert paths[0] == f"/datasets/someone/tales/resolve/main/{file}"
    assert paths[1] == f"/datasets/someone/tales/resolve/{COMMIT}/{file}"


def test_a_connection_that_is_cut_is_resumed_at_once(hub, tmp_path):
    hub.faults = [{"until": 100_000}, {"until": 100_000}, {"until": 300_000}, {"status": 503}]
    fetch(hub, tmp_path)
    assert (tmp_path / "tales.txt").read_bytes() == TEXT
    assert hub.ranges() == [None, *["bytes=100000-"] * 2, *["bytes=300000-"] * 2]
    part_of(tmp_path).write_bytes(TEXT)  # if all has arrived, nothing is asked for
    fetch(hub, tmp_path)
    assert len(hub.ranges()) == 5


@pytest.mark.parametrize(("content", "asked"), [(TEXT, "bytes=100000-"), (TEXT.upper(), None)])
def test_the_next_call_resumes_a_download_but_no_other_version(hub, tmp_path, content, asked):
    hub.faults = [{"until": 100_000}] * GIVEN_UP
    refused(hub, tmp_path, "call again later: the download continues where it stopped")
    assert left_over(tmp_path) == [".part"]
    (tmp_path / ".tales.txt.killed.tmp").write_text("of an unpacking that was killed")
    hub.content = content
    hub.faults = []
    fetch(hub, tmp_path)
    assert (tmp_path / "tales.txt").read_bytes() == content
    assert hub.ranges()[-1] == asked
    assert left_over(tmp_path) == [".txt"]


def part_of(folder):
    """The file in which an interrupted download of TEXT lies."""
    return folder / f".tales.txt.{hashlib.sha256(TEXT).hexdigest()[:16]}.part"


REMOVED = "arrived with sha256 .* it was removed"


@pytest.mark.parametrize(
    ("content", "part", "words"),
    [
        (TEXT.replace(b"b", b"d"), b"", REMOVED),
        (TEXT + b"more", b"", "more than the .* announced"),
        (TEXT, b"x" * 1000, REMOVED),
    ],
    ids=["other bytes", "more bytes", "other bytes in the part"],
)
def test_other_bytes_than_were_announced_are_refused_and_removed(
    hub, tmp_path, content, part, words
):
    hub.faults = [{"content": content}]
    part_of(tmp_path).write_bytes(part)
    refused(hub, tmp_path, words)
    assert left_over(tmp_path) == []
    fetch(hub, tmp_path)
    assert (tmp_path / "tales.txt").read_bytes() == TEXT


def test_an_announcement_that_proves_nothing_is_refused(hub, tmp_path):
    lacking = [{header: None} for header in ("X-Repo-Commit", "X-Linked-Size", "X-Linked-Etag")]
    for announced in (*lacking, {"X-Linked-Size": "-5"}, {"X-Linked-Size": "many"}):
        hub.announced = announced
        refused(hub, tmp_path, "without a commit, a size or a sha256")
    assert hub.ranges() == []


def test_an_error_of_the_hub_or_of_its_store_is_one_clear_line(hub, tmp_path):
    for status in (401, 500):
        hub.status = status
        words = f"cannot download http.*{status}.*; check the network and HF_ENDPOINT"
        refused(hub, tmp_path, words)
    hub.status = 302
    for status in (404, 503):
        hub.faults = [{"status": status, "content": b"no text of ours"}]
        refused(hub, tmp_path, f"cannot download http.*{status}")
    assert len(hub.ranges()) == 2


def test_without_a_network_the_message_says_what_to_do(hub, tmp_path, monkeypatch):
    hub.close()
    refused(hub, tmp_path, "check the network.*stories and docstrings need no network")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    refused(hub, tmp_path, "HF_HUB_OFFLINE")


def test_a_full_disk_is_noticed_before_the_download(hub, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    hub.content = gzip.compress(TEXT)
    for file, needed in [(PLAIN, len(hub.content)), (PACKED, 3.8 * len(hub.content))]:
        free = round(0.99 * needed)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: usage(0, 0, free))
        with pytest.raises(OSError, match=r"needs 0\.00 GB.* 0\.00 GB free; make room"):
            fetch(hub, tmp_path, file)
    assert hub.ranges() == []


def test_a_disk_that_fills_up_leaves_nothing_half_unpacked(hub, tmp_path, monkeypatch):
    hub.content = gzip.compress(TEXT)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gzip.GzipFile, "read", full)
    with pytest.raises(OSError, match="No space left"):
        fetch(hub, tmp_path, PACKED)
    assert left_over(tmp_path) == [".part"]


PACK = gzip.compress(TEXT)
UNPACKABLE = {  # what the Hub announces truly, but nobody can unpack; and what is said
    "it grows as no text does": (gzip.compress(bytes(30_000_000)), "it grows to over 2.8 times"),
    "its end is missing": (PACK[:-1000], "Compressed file ended before the end"),
    "it is no archive": (b"<html>log in</html>", "Not a gzipped file"),
    "it is damaged": (PACK[:10] + b"\xff" * 100 + PACK[110:], "invalid block type"),
}


@pytest.mark.parametrize("case", UNPACKABLE)
def test_an_archive_that_cannot_be_unpacked_is_stopped_on_its_way(hub, tmp_path, case):
    hub.content, said = UNPACKABLE[case]
    refused(hub, tmp_path, f"cannot be unpacked: .*{said}.*copy there is damaged, or HF_", PACKED)
    assert left_over(tmp_path) == [".part"]


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_part_that_is_a_link_or_a_folder_is_left_alone_and_named(hub, tmp_path, kind):
    part = part_of(tmp_path)
    other = tmp_path / "other.txt"
    other.write_text("kept")
    part.symlink_to(other) if kind == "link" else part.mkdir()
    refused(hub, tmp_path, r"\.part is no file of ours; remove it, then call again")
    assert other.read_text() == "kept" and (part.is_symlink() or part.is_dir())


@pytest.mark.parametrize("place", ["http://[::1", "http://a b:c", "gopher://x", "\x9a"])
def test_a_redirect_to_no_address_is_one_clear_line(hub, tmp_path, place):
    hub.announced = {"Location": place}
    refused(hub, tmp_path, "cannot download http.*check the network and HF_ENDPOINT")


def test_an_answer_that_is_no_text_is_one_clear_line(hub, tmp_path):
    part_of(tmp_path).write_bytes(TEXT[:1000])
    hub.faults = [{"status": 416, "content": b"\x9a" * 2000}]
    refused(hub, tmp_path, "cannot download http.*416|cannot download http.*decode")
    assert hub.ranges() == ["bytes=1000-"] and part_of(tmp_path).read_bytes() == TEXT[:1000]


def test_a_server_that_never_stops_fills_no_disk(hub, tmp_path):
    hub.faults = [{"content": TEXT * 3}] * GIVEN_UP
    refused(hub, tmp_path, "more than the .* bytes that were announced")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "PATIENCE", 0)
    monkeypatch.setattr(download, "PACE", 1e12)
    refused(hub, tmp_path, "only .* bytes arrived in 0 seconds.*continues where it stopped")
    assert left_over(tmp_path) == [".part"]


def test_a_page_in_place_of_the_file_costs_nothing_of_what_is_here(hub, tmp_path):
    page = {"content": b"<html>Log in</html>", "status": 200}
    hub.faults = [page] * GIVEN_UP
    refused(hub, tmp_path, "Consistency check")
    assert left_over(tmp_path) == [], "it is no beginning of the file"
    part_of(tmp_path).write_bytes(TEXT[:200_000])
    hub.faults = [page | {"range": False}] * GIVEN_UP
    refused(hub, tmp_path, "Consistency check")
    assert part_of(tmp_path).read_bytes() == TEXT[:200_000]
    hub.faults = []
    fetch(hub, tmp_path)
    assert hub.ranges()[-1] == "bytes=200000-" and left_over(tmp_path) == [".txt"]


def test_a_server_that_ignores_ranges_sends_it_from_the_beginning(hub, tmp_path):
    hub.faults = [{"until": 100_000}] * GIVEN_UP
    refused(hub, tmp_path, "call again later")
    hub.faults = [{"range": False}]
    fetch(hub, tmp_path)
    assert (tmp_path / "tales.txt").read_bytes() == TEXT


def test_a_server_that_does_not_have_what_follows_is_asked_for_all(hub, tmp_path):
    hub.faults = [{"until": 100_000}] * GIVEN_UP
    refused(hub, tmp_path, "call again later")
    hub.faults = [{"status": 416}, {"status": 416}]
    refused(hub, tmp_path, "416")
    assert part_of(tmp_path).read_bytes() == TEXT[:100_000]
    hub.faults = [{"status": 416}]
    fetch(hub, tmp_path)
    assert hub.ranges()[-2:] == ["bytes=100000-", None]


def test_a_commit_that_is_none_is_refused(hub, tmp_path):
    hub.announced = {"X-Repo-Commit": "../../../x?y#z"}
    refused(hub, tmp_path, "answered without a commit")
