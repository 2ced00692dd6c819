//! What a finished descriptor leaves in a completion queue.

use crate::{Address, Buffer};
use std::fmt;

/// Handle of a queue pair: its number and a generation, so that a stale handle is noticed.
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

/// Which kind of descriptor finished, or which remote event arrived.
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
    /// A peer's put that asked for an event here (S-Flag, C-14).
    RemotePut,
}

/// How a descriptor finished.
///
/// Anything but [`Status::Success`] says why; the completion beside it says what (`operation`, `context`), whom (`source`)
/// and how far (`length`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// All bytes are where they should be.
    Success,
    /// The peer's process is gone, or was told to disconnect while this was in flight.
    PeerGone,
    /// Nobody answered at the peer's address before the deadline.
    Unreachable,
    /// The peer has no such queue pair or channel.
    NoSuchQueuePair,
    /// The key is not one of the peer's, or no longer.
    WrongKey,
    /// Offset and length do not lie inside the remote region.
    OutOfBounds,
    /// The region's rights do not allow this.
    NotPermitted,
    /// An atomic's offset is not a multiple of 8.
    Misaligned,
    /// The receive buffer was shorter than the message; `length` bytes of it were kept.
    Truncated,
    /// The queue pair was destroyed or disconnected before this could finish.
    Flushed,
    /// The peer broke the protocol, so its link was closed.
    ProtocolViolation,
}

impl Status {
    /// Whether it succeeded.
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
/// It is written, moved through a few results and read within nanoseconds, on the path of every message, so it is laid out to be moved in
/// pieces that are always the same. Compilers move a structure in the widest pieces; but the words that tell variants apart on their own,
/// with the widest pieces between them: here the first one, the buffer's, where an error's variant lies in a result, too
/// ([`crate::Error`]), and the last one.
#[derive(Debug)]
#[repr(C)]
pub struct Completion {
    /// The buffer that was posted; `None` for immediate data and events. [`Completion::into_buffers`] has those of a chain.
    pub buffer: Option<Buffer>,
    /// The queue pair that it was posted to (a shared receive: the one that the message was addressed to).
    pub queue_pair: QueuePair,
    /// Receive and event: the sender. Send, put, get, atomic: whom it was for.
    pub peer: Address,
    /// How.
    pub status: Status,
    /// The engine's: whether `word` is an immediate value.
    #[doc(hidden)]
    pub has_immediate: bool,
    /// The number that the program gave the descriptor; 0 for events.
    pub context: u64,
    /// Bytes moved; after an error, how many for certain.
    pub length: usize,
    /// The engine's: the immediate value, or what was in memory before an atomic.
    #[doc(hidden)]
    pub word: u64,
    /// The engine's: the further buffers of a chain descriptor. One word, because there are hardly ever any.
    #[doc(hidden)]
    #[allow(clippy::box_collection)]
    pub rest: Option<Box<Vec<Buffer>>>,
    /// What finished.
    pub operation: Operation,
}

impl Completion {
    /// The sender's immediate value.
    #[inline]
    pub fn immediate(&self) -> Option<u64> {
        self.has_immediate.then_some(self.word)
    }

    /// What was in memory before an atomic; 0 otherwise.
    #[inline]
    pub fn value(&self) -> u64 {
        if self.has_immediate { 0 } else { self.word }
    }

    /// The further buffers of a chain descriptor, in order, after `buffer`.
    pub fn chain(&self) -> &[Buffer] {
        self.rest.as_deref().map_or(&[], |rest| rest)
    }

    /// All buffers that were posted, in order.
    pub fn into_buffers(self) -> impl Iterator<Item = Buffer> {
        self.buffer.into_iter().chain(self.rest.into_iter().flat_map(|rest| *rest))
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Completion>() == 80 && size_of::<Option<Completion>>() == 80);
