"""Hostile names of features and hostile requests: what a server answers, counts and logs stays plain."""

from __future__ import annotations

import json
import re

import pytest
from in_process import open_desk

import rankwood as rw
from strategies.hostile_texts import KINDS

SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"\\\n]*",?)+\})? \S+')


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names(tmp_path, kind):
    text = KINDS[kind]
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=[text], metadata={text: text})
    desk = open_desk(tmp_path, model=model, token="k" * 16)
    assert desk.score({"rows": [{text: 0.0}]}).json["scores"] == [1.0]
    assert desk.ask("GET", "/models/model").json["feature_names"] == [text]
    for path in ("/models", "/openapi.json"):
        assert desk.ask("GET", path).body.isascii()
    for asked in (
        desk.score({"rows": [{f"2{text}": 0.0}]}),
        desk.score({"rows": [{text: text}]}),
        desk.score({text: [[0.0]]}),
        desk.score({"rows": [[0.0]], "qid": [text], "top": text}),
        desk.score({"rows": [[0.0]]}, path=f"/models/{text[:1000]}/score"),
        desk.ask("PUT", "/models/model", json.dumps(text).encode(), "application/octet-stream",
                 authorization=f"Bearer {'k' * 16}"),
        desk.ask("POST", "/score", b"{}", json.dumps(text[:1000])),
    ):  # fmt: skip
        assert asked.status in (400, 404, 415, 422)
        assert asked.error.isprintable()
        assert len(asked.error) < 1000
    lines = desk.ask("GET", "/metrics").body.decode("ascii").splitlines()
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
    assert all(line.isprintable() and len(line) < 1000 for line in desk.log)
