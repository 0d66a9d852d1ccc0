"""Small studies that several tests look at."""

from __future__ import annotations

from functools import partial

import pytest

from rankwood.lab.papers.asadi_lin import AsadiLinResults, AsadiLinStudy
from rankwood.lab.papers.igbrt import IgbrtResults, IgbrtStudy
from rankwood.lab.papers.subsampling import Sample, SubsamplingResults, SubsamplingStudy
from rankwood.lab.papers.xdart import XdartResults, XdartStudy
from rankwood.lab.runs import RunTable
from rankwood.lab.study import SyntheticFolds
from rankwood.scoring.timing import bench


@pytest.fixture(scope="session")
def source():
    return SyntheticFolds(n_queries=60, docs_per_query=14, n_features=12, seed=5)


@pytest.fixture(scope="session")
def subsampling_study(source):
    sweep = [Sample.parse(name) for name in ("1", "5", "10", "25%", "63%")]
    documents = [Sample(share, percent=True, what="documents") for share in (10, 40)]
    return SubsamplingStudy(source, (1, 3), sweep, n_seeds=2, n_trees=12, documents=documents, boosted_trees=9)


@pytest.fixture(scope="session")
def subsampling_results(subsampling_study, tmp_path_factory):
    return SubsamplingResults(
        subsampling_study, subsampling_study.runs(RunTable(tmp_path_factory.mktemp("subsampling") / "runs.sqlite"))
    )


@pytest.fixture(scope="session")
def igbrt_study(source):
    return IgbrtStudy(
        source, (1, 2), n_seeds=2, n_trees=8, boosted_trees=6, learning_rates=(0.1, 0.5), initial_trees=(3,)
    )


@pytest.fixture(scope="session")
def igbrt_results(igbrt_study, tmp_path_factory):
    return IgbrtResults(igbrt_study, igbrt_study.runs(RunTable(tmp_path_factory.mktemp("igbrt") / "runs.sqlite")))


@pytest.fixture(scope="session")
def xdart_study(source):
    methods = ("LambdaMART", "LambdaMART adaptive", "DART 1.5%", "X-DART fixed 2", "X-DART adaptive 5")
    return XdartStudy(source, (1, 2), n_seeds=2, n_trees=20, full_trees=30, patience=10, n_leaves=6, methods=methods)


@pytest.fixture(scope="session")
def xdart_results(xdart_study, tmp_path_factory):
    return XdartResults(xdart_study, xdart_study.runs(RunTable(tmp_path_factory.mktemp("xdart") / "runs.sqlite")))


@pytest.fixture(scope="session")
def asadi_lin_study(source, tmp_path_factory):
    return AsadiLinStudy(
        source, (1, 2), n_seeds=2, n_trees=14, n_leaves=10, patience=5, lambdas=(0.8,), alphas=(0.6,),
        models=tmp_path_factory.mktemp("asadi-lin-models"),
    )  # fmt: skip


@pytest.fixture(scope="session")
def asadi_lin_runs(asadi_lin_study, tmp_path_factory):
    """The table of finished runs: few calls are timed, since nothing looks at the times."""
    folder = tmp_path_factory.mktemp("asadi-lin")
    runs = RunTable(folder / "runs.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKWOOD_CACHE", str(folder / "cache"))
        patch.setattr("rankwood.lab.papers.asadi_lin.bench", partial(bench, repeats=6))
        asadi_lin_study.runs(runs)
    return runs


@pytest.fixture(scope="session")
def asadi_lin_results(asadi_lin_study, asadi_lin_runs):
    return AsadiLinResults(asadi_lin_study, asadi_lin_study.runs(asadi_lin_runs))
