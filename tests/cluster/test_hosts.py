"""Several hosts, which are network namespaces here; the cable of one is cut in the middle of a training.

::

    root namespace: nothing of this        hub: a bridge
                                            ├── host 0: scheduler, client
                                            ├── host 1: worker
                                            ├── host 2: worker  <- cut
                                            └── host 3: worker
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cluster.toy import alone

N_ROUNDS = 40
CUT_AFTER = 5
SCHEDULER = "10.77.91.10:8786"

CLIENT = """
import json, logging, sys
import numpy as np
from cluster.toy import Training
from rankwood.cluster.client import open_client

class Said(logging.Handler):
    def emit(self, record):
        print(json.dumps({"said": record.getMessage()}), flush=True)

logging.getLogger("rankwood").addHandler(Said())
training = Training(np.arange(1000), int(sys.argv[2]), lambda done: print(json.dumps({"done": done}), flush=True))
with open_client(sys.argv[1]) as client:
    client.wait_for_workers(3, timeout=60)
    result = training.run(client, pause=0.1, patience=3.0)
    print(json.dumps({"result": result, "attempts": training.attempts}), flush=True)
"""


class Hosts:
    """Network namespaces that are connected with each other, and with nothing else."""

    def __init__(self, n_hosts: int) -> None:
        self.names = [f"rw{os.getpid()}h{number}" for number in range(n_hosts)]
        self.hub = f"rw{os.getpid()}hub"
        self.processes: list[subprocess.Popen[str]] = []

    def build(self) -> None:
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.hub, "link", "set", "bridge", "up")
        for number, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("-n", self.hub, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", self.hub, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"10.77.91.{10 + number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def cut(self, number: int) -> None:
        ip("-n", self.hub, "link", "set", f"port{number}", "down")

    def start(self, number: int, *command: str) -> subprocess.Popen[str]:
        """A Python process on a host."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[number], sys.executable, *command],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        for name in [*self.names, self.hub]:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if not sys.platform.startswith("linux") or shutil.which("ip") is None:
        pytest.skip("NO NETWORK NAMESPACES: they need Linux and iproute2's command ip")
    some = Hosts(4)
    try:
        try:
            some.build()
        except (subprocess.CalledProcessError, OSError) as error:
            pytest.skip(f"NO NETWORK NAMESPACES: they cannot be made here: {getattr(error, 'stderr', error)}")
        yield some
    finally:
        some.remove()


def test_a_host_that_loses_its_network(hosts: Hosts, tmp_path: Path) -> None:
    host, port = SCHEDULER.split(":")
    hosts.start(0, "-m", "distributed.cli.dask_scheduler", "--host", host, "--port", port, "--no-dashboard")
    for number in (1, 2, 3):
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
        hosts.start(number, "-m", "distributed.cli.dask_worker", SCHEDULER, *options)
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    client = hosts.start(0, str(script), f"tcp://{SCHEDULER}", str(N_ROUNDS))

    said, rounds, last = [], [], {}
    assert client.stdout is not None
    for line in client.stdout:
        message = json.loads(line)
        if "said" in message:
            said.append(message["said"])
        elif "done" in message:
            rounds.append(message["done"])
            if rounds == [*range(1, CUT_AFTER + 1)]:
                hosts.cut(2)
        else:
            last = message
    assert last, client.stderr.read() if client.stderr else ""
    assert tuple(last["result"]) == alone(np.arange(1000), N_ROUNDS)
    assert rounds == [*range(1, N_ROUNDS + 1)]  # it went on where it was
    before, after = last["attempts"]
    assert len(before) == 3
    (lost,) = set(before) - set(after)
    assert lost.startswith("tcp://10.77.91.12:")
    assert len(after) == 2
    assert len(said) == 1
    assert said[0].startswith(f"worker {lost} gave no sign of life for 3 s; starting again")
