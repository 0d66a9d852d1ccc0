"""The OpenAPI description is true: schemathesis sends what it allows and what it forbids to a server."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from server_process import serving

import rankwood as rw
from strategies.ensembles import big_ensemble

schemathesis = pytest.importorskip("schemathesis", reason="SCHEMATHESIS ABSENT: pip install '.[test]', Python 3.11")
pytest.importorskip("uvicorn", reason="UVICORN ABSENT: pip install 'rankwood[serve]'")


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    big_ensemble(1, n_trees=20, n_leaves=8, n_features=3).replace(feature_names=["bm25", "x y", "é"]).save(
        folder / "a.rw"
    )
    rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).save(folder / "b.rw")
    (folder / "token").write_text("a-token-of-sixteen")
    with serving(folder / "a.rw", folder / "b.rw", "--admin-token", folder / "token") as server:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
        assert not any("defect" in line for line in server.log), server.log


schema = schemathesis.pytest.from_fixture("description")


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_description_is_true(case):
    # What JSON Schema cannot say: lists of the same length, sizes that add up.
    case.call_and_validate(excluded_checks=[schemathesis.checks.positive_data_acceptance], timeout=30)
