"""Usage: sweep.py FILE WORKERS ROUNDS
Runs a sweep on this machine, on Dask and on Ray, each with as many workers as named, and prints the
seconds of each round. The rounds of all engines alternate. The clusters are up before the clock
starts, and have imported the package. The hashes of all must be equal."""

from __future__ import annotations

import os
import statistics
import sys
import time

import bellwire


def main() -> None:
    file, workers, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])
    import distributed
    import ray

    cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    clients = {"one machine": None, "Dask": distributed.Client(cluster), "Ray": ray}
    seconds = {name: [] for name in clients}
    hashes = set()
    for round_ in range(rounds + 1):
        for name, client in clients.items():
            began = time.perf_counter()
            results = bellwire.sweep(text, client=client)
            # The first round starts workers and imports.
            if round_ > 0:
                seconds[name].append(time.perf_counter() - began)
            hashes.add(tuple(results["trace_hash"]))
    assert len(hashes) == 1, "the engines do not agree"
    points = len(results)
    own = statistics.median(seconds["one machine"])
    print(f"{points} points, {workers} workers, median of {rounds} rounds")
    for name, of in seconds.items():
        median = statistics.median(of)
        rate = points / median / workers
        more = (median - own) * workers / points * 1e6
        all_ = " ".join(f"{one:.2f}" for one in of)
        print(f"{name:<12} {median:8.2f} s {rate:9.0f} points/s/core {more:+9.1f} us a point more   ({all_})")
    clients["Dask"].close()
    cluster.close()
    ray.shutdown()


if __name__ == "__main__":
    main()
