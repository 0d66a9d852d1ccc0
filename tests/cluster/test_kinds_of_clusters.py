"""Clusters with encrypted connections, and of threads instead of processes."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from cluster.toy import Training, alone
from rankwood.cluster.launch import run_on_workers

NUMBERS = np.arange(500)


def schemes(group, channel, share):
    group.gather(np.arange(100_000))
    return group.address.partition(":")[0]


def test_encrypted_connections(tmp_path):
    from distributed import Client, LocalCluster, Security

    if shutil.which("openssl") is None:
        pytest.skip("OPENSSL ABSENT: no certificate can be made")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {f"tls_{who}_key": key for who in ("client", "scheduler", "worker")}
    files |= {f"tls_{who}_cert": certificate for who in ("client", "scheduler", "worker")}
    security = Security(tls_ca_file=certificate, require_encryption=True, **files)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            protocol="tls://",
            security=security,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        assert run_on_workers(client, schemes, dict.fromkeys(sorted(client.nthreads()))) == ["tls", "tls"]
        assert Training(NUMBERS, 4).run(client) == alone(NUMBERS, 4)


def test_workers_that_are_threads():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        assert Training(NUMBERS, 4).run(client) == alone(NUMBERS, 4)
