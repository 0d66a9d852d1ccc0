"""Models written in the formats of other tools: `save_as`, and the table of what can be written."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.export_parts import ConversionWarning as ConversionWarning
from rankwood.formats.export_parts import MissingRule, check_missing


@dataclass(frozen=True)
class Exporter:
    """A format that models can be written in.

    name     what `save_as(format=...)` and `rankwood convert --to` call it
    suffix   how its files end; the first is usual
    title    what reads it
    missing  what becomes of missing values there: "any" direction, always "right", or read as "zero"
    home     module and function that write it
    """

    name: str
    suffix: tuple[str, ...]
    title: str
    missing: MissingRule
    home: str

    @property
    def function(self) -> Callable[..., str | bytes | dict[Path, bytes]]:
        """Takes a model, a path and options: what to write to the path, or files by path."""
        module, name = self.home.split(":")
        function: Callable[..., str | bytes | dict[Path, bytes]] = getattr(
            importlib.import_module(f"rankwood.formats.{module}"), name
        )
        return function

    @property
    def limits(self) -> str:
        """In a sentence or two: what is exact and what is not."""
        module = self.home.split(":")[0]
        constant = "VESPA_LIMITS" if self.name == "vespa" else "LIMITS"
        limits: str = getattr(importlib.import_module(f"rankwood.formats.{module}"), constant)
        return limits

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that the format has besides `missing` and `feature_names`."""
        return tuple(
            name for name, p in inspect.signature(self.function).parameters.items() if p.kind is p.KEYWORD_ONLY
        )


_TABLE = (
    Exporter("rankwood", (".rw",), "rankwood", "any", "export_rankwood:export_rankwood"),
    Exporter("lightgbm", (".txt",), "LightGBM", "any", "export_lightgbm:export_lightgbm"),
    Exporter("lightgbm-json", (".json",), "LightGBM's dump", "any", "export_lightgbm_json:export_lightgbm_json"),
    Exporter("vespa", (".json",), "Vespa", "any", "export_lightgbm_json:export_vespa"),
    Exporter("xgboost", (".ubj", ".json"), "XGBoost", "any", "export_xgboost:export_xgboost"),
    Exporter("xgboost-dump", (".json",), "Elasticsearch-LTR", "any", "export_xgboost_dump:export_xgboost_dump"),
    Exporter("elasticsearch", (".json",), "Elasticsearch", "any", "export_elasticsearch:export_elasticsearch"),
    Exporter("ranklib", (".txt",), "RankLib", "zero", "export_ranklib:export_ranklib"),
    Exporter("quickrank", (".xml",), "QuickRank", "zero", "export_quickrank:export_quickrank"),
    Exporter("solr", (".json",), "Solr", "zero", "export_solr:export_solr"),
    Exporter("onnx", (".onnx",), "ONNX runtimes", "any", "export_onnx:export_onnx"),
    Exporter("c", (".c",), "C compilers", "any", "export_c:export_c"),
    Exporter("so", (".so",), "C programs", "any", "export_c:export_so"),
    Exporter("python", (".py",), "Python", "any", "export_python:export_python"),
    Exporter("numpy", (".py",), "Python with numpy", "any", "export_python:export_numpy"),
)  # fmt: skip
EXPORTERS: dict[str, Exporter] = {exporter.name: exporter for exporter in _TABLE}

_WITHOUT_FEATURES = ("rankwood", "c", "so", "python", "numpy")  # the only ones that take a constant over nothing

# What a suffix means when no format is named. Those that end in .json are too many to guess.
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

    `EXPORTERS` lists the formats, with the limits of each; without `format` the path's suffix decides. Thresholds are
    converted to how the tool compares, weights and base go where it has a place for them. What a tool cannot do
    exactly is refused (`ModelError`) or, where it only rounds, said in a `ConversionWarning` with the measured
    deviation. `missing="ignore"` says that no value will be missing, for tools that cannot send missing values where
    the model does. `feature_names` replaces the model's names. The file is written whole or not at all.

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
    check_missing(ensemble, exporter.title, exporter.missing, missing)
    content = exporter.function(ensemble, target, **options)
    files = content if isinstance(content, dict) else {target: content}
    for file_path, written in files.items():
        try:
            with atomic_write(file_path) as file:
                file.write(written.encode() if isinstance(written, str) else written)
        except OSError as error:
            raise ModelError(f"{file_path}: the model cannot be written: {error.strerror or error}") from None


def find_exporter(format: str | None, path: Path) -> Exporter:
    """The exporter by name or, without one, by the suffix of a path.

    >>> find_exporter(None, Path("model.onnx")).name
    'onnx'
    """
    if format is None:
        format = _BY_SUFFIX.get(path.suffix)
        if format is None:
            several = [e.name for e in _TABLE if path.suffix in e.suffix] or list(EXPORTERS)
            raise ModelError(f"{path}: the name does not tell the format; choose one of: {', '.join(several)}")
    if format not in EXPORTERS:
        raise ModelError(f"there is no format {format!r} to write; there are: {', '.join(EXPORTERS)}")
    return EXPORTERS[format]
