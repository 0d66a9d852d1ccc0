"""The model file: a safetensors file (arrays and a JSON header; loading runs no code), checked in every part.

The header's metadata has one entry, `rankwood`: JSON with the format version, what is not an array, and the model's own
metadata. A file has exactly the arrays below; one with others, or with a higher version, is refused. Models with early
exit have version 2 and an entry `exit`, because versions of rankwood without it would rank otherwise; all others have
version 1. The checksum tells a file whose numbers were damaged; files without one are read, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.dtypes import AnyArray
from rankwood.errors import MissingPackageError, ModelError, RankwoodError, one_line
from rankwood.model.early_exit import EarlyExit
from rankwood.model.trees import COLUMNS, NEEDED, OPTIONAL

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

FORMAT_VERSION = 2  # the highest that is read
_KIND = {"int32": "I32", "int64": "I64", "float64": "F64", "bool": "BOOL"}  # as safetensors calls them
_COLUMNS = {name: _KIND[np.dtype(column.dtype).name] for name, column in COLUMNS.items()}
ARRAYS = {name: _COLUMNS[name] for name in NEEDED} | {"node_offsets": "I64", "tree_weights": "F64"}
OPTIONAL_ARRAYS = {name: _COLUMNS[name] for name in OPTIONAL}
FACTS = ("format_version", "n_features", "base", "feature_names", "metadata")
EXIT = "exit"  # in files of version 2
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
    if not is_safetensors(start):
        raise ModelError("this is not a rankwood model file")
    header_end = 8 + int.from_bytes(start[:8], "little")
    if header_end > size:
        raise ModelError("the file is cut off in its header")
    header = start + file.read(header_end - len(start))
    facts = _parse_facts(header[8:])  # before the arrays: they may be large and somebody else's
    arrays = _parse_arrays(header + file.read())
    expected = facts.pop(CHECKSUM)
    model = build(**arrays, **facts)
    if expected is not None and expected != _checksum(arrays):
        raise ModelError("the file is damaged: its numbers are not those that were written")
    return model


def _parse_facts(header: bytes) -> dict[str, Any]:
    """Arguments of `Ensemble` that are not arrays, and the checksum, as the header has them."""
    entries = _parse_json(header, "the header").get("__metadata__")
    text = entries.get("rankwood") if isinstance(entries, dict) else None
    if not isinstance(text, str):
        raise ModelError("this is a safetensors file, but there is no rankwood model in it")
    facts = _parse_json(text, "the description of the model")
    version: Any = facts.get("format_version")
    if not _is_int(version) or version < 1:
        raise ModelError(f"the file is damaged: its format version is {one_line(version)}")
    if version > FORMAT_VERSION:
        found = f"the file has format version {one_line(version)}"
        raise ModelError(f"{found}, this rankwood reads up to {FORMAT_VERSION}: upgrade rankwood")
    expected = {*FACTS, EXIT} if version > 1 else set(FACTS)
    if set(facts) - {CHECKSUM} != expected:
        odd = ", ".join(sorted(map(one_line, (set(facts) - {CHECKSUM}) ^ expected)))
        raise ModelError(f"the file is damaged: missing or unknown in the description of the model: {odd}")
    names = facts["feature_names"]
    for fine, name in (
        (_is_int(facts["n_features"]), "n_features"),
        (_is_int(facts["base"]) or isinstance(facts["base"], float), "base"),
        (names is None or isinstance(names, list), "feature_names"),
        (isinstance(facts["metadata"], dict), "metadata"),
    ):
        if not fine:
            raise ModelError(f"the file is damaged: {name} is {one_line(facts[name])}")
    exit = EarlyExit.from_dict(facts[EXIT]) if version > 1 else None
    known = {name: facts[name] for name in FACTS if name != "format_version"}
    return {CHECKSUM: facts.get(CHECKSUM), **known, EXIT: exit}


def _checksum(arrays: Mapping[str, AnyArray | None]) -> str:
    digest = hashlib.sha256()
    for name, kind in (ARRAYS | OPTIONAL_ARRAYS).items():
        array = arrays.get(name)
        if array is not None:
            digest.update(f"{name} {len(array)} ".encode())
            digest.update(np.ascontiguousarray(array.astype(NUMPY_TYPE[kind], copy=False)).data)
    return digest.hexdigest()


def _parse_json(text: bytes | str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the file is damaged: {what} is not readable JSON: {one_line(error)}") from None
    if not isinstance(value, dict):
        raise ModelError(f"the file is damaged: {what} is not a JSON object")
    return value


def _parse_arrays(content: bytes) -> dict[str, Any]:
    from safetensors import SafetensorError, deserialize

    try:
        tensors = dict(deserialize(content))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ModelError(f"the file is damaged or cut off: {one_line(error)}") from None
    missing = sorted(set(ARRAYS) - set(tensors))
    unknown = sorted(set(tensors) - set(ARRAYS) - set(OPTIONAL_ARRAYS))
    if missing or unknown:
        problem = f"has no array {missing[0]}" if missing else f"has an unknown array {one_line(unknown[0])}"
        raise ModelError(f"the file is damaged: it {problem}")
    return {name: _parse_array(name, tensor) for name, tensor in tensors.items()}


def _parse_array(name: str, tensor: dict[str, Any]) -> AnyArray:
    expected = (ARRAYS | OPTIONAL_ARRAYS)[name]
    if tensor["dtype"] != expected or len(tensor["shape"]) != 1:
        found = f"{one_line(tensor['dtype'])} of shape {one_line(tensor['shape'])}"
        raise ModelError(f"the file is damaged: array {name} is {found}, not a list of {expected}")
    array = np.frombuffer(tensor["data"], dtype=NUMPY_TYPE[expected])
    if expected == "BOOL":
        if array.max(initial=0) > 1:
            raise ModelError(f"the file is damaged: array {name} holds a byte that is neither true nor false")
        return array.astype(np.bool_)
    return array


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
