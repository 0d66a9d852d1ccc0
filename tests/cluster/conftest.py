"""A Dask cluster of this machine, which tests share."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="DASK ABSENT: pip install 'rankwood[dask]'")

from rankwood.cluster.client import open_client


@pytest.fixture(scope="session")
def client():
    """Client of two processes with one thread each."""
    with open_client("local:2") as opened:
        yield opened
