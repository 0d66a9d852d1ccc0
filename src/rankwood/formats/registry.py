"""Which formats there are, how to tell them by their content, and `load_model`, which reads any of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.formats.budget import Budget
from rankwood.formats.catboost_json import is_catboost_json, is_cbm
from rankwood.formats.jforests import is_jforests
from rankwood.formats.json_text import parse_json
from rankwood.formats.lightgbm_json import is_lightgbm_json, is_vespa
from rankwood.formats.lightgbm_text import is_lightgbm_text
from rankwood.formats.onnx_trees import is_onnx
from rankwood.formats.quickrank import is_quickrank
from rankwood.formats.ranklib import is_ranklib
from rankwood.formats.ubjson import is_ubjson, parse_ubjson
from rankwood.formats.xgboost_dump import from_xgboost_dump, is_xgboost_dump
from rankwood.formats.xgboost_json import is_xgboost_json
from rankwood.model_file import guarded, is_safetensors, open_model, read_rankwood, with_path

Source: TypeAlias = str | os.PathLike[str]

# What can be imported; exporters know the same names.
FORMATS = {
    "rankwood": "rankwood's own model file",
    "lightgbm": "LightGBM model text",
    "lightgbm-json": "LightGBM JSON dump",
    "vespa": "LightGBM JSON dump with thresholds for Vespa",
    "xgboost": "XGBoost model, JSON or UBJSON",
    "xgboost-dump": "XGBoost JSON dump",
    "catboost": "CatBoost model, JSON or .cbm",
    "sklearn": "fitted scikit-learn estimator (object)",
    "ranklib": "RankLib model text",
    "quickrank": "QuickRank XML",
    "jforests": "Jforests XML",
    "onnx": "ONNX tree ensemble",
    "ydf": "Yggdrasil Decision Forests model (object)",
}
OBJECTS_ONLY = ("sklearn", "ydf")

# Reader of the whole content, by format: module and function.
PARSERS = {
    "lightgbm": ("lightgbm_text", "parse_lightgbm_text"),
    "ranklib": ("ranklib", "parse_ranklib"),
    "quickrank": ("quickrank", "parse_quickrank"),
    "jforests": ("jforests", "parse_jforests"),
    "onnx": ("onnx_trees", "parse_onnx"),
}
# Of what JSON or UBJSON holds: how to tell, and the reader.
JSON_FORMATS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "xgboost": (is_xgboost_json, "xgboost_json", "from_xgboost_json"),
    "lightgbm-json": (is_lightgbm_json, "lightgbm_json", "from_lightgbm_json"),
    "vespa": (is_vespa, "lightgbm_json", "from_vespa"),
    "catboost": (is_catboost_json, "catboost_json", "from_catboost_json"),
    "xgboost-dump": (is_xgboost_dump, "xgboost_dump", "from_xgboost_dump"),
}
# Objects by the package that their class, or one that it derives from, is of.
OBJECTS = {
    "lightgbm": ("lightgbm_text", "from_booster"),
    "xgboost": ("xgboost_json", "from_booster"),
    "catboost": ("catboost_json", "from_catboost_model"),
    "sklearn": ("sklearn_trees", "from_estimator"),
    "ydf": ("ydf_trees", "from_ydf_model"),
    "onnx": ("onnx_trees", "from_onnx_model"),
}
START = 4096  # bytes that tell the format


def load_model(
    source: Any,
    format: str | None = None,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Ensemble:
    """Read a model: rankwood's own file or that of another tool, or take over a model object of another library.

    source         a path, or a LightGBM, XGBoost, CatBoost, scikit-learn, ydf or ONNX model
    format         name of the format (`rankwood.formats.registry.FORMATS`); told by the content unless given
    n_features     number of columns of the data, where the format does not say: there may be more than splits need
    feature_names  names of the columns; needed for their order when an XGBoost dump has names

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


def widen(model: Ensemble, n_features: int) -> Ensemble:
    """The model for data of `n_features` columns, if it came from a format that does not say how many there are.

    >>> widen(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), 3)
    Ensemble(1 trees, 2 leaves, 1 features)
    """
    if not width_is_open(model) or n_features <= model.n_features:
        return model
    return model.replace(n_features=n_features)


def width_is_open(model: Ensemble) -> bool:
    """Whether data may have more columns than the model: its file named only those that splits need."""
    return source_of(model).get("n_features") == "at least"


def source_of(model: Ensemble) -> dict[str, Any]:
    """What the importer noted of the model that this one was made of; nothing when it was trained here.

    format             name of its format
    n_features         "at least": the file named only the features that splits need
    n_nodes, n_leaves  as counted there, when splits on categories or around zero became several thresholds here
    """
    source = model.metadata.get("source")
    return source if isinstance(source, dict) else {}


def _fitted(model: Ensemble, n_features: int | None, feature_names: Sequence[str] | None) -> Ensemble:
    changes: dict[str, Any] = {}
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
    """The format of a file that begins so: a name of `FORMATS`, "json", "ubjson" or "cbm", or None."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_safetensors(start):
        return "rankwood"
    if is_cbm(start):
        return "cbm"
    if is_ubjson(start):
        return "ubjson"
    if text[:1] in (b"{", b"["):
        return "json"
    if is_lightgbm_text(text):
        return "lightgbm"
    if is_jforests(text):
        return "jforests"
    if is_quickrank(text):
        return "quickrank"
    if is_ranklib(text):
        return "ranklib"
    return "onnx" if is_onnx(start) else None


def _read(path: Source, format: str | None, names: list[str] | None, n_features: int | None) -> Ensemble:
    with open_model(path) as file:
        start = file.read(START)
        kind = recognise(start)
        if kind == "rankwood" and format in (None, "rankwood"):
            return read_rankwood(path, say_path=False)
        if kind is None and format is None:
            raise ModelError(_unknown(start))
        content = start + file.read()
    try:
        if format == "rankwood":
            return read_rankwood(path, say_path=False)
        return _parse(content, kind, format, names, n_features)
    except ModelError:
        other = None if format is None else _format_of(content, kind)
        if other in (None, format):
            raise
        raise ModelError(
            f"this is no {format} model but looks like {other} ({FORMATS[str(other)]}): leave the format out, and it "
            "is told by the content"
        ) from None


def _format_of(content: bytes, kind: str | None) -> str | None:
    """The format that a file is of by its looks, if it can be told."""
    if kind == "cbm":
        return "catboost"
    if kind not in ("json", "ubjson"):
        return kind
    try:
        return _format_of_value(_parse_value(content, kind))
    except ModelError:
        return None


def _format_of_value(value: Any) -> str | None:
    return next((name for name, (tells, *_) in JSON_FORMATS.items() if tells(value)), None)


def _parse_value(content: bytes, kind: str | None) -> Any:
    return guarded(kind or "JSON", lambda: parse_ubjson(content) if kind == "ubjson" else parse_json(content))


def _parse(
    content: bytes, kind: str | None, format: str | None, names: list[str] | None, n_features: int | None = None
) -> Ensemble:
    budget = Budget(len(content), n_features)
    if format in PARSERS or (format is None and kind in PARSERS):
        known = str(format or kind)
        return guarded(known, lambda: _call(PARSERS[known], content, budget))
    if kind == "cbm":
        return guarded("catboost", lambda: _call(("catboost_json", "parse_cbm"), content, budget))
    value = _parse_value(content, kind)
    told = format or _format_of_value(value)
    if told is None:
        raise ModelError("the JSON is of no model that rankwood knows; it reads: " + ", ".join(JSON_FORMATS))
    if told == "xgboost-dump":
        return guarded(told, lambda: from_xgboost_dump(value, names, budget=budget))
    return guarded(told, lambda: _call(JSON_FORMATS[told][1:], value, budget))


def _call(reader: tuple[str, str], source: Any, *budget: Budget) -> Ensemble:
    module, name = reader
    model: Ensemble = getattr(import_module(f"rankwood.formats.{module}"), name)(source, *budget)
    return model


def _unknown(start: bytes) -> str:
    if not start:
        what = "the file is empty"
    elif start[:1] == b"\x80":
        what = "this looks like a pickle, which could run any code: load it yourself and give load_model the object"
    else:
        what = "the content is in no model format that rankwood knows"
    return f"{what}; it reads: {', '.join(name for name in FORMATS if name not in OBJECTS_ONLY)}"


def package_of(model: Any, known: Container[str]) -> str | None:
    """The package, among those known, that the class of an object is of, or the nearest class that it derives from."""
    # An estimator of LightGBM or XGBoost is one of scikit-learn as well, but first of its own package.
    packages = (base.__module__.split(".")[0] for base in type(model).__mro__)
    return next((name for name in packages if name in known), None)


def _from_object(model: Any) -> Ensemble:
    ensemble = getattr(model, "ensemble_", None)
    if isinstance(ensemble, Ensemble):  # one of rankwood's own learners
        return ensemble
    package = package_of(model, OBJECTS)
    if package is None:
        known = ", ".join(OBJECTS)
        raise ModelError(
            f"a {type(model).__name__} is no model that rankwood knows: give a path, or a model of {known}"
        )
    try:
        return _call(OBJECTS[package], model)
    except RankwoodError:
        raise
    except Exception as error:  # whatever the library raises, for instance because the model is not fitted
        raise ModelError(f"the {type(model).__name__} cannot be imported: {one_line(error)}") from error
