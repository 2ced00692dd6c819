//! Accepted descriptors, and the operations that they are at a peer.

use super::atomic::AtomicWork;
use super::connect::Acceptance;
use super::get::GetWork;
use super::put::PutWork;
use super::rendezvous::QueuedMessage;
use bellwire_device::{Address, Buffer, LinkId, Operation as Kind, Status};

/// An accepted descriptor.
pub(super) struct Posted {
    pub(super) link: LinkId,
    pub(super) to: Address,
    pub(super) context: u64,
    pub(super) signaled: bool,
    pub(super) work: Work,
}

/// What a descriptor asks for. Each operation's file starts it and takes its answers.
pub(super) enum Work {
    Message(QueuedMessage),
    Put(PutWork),
    Get(GetWork),
    Atomic(AtomicWork),
    /// The acceptance of a connection. It is queued so that messages on the connection do not
    /// overtake it. The program did not post it.
    Accept(Acceptance),
}

/// The result of an attempt to start a descriptor.
pub(super) enum Attempt {
    /// It has finished, or a peer has it now.
    Started,
    /// It waits for a peer, or for another operation to end.
    Blocked(Posted),
    /// It can continue, but the next queue pair has its turn.
    Yielded(Posted),
}

/// An operation that a peer has not answered yet.
pub(super) struct Operation {
    pub(super) slot: u32,
    pub(super) link: LinkId,
    /// The descriptor, once its packets are sent. `None`: it is still the oldest of its queue pair.
    pub(super) posted: Option<Posted>,
}

/// What a completion says of its descriptor, and gives back.
pub(super) struct Ended {
    pub(super) kind: Kind,
    pub(super) to: Address,
    pub(super) context: u64,
    pub(super) signaled: bool,
    pub(super) buffers: Buffers,
}

/// The first buffer of a descriptor and its further ones.
pub(super) type Buffers = (Option<Buffer>, Option<Box<Vec<Buffer>>>);

/// The result of a descriptor that has ended.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) length: usize,
    pub(super) value: u64,
}

impl Outcome {
    pub(super) fn success(length: usize) -> Self {
        Outcome { status: Status::Success, length, value: 0 }
    }

    pub(super) fn failure(status: Status, length: usize) -> Self {
        Outcome { status, length, value: 0 }
    }
}

impl Posted {
    /// What its completion needs; `None`: it completes nowhere.
    pub(super) fn into_ended(self) -> Option<Ended> {
        let Posted { to, context, signaled, work, .. } = self;
        let (kind, buffers) = match work {
            Work::Message(message) => (Kind::Send, (message.data.into_buffer(), None)),
            Work::Put(put) => (Kind::Put, put.into_buffers()),
            Work::Get(get) => (Kind::Get, get.destinations.0.into_parts()),
            Work::Atomic(atomic) => (atomic.operation.kind(), (None, None)),
            Work::Accept(_) => return None,
        };
        Some(Ended { kind, to, context, signaled, buffers })
    }
}

impl Work {
    /// The local buffers.
    pub(super) fn buffers(&self) -> &[Buffer] {
        match self {
            Work::Message(message) => message.data.buffers(),
            Work::Put(put) => put.sources.0.items(),
            Work::Get(get) => get.destinations.0.items(),
            Work::Atomic(_) | Work::Accept(_) => &[],
        }
    }

    /// The bytes that have moved, by a peer's answer of `status` and `told` bytes.
    pub(super) fn moved(&self, status: Status, told: u64) -> usize {
        match self {
            Work::Message(message) => (told as usize).min(message.length),
            Work::Put(put) if status.is_success() => put.total as usize,
            Work::Get(get) => get.done as usize,
            Work::Atomic(_) if status.is_success() => 8,
            Work::Put(_) | Work::Atomic(_) | Work::Accept(_) => 0,
        }
    }
}
