"""Models of Solr (`MultipleAdditiveTreesModel`) and Elasticsearch (`PUT _ml/trained_models/<id>`), read and written.

Solr sends a value left when `x <= threshold + 1e-6` in float32, Elasticsearch when `x <= threshold` in float64. Missing
values are 0 to Solr unless the file tells it, from version 9.2 on, to send them where splits say. What plugins and
Vespa take is written by `xgboost` (dumps), `ranklib_quickrank` and `lightgbm` (Vespa); of the bodies that plugins
store, what is around the model is read here.
"""

from __future__ import annotations

import base64
import json
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import ModelError, one_line
from rankwood.formats.reading import (
    UNLIMITED,
    USED_ONLY,
    Budget,
    TreeBuilder,
    as_column,
    at_most_float32,
    check_one_score,
    ensemble_of,
    entry,
    less_than,
    mixed_trees,
    never_left,
    number,
    numbered,
    parse_json,
    texts,
)
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
from rankwood.model.trees import COLUMNS, NEEDED, Trees
from rankwood.scoring.agreement import adversarial_rows
from rankwood.scoring.c_source import round_down

Singles: TypeAlias = NDArray[np.float32]
SLACK = np.float32(1e-6)
TELLS_MISSING = "9.2"  # version from which a file can tell Solr where missing values go (SOLR-16596)
CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
SOLR_STORES = ("models", "managedList")  # entries that list models: of the REST API's answer, and of its file
PACKED = 64 << 20, 100  # bytes that a compressed definition may unpack to: so many, and so many more per byte
MAX_LAYERS = 8  # of a plugin's body, one inside the other


# Solr, read.


def is_solr(value: Any) -> bool:
    """Whether a JSON value is a model of Solr, or a store of them."""
    return any(_is_solr_model(model) for model in _stored(value))


def _stored(value: Any) -> list[Any]:
    """Models of a store as Solr's REST API or its file has them, of a list to upload, or the value alone."""
    if isinstance(value, dict):
        value = next((value[key] for key in SOLR_STORES if isinstance(value.get(key), list)), value)
    return value if isinstance(value, list) else [value]


def _is_solr_model(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("class"), str) and "params" in value


def from_solr(value: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a model of Solr, as it is uploaded or downloaded: trees as Solr walks through them."""
    models = [model for model in _stored(value) if _is_solr_model(model)]
    if len(models) != 1:
        listed = ", ".join(one_line(model.get("name")) for model in models[:5])
        raise ModelError(f"the file has {len(models)} models of Solr, not one: keep one of them ({listed})")
    model = models[0]
    kind = model["class"].rsplit(".", 1)[-1]
    if kind == "DefaultWrapperModel":
        raise ModelError("the model of Solr only names the file that holds it, as its resource: import that file")
    if kind != CLASS.rsplit(".", 1)[-1]:
        raise ModelError(f"this is Solr's {one_line(kind)}: only MultipleAdditiveTreesModel is trees")
    params = entry(model, "params", kind=dict)
    names = [_solr_feature(feature) for feature in entry(model, "features", kind=list)]
    columns = numbered(names)
    reader = _SolrReader({name: place for place, name in enumerate(names)} if columns is None else columns)
    weights = []
    for at, tree in enumerate(entry(params, "trees", kind=list)):
        reader.where = f"tree {at}"
        weights.append(_java_number(entry(tree, "weight", where=reader.where), f"{reader.where}: its weight"))
        reader.builder.add(entry(tree, "root", kind=dict, where=reader.where), reader.read)
    if reader.unknown:
        warnings.warn(
            f"trees split on {one_line(', '.join(sorted(reader.unknown)), 200)}, which the model's features do not "
            "list: such a tree adds 0 as soon as it comes to that, in Solr and here",
            stacklevel=4,
        )
    width = {"features": USED_ONLY} if columns is None else {}
    zero_is_missing = str(params.get("isNullSameAsZero", True)).lower() == "true"
    with np.errstate(over="ignore", under="ignore"):
        trees = reader.builder.trees(lambda limits: at_most_float32(limits.astype(np.float32) + SLACK))
        if zero_is_missing:
            trees = trees.replace(missing_left=trees.threshold >= 0.0)
        return ensemble_of(
            trees.replace(leaf_value=trees.leaf_value.astype(np.float32).astype(np.float64)),
            source={"format": "solr", "missing": "zero" if zero_is_missing else "as splits say"} | width,
            n_features=len(names) if columns is None else None,
            tree_weights=np.array(weights, dtype=np.float64).astype(np.float32).astype(np.float64),
            feature_names=names if columns is None else None,
            budget=budget,
        )


def _solr_feature(feature: Any) -> str:
    """Name of a feature that is given to the trees as it is."""
    name: str = entry(feature, "name", kind=str, where="a feature")
    norm = feature.get("norm")
    if norm is not None and not str(entry(norm, "class", where="a norm")).endswith("IdentityNormalizer"):
        kind = one_line(str(norm["class"]).rsplit(".", 1)[-1])
        raise ModelError(f"Solr changes feature {one_line(name)} by {kind} before trees see it, which is not imported")
    return name


def _java_number(value: Any, what: str) -> float:
    """Number as Java's Float.parseFloat reads it, which takes `0.5f`, too."""
    if isinstance(value, str) and not value.isalpha():
        value = value.strip().removesuffix("f").removesuffix("F").removesuffix("d").removesuffix("D")
    found = number(value, what, text=True)
    if found != found:
        raise ModelError(f"{what} is NaN")
    return found


class _SolrReader:
    """Reads nodes of Solr's trees into a `TreeBuilder`."""

    def __init__(self, place: dict[str, int]) -> None:
        self.builder = TreeBuilder()
        self.place = place  # column of each feature
        self.unknown: set[str] = set()  # features that splits name and the model does not list
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if node.get("feature") is None:
            if "left" in node or "right" in node:
                raise ModelError(f"{self.where}: a node has children but no feature")
            return _java_number(node.get("value", 0.0), f"{self.where}: a leaf")
        name = entry(node, "feature", kind=str, where=self.where)
        threshold = _java_number(entry(node, "threshold", where=self.where), f"{self.where}: a threshold")
        children = [entry(node, side, kind=dict, where=self.where) for side in ("left", "right")]
        if name not in self.place:
            self.unknown.add(name)
            return 0.0
        return (self.place[name], threshold, *children, node.get("missing") == "left")


# Elasticsearch, read.


def is_elasticsearch(value: Any) -> bool:
    """Whether a JSON value is a trained model of Elasticsearch, its definition, or an answer that holds it."""
    return isinstance(value, dict) and any(
        isinstance(part, dict) and not part.keys().isdisjoint(("trained_model", "compressed_definition"))
        for part in (value, value.get("definition"), *_configs(value))
        for part in (part, part.get("definition") if isinstance(part, dict) else None)
    )


def _configs(value: dict[str, Any]) -> list[Any]:
    configs = value.get("trained_model_configs", [])
    return configs if isinstance(configs, list) else []


def from_elasticsearch(value: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a trained model of Elasticsearch: what is uploaded, or downloaded with its definition."""
    configs = _configs(value)
    if len(configs) > 1:
        raise ModelError(f"the file has {len(configs)} trained models, not one: keep one of them")
    value = configs[0] if configs else value
    if "compressed_definition" in value:
        value = _unpacked(entry(value, "compressed_definition", kind=str), budget)
    definition = entry(value, "definition", kind=dict) if "definition" in value else value
    if definition.get("preprocessors"):
        raise ModelError("the model has preprocessors, which change features before trees see them: import without")
    model = entry(definition, "trained_model", kind=dict)
    kind = next(iter(model), "nothing")
    if kind not in ("ensemble", "tree"):
        raise ModelError(f"the trained model is {one_line(kind)}: only an ensemble of trees or a tree can be imported")
    content = entry(model, kind, kind=dict)
    parts = entry(content, "trained_models", kind=list) if kind == "ensemble" else [model]
    reader = _ElasticsearchReader(content.get("feature_names"))
    for at, part in enumerate(parts):
        reader.add(entry(part, "tree", kind=dict, where=f"tree {at}"), f"tree {at}")
    return ensemble_of(
        reader.trees(),
        source={"format": "elasticsearch"},
        n_features=len(reader.place),
        tree_weights=_aggregate(content, len(parts)) if kind == "ensemble" else None,
        feature_names=list(reader.place),
        budget=budget,
    )


def _unpacked(text: str, budget: Budget) -> Any:
    """JSON that Elasticsearch has packed with gzip and base64."""
    try:
        unpacker = zlib.decompressobj(wbits=31)
        most = int(min(PACKED[0] + PACKED[1] * budget.n_bytes, 1 << 40))
        content = unpacker.decompress(base64.b64decode(text, validate=True), most)
        if not unpacker.eof:
            raise ModelError("the compressed definition is cut off, or too large to believe")
    except (ValueError, zlib.error) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the compressed definition is damaged: {one_line(error)}") from None
    return parse_json(content)


def _aggregate(ensemble: dict[str, Any], n_trees: int) -> Any:
    """Weights of the trees; what is done with their sum is left out, as it leaves rankings as they are."""
    ways = ensemble.get("aggregate_output", {"weighted_sum": {}})
    kind, settings = next(iter(ways.items()), ("", {})) if isinstance(ways, dict) else ("", {})
    if kind not in ("weighted_sum", "logistic_regression", "exponent") or not isinstance(settings, dict):
        raise ModelError(f"the trees are joined by {one_line(kind) or 'nothing'}: only sums can be imported")
    if settings.get("weights") is None:
        return None
    weights = as_column(settings["weights"], np.float64, "the weights of the trees")
    if len(weights) != n_trees:
        raise ModelError(f"the file is damaged: {n_trees} trees have {len(weights)} weights")
    return weights


class _ElasticsearchReader:
    """Collects the nodes of trees, which know each other by number."""

    def __init__(self, names: Any) -> None:
        given = [] if names is None else texts(names, "feature_names")
        self.place = {name: place for place, name in enumerate(given)}
        self.is_open = not given  # then the trees tell the features
        self.columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, "is_leaf")}
        self.sizes: list[int] = []

    def add(self, tree: dict[str, Any], where: str) -> None:
        """Add the nodes of a tree, in the order of their numbers."""
        names = tree.get("feature_names")
        own = list(self.place) if names is None else texts(names, f"feature_names of {where}")
        nodes = entry(tree, "tree_structure", kind=list, where=where)
        by_number = {entry(node, "node_index", kind=int, where=where): node for node in nodes}
        if by_number.keys() != set(range(len(nodes))):
            raise ModelError(f"{where}: its nodes are not numbered from 0 on, each once")
        for place in range(len(nodes)):
            row = self._read(by_number[place], own, where)
            for column, value in zip(self.columns.values(), row, strict=True):
                column.append(value)
        self.sizes.append(len(nodes))

    def _read(self, node: dict[str, Any], names: list[str], where: str) -> tuple[Any, ...]:
        """Entries of a node, in the order of `columns`."""
        if "left_child" not in node:
            value = entry(node, "leaf_value", where=where)
            if isinstance(value, list):
                check_one_score(len(value), "values in a leaf")
                value = entry(node, "leaf_value", 0, where=where)
            return 0, 0.0, -1, -1, False, number(value, f"{where}: a leaf"), True
        threshold = number(entry(node, "threshold", where=where), f"{where}: a threshold")
        kind = node.get("decision_type", "lte")
        if threshold != threshold or kind not in ("lt", "lte", "gt", "gte"):
            raise ModelError(f"{where}: there is no split by {one_line(kind)} {threshold}")
        feature = entry(node, "split_feature", kind=int, where=where)
        if not 0 <= feature < len(names):
            raise ModelError(f"{where}: there is no feature {one_line(feature)}")
        name = names[feature]
        if self.is_open:
            self.place.setdefault(name, len(self.place))
        if name not in self.place:
            raise ModelError(f"{where}: feature {one_line(name)} is not among those of the ensemble")
        children = [entry(node, side, kind=int, where=where) for side in ("left_child", "right_child")]
        missing_left = entry(node, "default_left", kind=bool, where=where) if "default_left" in node else False
        if kind in ("gt", "gte"):
            children, missing_left = children[::-1], not missing_left
        # Infinite values are missing to Elasticsearch: what is written for them stands for an infinite threshold.
        if kind in ("lt", "gte") and threshold > -LARGEST_DOUBLE:
            threshold = float(less_than(threshold)[0])
        elif abs(threshold) >= LARGEST_DOUBLE:
            threshold = float(np.copysign(np.inf, threshold))
        return self.place[name], threshold, *children, missing_left, 0.0, False

    def trees(self) -> Trees:
        """All trees, with links checked."""
        kinds = {"left": np.int64, "right": np.int64, "is_leaf": np.bool_}
        kept = {
            name: as_column(values, kinds[name] if name in kinds else COLUMNS[name].dtype, name)
            for name, values in self.columns.items()
        }
        return never_left(mixed_trees(sizes=np.array(self.sizes, dtype=np.int64), **kept)[0])


# Plugins of Elasticsearch and OpenSearch, read: what is stored around a model of RankLib or XGBoost.


@dataclass(frozen=True)
class PluginModel:
    """A model in the store of a learning-to-rank plugin.

    Parameters
    ----------
    type : str
        Such as `model/ranklib`.
    definition : object
        The model itself: a text, or JSON.
    names : list of str or None
        Names of the feature set, in the order of its features, where the body has it.
    """

    type: str
    definition: Any
    names: list[str] | None


def is_plugin(value: Any) -> bool:
    """Whether a JSON value is a body for or an answer of a learning-to-rank plugin."""
    return isinstance(value, dict) and any(_is_definition(part) for part, _ in _layers(value))


def _is_definition(part: dict[str, Any]) -> bool:
    return isinstance(part.get("type"), str) and part["type"].startswith("model/") and "definition" in part


def _layers(value: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The parts of a body, from the outermost inwards, each with the feature set that it or one around it has."""
    features = None
    for _ in range(MAX_LAYERS):
        features = value.get("feature_set", features)
        yield value, features
        hits = value.get("hits")
        inside = (
            hits[0] if isinstance(hits, list) and len(hits) == 1 else hits,
            value.get("_source"),
            value.get("model"),
        )
        inner = next((part for part in inside if isinstance(part, dict)), None)
        if inner is None:
            return
        value = inner


def plugin_model(value: Any) -> PluginModel:
    """The model inside a body that a plugin of Elasticsearch or OpenSearch takes or answers with."""
    layers = _layers(value) if isinstance(value, dict) else iter(())
    found = next(((part, features) for part, features in layers if _is_definition(part)), None)
    if found is None:
        raise ModelError("there is no model of a learning-to-rank plugin in it: no type and definition")
    model, features = found
    if model.get("feature_normalizers"):
        raise ModelError("the plugin normalises features before trees see them: import without feature_normalizers")
    names = None
    if isinstance(features, dict):
        listed = entry(features, "features", kind=list, where="the feature set")
        names = [entry(feature, "name", kind=str, where="a feature") for feature in listed]
    definition = model["definition"]
    if isinstance(definition, str) and "json" in model["type"]:
        definition = parse_json(definition.encode())
    return PluginModel(model["type"], definition, names)


# Solr, written.


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


# Elasticsearch, written.


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
