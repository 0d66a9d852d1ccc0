"""The list of model formats: `load_model` reads any of them, `save_as` writes any of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.formats import (
    catboost,
    lightgbm,
    onnx,
    ranklib_quickrank,
    search_engines,
    sklearn,
    source_code,
    vespa_expression,
    xgboost,
    ydf,
)
from rankwood.formats.reading import USED_ONLY, Budget, parse_json
from rankwood.formats.refused import is_coreml, refusal
from rankwood.formats.ubjson import is_ubjson, parse_ubjson
from rankwood.formats.writing import ConversionWarning as ConversionWarning
from rankwood.formats.writing import MissingRule, check_missing, missing_with_zero, on_thresholds, without_exit
from rankwood.model.ensemble import Ensemble
from rankwood.model.file import guarded, is_safetensors, model_bytes, open_model, parse_model, with_path

# Reading: the formats, how to tell them by their content, and `load_model`.

Source: TypeAlias = str | os.PathLike[str]
Reader: TypeAlias = Callable[..., Ensemble]  # from the content of a file and a `Budget`, or from an object

# Formats that can be imported; exporters use the same names.
FORMATS = {
    "rankwood": "rankwood's own model file",
    "lightgbm": "LightGBM model text",
    "lightgbm-json": "LightGBM JSON dump",
    "vespa": "LightGBM JSON dump with thresholds for Vespa, and other tools' files as Vespa takes them",
    "vespa-expression": "Vespa ranking expression of trees",
    "xgboost": "XGBoost model, JSON or UBJSON",
    "xgboost-dump": "XGBoost JSON dump",
    "catboost": "CatBoost model, JSON or .cbm",
    "solr": "Solr MultipleAdditiveTreesModel, JSON",
    "elasticsearch": "Elasticsearch trained model, JSON",
    "elasticsearch-ltr": "model in the store of a learning-to-rank plugin of Elasticsearch or OpenSearch, JSON",
    "sklearn": "fitted scikit-learn estimator (object)",
    "ranklib": "RankLib model text",
    "quickrank": "QuickRank XML",
    "jforests": "Jforests XML",
    "onnx": "ONNX tree ensemble",
    "ydf": "Yggdrasil Decision Forests model (object)",
}
OBJECTS_ONLY = ("sklearn", "ydf")

# Readers of the bytes of a file.
PARSERS: dict[str, Reader] = {
    "lightgbm": lightgbm.parse_lightgbm_text,
    "ranklib": ranklib_quickrank.parse_ranklib,
    "quickrank": ranklib_quickrank.parse_quickrank,
    "jforests": ranklib_quickrank.parse_jforests,
    "onnx": onnx.parse_onnx,
    "vespa-expression": vespa_expression.parse_expression,
}


def _from_vespa(value: Any, budget: Budget) -> Ensemble:
    """Ensemble of a file as Vespa reads it: a dump of LightGBM or XGBoost, or XGBoost's model."""
    if xgboost.is_xgboost_json(value):
        return xgboost.from_xgboost_json(value, budget, xgboost.VESPA_MODEL)
    if xgboost.is_xgboost_dump(value):
        return xgboost.from_xgboost_dump(value, budget=budget, reading=xgboost.VESPA_DUMP)
    return lightgbm.from_vespa(value, budget)


def _from_plugin(value: Any, budget: Budget) -> Ensemble:
    """Ensemble of a model in the store of a learning-to-rank plugin, with the names of its feature set."""
    stored = search_engines.plugin_model(value)
    if stored.type == "model/ranklib" and isinstance(stored.definition, str):
        model = ranklib_quickrank.parse_ranklib(stored.definition.encode(), budget)
    elif stored.type == "model/xgboost+json":
        model = xgboost.from_xgboost_dump(stored.definition, stored.names, budget=budget)
    elif stored.type == "model/xgboost+json+raw":
        model = xgboost.from_xgboost_json(stored.definition, budget, xgboost.PLUGIN_MODEL)
    else:
        known = "model/ranklib, model/xgboost+json and model/xgboost+json+raw"
        raise ModelError(f"a model of type {one_line(stored.type)} is not read: of plugins, {known} are trees")
    source = source_of(model) | {"format": "elasticsearch-ltr", "type": stored.type}
    model = model.with_metadata(source=source)
    if stored.names is None or model.feature_names == tuple(stored.names):
        return model
    # Models that know features by number mean those of the feature set.
    if model.n_features > len(stored.names):
        raise ModelError(f"the model looks at feature {model.n_features}, and its set has {len(stored.names)} features")
    closed = {name: fact for name, fact in source.items() if name != "n_features"}
    return model.replace(
        n_features=len(stored.names), feature_names=stored.names, metadata=model.metadata | {"source": closed}
    )


# Readers of a parsed JSON or UBJSON value, each with the test that tells its format.
JSON_FORMATS: dict[str, tuple[Callable[[Any], bool], Reader]] = {
    "xgboost": (xgboost.is_xgboost_json, xgboost.from_xgboost_json),
    "lightgbm-json": (lightgbm.is_lightgbm_json, lightgbm.from_lightgbm_json),
    "vespa": (lightgbm.is_vespa, _from_vespa),
    "catboost": (catboost.is_catboost_json, catboost.from_catboost_json),
    "solr": (search_engines.is_solr, search_engines.from_solr),
    "elasticsearch": (search_engines.is_elasticsearch, search_engines.from_elasticsearch),
    "elasticsearch-ltr": (search_engines.is_plugin, _from_plugin),
    "xgboost-dump": (xgboost.is_xgboost_dump, xgboost.from_xgboost_dump),
}
# Readers of model objects, by the package that defines their class or a base of it.
OBJECTS: dict[str, Reader] = {
    "lightgbm": lightgbm.from_booster,
    "xgboost": xgboost.from_booster,
    "catboost": catboost.from_catboost_model,
    "sklearn": sklearn.from_estimator,
    "ydf": ydf.from_ydf_model,
    "onnx": onnx.from_onnx_model,
}
VESPA_TAKES = ("vespa", "lightgbm-json", "xgboost", "xgboost-dump")  # what is read as format "vespa"
START = 4096  # bytes at the beginning of a file, which tell its format


def load_model(
    source: Any,
    format: str | None = None,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Ensemble:
    """Ensemble read from a model file of rankwood or another tool, or made of a model object of another library.

    Parameters
    ----------
    source : str, path or object
        A model file; or a fitted learner, or a model of LightGBM, XGBoost, CatBoost, scikit-learn, ydf or ONNX.
    format : str, optional
        Name of the format, a key of `rankwood.formats.registry.FORMATS`. Unless given, the content of the file tells.
    n_features : int, optional
        Number of columns of the data, where the format does not tell it: by default only as many as splits need.
    feature_names : sequence of str, optional
        Names of the columns. An XGBoost dump with names needs them, since it does not tell their order.

    Returns
    -------
    Ensemble
        A model that sends every value, also a missing one, where the source does. `metadata["source"]` notes the
        format.

    Raises
    ------
    ModelError
        If the source cannot be read, or is a model that cannot be imported exactly.

    See Also
    --------
    save_as : Write a model in the format of another tool.
    verify : Compare the scores of two models.

    Examples
    --------
    >>> import rankwood as rw, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.rw")
    >>> rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).save(path)
    >>> rw.load_model(path)
    Ensemble(1 trees, 2 leaves, 1 features)
    """
    if format is not None and format not in FORMATS:
        raise ModelError(f"there is no model format {format!r}; there are {', '.join(FORMATS)}")
    if isinstance(source, Ensemble):
        model = source
    elif isinstance(source, (str, os.PathLike)):
        if format in OBJECTS_ONLY:
            raise ModelError(f"{format} models are taken from the library's objects, not from files: {FORMATS[format]}")
        names = list(feature_names) if feature_names is not None else None
        model = with_path(source, lambda: _read(source, format, names, n_features))
    else:
        model = _from_object(source)
    return _fitted(model, n_features, feature_names)


def widen(model: Ensemble, n_features: int, names: Sequence[str] | None = None) -> Ensemble:
    """Model for data of `n_features` columns, if its format left open how many there are; else the model itself.

    Parameters
    ----------
    model : Ensemble
    n_features : int
        Number of columns.
    names : sequence of str, optional
        Names of the columns, for a model whose file names only the features that it uses.

    Examples
    --------
    >>> widen(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), 3)
    Ensemble(1 trees, 2 leaves, 1 features)
    """
    if names_used_only(model) and names is not None and set(model.feature_names or ()) < set(names):
        place = np.array([list(names).index(name) for name in model.feature_names or ()], dtype=np.int32)
        return model.replace(n_features=len(names), feature_names=names, feature=place[model.feature], exit=model.exit)
    if not width_is_open(model) or n_features <= model.n_features:
        return model
    return model.replace(n_features=n_features)


def names_used_only(model: Ensemble) -> bool:
    """Whether the model's file names the features that it uses, and the data may have others, in any order."""
    return source_of(model).get("features") == USED_ONLY


def width_is_open(model: Ensemble) -> bool:
    """Whether data may have more columns than the model, because its file told only those that splits need."""
    return source_of(model).get("n_features") == "at least"


def source_of(model: Ensemble) -> dict[str, Any]:
    """Notes of the importer on the file or object that the model was read from; empty when rankwood trained it.

    Returns
    -------
    dict
        Among others `format`, its name; `n_features`, "at least" if the file told only the features that splits need;
        `n_nodes` and `n_leaves`, as counted there, if splits on categories or around zero became several thresholds.
    """
    source = model.metadata.get("source")
    return source if isinstance(source, dict) else {}


def _fitted(model: Ensemble, n_features: int | None, feature_names: Sequence[str] | None) -> Ensemble:
    """Model with the width and the names that the caller of `load_model` gave."""
    changes: dict[str, Any] = {}
    if feature_names is not None:
        model = widen(model, 0, feature_names)
    if n_features is not None and n_features != model.n_features:
        if n_features < model.n_features or not width_is_open(model):
            raise ModelError(f"the model is of {model.n_features} features, not of {n_features}")
        changes["n_features"] = n_features
    if feature_names is not None and model.feature_names != tuple(feature_names):
        if width_is_open(model) and len(feature_names) > model.n_features:
            changes["n_features"] = len(feature_names)
        changes["feature_names"] = list(feature_names)
    if "n_features" in changes:
        source = {name: fact for name, fact in source_of(model).items() if name != "n_features"}
        changes["metadata"] = model.metadata | {"source": source}
    return model.replace(**changes) if changes else model


def recognise(start: bytes) -> str | None:
    """Format of a file that begins with these bytes: a key of `FORMATS`, "json", "ubjson" or "cbm", or None."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_safetensors(start):
        return "rankwood"
    if catboost.is_cbm(start):
        return "cbm"
    if is_ubjson(start):
        return "ubjson"
    if text[:1] in (b"{", b"["):
        return "json"
    if lightgbm.is_lightgbm_text(text):
        return "lightgbm"
    if ranklib_quickrank.is_jforests(text):
        return "jforests"
    if ranklib_quickrank.is_quickrank(text):
        return "quickrank"
    if ranklib_quickrank.is_ranklib(text):
        return "ranklib"
    if vespa_expression.is_expression(text):
        return "vespa-expression"
    return "onnx" if onnx.is_onnx(start) and not is_coreml(start) else None


def _read(path: Source, format: str | None, names: list[str] | None, n_features: int | None) -> Ensemble:
    with open_model(path) as file:
        start = file.read(START)
        kind = recognise(start)
        if kind == "rankwood" and format in (None, "rankwood"):
            return guarded("rankwood", lambda: parse_model(file, Ensemble))
        if kind is None and format is None:
            raise ModelError(_unknown(start))
        content = guarded(format or str(kind), lambda: start + file.read())
    try:
        if format == "rankwood":
            return guarded("rankwood", lambda: parse_model(BytesIO(content), Ensemble))
        return _parse(content, kind, format, names, n_features)
    except ModelError:
        other = None if format is None else _format_of(content, kind)
        if other in (None, format) or (format == "vespa" and other in VESPA_TAKES):
            raise
        raise ModelError(
            f"this is no {format} model but looks like {other} ({FORMATS[str(other)]}): leave the format out, and it "
            "is told by the content"
        ) from None


def _format_of(content: bytes, kind: str | None) -> str | None:
    """Key of `FORMATS` that the content of a file looks like, or None."""
    if kind == "cbm":
        return "catboost"
    if kind not in ("json", "ubjson"):
        return kind
    try:
        return _format_of_value(_parse_value(content, kind))
    except ModelError:
        return None


def _format_of_value(value: Any) -> str | None:
    return next((name for name, (tells, _) in JSON_FORMATS.items() if tells(value)), None)


def _parse_value(content: bytes, kind: str | None) -> Any:
    return guarded(kind or "JSON", lambda: parse_ubjson(content) if kind == "ubjson" else parse_json(content))


def _parse(
    content: bytes, kind: str | None, format: str | None, names: list[str] | None, n_features: int | None = None
) -> Ensemble:
    budget = Budget(len(content), n_features)
    if format in PARSERS or (format is None and kind in PARSERS):
        known = str(format or kind)
        return guarded(known, lambda: PARSERS[known](content, budget))
    if kind == "cbm":
        return guarded("catboost", lambda: catboost.parse_cbm(content, budget))
    value = _parse_value(content, kind)
    told = format or _format_of_value(value)
    if told is None:
        raise ModelError("the JSON is of no model that rankwood knows; rankwood reads: " + ", ".join(JSON_FORMATS))
    if told == "xgboost-dump":
        return guarded(told, lambda: xgboost.from_xgboost_dump(value, names, budget=budget))
    return guarded(told, lambda: JSON_FORMATS[told][1](value, budget))


def _unknown(start: bytes) -> str:
    known = refusal(start)
    if known is not None:
        return known
    if not start:
        what = "the file is empty"
    else:
        what = "the content is in no model format that rankwood knows"
    return f"{what}; rankwood reads: {', '.join(name for name in FORMATS if name not in OBJECTS_ONLY)}"


def package_of(model: Any, known: Container[str]) -> str | None:
    """Name of the package, among `known`, that defines the class of an object or the nearest of its bases."""
    # An estimator of LightGBM or XGBoost also derives from scikit-learn's, but its own package comes first.
    packages = (base.__module__.split(".")[0] for base in type(model).__mro__)
    return next((name for name in packages if name in known), None)


def _from_object(model: Any) -> Ensemble:
    ensemble = getattr(model, "ensemble_", None)
    if isinstance(ensemble, Ensemble):  # a fitted learner of rankwood
        return ensemble
    package = package_of(model, OBJECTS)
    if package is None:
        known = ", ".join(OBJECTS)
        raise ModelError(
            f"a {type(model).__name__} is no model that rankwood knows: give a path, or a model of {known}"
        )
    try:
        return OBJECTS[package](model)
    except RankwoodError:
        raise
    except Exception as error:  # whatever the library raises, for instance because the model is not fitted
        raise ModelError(f"the {type(model).__name__} cannot be imported: {one_line(error)}") from error


# Serving: what search engines make of the files that they are given.


@dataclass(frozen=True)
class ServingEngine:
    """A search engine that scores with models.

    Parameters
    ----------
    title : str
        Its name.
    formats : tuple of str
        Formats that it takes, keys of `FORMATS`.
    written : str
        The one that is written for it, a key of `EXPORTERS`.
    sums_single : tuple of str
        Those of which it adds up leaves in float32, of features in float32.
    """

    title: str
    formats: tuple[str, ...]
    written: str
    sums_single: tuple[str, ...]


_PLUGIN = ("elasticsearch-ltr", "xgboost-dump", "ranklib")
SERVING = {
    "solr": ServingEngine("Solr", ("solr",), "solr", ("solr",)),
    "elasticsearch": ServingEngine("Elasticsearch", ("elasticsearch", *_PLUGIN), "elasticsearch", _PLUGIN),
    "opensearch": ServingEngine("OpenSearch", _PLUGIN, "xgboost-dump", _PLUGIN),
    "vespa": ServingEngine("Vespa", ("vespa", "vespa-expression"), "vespa", ()),
}


def load_served(path: Source, engine: str) -> Ensemble:
    """Ensemble of a model file as a search engine reads it; of a file that the engine does not take an error.

    Parameters
    ----------
    path : str or path
        The file as it is deployed, or as the engine gives it back.
    engine : str
        A key of `SERVING`.
    """
    if engine not in SERVING:
        raise ModelError(f"there is no search engine {engine!r}; there are: {', '.join(SERVING)}")
    served = SERVING[engine]
    if engine == "vespa":
        return load_model(path, with_path(path, lambda: _vespa_format(path)))
    model = load_model(path)
    with open_model(path) as file:
        is_own = recognise(file.read(START)) == "rankwood"
    format = "rankwood" if is_own else str(source_of(model).get("format"))
    if format not in served.formats:
        raise ModelError(
            f"{os.fspath(path)}: {served.title} takes no {format} file: it takes {', '.join(served.formats)}; "
            "rankwood convert writes them"
        )
    return model


def _vespa_format(path: Source) -> str:
    """Format that Vespa reads a file in, or an error if it takes no such file."""
    with open_model(path) as file:
        content = file.read()
    kind = recognise(content[:START])
    told = _format_of(content, kind)
    if told == "vespa-expression":
        return told
    if told == "xgboost" and kind == "json":
        raise ModelError("Vespa takes XGBoost's model as UBJSON, not as JSON: save_model('model.ubj')")
    if told not in VESPA_TAKES:
        known = "LightGBM's dump, XGBoost's dump or .ubj, and what rankwood convert --to vespa writes"
        raise ModelError(f"Vespa takes no {told or 'such'} file; of trees it takes {known}")
    return "vespa"


# Writing: the formats, and `save_as`.


@dataclass(frozen=True)
class Exporter:
    """A format that models can be written in.

    Parameters
    ----------
    name : str
        Name for `save_as(format=...)` and `rankwood convert --to`.
    suffix : tuple of str
        Suffixes of its files, the usual one first.
    title : str
        The tool that reads it.
    missing : {"any", "told", "right", "zero"}
        Where the tool sends missing values: where each split says, so but only if the file tells it to, always right,
        or where 0 goes.
    function : callable
        From a model, a path and options to the content of the file, or to the contents of several files by path.
    limits : str
        What is exact and what is not, in a sentence or two.
    sets : bool, default False
        Whether it takes models with splits on sets, all or some of which the format holds; for others these are written
        as single thresholds before.
    check : callable, optional
        Raises an error if a package or a compiler that `function` needs is missing; to be called before long work.
    """

    name: str
    suffix: tuple[str, ...]
    title: str
    missing: MissingRule
    function: Callable[..., str | bytes | dict[Path, bytes]]
    limits: str
    check: Callable[[], object] = lambda: None
    sets: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the format, besides `missing` and `feature_names`, which all have."""
        return tuple(
            name for name, p in inspect.signature(self.function).parameters.items() if p.kind is p.KEYWORD_ONLY
        )


RANKWOOD_LIMITS = "Everything: trees, weights, base, names, metadata, gains, counts and early exit."


def export_rankwood(model: Ensemble, path: Path) -> bytes:
    """Content of a model file as `Ensemble.save` writes it."""
    return model_bytes(model)


_TABLE = (
    Exporter("rankwood", (".rw",), "rankwood", "any", export_rankwood, RANKWOOD_LIMITS, sets=True),
    Exporter("lightgbm", (".txt",), "LightGBM", "any", lightgbm.export_lightgbm, lightgbm.LIGHTGBM_LIMITS,
             sets=True),
    Exporter("lightgbm-json", (".json",), "LightGBM's dump", "any", lightgbm.export_lightgbm_json,
             lightgbm.LIGHTGBM_JSON_LIMITS, sets=True),
    Exporter("vespa", (".json",), "Vespa", "any", lightgbm.export_vespa, lightgbm.VESPA_LIMITS),
    Exporter("xgboost", (".ubj", ".json"), "XGBoost", "any", xgboost.export_xgboost, xgboost.XGBOOST_LIMITS,
             sets=True),
    Exporter("xgboost-dump", (".json",), "Elasticsearch-LTR", "any", xgboost.export_xgboost_dump,
             xgboost.XGBOOST_DUMP_LIMITS),
    Exporter("elasticsearch", (".json",), "Elasticsearch", "any", search_engines.export_elasticsearch,
             search_engines.ELASTICSEARCH_LIMITS),
    Exporter("ranklib", (".txt",), "RankLib", "zero", ranklib_quickrank.export_ranklib,
             ranklib_quickrank.RANKLIB_LIMITS),
    Exporter("quickrank", (".xml",), "QuickRank", "zero", ranklib_quickrank.export_quickrank,
             ranklib_quickrank.QUICKRANK_LIMITS),
    Exporter("solr", (".json",), "Solr", "told", search_engines.export_solr, search_engines.SOLR_LIMITS),
    Exporter("onnx", (".onnx",), "ONNX runtimes", "any", onnx.export_onnx, onnx.ONNX_LIMITS, onnx.check_package,
             sets=True),
    Exporter("c", (".c",), "C compilers", "any", source_code.export_c, source_code.C_LIMITS, sets=True),
    Exporter("so", (".so",), "C programs", "any", source_code.export_so, source_code.C_LIMITS,
             source_code.need_compiler, sets=True),
    Exporter("python", (".py",), "Python", "any", source_code.export_python, source_code.PYTHON_LIMITS, sets=True),
    Exporter("numpy", (".py",), "Python with numpy", "any", source_code.export_numpy, source_code.PYTHON_LIMITS,
             sets=True),
)  # fmt: skip
EXPORTERS: dict[str, Exporter] = {exporter.name: exporter for exporter in _TABLE}

_WITHOUT_FEATURES = ("rankwood", "c", "so", "python", "numpy")  # these hold a model without features

# Format by suffix when none is named. Several formats end in .json, so that suffix is not here.
_BY_SUFFIX = {".rw": "rankwood", ".txt": "lightgbm", ".ubj": "xgboost", ".xml": "quickrank", ".onnx": "onnx",
              ".c": "c", ".so": "so", ".py": "python"}  # fmt: skip


def save_as(
    model: Any,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    missing: str = "refuse",
    feature_names: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Write a model in the format of another tool, so that it scores there as it does here.

    Thresholds are converted to the way the tool compares; weights and base go where it has a place for them. The file
    is written whole or not at all.

    Parameters
    ----------
    model : Ensemble or fitted learner
        The model to write.
    path : str or path
        The file to write.
    format : str, optional
        Name of the format, a key of `rankwood.formats.registry.EXPORTERS`, which also tells the limits of each. Unless
        given, the suffix of the path decides.
    missing : {"refuse", "ignore"}, default "refuse"
        What to do when the tool cannot send missing values where the model does. "ignore" promises that none will be
        missing.
    feature_names : sequence of str, optional
        Names of the features, instead of the model's own.
    **options
        Options of the format, such as `version=5` for ONNX: `EXPORTERS[format].options`.

    Raises
    ------
    ModelError
        If the tool cannot score the model as rankwood does, or the file cannot be written.

    Warns
    -----
    ConversionWarning
        If the tool only rounds: the warning tells by how much scores differ, as measured. If the model has early exit,
        which only rankwood's own format holds. If it splits on sets that the tool cannot hold, and so grows.

    See Also
    --------
    load_model : Read a model of any format.
    verify : Compare the scores of two models.

    Examples
    --------
    >>> import rankwood as rw, tempfile, os
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], base=10.0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.txt")
    >>> rw.save_as(model, path, "lightgbm")
    >>> "leaf_value=11.0 12.0" in open(path).read()
    True
    """
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(f"a model to write must be an Ensemble or a fitted learner, got {type(model).__name__}")
    target = Path(path)
    exporter = find_exporter(format, target)
    unknown = sorted(set(options) - set(exporter.options))
    if unknown:
        known = ", ".join((*exporter.options, "missing", "feature_names"))
        raise ModelError(f"format {exporter.name!r} has no option {unknown[0]!r}; it has: {known}")
    if feature_names is not None:
        ensemble = ensemble.replace(feature_names=feature_names)
    if ensemble.n_features == 0 and exporter.name not in _WITHOUT_FEATURES:
        raise ModelError(f"{exporter.title} cannot hold a model without features")
    with_zero = check_missing(ensemble, exporter.title, exporter.missing, missing)
    if exporter.name != "rankwood":
        ensemble = without_exit(ensemble, exporter.title)
    if not exporter.sets:
        ensemble = on_thresholds(ensemble, exporter.title)
    if with_zero and exporter.missing == "told":
        ensemble = missing_with_zero(ensemble)
    content = exporter.function(ensemble, target, **options)
    files = content if isinstance(content, dict) else {target: content}
    try:
        with ExitStack() as stack:  # every file is written before the first is put in place
            for file_path, written in files.items():
                file = stack.enter_context(atomic_write(file_path))
                file.write(written.encode() if isinstance(written, str) else written)
                file.flush()
    except OSError as error:
        named = error.filename or target
        raise ModelError(f"{named}: the model cannot be written: {error.strerror or error}") from None


def exporters_of(path: Path) -> list[Exporter]:
    """Exporters whose files have the suffix of the path."""
    return [exporter for exporter in _TABLE if path.suffix in exporter.suffix]


def find_exporter(format: str | None, path: Path) -> Exporter:
    """Exporter of a format by name or, without a name, by the suffix of the path.

    Examples
    --------
    >>> find_exporter(None, Path("model.onnx")).name
    'onnx'
    """
    if format is None:
        format = _BY_SUFFIX.get(path.suffix)
        if format is None:
            several = [exporter.name for exporter in exporters_of(path)] or list(EXPORTERS)
            raise ModelError(
                f"{path}: the name does not tell the format; choose with --to (in Python: format=) one of: "
                f"{', '.join(several)}"
            )
    if format not in EXPORTERS:
        raise ModelError(f"there is no format {format!r} to write; there are: {', '.join(EXPORTERS)}")
    return EXPORTERS[format]
