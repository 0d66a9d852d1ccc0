from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rankwood import atomic
from rankwood.atomic import atomic_folder, atomic_write, check_writable

fcntl = pytest.importorskip("fcntl") if os.name == "posix" else None
needs_locks = pytest.mark.skipif(fcntl is None, reason="needs locks of POSIX")


def test_bytes_and_text(tmp_path):
    path = tmp_path / "file"
    with atomic_write(path) as file:
        file.write(b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    with atomic_write(str(path), "w") as file:
        file.write("grün\n")
    assert path.read_bytes() == "grün\n".encode()
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(ValueError, match="mode must be"), atomic_write(path, "a"):
        pass


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_a_failure_leaves_the_older_file(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(error)), atomic_write(path) as file:  # noqa: PT012
        file.write(b"half")
        assert path.read_text() == "old"
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_file_appears_at_the_end(tmp_path):
    path = tmp_path / "file"
    with atomic_write(path) as file:
        file.write(b"x")
        assert not path.exists()
    assert path.exists()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "none" / "file"):
        pass


def test_whether_a_file_can_be_written(tmp_path):
    path = tmp_path / "file"
    check_writable(path)
    assert os.listdir(tmp_path) == []
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old"
    for wrong in (tmp_path, tmp_path / "none" / "file", path / "file"):
        with pytest.raises(OSError, match=r".") as caught:
            check_writable(wrong)
        assert caught.value.filename == os.fspath(wrong)


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"1")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link.symlink_to(path)
    path.chmod(0o600)
    with atomic_write(link) as file:
        file.write(b"2")
    assert link.is_symlink()
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs a device")
def test_a_device_is_written_to():
    with atomic_write("/dev/null") as file:
        file.write(b"x")
    assert not os.path.isfile("/dev/null")


# What a killed writer left


@contextmanager
def writer(path: Path, then: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that has written half of a file and goes on when it is told to."""
    code = (
        "import os, sys, time; from rankwood.atomic import atomic_write\n"
        f"with atomic_write({str(path)!r}) as file:\n"
        "    file.write(b'x' * 100_000)\n"
        f"    {then or 'pass'}\n"
        "    print('half', flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        try:
            assert one.stdout.readline() == "half\n"
            yield one
        finally:
            one.kill()


def write(path: Path, content: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(content)


def parts(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if name.endswith(".part")}


def killed(path: Path) -> str:
    """What a writer leaves that is killed: the name of its file."""
    before = parts(path.parent)
    with writer(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (left,) = parts(path.parent) - before
    return left


@needs_locks
def test_what_killed_writers_left_goes_with_the_next_write(tmp_path):
    path = tmp_path / "model.rw"
    assert killed(path) != killed(path)
    assert len(parts(tmp_path)) == 2
    with pytest.raises(ValueError, match="of ours"), atomic_write(path):
        raise ValueError("of ours")
    assert len(parts(tmp_path)) == 2  # only a write that succeeds clears up
    write(path)
    assert os.listdir(tmp_path) == ["model.rw"]
    assert path.read_bytes() == b"new"


@needs_locks
def test_a_writer_that_lives_keeps_its_file(tmp_path):
    path = tmp_path / "model.rw"
    left = killed(path)
    with writer(path) as process:
        (living,) = parts(tmp_path) - {left}
        write(path)
        assert (parts(tmp_path), path.read_bytes()) == ({living}, b"new")
        process.communicate("go on\n")
        assert process.returncode == 0
    assert path.read_bytes() == b"x" * 100_000
    assert os.listdir(tmp_path) == ["model.rw"]


@needs_locks
def test_a_writer_of_this_process_keeps_its_file(tmp_path):
    path = tmp_path / "model.rw"
    killed(path)
    with atomic_write(path) as file:
        file.write(b"outer")
        thread = threading.Thread(target=write, args=(path,))
        thread.start()
        thread.join()
        assert path.read_bytes() == b"new"
        assert len(parts(tmp_path)) == 1
        write(path, b"inner")
    assert path.read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["model.rw"]


@needs_locks
def test_writers_at_once_do_not_disturb_each_other(tmp_path):
    """Each clears up after each write: none may take away what another has just begun."""
    path = tmp_path / "model.rw"
    code = (
        "import threading; from rankwood.atomic import atomic_write\n"
        "def write():\n"
        "    for number in range(150):\n"
        f"        with atomic_write({str(path)!r}, 'w') as file:\n"
        "            file.write(f'{number}\\n' * 50)\n"
        "threads = [threading.Thread(target=write) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    with writer(path):
        pass  # and is killed
    assert [(one.communicate()[1], one.returncode) for one in running] == [("", 0)] * 3
    assert len(set(path.read_text().split())) == 1
    write(path)
    assert os.listdir(tmp_path) == ["model.rw"]


@needs_locks
def test_files_of_other_targets_stay(tmp_path):
    other = killed(tmp_path / "model.rw.forest")
    mine = tmp_path / ".model.rw.mine.part"
    mine.write_text("by hand")
    write(tmp_path / "model.rw")
    assert parts(tmp_path) == {other, mine.name}
    write(tmp_path / "model.rw.forest")
    assert parts(tmp_path) == {mine.name}


@needs_locks
@pytest.mark.parametrize("name", ["x" * 255, "木" * 85, "*[a].{8}", "a b\nc", os.fsdecode(b"\xff\xfe")], ids=ascii)
def test_names_of_all_kinds(tmp_path, name):
    path = tmp_path / name
    killed(path)
    write(path)
    assert os.listdir(tmp_path) == [name]


@needs_locks
def test_what_another_machine_writes_stays(tmp_path, monkeypatch):
    """Its locks may not be seen here."""
    path = tmp_path / "model.rw"
    left = killed(path)
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_machine", lambda: "another")
        write(path)
        assert parts(tmp_path) == {left}
    write(path)
    assert parts(tmp_path) == set()


@needs_locks
def test_where_there_are_no_locks(tmp_path, monkeypatch):
    path = tmp_path / "model.rw"
    left = killed(path)

    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        with atomic_write(path) as file:
            file.write(b"first")
            patch.undo()
            write(path, b"second")  # there are locks again, but the first has none
            assert len(parts(tmp_path)) == 1
        assert path.read_bytes() == b"first"
        patch.setattr(fcntl, "flock", no_locks)
        left = killed(path)
        write(path)
    assert parts(tmp_path) == {left}


@needs_locks
def test_a_file_that_is_taken_away_before_it_is_locked(tmp_path, monkeypatch):
    """By another who cleared up just then."""
    path, lock, calls = tmp_path / "model.rw", fcntl.flock, []

    def late(handle, operation):
        calls.append(handle)
        if len(calls) == 1:  # locked by the other, who is about to remove it
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        if len(calls) == 2:
            for name in parts(tmp_path):
                os.unlink(tmp_path / name)
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write(path)
    assert len(calls) >= 3
    assert path.read_bytes() == b"new"
    write(path)
    assert os.listdir(tmp_path) == ["model.rw"]


@needs_locks
def test_a_file_system_that_does_not_rename_open_files(tmp_path, monkeypatch):
    path, rename = tmp_path / "model.rw", os.replace

    def replace(old, new):
        with open(old, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
        rename(old, new)

    monkeypatch.setattr(os, "replace", replace)
    write(path)
    assert path.read_bytes() == b"new"


@needs_locks
def test_a_child_that_ends_does_not_give_its_parents_file_away(tmp_path):
    path = tmp_path / "model.rw"
    with writer(path, "os.waitpid(os.fork() or os._exit(0), 0)") as process:
        (living,) = parts(tmp_path)
        write(path)
        assert parts(tmp_path) == {living}
        process.communicate("go on\n")
    assert (process.returncode, path.stat().st_size) == (0, 100_000)


@needs_locks
def test_a_child_that_outlives_its_parent_holds_the_file(tmp_path):
    """A fork has the files of its parent: what it might still write to stays until it ends."""
    path, note = tmp_path / "model.rw", tmp_path / "child"
    with writer(path, f"child = os.fork() or time.sleep(600); open({str(note)!r}, 'w').write(str(child))") as process:
        child = int(note.read_text())
        process.kill()
        process.wait()
    try:
        (left,) = parts(tmp_path)
        write(path)
        assert parts(tmp_path) == {left}
    finally:
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while parts(tmp_path) and time.monotonic() < deadline:
        write(path)
    assert parts(tmp_path) == set()


FOLDER_WRITER = """
import sys
from pathlib import Path
from rankwood.atomic import atomic_folder
with atomic_folder(sys.argv[1]) as folder:
    (folder / "inner").mkdir()
    (folder / "inner" / "half").write_text("x")
    print("half", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def folder_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has written half of a folder and goes on when it is told to."""
    command = [sys.executable, "-c", FOLDER_WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout.readline() == "half\n"
            yield one
        finally:
            one.kill()


@needs_locks
def test_a_folder_that_a_killed_writer_left_goes_with_the_next_one(tmp_path):
    path = tmp_path / "scores"
    with folder_writer(path):
        pass  # and is killed
    assert len(parts(tmp_path)) == 1
    with atomic_write(tmp_path / "scores.txt") as file:  # of another name
        file.write(b"x")
    assert len(parts(tmp_path)) == 1
    with folder_writer(path) as living:
        left = parts(tmp_path)
        assert len(left) == 2
        with atomic_folder(path) as folder:
            (folder / "whole").touch()
        assert len(parts(tmp_path)) == 1  # the living writer keeps its own
        living.communicate("go on\n")
        assert living.returncode != 0  # the folder is there
    assert sorted(os.listdir(tmp_path)) == ["scores", "scores.txt"]
    assert os.listdir(path) == ["whole"]


def test_a_folder_that_fails(tmp_path):
    with pytest.raises(ValueError, match="of ours"), atomic_folder(tmp_path / "scores"):
        raise ValueError("of ours")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="LINKS ARE OTHERWISE THERE")
def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    circle = tmp_path / "m.rw"
    circle.symlink_to("m.rw")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (circle, tmp_path / "a"):
        with pytest.raises(OSError, match="a link that leads to itself"):
            check_writable(path)
        with pytest.raises(OSError, match="a link that leads to itself"), atomic_write(path) as file:
            file.write(b"new")
        assert path.is_symlink()
