"""PyTerrier: rankers as the last step of a pipeline."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.data.trec import apply_qrels
from rankwood.dtypes import FeatureMatrix
from rankwood.errors import DataError, RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.packages import need


def pyterrier_ranker(model: Any) -> Any:
    """A PyTerrier transformer that ranks by a model, or by a learner that `fit` of the pipeline trains.

    Parameters
    ----------
    model : Ensemble or learner
        A model is used as it is. A learner is trained in place when the pipeline is fitted.

    Returns
    -------
    pyterrier.Estimator
        Its `fit(results, qrels, valid_results, valid_qrels)` takes data frames with columns `qid`, `docno` and
        `features`, and judgements; documents that are not judged count as 0, and validation data may be left out. Its
        `transform` gives the same frame with `score` and `rank`. Its `model` is the Ensemble.

    Examples
    --------
    In a pipeline::

        pipeline = bm25 >> (tf_idf ** pl2) >> rw.pyterrier_ranker(rw.LambdaMART(early_stopping_rounds=50))
        pipeline.fit(train_topics, qrels, valid_topics, qrels)
    """
    if not isinstance(model, Ensemble) and not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise RankwoodError(f"a model or a learner is needed, got {type(model).__name__}")
    return _kind()(model)


class RankerSteps:
    """What the transformer does; PyTerrier's base class adds how it is joined with others.

    Parameters
    ----------
    learner : Ensemble or learner
        As for `pyterrier_ranker`.
    """

    def __init__(self, learner: Any) -> None:
        super().__init__()
        self.learner = learner

    @property
    def model(self) -> Ensemble:
        """The model; an error before a learner is trained."""
        model = getattr(self.learner, "ensemble_", self.learner)
        if not isinstance(model, Ensemble):
            raise RankwoodError(f"{type(self.learner).__name__} is not trained yet: call fit of the pipeline")
        return model

    def fit(self, results: Any, qrels: Any, valid_results: Any = None, valid_qrels: Any = None) -> Any:
        """Train the learner.

        Parameters
        ----------
        results, valid_results : DataFrame
            Documents with `qid`, `docno` and `features`.
        qrels, valid_qrels : DataFrame
            Judgements with `qid`, `docno` and `label`.
        """
        if isinstance(self.learner, Ensemble):
            raise RankwoodError("a model that is trained already has no fit: give a learner, such as LambdaMART()")
        valid = None
        if valid_results is not None and len(valid_results):
            valid = dataset(valid_results, valid_qrels)
        self.learner.fit(dataset(results, qrels), valid=valid)
        return self

    def transform(self, results: Any) -> Any:
        """The documents with a score and a rank.

        Parameters
        ----------
        results : DataFrame
            Documents with `qid`, `docno` and `features`.
        """
        need("pyterrier", "a PyTerrier pipeline").validate.result_frame(
            results, extra_columns=["features"], context=self
        )
        ranked = results.copy()
        if len(ranked):
            queries = {} if self.model.exit is None else {"qid": ranked["qid"].to_numpy()}
            ranked["score"] = self.model.score(matrix(ranked), **queries)
        else:  # as PyTerrier asks to learn which columns come out
            ranked["score"] = np.zeros(0)
        return need("pyterrier.model", "a PyTerrier pipeline").add_ranks(ranked)

    def transform_outputs(self, columns: list[str]) -> list[str]:
        """Names of the columns that come out.

        Parameters
        ----------
        columns : list of str
            Those that come in.
        """
        return [*columns, *(name for name in ("score", "rank") if name not in columns)]

    def __reduce__(self) -> tuple[Any, ...]:
        return pyterrier_ranker, (self.learner,)

    def __repr__(self) -> str:
        return f"pyterrier_ranker({self.learner!r})"


@cache
def _kind() -> type[Any]:
    """The class of the transformers, made when PyTerrier is first needed, as its base class is there."""
    pyterrier = need("pyterrier", "a PyTerrier pipeline")
    return type("RankwoodRanker", (RankerSteps, pyterrier.Estimator), {"__doc__": RankerSteps.__doc__})


def dataset(results: Any, qrels: Any) -> Dataset:
    """Documents of a frame with the labels of judgements.

    Parameters
    ----------
    results : DataFrame
        Documents with `qid`, `docno` and `features`.
    qrels : DataFrame
        Judgements with `qid`, `docno` and `label`.
    """
    missing = [name for name in ("qid", "docno", "features") if name not in results.columns]
    if missing:
        found = ", ".join(map(str, results.columns))
        raise DataError(f"documents of a pipeline need a column {missing[0]}, got {found}")
    if not len(results):
        raise DataError("there are no documents to train on: the pipeline before found nothing")
    docnos = results["docno"].astype(str).tolist()
    return apply_qrels(Dataset(matrix(results), qid=results["qid"].to_numpy(), doc_ids=docnos), qrels)


def matrix(results: Any) -> FeatureMatrix:
    """The features of the documents, which stand as one array in every row.

    Parameters
    ----------
    results : DataFrame
        Documents with `features`.
    """
    try:
        stacked: FeatureMatrix = np.stack([np.atleast_1d(one) for one in results["features"]])
    except ValueError:
        lengths = sorted({np.size(one) for one in results["features"]})
        raise DataError(f"documents have different numbers of features: {', '.join(map(str, lengths))}") from None
    return stacked
