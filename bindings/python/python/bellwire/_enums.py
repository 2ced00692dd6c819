"""The choices and results that the calls take and return."""

from __future__ import annotations

import enum

__all__ = ["Operation", "Rights", "Status", "Wait"]


class Wait(enum.Enum):
    """How to wait."""

    SPIN = 0
    """Polls until something comes: lowest latency, uses one whole processor."""
    ADAPTIVE = 1
    """Polls for 50 microseconds, then sleeps as `BLOCK`."""
    BLOCK = 2
    """Sleeps in the kernel until something comes: near zero processor time."""


class Rights(enum.IntFlag):
    """Rights of peers that hold a region's key. The owner has all rights."""

    NONE = 0
    """Peers cannot reach it."""
    REMOTE_READ = 1
    """Get from it."""
    REMOTE_WRITE = 2
    """Put to it."""
    REMOTE_ATOMIC = 4
    """Fetch-add and compare-swap on it."""
    ALL = 7
    """All of them."""


class Operation(enum.Enum):
    """The kind of descriptor that finished, or the remote event that arrived."""

    SEND = 0
    """A posted send."""
    RECEIVE = 1
    """A posted receive."""
    PUT = 2
    """A posted put."""
    GET = 3
    """A posted get."""
    FETCH_ADD = 4
    """A posted fetch-add."""
    COMPARE_SWAP = 5
    """A posted compare-swap."""
    REMOTE_PUT = 6
    """The event of a peer's put."""


class Status(enum.Enum):
    """The result of a descriptor. All but `SUCCESS` are failures."""

    SUCCESS = 0
    """All bytes are in their place."""
    PEER_GONE = 1
    """The peer's process is gone, or disconnected while this was in flight."""
    UNREACHABLE = 2
    """No process answered at the peer's address before the deadline."""
    NO_SUCH_QUEUE_PAIR = 3
    """The peer has no such queue pair or channel."""
    WRONG_KEY = 4
    """The peer does not know the key, or it is dead."""
    OUT_OF_BOUNDS = 5
    """Offset and length do not lie inside the remote region."""
    NOT_PERMITTED = 6
    """The region's rights do not allow this."""
    MISALIGNED = 7
    """An atomic's offset is not a multiple of 8."""
    TRUNCATED = 8
    """The receive buffer was shorter than the message; `length` of its bytes were kept."""
    FLUSHED = 9
    """The queue pair was destroyed or disconnected before this could finish."""
    PROTOCOL_VIOLATION = 10
    """The peer broke the protocol, so its link was closed."""
