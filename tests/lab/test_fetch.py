"""Downloads end with the whole data set in place, or with nothing half-made and one sentence that says what to do."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import logging
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankwood.errors import DataError
from rankwood.lab.datasets import download as download_module
from rankwood.lab.datasets import unpack as unpack_module
from rankwood.lab.datasets.catalogue import Entry, find_entry
from rankwood.lab.datasets.fetch import NAME as RECEIPT
from rankwood.lab.datasets.fetch import WORK_FOLDER, fetch, read_receipt
from servers.archives import tarred, zipped
from servers.local import LocalServer, Page

# Random numbers do not pack, so the archive is large enough to be cut in several places.
NOISE = b"".join(hashlib.sha256(str(i).encode()).hexdigest().encode() for i in range(20_000))
FILES = {
    "Fold1/train.txt": b"2 qid:1 1:0.5\n0 qid:1 1:0.25\n1 qid:2 1:0.125\n# " + NOISE,
    "Fold1/vali.txt": b"1 qid:3 1:0.5\n",
    "Fold1/test.txt": b"0 qid:4 1:0.5\n\n1 qid:4 1:0.75\n",
}
ROWS, QUERIES = 6, 4
ARCHIVE = zipped(FILES)
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
OTHER_FILES = {"extra.txt": NOISE[::-1]} | FILES  # another archive from its first bytes on
OTHER = zipped(OTHER_FILES)

ENTRY = Entry(
    name="Toy",
    title="a toy",
    rows=ROWS,
    queries=QUERIES,
    features=1,
    labels=(0, 2),
    terms="Free.",
    home="https://example.invalid/",
    archive_name="toy.zip",
    instructions="open https://example.invalid/ and press Download",
    archive_bytes=len(ARCHIVE),
    sha256=SHA256,
)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as server:
        server.pages["/toy.zip"] = Page(ARCHIVE)
        yield server


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_module, "BACKOFF", (0.0, 0.0))
    monkeypatch.setattr(download_module, "CHUNK", 64 * 1024)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def toy(server: LocalServer, path: str = "/toy.zip", **changes: object) -> Entry:
    return dataclasses.replace(ENTRY, **({"urls": (server.url(path),)} | changes))  # type: ignore[arg-type]


def assert_whole(folder: Path, files: dict[str, bytes] = FILES) -> None:
    assert {name: (folder / name).read_bytes() for name in files} == files
    receipt = read_receipt(folder)
    assert receipt is not None
    assert receipt.intact(folder)


def assert_nothing_half_made(root: Path, *, kept: int = 0) -> None:
    """Nothing beside the working folder; in it nothing but `kept` bytes to resume and the note on them."""
    assert {path.name for path in root.iterdir()} <= ({WORK_FOLDER} if kept else set())
    files = {path.name: path for path in (root / WORK_FOLDER).rglob("*") if path.is_file()}
    assert set(files) == ({"archive.part", "archive.part.json"} if kept else set())
    if kept:
        assert files["archive.part"].stat().st_size == kept
        assert files["archive.part"].read_bytes() == ARCHIVE[:kept]


def parts(root: Path) -> list[Path]:
    return list((root / WORK_FOLDER).rglob("archive.part"))


# --- when all goes well -------------------------------------------------------------------------------------------


def test_fetch_downloads_verifies_and_unpacks(server: LocalServer, tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    said: list[str] = []
    root = tmp_path / "new" / "folder"
    folder = fetch(toy(server), root, progress=lambda done, total: steps.append((done, total)), notify=said.append)
    assert folder == root / "Toy"
    assert_whole(folder)
    assert [path.name for path in root.iterdir()] == ["Toy"]  # neither archive nor working folder is left
    assert steps[0] == (0, len(ARCHIVE))
    assert steps[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert any("terms of Toy: Free." in sentence for sentence in said)
    receipt = read_receipt(folder)
    assert receipt is not None
    assert (receipt.sha256, receipt.verified_by, receipt.url) == (SHA256, "sha256", server.url("/toy.zip"))


def test_nothing_is_printed(server: LocalServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import pooch

    heard: list[logging.LogRecord] = []
    listener = logging.Handler()
    listener.emit = heard.append  # type: ignore[method-assign]
    pooch.get_logger().addHandler(listener)
    fetch(toy(server), tmp_path)
    pooch.get_logger().removeHandler(listener)
    assert heard == []
    assert capfd.readouterr() == ("", "")


def test_what_is_there_is_not_fetched_again(server: LocalServer, tmp_path: Path) -> None:
    entry = toy(server)
    fetch(entry, tmp_path)
    assert fetch(entry, tmp_path) == tmp_path / "Toy"
    assert fetch(entry, tmp_path, sha256=SHA256.upper()) == tmp_path / "Toy"
    assert len(server.requests) == 1
    assert not (tmp_path / WORK_FOLDER).exists()


@pytest.mark.parametrize("damage", ["missing", "shorter", "receipt"])
def test_a_broken_folder_is_fetched_again(server: LocalServer, tmp_path: Path, damage: str) -> None:
    folder = fetch(toy(server), tmp_path)
    (folder / "models").mkdir()
    (folder / "models" / "mine.txt").write_text("my own work")
    if damage == "missing":
        (folder / "Fold1/test.txt").unlink()
    elif damage == "shorter":
        (folder / "Fold1/test.txt").write_bytes(b"0 qid:4 1:0.5\n")
    else:  # nobody knows then whose folder that is: it is recognised by its contents
        (folder / RECEIPT).write_text('{"name": "Toy"')
    fetch(toy(server), tmp_path)
    assert_whole(folder)
    assert (folder / "models" / "mine.txt").read_text() == "my own work"
    assert [path.name for path in tmp_path.iterdir()] == ["Toy"]


def test_keep_archive(server: LocalServer, tmp_path: Path) -> None:
    fetch(toy(server), tmp_path, keep_archive=True)
    assert (tmp_path / "toy.zip").read_bytes() == ARCHIVE
    assert_whole(tmp_path / "Toy")


def test_tar_gz_labelled_as_an_encoding_is_stored_as_it_is(server: LocalServer, tmp_path: Path) -> None:
    packed = tarred(FILES)
    server.pages["/toy.tar.gz"] = Page(packed, headers={"Content-Encoding": "gzip"})
    entry = toy(server, "/toy.tar.gz", archive_name="toy.tar.gz", archive_bytes=len(packed))
    assert_whole(fetch(entry, tmp_path, sha256=hashlib.sha256(packed).hexdigest()))
    assert server.requests[0]["Accept-Encoding"] == "identity"


def test_without_content_length(server: LocalServer, tmp_path: Path) -> None:
    server.pages["/toy.zip"].sends_length = False
    steps: list[tuple[int, int | None]] = []
    assert_whole(fetch(toy(server), tmp_path, progress=lambda done, total: steps.append((done, total))))
    assert steps[-1] == (len(ARCHIVE), None)


def test_url_of_ones_own_must_have_the_published_checksum(server: LocalServer, tmp_path: Path) -> None:
    entry = toy(server, "/gone.zip")
    assert_whole(fetch(entry, tmp_path, url=server.url("/toy.zip")))


def test_second_address_when_the_first_is_gone(server: LocalServer, tmp_path: Path) -> None:
    entry = toy(server, urls=(server.url("/gone.zip"), server.url("/toy.zip")))
    assert_whole(fetch(entry, tmp_path))


# --- interrupted downloads ----------------------------------------------------------------------------------------


def test_cut_connections_are_resumed(server: LocalServer, tmp_path: Path) -> None:
    server.pages["/toy.zip"].drop_after = [100_000, 200_000, 50_000]
    assert_whole(fetch(toy(server), tmp_path))
    assert [request.get("Range") for request in server.requests] == [
        None,
        "bytes=100000-",
        "bytes=300000-",
        "bytes=350000-",
    ]
    assert server.requests[1]["If-Range"] == '"v1"'


def test_another_run_resumes(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.drop_after = [100_000, 0, 0, 0]
    with pytest.raises(DataError, match=r"Toy could not be downloaded: .*run the same command again to resume after"):
        fetch(toy(server), tmp_path)
    assert_nothing_half_made(tmp_path, kept=100_000)
    page.drop_after = []
    steps: list[int] = []
    assert_whole(fetch(toy(server), tmp_path, progress=lambda done, total: steps.append(done)))
    assert steps[0] == 100_000
    assert server.requests[-1]["Range"] == "bytes=100000-"
    assert not (tmp_path / WORK_FOLDER).exists()


def test_last_modified_will_do_without_etag(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.etag, page.last_modified = 'W/"weak"', "Wed, 21 Oct 2015 07:28:00 GMT"
    page.drop_after = [100_000]
    assert_whole(fetch(toy(server), tmp_path))
    assert server.requests[1]["If-Range"] == "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("checked", [True, False])
def test_bytes_of_no_known_version_are_joined_only_when_a_checksum_will_tell(
    server: LocalServer, tmp_path: Path, checked: bool
) -> None:
    page = server.pages["/toy.zip"]
    page.etag, page.drop_after = None, [100_000]
    entry = toy(server) if checked else toy(server, sha256=None)
    assert_whole(fetch(entry, tmp_path, notify=lambda sentence: None))
    assert server.requests[1].get("Range") == ("bytes=100000-" if checked else None)


def test_server_without_ranges_starts_again(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.ranges, page.drop_after = False, [100_000, 200_000]
    assert_whole(fetch(toy(server), tmp_path))
    assert all("Range" not in request for request in server.requests)


def test_server_without_ranges_that_always_fails_leaves_nothing(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.ranges, page.drop_after = False, [100_000] * 10
    with pytest.raises(DataError, match=r"press Download, put toy\.zip into .* and run the same command again"):
        fetch(toy(server), tmp_path)
    assert_nothing_half_made(tmp_path)


def test_server_that_forgets_to_say_it_has_ranges(server: LocalServer, tmp_path: Path) -> None:
    """A server may answer 200 to a Range request: the whole file again, from its start."""
    page = server.pages["/toy.zip"]
    page.drop_after = [100_000, 0, 0, 0]
    with pytest.raises(DataError):
        fetch(toy(server), tmp_path)
    page.ranges, page.drop_after = False, []
    assert_whole(fetch(toy(server), tmp_path))


@pytest.mark.parametrize("respects_if_range", [True, False])
def test_a_file_that_changed_is_not_glued_together(
    server: LocalServer, tmp_path: Path, respects_if_range: bool
) -> None:
    page = server.pages["/toy.zip"]
    page.drop_after = [100_000, 0, 0, 0]
    entry = toy(server, sha256=None, archive_bytes=None)
    with pytest.raises(DataError, match="to resume"):
        fetch(entry, tmp_path)
    server.pages["/toy.zip"] = Page(OTHER, etag='"v2"', respects_if_range=respects_if_range)
    folder = fetch(entry, tmp_path, notify=lambda sentence: None)
    assert_whole(folder, OTHER_FILES)


@pytest.mark.parametrize("respects_if_range", [True, False])
def test_a_file_that_changes_all_the_time_is_given_up(
    server: LocalServer, tmp_path: Path, respects_if_range: bool
) -> None:
    page = server.pages["/toy.zip"]
    page.changes, page.respects_if_range, page.drop_after = True, respects_if_range, [100_000] * 100
    with pytest.raises(DataError, match=r"Toy could not be downloaded"):
        fetch(toy(server), tmp_path)
    assert len(server.requests) < 10


def test_a_part_that_was_whole_already(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.drop_after = [len(ARCHIVE) - 1, 0, 0, 0]
    with pytest.raises(DataError):
        fetch(toy(server), tmp_path)
    [part] = parts(tmp_path)
    part.write_bytes(ARCHIVE)
    server.requests.clear()
    assert_whole(fetch(toy(server), tmp_path))
    assert [request["Range"] for request in server.requests] == [f"bytes={len(ARCHIVE)}-"]


def test_a_part_longer_than_the_file_starts_again(server: LocalServer, tmp_path: Path) -> None:
    page = server.pages["/toy.zip"]
    page.drop_after = [len(ARCHIVE) - 1, 0, 0, 0]
    with pytest.raises(DataError):
        fetch(toy(server), tmp_path)
    [part] = parts(tmp_path)
    part.write_bytes(ARCHIVE + b"more")
    assert_whole(fetch(toy(server), tmp_path))


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"url": 1}'])
def test_a_note_that_makes_no_sense_starts_again(server: LocalServer, tmp_path: Path, note: str) -> None:
    page = server.pages["/toy.zip"]
    page.drop_after = [100_000, 0, 0, 0]
    with pytest.raises(DataError):
        fetch(toy(server), tmp_path)
    [part] = parts(tmp_path)
    part.with_name("archive.part.json").write_text(note)
    assert_whole(fetch(toy(server), tmp_path))


def test_interrupt_leaves_what_can_be_resumed(server: LocalServer, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done > 200_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(toy(server), tmp_path, progress=interrupt)
    [part] = parts(tmp_path)
    kept = part.stat().st_size
    assert kept > 200_000
    assert_nothing_half_made(tmp_path, kept=kept)
    assert_whole(fetch(toy(server), tmp_path))
    assert server.requests[-1]["Range"] == f"bytes={kept}-"


def test_interrupt_while_unpacking_keeps_the_archive_only(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(file: object, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(unpack_module, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(toy(server), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [WORK_FOLDER]
    assert [path.name for path in (tmp_path / WORK_FOLDER).rglob("*") if path.is_file()] == ["toy.zip"]
    assert_whole(fetch(toy(server), tmp_path))
    assert len(server.requests) == 1  # the archive was whole: only unpacked again


def test_killed_process_can_be_resumed(server: LocalServer, tmp_path: Path) -> None:
    """Not even a kill leaves a lock behind, or anything half-made in place."""
    script = f"""
        import dataclasses, os, signal
        from rankwood.lab.datasets import download
        from rankwood.lab.datasets.catalogue import Entry
        from rankwood.lab.datasets.fetch import fetch
        download.CHUNK = 65536
        def progress(done, total):
            if done > 200_000:
                os.kill(os.getpid(), signal.SIGKILL)
        fetch(Entry(**{dataclasses.asdict(toy(server))!r}), {str(tmp_path)!r}, progress=progress)
    """
    if sys.platform == "win32":
        pytest.skip("no SIGKILL on Windows")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "Toy").exists()
    assert_whole(fetch(toy(server), tmp_path))
    assert "Range" in server.requests[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["Toy"]


def test_what_a_kill_left_is_tidied_up(server: LocalServer, tmp_path: Path) -> None:
    folder = fetch(toy(server), tmp_path)
    (folder / "mine.txt").write_text("my own work")
    (folder / "Fold1/test.txt").unlink()
    staging = tmp_path / WORK_FOLDER / "Toy-unpacking-abc"  # killed between its two renames
    staging.mkdir(parents=True)
    folder.rename(staging / "old")
    other = tmp_path / WORK_FOLDER / "Toy-12345678"  # killed while comparing the checksum
    other.mkdir()
    (other / "tmpabc").touch()
    assert_whole(fetch(toy(server), tmp_path))
    assert (folder / "mine.txt").read_text() == "my own work"
    assert [path.name for path in tmp_path.iterdir()] == ["Toy"]


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, r"the file is no longer at .*/toy\.zip \(HTTP 404\)"),
        (410, r"no longer at .* \(HTTP 410\)"),
        (403, r"the server refuses it to programs \(HTTP 403\)"),
        (401, r"the server refuses it to programs \(HTTP 401\)"),
        (400, r"the server answered HTTP 400"),
    ],
)
def test_http_errors_that_will_not_pass(server: LocalServer, tmp_path: Path, status: int, message: str) -> None:
    server.pages["/toy.zip"].statuses = [status] * 10
    with pytest.raises(
        DataError, match=rf"^Toy could not be downloaded: .*{message}; open https://.*put toy\.zip into"
    ):
        fetch(toy(server), tmp_path)
    assert len(server.requests) == 1  # asking again would not help
    assert_nothing_half_made(tmp_path)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_http_errors_that_may_pass(server: LocalServer, tmp_path: Path, status: int) -> None:
    page = server.pages["/toy.zip"]
    page.statuses = [status] * 10
    with pytest.raises(DataError, match=rf"server has trouble of its own \(HTTP {status}\): try again later"):
        fetch(toy(server), tmp_path)
    assert len(server.requests) == 3
    assert_nothing_half_made(tmp_path)
    page.statuses = [status]
    assert_whole(fetch(toy(server), tmp_path))


def test_refused_connection(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    entry = dataclasses.replace(ENTRY, urls=(f"http://127.0.0.1:{port}/toy.zip",))
    with pytest.raises(DataError, match=r"the server 127\.0\.0\.1 refused the connection; open https://"):
        fetch(entry, tmp_path)
    assert_nothing_half_made(tmp_path)


def test_unknown_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    entry = dataclasses.replace(ENTRY, urls=("http://data.example.invalid/toy.zip",))
    with pytest.raises(
        DataError, match=r"the server data\.example\.invalid was not found \(is this computer online\?\)"
    ):
        fetch(entry, tmp_path)
    assert_nothing_half_made(tmp_path)


def test_silent_server(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_module, "TIMEOUT", (1.0, 0.05))
    monkeypatch.setattr(download_module, "BACKOFF", (0.0,))
    server.pages["/toy.zip"].stall = 0.5
    with pytest.raises(DataError, match=r"the server 127\.0\.0\.1 did not answer in time"):
        fetch(toy(server), tmp_path)
    assert_nothing_half_made(tmp_path)


@pytest.mark.parametrize("url", ["ftp://example.invalid/toy.zip", "toy.zip", "http://", "http://[bad/toy.zip"])
def test_what_is_no_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(DataError, match=r"is not an address that can be downloaded"):
        fetch(ENTRY, tmp_path, url=url)
    assert_nothing_half_made(tmp_path)


def test_wrong_checksum(server: LocalServer, tmp_path: Path) -> None:
    wrong = "0" * 64
    with pytest.raises(
        DataError, match=rf"is not the published archive of Toy: expected sha256:{wrong}, got {SHA256};"
    ):
        fetch(toy(server), tmp_path, sha256=wrong)
    assert_nothing_half_made(tmp_path)


def test_wrong_md5(server: LocalServer, tmp_path: Path) -> None:
    right = hashlib.md5(ARCHIVE, usedforsecurity=False).hexdigest()
    with pytest.raises(DataError, match=rf"expected md5:{'0' * 32}, got {right}"):
        fetch(toy(server, sha256=None, md5="0" * 32), tmp_path)
    assert_nothing_half_made(tmp_path)
    receipt = read_receipt(fetch(toy(server, sha256=None, md5=right), tmp_path))
    assert receipt is not None
    assert (receipt.verified_by, receipt.sha256) == ("md5", SHA256)


@pytest.mark.parametrize("sha256", ["", "abc", SHA256[:-1], SHA256 + "0", "g" * 64])
def test_a_checksum_that_is_none(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(DataError, match="sha256 must be 64 hexadecimal digits"):
        fetch(ENTRY, tmp_path, sha256=sha256)


def test_another_size_is_refused_before_a_byte_is_stored(server: LocalServer, tmp_path: Path) -> None:
    server.pages["/toy.zip"].data = OTHER
    steps: list[int] = []
    message = rf"offers a file of {len(OTHER)} bytes where {len(ARCHIVE)} were expected"
    with pytest.raises(DataError, match=message):
        fetch(toy(server), tmp_path, progress=lambda done, total: steps.append(done))
    assert steps == []
    assert_nothing_half_made(tmp_path)


def test_a_web_page_is_not_an_archive(server: LocalServer, tmp_path: Path) -> None:
    server.pages["/toy.zip"] = Page(b"<html>Sign in</html>", content_type="text/html; charset=utf-8")
    with pytest.raises(DataError, match=r"sent a web page instead of the archive"):
        fetch(toy(server, archive_bytes=None, sha256=None), tmp_path)
    assert_nothing_half_made(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ARCHIVE[:-1000], r"the archive from http.* is damaged or incomplete \(.*\): open https://"),
        (zipped({"../evil.txt": b"x"}), r"unsafe name '\.\./evil\.txt'"),
        (b"Rar!\x1a\x07", r"RAR archive, which Python cannot unpack: unpack it with 7z or unrar into .*Toy, and run"),
        (b"<!doctype html>", r"is a web page, not an archive"),
        (zipped({"a/train.txt": b"1 qid:1 1:1\n"}), r"no folds found in .*; give sha256=[0-9a-f]{64} to take"),
        (
            zipped({"train.txt": b"1 qid:1 1:1\n", "test.txt": b"1 qid:1 1:1\n"}),
            r"Toy should have 6 rows in 4 queries, but 2 rows in 2 queries were found.*; give sha256=",
        ),
    ],
    ids=["truncated", "zip-slip", "rar", "web page", "no folds", "other data"],
)
def test_bad_archives_leave_nothing(server: LocalServer, tmp_path: Path, data: bytes, message: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    server.pages["/toy.zip"].data = data
    with pytest.raises(DataError, match=message):
        fetch(toy(server, archive_bytes=None, sha256=None), root)
    assert_nothing_half_made(root)
    assert list(tmp_path.iterdir()) == [root]
    server.pages["/toy.zip"].data = ARCHIVE
    assert_whole(fetch(toy(server, archive_bytes=None), root))  # the bad file is not met again


def test_full_disk_while_downloading(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = download_module.write

    def fill(file: object, data: bytes) -> None:
        if file.tell() > 150_000:  # type: ignore[attr-defined]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real_write(file, data)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(download_module, "write", fill)
        with pytest.raises(
            DataError, match=r"the disk that holds .* is full; make room there, then run the same command"
        ):
            fetch(toy(server), tmp_path)
    [part] = parts(tmp_path)
    assert_nothing_half_made(tmp_path, kept=part.stat().st_size)
    assert_whole(fetch(toy(server), tmp_path))


def test_full_disk_at_once(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(download_module, "write", full)
    with pytest.raises(DataError, match=r"is full; make room there or choose another folder$"):
        fetch(toy(server, urls=(server.url("/toy.zip"), server.url("/mirror.zip"))), tmp_path)
    assert len(server.requests) == 1  # a mirror does not help
    assert_nothing_half_made(tmp_path)


def test_full_disk_while_unpacking(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(unpack_module, "write", full)
        with pytest.raises(DataError, match=r"the disk that holds .* is full; the downloaded archive is kept: run"):
            fetch(toy(server), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [WORK_FOLDER]
    assert [path.name for path in (tmp_path / WORK_FOLDER).rglob("*") if path.is_file()] == ["toy.zip"]
    assert_whole(fetch(toy(server), tmp_path))
    assert len(server.requests) == 1


def test_space_is_asked_for_in_advance(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1_000_000})())
    with pytest.raises(DataError, match=r"not enough disk space to download and unpack Toy: .* has 1\.0 MB free"):
        fetch(toy(server), tmp_path)
    assert server.requests == []
    with pytest.raises(DataError, match=r"not enough disk space to download the archive"):  # the size the server tells
        fetch(toy(server, archive_bytes=None), tmp_path)
    assert_nothing_half_made(tmp_path)


def test_a_folder_that_cannot_be_made(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file.* cannot be written .*: choose another folder"):
        fetch(toy(server), tmp_path / "file" / "data")


def test_two_at_once(server: LocalServer, tmp_path: Path) -> None:
    errors: list[str] = []

    def again(done: int, total: int | None) -> None:
        if not errors:
            with pytest.raises(DataError) as caught:
                fetch(toy(server), tmp_path)
            errors.append(str(caught.value))

    assert_whole(fetch(toy(server), tmp_path, progress=again))
    assert errors == [f"Toy is being fetched into {tmp_path} by another process: wait for it"]


# --- what could not be verified -----------------------------------------------------------------------------------


def test_without_a_checksum_the_counts_are_compared_and_it_is_said(server: LocalServer, tmp_path: Path) -> None:
    entry = toy(server, sha256=None)
    message = rf"no published checksum and could not be verified; only its numbers of rows .* give sha256={SHA256}"
    with pytest.warns(UserWarning, match=message):
        folder = fetch(entry, tmp_path)
    receipt = read_receipt(folder)
    assert receipt is not None
    assert (receipt.verified_by, receipt.sha256) == ("counts", SHA256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fetch(entry, tmp_path)  # there already
        fetch(entry, tmp_path / "pinned", sha256=SHA256)
        said: list[str] = []
        fetch(entry, tmp_path / "notified", notify=said.append)
    assert said[-1].endswith(f"give sha256={SHA256}")


def test_nothing_to_compare_with(server: LocalServer, tmp_path: Path) -> None:
    entry = toy(server, sha256=None, rows=None)
    with pytest.warns(UserWarning, match=r"nothing else is published to compare it with"):
        fetch(entry, tmp_path)


def test_checksums_of_files_inside(server: LocalServer, tmp_path: Path) -> None:
    inside = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    wrapped = zipped({f"Toy/{name}": data for name, data in FILES.items()})
    server.pages["/wrapped.zip"] = Page(wrapped)
    entry = toy(server, "/wrapped.zip", sha256=None, archive_bytes=None, file_sha256=inside)
    receipt = read_receipt(fetch(entry, tmp_path))
    assert receipt is not None
    assert receipt.verified_by == "files"

    wrong = dataclasses.replace(entry, file_sha256=inside | {"Fold1/test.txt": "0" * 64})
    with pytest.raises(DataError, match=r"Fold1/test\.txt of Toy differs from the published file"):
        fetch(wrong, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()  # it was not there before
    pinned = hashlib.sha256(wrapped).hexdigest()
    fetch(wrong, tmp_path / "wrong", sha256=pinned)  # the user insists

    missing = dataclasses.replace(entry, file_sha256=inside | {"Fold2/test.txt": "0" * 64})
    with pytest.raises(DataError, match=r"Fold2/test\.txt of Toy is missing"):
        fetch(missing, tmp_path / "missing")


# --- placed by hand -----------------------------------------------------------------------------------------------


def test_archive_placed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "toy.zip").write_bytes(ARCHIVE)
    assert_whole(fetch(ENTRY, tmp_path))  # no address at all
    assert (tmp_path / "toy.zip").read_bytes() == ARCHIVE  # it is the user's
    receipt = read_receipt(tmp_path / "Toy")
    assert receipt is not None
    assert (receipt.url, receipt.sha256) == (None, SHA256)


@pytest.mark.parametrize(
    ("data", "sha256", "message"),
    [
        (ARCHIVE[:-5], SHA256, r"toy\.zip is not the published archive \(\d+ bytes where \d+ are published\)"),
        (ARCHIVE[:-5], None, r"toy\.zip is damaged or incomplete"),
        (b"Rar!\x1a\x07", None, r"RAR archive.*unpack it with 7z or unrar into .*Toy, and run the same command again"),
    ],
)
def test_bad_archive_placed_by_hand_is_left_alone(
    tmp_path: Path, data: bytes, sha256: str | None, message: str
) -> None:
    (tmp_path / "toy.zip").write_bytes(data)
    with pytest.raises(DataError, match=message):
        fetch(dataclasses.replace(ENTRY, sha256=sha256), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.zip"]
    assert (tmp_path / "toy.zip").read_bytes() == data


def test_folder_unpacked_by_hand(tmp_path: Path) -> None:
    entry = dataclasses.replace(ENTRY, archive_name="toy.rar", sha256=None)
    with pytest.raises(DataError, match=r"Toy cannot be downloaded by a program: open .*, unpack it with 7z or unrar"):
        fetch(entry, tmp_path)
    assert_nothing_half_made(tmp_path)
    for name, data in FILES.items():
        (tmp_path / "Toy" / "toy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "Toy" / "toy" / name).write_bytes(data)
    assert fetch(entry, tmp_path) == tmp_path / "Toy"
    receipt = read_receipt(tmp_path / "Toy")
    assert receipt is not None
    assert (receipt.verified_by, receipt.sha256) == ("counts", None)
    assert fetch(entry, tmp_path) == tmp_path / "Toy"


def test_a_folder_of_somebody_else_is_not_touched(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "Toy").mkdir()
    (tmp_path / "Toy" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"Toy is there already but cannot be taken as Toy \(no folds found"):
        fetch(toy(server), tmp_path)
    with pytest.raises(DataError, match=r"cannot be verified: move it away"):
        fetch(toy(server, rows=None), tmp_path)
    assert server.requests == []
    assert [path.name for path in tmp_path.iterdir()] == ["Toy"]
    assert [path.name for path in (tmp_path / "Toy").iterdir()] == ["notes.txt"]
    (tmp_path / "Toy" / "notes.txt").unlink()
    assert_whole(fetch(toy(server), tmp_path))  # an empty folder is nobody's


@pytest.mark.parametrize("name", ["MQ2007", "OHSUMED", "Yahoo-C14"])
def test_sets_that_only_a_person_can_get(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DataError, match=rf"{name} cannot be downloaded by a program: .*{tmp_path}.* run the same command"
    ):
        fetch(name.lower(), tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.real_data
def test_real_mq2008_unpacked_by_hand(real_data: Path, tmp_path: Path) -> None:
    """LETOR's folds are its parts one after another: rebuilt from the parts they have the catalogue's checksums."""
    import gzip

    part = {i: gzip.decompress((real_data / "mq2008" / f"S{i}.txt.gz").read_bytes()) for i in range(1, 6)}
    for fold in range(1, 6):
        folder = tmp_path / "MQ2008" / "MQ2008" / f"Fold{fold}"
        folder.mkdir(parents=True)
        around = [part[(fold + step - 1) % 5 + 1] for step in range(5)]
        (folder / "train.txt").write_bytes(b"".join(around[:3]))
        (folder / "vali.txt").write_bytes(around[3])
        (folder / "test.txt").write_bytes(around[4])
    receipt = read_receipt(fetch("MQ2008", tmp_path))
    assert receipt is not None
    assert receipt.verified_by == "files"

    from rankwood.lab.datasets.fetch import check_contents, count_rows

    entry = find_entry("MQ2008")
    assert count_rows(tmp_path / "MQ2008") == (entry.rows, entry.queries)
    assert check_contents(dataclasses.replace(entry, file_sha256={}), tmp_path / "MQ2008") == "counts"
