"""Models of every kind in the engines that serve them, on rows at their thresholds, compared with `Ensemble.score`.

Each test fetches an engine's jars from Maven Central, runs one Java program on all models and compares. Without Maven,
or where it cannot reach the jars, they are skipped. `RANKWOOD_REAL_ENGINES=1` runs those with large downloads, too.
"""

from __future__ import annotations

import pytest
from java_engines import ODD_NAMES, RANK_FEATURES, Engine, Target, run

SOLR = Target("Solr", "solr", "model.json", {"missing": "ignore", "store": "shop"}, ODD_NAMES, single=True,
              sums="single", zero=True)  # fmt: skip

ENGINES = [
    Engine("solr", "Solr", (SOLR,)),
    Engine("solr", "Solr", (SOLR,), version="7.7.3"),
    Engine("elasticsearch", "Elasticsearch",
           (Target("Elasticsearch", "elasticsearch", "model.json", names=ODD_NAMES, sums="double", infinite=False),)),
    Engine("vespa", "Vespa", (
        Target("Vespa", "vespa", "model.json", names=RANK_FEATURES),
        Target("Vespa, XGBoost's dump", "xgboost-dump", "model.json", names=RANK_FEATURES, single=True, sums="single"),
        Target("Vespa, XGBoost's model", "xgboost", "model.ubj", names=RANK_FEATURES, single=True, sums="single",
               lowered=True),
    )),
    Engine("ranklib", "RankLib", (
        Target("RankLib", "ranklib", "model.txt", {"missing": "ignore"}, single=True, sums="single", zero=True),
    )),
    Engine("onnxruntime", "OnnxRuntime", (
        Target("ONNX Runtime, version 3", "onnx", "model.onnx", sums="single"),
        Target("ONNX Runtime, version 5", "onnx", "model.onnx", {"version": 5}, sums="double"),
    ), heavy=True),
    Engine("lightgbm4j", "LightGbm", (Target("LightGBM", "lightgbm", "model.txt", tiny=False),), heavy=True),
    Engine("xgboost4j", "XgBoost", (
        Target("XGBoost", "xgboost", "model.ubj", single=True, sums="single", infinite=False),
    ), heavy=True),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: f"{engine.folder}-{engine.version_run}")
def test_every_kind_of_model_scores_alike(engine, tmp_path):
    outcomes = run(engine, tmp_path)
    for target in engine.targets:
        for one in outcomes[target.name]:
            print(target.name, one)
    for target in engine.targets:
        for one in outcomes[target.name]:
            assert bool(one.refused) == (one.kind in target.refuses), (target.name, one)
            assert one.refused or one.rows > 500, (target.name, one)
            assert one.difference <= one.bound, (target.name, one)
