"""`rankwood datasets make`: the command, and what list and fetch say of a set that is made."""

from __future__ import annotations

import json

import pytest

from strategies.wordnet_files import random_entries, write_database


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory):
    return write_database(tmp_path_factory.mktemp("wordnet"), random_entries(3, n_nouns=900, n_others=10))


def test_a_set_is_made_and_described(rankwood, wordnet, tmp_path):
    command = ("datasets", "make", "wordnet-ltr", "--wordnet", wordnet, "--queries", 6, "--workers", 1)
    outcome = rankwood(*command, "--to", tmp_path / "table")
    assert outcome.status == 0, outcome.err
    assert "train" in outcome.out
    assert f"WordNet-LTR is in {tmp_path / 'table'}; terms: WordNet licence" in outcome.err
    outcome = rankwood(*command, "--to", tmp_path / "text", "--format", "svmlight", "--json")
    facts = json.loads(outcome.out)
    assert (outcome.status, outcome.err, facts["as_published"]) == (0, "", None)
    for file in ("table/test.parquet", "text/test.txt"):
        outcome = rankwood("datasets", "describe", tmp_path / file, "--json")
        (found,) = json.loads(outcome.out)["files"]
        assert (found["n_docs"], found["n_features"]) == (facts["files"]["test"]["rows"], 136)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("make", "WordNet-LTR", "--wordnet", "nowhere"),
            "there is no WordNet database in nowhere (no ",
        ),
        (("make", "mq2008"), "MQ2008 is not made but downloaded: rankwood datasets fetch MQ2008 --to DIR"),
        (("make", "wordnot"), "there is no data set named 'wordnot'; did you mean WordNet-LTR?"),
        (("fetch", "wordnet"), "WordNet-LTR is not downloaded but made of the WordNet database"),
    ],
)
def test_one_sentence(rankwood, tmp_path, arguments, message):
    outcome = rankwood("datasets", *arguments, "--to", tmp_path / "set")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rankwood: {message}")
    assert len(outcome.err.splitlines()) == 1
    assert not any(tmp_path.iterdir())


def test_the_list_tells_that_it_is_made(rankwood):
    row = next(line for line in rankwood("datasets").out.splitlines() if "WordNet-LTR" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")][-2:] == ["-", "make"]
    entries = json.loads(rankwood("datasets", "list", "--json").out)["datasets"]
    assert [entry["name"] for entry in entries if entry["made_from"]] == ["WordNet-LTR"]
