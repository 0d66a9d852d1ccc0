"""The file from which a pruning that was killed goes on: finished steps, and the search that is under way.

It is a safetensors file: arrays by the name of their step, and a JSON header that says what the steps were made with.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.atomic import atomic_write, check_writable
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.group import Group
from rankwood.pruning.notebook import Arrays, Notebook
from rankwood.training.checkpoint import Identity, check_made_with

HEADER = "rankwood-pruning"


class KeptBytes(ABC):
    """Where the content of a checkpoint is kept."""

    name: str

    @abstractmethod
    def read(self) -> bytes | None:
        """What was kept last; None when there is nothing."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Keep other content."""


class FileHere(KeptBytes):
    """A file of this machine; a kill while it is written leaves what was there before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        check_writable(self.name)  # now, not after the first steps

    def read(self) -> bytes | None:
        return Path(self.name).read_bytes() if Path(self.name).exists() else None

    def write(self, content: bytes) -> None:
        with atomic_write(self.name, "wb") as file:
            file.write(content)


def open_notebook(kept: KeptBytes | None, identity: Identity, group: Group) -> Notebook:
    """The notebook of a checkpoint, with the steps that are there; without one, an empty notebook that is not saved.

    Parameters
    ----------
    kept : KeptBytes or None
        The checkpoint.
    identity : dict from str to str
        What the steps depend on; a checkpoint that was made with something else is refused.
    group : Group
        Processes that make the same steps; the first of them reads and writes.
    """
    if kept is None:
        return Notebook()

    def keep(steps: dict[str, Arrays]) -> None:
        if group.rank == 0:
            kept.write(_packed(steps, identity))

    return Notebook(keep, _same_for_all(lambda: _read(kept, identity), group))


def _read(kept: KeptBytes, identity: Identity) -> dict[str, Arrays]:
    content = kept.read()
    if content is None:
        return {}
    try:
        steps, made_with = _unpacked(content)
    except Exception as error:  # whatever the bytes are
        raise RankwoodError(f"{kept.name} is no checkpoint of pruning: choose another file") from error
    check_made_with(kept.name, made_with, identity)
    return steps


def _same_for_all(read: Callable[[], Any], group: Group) -> Any:
    """What the first process reads, or its error, for all."""
    found: Any = None
    try:
        found = read() if group.rank == 0 else None
    except RankwoodError as error:
        found = error
    found = group.broadcast(found)
    if isinstance(found, RankwoodError):
        raise found
    return found


def _packed(steps: Mapping[str, Mapping[str, Any]], identity: Identity) -> bytes:
    from safetensors.numpy import save

    arrays = {
        f"{step}/{name}": np.ascontiguousarray(value) for step, found in steps.items() for name, value in found.items()
    }
    header = json.dumps({"identity": identity, "checksum": _checksum(arrays)}, sort_keys=True)
    content: bytes = save(arrays, {HEADER: header})
    return content


def _unpacked(content: bytes) -> tuple[dict[str, Arrays], Identity]:
    from safetensors.numpy import load

    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][HEADER])
    arrays = load(content)
    if header["checksum"] != _checksum(arrays):
        raise ValueError("the checksum is wrong")
    steps: dict[str, Arrays] = {}
    for name, array in arrays.items():
        step, _, of_step = name.rpartition("/")
        steps.setdefault(step, {})[of_step] = array
    return steps, dict(header["identity"])


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape};".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def identify_queries(data: Dataset, group: Group) -> str:
    """Digest of the queries of all processes, which does not depend on who has which."""
    queries = group.gather([_digest(data, number) for number in range(data.n_queries)])
    names = group.broadcast(json.dumps([str(name) for name in data.feature_names or ()]))
    return hashlib.sha256(b"".join(digest for of_rank in queries for digest in of_rank) + names.encode()).hexdigest()


def _digest(data: Dataset, number: int) -> bytes:
    """Digest of one query: features, labels, weights and ids of its documents."""
    rows: Any = slice(int(data.offsets[number]), int(data.offsets[number + 1]))
    rows = rows if data.order is None else data.order[rows]
    digest = hashlib.sha256()
    for column in (data.X, data.y, data.weights):
        digest.update(b"none" if column is None else np.ascontiguousarray(column[rows]).data)
    if data.query_weights is not None:
        digest.update(data.query_weights[number].tobytes())
    if data.doc_ids is not None:
        digest.update(json.dumps([str(name) for name in data.doc_ids[rows]]).encode())
    return digest.digest()
