"""The page of a report: one HTML file with sentences, style, script and numbers inside."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rankwood.lab.report.facts import ALPHA, Bins, Estimate, Extreme, ModelFacts, Pair, Reasons, ReportFacts
from rankwood.lab.report.reasons import MOST_RANKED
from rankwood.lab.study import p_text
from rankwood.printable import printable

# The headline, and numbers as texts.


def summarise(facts: ReportFacts) -> list[str]:
    """Return the headline by the first measure, and perhaps a sentence on the best model."""
    if len(facts.models) == 1:
        return [_alone(facts)]
    model = headline_model(facts)
    sentences = [_none_smaller(facts)] if model is None else [_headline(facts, model), _savings(facts, model)]
    better = [m for m in facts.models if m is not facts.base and _is_better(facts, m)]
    if better:
        best = max(better, key=lambda m: m.quality[facts.measures[0]].value)
        sentences.append(f"{best.name} is significantly better than {facts.base.name}: {_difference(facts, best)}.")
    return sentences


def headline_numbers(facts: ReportFacts) -> list[tuple[str, str]]:
    """Return the numbers of the headline, each with its description."""
    measure, base = facts.measures[0], facts.base
    model = headline_model(facts)
    if model is None:
        return [
            (f"{base.quality[measure].value:.4f}", f"{measure} of {base.name}"),
            (f"{number(base.timing.us_per_doc)} µs", "per document"),
            (f"{base.n_trees:,}", "trees"),
            (f"{base.n_leaves:,}", "leaves"),
        ]
    found = model.difference[measure]
    verdict = "shown" if found.is_as_good else "not shown"
    return [
        (verdict, f"that {model.name} loses less than {facts.margin:g} of {measure}"),
        (signed(found.value), f"{measure} against {base.name}{_within(found, signed)}"),
        (f"{model.speed_up.value:.1f}×", f"as fast{_within(model.speed_up, number)}"),
        (f"{100 * model.n_leaves / base.n_leaves:.0f} %", f"of the leaves: {model.n_leaves:,} of {base.n_leaves:,}"),
    ]


def headline_model(facts: ReportFacts) -> ModelFacts | None:
    """Return the model of the headline; None when no model is smaller than the baseline, by leaves.

    It is the smallest one that is shown to lose less than the margin, or else the one that loses least.
    """
    measure = facts.measures[0]
    smaller = [model for model in facts.models if model.n_leaves < facts.base.n_leaves]
    shown = [model for model in smaller if model.difference[measure].is_as_good]
    if shown:
        return min(shown, key=lambda model: model.n_leaves)
    return max(smaller, key=lambda model: model.difference[measure].value, default=None)


def _alone(facts: ReportFacts) -> str:
    """The headline of a report on a single model."""
    model, measure = facts.base, facts.measures[0]
    return (
        f"{model.name} has {model.n_trees:,} trees with {model.n_leaves:,} leaves, reaches {measure} "
        f"{model.quality[measure].value:.4f} on {facts.data['queries']:,} queries and scores a document in "
        f"{number(model.timing.us_per_doc)} µs."
    )


def _headline(facts: ReportFacts, model: ModelFacts) -> str:
    """What is shown of a smaller model."""
    base, found = facts.base, model.difference[facts.measures[0]]
    if found.is_as_good:
        lead = f"{model.name} is the smallest model that is shown to be as good as {base.name}"
    else:
        lead = f"No smaller model is shown to be as good as {base.name}; {model.name} comes closest"
    shown = "" if found.proof is None else f": {found.proof.words()}"
    return f"{lead}{shown} ({_difference(facts, model)})."


def _savings(facts: ReportFacts, model: ModelFacts) -> str:
    """How much smaller and faster a model is."""
    base = facts.base
    return (
        f"{model.name} has {100 * model.n_leaves / base.n_leaves:.0f} % of the leaves of {base.name} and scores "
        f"{model.speed_up.value:.1f} times as fast{_within(model.speed_up, number)}: "
        f"{number(model.timing.us_per_doc)} against {number(base.timing.us_per_doc)} µs per document."
    )


def _none_smaller(facts: ReportFacts) -> str:
    """The headline when no model is smaller."""
    return f"No model is smaller than {facts.base.name}, which has {facts.base.n_leaves:,} leaves."


def _difference(facts: ReportFacts, model: ModelFacts) -> str:
    """A model against the baseline in words, with intervals and the p-value."""
    measure = facts.measures[0]
    found = model.difference[measure]
    text = f"{measure} {model.quality[measure].value:.4f} against {facts.base.quality[measure].value:.4f}"
    if found.low is None or found.high is None:
        return f"{text}, too few queries for a test"
    lower = "" if found.proof is None or found.proof.lower is None else f", one-sided bound {signed(found.proof.lower)}"
    p = p_or_dash(found.p)
    return (
        f"{text}: difference {signed(found.value)}, 95 % interval {signed(found.low)} to {signed(found.high)}{lower}, "
        f"corrected p {p if p.startswith('<') else f'= {p}'}"
    )


def _within(found: Estimate, text: Callable[[float], str]) -> str:
    """The interval of an estimate in brackets, if it has one."""
    return "" if found.low is None or found.high is None else f" ({text(found.low)} to {text(found.high)})"


def _is_better(facts: ReportFacts, model: ModelFacts) -> bool:
    """Whether a model is significantly better."""
    found = model.difference[facts.measures[0]]
    return found.is_significant and found.value > 0


def signed(value: float) -> str:
    """Return a difference with its sign, a typographic minus if negative.

    Examples
    --------
    >>> signed(0.01234), signed(-0.5)
    ('+0.0123', '−0.5000')
    """
    return f"{value:+.4f}".replace("-", "−")


def p_or_dash(p: float | None) -> str:
    """Return a p-value as text, or a dash for None.

    Examples
    --------
    >>> p_or_dash(0.0312), p_or_dash(None)
    ('0.031', '–')
    """
    return "–" if p is None else p_text(p)


def number(value: float) -> str:
    """Return a number with three significant digits, or all digits before the point.

    Examples
    --------
    >>> [number(value) for value in (0.01234, 1.234, 12.34, 1234.5)]
    ['0.0123', '1.23', '12.3', '1,234']
    """
    decimals = sum(abs(value) < bound for bound in (100, 10, 1, 0.1))
    return f"{value:,.{decimals}f}"


# The page.


# Scripts of the sections, in this order. A section is a function that fills its place, and returns one that fills it
# again when the reader chooses another measure or model.
SECTIONS = ("models", "tradeoff", "curves", "anatomy", "queries", "significance", "settings")
SCRIPTS = tuple(f"{name}.js" for name in ("charts", "tables", "common", *SECTIONS, "report"))
TOP_FEATURES = 15
DIGITS = 6  # significant digits of a number


def render_page(facts: ReportFacts) -> str:
    """Return the whole file as text.

    Texts of the user stand in two places: the title, escaped, and JSON without `<`, which the script puts into text
    nodes. The content security policy allows our script and nothing else, and loads nothing.
    """
    script = "\n".join(_asset(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(printable(facts.title)),
        "script_hash": f"sha256-{digest}",
        "style": _asset("report.css"),
        "script": script,
        "data": to_json(page_data(facts)),
    }
    page = _asset("report.html")
    pieces = page.split("{{")  # in one pass, so that braces in what is filled in stay as they are
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name.strip()], rest]
    return "".join(filled)


def to_json(value: Any) -> str:
    r"""Return JSON that may stand inside a script element; numbers that are not finite become null.

    Examples
    --------
    >>> to_json({"name": "</script>", "value": [float("nan"), 0.123456789]})
    '{"name":"\\u003c/script\\u003e","value":[null,0.123457]}'
    """
    text = json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))  # ASCII: no odd line ends
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(facts: ReportFacts) -> dict[str, Any]:
    """Return the data of the script; lists by measure and by model are in the order of `measures` and `models`."""
    queries: dict[str, int] = {}  # ids that are shown, numbered
    features: dict[int, int] = {}  # columns that explanations name, numbered
    pairs = [_pair(pair, facts.measures, queries, features) for pair in facts.pairs]
    return {
        "title": facts.title,
        "made": facts.made,
        "summary": summarise(facts),
        "tiles": headline_numbers(facts),
        "data": facts.data,
        "measures": facts.measures,
        "convention": facts.convention,
        "baseline": facts.baseline,
        "pair": first_pair(facts),
        "margin": facts.margin,
        "alpha": ALPHA,
        "models": [_model(model, facts.measures) for model in facts.models],
        "pairs": pairs,
        "queries": list(queries),
        "explained": [facts.features[column] for column in features],
        "mostExplained": MOST_RANKED,
        "numbered": facts.numbered,
        "nExplained": len({one.query for pair in facts.pairs for one in (*pair.worst, *pair.best) if one.reasons}),
        "features": _features(facts),
        "depthBins": _bins(facts.depth_bins),
        "leafBins": _bins(facts.leaf_bins),
        "settings": _settings(facts.models),
        "environment": {str(name): str(value) for name, value in facts.environment.items()},
    }


def first_pair(facts: ReportFacts) -> list[int] | None:
    """The two models that are compared query by query first: the baseline, and that of the headline."""
    if len(facts.models) == 1:
        return None
    model = headline_model(facts)
    names = [one.name for one in facts.models]
    other = names.index(model.name) if model is not None else int(facts.baseline == 0)
    return [facts.baseline, other]


def _model(model: ModelFacts, measures: Sequence[str]) -> dict[str, Any]:
    """A model for the script."""
    anatomy, effects = model.anatomy, model.effects
    found = [model.difference.get(measure) for measure in measures]
    return {
        "name": model.name,
        "trees": model.n_trees,
        "nodes": model.n_nodes,
        "leaves": model.n_leaves,
        "depth": model.mean_depth,
        "maxDepth": model.max_depth,
        "path": model.path_length,
        "featuresUsed": model.n_features_used,
        "bytes": model.n_bytes,
        "quality": [_estimate(model.quality[measure]) for measure in measures],
        "difference": [None if one is None else [*_estimate(one), one.p, one.is_as_good] for one in found],
        "us": [model.timing.us_per_doc, model.timing.low, model.timing.high],
        "engine": model.timing.engine,
        "calls": model.timing.n_calls,
        "batch": model.timing.batch,
        "precision": model.timing.precision,
        "busy": model.timing.busy,
        "speedUp": _estimate(model.speed_up),
        "depths": anatomy.depths,
        "leafCounts": anatomy.leaves,
        "treeNumbers": anatomy.trees,
        "weights": anatomy.weights,
        "ranges": anatomy.ranges,
        "effects": None if effects is None else [effects.total, effects.n_docs, effects.by_training],
        "curves": {
            name: {measure: [curve.iterations, curve.values] for measure, curve in by_measure.items()}
            for name, by_measure in model.curves.items()
        },
    }


def _pair(pair: Pair, measures: Sequence[str], queries: dict[str, int], features: dict[int, int]) -> dict[str, Any]:
    """A pair for the script; `queries` numbers the ids of queries, `features` columns, and new ones are added."""

    def place(query: str) -> int:
        return queries.setdefault(query, len(queries))

    def extreme(one: Extreme) -> list[Any]:
        documents = [
            [d.name, d.label, d.first_rank, d.second_rank, d.first_score, d.second_score] for d in one.documents
        ]
        reasons = None if one.reasons is None else _reasons(one.reasons, features)
        return [place(one.query), one.n_docs, one.labels, one.first, one.second, one.n_ranked, documents, reasons]

    return {
        "a": pair.first,
        "b": pair.second,
        "m": list(measures).index(pair.measure),
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "difference": pair.difference,
        "p": pair.p,
        "d": [round(value, 4) for value in pair.differences],
        "q": [place(query) for query in pair.queries],
        "worst": [extreme(one) for one in pair.worst],
        "best": [extreme(one) for one in pair.best],
    }


def _reasons(reasons: Reasons, features: dict[int, int]) -> list[Any]:
    """What features add to scores of a query's documents, for the script."""
    return [
        list(reasons.documents),
        [features.setdefault(column, len(features)) for column in reasons.features],
        [list(values) for values in reasons.values],
        *([[float(f"{value:.4g}") for value in values] for values in by] for by in (reasons.first, reasons.second)),
    ]


def _features(facts: ReportFacts) -> list[dict[str, Any]]:
    """The features that some model uses most: by splits, by gain, or by how much they move scores."""
    shares = [model.anatomy.splits for model in facts.models]
    gains = [model.anatomy.gains for model in facts.models]
    effects = [None if model.effects is None else model.effects.shares for model in facts.models]
    most = [
        max((one[column] for one in (*shares, *gains, *effects) if one is not None), default=0.0)
        for column in range(len(facts.features))
    ]
    order = sorted(range(len(most)), key=lambda column: -most[column])[:TOP_FEATURES]
    return [
        {
            "name": facts.features[column],
            "splits": [one[column] for one in shares],
            "gain": [None if one is None else one[column] for one in gains],
            "shap": [None if one is None else one[column] for one in effects],
        }
        for column in order
        if most[column] > 0
    ]


def _settings(models: Sequence[ModelFacts]) -> list[list[Any]]:
    """Rows of the table of settings: the name, and the value of every model, None where a model lacks it."""
    names = list(dict.fromkeys(name for model in models for name in model.settings))
    return [[name, [model.settings.get(name) for model in models]] for name in names]


def _bins(bins: Bins) -> list[int]:
    return [bins.first, bins.width]


def _estimate(one: Estimate) -> list[float | None]:
    return [one.value, one.low, one.high]


def _plain(value: Any) -> Any:
    """Return a value with all numbers rounded, and None for those that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return _rounded(value) if math.isfinite(value) else None
    return value


def _rounded(value: float) -> float | int:
    """Round to six significant digits; whole numbers lose their decimal point."""
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _asset(name: str) -> str:
    """Read a file of the page."""
    return (files("rankwood.lab.report") / "assets" / name).read_text(encoding="utf-8")
