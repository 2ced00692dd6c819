"""Messages, puts, gets, atomics and connections."""

from __future__ import annotations

import mmap
import os
import pickle

import numpy as np
import pytest

import bellwire
from bellwire import Operation, Rights, Status
from conftest import DEADLINE_S, End, ended, job


def test_three_lines_move_an_array_between_two_processes(program):
    """The first example of the documentation works as it stands there."""
    name = job()
    receiver = program(
        """
        import sys, bellwire, numpy
        pair = bellwire.open_queue_pair(sys.argv[1] + "?node=1")
        array = numpy.empty(1_000_000)
        pair.receive(array, timeout=60)
        print(array.sum())
        """,
        name,
    )
    pair = bellwire.open_queue_pair(name + "?node=0")
    pair.send(np.arange(1_000_000, dtype=float), to="1.0.1", timeout=DEADLINE_S)
    assert float(ended(receiver)) == sum(range(1_000_000))


@pytest.mark.parametrize("length", [0, 1, 8, 4096, 100_000, 3_000_000])
@pytest.mark.parametrize("memory", [bytearray, "numpy", "mmap", "region", "slice"])
def test_every_memory_carries_every_length(ends, length, memory):
    """Any memory sends and receives any length, and the completion returns the posted object."""
    here, there = ends
    data = np.random.default_rng(7).integers(0, 256, length, dtype=np.uint8).tobytes()

    def make(end: End, content: bytes):
        size = len(content) + 64
        if memory is bytearray:
            buffer = bytearray(content)
            return buffer, buffer
        if memory == "numpy":
            array = np.frombuffer(bytearray(content), np.uint8)
            return array, array
        if memory == "mmap":
            pages = mmap.mmap(-1, size)
            pages[: len(content)] = content
            view = memoryview(pages)[: len(content)]
            return view, view
        region = end.function.allocate_region(size)
        region.view()[5 : 5 + len(content)] = content
        part = region[5 : 5 + len(content)]
        return part, part.view()

    target, received = make(there, bytes(length))
    source, _ = make(here, data)
    there.pair.post_receive(target, context="in")
    here.pair.post_send(source, to=there.address, immediate=5, context=["out"])
    # One thread drives both ends, so each gets its turns.
    sent = done = None
    while sent is None or done is None:
        sent = sent or here.completions.poll()
        done = done or there.completions.poll()
    assert (sent.status, sent.operation, sent.context) == (Status.SUCCESS, Operation.SEND, ["out"])
    assert (done.operation, done.context, done.length) == (Operation.RECEIVE, "in", length)
    assert done.immediate == 5 and done.peer == here.address and done.ok
    assert done.buffer is target and sent.buffer is source
    assert bytes(received) == data and bytes(done.view()) == data
    assert done.array().tobytes() == data


def test_a_number_of_bytes_is_a_new_bytearray(ends):
    """A receive of a number of bytes returns them in a bytearray, and as an array without a copy."""
    here, there = ends
    there.pair.post_receive(64)
    here.pair.post_send(np.arange(4, dtype=np.int32), to=str(there.address))
    done = there.done()
    assert isinstance(done.buffer, bytearray) and len(done.buffer) == 64
    array = done.array(np.int32)
    assert array.tolist() == [0, 1, 2, 3]
    done.buffer[0] = 9
    assert array[0] == 9


class Tensor:
    """An array of which only DLPack is left, as of a library without the buffer protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)


def test_tensors_travel_by_dlpack(ends):
    """A tensor is sent and received in place; one that is not contiguous is refused."""
    here, there = ends
    target = np.zeros((300, 100), np.float32)
    source = np.random.default_rng(1).random((300, 100), np.float32)
    there.pair.post_receive(Tensor(target))
    here.pair.post_send(Tensor(source), to=there.address)
    done = there.done(here)
    assert done.length == source.nbytes and (target == source).all()
    with pytest.raises(BufferError, match="contiguous"):
        here.pair.post_send(Tensor(source[:, ::2]), to=there.address)
    # A registered one has a view of its bytes, which keeps them.
    region = here.function.register(Tensor(target), Rights.REMOTE_READ)
    view, array = region.view(), np.asarray(region[4:8])
    region.deregister()
    assert view.nbytes == target.nbytes and not view.readonly
    view[4:8] = b"\x00\x00\x80\x3f"
    assert target[0, 1] == 1.0 and array[3] == 0x3F


def test_what_arrived_has_a_view_and_an_array(ends):
    """A completion shows tensors, dates and arrays without items as bytes and as arrays, in place."""
    here, there = ends
    dates = np.array(["2026-11-26", "1998-01-31", "NaT"], "M8[s]")
    target = np.zeros(4, "M8[s]")
    there.pair.post_receive(target)
    here.pair.post_send(dates, to=there.address)
    done = there.done(here)
    assert bytes(done.view()) == dates.tobytes() and done.view().nbytes == 24
    assert done.array().dtype == dates.dtype and done.array("M8[s]")[0] == dates[0]
    done.array("i8")[0] = 0
    assert target[0] == np.datetime64(0, "s")
    tensor = Tensor(target := np.zeros((3, 2), np.float32))
    there.pair.post_receive(tensor)
    here.pair.post_send(np.ones((3, 2), np.float32), to=there.address)
    done = there.done(here)
    assert done.view().nbytes == 24 and done.array().dtype == np.uint8
    done.array(np.float32)[5] = 7
    assert done.buffer is tensor and target[2, 1] == 7 and target[0, 0] == 1
    there.pair.post_receive(np.zeros((0, 4)))
    here.pair.post_send(np.zeros((4, 0), np.int16), to=there.address)
    done = there.done(here)
    assert bytes(done.view()) == b"" and done.array().dtype == float and len(done.array()) == 0
    with here.function.register(dates) as region:
        assert bytes(region.view()) == dates.tobytes()


def test_a_receive_that_timed_out_loses_nothing(ends):
    """The message that arrives later is the result of the next receive, whatever its buffer."""
    here, there = ends
    first, second = bytearray(8), np.zeros(8, np.uint8)
    for buffer in (first, second, 8, first):
        with pytest.raises(bellwire.TimedOut):
            here.pair.receive(buffer, timeout=0.001)
    assert here.pair.counters()["posted_receives"] == 1
    with pytest.raises(TypeError, match="no memory"):
        here.pair.receive("text")
    there.pair.send(b"one", to=here.address, timeout=DEADLINE_S)
    done = here.pair.receive(second, timeout=DEADLINE_S)
    assert done.buffer is second and bytes(second[:3]) == b"one" and done.length == 3
    # It has come already, into the same buffer; and a shorter one cuts it.
    for buffer, kept in ((first, b"three"), (2, b"th")):
        with pytest.raises(bellwire.TimedOut):
            here.pair.receive(first, timeout=0.001)
        there.pair.send(b"three", to=here.address, timeout=DEADLINE_S)
        try:
            done = here.pair.receive(buffer, timeout=DEADLINE_S)
        except bellwire.Truncated as cut:
            assert buffer == 2
            done = cut.completion
        assert bytes(done.view()) == kept
    # Once the queue has given it away, the next message is the next one.
    with pytest.raises(bellwire.TimedOut):
        here.pair.receive(8, timeout=0.001)
    there.pair.send(b"four", to=here.address, timeout=DEADLINE_S)
    assert bytes(here.done().view()) == b"four"
    here.pair.post_receive(8)
    there.pair.send(b"five", to=here.address, timeout=DEADLINE_S)
    assert bytes(here.done().view()) == b"five"


def test_with_blocks_close_what_they_opened():
    """What `with` opened is closed at its end, so that the node can be opened again."""
    name = job()
    for _ in range(2):
        with bellwire.open_queue_pair(name, node=0) as pair:
            assert pair.function.device.node == 0 and repr(pair.function.device).endswith("node 0>")
        with pytest.raises(bellwire.Closed):
            pair.post_receive(8)
    for _ in range(2):
        with bellwire.Device(name, node=0) as device:
            function = device.open_function()
            with function.create_completion_queue() as queue, function.create_shared_receive_queue() as shared:
                with function.create_queue_pair(queue, shared_receive=shared):
                    shared.post_receive(8)
            with pytest.raises(bellwire.NoSuchCompletionQueue):
                queue.poll()
            with pytest.raises(bellwire.NoSuchSharedReceiveQueue):
                shared.post_receive(8)
        with pytest.raises(bellwire.Closed):
            function.progress()
        for use in (device.open_function, device.describe, lambda: device.lookup("x")):
            with pytest.raises(bellwire.Closed, match="device is closed"):
                use()
        assert repr(device).endswith("node 0, closed>") and device.node == 0
        device.close()


def test_a_key_and_a_failure_can_be_pickled(ends):
    """They go to other processes by pickle; the exception leaves its buffers behind."""
    here, there = ends
    key = there.function.allocate_region(64, Rights.ALL).remote_key
    assert pickle.loads(pickle.dumps(key)) == key
    with pytest.raises(bellwire.NoSuchQueuePair) as failed:
        bellwire_done(here, lambda: here.pair.post_send(b"x", to=bellwire.Address(1, 0, 99)))
    copy = pickle.loads(pickle.dumps(failed.value))
    assert type(copy) is bellwire.NoSuchQueuePair and str(copy) == str(failed.value)
    region = there.function.allocate_region(64)
    with pytest.raises(bellwire.NotPermitted) as failed:
        bellwire_done(here, lambda: here.pair.post_put(b"x", region.remote_key[:1]), there)
    assert failed.value.completion is not None
    copy = pickle.loads(pickle.dumps(failed.value))
    assert type(copy) is bellwire.NotPermitted and copy.completion is None
    assert copy.args == failed.value.args


def bellwire_done(end: End, post, *others: End) -> bellwire.Completion:
    """The result of what `post` posts."""
    post()
    return end.done(*others)


def test_puts_gets_and_atomics(ends):
    """One-sided operations reach a peer's memory, and an event tells the peer."""
    here, there = ends
    memory = np.zeros(1 << 16, np.uint8)
    with there.function.register(memory, Rights.ALL) as region:
        key = bellwire.RemoteKey.from_bytes(region.remote_key.to_bytes())
        assert key == region.remote_key and len(key) == memory.nbytes
        here.pair.post_put(b"abc", key[8:11], event=there.pair.number, immediate=4)
        here.done(there)
        event = there.done(here)
        assert (event.operation, event.immediate, event.length) == (Operation.REMOTE_PUT, 4, 3)
        assert memory[8:11].tobytes() == b"abc" and event.buffer is None
        # Two sources, one destination.
        here.pair.post_put([bytearray(b"12"), np.full(20_000, 7, np.uint8)], key[100:20_102])
        done = here.done(there)
        assert len(done.buffers) == 2 and memory[102] == 7
        back = [bytearray(2), np.zeros(20_000, np.uint8)]
        here.pair.post_get(key[100:20_102], back, context=back)
        done = here.done(there)
        assert done.context is back and back[0] == b"12" and back[1].all()
        here.pair.post_fetch_add(key.at(0), 5)
        here.pair.post_compare_swap(key.at(0), 5, 9)
        values = []
        while len(values) < 2:
            there.function.progress()
            values += [done.value for done in here.completions.drain()]
        assert values == [0, 5] and region.load_u64(0) == 9
    here.pair.post_put(b"late", key[0:4])
    while not (done := here.completions.poll()):
        there.function.progress()
    assert done.status is Status.WRONG_KEY
    with pytest.raises(bellwire.NotPermitted, match="key") as failed:
        done.check()
    assert failed.value.completion is done and isinstance(failed.value, PermissionError)


def test_peers_map_the_pages_of_a_registered_array(program):
    """An array that NumPy allocated is reached byte by byte as a mapping, and beside its whole pages,
    where it shares pages with others, all the same. At the end its pages are the program's again."""
    owner = program(
        """
        import os
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # Another thread may run just then.
        import sys, bellwire, numpy
        function = bellwire.Device(sys.argv[1], node=1).open_function()
        pair = function.create_queue_pair(function.create_completion_queue())
        array = numpy.arange(1 << 18, dtype="u4")
        region = function.register(array, bellwire.Rights.ALL)
        pair.send(region.remote_key.to_bytes(), to="0.0.1", timeout=60)
        maps = lambda: open("/proc/self/maps").read().count("bellwire pages")
        pair.receive(8, timeout=60)
        changed = [int(at) for at in numpy.nonzero(array != numpy.arange(1 << 18, dtype="u4"))[0]]
        print(array.__array_interface__["data"][0] % 4096, maps(), changed, int(array[4]))
        region.deregister()
        print(maps(), int(array[4]), flush=True)
        """,
        name := job(),
    )
    pair = bellwire.open_queue_pair(name, node=0)
    pair.receive(key := bytearray(bellwire.RemoteKey.BYTES), timeout=DEADLINE_S)
    key = bellwire.RemoteKey.from_bytes(key)

    def ends(completions):
        return completions.wait(DEADLINE_S).check()

    expected = np.arange(1 << 18, dtype="u4").tobytes()
    # All of it, both sides of each end of the whole pages, and bytes that lie beside them.
    for begin, length in ((0, 1 << 20), (0, 5000), (4000, 200), (0, 8), ((1 << 20) - 5000, 5000), ((1 << 20) - 8, 8)):
        part = bytearray(length)
        pair.post_get(key[begin : begin + length], part)
        ends(pair.completions)
        assert part == expected[begin : begin + length], (begin, length)
    for number in (0, 1, 4, 1019, 1023, (1 << 18) - 1):
        pair.post_put(b"\xff\xff\xff\xff", key[4 * number : 4 * number + 4])
        ends(pair.completions)
    pair.post_fetch_add(key.at(16), 1)
    ends(pair.completions)
    pair.send(b"look now", to="1.0.1", timeout=DEADLINE_S)
    first, second = ended(owner).splitlines()
    offset, mapped, changed = first.split(" ", 2)
    assert mapped == "1" and second == "0 0", (first, second)
    assert changed == "[0, 1, 4, 5, 1019, 1023, 262143] 0", offset


def test_connections(program):
    """A queue pair is connected by a listener, and sends without an address then."""
    name = job()
    client = program(
        """
        import sys, bellwire
        with bellwire.Device(sys.argv[1], node=0).open_function() as function:
            completions = function.create_completion_queue()
            pair = function.create_queue_pair(completions)
            try:
                pair.connect("1.0.7", b"version 0", timeout=60)
            except bellwire.Rejected as error:
                assert "version 1 only" in str(error), error
            assert pair.connect("1.0.7", b"version 1", timeout=60) == b"welcome"
            pair.send(b"by connection", timeout=60)
        """,
        name,
    )
    end = End(name, node=1)
    with end.function.listen(7) as listener:
        request = listener.wait_request(DEADLINE_S)
        assert request.private_data == b"version 0"
        request.reject(b"version 1 only")
        with pytest.raises(ValueError, match="answered"):
            request.reject()
        request = listener.wait_request(DEADLINE_S)
        end.pair.post_receive(64)
        request.accept(end.pair, b"welcome")
        assert bytes(end.done().view()) == b"by connection"
        assert end.pair.peer == request.peer
    ended(client)


def test_channels_and_shared_receives(ends):
    """Members of a channel reach each other, and queue pairs share receives."""
    here, there = ends
    shared = there.function.create_shared_receive_queue(8)
    member = there.function.open_channel(5, there.completions, shared_receive=shared)
    other = here.function.open_channel(5, here.completions)
    shared.post_receive(16, context=1)
    shared.post_receive(16, context=2)
    other.post_send(b"all", to=bellwire.Address.channel(1, 0, 5))
    done = there.done()
    assert done.context == 1 and done.queue_pair == member.number and done.peer == other.address
    with pytest.raises(bellwire.ChannelTaken):
        here.function.open_channel(5, here.completions)
    member.destroy()
    assert shared.destroy() == [(bytearray(16), 2)]


def test_udp_in_two_processes(program):
    """The same program runs over UDP: only the device's name differs."""
    # Addresses of loopback that no other test uses.
    host = f"127.{os.getpid() % 250 + 2}.{os.getpid() // 250 % 250}"
    server = program(
        """
        import sys, bellwire
        function = bellwire.Device("udp:" + sys.argv[1]).open_function()
        completions = function.create_completion_queue()
        pair = function.create_queue_pair(completions)
        pair.post_receive(200_000)
        print(function.node, flush=True)
        done = completions.wait(60).check()
        pair.send(done.view()[::1], to=done.peer, timeout=60)
        """,
        f"{host}.1",
    )
    node = int(server.stdout.readline())
    end = End(f"udp:{host}.2")
    data = os.urandom(150_000)
    end.pair.post_receive(200_000)
    end.pair.send(data, to=bellwire.Address(node, 0, 1), timeout=DEADLINE_S)
    assert bytes(end.done().view()) == data
    # The acknowledgement leaves while this side makes progress.
    while server.poll() is None:
        end.function.progress()
    ended(server)


def test_the_cycle_model_carries_messages():
    """Two nodes of the cycle model exchange a message in virtual time, the same in each run."""

    def run() -> tuple:
        name = f"model:chpp:python-{os.getpid()}"
        import threading

        ends = [End(name, node=node, programs=2) for node in (0, 1)]
        seen = []

        def other() -> None:
            seen.append(bytes(ends[1].pair.receive(64, timeout=1.0).view()))
            ends[1].function.close()

        thread = threading.Thread(target=other)
        thread.start()
        ends[0].pair.send(b"virtual", to=ends[1].address, timeout=1.0)
        device = ends[0].device
        ends[0].function.close()
        thread.join(DEADLINE_S)
        return seen, device.virtual_time_ps is not None

    assert run() == ([b"virtual"], True)


def test_errors_have_kinds_and_sentences(ends):
    """Each error is an exception of its kind with the library's sentence."""
    here, there = ends
    with pytest.raises(bellwire.BadDeviceName, match="names no device") as error:
        bellwire.Device("nothing:x")
    assert isinstance(error.value, (bellwire.Error, ValueError))
    with pytest.raises(bellwire.BadDeviceName, match="no setting"):
        bellwire.Device("shm:job", colour="red")
    with pytest.raises(bellwire.BadFunction, match="open already"):
        here.device.open_function()
    with pytest.raises(bellwire.BadDestination, match="destination .`to`"):
        here.pair.post_send(b"x")
    for wrong in (-1, 2**63, 2**70, -(2**70)):
        with pytest.raises(bellwire.OutOfRange, match=f"cannot receive {wrong} bytes: it must be 0 to"):
            here.pair.receive(wrong)
    with pytest.raises(MemoryError, match="no memory for a bytearray of"):
        here.pair.post_receive(2**62)
    # One integer in an array is memory, no number of bytes.
    with pytest.raises(bellwire.TimedOut):
        here.pair.receive(np.zeros((), np.int64), timeout=0.001)
    with pytest.raises(bellwire.TimedOut, match="nothing happened") as error:
        here.completions.wait(0.01)
    assert f"{error.type.__module__}.{error.type.__name__}" == "bellwire.TimedOut"
    assert isinstance(error.value, TimeoutError)
    with pytest.raises(ValueError, match="is not an address"):
        here.pair.post_send(b"x", to="1.0")
    with pytest.raises(TypeError, match="no memory"):
        here.pair.post_send("text", to="1.0.1")
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        here.pair.post_send(np.zeros((4, 4))[:, 1], to="1.0.1")
    with pytest.raises(BufferError):
        here.pair.post_receive(b"immutable")
    with pytest.raises(bellwire.OutOfRange):
        here.function.create_completion_queue(0)
    narrow = here.function.create_queue_pair(here.completions, receive_depth=1)
    narrow.post_receive(8)
    with pytest.raises(bellwire.QueueFull, match="poll its completions"):
        narrow.post_receive(8)
    narrow.destroy()
    with pytest.raises(bellwire.NoSuchQueuePair):
        narrow.destroy()
    there.pair.post_receive(2)
    here.pair.post_send(b"longer", to=there.address)
    with pytest.raises(bellwire.Truncated) as failed:
        there.done()
    assert bytes(failed.value.completion.view()) == b"lo"


def test_a_silent_send_has_no_completion(ends):
    """An unsignaled send of any length completes without a trace, and gives its memory back."""
    here, there = ends
    data = bytearray(500_000)
    there.pair.post_receive(500_000)
    here.pair.post_send(data, to=there.address, signaled=False)
    while not there.completions.poll():
        assert here.completions.poll() is None
    for _ in range(1000):
        assert here.completions.poll() is None
        try:
            data.append(1)
            break
        except BufferError:
            there.function.progress()
    assert len(data) == 500_001


@pytest.mark.parametrize("length", [0, 1, 64, 65, 5000])
@pytest.mark.parametrize("lent", [True, False])
def test_a_silent_send_of_a_region_leaves_it_free(ends, length, lent):
    """An unsignaled send of a part of a region arrives, and the region can end afterwards."""
    here, there = ends
    data = bytes(range(1, 256)) * 20
    if lent:
        region = here.function.register(bytearray(data), Rights.REMOTE_READ)
    else:
        region = here.function.allocate_region(len(data), Rights.REMOTE_READ)
        region.view()[:] = data
    there.pair.post_receive(length)
    here.pair.post_send(region[7 : 7 + length], to=there.address, signaled=False)
    while (done := there.completions.poll()) is None:
        assert here.completions.poll() is None
    assert bytes(done.view()) == data[7 : 7 + length]
    for _ in range(1000):
        assert here.completions.poll() is None
        try:
            region.deregister()
            break
        except bellwire.InUse:
            there.function.progress()
    with pytest.raises(bellwire.NoSuchRegion):
        here.pair.post_send(region, to=there.address, signaled=False)


def test_a_silent_send_that_fails_is_told(ends):
    """A short unsignaled send of a region whose peer is not there completes with the reason."""
    here, there = ends
    region = here.function.allocate_region(8)
    here.pair.post_send(region, to=bellwire.Address(there.address.node, 0, 99), signaled=False)
    with pytest.raises(bellwire.NoSuchQueuePair) as failed:
        here.done()
    assert failed.value.completion.buffer is None


def test_how_to_wait_is_a_member_of_wait(ends):
    """Numbers and members of other enumerations are refused."""
    here, _ = ends
    for wrong in (0, "SPIN", Status.SUCCESS, bellwire.Wait):
        with pytest.raises(TypeError, match="member of Wait"):
            here.completions.wait(0, wrong)
    for how in bellwire.Wait:
        with pytest.raises(bellwire.TimedOut):
            here.completions.wait(0.001, how)


def test_a_send_may_wait_beside_others(ends):
    """`send` takes only its own completion; those of others stay for the queue, in order."""
    here, there = ends
    for context in range(3):
        there.pair.post_receive(8)
        here.pair.post_send(b"x", to=there.address, context=context)
    there.pair.post_receive(8)
    here.pair.send(b"mine", to=there.address, timeout=DEADLINE_S)
    assert [here.done().context for _ in range(3)] == [0, 1, 2]
    with pytest.raises(bellwire.TimedOut):
        here.pair.receive(8, timeout=0.01)
    there.pair.send(b"late", to=here.address, timeout=DEADLINE_S)
    assert bytes(here.done().view()) == b"late"
