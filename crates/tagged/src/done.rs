//! What an endpoint reports to its program.

use crate::{ConnectionEvent, Peer};
use bellwire::Status;

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
pub enum What {
    /// A message was sent.
    Sent,
    /// A message was received.
    Received,
    /// A buffer for many messages belongs to the program again; nothing was received.
    BufferEnded,
    /// A message was peeked at.
    Peeked,
    /// An access to a peer's memory has ended.
    Accessed,
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

/// A completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The program's token.
    pub token: Token,
    /// What has completed.
    pub what: What,
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
    pub left: usize,
    /// Address of the first byte.
    pub at: usize,
}

/// Receives completions and events.
pub trait Sink {
    /// An operation has completed.
    fn done(&mut self, done: Done);

    /// A peer has written, changed or read the memory that we call `key`. Reported to endpoints
    /// that [watch](crate::Endpoint::watch).
    fn touched(&mut self, _key: u64, _read: bool) {}

    /// An event of a connection, for endpoints that have one.
    fn connection(&mut self, _event: ConnectionEvent<'_>) {}
}

impl<F: FnMut(Done)> Sink for F {
    #[inline]
    fn done(&mut self, done: Done) {
        self(done)
    }
}
