"""One cluster of five processes for all tests of this directory."""

from __future__ import annotations

import threading
import time

import pytest

from rankwood.cli import main

pytest.importorskip("distributed", reason="DASK ABSENT: pip install 'rankwood[dask]'")

N_WORKERS = 5


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items):
    """With `--dist loadgroup`, one process has all tests that start clusters."""
    for item in items:
        if "cluster" in item.path.parts or item.path.name == "test_cluster_guide.py":
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def whole_cluster():
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.locks.lease-timeout": "5s",  # after which a dead client's locks open
        "distributed.deploy.lost-worker-timeout": "5 minutes",  # a busy machine takes long to start one again
        "distributed.worker.profile.enabled": False,  # a third of what an idle worker takes of a CPU
    }
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(whole_cluster):
    """The client, with all workers up; afterwards nothing of ours is left on it."""
    whole_cluster.wait_for_workers(N_WORKERS, timeout=120)
    yield whole_cluster
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("rankwood")]
    end = time.monotonic() + 10  # the scheduler is told of it, but nobody waits for that
    while (left := whole_cluster.run_on_scheduler(left_on_scheduler)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def left_on_scheduler(dask_scheduler):
    queues = [name for name in dask_scheduler.extensions["queues"].queues if name.startswith("rankwood")]
    return queues + [str(key) for key in dask_scheduler.tasks if str(key).startswith("rankwood")]


@pytest.fixture
def workers(client):
    return sorted(client.nthreads())


@pytest.fixture
def rankwood(capsys, monkeypatch):
    """Run `rankwood ARGUMENTS`: exit status, and what was printed."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["rankwood", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr()

    return run
