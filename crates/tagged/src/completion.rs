//! What an endpoint reports to its program: completions, events of connections, and refusals.

use bellwire::{Error, FunctionAddress, Status};

/// One peer of an endpoint, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Peer(pub u32);

/// What a program attaches to an operation, and gets back at its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Token {
    /// The program's own value, for instance an address. [`crate::Endpoint::cancel`] looks for it.
    pub context: u64,
    /// The binding's value.
    pub note: u64,
}

/// The kind of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionKind {
    /// A message was sent.
    Sent,
    /// A message was received.
    Received,
    /// A buffer for many messages belongs to the program again; nothing was received.
    BufferReleased,
    /// A message was peeked at.
    Peeked,
    /// An access to a peer's memory has ended.
    AccessCompleted,
    /// A peer has written to our memory and wanted us to know.
    Written,
}

/// The result of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All bytes are where they should be.
    Success,
    /// The receive had no room for all of the message.
    Truncated,
    /// It was cancelled.
    Cancelled,
    /// There is no such message to peek at.
    NoMessage,
    /// The transport reported this status.
    Failed(Status),
}

/// A completion of an endpoint.
#[must_use = "it reports the end of an operation, which may have failed"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaggedCompletion {
    /// The program's token.
    pub token: Token,
    /// What has completed.
    pub kind: CompletionKind,
    /// Its result.
    pub outcome: Outcome,
    /// Received or peeked at: the sender. Sent: the receiver.
    pub peer: Option<Peer>,
    /// The message's tag, if it has one.
    pub tag: Option<u64>,
    /// The message's data word.
    pub data: Option<u64>,
    /// Bytes received.
    pub length: usize,
    /// Bytes that found no room.
    pub overflow: usize,
    /// Address of the first byte.
    pub address: usize,
}

impl TaggedCompletion {
    /// A completion without peer, tag, data and bytes.
    pub fn new(token: Token, kind: CompletionKind, outcome: Outcome) -> Self {
        let (peer, tag, data) = (None, None, None);
        TaggedCompletion {
            token,
            kind,
            outcome,
            peer,
            tag,
            data,
            length: 0,
            overflow: 0,
            address: 0,
        }
    }
}

/// A request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionRequest {
    /// The endpoint that asks.
    pub from: FunctionAddress,
    /// Ties the answer to the request.
    pub(crate) number: u64,
    pub(crate) incarnation: u16,
}

/// Events of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent<'a> {
    /// A request, with its private data.
    Requested(ConnectionRequest, &'a [u8]),
    /// There is a connection: our request was accepted, with this private data, or the requester
    /// has confirmed our acceptance.
    Connected(&'a [u8]),
    /// Our request was rejected, with this private data. Without data, perhaps nobody listens
    /// there, or nobody is there. Or the requester gave up before we accepted.
    Rejected(&'a [u8]),
    /// The peer has ended the connection, or is gone.
    Disconnected,
}

/// What a peer did to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAccess {
    /// It got bytes.
    Read,
    /// It put bytes, or changed numbers.
    Written,
    /// It changed numbers, and got their previous values.
    Exchanged,
}

/// Receives completions and events.
///
/// A closure that takes completions is one, and ignores events.
pub trait Sink {
    /// An operation has completed.
    fn completed(&mut self, completion: TaggedCompletion);

    /// A peer has read or written the memory that we call `key`, or both in one atomic operation.
    /// Reported to endpoints that [monitor](crate::Endpoint::monitor) them.
    fn memory_accessed(&mut self, _key: u64, _access: MemoryAccess) {}

    /// An event of a connection, for endpoints that have one.
    fn connection(&mut self, _event: ConnectionEvent<'_>) {}
}

impl<F: FnMut(TaggedCompletion)> Sink for F {
    #[inline]
    fn completed(&mut self, completion: TaggedCompletion) {
        self(completion)
    }
}

/// Why a call was refused.
#[derive(Debug)]
pub enum PostError {
    /// There is no room now: make progress, and try again.
    Again,
    /// A link lost messages to this peer that counted as sent. Messages that are sent now would
    /// take their place. Reported once; nothing was done.
    Lost(Status),
    /// It cannot be done.
    Failed(Error),
}

impl From<Error> for PostError {
    fn from(error: Error) -> Self {
        if is_no_room(&error) { PostError::Again } else { PostError::Failed(error) }
    }
}

/// Whether a call can succeed later without change.
pub(crate) fn is_no_room(error: &Error) -> bool {
    matches!(error, Error::QueueFull { .. } | Error::Exhausted { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call is worth another try only if it lacked room.
    #[test]
    fn only_a_lack_of_room_passes() {
        let error = Error::TooLong { length: 2, maximum: 1, what: "a message" };
        assert!(matches!(PostError::from(error), PostError::Failed(Error::TooLong { .. })));
    }
}
