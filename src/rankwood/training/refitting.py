"""The last step of a boosted learner, if it is wanted: the leaves of all its trees fitted once more, jointly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluator import Evaluator, scores_of
from rankwood.evaluation.measures import Measure
from rankwood.fitting.refit import Refit, refit_model
from rankwood.training.callbacks import as_mapping
from rankwood.training.driver import Session
from rankwood.training.losses import Loss
from rankwood.training.tasks import Task, check_one_target
from rankwood.training.watch import ScoredData

if TYPE_CHECKING:
    from rankwood.training.boosting import Boosted


@dataclass(frozen=True)
class Refitting:
    """How a trained model is refitted: to the gradients of its own loss, as far as validation data gains.

    Parameters
    ----------
    how : Refit
        Settings.
    loss : Loss
        What the trees were fitted to.
    train, valid : Evaluator
        The first measure bound to the training data and to the first validation data.
    session : Session
        That of the training, whose data sets are measured again.
    """

    how: Refit
    loss: Loss
    train: Evaluator
    valid: Evaluator
    session: Session

    @classmethod
    def of(cls, wanted: bool | Refit, loss: Loss, task: Task, train: Dataset, session: Session) -> Refitting | None:
        """What `wanted` means for a training that is about to begin; None when nothing is to be refitted.

        Where the loss has a constant hessian the steps of `True` are a third as long: there a step of length 1 leads to
        the minimum along all trees, and longer ones overshoot.
        """
        if wanted is False:
            return None
        check_one_target(task, "refit")
        if train.position is not None:
            raise RankwoodError(
                "refit knows nothing of positions, whose bias it would learn again: leave one of them out"
            )
        others = [data for data in session.valid.values() if data is not train]
        if not others:
            raise RankwoodError(
                "refit chooses its number of passes on validation data, of which there is none: give valid, or eval_set"
            )
        measure = next(iter(session.measures.measures), None)
        if not isinstance(measure, Measure):
            raise RankwoodError("refit goes by the first measure, which must be one of rankwood's, not a function")
        valid = others[0].data if isinstance(others[0], BinnedDataset) else others[0]
        convention, n_threads = session.measures.convention, session.n_threads
        bound = [Evaluator(data, measure, convention, by_query=True, n_threads=n_threads) for data in (train, valid)]
        default = Refit(rate=1.0) if loss.constant_hessian else Refit()
        return cls(default if wanted is True else wanted, loss, bound[0], bound[1], session)

    def apply(self, result: Boosted, n_fixed: int) -> Boosted:
        """The result with its ensemble refitted and measured again; the first `n_fixed` trees stay as they are.

        The input when Ctrl-C ended the training, or ends this while it is to be kept.
        """
        if result.driven.interrupted:
            return result
        try:
            model = refit_model(
                result.ensemble,
                self.train,
                self.valid,
                self.how,
                loss=self.loss,
                seed=self.session.seed,
                n_fixed=n_fixed,
            )
        except KeyboardInterrupt:
            if self.session.on_interrupt == "raise":
                raise
            return replace(result, driven=replace(result.driven, interrupted=True))
        if model is result.ensemble:
            return result
        found = []
        for name, given in self.session.valid.items():
            data = given.data if isinstance(given, BinnedDataset) else given
            scored = ScoredData(
                data, scores_of(model, data, n_threads=self.session.n_threads), n_threads=self.session.n_threads
            )
            found += scored.results(name, self.session.measures)
        return replace(result, ensemble=model, driven=replace(result.driven, best_score=as_mapping(found)))
