"""Loading models and data for a command, with progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from rankwood.cli.console import progress, tell
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FeatureMatrix
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError


def load_models(paths: Sequence[Path]) -> dict[str, Ensemble]:
    """Load models of any format, named by file name; by path when two files share a name."""
    from rankwood.formats.registry import load_model

    names = [path.name for path in paths]
    models: dict[str, Ensemble] = {}
    for path in paths:
        name = str(path) if names.count(path.name) > 1 else path.name
        while name in models:  # the same file again
            name += "'"
        models[name] = load_model(path)
    return models


def source_leaves(model: Ensemble) -> int:
    """Leaves of the model as the tool that it comes from counts them."""
    from rankwood.formats.registry import source_of

    counted = source_of(model).get("n_leaves")
    return counted if isinstance(counted, int) else model.n_leaves


def growth(model: Ensemble) -> str:
    """A sentence on leaves that importing the model added; nothing when it added none."""
    from rankwood.formats.registry import source_of

    if source_leaves(model) >= model.n_leaves:
        return ""
    return (
        f"the {source_of(model).get('format')} source counts {source_leaves(model):,} leaves, the model here "
        f"{model.n_leaves:,}: splits on categories or around zero are written as thresholds"
    )


def load_data(
    paths: Sequence[Path],
    models: dict[str, Ensemble] | None = None,
    *,
    zero_based: bool = False,
    n_threads: int | None = None,
    n_features: int | None = None,
    queries: Literal["required", "optional"] = "required",
    quiet: bool = False,
) -> Dataset:
    """Read ranking data of any kind, with a progress bar for large files.

    Sparse text does not tell how many features there are. For `models` it is as wide as they are; that the last
    features never occur is said, because it may be the wrong file. Of models whose format does not tell either, the
    data decides, and they are replaced in `models` by wider ones.
    """
    from rankwood.data.files import read_data
    from rankwood.formats.registry import widen, width_is_open

    models = {} if models is None else models
    needed = max((model.n_features for model in models.values()), default=0)
    widths = {model.n_features for model in models.values() if not width_is_open(model)}
    if widths and len(widths | {needed}) > 1:
        widths.add(needed)
        raise DataError(f"the models are of {' and '.join(map(str, sorted(widths)))} features: evaluate them apart")

    def read(width: int | None) -> Dataset:
        with progress("reading", unit="bytes", quiet=quiet) as advance:
            return read_data(
                paths,
                zero_based=zero_based,
                n_threads=n_threads,
                n_features=width,
                queries=queries,
                progress=advance,
            )

    data = read(next(iter(widths), n_features))
    if data.n_features < needed:
        data = read(needed)
    for name, model in models.items():
        models[name] = widen(model, data.n_features)
    if models and data.X.size:
        tell_absent_features(data.n_features, last_feature(data.X))
    return data


def last_feature(X: FeatureMatrix) -> int:
    """Number, from 1, of the last feature that is not 0 in all rows; 0 when there is none.

    >>> last_feature(np.array([[0, 1, 0], [2, 0, 0]], dtype=np.float32))
    2
    """
    if X.size and X[:, -1].any():
        return int(X.shape[1])
    used = np.flatnonzero(X.any(axis=0))
    return int(used[-1]) + 1 if len(used) else 0


def tell_absent_features(n_features: int, last: int) -> None:
    """Say that the data has nothing in the features after `last`: it may be the wrong file."""
    if last < n_features:
        tell(f"note: the model has {n_features} features; those after number {last} are 0 in all of the data")
