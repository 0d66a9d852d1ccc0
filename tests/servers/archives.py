"""Small archives for tests; the same bytes whenever they are made."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], kind: str = "gz", members: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for member in members:
            archive.addfile(member)
    plain = buffer.getvalue()
    return {"gz": gzip.compress(plain, mtime=0), "bz2": bz2.compress(plain), "plain": plain}[kind]
