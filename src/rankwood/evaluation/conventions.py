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
    """Rules for what the notation of a measure leaves open; presets give the numbers of other tools.

    `Convention.get` returns a preset by name: rankwood, lightgbm, xgboost, quickrank, ranklib, letor, yahoo, trec,
    sklearn.

    Parameters
    ----------
    name : str
        Stands in tables and reports.
    gain : {"exp", "linear"}, default "exp"
        Gain of a label in nDCG and DCG: 2^label - 1, or the label; negative labels gain 0.
    discount : {"log2", "letor"}, default "log2"
        Discount of a rank: 1/log2(1 + rank), or 1 at ranks 1 and 2, then 1/log2(rank).
    empty : {0, 1, "skip"}, default 0
        nDCG, AP and R of a query without relevant documents; "skip" leaves it out of the mean. Other measures of such a
        query are 0, or left out too.
    ties : {"order", "average", "docno"}, default "order"
        Among equal scores: "order" keeps the order of documents, "average" takes the mean over all orders, "docno" puts
        the larger document id first, as trec_eval does (ids are texts; without them rows are named d0, d1, ..., as in
        the files that `write_run` writes).
    short_lists : {"pad", "zero"}, default "pad"
        nDCG@k and DCG@k of a query with fewer than k documents: irrelevant ones are added, or it counts 0.
    relevant : float, default 1.0
        Least label of a relevant document (AP, RR, P, R, RBP).
    max_grade : float, default 4.0
        The largest label there can be (ERR).
    ap_divisor : {"R", "min(R,k)"}, default "R"
        What AP@k divides by, where R is the number of relevant documents.
    p_divisor : {"k", "min(k,n)"}, default "k"
        What P@k divides by, where n is the number of documents of the query.
    float32_scores : bool, default False
        Whether scores are rounded to 32 bits before they are compared.

    Examples
    --------
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
        """The preset of a name.

        Parameters
        ----------
        name : str or Convention
            A Convention is returned as it is.

        Raises
        ------
        MeasureError
            There is no such preset.
        """
        if isinstance(name, Convention):
            return name
        key = str(name).lower()
        if key not in CONVENTIONS:
            near = difflib.get_close_matches(key, CONVENTIONS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise MeasureError(f"unknown convention {name!r}{hint}: known are {', '.join(CONVENTIONS)}")
        return CONVENTIONS[key]

    def describe(self) -> str:
        """The rules in one line, for the foot of a table.

        Examples
        --------
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
