"""Sweeps: one run of a model for each point, on this machine, on Dask or on Ray."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from bellwire import _bellwire
from bellwire.model import Config, Table, _read

__all__ = ["Results", "sweep"]

# A batch is a task of Dask or Ray. Each worker gets many, so that the last ones end together, and
# no batch is so large that a killed worker costs much.
BATCHES_PER_WORKER = 32
MOST_POINTS = 64

# How often a batch is tried again elsewhere after its worker has died.
RETRIES = 3


class Results(Table):
    """The rows of a sweep, one a point: parameters, seed, figures, trace hash, version, error.

    The drawings have each figure against each parameter, as `bellwire model sweep --html` does.
    """

    def __init__(self, table: Any, file: Optional[str], sweep: _bellwire._Sweep) -> None:
        super().__init__(table.to_pydict())
        self._sweep = sweep
        self._table = table
        self.file = file
        """The Parquet file; `None` if no name was given."""

    @functools.cached_property
    def drawings(self) -> List[str]:
        """The drawings, each the text of an SVG file."""
        names = self.keys()
        figures = names[names.index("seed") + 1 : names.index("trace_hash")]
        rows = []
        for row in self.rows():
            of = {name: row[name] for name in ("point", "trace_hash", "error")}
            ran = row["error"] is None
            rows.append(json.dumps({**of, "figures": [row[name] for name in figures] if ran else []}))
        return self._sweep.drawings(rows)

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """An Arrow stream of the rows. A column without a value has its type all the same."""
        return self._table.__arrow_c_stream__(requested_schema)


def sweep(
    sweep: Config,
    out: Optional[Union[str, "os.PathLike[str]"]] = None,
    *,
    client: Any = None,
    progress: Optional[Callable[[float], object]] = None,
) -> Results:
    """Runs a model once for each point of a grid, a list or a sample of its parameters.

    `sweep` is the file of `bellwire model sweep`, its text, or the same as a mapping; its form is
    in docs/sweeps.md. `out` is the Parquet file of the results; without it, that of a file has the
    file's name, and a text has none. A journal beside it keeps what has ended: the same call goes
    on after a kill, and repeats no point. The command can go on with it, too.

    `client` says who runs the points: all cores of this machine (`None`), a `distributed.Client`,
    or the module `ray` after `ray.init`. Workers need this package. They schedule, try again and
    move data as they do; a point has the same result everywhere.

    `progress` is called with the share done, from 0 to 1; an exception in it ends the run.

    Raises: `ModelError` for a sweep that is wrong, for results or a journal of something else, and
    if the results cannot be written. A point that fails raises nothing: its `error` says why.
    """
    pyarrow = _pyarrow()
    text, _ = _read(sweep)
    is_file = not isinstance(sweep, Mapping) and not (isinstance(sweep, str) and "\n" in sweep)
    if out is None and is_file:
        out = os.path.splitext(os.fspath(sweep))[0] + ".parquet"  # type: ignore[arg-type]
    opened = _bellwire._Sweep(text)
    run_on = _engine(client)
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return Results(_complete(pyarrow, opened, text, os.path.join(folder, "sweep"), run_on, progress), None, opened)
    file = os.fspath(out)
    found = _found(pyarrow, opened, file)
    if found is None:
        found = _complete(pyarrow, opened, text, file, run_on, progress)
    elif os.path.exists(file + ".journal"):
        # A run that was killed before its last step left it.
        _bellwire._Journal(file, opened).close(True)
    return Results(found, file, opened)


# Runs batches somewhere, and gives the rows of each to a callable.
_Engine = Callable[[str, List[int], Callable[[List[str]], None]], None]


def _engine(client: Any) -> Optional[_Engine]:
    """Who runs the points; nobody but this process if there is no client."""
    if client is None:
        return None
    if getattr(client, "__name__", None) == "ray":
        if not client.is_initialized():
            raise ValueError("ray has no cluster yet: call ray.init first")
        return functools.partial(_on_ray, client)
    if type(client).__module__.split(".")[0] == "distributed" and not client.asynchronous:
        return functools.partial(_on_dask, client)
    raise TypeError(
        f"client is {client!r}; give a distributed.Client that is not asynchronous, the module ray, or None"
    )


def _on_dask(client: Any, text: str, missing: List[int], keep: Callable[[List[str]], None]) -> None:
    from distributed import as_completed

    batches = _batches(missing, sum(client.nthreads().values()))
    # Not pure: what a former call computed may have been lost with its scheduler.
    futures = client.map(_run, [text] * len(batches), batches, version=_bellwire.__version__, pure=False, retries=RETRIES)
    try:
        for future, rows in as_completed(futures, with_results=True):
            keep(rows)
            future.release()
    finally:
        client.cancel(futures)


def _on_ray(ray: Any, text: str, missing: List[int], keep: Callable[[List[str]], None]) -> None:
    batches = _batches(missing, int(ray.cluster_resources().get("CPU", 1)))
    run = ray.remote(max_retries=RETRIES)(_run)
    pending = [run.remote(text, batch, _bellwire.__version__) for batch in batches]
    try:
        while pending:
            ended, pending = ray.wait(pending)
            for rows in ray.get(ended):
                keep(rows)
    finally:
        for left in pending:
            ray.cancel(left)


def _run(text: str, points: List[int], version: str) -> List[str]:
    """What a worker does: the rows of some points, for a driver of this version."""
    if version != _bellwire.__version__:
        raise RuntimeError(
            f"a worker has bellwire {_bellwire.__version__}, and the driver {version}; install the same one"
        )
    sweep = _opened.get(text)
    if sweep is None:
        _opened.clear()
        sweep = _opened[text] = _bellwire._Sweep(text)
    return sweep.run(points)


# The sweep that this worker ran last, by its text.
_opened: Dict[str, _bellwire._Sweep] = {}


def _batches(points: Sequence[int], workers: int) -> List[List[int]]:
    size = max(1, min(MOST_POINTS, len(points) // (BATCHES_PER_WORKER * max(1, workers))))
    return [list(points[at : at + size]) for at in range(0, len(points), size)]


def _complete(
    pyarrow: Any,
    sweep: _bellwire._Sweep,
    text: str,
    file: str,
    run_on: Optional[_Engine],
    progress: Optional[Callable[[float], object]],
) -> Any:
    """Runs what is missing, and writes the results."""
    journal = _bellwire._Journal(file, sweep)
    removes = False
    try:
        missing = journal.missing()
        done = sweep.points - len(missing)

        def told(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(done / sweep.points)

        def keep(rows: List[str]) -> None:
            journal.append(rows)
            told(len(rows))

        if run_on is None:
            journal.run(told)
        elif missing:
            run_on(text, missing, keep)
        table = _table(pyarrow, sweep, text, journal)
        _write(table, file)
        removes = True
        return table
    finally:
        journal.close(removes)


def _table(pyarrow: Any, sweep: _bellwire._Sweep, text: str, journal: _bellwire._Journal) -> Any:
    kinds: Dict[str, Any] = {
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "flag": pyarrow.bool_(),
        "text": pyarrow.string(),
    }
    arrays = [
        pyarrow.array(values, type=kinds[kind])
        for (_, kind), values in zip(sweep.columns, journal.values())
    ]
    metadata = {
        "bellwire.identity": sweep.identity,
        "bellwire.points": f"0..{sweep.points}",
        "bellwire.version": _bellwire.__version__,
        "bellwire.sweep": text,
    }
    schema = pyarrow.schema(
        [pyarrow.field(name, array.type) for (name, _), array in zip(sweep.columns, arrays)],
        metadata=metadata,
    )
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _write(table: Any, file: str) -> None:
    """Writes the results beside their place, and moves them there: they are never half a file."""
    import pyarrow.parquet

    new = file + ".new"
    try:
        with open(new, "wb") as stream:
            # The command reads it too, and has no compression.
            pyarrow.parquet.write_table(table, stream, compression="none")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(new, file)
    except OSError as error:
        if os.path.exists(new):
            os.unlink(new)
        raise _model_error(
            f"cannot write {file}: {error}; the points that ended are kept, so the same call goes on from there"
        ) from error


def _found(pyarrow: Any, sweep: _bellwire._Sweep, file: str) -> Any:
    """The results that are there already; `None` if there are none."""
    if not os.path.exists(file):
        return None
    advice = "give other results another name, or remove it"
    try:
        table = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise _model_error(f"{file} is there, and is no Parquet file; {advice}") from error
    metadata = table.schema.metadata or {}
    identity = metadata.get(b"bellwire.identity", b"").decode()
    if not identity:
        raise _model_error(f"{file} is there, and has no results of a sweep; {advice}")
    if identity != sweep.identity:
        raise _model_error(f"{file} has the results of another sweep; {advice}")
    version = metadata.get(b"bellwire.version", b"").decode()
    if version != _bellwire.__version__:
        raise _model_error(f"{file} is of version {version}, and this is {_bellwire.__version__}; {advice}")
    points = metadata.get(b"bellwire.points", b"").decode()
    if points != f"0..{sweep.points}":
        raise _model_error(f"{file} has the points {points} of this sweep, not all; {advice}")
    return table


def _model_error(sentence: str) -> Exception:
    from bellwire._errors import ModelError

    return ModelError(sentence)


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("results of sweeps are written by pyarrow: pip install 'bellwire[arrow]'") from None
    return pyarrow
