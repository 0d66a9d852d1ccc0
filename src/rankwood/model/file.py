"""The model file: a safetensors file (arrays and a JSON header; loading runs no code), checked in every part.

The header's metadata has one entry, `rankwood`: JSON with the format version, what is not an array, and the model's own
metadata. A file has exactly the arrays below; one with others, or with a higher version, is refused. Models with early
exit have version 2 and an entry `exit`, because versions of rankwood without it would rank otherwise; those with splits
on sets have version 3 and the arrays of sets, with early exit or without; all others have version 1. The checksum tells
a file whose numbers were damaged; files without one are read, too.

Headers are read, and everything is checked, in C++ (native/model), which librankwood shares.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

import numpy as np

from rankwood import _native
from rankwood.atomic import atomic_write
from rankwood.dtypes import AnyArray
from rankwood.errors import MissingPackageError, ModelError, RankwoodError, one_line
from rankwood.model.early_exit import EarlyExit
from rankwood.model.trees import COLUMNS, NEEDED, OPTIONAL, SETS

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

_KIND = {"int32": "I32", "int64": "I64", "float64": "F64", "bool": "BOOL"}  # as safetensors calls them
_COLUMNS = {name: _KIND[np.dtype(column.dtype).name] for name, column in COLUMNS.items()}
ARRAYS = {name: _COLUMNS[name] for name in NEEDED} | {"node_offsets": "I64", "tree_weights": "F64"}
SET_ARRAYS = {name: _KIND[np.dtype(dtype).name] for name, dtype in SETS.items()}  # in files of version 3
OPTIONAL_ARRAYS = {name: _COLUMNS[name] for name in OPTIONAL} | SET_ARRAYS
FACTS = ("format_version", "n_features", "base", "feature_names", "metadata")
EXIT = "exit"  # in files of version 2 or 3
CHECKSUM = "checksum"  # optional: SHA-256 of the arrays in the order above
# Little-endian, as safetensors has it. Booleans are read as bytes: not every byte is one.
NUMPY_TYPE = {"I32": "<i4", "I64": "<i8", "F64": "<f8", "BOOL": "u1"}
MAX_HEADER = 100_000_000  # safetensors' own limit

PathLike: TypeAlias = str | os.PathLike[str]
T = TypeVar("T")


def save_model(model: Ensemble, path: PathLike) -> None:
    """Write a model to a file, whole or not at all; equal models, names and metadata give equal bytes."""
    content = model_bytes(model)
    try:
        with atomic_write(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise ModelError(f"{os.fspath(path)}: the model cannot be written: {_reason(error)}") from None


def model_bytes(model: Ensemble) -> bytes:
    """The content of the file that `save_model` writes."""
    from safetensors.numpy import save

    facts = {name: getattr(model, name) for name in FACTS if name != "format_version"}
    arrays = {name: getattr(model, name) for name in (*ARRAYS, *OPTIONAL_ARRAYS)}
    facts |= {"format_version": 1, CHECKSUM: _checksum(arrays)}
    if model.exit is not None:
        facts |= {"format_version": 2, EXIT: model.exit.as_dict()}
    if model.set_thresholds is not None:
        facts |= {"format_version": 3}
    header = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    # One entry of metadata only: safetensors would write several in random order.
    content: bytes = save({name: array for name, array in arrays.items() if array is not None}, {"rankwood": header})
    return content


def read_model(path: PathLike, build: Callable[..., T]) -> T:
    """The model in a file that `save_model` wrote; errors name the path.

    Parameters
    ----------
    path : path-like
        The file.
    build : callable
        Given the arguments of `Ensemble` by keyword, returns the model. It is an argument because the model's own
        module imports this one.
    """

    def read() -> T:
        with open_model(path) as file:
            return guarded("rankwood", lambda: parse_model(file, build))

    return with_path(path, read)


def is_safetensors(start: bytes) -> bool:
    """Whether a file with this start can be a safetensors file: the length of the header, then a JSON object."""
    return len(start) > 8 and int.from_bytes(start[:8], "little") <= MAX_HEADER and start[8:9] == b"{"


def with_path(path: PathLike, read: Callable[[], T]) -> T:
    """The result of `read()`; its errors become ModelErrors that start with the path."""
    try:
        return read()
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)}: {error}") from error.__cause__
    except MissingPackageError:
        raise
    except (OSError, ValueError) as error:
        raise ModelError(f"{os.fspath(path)}: the file cannot be read: {_reason(error)}") from None


def guarded(format: str, read: Callable[[], T]) -> T:
    """The result of `read()`; unexpected exceptions become ModelErrors, with the exception as their cause.

    So whatever bytes a file holds, reading it ends in a model or a ModelError. `format` is named in the message.
    """
    try:
        return read()
    except ModelError as error:
        if error.__cause__ is None:
            raise
        raise ModelError(f"the {format} model is damaged: {error}") from error.__cause__  # a place is known
    except (RankwoodError, OSError, Warning):
        raise
    except MemoryError as error:
        raise ModelError(f"the {format} model takes more memory than there is") from error
    except RecursionError as error:
        raise ModelError(f"the {format} model is nested too deeply to be read") from error
    except Exception as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"the {format} model is damaged in a way that its reader does not know: {what}") from error


def open_model(path: PathLike) -> BinaryIO:
    """A file opened for reading, or a ModelError when the path is not a regular file."""
    if Path(path).exists() and not Path(path).is_file():  # a pipe could block for ever
        raise ModelError("this is a folder, not a model file" if Path(path).is_dir() else "this is not a regular file")
    return open(path, "rb")


def parse_model(file: BinaryIO, build: Callable[..., T]) -> T:
    """The model in an open file, made by `build` as in `read_model`."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(9)
    try:
        end = _native.header_end(start, size)
        header = _native.ModelHeader(start[8:] + file.read(end - len(start)), size - end)
    except ValueError as error:
        raise ModelError(str(error)) from None
    arrays = {name: _read_array(file, name, length) for name, length in header.arrays}
    model = build(
        **arrays,
        n_features=header.n_features,
        base=header.base,
        feature_names=header.feature_names,
        metadata=json.loads(header.metadata),
        exit=None if header.exit is None else EarlyExit(*header.exit),
    )
    if header.checksum not in (None, _checksum(arrays)):
        raise ModelError("the file is damaged: its numbers are not those that were written")
    return model


def _read_array(file: BinaryIO, name: str, length: int) -> AnyArray:
    array: AnyArray = np.empty(length, NUMPY_TYPE[(ARRAYS | OPTIONAL_ARRAYS)[name]])
    if length and file.readinto(array.data.cast("B")) != array.nbytes:  # type: ignore[attr-defined]
        raise ModelError("the file was cut off while it was read")
    if name == "missing_left":
        try:
            _native.check_booleans(name, array)
        except ValueError as error:
            raise ModelError(str(error)) from None
        array = array.view(np.bool_)
    array.flags.writeable = False
    return array


def _checksum(arrays: Mapping[str, AnyArray | None]) -> str:
    digest = hashlib.sha256()
    for name, kind in (ARRAYS | OPTIONAL_ARRAYS).items():
        array = arrays.get(name)
        if array is not None:
            digest.update(f"{name} {len(array)} ".encode())
            digest.update(np.ascontiguousarray(array.astype(NUMPY_TYPE[kind], copy=False)).data)
    return digest.hexdigest()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
