"""Wrong use ends in an exception, never in a crash of the interpreter."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import bellwire
from bellwire import Rights
from conftest import DEADLINE_S, End, ended, job


def test_posted_memory_stays_when_the_program_forgets_it(ends):
    """A posted array lives until its completion, and no longer."""
    here, there = ends
    source, target = np.full(400_000, 3, np.uint8), np.zeros(400_000, np.uint8)
    gone = [weakref.ref(source), weakref.ref(target)]
    there.pair.post_receive(target)
    here.pair.post_send(source, to=there.address)
    del source, target
    gc.collect()
    assert all(reference() is not None for reference in gone)
    done = there.done(here)
    assert done.array().min() == 3
    sent = here.done(there)
    del done, sent
    gc.collect()
    assert all(reference() is None for reference in gone)


def test_lent_memory_cannot_be_resized(ends):
    """A bytearray under way, or registered, refuses to be resized, and can be afterwards."""
    here, there = ends
    buffer = bytearray(100_000)
    there.pair.post_receive(buffer)
    with pytest.raises(BufferError):
        buffer.append(1)
    here.pair.post_send(bytes(100_000), to=there.address)
    there.done(here)
    buffer.append(1)
    with here.function.register(buffer, Rights.REMOTE_WRITE):
        with pytest.raises(BufferError):
            buffer.clear()
    buffer.clear()
    # A refused post lends nothing.
    with pytest.raises(bellwire.BadDestination):
        here.pair.post_send(bytearray(100_000))
    refused = bytearray(100_000)
    narrow = here.function.create_queue_pair(here.completions, receive_depth=1)
    narrow.post_receive(8)
    with pytest.raises(bellwire.QueueFull):
        narrow.post_receive(refused)
    refused.append(1)


def test_a_region_in_use_cannot_end(ends):
    """A region ends only after the descriptors that use it, and its views outlive it."""
    here, _ = ends
    region = here.function.allocate_region(4096, Rights.REMOTE_READ)
    array = np.asarray(region)
    here.pair.post_receive(region[0:64])
    with pytest.raises(bellwire.InUse):
        region.deregister()
    here.pair.destroy()
    assert here.completions.wait(DEADLINE_S).status is bellwire.Status.FLUSHED
    region.deregister()
    region.deregister()
    array[:] = 7
    assert region.view()[4095] == 7


def test_a_forgotten_region_ends(ends):
    """A region whose handle is gone gives its memory back with the next call."""
    here, _ = ends
    memory = bytearray(4096)
    region = here.function.register(memory, Rights.ALL)
    here.pair.post_receive(region)
    del region
    with pytest.raises(BufferError):
        memory.append(1)
    here.pair.destroy()
    assert here.completions.wait(DEADLINE_S).status is bellwire.Status.FLUSHED
    gc.collect()
    here.function.progress()
    memory.append(1)


def test_a_closed_function_says_so(ends):
    """Every object of a closed function raises `Closed`, and lends no memory any more."""
    here, there = ends
    buffer, registered = bytearray(100_000), bytearray(8)
    here.pair.post_receive(buffer)
    region = here.function.register(registered)
    view = here.function.allocate_region(64).view()
    here.function.close()
    here.function.close()
    buffer.append(1)
    for call in (
        here.completions.poll,
        here.completions.wait,
        here.completions.begin_sleep,
        here.function.progress,
        lambda: here.pair.post_receive(8),
        lambda: here.pair.post_send(b"x", to=there.address),
        lambda: here.pair.send(b"x", to=there.address),
        lambda: here.function.register(bytearray(8)),
    ):
        with pytest.raises(bellwire.Closed, match="closed"):
            call()
    assert list(here.completions) == []
    region.deregister()
    registered.append(1)
    view[0] = 1
    with here.pair:
        pass


def test_the_exporter_type_holds_nothing_by_itself(ends):
    """The object behind a view cannot be made without memory."""
    here, _ = ends
    exporter = type(here.function.allocate_region(64).view().obj)
    with pytest.raises((BufferError, TypeError)):
        memoryview(exporter())


def test_threads_share_a_function(ends):
    """Threads post, wait and poll at one function; every message arrives once, at the right one."""
    here, there = ends
    count, threads = 300, 4
    queues = [there.function.create_completion_queue(count) for _ in range(threads)]
    pairs = [there.function.create_queue_pair(queue) for queue in queues]
    sums, failures = [0] * threads, []

    def receiver(number: int) -> None:
        try:
            for _ in range(count):
                how = bellwire.Wait.BLOCK if number % 2 else bellwire.Wait.ADAPTIVE
                pairs[number].post_receive(8)
                done = queues[number].wait(DEADLINE_S, how).check()
                sums[number] += int.from_bytes(done.view(), "little")
        except BaseException as error:
            failures.append(error)

    def sender(number: int) -> None:
        try:
            for value in range(count):
                here.pair.send(value.to_bytes(8, "little"), to=pairs[number].address, timeout=DEADLINE_S)
        except BaseException as error:
            failures.append(error)

    crowd = [threading.Thread(target=receiver, args=(number,)) for number in range(threads)]
    crowd += [threading.Thread(target=sender, args=(number,)) for number in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(DEADLINE_S)
    assert not failures and not any(thread.is_alive() for thread in crowd)
    assert sums == [sum(range(count))] * threads


def test_closing_wakes_threads_that_wait(ends):
    """Threads that wait when another closes the function end with `Closed`."""
    here, _ = ends
    ended_with = []

    def waiter(how: bellwire.Wait) -> None:
        try:
            here.completions.wait(DEADLINE_S, how)
        except bellwire.Error as error:
            ended_with.append(type(error))

    crowd = [threading.Thread(target=waiter, args=(how,)) for how in bellwire.Wait]
    for thread in crowd:
        thread.start()
    time.sleep(0.1)
    here.function.close()
    for thread in crowd:
        thread.join(DEADLINE_S)
    assert ended_with == [bellwire.Closed] * 3


@pytest.mark.parametrize("how", list(bellwire.Wait))
def test_a_signal_handler_that_raises_ends_a_wait(program, how):
    """An exception in a signal handler leaves the wait, and the function stays usable."""
    process = program(
        """
        import signal, sys, bellwire
        pair = bellwire.open_queue_pair(sys.argv[1], node=1)
        class Handled(Exception): pass
        def handler(*_): raise Handled
        signal.signal(signal.SIGUSR1, handler)
        print("ready", flush=True)
        try:
            pair.completions.wait(60, bellwire.Wait[sys.argv[2]])
        except Handled:
            pair.receive(8, timeout=60)
            print("handled")
        """,
        name := job(),
        how.name,
    )
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + DEADLINE_S
    pair = bellwire.open_queue_pair(name, node=0)
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGUSR1)
    pair.send(b"after", to="1.0.1", timeout=deadline - time.monotonic())
    assert ended(process) == "handled\n"


def test_an_exporter_that_fails_is_an_exception(ends):
    """An exception of an object that should lend its memory comes through."""
    here, _ = ends

    class Bad:
        def __dlpack__(self) -> object:
            raise RuntimeError("no memory today")

        def __buffer__(self, flags: int) -> memoryview:
            raise RuntimeError("no memory today")

    class Worse:
        def __dlpack__(self) -> object:
            return 5

    with pytest.raises(RuntimeError, match="today"):
        here.pair.post_send(Bad(), to="1.0.1")
    with pytest.raises(TypeError):
        here.pair.post_send(Worse(), to="1.0.1")


def test_the_end_of_a_context_may_use_the_function(ends):
    """A finalizer that runs while a descriptor is given back may call the function again."""
    here, there = ends
    seen = []

    class Context:
        def __del__(self) -> None:
            seen.append(here.function.progress())

    for _ in range(3):
        there.pair.post_receive(8)
        here.pair.post_send(b"x", to=there.address, context=Context(), signaled=False)
    for _ in range(3):
        there.done(here)
    here.completions.poll()
    here.function.progress()
    assert len(seen) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_is_told(ends):
    """A child may use nothing of its parent's function, and the parent's traffic goes on."""
    here, there = ends
    region = here.function.register(bytearray(64), Rights.ALL)
    here.pair.post_receive(bytearray(100_000))
    stop = threading.Event()

    # A thread that polls without the interpreter's lock, for ever at the moment of the fork.
    quiet = here.function.create_completion_queue()

    def busy() -> None:
        while not stop.is_set():
            try:
                quiet.wait(0.2, bellwire.Wait.SPIN)
            except bellwire.TimedOut:
                pass

    thread = threading.Thread(target=busy)
    thread.start()
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        try:
            for call in (
                here.completions.poll,
                here.function.progress,
                lambda: here.pair.send(b"x", to=there.address),
                lambda: here.device.open_function(3),
            ):
                try:
                    call()
                    os._exit(2)
                except bellwire.Forked:
                    pass
            here.function.close()
            region.deregister()
            del region
            gc.collect()
            own = End(job(), node=0)
            own.function.close()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    stop.set()
    thread.join(DEADLINE_S)
    assert os.waitstatus_to_exitcode(status) == 0
    here.pair.post_send(b"still here", to=there.address)
    there.pair.post_receive(16)
    assert bytes(there.done(here).view()) == b"still here"


@pytest.mark.parametrize("how", ["waits", "polls", "posted", "views", "loop"])
def test_the_interpreter_may_end_with_work_under_way(program, how):
    """An interpreter that ends while threads wait, or memory is lent, ends in order."""
    process = program(
        """
        import asyncio, sys, threading, time, bellwire, numpy
        function = bellwire.Device(sys.argv[1]).open_function()
        completions = function.create_completion_queue()
        pair = function.create_queue_pair(completions)
        how = sys.argv[2]
        if how in ("waits", "polls"):
            kind = bellwire.Wait.BLOCK if how == "waits" else bellwire.Wait.SPIN
            for _ in range(3):
                threading.Thread(target=completions.wait, args=(None, kind), daemon=True).start()
            time.sleep(0.2)
        if how == "posted":
            pair.post_receive(numpy.zeros(1 << 20))
            pair.post_send(numpy.zeros(1 << 20), to="7.0.1")
        if how == "views":
            region = function.register(bytearray(100), bellwire.Rights.ALL)
            array = numpy.asarray(function.allocate_region(1 << 16))
            pair.post_receive(region)
        if how == "loop":
            async def forever():
                async for done in completions:
                    pass
            async def main():
                task = asyncio.ensure_future(forever())
                await asyncio.sleep(0.1)
            asyncio.run(main())
        print("end", flush=True)
        """,
        job(),
        how,
    )
    assert ended(process) == "end\n"


def test_a_killed_peer_is_noticed(program):
    """When a peer is killed, what is under way to it ends with `PeerGone`."""
    process = program(
        """
        import sys, time, bellwire
        pair = bellwire.open_queue_pair(sys.argv[1], node=1)
        pair.receive(8, timeout=60)
        print("ready", flush=True)
        time.sleep(60)
        """,
        name := job(),
    )
    pair = bellwire.open_queue_pair(name, node=0)
    pair.send(b"x", to="1.0.1", timeout=DEADLINE_S)
    process.stdout.readline()
    data = bytearray(1 << 20)
    pair.post_send(data, to="1.0.1")
    process.kill()
    with pytest.raises(bellwire.PeerGone) as gone:
        pair.completions.wait(DEADLINE_S).check()
    assert isinstance(gone.value, ConnectionError)
    data.append(1)


def test_memory_with_addresses_is_refused(ends):
    """What holds addresses of objects is neither sent, received into nor registered."""
    here, there = ends
    record = np.zeros(2, [("a", "O"), ("b", "i4"), ("c", "M8[s]")])
    objects = [np.array([None, None]), record[["a", "b"]].copy(), record, (ctypes.py_object * 2)()]
    objects += [memoryview(objects[0]), (ctypes.c_char_p * 2)(), (ctypes.POINTER(ctypes.c_int) * 2)()]
    if hasattr(np.dtypes, "StringDType"):
        objects.append(np.array(["a text that is long enough for the heap"], np.dtypes.StringDType()))
    for wrong in objects:
        for use in (
            lambda: here.pair.post_send(wrong, to=there.address),
            lambda: here.pair.post_receive(wrong),
            lambda: here.function.register(wrong),
        ):
            with pytest.raises((TypeError, ValueError), match="addresses|cannot include dtype"):
                use()
    # A name may have the letters, and so may the form of a complex number.
    for right in (np.zeros(2, [("Oz&", "i4"), ("X", "f8")]), np.zeros(2, complex), (ctypes.c_int * 2)()):
        here.pair.post_receive(right)


INTERRUPTED = {
    "lookup": 'bellwire.Device("udp:" + sys.argv[1]).lookup("192.0.2.1", timeout=1000)',
    "paper": 'model.paper("chpp", "fig5")',
    "explain": 'model.explain("put", 1 << 27, {"host": {"window": "256 MiB"}})',
    "run": "model.run(PLAN)",
}


@pytest.mark.parametrize("call", list(INTERRUPTED))
def test_ctrl_c_ends_a_long_call(program, call):
    """Ctrl-C ends a call whose work goes on for long."""
    process = program(
        f"""
        import os, sys, bellwire
        from bellwire import model
        PLAN = model.example("network").replace("cycles = 20000\\n", "cycles = 2000000000\\n")
        def works():
            names = (open(f"/proc/self/task/{{task}}/comm").read() for task in os.listdir("/proc/self/task"))
            return "bellwire-work\\n" in names
        try:
            {INTERRUPTED[call]}
        except KeyboardInterrupt:
            print("interrupted", works(), flush=True)
            os._exit(0)
        """,
        f"127.{os.getpid() % 250 + 2}.{os.getpid() // 250 % 250}.3",
    )
    deadline = time.monotonic() + DEADLINE_S
    while not has_worker(process.pid):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    # The work still goes on, so its end is not what ended the call.
    assert ended(process) == "interrupted True\n"


def has_worker(pid: int) -> bool:
    """Whether the process has a thread that does work for a call."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            if file.read() == "bellwire-work\n":
                return True
    return False
