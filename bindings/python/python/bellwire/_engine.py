"""What `bellwire model sweep --engine` starts: it hands points to Dask or Ray, and prints rows.

Standard input has one JSON object: the version of the command, the sweep's text, the numbers of
its points. Each line of standard output is the row of a point.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any, Iterator, List

from bellwire import __version__
from bellwire._sweep import _engine

# How long a scheduler may take to answer, in seconds.
PATIENCE_S = 15


def main(address: str) -> None:
    """Runs the points of standard input on the cluster at `address`."""
    # What libraries print must not get between the rows.
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Ctrl-C ends this like the command that started it, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    order = json.load(sys.stdin)
    if order["version"] != __version__:
        sys.exit(
            f"this command is version {order['version']}, and the Python package is {__version__}; "
            "points of two versions may differ, so install the same one"
        )

    def keep(lines: List[str]) -> None:
        rows.writelines(line + "\n" for line in lines)
        rows.flush()

    try:
        with _cluster(address) as client:
            run_on = _engine(client)
            assert run_on is not None, "there is a client"
            run_on(order["sweep"], order["points"], keep)
    except BrokenPipeError:
        # The command has ended, and wants no more rows. Nothing is left to be flushed at the exit.
        os._exit(1)
    except Exception as why:  # whatever a library raises is told in a line
        sys.exit(f"{type(why).__name__}: {why}")


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """The client of a cluster: `dask://HOST:PORT`, `ray://HOST:PORT`, `ray:HOST:PORT`, `ray:auto`."""
    if address.startswith("dask://"):
        distributed = _import("distributed", "dask")
        client = distributed.Client("tcp://" + address[len("dask://") :], timeout=PATIENCE_S)
        try:
            yield client
        finally:
            client.close()
    else:
        ray = _import("ray", "ray")
        where = address if address.startswith("ray://") else address[len("ray:") :]
        ray.init(address=where, log_to_driver=False)
        try:
            yield ray
        finally:
            ray.shutdown()


def _import(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as why:
        sys.exit(f"{why}; install it: pip install 'bellwire[{extra}]'")
