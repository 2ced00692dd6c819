"""Usage: sweep.py FILE WORKERS ROUNDS
Runs a sweep on this machine, on Dask and on Ray, each with as many workers as named, and prints the
medians of the rounds: time, and processors' time of all processes together. The rounds of all
engines alternate. The clusters are up before the clock starts, and have imported the package. The
hashes of all must be equal."""

from __future__ import annotations

import os
import statistics
import sys
import time

import bellwire


def processors_s() -> float:
    """Processors' time of this process and all below it."""
    parents, ticks = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        if not more:
            return sum(ticks[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")
        ours |= more


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
    processors = {name: [] for name in clients}
    hashes = set()
    for round_ in range(rounds + 1):
        for name, client in clients.items():
            began, used = time.perf_counter(), processors_s()
            results = bellwire.sweep(text, client=client)
            # The first round starts workers and imports.
            if round_ > 0:
                seconds[name].append(time.perf_counter() - began)
                processors[name].append(processors_s() - used)
            hashes.add(tuple(results["trace_hash"]))
    assert len(hashes) == 1, "the engines do not agree"
    points = len(results)
    own, own_processors = (statistics.median(of["one machine"]) for of in (seconds, processors))
    print(f"{points} points, {workers} workers, median of {rounds} rounds")
    for name in clients:
        median, cpu = statistics.median(seconds[name]), statistics.median(processors[name])
        more = (median - own) * workers / points * 1e6
        more_cpu = (cpu - own_processors) / points * 1e6
        print(
            f"{name:<12} {median:8.2f} s {points / median / workers:9.0f} points/s/core {more:+9.1f} us a point more, "
            f"{cpu:8.2f} s of processors {more_cpu:+9.1f} us a point more"
        )
    clients["Dask"].close()
    cluster.close()
    ray.shutdown()


if __name__ == "__main__":
    main()
