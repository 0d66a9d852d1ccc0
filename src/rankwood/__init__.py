"""Tree rankers that are small, fast and provably as good.

Public names are imported on first use, so that `import rankwood` takes little longer than importing numpy.
"""

from __future__ import annotations

import importlib

from rankwood._version import __version__

TYPE_CHECKING = False  # importing typing would take as long as all else here
if TYPE_CHECKING:
    from typing import Any

    from rankwood.data.bins import BinnedDataset as BinnedDataset
    from rankwood.data.dataset import Dataset as Dataset
    from rankwood.data.files import open_data as open_data
    from rankwood.data.files import read_data as read_data
    from rankwood.data.statistics import Statistics as Statistics
    from rankwood.data.statistics import statistics as statistics
    from rankwood.data.svmlight import iter_svmlight as iter_svmlight
    from rankwood.data.svmlight import read_svmlight as read_svmlight
    from rankwood.data.svmlight import write_svmlight as write_svmlight
    from rankwood.data.synthetic import make_ranking as make_ranking
    from rankwood.data.tables import read_csv as read_csv
    from rankwood.data.tables import read_parquet as read_parquet
    from rankwood.data.tables import write_csv as write_csv
    from rankwood.data.tables import write_parquet as write_parquet
    from rankwood.data.trec import apply_qrels as apply_qrels
    from rankwood.data.trec import iter_qrels as iter_qrels
    from rankwood.data.trec import iter_run as iter_run
    from rankwood.data.trec import write_qrels as write_qrels
    from rankwood.data.trec import write_run as write_run
    from rankwood.errors import DataError as DataError
    from rankwood.errors import MeasureError as MeasureError
    from rankwood.errors import ModelError as ModelError
    from rankwood.errors import RankwoodError as RankwoodError
    from rankwood.evaluation.conventions import Convention as Convention
    from rankwood.evaluation.diagnostics import impurity_importance as impurity_importance
    from rankwood.evaluation.diagnostics import measure_curve as measure_curve
    from rankwood.evaluation.diagnostics import permutation_importance as permutation_importance
    from rankwood.evaluation.diagnostics import tree_correlation as tree_correlation
    from rankwood.evaluation.diagnostics import tree_strength as tree_strength
    from rankwood.evaluation.evaluator import Comparison as Comparison
    from rankwood.evaluation.evaluator import Evaluation as Evaluation
    from rankwood.evaluation.evaluator import Evaluations as Evaluations
    from rankwood.evaluation.evaluator import compare as compare
    from rankwood.evaluation.measures import Measure as Measure
    from rankwood.evaluation.measures import MeasureFunction as MeasureFunction
    from rankwood.evaluation.measures import parse_measure as parse_measure
    from rankwood.evaluation.partitions import evaluate as evaluate
    from rankwood.evaluation.significance import bootstrap_interval as bootstrap_interval
    from rankwood.evaluation.significance import equivalence_test as equivalence_test
    from rankwood.evaluation.significance import holm as holm
    from rankwood.evaluation.significance import in_sequence as in_sequence
    from rankwood.evaluation.significance import lower_bound as lower_bound
    from rankwood.evaluation.significance import non_inferiority_test as non_inferiority_test
    from rankwood.evaluation.significance import paired_t_test as paired_t_test
    from rankwood.evaluation.significance import queries_needed as queries_needed
    from rankwood.evaluation.significance import randomisation_test as randomisation_test
    from rankwood.evaluation.significance import wilcoxon_test as wilcoxon_test
    from rankwood.explaining.contributions import Explanation as Explanation
    from rankwood.explaining.contributions import PairExplanation as PairExplanation
    from rankwood.explaining.contributions import explain as explain
    from rankwood.explaining.drawing import TreeDrawing as TreeDrawing
    from rankwood.explaining.drawing import plot_tree as plot_tree
    from rankwood.explaining.listing import dump_tree as dump_tree
    from rankwood.explaining.listing import trees_to_dataframe as trees_to_dataframe
    from rankwood.fitting.refit import Refit as Refit
    from rankwood.fitting.refit import refit as refit
    from rankwood.fitting.ridge import Distil as Distil
    from rankwood.formats.registry import ConversionWarning as ConversionWarning
    from rankwood.formats.registry import load_model as load_model
    from rankwood.formats.registry import save_as as save_as
    from rankwood.integrations.logger import Logger as Logger
    from rankwood.integrations.mlflow import MLflowLogger as MLflowLogger
    from rankwood.integrations.optuna import OptunaPruningCallback as OptunaPruningCallback
    from rankwood.integrations.pyterrier import pyterrier_ranker as pyterrier_ranker
    from rankwood.integrations.tensorboard import TensorBoardLogger as TensorBoardLogger
    from rankwood.integrations.wandb import WandbLogger as WandbLogger
    from rankwood.lab.report.write import write_report as write_report
    from rankwood.lab.search import SearchSpace as SearchSpace
    from rankwood.lab.tune import TuneResult as TuneResult
    from rankwood.lab.tune import tune as tune
    from rankwood.model.additive import AdditiveModel as AdditiveModel
    from rankwood.model.early_exit import EarlyExit as EarlyExit
    from rankwood.model.ensemble import Ensemble as Ensemble
    from rankwood.model.trees import Tree as Tree
    from rankwood.model.visits import Usage as Usage
    from rankwood.model.visits import usage as usage
    from rankwood.pruning.accept import Acceptance as Acceptance
    from rankwood.pruning.accept import Proof as Proof
    from rankwood.pruning.cleaver import cleaver as cleaver
    from rankwood.pruning.grow_and_prune import grow_and_prune as grow_and_prune
    from rankwood.pruning.line_search import LineSearch as LineSearch
    from rankwood.pruning.pruner import PruningSettings as PruningSettings
    from rankwood.pruning.result import CleaverResult as CleaverResult
    from rankwood.scoring.engines import Engine as Engine
    from rankwood.scoring.engines import PreparedModel as PreparedModel
    from rankwood.scoring.engines import available_engines as available_engines
    from rankwood.scoring.engines import get_engine as get_engine
    from rankwood.shrinking.early_exit import early_exit as early_exit
    from rankwood.shrinking.path import Route as Route
    from rankwood.shrinking.path import ShrinkSettings as ShrinkSettings
    from rankwood.shrinking.result import ShrinkResult as ShrinkResult
    from rankwood.shrinking.result import ShrinkRow as ShrinkRow
    from rankwood.shrinking.shrink import shrink as shrink
    from rankwood.training.callbacks import early_stopping as early_stopping
    from rankwood.training.callbacks import log_evaluation as log_evaluation
    from rankwood.training.callbacks import record_evaluation as record_evaluation
    from rankwood.training.callbacks import reset_parameter as reset_parameter
    from rankwood.training.checkpoint import Checkpoint as Checkpoint
    from rankwood.training.correction import Corrective as Corrective
    from rankwood.training.estimators import DART as DART
    from rankwood.training.estimators import MART as MART
    from rankwood.training.estimators import XDART as XDART
    from rankwood.training.estimators import InitializedMART as InitializedMART
    from rankwood.training.estimators import LambdaMART as LambdaMART
    from rankwood.training.out_of_bag import out_of_bag_curve as out_of_bag_curve
    from rankwood.training.random_forest import RandomForest as RandomForest
    from rankwood.training.tasks import grade_probabilities as grade_probabilities
    from rankwood.verification.result import Verification as Verification
    from rankwood.verification.verify import verify as verify

_HOME_OF = {
    "Dataset": "rankwood.data.dataset",
    "AdditiveModel": "rankwood.model.additive",
    "Ensemble": "rankwood.model.ensemble",
    "Tree": "rankwood.model.trees",
    "EarlyExit": "rankwood.model.early_exit",
    "Engine": "rankwood.scoring.engines",
    "PreparedModel": "rankwood.scoring.engines",
    "available_engines": "rankwood.scoring.engines",
    "get_engine": "rankwood.scoring.engines",
    "load_model": "rankwood.formats.registry",
    "save_as": "rankwood.formats.registry",
    "ConversionWarning": "rankwood.formats.registry",
    "verify": "rankwood.verification.verify",
    "Verification": "rankwood.verification.result",
    "cleaver": "rankwood.pruning.cleaver",
    "CleaverResult": "rankwood.pruning.result",
    "Acceptance": "rankwood.pruning.accept",
    "Proof": "rankwood.pruning.accept",
    "PruningSettings": "rankwood.pruning.pruner",
    "LineSearch": "rankwood.pruning.line_search",
    "Refit": "rankwood.fitting.refit",
    "Route": "rankwood.shrinking.path",
    "ShrinkSettings": "rankwood.shrinking.path",
    "ShrinkResult": "rankwood.shrinking.result",
    "ShrinkRow": "rankwood.shrinking.result",
    "shrink": "rankwood.shrinking.shrink",
    "refit": "rankwood.fitting.refit",
    "Distil": "rankwood.fitting.ridge",
    "grow_and_prune": "rankwood.pruning.grow_and_prune",
    "early_exit": "rankwood.shrinking.early_exit",
    "tune": "rankwood.lab.tune",
    "TuneResult": "rankwood.lab.tune",
    "SearchSpace": "rankwood.lab.search",
    "write_report": "rankwood.lab.report.write",
    "Explanation": "rankwood.explaining.contributions",
    "PairExplanation": "rankwood.explaining.contributions",
    "explain": "rankwood.explaining.contributions",
    "TreeDrawing": "rankwood.explaining.drawing",
    "plot_tree": "rankwood.explaining.drawing",
    "dump_tree": "rankwood.explaining.listing",
    "trees_to_dataframe": "rankwood.explaining.listing",
    "Usage": "rankwood.model.visits",
    "usage": "rankwood.model.visits",
    "BinnedDataset": "rankwood.data.bins",
    "MART": "rankwood.training.estimators",
    "LambdaMART": "rankwood.training.estimators",
    "DART": "rankwood.training.estimators",
    "XDART": "rankwood.training.estimators",
    "InitializedMART": "rankwood.training.estimators",
    "grade_probabilities": "rankwood.training.tasks",
    "out_of_bag_curve": "rankwood.training.out_of_bag",
    "RandomForest": "rankwood.training.random_forest",
    "Checkpoint": "rankwood.training.checkpoint",
    "Corrective": "rankwood.training.correction",
    "early_stopping": "rankwood.training.callbacks",
    "log_evaluation": "rankwood.training.callbacks",
    "record_evaluation": "rankwood.training.callbacks",
    "reset_parameter": "rankwood.training.callbacks",
    "Logger": "rankwood.integrations.logger",
    "MLflowLogger": "rankwood.integrations.mlflow",
    "OptunaPruningCallback": "rankwood.integrations.optuna",
    "pyterrier_ranker": "rankwood.integrations.pyterrier",
    "TensorBoardLogger": "rankwood.integrations.tensorboard",
    "WandbLogger": "rankwood.integrations.wandb",
    "open_data": "rankwood.data.files",
    "read_data": "rankwood.data.files",
    "statistics": "rankwood.data.statistics",
    "Statistics": "rankwood.data.statistics",
    "iter_svmlight": "rankwood.data.svmlight",
    "read_svmlight": "rankwood.data.svmlight",
    "write_svmlight": "rankwood.data.svmlight",
    "read_csv": "rankwood.data.tables",
    "read_parquet": "rankwood.data.tables",
    "write_csv": "rankwood.data.tables",
    "write_parquet": "rankwood.data.tables",
    "apply_qrels": "rankwood.data.trec",
    "iter_qrels": "rankwood.data.trec",
    "iter_run": "rankwood.data.trec",
    "write_qrels": "rankwood.data.trec",
    "write_run": "rankwood.data.trec",
    "RankwoodError": "rankwood.errors",
    "DataError": "rankwood.errors",
    "ModelError": "rankwood.errors",
    "MeasureError": "rankwood.errors",
    "Convention": "rankwood.evaluation.conventions",
    "Comparison": "rankwood.evaluation.evaluator",
    "Evaluation": "rankwood.evaluation.evaluator",
    "Evaluations": "rankwood.evaluation.evaluator",
    "compare": "rankwood.evaluation.evaluator",
    "evaluate": "rankwood.evaluation.partitions",
    "measure_curve": "rankwood.evaluation.diagnostics",
    "tree_correlation": "rankwood.evaluation.diagnostics",
    "tree_strength": "rankwood.evaluation.diagnostics",
    "impurity_importance": "rankwood.evaluation.diagnostics",
    "permutation_importance": "rankwood.evaluation.diagnostics",
    "Measure": "rankwood.evaluation.measures",
    "MeasureFunction": "rankwood.evaluation.measures",
    "parse_measure": "rankwood.evaluation.measures",
    "make_ranking": "rankwood.data.synthetic",
    "bootstrap_interval": "rankwood.evaluation.significance",
    "equivalence_test": "rankwood.evaluation.significance",
    "holm": "rankwood.evaluation.significance",
    "in_sequence": "rankwood.evaluation.significance",
    "lower_bound": "rankwood.evaluation.significance",
    "non_inferiority_test": "rankwood.evaluation.significance",
    "paired_t_test": "rankwood.evaluation.significance",
    "queries_needed": "rankwood.evaluation.significance",
    "randomisation_test": "rankwood.evaluation.significance",
    "wilcoxon_test": "rankwood.evaluation.significance",
}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankwood' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
