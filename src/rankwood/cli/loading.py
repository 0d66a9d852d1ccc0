"""Loading models and data for a command, with progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rankwood.cli.console import progress
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble


def load_models(paths: Sequence[Path]) -> dict[str, Ensemble]:
    """Load models, named by file name; by path when two files share a name."""
    from rankwood.model_file import load_model

    names = [path.name for path in paths]
    return {(str(path) if names.count(path.name) > 1 else path.name): load_model(path) for path in dict.fromkeys(paths)}


def load_data(
    paths: Sequence[Path],
    *,
    zero_based: bool = False,
    n_threads: int | None = None,
    n_features: int | None = None,
    queries: Literal["required", "optional"] = "required",
    quiet: bool = False,
) -> Dataset:
    """Read ranking data of any kind, with a progress bar for large files."""
    from rankwood.data.files import read_data

    with progress("reading", unit="bytes", quiet=quiet) as advance:
        return read_data(
            paths, zero_based=zero_based, n_threads=n_threads, n_features=n_features, queries=queries, progress=advance
        )
