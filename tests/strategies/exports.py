"""Models and rows for exporters, and exporting with the warnings at hand."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from rankwood.formats.registry import find_exporter
from rankwood.formats.writing import ConversionWarning, check_missing, missing_with_zero, on_thresholds
from strategies.ensembles import ensembles, rows_near_thresholds


def exported(model, target, /, *, missing="refuse", suffix=".json", **options):
    """What the exporter would write, and the texts of its warnings."""
    exporter = find_exporter(target, Path("model"))
    if check_missing(model, exporter.title, exporter.missing, missing) and exporter.missing == "told":
        model = missing_with_zero(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if not exporter.sets:
            model = on_thresholds(model, exporter.title)
        content = exporter.function(model, Path("model" + suffix), **options)
    assert all(issubclass(warning.category, ConversionWarning) for warning in said)
    return content, [str(warning.message) for warning in said]


@st.composite
def models_and_rows(draw, *, dtype=None, **kinds):
    """An ensemble, without sets unless asked for, and rows near its thresholds."""
    model = draw(ensembles(**{"sets": False} | kinds))
    return model, draw(rows_near_thresholds(model, dtype=dtype))


def telling(model):
    """The same trees with leaf values that tell which leaf it is, even in float32, and without weights and base."""
    return model.replace(leaf_value=np.arange(1.0, model.n_leaves + 1), tree_weights=np.ones(model.n_trees), base=0.0)


def outputs(model, X):
    """Value of the leaf that each row reaches in each tree."""
    return model.leaf_value[model.leaf_offsets[:-1] + model.leaves(X)]


def single_bound(model):
    """How far a sum in float32 may be off."""
    values = np.abs(np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value)
    largest = abs(model.base) + sum(values[slice(*model.leaf_offsets[t : t + 2])].max() for t in range(model.n_trees))
    return 1e-45 + 6e-8 * (model.n_trees + 2) * largest
