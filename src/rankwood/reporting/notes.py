"""What models remember of their training: learning curves and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankwood.ensemble import Ensemble
from rankwood.reporting.anatomy import spread_out
from rankwood.reporting.facts import Curve

MOST_POINTS = 600  # of a curve
LONGEST = 80  # characters of a setting
CURVES = "learning_curves"  # in a model's metadata
PRUNED = ("cleaver", "grow_and_prune")  # notes of models whose curve is that of another model, before pruning
NOT_SETTINGS = (CURVES, "ordinal", "checkpoint")  # notes for programs


def curves_of(given: Any, model: Ensemble) -> dict[str, dict[str, Curve]]:
    """Learning curves: `given` by hand or the learner's own (`evals_result_`), else those in the model's metadata."""
    found = given
    if found is None and not any(note in model.metadata for note in PRUNED):
        found = model.metadata.get(CURVES)
    if not isinstance(found, Mapping):
        return {}
    curves: dict[str, dict[str, Curve]] = {}
    for name, by_measure in found.items():
        if isinstance(by_measure, Mapping):
            kept = {str(measure): thinned(values) for measure, values in by_measure.items() if len(values)}
            if kept:
                curves[str(name)] = kept
    return curves


def thinned(values: Sequence[float | None]) -> Curve:
    """A curve of at most 600 points; the best value is among them. What is no finite number becomes a gap.

    >>> thinned([0.5, float("nan"), 0.75])
    Curve(iterations=[1, 2, 3], values=[0.5, None, 0.75])
    """
    plain = [float(v) if v is not None and math.isfinite(v) else None for v in values]
    shown = set(spread_out(len(plain), MOST_POINTS).tolist())
    known = [n for n, value in enumerate(plain) if value is not None]
    if known:
        shown.add(max(known, key=lambda n: (plain[n], -n)))
    places = sorted(shown)
    return Curve([n + 1 for n in places], [plain[n] for n in places])


def settings_of(given: Mapping[str, Any] | None, model: Ensemble) -> dict[str, str]:
    """Settings as texts: those given, else what the model's metadata says of its making, nested notes flattened."""
    found = dict(given) if given is not None else model.metadata
    flat: dict[str, str] = {}
    for key, value in found.items():
        if given is None and key in NOT_SETTINGS:
            continue
        _flatten(str(key), value, flat)
    return flat


def _flatten(key: str, value: Any, flat: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for inner, entry in value.items():
            if inner != CURVES:
                # parameters are what one looks for: they keep their own names
                _flatten(str(inner) if key == "parameters" else f"{key} {inner}", entry, flat)
        return
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    text = ", ".join(map(str, value)) if is_list else str(value)
    flat[key] = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
