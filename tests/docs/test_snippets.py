"""Every Python block of README and docs is run, page by page, in order, on small data."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT, Block, blocks, page_id, pages

# Packages that are no part of rankwood itself, and what in a block tells that it needs one.
OTHERS = {
    "lightgbm": r"\bimport lightgbm|\bbooster\b",
    "xgboost": r"\bimport xgboost",
    "onnx": r"\.onnx\b",
    "onnxruntime": r"\bonnxruntime\b(?!,)",
    "pandas": r"\bpandas\b|\bframe\b",
    "pyarrow": r"parquet",
    "distributed": r"\bdistributed\b|\bdask\b|\bclient\b",
    "matplotlib": r"\bmatplotlib\b|\bwrite_report\b",
    "optuna": r"\boptuna\b|\brw\.tune\b",
    "mlflow": r"\bmlflow\b",
    "wandb": r"\bwandb\b",
    "tensorboardX": r"\btensorboardX\b",
    "pyterrier": r"\bpt\.|\bpyterrier\b",
    "ir_measures": r"\bir_measures\b",
}


def python_blocks(path: Path) -> list[Block]:
    return [block for block in blocks(path) if block.language == "python"]


def missing_packages(text: str) -> list[str]:
    return [name for name, sign in OTHERS.items() if re.search(sign, text) and importlib.util.find_spec(name) is None]


def props(text: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Objects of other libraries that a block speaks of."""
    made: dict[str, Any] = {}
    train = namespace["train"]
    if re.search(r"\bframe\b", text) and "frame" not in namespace:
        import pandas

        made["frame"] = pandas.DataFrame(train.X, columns=[f"f{i}" for i in range(train.n_features)])
        made["frame"]["qid"] = train.qid
    if re.search(r"\bbooster\b", text) and "booster" not in namespace:
        import lightgbm

        made["booster"] = lightgbm.Booster(model_file="model.txt")
    return made


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block as if it stood at its lines of the page, so that tracebacks name these."""
    code = compile("\n" * (block.line - 1) + block.text, str(block.path), "exec")
    try:
        exec(code, namespace)
    except Exception as error:
        raise AssertionError(f"{block.where}: {type(error).__name__}: {error}\n\n{block.text}") from error


@pytest.mark.parametrize("path", [p for p in pages() if python_blocks(p)], ids=page_id)
def test_python_blocks_run(path, scene, capsys):
    import sklearn

    namespace, left_out = scene(), []
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in python_blocks(path):
            missing = missing_packages(block.text)
            if block.not_run is None and not missing:
                namespace |= props(block.text, namespace)
                run(block, namespace)
            elif missing:
                left_out.append(f"{block.where} needs {', '.join(missing)}")
    if left_out:
        pytest.skip("; ".join(left_out))


def git(*arguments: str) -> str:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_the_repository_holds_nothing_that_runs_write():
    """As the table of a page's runs, which workers that had stayed in the checkout once wrote there."""
    if "pyproject.toml" not in git("ls-files"):
        pytest.skip("these sources are not a checkout")
    assert git("check-ignore", "runs.sqlite") == "runs.sqlite\n"
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard") == ""


def test_workers_of_a_page_write_where_the_page_is_run(scene):
    """Also those that began elsewhere."""
    from joblib import Parallel, delayed

    began = {Path(folder) for folder in Parallel(n_jobs=2)(delayed(os.getcwd)() for _ in range(4))}
    clean = [folder / "runs.sqlite" for folder in began if not (folder / "runs.sqlite").exists()]
    namespace = scene()
    for block in python_blocks(ROOT / "docs" / "sweep.md"):
        run(block, namespace)
    assert {"runs.sqlite", "runs.jsonl"} <= set(os.listdir())
    assert not [path for path in clean if path.exists()]


def test_there_are_pages_to_run():
    assert sum(len(python_blocks(path)) for path in pages()) > 15
