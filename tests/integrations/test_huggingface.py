"""Models as folders and repositories of the Hugging Face Hub, without a network."""

from __future__ import annotations

import json
import re
import shutil
import sys
import types
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest

import rankwood as rw
from rankwood.errors import MissingPackageError


@pytest.fixture(scope="module")
def model():
    data = rw.make_ranking(n_queries=30, docs_per_query=10, n_features=3, seed=1)
    data = data.replace(feature_names=["bm25", "clicks | `x`", "<b>age</b>\n# not a title"])
    return rw.LambdaMART(n_trees=5, n_leaves=4, min_docs_per_leaf=5).fit(data).ensemble_


@pytest.fixture(scope="module")
def evaluation(model):
    data = rw.make_ranking(n_queries=20, docs_per_query=8, n_features=3, seed=2)
    return rw.evaluate(model.score(data.X), data, ["nDCG@10", "P(rel=2)@5"])


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The Hub as a folder: what is uploaded can be downloaded."""
    module = types.ModuleType("huggingface_hub")
    module.place, module.calls = tmp_path / "hub", []

    class HfApi:
        def __init__(self, token, library_name, library_version):
            module.calls.append(("token", token, library_name))

        def create_repo(self, repo_id, private, exist_ok):
            module.calls.append(("create", repo_id, private, exist_ok))
            full = repo_id if "/" in repo_id else f"me/{repo_id}"
            return types.SimpleNamespace(repo_id=full)

        def upload_folder(self, repo_id, folder_path, commit_message):
            module.calls.append(("upload", repo_id, commit_message))
            shutil.copytree(folder_path, module.place / repo_id)
            return types.SimpleNamespace(commit_url=f"https://hub.example/{repo_id}/commit/1")

    def hf_hub_download(repo_id, filename, revision, token, library_name, library_version):
        path = module.place / repo_id / filename
        if not path.exists():
            raise FileNotFoundError(f"404 Client Error.\n\nRepository Not Found for {repo_id}")
        module.calls.append(("download", revision, token))
        return str(path)

    module.HfApi, module.hf_hub_download = HfApi, hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


def test_a_folder_holds_the_model_and_its_card(model, evaluation, tmp_path):
    folder = tmp_path / "a" / "my-ranker"
    model.save_pretrained(folder, evaluation=evaluation, data_name="the test queries", license="apache-2.0")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "model.safetensors"]
    loaded = rw.Ensemble.from_pretrained(folder)
    assert loaded == model
    assert (loaded.feature_names, loaded.metadata) == (model.feature_names, model.metadata)
    assert rw.load_model(folder / "model.safetensors") == model
    text = (folder / "README.md").read_text()
    assert text.startswith('---\nlibrary_name: "rankwood"\n')
    assert f"| nDCG@10 | {evaluation['nDCG@10']:.4f} |" in text
    assert "On the test queries, 20 queries, computed by the convention `rankwood` of rankwood." in text


def test_safetensors_readers_read_the_file(model, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    model.save_pretrained(tmp_path)
    assert np.array_equal(safetensors.load_file(tmp_path / "model.safetensors")["threshold"], model.threshold)


def test_the_card_is_read_as_yaml(model, evaluation, tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is absent: pip install pyyaml")
    model.save_pretrained(tmp_path / 'odd "name": x', evaluation=evaluation, data_name="a: b # c")
    _, front, _ = (tmp_path / 'odd "name": x' / "README.md").read_text().split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["library_name"] == "rankwood"
    (index,) = about["model-index"]
    assert index["name"] == 'odd "name": x'
    (result,) = index["results"]
    assert result["dataset"]["name"] == "a: b # c"
    assert {one["name"]: one["value"] for one in result["metrics"]} == dict(evaluation)


def test_names_stay_text_in_the_card(model, tmp_path):
    """Those of features stand in a block of JSON, on one line; those of data are escaped."""
    model.save_pretrained(tmp_path, evaluation={"a|b": 0.5}, data_name="<script>\n# x")
    text = (tmp_path / "README.md").read_text()
    assert "<script>" not in text.split("---\n", 2)[2]
    assert not [line for line in text.split("\n") if line.startswith(("# not", "# x"))]
    assert r"| a\|b | 0.5000 |" in text
    (columns,) = [json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", text, re.DOTALL) if block[0] == "["]
    assert columns == list(model.feature_names)


def test_the_code_of_the_card_runs(model, tmp_path, monkeypatch):
    model.save_pretrained(tmp_path / "ranker")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)\n```", (tmp_path / "ranker" / "README.md").read_text(), re.DOTALL)
    names = {"X": np.zeros((2, 3), dtype=np.float32)}
    exec(code, names)
    assert np.array_equal(names["scores"], model.score(names["X"]))


def test_a_push_can_be_loaded(hub, model, evaluation):
    address = model.push_to_hub("me/ranker", evaluation=evaluation, private=True, token="secret")
    assert address == "https://hub.example/me/ranker/commit/1"
    assert hub.calls == [
        ("token", "secret", "rankwood"),
        ("create", "me/ranker", True, True),
        ("upload", "me/ranker", f"5 trees, {model.n_leaves} leaves"),
    ]
    assert rw.Ensemble.from_pretrained("me/ranker", revision="main", token="secret") == model
    assert hub.calls[-1] == ("download", "main", "secret")
    assert "secret" not in (hub.place / "me" / "ranker" / "README.md").read_text()


def test_a_push_without_owner_goes_where_the_hub_says(hub, model):
    assert model.push_to_hub("ranker", message="first") == "https://hub.example/me/ranker/commit/1"
    assert hub.calls[-1] == ("upload", "me/ranker", "first")


def test_what_cannot_be_fetched_is_a_sentence(hub, tmp_path):
    said = "me/none is no folder and cannot be fetched: 404 Client Error. Repository Not Found for me/none"
    with pytest.raises(rw.ModelError, match=f"^{re.escape(said)}$"):
        rw.Ensemble.from_pretrained("me/none")
    with pytest.raises(rw.RankwoodError, match=r"model\.safetensors"):
        rw.Ensemble.from_pretrained(tmp_path)


def test_the_package_is_named_when_it_is_absent(without, model, tmp_path):
    without("huggingface_hub")
    with pytest.raises(MissingPackageError, match=r"pushing a model .* pip install huggingface_hub$"):
        model.push_to_hub("me/ranker")
    with pytest.raises(MissingPackageError, match=r"me/ranker is no folder, .* pip install huggingface_hub$"):
        rw.Ensemble.from_pretrained("me/ranker")
    model.save_pretrained(tmp_path)  # folders need nothing


# ---- the package itself


@pytest.fixture
def package():
    return pytest.importorskip("huggingface_hub", reason="huggingface_hub is absent: pip install huggingface_hub")


def test_the_package_reads_the_card(package, model, evaluation, tmp_path):
    model.save_pretrained(tmp_path / "r", evaluation=evaluation, data_name="test", license="apache-2.0")
    card = package.ModelCard.load(tmp_path / "r" / "README.md")
    assert (card.data.library_name, card.data.license, card.data.model_name) == ("rankwood", "apache-2.0", "r")
    assert {one.metric_name: one.metric_value for one in card.data.eval_results} == dict(evaluation)
    assert {one.dataset_name for one in card.data.eval_results} == {"test"}


def test_the_package_is_called_as_it_wants_to_be(package, model, monkeypatch):
    """With the signatures of its own functions, which are replaced as they reach the network."""
    seen = {}

    def upload(self, *, repo_id, folder_path, **others):
        seen[repo_id] = sorted(path.name for path in Path(folder_path).iterdir())
        address = f"https://huggingface.co/{repo_id}/commit/abc"
        return package.CommitInfo(commit_url=address, commit_message="", commit_description="", oid="abc")

    made = package.RepoUrl("https://huggingface.co/me/ranker")
    for name, fake in ("create_repo", lambda self, *a, **o: made), ("upload_folder", upload):
        monkeypatch.setattr(package.HfApi, name, create_autospec(getattr(package.HfApi, name), side_effect=fake))
    assert model.push_to_hub("ranker") == "https://huggingface.co/me/ranker/commit/abc"
    assert seen == {"me/ranker": ["README.md", "model.safetensors"]}


def test_the_package_refuses_names_and_missing_networks(package, monkeypatch, tmp_path):
    monkeypatch.setattr(package.constants, "HF_HUB_OFFLINE", True)
    for name in ("me/a ranker", "me/ranker/x", "me/rankwood-that-nobody-has"):
        with pytest.raises(rw.ModelError, match=f"{name} is no folder and cannot be fetched"):
            rw.Ensemble.from_pretrained(name)
    with pytest.raises(rw.ModelError, match="me/a ranker cannot be pushed to: "):
        rw.Ensemble.from_trees([]).push_to_hub("me/a ranker")
