"""Evaluations on a Dask cluster, kept in a file: start it again after any accident, and it goes on.

Here the cluster is two processes of this machine; on a real one, `Client("tcp://HOST:8786")` takes their place.

    pip install 'mctsvs[dask]'
    python examples/dask_cluster.py run.db            # QUICK=1: a few evaluations only
"""

from __future__ import annotations

import os
import sys
import time

from distributed import LocalCluster

import mctsvs
from mctsvs.utils.validation import Array

BUDGET = 12 if os.environ.get("QUICK") else 150


def slow(x: Array) -> float:
    time.sleep(0.05)
    return float((x[17] - 1.0) ** 2 + (x[203] + 2.0) ** 2)


def main(path: str) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client() as client,
        mctsvs.Study(path, [(-5.0, 10.0)] * 300, seed=0) as study,
    ):
        study.optimize(slow, BUDGET, executor=client.get_executor(pure=False), asynchronous=True, progress=True)
        print(f"best value {study.best.value:.4g} after {study.evaluated} evaluations, kept in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "run.db")
