"""Completion queues in coroutines."""

from __future__ import annotations

import asyncio
import time

import pytest

import bellwire
from conftest import DEADLINE_S, ended, job


def test_a_coroutine_awaits_completions(ends):
    """`await` gives the next completion, and `async for` all, until the function is closed."""
    here, there = ends

    async def receiver() -> list:
        seen = []
        async for done in there.completions:
            seen.append(bytes(done.view()))
            if seen[-1] == b"end":
                there.function.close()
        return seen

    async def sender() -> None:
        for data in (b"one", b"two", b"end"):
            await asyncio.sleep(0)
            here.pair.post_send(data, to=there.address)
            assert (await here.completions).ok

    async def both() -> list:
        for _ in range(4):
            there.pair.post_receive(8)
        seen, _ = await asyncio.gather(receiver(), sender())
        return seen

    assert asyncio.run(asyncio.wait_for(both(), DEADLINE_S)) == [b"one", b"two", b"end"]


def test_a_sleeping_task_uses_no_processor(program):
    """Tasks that wait sleep: nothing polls for them, and the message wakes them."""
    name = job()
    process = program(
        """
        import asyncio, sys, threading, time, bellwire
        function = bellwire.Device(sys.argv[1], node=1).open_function()
        quiet = function.create_completion_queue()
        pair = function.create_queue_pair(function.create_completion_queue())
        pair.receive(1, timeout=60)

        async def next_of(queue):
            return await queue

        async def run():
            pair.post_receive(64)
            print("asleep", flush=True)
            other = asyncio.ensure_future(next_of(quiet))
            before = time.process_time()
            done = await asyncio.wait_for(next_of(pair.receive_completions), 60)
            other.cancel()
            assert threading.active_count() == 1
            return bytes(done.view()), time.process_time() - before

        data, used = asyncio.run(run())
        assert data == b"awake", data
        print(used)
        """,
        name,
    )
    pair = bellwire.open_queue_pair(name, node=0)
    pair.send(b"", to="1.0.1", timeout=DEADLINE_S)
    assert process.stdout.readline() == "asleep\n"
    time.sleep(1.5)
    pair.send(b"awake", to="1.0.1", timeout=DEADLINE_S)
    # Polling would have used all of the time.
    assert float(ended(process)) < 0.75


def test_several_tasks_wait_at_one_function(ends):
    """Tasks that wait at queues of the same function each get their own completion."""
    here, there = ends
    queues = [there.function.create_completion_queue() for _ in range(3)]
    pairs = [there.function.create_queue_pair(queue) for queue in queues]

    async def one(number: int) -> bytes:
        pairs[number].post_receive(8)
        return bytes((await queues[number]).view())

    async def all_of_them() -> list:
        tasks = [asyncio.ensure_future(one(number)) for number in range(3)]
        await asyncio.sleep(0.05)
        for number in (2, 0, 1):
            here.pair.post_send(bytes([number]), to=pairs[number].address)
            assert (await here.completions).ok
        return await asyncio.gather(*tasks)

    expected = [bytes([number]) for number in range(3)]
    assert asyncio.run(asyncio.wait_for(all_of_them(), DEADLINE_S)) == expected


def test_a_cancelled_wait_loses_nothing(ends):
    """A task that is cancelled while it waits leaves the completion for the next."""
    here, there = ends

    async def cancelled() -> bytes:
        there.pair.post_receive(8)

        async def wait() -> bellwire.Completion:
            return await there.completions

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        here.pair.post_send(b"kept", to=there.address)
        return bytes((await wait()).view())

    assert asyncio.run(asyncio.wait_for(cancelled(), DEADLINE_S)) == b"kept"


def test_an_exception_in_a_callback_of_the_loop_ends_only_its_task(ends):
    """A handler that raises in one task does not disturb another at the same function."""
    here, there = ends

    async def bad() -> None:
        await here.completions
        raise RuntimeError("the handler fails")

    async def good() -> bytes:
        return bytes((await there.completions).view())

    async def both() -> list:
        there.pair.post_receive(8)
        tasks = [asyncio.ensure_future(bad()), asyncio.ensure_future(good())]
        here.pair.post_send(b"x", to=there.address)
        return await asyncio.gather(*tasks, return_exceptions=True)

    failed, data = asyncio.run(asyncio.wait_for(both(), DEADLINE_S))
    assert isinstance(failed, RuntimeError) and data == b"x"
