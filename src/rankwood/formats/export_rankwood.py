"""rankwood's own model file."""

from __future__ import annotations

from pathlib import Path

from rankwood.ensemble import Ensemble
from rankwood.model_file import model_bytes

LIMITS = "Everything: trees, weights, base, names, metadata, gains and counts."


def export_rankwood(model: Ensemble, path: Path) -> bytes:
    """What `Ensemble.save` writes."""
    return model_bytes(model)
