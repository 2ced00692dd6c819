"""Waiting for completions in an event loop.

A task sleeps at the descriptor of its function. Several tasks may wait at the same function: the
loop knows a descriptor once, so they share one reader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Dict, Optional, Set, Tuple

if TYPE_CHECKING:
    from bellwire._bellwire import Completion, CompletionQueue

_Sleepers = Set["asyncio.Future[None]"]
_sleeping: Dict[Tuple[asyncio.AbstractEventLoop, int], _Sleepers] = {}


async def next_completion(queue: CompletionQueue) -> Completion:
    """The next completion of a queue."""
    while True:
        done = queue.poll()
        if done is not None:
            return done
        limit = queue.sleep_limit()
        # Other tasks that were woken look first: each look wakes those that sleep already.
        await asyncio.sleep(0)
        if queue.begin_sleep():
            try:
                await _sleep(queue.fileno(), limit)
            finally:
                queue.end_sleep()


async def next_or_stop(queue: CompletionQueue) -> Completion:
    """The next completion of a queue, for `async for`."""
    from bellwire._errors import Closed

    try:
        return await next_completion(queue)
    except Closed:
        raise StopAsyncIteration from None


async def _sleep(fd: int, limit: Optional[float]) -> None:
    loop = asyncio.get_running_loop()
    key = (loop, fd)
    woken: asyncio.Future[None] = loop.create_future()
    sleepers = _sleeping.get(key)
    if sleepers is None:
        sleepers = _sleeping[key] = set()
        loop.add_reader(fd, _wake_all, sleepers)
    sleepers.add(woken)
    alarm = loop.call_later(limit, _wake, woken) if limit is not None else None
    try:
        await woken
    finally:
        if alarm is not None:
            alarm.cancel()
        sleepers.discard(woken)
        if not sleepers and _sleeping.get(key) is sleepers:
            del _sleeping[key]
            loop.remove_reader(fd)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _wake_all(sleepers: _Sleepers) -> None:
    for woken in sleepers:
        _wake(woken)
