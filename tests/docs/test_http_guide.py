"""The commands of the page on HTTP are run: a server, and curl and Python that ask it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT, blocks

import rankwood as rw

pytest.importorskip("uvicorn", reason="UVICORN ABSENT: pip install 'rankwood[serve]'")

PAGE = ROOT / "docs" / "http.md"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(rw.__file__).parents[1])}
NAMES = ["bm25", "clicks", "age"]


def texts(language: str) -> list[str]:
    return [block.text.replace("\\\n", " ") for block in blocks(PAGE) if block.language == language]


@pytest.fixture
def port(tmp_path, monkeypatch):
    """That of a server started as the page does, at a free port."""
    monkeypatch.chdir(tmp_path)
    model = rw.Ensemble.from_trees([(0, 10.0, 1.0, (1, 2.0, 2.0, 3.0))], feature_names=NAMES)
    model.save("model.rw")
    model.reweigh([10.0]).save("other.rw")
    Path("token").write_text("0123456789abcdef0123456789abcdef\n")
    (line,) = [line for line in "\n".join(texts("sh")).split("\n") if "--admin-token" in line]
    command = [sys.executable, "-m", *shlex.split(line), "--port", "0", "--json"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            process.terminate()
            assert process.wait(60) == 0


def test_curl(port):
    if shutil.which("curl") is None:
        pytest.skip("CURL ABSENT")
    commands = [text for text in texts("sh") if text.startswith("curl")]
    answers = []
    for command in commands:
        command = command.replace("localhost:8000", f"127.0.0.1:{port}")
        answers.append(json.loads(subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout))
    scored, swapped = answers
    (example,) = [json.loads(text) for text in texts("json") if "scores" in json.loads(text)]
    assert set(scored) == set(example)
    assert (scored["scores"], scored["order"]) == ([3.0, 1.0], [[0]])
    assert swapped["fingerprint"] == rw.load_model("other.rw").fingerprint()


def test_arrow_from_python(port):
    pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    (text,) = texts("python")
    found: dict = {}
    exec(text.replace("localhost:8000", f"127.0.0.1:{port}"), found)
    assert found["scores"].tolist() == [3.0, 1.0]


def test_the_body_of_the_connector(port):
    """As OpenSearch fills it in: every parameter is a list in JSON."""
    import http.client

    (connector,) = [json.loads(text) for text in texts("json") if "actions" in json.loads(text)]
    (action,) = connector["actions"]
    body = action["request_body"]
    for name, values in {"bm25": [12.5, 9.1], "clicks": [3, None], "age": [0.25, 7]}.items():
        body = body.replace(f"${{parameters.{name}}}", json.dumps(values))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    path = action["url"].removeprefix("http://${parameters.endpoint}")
    connection.request(action["method"], path, body, action["headers"])
    assert json.loads(connection.getresponse().read())["scores"] == [3.0, 1.0]
    connection.close()
