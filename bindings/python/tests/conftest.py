"""What the tests share: pairs of functions in one process, and programs in processes of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import time
from typing import Any, Callable, Iterator, Tuple

import pytest

import bellwire

# A limit that ends what hangs. It says nothing of speed.
DEADLINE_S = 60.0

_jobs = itertools.count()


def job() -> str:
    """The name of a job that no other test uses."""
    return f"shm:python-{os.getpid()}-{next(_jobs)}"


class End:
    """A function with one completion queue and one queue pair."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.device = bellwire.Device(name, **settings)
        self.function = self.device.open_function()
        self.completions = self.function.create_completion_queue(256)
        self.pair = self.function.create_queue_pair(self.completions)
        self.address = self.pair.address

    def done(self, *others: "End") -> bellwire.Completion:
        """The next completion, which must be a success. Others in this thread make progress too."""
        if not others:
            return self.completions.wait(DEADLINE_S).check()
        deadline = time.monotonic() + DEADLINE_S
        while True:
            done = self.completions.poll()
            if done is not None:
                return done.check()
            assert time.monotonic() < deadline, "nothing completed"
            for other in others:
                other.function.progress()


@pytest.fixture
def ends() -> Iterator[Tuple[End, End]]:
    """Two nodes of one job, in this process."""
    name = job()
    here, there = End(name, node=0), End(name, node=1)
    # Both have to make progress until the link is up, and they share a thread.
    for one, other in ((here, there), (there, here)):
        other.pair.post_receive(1)
        one.pair.post_send(b"", to=other.address)
        one.done(other)
        other.done(one)
    yield here, there
    here.function.close()
    there.function.close()


@pytest.fixture
def program() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a Python program in a process of its own, which ends with the test."""
    running = []

    def start(text: str, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]") -> str:
    """What a program printed. It must end, and by itself."""
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, f"status {process.returncode}\n{out}\n{err}"
    return out
