"""Result of shrinking: the best model of every size on the path, and the one that was chosen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from rankwood.display import Column, as_html
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Comparison
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof
from rankwood.scoring.timing import Timing

Cost = Literal["leaves", "us"]


@dataclass(frozen=True)
class ShrinkRow:
    """One model of the path; None stands for what was not measured.

    Parameters
    ----------
    route : str
        How it came about; "input" is the model that was given, "refitted input" the same with other leaf values.
    n_trees, n_leaves, n_features : int
        Trees, leaves, and features in use.
    valid : float
        Measure on the validation queries that chose it.
    ensemble : Ensemble
        The model.
    proof : Proof or None
        What the queries that judge show of its loss; None for the input.
    us_per_doc : float or None
        Microseconds to score a document.
    test : float or None
        Measure on test data.
    test_difference : float or None
        The same, less that of the input.
    accepted : bool
        Whether it was shown to lose less than the margin, at its share of the level (`in_sequence`): larger models of
        the path may have failed.
    trees_evaluated : float
        Share of the trees that documents of the queries that judge go through; below 1 with early exit.
    """

    route: str
    n_trees: int
    n_leaves: int
    n_features: int
    valid: float
    ensemble: Ensemble
    proof: Proof | None = None
    us_per_doc: float | None = None
    test: float | None = None
    test_difference: float | None = None
    accepted: bool = False
    trees_evaluated: float = 1.0

    def cost(self, by: Cost) -> float:
        """Microseconds, as far as they were measured, or leaves.

        Parameters
        ----------
        by : {"leaves", "us"}
            What cheap means.
        """
        return float(self.n_leaves) if by == "leaves" or self.us_per_doc is None else self.us_per_doc

    def as_dict(self) -> dict[str, Any]:
        """All fields but the model, as JSON can hold them."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ensemble"}
        return {**plain, "proof": None if self.proof is None else self.proof.as_dict()}


@dataclass(frozen=True)
class ShrinkResult:
    """Result of `shrink`: the cheapest model that was shown to be good enough, and the path of all sizes.

    Parameters
    ----------
    ensemble : Ensemble
        The model that was chosen; the input itself when none was accepted.
    accepted : bool
        Whether a smaller model was accepted.
    reached : bool
        Whether the model is as small or as fast as was asked for; always true when nothing was.
    chosen : ShrinkRow
        Row of the model that was chosen, the first one when none was accepted.
    rows : tuple of ShrinkRow
        The input, the input with refitted leaves, then the best model of every size, the largest first. The chosen
        one with early exit stands behind the same without.
    measure : str
        Name of the measure.
    convention : Convention
        Convention of the measure.
    rule : Acceptance
        Margin and level of the proof.
    judging : {"unseen", "folds", "choosing"}
        What the queries that judged had to do with the models.
    test : Comparison or None
        The chosen model against the input on test data.
    test_proof : Proof or None
        What test data shows of the chosen model's loss.
    timings : tuple of Timing
        Scoring time of every row; empty unless speed was measured.
    interrupted : bool
        Whether the search was ended before the last size.
    exit : ShrinkRow or None
        Row of the chosen model with early exit, whether that is kept or dropped; None unless it was asked for, and when
        no smaller model was accepted.
    """

    ensemble: Ensemble
    accepted: bool
    reached: bool
    chosen: ShrinkRow
    rows: tuple[ShrinkRow, ...]
    measure: str
    convention: Convention
    rule: Acceptance
    judging: Judging
    test: Comparison | None = None
    test_proof: Proof | None = None
    timings: tuple[Timing, ...] = ()
    interrupted: bool = False
    exit: ShrinkRow | None = None

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows as dicts that JSON can hold, without the models."""
        return [row.as_dict() for row in self.rows]

    @property
    def proof(self) -> Proof | None:
        """What was shown of the chosen model, or of the largest one of the path when none was accepted."""
        return (self.chosen if self.accepted else self._nearest).proof

    @property
    def _nearest(self) -> ShrinkRow:
        return self.rows[min(2, len(self.rows) - 1)]

    @property
    def factor(self) -> float:
        """How many times fewer leaves the chosen model has."""
        return self.rows[0].n_leaves / max(self.chosen.n_leaves, 1)

    @property
    def speed_up(self) -> float | None:
        """How many times as fast the chosen model scores."""
        before, after = self.rows[0].us_per_doc, self.chosen.us_per_doc
        return None if before is None or after is None else before / after

    @property
    def is_loss(self) -> bool:
        """Whether the chosen model is significantly worse on test data, at the level of the rule."""
        return self.test is not None and self.test.difference < 0 and self.test.p_randomisation <= self.rule.alpha

    def summary(self) -> str:
        """The outcome in a sentence: sizes, speed-up, what was shown on which queries, and the verdict of test data.

        Returns
        -------
        str
            A sentence without a full stop.
        """
        full, chosen = self.rows[0], self.chosen
        if not self.accepted:
            shown = "" if self._nearest.proof is None else f"; of {self._nearest.n_leaves:,}, {self.proof_in_words()}"
            return f"no smaller model was accepted: the model keeps its {full.n_leaves:,} leaves{shown}"
        share = f" ({100 * chosen.trees_evaluated:.0f} % evaluated, with early exit)" if chosen is self.exit else ""
        faster = "" if self.speed_up is None else f", {self.speed_up:.1f}x as fast"
        missed = "" if self.reached else "; nothing as small as was asked for could be shown to be good enough"
        tested = "" if self.test is None else f"; on test data {self.verdict()}"
        lost = ", a significant loss" if self.is_loss else ""
        return (
            f"{chosen.n_leaves:,} of {full.n_leaves:,} leaves, {chosen.n_trees:,} of {full.n_trees:,} trees{share}, "
            f"{chosen.n_features:,} of {full.n_features:,} features{faster}: {self.proof_in_words()}"
            f"{self._without_exit()}{missed}{tested}{lost}"
        )

    def _without_exit(self) -> str:
        """Why there is no early exit although it was asked for."""
        if self.exit is None or self.exit.accepted or self.exit.proof is None:
            return ""
        if self.exit.proof.holds:  # but nobody stops
            loss = self.exit.ensemble.metadata["early_exit"]["loss"]
            return f"; no early exit: it would save no time at a loss of {loss:g} at most"
        return f"; no early exit: with it, {self.exit.proof.words()}"

    def proof_in_words(self) -> str:
        """What was shown, or what would be needed to show it.

        Returns
        -------
        str
            Part of a sentence; empty when no model was made.
        """
        return "" if self.proof is None else self.proof.words()

    def verdict(self) -> str:
        """Measure on test data before and after, the difference with its interval, and what that shows.

        Returns
        -------
        str
            Part of a sentence; empty without test data.
        """
        if self.test is None:
            return ""
        shown = "" if self.test_proof is None or self.is_loss else f"; {self.test_proof.words()}"
        return f"{self.chosen.test:.4f} (before: {self.rows[0].test:.4f}): {self.test.words()}{shown}"

    def __repr__(self) -> str:
        return f"ShrinkResult({self.summary()})"

    def _repr_html_(self) -> str:
        """What notebooks show: the outcome in a sentence, and the path of sizes."""
        rows = self.rows
        chosen = next((number for number, row in enumerate(rows) if row is self.chosen), None)
        columns = [
            Column("route", "", [row.route for row in rows]),
            Column("trees", ",", [row.n_trees for row in rows]),
            Column("leaves", ",", [row.n_leaves for row in rows]),
            Column("features", ",", [row.n_features for row in rows]),
            Column(f"{self.measure}, valid", ".4f", [row.valid for row in rows]),
            Column("difference at least", "+.4f", [None if row.proof is None else row.proof.lower for row in rows]),
            Column("us per document", ".3g", [row.us_per_doc for row in rows]),
            Column("test", ".4f", [row.test for row in rows]),
            Column("accepted", "", [None, *(row.accepted for row in rows[1:])]),
        ]
        return as_html("ShrinkResult", [self.summary()], columns, bold=chosen)
