"""Exceptions: one for each kind of error, with the sentence of the library.

Each is an `Error`, and where Python has a kind of its own for the same thing, that too: `TimedOut`
is a `TimeoutError`, `OutOfRange` a `ValueError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple

if TYPE_CHECKING:
    from bellwire._bellwire import Completion

__all__ = [
    "BadChain",
    "BadDestination",
    "BadDeviceName",
    "BadFunction",
    "ChannelTaken",
    "Closed",
    "DescriptorFailed",
    "DeviceUnavailable",
    "Error",
    "Exhausted",
    "Flushed",
    "Forked",
    "InUse",
    "ModelError",
    "NameHeld",
    "NoMemory",
    "NoSuchCompletionQueue",
    "NoSuchQueuePair",
    "NoSuchRegion",
    "NoSuchSharedReceiveQueue",
    "NotPermitted",
    "OutOfRange",
    "PeerGone",
    "ProtocolViolation",
    "QueueFull",
    "Rejected",
    "Standstill",
    "SystemFailed",
    "TimedOut",
    "TooLong",
    "Truncated",
    "UnequalSums",
    "Unreachable",
    "VersionMismatch",
    "WrongState",
]


class Error(Exception):
    """Any error of Bellwire. Pickled it keeps its sentence, and leaves buffers behind."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self.args


class BadDeviceName(Error, ValueError):
    """The device name has no known form, or a setting that the device does not have."""


class DeviceUnavailable(Error, OSError):
    """The device exists but cannot be used here. The sentence says what helps."""


class BadFunction(Error, ValueError):
    """The function number is above the device's functions, or the function is open already."""


class NameHeld(Error, PermissionError):
    """Another user's process holds the name of a shared-memory node or function."""


class NoSuchQueuePair(Error, LookupError):
    """The queue pair was destroyed. As a result: the peer has no such queue pair or channel."""


class NoSuchCompletionQueue(Error, LookupError):
    """The completion queue was destroyed."""


class NoSuchSharedReceiveQueue(Error, LookupError):
    """The shared receive queue was destroyed."""


class NoSuchRegion(Error, LookupError):
    """The region was deregistered, or belongs to another function."""


class InUse(Error):
    """The object is still in use."""


class WrongState(Error):
    """The state of the queue pair does not allow the call."""


class BadDestination(Error, ValueError):
    """An unconnected queue pair needs a destination, a connected one takes none but its peer."""


class QueueFull(Error, BlockingIOError):
    """The queue has no room; take its completions first."""


class UnequalSums(Error, ValueError):
    """Sources and destinations of a put or get have different totals."""


class BadChain(Error, ValueError):
    """A list has too many entries, or spans several functions."""


class TooLong(Error, ValueError):
    """The message is longer than the maximum."""


class OutOfRange(Error, ValueError):
    """A parameter is outside its range."""


class Exhausted(Error):
    """A limit of the device or function is reached."""


class NoMemory(Error, MemoryError):
    """Memory could not be reserved."""


class ChannelTaken(Error):
    """The channel has an owner on this node."""


class Unreachable(Error, ConnectionError):
    """No peer answered."""


class Rejected(Error, ConnectionRefusedError):
    """The peer refused the connection."""


class TimedOut(Error, TimeoutError):
    """The deadline passed."""


class Standstill(Error):
    """A simulated device stands still for good."""


class Forked(Error):
    """The function was opened by a parent of this process."""


class Closed(Error, ValueError):
    """The function is closed."""


class SystemFailed(Error, OSError):
    """The operating system refused a call."""


class VersionMismatch(Error, ConnectionError):
    """The peer speaks another version."""


class ModelError(Error, ValueError):
    """A plan or a schedule of a model is wrong, or its machine stands still."""


class DescriptorFailed(Error):
    """A descriptor finished with a status that is not a success."""

    completion: Completion | None = None
    """The completion, with the buffers of the descriptor."""


class PeerGone(DescriptorFailed, ConnectionError):
    """The peer's process is gone, or disconnected while this was in flight."""


class NotPermitted(DescriptorFailed, PermissionError):
    """Key, bounds, rights or alignment do not allow the access to the peer's memory."""


class Truncated(DescriptorFailed):
    """The message was longer than the receive buffer."""


class Flushed(DescriptorFailed):
    """The queue pair was closed before this finished."""


class ProtocolViolation(DescriptorFailed, ConnectionError):
    """The peer broke the protocol and its link was closed."""

# A traceback names them as a program does.
for _name in __all__:
    globals()[_name].__module__ = "bellwire"
