"""The file from which a pruning that was killed goes on: finished steps, and the search that is under way.

It is a safetensors file: arrays by the name of their step, and a JSON header that says what the steps were made with.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.atomic import atomic_write, check_writable
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.group import ALONE, Group
from rankwood.pruning.line_search import Trail
from rankwood.training.checkpoint import Identity, check_made_with

Arrays = dict[str, AnyArray]  # what a step found, by name

EVERY = 5.0  # seconds between two savings
HEADER = "rankwood-pruning"
TRAIL = "trail of "  # steps that are searches on their way


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


class Notebook:
    """Finished steps by name and the trails of searches, saved now and then if there is a file.

    Parameters
    ----------
    kept : KeptBytes or None, default None
        The file. None: nothing is saved.
    identity : dict from str to str
        What the steps depend on; a file that was made with something else is refused.
    group : Group
        Processes that make the same steps; the first of them reads and writes.
    """

    def __init__(self, kept: KeptBytes | None = None, identity: Identity | None = None, group: Group = ALONE) -> None:
        self._kept = kept if group.rank == 0 else None
        self._identity = identity or {}
        self._steps: dict[str, Arrays] = {}
        self._trails: dict[str, Trail] = {}
        self._saved_at, self._is_new = time.monotonic(), False
        if kept is not None:
            self._take_up(_same_for_all(self._read, group))

    def __contains__(self, name: str) -> bool:
        return name in self._steps

    def step(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """What a step found: as noted, or else as `make` finds it."""
        if name not in self._steps:
            self.note(name, make())
        return self._steps[name]

    def note(self, name: str, found: Arrays) -> None:
        """Note what a step found."""
        self._steps[name] = found
        self._is_new = True

    def forget(self, start: str) -> None:
        """Drop the steps whose names begin so."""
        for name in [name for name in self._steps if name.startswith(start)]:
            del self._steps[name]

    def trail(self, kind: str, start: FloatArray, trees: IndexArray) -> Trail:
        """The trail to follow from some weights: that of the last search of the kind if it fits, else an empty one."""
        found = self._trails.get(kind)
        if found is None or not found.is_of(start, trees):
            found = self._trails[kind] = Trail(trees)
        return found

    def save_if_due(self) -> None:
        """Save, unless that was done a short while ago."""
        if time.monotonic() - self._saved_at >= EVERY:
            self._is_new = True  # a search may have gone on
            self.save()

    def save(self) -> None:
        """Save what is new."""
        if self._kept is None or not self._is_new:
            return
        trails = {
            f"{TRAIL}{kind}": {"weights": np.stack(one.weights), "qualities": one.qualities, "trees": one.trees}
            for kind, one in self._trails.items()
            if one.weights
        }
        self._kept.write(_packed({**self._steps, **trails}, self._identity))
        self._saved_at, self._is_new = time.monotonic(), False

    def _read(self) -> dict[str, Arrays] | None:
        content = None if self._kept is None else self._kept.read()
        if self._kept is None or content is None:
            return None
        try:
            steps, made_with = _unpacked(content)
        except Exception as error:  # whatever the bytes are
            raise RankwoodError(f"{self._kept.name} is no checkpoint of pruning: choose another file") from error
        check_made_with(self._kept.name, made_with, self._identity)
        return steps

    def _take_up(self, steps: dict[str, Arrays] | None) -> None:
        for name, found in (steps or {}).items():
            if name.startswith(TRAIL):
                qualities = found["qualities"].tolist()
                self._trails[name.removeprefix(TRAIL)] = Trail(found["trees"], list(found["weights"]), qualities)
            else:
                self._steps[name] = found


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
