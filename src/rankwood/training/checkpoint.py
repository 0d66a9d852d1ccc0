"""The file from which a training that was killed goes on, and what it must agree with."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood._version import __version__
from rankwood.atomic import check_writable
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.training.callbacks import Result
from rankwood.training.driver import EnsembleSoFar

Identity = dict[str, str]  # what the next tree depends on, by name; large things as digests


@dataclass(frozen=True)
class Checkpoint:
    """A file that training saves its trees to now and then, and goes on from when it exists.

    Training that was killed ends with the very model it would have become. The file is a model file. It says what it
    was trained on and how; going on with other data or parameters is an error. The number of trees may be larger than
    before: so a finished training is prolonged.

    Parameters
    ----------
    path : path
        The file.
    every : int, default 50
        Trees between two savings. With task="ordinal" these are rounds of trees. With X-DART these are iterations, and
        the file also has the trees that were removed, with weight 0.

    Examples
    --------
    >>> import rankwood as rw, tempfile, os
    >>> data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=4)
    >>> checkpoint = rw.Checkpoint(os.path.join(tempfile.mkdtemp(), "training.rw"), every=10)
    >>> _ = rw.MART(n_trees=25, n_leaves=4).fit(data, checkpoint=checkpoint)
    >>> rw.MART(n_trees=40, n_leaves=4).fit(data, checkpoint=checkpoint).n_trees_  # 15 more
    40
    """

    path: str | os.PathLike[str]
    every: int = 50

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not hasattr(self.every, "__index__") or self.every < 1:
            raise RankwoodError(f"a checkpoint is made every 1 or more trees, got every={self.every!r}")

    def read(self, identity: Identity) -> tuple[Ensemble, dict[str, Any]] | None:
        """The trees that were saved and the notes on them; None when the file does not exist.

        Parameters
        ----------
        identity : dict from str to str
            What the training depends on; a file that was made with something else is refused.
        """
        path = os.fspath(self.path)
        check_writable(path)  # now, not after the first `every` trees
        if not Path(path).exists():
            return None
        model = Ensemble.load(path)
        return model, check_identity(path, model, identity)

    def write(self, model: Ensemble) -> None:
        """Save the trees so far; a kill while writing leaves what was saved before.

        Parameters
        ----------
        model : Ensemble
            The trees, with notes on how they came about.
        """
        model.save(self.path)


class CheckpointFile:
    """The file of a checkpoint while a training writes it, with what the training depends on."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity) -> None:
        self.checkpoint, self.identity = checkpoint, identity
        self.n_saved = 0

    def load(self, growing: EnsembleSoFar) -> None:
        """Take up what was saved, if there is anything."""
        found = self.checkpoint.read(self.identity)
        if found is not None:
            growing.take_up(*found)
            self.n_saved = growing.n_rounds

    def save_if_due(self, growing: EnsembleSoFar) -> None:
        """Save after every `every` rounds."""
        if growing.n_rounds % self.checkpoint.every == 0:
            self.save(growing)

    def save(self, growing: EnsembleSoFar) -> None:
        """Write the trees so far, unless they are written; a kill while writing leaves the checkpoint before it."""
        if growing.n_rounds > self.n_saved:
            model, notes = growing.to_keep()
            self.checkpoint.write(model.with_metadata(checkpoint={"identity": self.identity, **notes}))
            self.n_saved = growing.n_rounds


def read_history(history: list[Any]) -> list[list[Result]]:
    """The measures after each round, from the notes of a checkpoint."""
    return [[Result(*result) for result in results] for results in history]


def check_identity(path: str, model: Ensemble, identity: Identity) -> dict[str, Any]:
    """The notes of a checkpoint; an error when it was not made with what `identity` says."""
    saved = model.metadata.get("checkpoint")
    if not isinstance(saved, dict):
        raise RankwoodError(f"{path} is a finished model, not a checkpoint: choose another file")
    check_made_with(path, saved["identity"], identity)
    return saved


def check_made_with(path: str, made_with: Identity, identity: Identity) -> None:
    """Refuse a checkpoint that was made with something else, and name what differs."""
    differing = [name for name in {**identity, **made_with} if made_with.get(name) != identity.get(name)]
    other = [f"{name}{_difference(made_with.get(name, ''), identity.get(name, ''))}" for name in differing]
    if other:
        raise RankwoodError(
            f"the checkpoint {path} was made with other {', other '.join(other)}: "
            "delete it to start anew, or choose another file"
        )


def _difference(before: str, now: str) -> str:
    """What differs in the texts of two settings, in brackets; empty where that says nothing, as of digests.

    Examples
    --------
    >>> _difference("GrowthRules(n_leaves=64, l2=0.0)", "GrowthRules(n_leaves=32, l2=0.0)"), _difference("0", "1")
    (' (n_leaves 64, now 32)', ' (0, now 1)')
    """
    fields = re.compile(r"'?(\w+)'?(?:=|: )([^=:]*?)(?=, '?\w+'?(?:=|: )|[)}]|$)")
    old, new = (dict(fields.findall(text)) for text in (before, now))
    parts = [(f"{name} ", old[name], new[name]) for name in new if name in old and old[name] != new[name]]
    if not parts:
        parts = [("", before.partition("(")[0], now.partition("(")[0])]
    told = [f"{name}{one}, now {other}" for name, one, other in parts if len(one + other) <= 60 and one != other]
    return f" ({'; '.join(told)})" if told and before and now else ""


def identify(
    train: BinnedDataset, watched: Mapping[str, BinnedDataset], start: Ensemble, parameters: Mapping[str, Any]
) -> Identity:
    """Everything besides earlier trees that the next boosted tree, and where training stops, depend on."""
    return {
        "training data": identify_binned(train),
        **{f"data set {name!r}": identify_binned(binned) for name, binned in watched.items()},
        "model to start from": start.fingerprint(),
        **identify_settings(parameters),
    }


def identify_settings(parameters: Mapping[str, Any]) -> Identity:
    """Parameters as texts, and the version, which may change what they mean."""
    named = {name: _without_addresses(repr(value)) for name, value in parameters.items()}
    return {**named, "version of rankwood": __version__}


def identify_data(data: Dataset, *made_of_it: AnyArray) -> str:
    """Digest of a data set, and of the arrays that training made of it."""
    digest = hashlib.sha256(data.fingerprint().encode())
    for array in made_of_it:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def identify_binned(binned: BinnedDataset) -> str:
    """Digest of what boosted trees learn from: bins, labels, queries and weights, of all processes that share them.

    It is a sum over rows, each with its number, so it does not matter who holds which, nor whether the features behind
    the bins are in memory.
    """
    data, share = binned.data, binned.share
    first_row = sum(share.group.gather(data.n_docs)[: share.group.rank])
    columns = [*binned.bins, binned.by_query(data.y)]
    columns += [] if data.weights is None else [binned.by_query(data.weights)]
    columns += [] if data.position is None else [binned.by_query(data.position)]
    sums = [sum_of_digests(column, first_row, salt) for salt, column in enumerate(columns)]
    of_queries = [np.diff(data.offsets), *([] if data.query_weights is None else [data.query_weights])]
    sums += [sum_of_digests(column, share.first_query, salt) for salt, column in enumerate(of_queries, len(sums))]
    digest = hashlib.sha256(np.array(share.group.gather(sums), dtype=np.uint64).sum(axis=0).tobytes())
    digest.update(f"{share.n_docs} {data.weights is None} {data.query_weights is None} {data.feature_names}".encode())
    digest.update(b"" if data.position is None else b"position")
    for array in (binned.edges.flat, binned.edges.offsets):
        digest.update(array.tobytes())
    return digest.hexdigest()


MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)  # odd


def sum_of_digests(values: AnyArray, first: int, salt: int) -> int:
    """Sum, modulo 2^64, of digests of every row and its number.

    Parameters
    ----------
    values : array
        Rows of 8 or 16 bytes.
    first : int
        Number of the first row.
    salt : int
        What makes the digests of this column others than those of the same values elsewhere.

    Examples
    --------
    >>> whole = np.arange(10.0)
    >>> parts = sum_of_digests(whole[:3], 0, 1) + sum_of_digests(whole[3:], 3, 1)
    >>> parts % 2**64 == sum_of_digests(whole, 0, 1) != sum_of_digests(whole[::-1], 0, 1)
    True
    """
    width = values[:1].nbytes // 8 or 1
    words = np.ascontiguousarray(values).view(np.uint64).reshape(len(values), width)
    total = 0
    for start in range(0, len(words), 1 << 16):  # what stays in the cache
        some = words[start : start + (1 << 16)]
        mixed = np.arange(first + start, first + start + len(some), dtype=np.uint64) * MULTIPLIERS[2]
        mixed += np.uint64((salt + 1) * int(MULTIPLIERS[1]) % 2**64)
        for column in some.T:
            mixed = (mixed ^ column) * MULTIPLIERS[0]
            mixed ^= mixed >> np.uint64(29)
            mixed *= MULTIPLIERS[1]
            mixed ^= mixed >> np.uint64(32)
        total += int(mixed.sum(dtype=np.uint64))
    return total % 2**64


def _without_addresses(text: str) -> str:
    """The text of a function or object without its address in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
