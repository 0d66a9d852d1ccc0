"""Conventions: what tools disagree on when they compute a measure of the same name.

The presets give the numbers of the tools they are named after; tests compare them with those that are installed.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Literal

from rankwood.errors import MeasureError
from rankwood.evaluation.measures import Empty

_CHOICES = {
    "gain": ("exp", "linear"),
    "discount": ("log2", "letor"),
    "empty": (0, 1, "skip"),
    "ties": ("order", "average", "docno"),
    "short_lists": ("pad", "zero"),
    "ap_divisor": ("R", "min(R,k)"),
    "p_divisor": ("k", "min(k,n)"),
}


@dataclass(frozen=True)
class Convention:
    """How measures are computed where their notation leaves it open. Build one, or take a preset by name.

    gain            of a label in nDCG and DCG: 'exp' (2^label - 1) or 'linear'; negative labels gain 0
    discount        of a rank: 'log2', 1/log2(1 + rank), or 'letor', 1 at ranks 1 and 2, then 1/log2(rank)
    empty           nDCG, AP and R of a query without relevant documents: 0, 1, or 'skip' (left out of the mean).
                    Other measures of such a query are 0, or left out too.
    ties            among equal scores: 'order' keeps the order of documents, 'average' takes the mean over all orders,
                    'docno' puts the larger document id first, as trec_eval does (ids are texts; without
                    them rows are named d0, d1, ..., as in the files that write_run writes)
    short_lists     nDCG@k and DCG@k of a query with fewer than k documents: 'pad' with irrelevant ones, or 'zero'
    relevant        least label of a relevant document (AP, RR, P, R, RBP)
    max_grade       ERR: the largest label there can be
    ap_divisor      AP@k divides by 'R', the number of relevant documents, or by 'min(R,k)'
    p_divisor       P@k divides by 'k', or by 'min(k,n)' for a query with n documents
    float32_scores  scores are rounded to 32 bits before they are compared

    >>> Convention.get("lightgbm").empty
    1
    >>> from dataclasses import replace
    >>> replace(Convention.get("rankwood"), name="mine", empty="skip").empty
    'skip'
    """

    name: str
    gain: Literal["exp", "linear"] = "exp"
    discount: Literal["log2", "letor"] = "log2"
    empty: Empty = 0
    ties: Literal["order", "average", "docno"] = "order"
    short_lists: Literal["pad", "zero"] = "pad"
    relevant: float = 1.0
    max_grade: float = 4.0
    ap_divisor: Literal["R", "min(R,k)"] = "R"
    p_divisor: Literal["k", "min(k,n)"] = "k"
    float32_scores: bool = False

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            value = getattr(self, field)
            if isinstance(value, bool) or value not in choices:
                raise MeasureError(f"{field} must be one of {', '.join(map(repr, choices))}, got {value!r}")
        if not math.isfinite(self.relevant):
            raise MeasureError(f"relevant must be a finite number, got {self.relevant!r}")
        if not 0 < self.max_grade <= 1000:
            raise MeasureError(f"max_grade must be above 0 and at most 1000, got {self.max_grade!r}")

    @classmethod
    def get(cls, name: str | Convention) -> Convention:
        """The preset of that name; a Convention is returned as it is."""
        if isinstance(name, Convention):
            return name
        key = str(name).lower()
        if key not in CONVENTIONS:
            near = difflib.get_close_matches(key, CONVENTIONS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise MeasureError(f"unknown convention {name!r}{hint}: known are {', '.join(CONVENTIONS)}")
        return CONVENTIONS[key]

    def describe(self) -> str:
        """One line for the foot of a table.

        >>> Convention.get("rankwood").describe()
        'rankwood: gain 2^label-1, discount 1/log2(1+rank), no relevant document counts 0, ties in document order'
        """
        parts = [
            "gain 2^label-1" if self.gain == "exp" else "gain label",
            "discount 1/log2(1+rank)" if self.discount == "log2" else "discount 1, 1, then 1/log2(rank)",
            "no relevant document " + ("left out" if self.empty == "skip" else f"counts {self.empty}"),
            {
                "order": "ties in document order",
                "average": "mean over tied orders",
                "docno": "ties by decreasing document id (without ids: d0, d1, ... by row)",
            }[self.ties],
        ]
        if self.short_lists == "zero":
            parts.append("nDCG@k of fewer than k documents counts 0")
        if self.relevant != 1.0:
            parts.append(f"relevant from label {self.relevant:g}")
        if self.max_grade != 4.0:
            parts.append(f"largest label {self.max_grade:g}")
        if self.ap_divisor != "R":
            parts.append("AP@k divided by min(relevant, k)")
        if self.p_divisor != "k":
            parts.append("P@k divided by min(k, documents)")
        if self.float32_scores:
            parts.append("scores as float32")
        return f"{self.name}: {', '.join(parts)}"


CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention("rankwood"),
        # LightGBM 4.7: relevant is a label above 0.5.
        Convention("lightgbm", empty=1, relevant=math.nextafter(0.5, 1.0), ap_divisor="min(R,k)"),
        # XGBoost 3.2: a measure written with a trailing '-' (ndcg@10-) counts empty queries 0.
        Convention("xgboost", empty=1, ap_divisor="min(R,k)", p_divisor="min(k,n)", float32_scores=True),
        Convention("quickrank"),
        Convention("ranklib", p_divisor="min(k,n)"),
        # Eval-Score-4.0.pl of LETOR 4.0. It computes no DCG@k; ours follows its nDCG@k.
        Convention("letor", discount="letor", short_lists="zero"),
        Convention("yahoo", empty=1),
        # trec_eval, also through pytrec_eval and ir-measures.
        Convention("trec", gain="linear", ties="docno", float32_scores=True),
        Convention("sklearn", gain="linear", ties="average"),
    )
}
