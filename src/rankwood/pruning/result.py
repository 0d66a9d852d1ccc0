"""Result of CLEaVER: a table of every model that it tried, and the model that it chose."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rankwood.display import Column, as_html
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Comparison
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof
from rankwood.scoring.timing import Timing


@dataclass(frozen=True)
class Row:
    """One model of the table; None stands for what was not measured.

    Parameters
    ----------
    rate : float
        Share of the trees that was removed; trees driven to weight 0 are gone besides.
    variant : str
        How the rest was re-weighed; "input" is the full model.
    n_trees : int
        Trees that are left.
    train : float
        Measure on the training queries that were searched.
    valid : float
        Measure on all of the validation data.
    ensemble : Ensemble
        The model.
    judged : float or None
        Measure on the queries that judge, when these are not those that chose; with folds, of the models that were
        made for each, on queries that did not choose them.
    test : float or None
        Measure on test data.
    speed_up : float or None
        Scoring time of the full model divided by that of this one (`CleaverResult.timings`).
    p_valid, p_test : float or None
        p-values of the randomisation test that it differs from the full model, on the data that judges and on test
        data.
    p_holm : float or None
        `p_valid` corrected for the number of models tried (Holm).
    p_inferior : float or None
        p-value of the test against a loss of the margin or more, not corrected: small is good.
    proof : Proof or None
        What the queries that judge show of its loss, corrected for the number of models; None when the rule has no
        margin.
    accepted : bool
        Whether it passes the rule.
    """

    rate: float
    variant: str
    n_trees: int
    train: float
    valid: float
    ensemble: Ensemble
    judged: float | None = None
    test: float | None = None
    speed_up: float | None = None
    p_valid: float | None = None
    p_holm: float | None = None
    p_test: float | None = None
    p_inferior: float | None = None
    proof: Proof | None = None
    accepted: bool = True

    @property
    def worth(self) -> float:
        """Measure on the data that judges, which is the validation data unless some is set aside."""
        return self.valid if self.judged is None else self.judged

    def as_dict(self) -> dict[str, Any]:
        """All fields but the model, as JSON can hold them."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ensemble"}
        return {**plain, "proof": None if self.proof is None else self.proof.as_dict()}


@dataclass(frozen=True)
class CleaverResult:
    """Result of `cleaver`: the smallest accepted model, and the table of all models that were tried.

    Parameters
    ----------
    ensemble : Ensemble
        The smallest accepted model; the input itself when none was accepted.
    accepted : bool
        Whether a smaller model was accepted.
    chosen : Row
        Row of the model that was chosen, the first one when none was accepted.
    rows : tuple of Row
        The full model, then every model tried. A row has `rate`, `variant`, `n_trees`, `train`, `valid`, `ensemble`,
        `judged`, `test`, `speed_up`, `p_valid`, `p_holm`, `p_test`, `p_inferior`, `proof` and `accepted`; None stands
        for what was not measured.
    measure : str
        Name of the measure.
    convention : Convention
        Convention of the measure.
    strategy : str
        Name of the strategy.
    rule : Acceptance
        Rule that a smaller model had to pass.
    judging : {"unseen", "folds", "choosing"}
        What the queries that judged had to do with the models: they chose nothing; or each judged, by
        cross-validation, models that it did not choose; or they chose them as well.
    needed_bytes : int
        Memory that the leaf numbers took.
    test : Comparison or None
        The chosen model against the input on test data. None without test data, when it has too few queries for a
        test, and when the input stays.
    test_proof : Proof or None
        What test data shows of the chosen model's loss. None without test data, when the input stays, and when the rule
        has no margin.
    timings : tuple of Timing
        Scoring time of every row, with what was measured: engine, batch, precision, threads. Empty unless speed was
        measured.
    timed_out : bool
        Whether the time was up before all models were tried.
    rates_left : tuple of float
        Rates that were then not tried, or not in all variants.
    """

    ensemble: Ensemble
    accepted: bool
    chosen: Row
    rows: tuple[Row, ...]
    measure: str
    convention: Convention
    strategy: str
    rule: Acceptance
    judging: Judging
    needed_bytes: int
    test: Comparison | None = None
    test_proof: Proof | None = None
    timings: tuple[Timing, ...] = ()
    timed_out: bool = False
    rates_left: tuple[float, ...] = ()

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows as dicts that JSON can hold, without the models."""
        return [row.as_dict() for row in self.rows]

    @property
    def valid_before(self) -> float:
        """Validation measure of the input."""
        return self.rows[0].valid

    @property
    def valid_after(self) -> float:
        """Validation measure of the chosen model."""
        return self.chosen.valid

    @property
    def is_loss(self) -> bool:
        """Whether the chosen model is significantly worse on test data, at the level of the rule."""
        return self.test is not None and self.test.difference < 0 and self.test.p_randomisation <= self.rule.alpha

    @property
    def promising(self) -> Row:
        """The chosen model; when none was accepted, the smaller one that the fewest queries would do for."""
        smaller = [row for row in self.rows[1:] if row.n_trees < self.rows[0].n_trees and row.proof is not None]
        if self.accepted or not smaller:
            return self.chosen
        return min(smaller, key=_effort)

    @property
    def proof(self) -> Proof | None:
        """What was shown of the chosen model, or of the most promising one when none was accepted (`promising`)."""
        return self.promising.proof

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """Columns of the table for plots, ordered by rate.

        Returns
        -------
        dict
            For every variant, its columns `rate`, `n_trees`, `train`, `valid`, `test` and `speed_up`, each a list.
        """
        names = ("rate", "n_trees", "train", "valid", "test", "speed_up")
        variants = dict.fromkeys(row.variant for row in self.rows[1:])
        return {
            variant: {name: [getattr(row, name) for row in self.rows[1:] if row.variant == variant] for name in names}
            for variant in variants
        }

    def summary(self) -> str:
        """The outcome in a sentence: sizes, speed-up, what was shown on which queries, and the verdict of test data.

        Returns
        -------
        str
            A sentence without a full stop.
        """
        early = f"; {self.early_end()}" if self.timed_out else ""
        if not self.accepted:
            return f"{self._refusal()}{early}"
        full, chosen = self.rows[0], self.chosen
        faster = "" if chosen.speed_up is None else f", {chosen.speed_up:.1f}x as fast"
        tested = "" if chosen.test is None else f"; on test data {self.verdict()}"
        lost = ", a significant loss" if self.is_loss else ""
        shown = (
            f"the rule {self.rule.rule!r} shows nothing of its loss" if chosen.proof is None else chosen.proof.words()
        )
        judges = "validation data" if chosen.judged is None else "the queries that judge"
        return (
            f"{chosen.n_trees:,} of {full.n_trees:,} trees ({chosen.variant}){faster}: {shown}; {self.measure} on "
            f"{judges} {chosen.worth:.4f} (before: {full.worth:.4f}){tested}{lost}{early}"
        )

    def _refusal(self) -> str:
        """Why the input stays, and how many queries would do."""
        full, best = self.rows[0], self.promising
        said = f"no smaller model was accepted (rule {self.rule.rule!r}): the model keeps its {full.n_trees:,} trees"
        if best.proof is None or best is full:
            return said
        return f"{said}; of the most promising, with {best.n_trees:,} trees ({best.variant}), {best.proof.words()}"

    def early_end(self) -> str:
        """What was not tried because the time was up.

        Returns
        -------
        str
            A sentence without a full stop; empty when the search came to its end.
        """
        if not self.timed_out:
            return ""
        tried = len({row.rate for row in self.rows[1:]} - set(self.rates_left))
        left = ", ".join(f"{100 * rate:g} %" for rate in self.rates_left)
        said = f"{tried} of {tried + len(self.rates_left)} rates were tried in full, not {left}"
        return f"the time was up before the search came to its end: {said if tried else 'no rate was tried in full'}"

    def verdict(self) -> str:
        """Measure of the chosen model on test data, its difference from the input, and what that shows.

        Returns
        -------
        str
            Part of a sentence; empty without test data.
        """
        if self.chosen.test is None:
            return ""
        values = f"{self.chosen.test:.4f} (before: {self.rows[0].test:.4f})"
        if self.test is None:
            return f"{values}, too few queries for a test" if self.accepted else values
        shown = "" if self.test_proof is None or self.is_loss else f"; {self.test_proof.words()}"
        return f"{values}: {self.test.words()}{shown}"

    def __repr__(self) -> str:
        return f"CleaverResult({self.summary()})"

    def _repr_html_(self) -> str:
        """What notebooks show: the outcome in a sentence, and every model that was tried."""
        rows = self.rows
        chosen = next((number for number, row in enumerate(rows) if row is self.chosen), None)
        columns = [
            Column("trees removed", ".0%", [row.rate for row in rows]),
            Column("variant", "", [row.variant for row in rows]),
            Column("trees", ",", [row.n_trees for row in rows]),
            Column(f"{self.measure}, valid", ".4f", [row.valid for row in rows]),
            Column("of queries that judge", ".4f", [row.judged for row in rows]),
            Column("test", ".4f", [row.test for row in rows]),
            Column("times as fast", ".1f", [row.speed_up for row in rows]),
            Column("accepted", "", [None, *(row.accepted for row in rows[1:])]),
        ]
        return as_html("CleaverResult", [self.summary()], columns, bold=chosen)


def _effort(row: Row) -> tuple[bool, int, float, int]:
    """How far a model is from being shown to be good enough: no number of queries would do, else how many."""
    assert row.proof is not None
    return row.proof.needed is None, row.proof.needed or 0, row.proof.p_value, row.n_trees
