"""Archives from elsewhere are unpacked below their folder, or refused."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwood.errors import DataError
from rankwood.lab.datasets import unpack as unpack_module
from rankwood.lab.datasets.download import NoRoom, require_space
from rankwood.lab.datasets.unpack import CorruptArchive, RarArchive, unpack
from servers.archives import tarred, zipped

FILES = {"Fold1/train.txt": b"1 qid:1 1:0.5\n" * 1000, "Fold1/test.txt": b"0 qid:2 1:0.25\n", "README": b""}


def unpacked(tmp_path: Path, data: bytes, name: str = "archive") -> dict[str, bytes]:
    (tmp_path / name).write_bytes(data)
    target = tmp_path / "target"
    made = unpack(tmp_path / name, target)
    on_disk = [path for path in target.rglob("*") if path.is_file()]
    assert sorted(made) == sorted(on_disk)
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in on_disk}


@pytest.mark.parametrize(
    "data",
    [zipped(FILES), tarred(FILES), tarred(FILES, "bz2"), tarred(FILES, "plain")],
    ids=["zip", "gz", "bz2", "tar"],
)
def test_archives_are_unpacked_whatever_they_are_called(tmp_path: Path, data: bytes) -> None:
    assert unpacked(tmp_path, data, "download.aspx") == FILES


def test_plain_gz(tmp_path: Path) -> None:
    assert unpacked(tmp_path, gzip.compress(b"1 qid:1 1:1\n"), "train.txt.gz") == {"train.txt": b"1 qid:1 1:1\n"}


def test_folders_in_archives_are_harmless(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("./")
    folder.type = tarfile.DIRTYPE
    assert unpacked(tmp_path, tarred({"./a/b.txt": b"x"}, members=(folder,))) == {"a/b.txt": b"x"}


@pytest.mark.parametrize(
    "name",
    ["../evil.txt", "a/../../evil.txt", "/tmp/evil.txt", "..\\evil.txt", "C:\\evil.txt", "C:evil.txt", "a\\..\\..\\b"],
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_that_lead_outside_are_refused(tmp_path: Path, pack: object, name: str) -> None:
    data = pack({"good.txt": b"x", name: b"evil"})  # type: ignore[operator]
    with pytest.raises(DataError, match=r"unsafe name .* leads outside"):
        unpacked(tmp_path, data)
    assert not list(tmp_path.parent.glob("evil*"))
    assert not list(tmp_path.glob("evil*"))


@given(st.lists(st.sampled_from(["..", ".", "a", "b.txt", "", "~", "c:"]), min_size=1, max_size=5), st.booleans())
def test_no_name_escapes(steps: list[str], absolute: bool) -> None:
    writer = unpack_module._Writer("x", Path("/data/target"), 1)
    name = "/" * absolute + "/".join(steps)
    try:
        path = Path("/data/target").joinpath(*writer.parts(name)).resolve()
    except DataError:
        return
    assert path.is_relative_to("/data/target")
    assert path != Path("/data/target")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "a special file"),
        (tarfile.FIFOTYPE, "a special file"),
    ],
)
def test_links_and_devices_in_tar_are_refused(tmp_path: Path, kind: bytes, what: str) -> None:
    member = tarfile.TarInfo("way-out")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(DataError, match=rf"holds 'way-out', {what} and not a plain file"):
        unpacked(tmp_path, tarred({"good.txt": b"x"}, members=(member,)))
    assert not (tmp_path / "target" / "way-out").exists()


def test_links_in_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("way-out")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match=r"'way-out', a link"):
        unpacked(tmp_path, buffer.getvalue())


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("README")
    with pytest.raises(DataError, match=r"holds 'README' twice"):
        unpacked(tmp_path, tarred(FILES, members=(member,)))


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: gzip.compress(files["bomb"])])
def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    monkeypatch.setattr(unpack_module, "SMALL", 100_000)
    data = pack({"bomb": bytes(4_000_000)})  # type: ignore[operator]
    assert len(data) * unpack_module.MAX_EXPANSION < 4_000_000
    with pytest.raises(DataError, match=r"swells beyond reason, to more than .*likely attack"):
        unpacked(tmp_path, data)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack_module, "MAX_FILES", 3)
    with pytest.raises(DataError, match=r"more than 3 files"):
        unpacked(tmp_path, zipped({f"{i}.txt": b"" for i in range(4)}))


@pytest.mark.parametrize("cut", [30, 200, -1, -9])
@pytest.mark.parametrize(
    "pack", [zipped, tarred, lambda files: tarred(files, "bz2"), lambda f: gzip.compress(b"1" * 9999)]
)
def test_cut_archives_are_noticed(tmp_path: Path, pack: object, cut: int) -> None:
    whole = pack(FILES)  # type: ignore[operator]
    with pytest.raises(CorruptArchive, match=r"damaged or incomplete|not a zip"):
        unpacked(tmp_path, whole[:cut] if cut < len(whole) else whole[:-2])


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    for number, data in enumerate((zipped(FILES), tarred(FILES), tarred(FILES, "bz2"))):
        middle = len(data) // 3
        (tmp_path / f"{number}").mkdir()
        with pytest.raises(CorruptArchive, match=r"damaged"):
            unpacked(tmp_path / f"{number}", data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :])


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"Rar!\x1a\x07\x00rest", RarArchive, "RAR archive, which Python cannot unpack"),
        (b"\n <!DOCTYPE html><title>Sign in", CorruptArchive, "is a web page, not an archive"),
        (b"<html><body>", CorruptArchive, "is a web page, not an archive"),
        (b"1 qid:1 1:0.5\n", CorruptArchive, "is not a zip, tar.gz, tar.bz2 or gz archive"),
        (b"", CorruptArchive, "is not a zip"),
        (zipped({}), CorruptArchive, "is an empty archive"),
        (bz2.compress(b"not a tar"), CorruptArchive, "damaged or incomplete"),
    ],
)
def test_what_is_no_archive_is_named(tmp_path: Path, data: bytes, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        unpacked(tmp_path, data)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(unpack_module, "write", full)
    with pytest.raises(NoRoom, match=rf"could not be unpacked: the disk that holds {tmp_path} is full$"):
        unpacked(tmp_path, tarred(FILES))


def test_a_zip_that_will_not_fit_is_refused_in_advance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 17 * 1024 * 1024})())
    with pytest.raises(NoRoom, match=r"not enough disk space to unpack the archive: .* 2\.0 MB are needed"):
        unpacked(tmp_path, zipped({"a": bytes(2_000_000)}))
    assert not any((tmp_path / "target").iterdir())
    require_space(tmp_path, 1_000_000, "do less")
