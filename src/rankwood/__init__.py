"""rankwood: tree rankers that are small, fast and provably as good.

Names are imported on first use, so that `import rankwood` costs little more than numpy.
"""

from __future__ import annotations

import importlib

from rankwood._version import __version__

TYPE_CHECKING = False  # typing's own costs as much as all else here
if TYPE_CHECKING:
    from typing import Any

    from rankwood.data.binning import BinnedDataset as BinnedDataset
    from rankwood.data.dataset import Dataset as Dataset
    from rankwood.data.files import read_data as read_data
    from rankwood.data.svmlight import iter_svmlight as iter_svmlight
    from rankwood.data.svmlight import read_svmlight as read_svmlight
    from rankwood.data.svmlight_write import write_svmlight as write_svmlight
    from rankwood.data.synthetic import make_ranking as make_ranking
    from rankwood.data.tables import read_csv as read_csv
    from rankwood.data.tables import read_parquet as read_parquet
    from rankwood.data.tables import write_csv as write_csv
    from rankwood.data.tables import write_parquet as write_parquet
    from rankwood.data.trec import write_qrels as write_qrels
    from rankwood.data.trec import write_run as write_run
    from rankwood.engines.base import Engine as Engine
    from rankwood.engines.base import PreparedModel as PreparedModel
    from rankwood.engines.registry import available_engines as available_engines
    from rankwood.engines.registry import get_engine as get_engine
    from rankwood.ensemble import Ensemble as Ensemble
    from rankwood.errors import DataError as DataError
    from rankwood.errors import MeasureError as MeasureError
    from rankwood.errors import ModelError as ModelError
    from rankwood.errors import RankwoodError as RankwoodError
    from rankwood.evaluation.conventions import Convention as Convention
    from rankwood.evaluation.evaluate import Comparison as Comparison
    from rankwood.evaluation.evaluate import Evaluation as Evaluation
    from rankwood.evaluation.evaluate import compare as compare
    from rankwood.evaluation.evaluate import evaluate as evaluate
    from rankwood.evaluation.forest_diagnostics import measure_curve as measure_curve
    from rankwood.evaluation.forest_diagnostics import tree_correlation as tree_correlation
    from rankwood.evaluation.forest_diagnostics import tree_strength as tree_strength
    from rankwood.evaluation.importance import impurity_importance as impurity_importance
    from rankwood.evaluation.importance import permutation_importance as permutation_importance
    from rankwood.evaluation.measures import Measure as Measure
    from rankwood.evaluation.measures import parse_measure as parse_measure
    from rankwood.evaluation.significance import bootstrap_interval as bootstrap_interval
    from rankwood.evaluation.significance import equivalence_test as equivalence_test
    from rankwood.evaluation.significance import holm as holm
    from rankwood.evaluation.significance import non_inferiority_test as non_inferiority_test
    from rankwood.evaluation.significance import paired_t_test as paired_t_test
    from rankwood.evaluation.significance import randomisation_test as randomisation_test
    from rankwood.evaluation.significance import wilcoxon_test as wilcoxon_test
    from rankwood.formats.export import ConversionWarning as ConversionWarning
    from rankwood.formats.export import save_as as save_as
    from rankwood.formats.registry import load_model as load_model
    from rankwood.learners.callbacks import early_stopping as early_stopping
    from rankwood.learners.callbacks import log_evaluation as log_evaluation
    from rankwood.learners.callbacks import record_evaluation as record_evaluation
    from rankwood.learners.callbacks import reset_parameter as reset_parameter
    from rankwood.learners.checkpoint import Checkpoint as Checkpoint
    from rankwood.learners.dart import DART as DART
    from rankwood.learners.dart import XDART as XDART
    from rankwood.learners.initialized import InitializedMART as InitializedMART
    from rankwood.learners.ordinal import grade_probabilities as grade_probabilities
    from rankwood.learners.out_of_bag import out_of_bag_curve as out_of_bag_curve
    from rankwood.learners.presets import MART as MART
    from rankwood.learners.presets import LambdaMART as LambdaMART
    from rankwood.learners.random_forest import RandomForest as RandomForest
    from rankwood.pruning.cleaver import cleaver as cleaver
    from rankwood.pruning.distil import Distil as Distil
    from rankwood.pruning.growing import grow_and_prune as grow_and_prune
    from rankwood.pruning.line_search import LineSearch as LineSearch
    from rankwood.pruning.refit import Refit as Refit
    from rankwood.pruning.result import CleaverResult as CleaverResult
    from rankwood.reporting.write import write_report as write_report
    from rankwood.tree import Tree as Tree
    from rankwood.tuning.result import TuneResult as TuneResult
    from rankwood.tuning.space import SearchSpace as SearchSpace
    from rankwood.tuning.tune import tune as tune
    from rankwood.verification.result import Verification as Verification
    from rankwood.verification.verify import verify as verify
    from rankwood.visits import Usage as Usage
    from rankwood.visits import usage as usage

_HOME_OF = {
    "Dataset": "rankwood.data.dataset",
    "Ensemble": "rankwood.ensemble",
    "Tree": "rankwood.tree",
    "Engine": "rankwood.engines.base",
    "PreparedModel": "rankwood.engines.base",
    "available_engines": "rankwood.engines.registry",
    "get_engine": "rankwood.engines.registry",
    "load_model": "rankwood.formats.registry",
    "save_as": "rankwood.formats.export",
    "ConversionWarning": "rankwood.formats.export",
    "verify": "rankwood.verification.verify",
    "Verification": "rankwood.verification.result",
    "cleaver": "rankwood.pruning.cleaver",
    "CleaverResult": "rankwood.pruning.result",
    "LineSearch": "rankwood.pruning.line_search",
    "Refit": "rankwood.pruning.refit",
    "Distil": "rankwood.pruning.distil",
    "grow_and_prune": "rankwood.pruning.growing",
    "tune": "rankwood.tuning.tune",
    "TuneResult": "rankwood.tuning.result",
    "SearchSpace": "rankwood.tuning.space",
    "write_report": "rankwood.reporting.write",
    "Usage": "rankwood.visits",
    "usage": "rankwood.visits",
    "BinnedDataset": "rankwood.data.binning",
    "MART": "rankwood.learners.presets",
    "LambdaMART": "rankwood.learners.presets",
    "DART": "rankwood.learners.dart",
    "XDART": "rankwood.learners.dart",
    "InitializedMART": "rankwood.learners.initialized",
    "grade_probabilities": "rankwood.learners.ordinal",
    "out_of_bag_curve": "rankwood.learners.out_of_bag",
    "RandomForest": "rankwood.learners.random_forest",
    "Checkpoint": "rankwood.learners.checkpoint",
    "early_stopping": "rankwood.learners.callbacks",
    "log_evaluation": "rankwood.learners.callbacks",
    "record_evaluation": "rankwood.learners.callbacks",
    "reset_parameter": "rankwood.learners.callbacks",
    "read_data": "rankwood.data.files",
    "iter_svmlight": "rankwood.data.svmlight",
    "read_svmlight": "rankwood.data.svmlight",
    "write_svmlight": "rankwood.data.svmlight_write",
    "read_csv": "rankwood.data.tables",
    "read_parquet": "rankwood.data.tables",
    "write_csv": "rankwood.data.tables",
    "write_parquet": "rankwood.data.tables",
    "write_qrels": "rankwood.data.trec",
    "write_run": "rankwood.data.trec",
    "RankwoodError": "rankwood.errors",
    "DataError": "rankwood.errors",
    "ModelError": "rankwood.errors",
    "MeasureError": "rankwood.errors",
    "Convention": "rankwood.evaluation.conventions",
    "Comparison": "rankwood.evaluation.evaluate",
    "Evaluation": "rankwood.evaluation.evaluate",
    "compare": "rankwood.evaluation.evaluate",
    "evaluate": "rankwood.evaluation.evaluate",
    "measure_curve": "rankwood.evaluation.forest_diagnostics",
    "tree_correlation": "rankwood.evaluation.forest_diagnostics",
    "tree_strength": "rankwood.evaluation.forest_diagnostics",
    "impurity_importance": "rankwood.evaluation.importance",
    "permutation_importance": "rankwood.evaluation.importance",
    "Measure": "rankwood.evaluation.measures",
    "parse_measure": "rankwood.evaluation.measures",
    "make_ranking": "rankwood.data.synthetic",
    "bootstrap_interval": "rankwood.evaluation.significance",
    "equivalence_test": "rankwood.evaluation.significance",
    "holm": "rankwood.evaluation.significance",
    "non_inferiority_test": "rankwood.evaluation.significance",
    "paired_t_test": "rankwood.evaluation.significance",
    "randomisation_test": "rankwood.evaluation.significance",
    "wilcoxon_test": "rankwood.evaluation.significance",
}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankwood' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
