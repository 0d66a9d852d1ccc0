"""Files of several versions of each library, with the scores that the library gave then (`make_data.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rankwood as rw
from strategies.adversarial_rows import assert_close

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.iterdir() if not path.name.endswith(".scores.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_old_files(path):
    if path.suffix == ".cbm":
        pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    kept = json.loads((DATA / f"{path.stem}.scores.json").read_text())
    rows = np.array(kept["rows"], dtype=float)
    model = rw.load_model(path)
    assert_close(kept["scores"], model, rows)
    assert path.name.startswith(model.metadata["source"]["format"].removesuffix("-json"))


def test_there_are_several_versions():
    versions = {tuple(path.stem.split("-")[:2]) for path in FILES}
    assert {name: sum(one[0] == name for one in versions) for name, _ in versions} == {
        "lightgbm": 3, "xgboost": 4, "catboost": 2,
    }  # fmt: skip
