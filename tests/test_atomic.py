from __future__ import annotations

import os
import stat

import pytest

from rankwood.atomic import atomic_write, check_writable


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
