"""Models of every kind in the engines that serve them, on rows at their thresholds, compared with `Ensemble.score`.

Each engine's jars come from Maven Central and one Java program scores all models. Without Maven, or where it cannot
reach the jars, tests are skipped. `RANKWOOD_REAL_ENGINES=1` runs those with large downloads and other versions, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from java_engines import (
    ODD_NAMES,
    PLAIN_NAMES,
    RANK_FEATURES,
    Engine,
    Job,
    Target,
    execute,
    program,
    read_scores,
    run,
    write_rows,
)
from model_kinds import N_DOCS, data
from numpy.testing import assert_allclose

import rankwood as rw
from rankwood.scoring.agreement import adversarial_rows

SOLR = Target("Solr", "solr", "model.json", {"missing": "ignore", "version": "7", "store": "shop"}, ODD_NAMES,
              single=True, sums="single", zero=True)  # fmt: skip
SOLR_9 = Target("Solr from 9.2", "solr", "model.json", {"store": "shop"}, ODD_NAMES, single=True, sums="single")
SOLR_8 = Engine("solr", "Solr", (SOLR,))
SOLR_SERVER = Engine("solr_server", "SolrServer", (replace(SOLR, name="Solr, indexed documents"),), heavy=True,
                     goal="copy-dependencies")  # fmt: skip
ELASTICSEARCH = Target("Elasticsearch", "elasticsearch", "model.json", names=ODD_NAMES, sums="double", infinite=False)
QUERY = {"match": {"title": "{{query}}"}}
EXTRACTORS = [{"query_extractor": {"feature_name": name, "query": QUERY}} for name in ODD_NAMES]
ELASTICSEARCH_LTR = replace(ELASTICSEARCH, name="Elasticsearch, learning to rank", lifted=True,
                            options={"feature_extractors": EXTRACTORS})  # fmt: skip
VESPA = Engine("vespa", "Vespa", (
    Target("Vespa", "vespa", "model.json", names=RANK_FEATURES),
    Target("Vespa, XGBoost's dump", "xgboost-dump", "model.json", names=RANK_FEATURES, single=True, sums="single"),
    Target("Vespa, XGBoost's model", "xgboost", "model.ubj", names=RANK_FEATURES, single=True, sums="single",
           lowered=True),
))  # fmt: skip
RANKLIB = Engine("ranklib", "RankLib", (
    Target("RankLib", "ranklib", "model.txt", {"missing": "ignore"}, single=True, sums="single", zero=True),
))  # fmt: skip
ONNX = (
    Target("ONNX Runtime, version 3", "onnx", "model.onnx", sums="single"),
    Target("ONNX Runtime, version 5", "onnx", "model.onnx", {"version": 5}, sums="double"),
)

ENGINES = [
    SOLR_8,
    SOLR_SERVER,
    Engine("solr", "Solr", (SOLR,), version="7.7.3", heavy=True),
    Engine("solr", "Solr", (SOLR_9,), "pom-9.xml", heavy=True),
    Engine("elasticsearch", "Elasticsearch", (ELASTICSEARCH, ELASTICSEARCH_LTR)),
    Engine("elasticsearch", "Elasticsearch", (ELASTICSEARCH, ELASTICSEARCH_LTR), "pom-9.xml", heavy=True, java=21),
    VESPA,
    RANKLIB,
    Engine("onnxruntime", "OnnxRuntime", ONNX, heavy=True),
    Engine("onnxruntime", "OnnxRuntime", ONNX, version="1.21.1", heavy=True),
    Engine("lightgbm4j", "LightGbm", (Target("LightGBM", "lightgbm", "model.txt", tiny=False),), heavy=True),
    Engine("xgboost4j", "XgBoost", (
        Target("XGBoost", "xgboost", "model.ubj", single=True, sums="single", infinite=False),
    ), heavy=True),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.title)
def test_every_kind_of_model_scores_alike(engine, tmp_path):
    for target, outcomes in run(engine, tmp_path).items():
        for one in outcomes:
            assert not one.refused, (target, one)
            assert one.rows > 500, (target, one)
            assert one.difference <= one.bound, (target, one)


def test_solr_before_9_2_refuses_a_file_that_says_where_missing_values_go(tmp_path):
    command = program(SOLR_8, tmp_path)
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, False)], n_features=8)
    job = Job(SOLR_9, "told", model, tmp_path / "told")
    said = execute(command, [job.folder], tmp_path, status=3)
    assert f"{job.folder}: the engine does not take the model: " in said
    assert "No setter corrresponding to 'isNullSameAsZero'" in (job.folder / "error.txt").read_text()


def test_a_model_without_a_store_is_of_solrs_own(tmp_path):
    command = program(SOLR_8, tmp_path)
    (tmp_path / "model").mkdir()
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, True)], feature_names=["bm25"])
    rw.save_as(model, tmp_path / "model" / "model.json", "solr")
    write_rows(tmp_path / "model", ["bm25"], np.array([[0.0], [1.0]]))
    execute(command, [tmp_path / "model"], tmp_path)
    assert read_scores(tmp_path / "model").tolist() == [1.0, 2.0]


def test_vespa_knows_the_names_that_the_exporter_lets_through(tmp_path):
    command = program(VESPA, tmp_path)
    names = ["f1", "1a", "a.b", "attribute(tags{red})", "foreach(fields,N,bm25(N),true,sum)", "term(0).weight",
             'f("a b")', "f(-1)", "_x@y", "inf", "if"]  # fmt: skip
    folders = [tmp_path / str(number) for number in range(len(names))]
    for name, folder in zip(names, folders, strict=True):
        folder.mkdir()
        model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, 3.0, 10.0, 20.0)], feature_names=[name])
        rw.save_as(model, folder / "model.json", "vespa")
        write_rows(folder, [name], np.array([[0.0], [1.0], [5.0]]))
    execute(command, folders, tmp_path)
    for name, folder in zip(names, folders, strict=True):
        assert read_scores(folder).tolist() == [11.0, 12.0, 22.0], name


@pytest.mark.parametrize("ranker", [0, 6, 8], ids=["MART", "LambdaMART", "random forest"])
def test_models_that_ranklib_trained_score_alike_here(ranker, tmp_path):
    *java, _ = command = program(RANKLIB, tmp_path)
    X, y = data()
    lines = (
        f"{grade} qid:{row // N_DOCS} " + " ".join(f"{f}:{float(x)!r}" for f, x in enumerate(values, 1))
        for row, (values, grade) in enumerate(zip(X, y, strict=True))
    )
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    options = ["-ranker", ranker, "-tree", 10, "-leaf", 8, "-bag", 3, "-thread", 1, "-silent"]
    trainer = [*java, "ciir.umass.edu.eval.Evaluator"]
    execute(trainer, ["-train", tmp_path / "train.txt", "-save", tmp_path / "model.txt", *options], tmp_path)
    model = rw.load_model(tmp_path / "model.txt", n_features=8)
    rows = np.nan_to_num(adversarial_rows(model, max_rows=2000).single, posinf=1e30, neginf=-1e30)
    write_rows(tmp_path, PLAIN_NAMES, rows)
    execute(command, [tmp_path], tmp_path)
    assert_allclose(read_scores(tmp_path), model.score(rows), rtol=1e-5, atol=1e-6)
