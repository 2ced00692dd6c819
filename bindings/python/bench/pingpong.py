"""Ping-pong between two Python processes: `pingpong.py CONTENDER BYTES ROUNDS` prints the time of
one way in microseconds, the median of round trips in batches. Each batch is checked.

Both sides poll where the contender can. Each side has a processor of its own, if there are two.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Callable, Tuple

import numpy

Exchange = Callable[[], None]
Sides = Tuple[Exchange, Exchange, numpy.ndarray, numpy.ndarray]


def bellwire(side: int, length: int, place: str, memory: str = "numpy") -> Sides:
    """Arrays of NumPy, tensors of PyTorch, or memory that the library `allocated`."""
    import bellwire

    function = bellwire.Device(f"shm:{place}", node=side).open_function()
    completions = function.create_completion_queue(16)
    pair = function.create_queue_pair(completions)
    rights = bellwire.Rights.REMOTE_READ
    if memory == "allocated":
        source, target = function.allocate_region(length, rights), function.allocate_region(length)
        out, into = numpy.asarray(source), numpy.asarray(target)
    else:
        # Threads of NumPy's and PyTorch's libraries run for a moment before they sleep, and memory
        # that is registered meanwhile is not mapped by the peer.
        time.sleep(0.5)
        arrays = _tensors if memory == "torch" else _arrays
        lent, taken = arrays(length)
        source, target = function.register(lent, rights), function.register(taken)
        out, into = numpy.asarray(source), numpy.asarray(target)
    peer = bellwire.Address(1 - side)
    spin = bellwire.Wait.SPIN
    pair.post_receive(target)

    def send() -> None:
        pair.post_send(source, peer, signaled=False)

    def receive() -> None:
        completions.wait(60, spin).check()
        pair.post_receive(target)

    return send, receive, out, into


def bellwire_allocated(side: int, length: int, place: str) -> Sides:
    return bellwire(side, length, place, "allocated")


def bellwire_torch(side: int, length: int, place: str) -> Sides:
    return bellwire(side, length, place, "torch")


def _arrays(length: int) -> Tuple[object, object]:
    return numpy.zeros(length, "u1"), numpy.zeros(length, "u1")


def _tensors(length: int) -> Tuple[object, object]:
    """Two tensors of PyTorch, that of the environment or of Debian."""
    try:
        import torch
    except ModuleNotFoundError:
        sys.path.append("/usr/lib/python3/dist-packages")
        # Built for another NumPy, which it says at length. Tensors work without.
        stderr, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        import torch

        torch.zeros(1)
        os.dup2(stderr, 2)
    return torch.zeros(length, dtype=torch.uint8), torch.zeros(length, dtype=torch.uint8)


def pipe(side: int, length: int, place: str) -> Sides:
    """multiprocessing.Pipe: a Unix socket with frames."""
    from multiprocessing.connection import Client, Listener

    path = f"/tmp/{place}"
    connection = Listener(path).accept() if side == 0 else _patiently(lambda: Client(path))
    out, into = numpy.zeros(length, "u1"), numpy.zeros(length, "u1")
    return (
        lambda: connection.send_bytes(out),
        lambda: connection.recv_bytes_into(into) and None,
        out,
        into,
    )


def zmq(side: int, length: int, place: str) -> Sides:
    """pyzmq: PAIR over ipc, without copies."""
    import zmq

    socket = zmq.Context().socket(zmq.PAIR)
    (socket.bind if side == 0 else socket.connect)(f"ipc:///tmp/{place}")
    out, into = numpy.zeros(length, "u1"), numpy.zeros(length, "u1")

    def receive() -> None:
        frame = socket.recv(copy=False)
        into[:] = numpy.frombuffer(frame.buffer, "u1")

    return lambda: socket.send(out, copy=length < 65536), receive, out, into


def mpi(side: int, length: int, place: str) -> Sides:
    """mpi4py: Send and Recv of buffers."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    out, into = numpy.zeros(length, "u1"), numpy.zeros(length, "u1")
    return (
        lambda: world.Send([out, MPI.BYTE], 1 - side),
        lambda: world.Recv([into, MPI.BYTE], 1 - side),
        out,
        into,
    )


def shared_memory(side: int, length: int, place: str) -> Sides:
    """multiprocessing.shared_memory with a flag: one copy in, one out."""
    from multiprocessing import resource_tracker, shared_memory

    size = 2 * (length + 64)
    if side == 0:
        memory = shared_memory.SharedMemory(place, create=True, size=size)
    else:
        memory = _patiently(lambda: shared_memory.SharedMemory(place))
        resource_tracker.unregister(memory._name, "shared_memory")
    halves = [memory.buf[at : at + length + 64] for at in (0, length + 64)]
    mine, theirs = (numpy.frombuffer(halves[at], "u1") for at in (side, 1 - side))
    my_flag, their_flag = (halves[at][length : length + 1] for at in (side, 1 - side))
    out, into = numpy.zeros(length, "u1"), numpy.zeros(length, "u1")
    sent = received = 0

    def send() -> None:
        nonlocal sent
        sent = (sent + 1) % 256
        mine[:length] = out
        my_flag[0] = sent

    def receive() -> None:
        nonlocal received
        received = (received + 1) % 256
        while their_flag[0] != received:
            pass
        into[:] = theirs[:length]

    if side == 0:
        import atexit

        atexit.register(memory.unlink)
    return send, receive, out, into


def ray(length: int, rounds: int) -> None:
    """Ray's object store: `put` here, a task there that takes the array and puts its answer."""
    import ray

    # Its warning of a small /dev/shm is no error of ours.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)

    @ray.remote
    class Other:
        def answer(self, array: numpy.ndarray) -> numpy.ndarray:
            into = numpy.empty_like(array)
            into[:] = array
            return into

    other = Other.remote()
    out, into, times = (numpy.arange(length) % 251).astype("u1"), numpy.zeros(length, "u1"), []
    for number in range(-50, rounds):
        begin = time.perf_counter_ns()
        out[0] = number % 251
        into[:] = ray.get(other.answer.remote(ray.put(out)))
        if number >= 0:
            times.append((time.perf_counter_ns() - begin) / 2000)
        assert into[0] == number % 251, "ray: wrong data"
    print(f"{statistics.median(times):.3f}")
    ray.shutdown()


CONTENDERS = {
    "bellwire": bellwire,
    "bellwire-allocated": bellwire_allocated,
    "bellwire-torch": bellwire_torch,
    "pipe": pipe,
    "zmq": zmq,
    "mpi": mpi,
    "shared-memory": shared_memory,
}


def _patiently(make: Callable[[], object]) -> object:
    deadline = time.monotonic() + 30
    while True:
        try:
            return make()
        except (FileNotFoundError, ConnectionRefusedError, ValueError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def run(contender: str, side: int, length: int, rounds: int, place: str) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[0 if side == 0 else -1]})
    send, receive, out, into = CONTENDERS[contender](side, length, place)
    # Memory that was never written is one page of zeros, which lies in the cache.
    out[:], into[:] = numpy.arange(length) % 251, 255
    batch = 8 if length <= 4096 else 1
    times = []
    for number in range(-50, rounds):
        begin = time.perf_counter_ns()
        if side == 0:
            # The answer tells that the peer has all of the last message.
            out[0] = number % 251
            for _ in range(batch):
                send()
                receive()
        else:
            for _ in range(batch):
                receive()
                out[0] = number % 251
                send()
        if number >= 0:
            times.append((time.perf_counter_ns() - begin) / batch / 2000)
        assert into[0] == number % 251, f"{contender}: wrong data"
    assert (into[1:] == out[1:]).all(), f"{contender}: wrong data"
    # The last message leaves, and nobody ends before the other is done.
    if side == 0:
        send()
        print(f"{statistics.median(times):.3f}")
    else:
        receive()


def main() -> None:
    contender, length, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        run(contender, int(sys.argv[4]), length, rounds, sys.argv[5])
        return
    if contender == "ray":
        # It schedules tasks of its own, in processes of its own.
        ray(length, min(rounds, 300))
        return
    if contender == "mpi":
        from mpi4py import MPI

        run(contender, MPI.COMM_WORLD.Get_rank(), length, rounds, "")
        return
    place = f"bellwire-pingpong-{os.getpid()}"
    arguments = [sys.executable, __file__, contender, str(length), str(rounds)]
    other = subprocess.Popen([*arguments, "1", place])
    try:
        run(contender, 0, length, rounds, place)
        sys.exit(other.wait(60))
    finally:
        other.kill()
        if os.path.exists(f"/tmp/{place}"):
            os.unlink(f"/tmp/{place}")


if __name__ == "__main__":
    main()
