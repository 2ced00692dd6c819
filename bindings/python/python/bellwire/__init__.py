"""Bellwire: messages between processes that do not pass through the kernel.

A NumPy array from one process to another, over shared memory:

>>> import bellwire, numpy
>>> pair = bellwire.open_queue_pair("shm:job?node=1")                # the receiver
>>> array = numpy.empty(1_000_000)
>>> pair.receive(array)

>>> pair = bellwire.open_queue_pair("shm:job?node=0")                # the sender
>>> pair.send(numpy.random.rand(1_000_000), to="1.0.1")

The same program runs over Ethernet (`eth:eth0`), UDP (`udp:10.0.0.1`) and a cycle model of a
network interface (`model:chpp`): only the name of the device changes.

A program that does more opens a `Device` and a `Function`, creates completion queues and queue
pairs, and posts descriptors: `QueuePair.post_send`, `post_receive`, `post_put`, `post_get`,
`post_fetch_add`, `post_compare_swap`. A `CompletionQueue` tells the results. It is polled, waited
for, iterated, or awaited in a coroutine.
"""

from __future__ import annotations

import atexit

from bellwire import _bellwire, model
from bellwire._bellwire import (
    Address,
    Completion,
    CompletionQueue,
    ConnectionRequest,
    Device,
    Function,
    Listener,
    MemoryRegion,
    QueuePair,
    RegionSlice,
    RemoteAt,
    RemoteKey,
    RemoteSlice,
    SharedReceiveQueue,
    __version__,
    kinds,
    open_queue_pair,
)
from bellwire._enums import Operation, Rights, Status, Wait
from bellwire._errors import (
    BadChain,
    BadDestination,
    BadDeviceName,
    BadFunction,
    ChannelTaken,
    Closed,
    DescriptorFailed,
    DeviceUnavailable,
    Error,
    Exhausted,
    Flushed,
    Forked,
    InUse,
    ModelError,
    NameHeld,
    NoMemory,
    NoSuchCompletionQueue,
    NoSuchQueuePair,
    NoSuchRegion,
    NoSuchSharedReceiveQueue,
    NotPermitted,
    OutOfRange,
    PeerGone,
    ProtocolViolation,
    QueueFull,
    Rejected,
    Standstill,
    SystemFailed,
    TimedOut,
    TooLong,
    Truncated,
    UnequalSums,
    Unreachable,
    VersionMismatch,
    WrongState,
)
from bellwire._sweep import sweep

__all__ = [
    "Address",
    "BadChain",
    "BadDestination",
    "BadDeviceName",
    "BadFunction",
    "ChannelTaken",
    "Closed",
    "Completion",
    "CompletionQueue",
    "ConnectionRequest",
    "DescriptorFailed",
    "Device",
    "DeviceUnavailable",
    "Error",
    "Exhausted",
    "Flushed",
    "Forked",
    "Function",
    "InUse",
    "Listener",
    "MemoryRegion",
    "ModelError",
    "NameHeld",
    "NoMemory",
    "NoSuchCompletionQueue",
    "NoSuchQueuePair",
    "NoSuchRegion",
    "NoSuchSharedReceiveQueue",
    "NotPermitted",
    "Operation",
    "OutOfRange",
    "PeerGone",
    "ProtocolViolation",
    "QueueFull",
    "QueuePair",
    "RegionSlice",
    "Rejected",
    "RemoteAt",
    "RemoteKey",
    "RemoteSlice",
    "Rights",
    "SharedReceiveQueue",
    "Standstill",
    "Status",
    "SystemFailed",
    "TimedOut",
    "TooLong",
    "Truncated",
    "UnequalSums",
    "Unreachable",
    "VersionMismatch",
    "Wait",
    "WrongState",
    "__version__",
    "kinds",
    "model",
    "open_queue_pair",
    "sweep",
]


# Threads that still wait leave the library while there is an interpreter to return to.
atexit.register(_bellwire._close_all)
