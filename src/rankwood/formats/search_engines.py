"""Models for Solr (`MultipleAdditiveTreesModel`) and Elasticsearch (`PUT _ml/trained_models/<id>`), written.

Solr sends a value left when `x <= threshold + 1e-6` in float32, Elasticsearch when `x <= threshold` in float64. Missing
values are 0 to Solr unless the file tells it, from version 9.2 on, to send them where splits say. What plugins and
Vespa read is written by `xgboost` (dumps), `ranklib_quickrank` and `lightgbm` (Vespa).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import ModelError
from rankwood.formats.writing import (
    LARGEST_DOUBLE,
    MEASURED_ROWS,
    check_missing,
    java_float,
    names_of,
    nested,
    not_with_zero,
    plain,
    single_leaves,
    warn,
)
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.agreement import adversarial_rows
from rankwood.scoring.c_source import round_down

Singles: TypeAlias = NDArray[np.float32]
SLACK = np.float32(1e-6)
TELLS_MISSING = "9.2"  # version from which a file can tell Solr where missing values go (SOLR-16596)
CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"


# Solr.


def export_solr(
    model: Ensemble,
    path: Path,
    *,
    name: str | None = None,
    store: str | None = None,
    version: str | int | None = None,
) -> str:
    """JSON of a model to upload to Solr's model store.

    Lists only the features that splits use, since Solr computes all that are listed. A model that takes missing values
    for 0 is written for every version.

    Parameters
    ----------
    name : str, optional
        Name of the model; that of the file unless given.
    store : str, optional
        Name of the feature store.
    version : str or int, optional
        Oldest version of Solr that shall load the model. Versions before 9.2 take missing values for 0; a model that
        does not is refused for them. Unless given, such a model is written for 9.2, and a warning says so.
    """
    model = plain(model)
    names = names_of(model)
    tells = _tells_missing(model, version)
    values = single_leaves(model, "Solr")
    thresholds = _thresholds(model, names)
    trees = []
    for tree in range(model.n_trees):
        root = "".join(
            nested(
                model,
                tree,
                lambda n: (
                    f'{{"feature": {json.dumps(names[model.feature[n]])}, '
                    f'"threshold": "{java_float(thresholds[n])}", '
                    + (f'"missing": "{"left" if model.missing_left[n] else "right"}", ' if tells else "")
                    + '"left": '
                ),
                lambda n: f'{{"value": "{java_float(values[n])}"}}',
                ', "right": ',
                "}",
            )
        )
        trees.append(f'{{"weight": "1.0", "root": {root}}}')
    used = np.unique(model.feature).tolist() or list(range(model.n_features))[:1]
    head: dict[str, Any] = {} if store is None else {"store": store}
    head |= {"class": CLASS, "name": path.stem if name is None else name}
    head |= {"features": [{"name": names[feature]} for feature in used]}
    params = '"isNullSameAsZero": false, ' if tells else ""
    return f'{json.dumps(head)[:-1]}, "params": {{{params}"trees": [\n' + ",\n".join(trees) + "\n]}}\n"


def _tells_missing(model: Ensemble, version: str | int | None) -> bool:
    """Whether the file must tell Solr where missing values go: refused for a version that cannot know."""
    parts = str(TELLS_MISSING if version is None else version).split(".")
    if isinstance(version, float) or not all(part.isdecimal() for part in parts):  # 9.10 is not 9.1
        raise ModelError(f"version must be one of Solr's as text, such as '9.2', got {version!r}")
    if not not_with_zero(model).any():
        return False
    if [int(part) for part in parts] < [int(part) for part in TELLS_MISSING.split(".")]:
        check_missing(model, f"Solr before {TELLS_MISSING}", "zero", "refuse")
    warn(
        f"the file is for Solr {TELLS_MISSING} and later, since the model does not take missing values for 0: earlier "
        'versions refuse it. Features need "defaultValue": "NaN" among their params, or else what is missing is 0'
    )
    return True


def _thresholds(model: Ensemble, names: list[str]) -> Any:
    """Thresholds to write for Solr, with a warning if it cannot compare with some of the model's."""
    written, reached = solr_thresholds(model.threshold)
    wanted = round_down(model.threshold)
    off = np.flatnonzero(reached != wanted)
    if len(off):
        gaps = np.abs(reached[off].astype(np.float64) - wanted[off])
        widest = off[gaps.argmax()]
        low, high = sorted((reached[widest], wanted[widest]))
        goes = "left instead of right" if reached[widest] > wanted[widest] else "right instead of left"
        deviation, n_rows = _deviation(model, reached.astype(np.float64), off)
        warn(
            f"Solr adds 1e-6 to thresholds in float32 and so cannot give {len(off)} of {model.n_nodes} of them: values "
            f"between such a threshold and the nearest that it can give, at most {gaps.max():.2g} away, may go the "
            f"other way, as {names[model.feature[widest]]} above {low!s} and up to {high!s}, which goes {goes}. Zero "
            f"and whole numbers go where they do here. Rows with such values score up to {deviation:.3g} more or less "
            f"(measured on {n_rows} rows)"
        )
    return written


def _deviation(model: Ensemble, reached: FloatArray, off: IndexArray) -> tuple[float, int]:
    """Largest difference of scores with the thresholds that Solr reaches, and the number of rows it was measured on.

    Only trees with thresholds that are `off` are compared, since all others score alike.
    """
    trees = np.unique(model.trees.tree_of_node[off])
    exact, moved = model.select(trees), model.replace(threshold=reached).select(trees)
    X = np.nan_to_num(adversarial_rows([exact, moved], max_rows=MEASURED_ROWS).single, nan=0.0, posinf=1.0, neginf=-1.0)
    return float(np.abs(exact.score(X) - moved.score(X)).max(initial=0.0)), len(X)


def solr_thresholds(thresholds: FloatArray) -> tuple[Singles, Singles]:
    """Thresholds t to write for Solr's `x <= t + 1e-6` in float32, and the sum that each of them gives.

    The sum should be the threshold rounded down to float32. Below zero and near it no t may give that sum, because
    float32 numbers lie closer around the sum than around t. Then the sum is the next one above or below that some t
    gives: the one with which 0, whole numbers and other short numbers still go the right way.

    Examples
    --------
    >>> written, reached = solr_thresholds(np.array([0.5, 100.0, 0.0, -1e-35]))
    >>> written.tolist(), reached.tolist()[:3], bool(0.0 <= reached[3])
    ([0.4999989867210388, 100.0, -9.999999974752427e-07, -1.0000001111620804e-06], [0.5, 100.0, 0.0], False)
    """
    wanted, place = np.unique(round_down(thresholds), return_inverse=True)
    below, above = _neighbours(wanted)
    with np.errstate(over="ignore", under="ignore"):
        low, high = below + SLACK, above + SLACK
        takes_above = low != wanted
        for number in np.flatnonzero(takes_above & (high != wanted)).tolist():
            takes_above[number] = _takes_above(low[number], wanted[number], high[number])
        written = np.where(takes_above, above, below)
        return written[place], (written + SLACK)[place]


def _neighbours(wanted: Singles) -> tuple[Singles, Singles]:
    """Numbers whose sums with the slack are nearest to each one wanted, from below and from above."""
    with np.errstate(over="ignore", under="ignore"):
        tried = [wanted - SLACK]
        for direction in (-np.inf, np.inf):
            step = tried[0]
            for _ in range(3):  # rounding the difference and the sum is off by less
                step = np.nextafter(step, np.float32(direction))
                tried.append(step)
        sums = np.stack(tried) + SLACK
    below = np.where(sums <= wanted, sums, np.float32(-np.inf)).argmax(axis=0)
    above = np.where(sums >= wanted, sums, np.float32(np.inf)).argmin(axis=0)
    columns = np.arange(len(wanted))
    return np.stack(tried)[below, columns], np.stack(tried)[above, columns]


def _takes_above(low: np.float32, wanted: np.float32, high: np.float32) -> bool:
    """Whether Solr shall compare with `high` rather than with `low`, when it cannot compare with `wanted`.

    `high` sends values in (wanted, high] left by mistake, `low` sends those in (low, wanted] right. The smaller gap is
    taken, but never the upper one with 0 in it. Of equal gaps it is the one whose numbers at `wanted` have more digits,
    since data holds mostly short numbers.
    """
    if wanted < 0 <= high:
        return False
    upper, lower = float(high) - float(wanted), float(wanted) - float(low)
    if upper != lower:
        return upper < lower
    return len(str(wanted)) <= len(str(np.nextafter(wanted, high)))


# Elasticsearch.


def export_elasticsearch(
    model: Ensemble,
    path: Path,
    *,
    feature_extractors: list[dict[str, Any]] | None = None,
    definition_only: bool = False,
) -> str:
    """JSON body for Elasticsearch's `PUT _ml/trained_models/<id>`.

    Parameters
    ----------
    feature_extractors : list of dict, optional
        Feature extractors of the learning-to-rank configuration. Without them the model is one for regression.
    definition_only : bool, default False
        Write the definition alone, for clients that take it apart.
    """
    model = plain(model)
    names = names_of(model)
    trees = [
        {"tree": {"feature_names": names, "target_type": "regression", "tree_structure": _nodes(model, tree)}}
        for tree in range(model.n_trees)
    ]
    ensemble = {
        "feature_names": names,
        "target_type": "regression",
        "trained_models": trees,
        "aggregate_output": {"weighted_sum": {}},
    }
    definition = {"preprocessors": [], "trained_model": {"ensemble": ensemble}}
    if definition_only:
        return json.dumps(definition, allow_nan=False)
    if feature_extractors is None:
        body: dict[str, Any] = {"input": {"field_names": names}, "inference_config": {"regression": {}}}
    else:  # the extractors are the input, and Elasticsearch allows no other
        body = {"inference_config": {"learning_to_rank": {"feature_extractors": feature_extractors}}}
    return json.dumps(body | {"definition": definition}, allow_nan=False)


def _nodes(model: Ensemble, tree: int) -> list[dict[str, Any]]:
    """Nodes of one tree for Elasticsearch: inner nodes with their numbers, then the leaves."""
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    n_nodes = nodes.stop - nodes.start
    left, right = (np.where(c >= 0, c, n_nodes + ~c).tolist() for c in (model.left[nodes], model.right[nodes]))
    structure: list[dict[str, Any]] = []
    features, thresholds = model.feature[nodes].tolist(), model.threshold[nodes].tolist()
    for node, goes_left in enumerate(model.missing_left[nodes].tolist()):
        # Elasticsearch takes infinite values for missing, so `<= inf` holds for all others and `<= -inf` for none. It
        # holds -0.0 to be less than 0.0, so the threshold is never -0.0: both zeros are `<= 0.0`.
        threshold = thresholds[node] + 0.0
        structure.append(
            {
                "node_index": node,
                "decision_type": "lt" if threshold == -np.inf else "lte",
                "threshold": min(max(threshold, -LARGEST_DOUBLE), LARGEST_DOUBLE),
                "split_feature": features[node],
                "default_left": goes_left,
                "left_child": left[node],
                "right_child": right[node],
            }
        )
    values = model.leaf_value[leaves].tolist()
    structure += [{"node_index": n_nodes + leaf, "leaf_value": value} for leaf, value in enumerate(values)]
    return structure


# Limits of what is written: what is exact and what is not.

SOLR_LIMITS = (
    "Solr compares `x <= threshold + 1e-6` in float32; thresholds are written so that the sum is the true one, and "
    "where no float32 does that (some below 1e-6 or negative) 0 and whole numbers still go the right way and a warning "
    "says which values may not. Leaves are float32 and so is their sum. Missing values go where splits say from Solr "
    "9.2 on, if features have NaN for their default; before, and in other features, they are 0."
)
ELASTICSEARCH_LIMITS = (
    "Every float64 value goes the same way (`lte`), but Elasticsearch reads infinite values as missing. It sums in "
    "float64 and corrects for rounding, so that last digits differ; its final score is a float32."
)
