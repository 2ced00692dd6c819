//! The result of a finished descriptor, in a completion queue.

use crate::{Address, Buffer};
use std::fmt;

/// Handle of a queue pair: its number and a generation, which detects stale handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct QueuePair {
    /// The number that peers address.
    pub number: u32,
    #[doc(hidden)]
    pub slot: u32,
    #[doc(hidden)]
    pub generation: u32,
}

/// The kind of descriptor that finished, or the remote event that arrived.
// A whole word: see `Completion`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
#[non_exhaustive]
pub enum Operation {
    /// A posted send.
    Send,
    /// A posted receive.
    Receive,
    /// A posted put.
    Put,
    /// A posted get.
    Get,
    /// A posted fetch-add.
    FetchAdd,
    /// A posted compare-swap.
    CompareSwap,
    /// The event of a peer's put (S-Flag, C-14).
    RemotePut,
}

/// The result of a descriptor.
///
/// All but [`Status::Success`] are failures. The completion beside it names the descriptor
/// (`operation`, `context`), the peer (`peer`) and the bytes moved (`length`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// All bytes are in their place.
    Success,
    /// The peer's process is gone, or disconnected while this was in flight.
    PeerGone,
    /// No process answered at the peer's address before the deadline.
    Unreachable,
    /// The peer has no such queue pair or channel.
    NoSuchQueuePair,
    /// The peer does not know the key, or it is dead.
    WrongKey,
    /// Offset and length do not lie inside the remote region.
    OutOfBounds,
    /// The region's rights do not allow this.
    NotPermitted,
    /// An atomic's offset is not a multiple of 8.
    Misaligned,
    /// The receive buffer was shorter than the message; `length` of its bytes were kept.
    Truncated,
    /// The queue pair was destroyed or disconnected before this could finish.
    Flushed,
    /// The peer broke the protocol, so its link was closed.
    ProtocolViolation,
}

impl Status {
    /// Whether it succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Status::Success
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Success => "success",
            Status::PeerGone => "the peer is gone",
            Status::Unreachable => "nobody answered at the peer's address before the deadline",
            Status::NoSuchQueuePair => "the peer has no such queue pair",
            Status::WrongKey => "the key is not, or no longer, one of the peer's",
            Status::OutOfBounds => "offset and length do not lie inside the remote region",
            Status::NotPermitted => "the remote region's rights do not allow this",
            Status::Misaligned => "an atomic needs an offset that is a multiple of 8",
            Status::Truncated => "the message was longer than the receive buffer",
            Status::Flushed => "the queue pair was closed before this finished",
            Status::ProtocolViolation => "the peer broke the protocol and its link was closed",
        })
    }
}

/// A finished descriptor, or an event.
///
/// It is written, moved through a few results and read within nanoseconds, on the path of every
/// message. Its layout makes all moves use the same widths, so that stores are forwarded. Compilers
/// move a structure in the widest pieces, except words that hold a variant: those move alone. Here
/// these are the first word (the buffer, where the variant of an [`crate::Error`] lies in a result,
/// too) and the last one.
#[derive(Debug)]
#[repr(C)]
pub struct Completion {
    /// The posted buffer; `None` for immediate data and events. [`Completion::into_buffers`] has
    /// those of a chain.
    pub buffer: Option<Buffer>,
    /// The queue pair of the descriptor. For a shared receive: the queue pair that the message was
    /// addressed to.
    pub queue_pair: QueuePair,
    /// Receive and event: the sender. Send, put, get, atomic: the destination.
    pub peer: Address,
    /// The result.
    pub status: Status,
    /// For the engine: whether `word` is an immediate value.
    #[doc(hidden)]
    pub has_immediate: bool,
    /// The number that the program gave the descriptor; 0 for events.
    pub context: u64,
    /// Bytes moved. After an error: bytes that have certainly been moved.
    pub length: usize,
    /// For the engine: the immediate value, or the previous value of an atomic.
    #[doc(hidden)]
    pub word: u64,
    /// For the engine: the further buffers of a chain descriptor. One word, because they are rare.
    #[doc(hidden)]
    #[allow(clippy::box_collection)]
    pub rest: Option<Box<Vec<Buffer>>>,
    /// The finished operation.
    pub operation: Operation,
}

impl Completion {
    /// For the engine: a completion without buffers, immediate value or previous value.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    pub fn new(
        queue_pair: QueuePair,
        peer: Address,
        operation: Operation,
        status: Status,
        context: u64,
        length: usize,
    ) -> Self {
        Completion {
            buffer: None,
            queue_pair,
            peer,
            status,
            has_immediate: false,
            context,
            length,
            word: 0,
            rest: None,
            operation,
        }
    }

    /// The sender's immediate value.
    #[inline]
    #[must_use]
    pub fn immediate(&self) -> Option<u64> {
        self.has_immediate.then_some(self.word)
    }

    /// The previous value of an atomic; 0 otherwise.
    #[inline]
    #[must_use]
    pub fn value(&self) -> u64 {
        if self.has_immediate { 0 } else { self.word }
    }

    /// The further buffers of a chain descriptor, in order, after `buffer`.
    #[must_use]
    pub fn chain(&self) -> &[Buffer] {
        self.rest.as_deref().map_or(&[], |rest| rest)
    }

    /// All posted buffers, in order.
    pub fn into_buffers(self) -> impl Iterator<Item = Buffer> {
        self.buffer.into_iter().chain(self.rest.into_iter().flat_map(|rest| *rest))
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Completion>() == 80 && size_of::<Option<Completion>>() == 80);
