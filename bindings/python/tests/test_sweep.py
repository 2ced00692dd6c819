"""Sweeps from Python: on this machine, on Dask, on Ray, and after kills."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import bellwire

pyarrow = pytest.importorskip("pyarrow")
import pyarrow.parquet

DEADLINE_S = 120.0

# Points of some milliseconds, two of which the model refuses.
SMALL = {
    "model": "hpcl",
    "load": "round-trip",
    "repetitions": 2,
    "set": {"load.rounds": 200},
    "grid": {
        "load.over": ["hpcl", "tcp"],
        "load.bytes": {"from": "64 B", "to": "1000 B", "steps": 10},
        "nic.interrupt_gap": ["0 us", "125 us"],
        "nodes": [1, 2],
    },
}
POINTS = 160

# A network of routers: its topology, its channels and what is offered.
NETWORK = {
    "model": "network",
    "load": "traffic",
    "set": {"load": {"cycles": 500, "warm_up_cycles": 100}},
    "grid": {
        "topology": [{"crossbar": {"ports": 16}}, {"torus": {"radix": 4, "dimensions": 2}}],
        "router.vcs": [2, 4],
        "load.arrival.random.load": [0.1, 0.6],
    },
}


@pytest.fixture(scope="module")
def expected():
    """The results on one machine."""
    return bellwire.sweep(SMALL)


def hashes(results):
    return list(zip(results["point"], results["trace_hash"], results["error"]))


def test_rows_have_parameters_figures_and_provenance(expected):
    """One row a point, in order. What the model refuses is a row, and everything repeats."""
    assert len(expected) == POINTS and expected["point"] == list(range(POINTS))
    row = next(row for row in expected.rows() if row["nodes"] == 2)
    assert row["load.over"] == "hpcl" and row["load.bytes_B"] == 64.0 and row["seed"] == 1
    assert row["round_trip_us"] > 1 and len(row["trace_hash"]) == 16
    assert row["version"] == bellwire.__version__ and row["error"] is None
    refused = next(row for row in expected.rows() if row["nodes"] == 1)
    assert "`nodes` is 1" in refused["error"] and refused["trace_hash"] is None
    assert hashes(bellwire.sweep(SMALL)) == hashes(expected)
    # Canary: other seeds are noticed.
    assert hashes(bellwire.sweep({**SMALL, "seed": 5})) != hashes(expected)


def test_a_notebook_draws_the_results(expected):
    """Each figure is drawn against each parameter, without the points that failed."""
    columns = expected.keys()
    figures = columns[columns.index("seed") + 1 : columns.index("trace_hash")]
    assert len(expected.drawings) == 4 * len(figures)
    titles = [svg.split("<title>")[1].split("</title>")[0] for svg in expected.drawings]
    assert titles[0] == f"{figures[0]} against load.bytes_B", titles
    assert expected._repr_html_().count("data:image/svg+xml;base64,") == min(6, len(titles))


def test_results_are_read_by_others(tmp_path, expected):
    """DuckDB, pandas and polars read the file, with the same types and values."""
    file = tmp_path / "results.parquet"
    bellwire.sweep(SMALL, file)
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(file)
    assert list(frame.columns) == expected.keys()
    assert list(frame["trace_hash"].dropna()) == [of for of in expected["trace_hash"] if of]
    assert frame["point"].dtype == "int64" and frame["round_trip_us"].dtype == "float64"
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(file)
    assert frame["trace_hash"].to_list() == expected["trace_hash"]
    assert frame["round_trip_us"].to_list() == expected["round_trip_us"]
    assert polars.DataFrame(expected).equals(frame)
    duckdb = pytest.importorskip("duckdb")
    query = f"select count(trace_hash), count(error), max(round_trip_us) from '{file}'"
    most = max(of for of in expected["round_trip_us"] if of is not None)
    assert duckdb.sql(query).fetchall() == [(POINTS // 2, POINTS // 2, most)]


def test_a_call_goes_on_where_one_ended(tmp_path, expected):
    """An exception ends a run, and the next call runs only what is missing; then nothing is."""
    file = tmp_path / "results.parquet"

    def enough(share):
        if share > 0.25:
            raise KeyError("enough")

    with pytest.raises(KeyError):
        bellwire.sweep(SMALL, file, progress=enough)
    kept = len((tmp_path / "results.parquet.journal").read_text().splitlines()) - 1
    assert 0 < kept < POINTS and not file.exists()
    shares = []
    results = bellwire.sweep(SMALL, file, progress=shares.append)
    assert len(shares) == POINTS - kept and shares[-1] == 1.0
    assert hashes(results) == hashes(expected)
    again = bellwire.sweep(SMALL, file, progress=lambda _: pytest.fail("a point ran again"))
    assert hashes(again) == hashes(expected) and again.file == str(file)
    assert sorted(os.listdir(tmp_path)) == ["results.parquet"]


def test_wrong_sweeps_and_files_are_refused(tmp_path):
    """Each mistake has its sentence, and no file of others is touched."""
    with pytest.raises(bellwire.ModelError, match="`lane` is no parameter of smp"):
        bellwire.sweep({"model": "smp", "load": "packets", "grid": {"lane": [1]}})
    file = tmp_path / "results.parquet"
    file.write_text("a letter")
    with pytest.raises(bellwire.ModelError, match="no Parquet file"):
        bellwire.sweep(SMALL, file)
    assert file.read_text() == "a letter"
    other = {"model": "smp", "load": "packets", "grid": {"lanes": [1, 8]}}
    file.unlink()
    bellwire.sweep(other, file)
    with pytest.raises(bellwire.ModelError, match="another sweep"):
        bellwire.sweep(SMALL, file)
    with pytest.raises(bellwire.ModelError, match="cannot write"):
        bellwire.sweep(SMALL, "/nowhere/results.parquet")
    with pytest.raises(TypeError, match="distributed.Client"):
        bellwire.sweep(SMALL, client=object())


def test_a_list_is_a_list_of_mappings():
    """The other forms of a sweep, as mappings."""
    listed = {"model": "smp", "load": "packets", "list": [{"lanes": 1}, {"lanes": 8, "clock": "125 MHz"}]}
    assert bellwire.sweep(listed)["lanes"] == [1, 8]
    sample = {"model": "smp", "load": "packets", "points": 16, "sobol": {"lanes": [1, 8]}}
    assert sorted(bellwire.sweep(sample)["lanes"]) == [1] * 8 + [8] * 8


def test_a_network_is_swept():
    """A network is a model as others are; a wrong parameter is told with those that there are."""
    results = bellwire.sweep(NETWORK)
    assert len(set(results["trace_hash"])) == 8 and set(results["error"]) == {None}
    assert results["topology"][0] == "{ crossbar = { ports = 16 } }" and results["hops"][0] == 1.0
    offered = zip(results["load.arrival.random.load"], results["throughput_beats"])
    assert all(0.5 * load < beats < 1.2 * load for load, beats in offered)
    assert hashes(bellwire.sweep(NETWORK)) == hashes(results)
    with pytest.raises(bellwire.ModelError, match="`router.vc` is no parameter of network.*`clock`, `vcs`"):
        bellwire.sweep({**NETWORK, "grid": {"router.vc": [2]}})


def kill_once(find):
    """A progress callback that kills a process of `find()` after the first rows."""
    killed = []

    def progress(_share):
        if not killed:
            pids = find()
            if pids:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

    return killed, progress


@pytest.fixture
def dask():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    )
    client = distributed.Client(cluster)
    yield client
    client.close()
    cluster.close()


def command_on(engine, tmp_path, *more):
    """What `bellwire model sweep --engine` tells, and the rows that it writes."""
    command = os.environ.get("BELLWIRE")
    if not command:
        pytest.skip("BELLWIRE does not name a command")
    file, out = tmp_path / "sweep.toml", tmp_path / "command.parquet"
    file.write_text(bellwire.model._read(SMALL)[0])
    # The command starts `python3`, which must be this one.
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    arguments = [command, "model", "sweep", file, "--out", out, "--engine", engine, "--json", *more]
    told = subprocess.run(
        arguments, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=DEADLINE_S
    )
    # Half of the points are refused, and the exit code says so.
    assert told.returncode == 1 and told.stdout, told.stderr
    return json.loads(told.stdout), pyarrow.parquet.read_table(out).to_pydict()


def test_dask_gives_the_same_rows(dask, tmp_path, expected):
    """The same points on three worker processes of Dask, one of which is killed in the middle, and
    again by the command."""
    pids = lambda: list(dask.run(os.getpid).values())
    assert len(set(pids()) - {os.getpid()}) == 3
    killed, progress = kill_once(pids)
    results = bellwire.sweep(SMALL, tmp_path / "results.parquet", client=dask, progress=progress)
    assert killed and hashes(results) == hashes(expected)
    assert results["round_trip_us"] == expected["round_trip_us"]
    assert hashes(bellwire.sweep(NETWORK, client=dask)) == hashes(bellwire.sweep(NETWORK))
    address = dask.scheduler.address.replace("tcp://", "dask://")
    told, rows = command_on(address, tmp_path)
    assert (told["points"], told["kept"], told["threads"]) == (POINTS, 0, 0)
    assert hashes(rows) == hashes(expected) and rows["round_trip_us"] == expected["round_trip_us"]


@pytest.fixture
def ray():
    ray = pytest.importorskip("ray")
    # Its warning of a small /dev/shm is no error of ours.
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    yield ray
    ray.shutdown()


def workers_of_ray():
    """Processes that run `_run`; Ray names its workers so."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                name = file.read()
        except OSError:
            continue
        if name.startswith(b"ray::_run"):
            found.append(int(pid))
    return found


def test_ray_gives_the_same_rows(ray, tmp_path, expected):
    """The same points on three worker processes of Ray, one of which is killed in the middle, and
    again by the command."""
    killed, progress = kill_once(workers_of_ray)
    results = bellwire.sweep(SMALL, tmp_path / "results.parquet", client=ray, progress=progress)
    assert killed and hashes(results) == hashes(expected)
    assert results["round_trip_us"] == expected["round_trip_us"]
    told, rows = command_on("ray:" + ray.get_runtime_context().gcs_address, tmp_path)
    assert (told["points"], told["kept"], told["threads"]) == (POINTS, 0, 0)
    assert hashes(rows) == hashes(expected) and rows["round_trip_us"] == expected["round_trip_us"]


DASK = """
    import distributed
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    client = distributed.Client(cluster)
"""
RAY = """
    import ray
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    client = ray
"""


@pytest.mark.parametrize("package, begin", [("distributed", DASK), ("ray", RAY)])
def test_a_killed_driver_goes_on(package, begin, tmp_path, expected):
    """The driver is killed, with its cluster. The next call runs what is missing, once."""
    pytest.importorskip(package)
    file, journal = tmp_path / "results.parquet", tmp_path / "results.parquet.journal"
    program = "if __name__ == '__main__':\n" + textwrap.indent(
        textwrap.dedent(begin)
        + textwrap.dedent(
            f"""
            import json, bellwire, time
            slow = lambda share: time.sleep(0.2)
            bellwire.sweep(json.loads({json.dumps(json.dumps(SMALL))}), {str(file)!r}, client=client, progress=slow)
            """
        ),
        "    ",
    )
    (tmp_path / "driver.py").write_text(program)
    with open(tmp_path / "log", "wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(tmp_path / "driver.py")], stdout=log, stderr=log, start_new_session=True
        )
    lines = lambda: journal.read_text().count("\n") if journal.exists() else 0
    deadline = time.monotonic() + DEADLINE_S
    while lines() < 10:
        assert driver.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    # Servants that Ray leaves behind for a while; those that go with their driver may be gone.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    kept = lines() - 1
    assert 0 < kept < POINTS and not file.exists()
    shares = []
    results = bellwire.sweep(SMALL, file, progress=shares.append)
    assert len(shares) == POINTS - kept
    assert hashes(results) == hashes(expected)
