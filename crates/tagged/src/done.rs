//! What an endpoint tells its program.

use crate::{ConnectionEvent, Peer};
use bellwire::Status;

/// What a program gives an operation, and gets back when that has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Token {
    /// Its own, for instance an address: what [`crate::Endpoint::cancel`] looks for.
    pub context: u64,
    /// The binding's.
    pub note: u64,
}

/// What finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A message was sent.
    Sent,
    /// A message was received.
    Received,
    /// A buffer for many messages is the program's again; nothing was received.
    BufferEnded,
    /// A message was looked at.
    Peeked,
    /// An access to a peer's memory has ended.
    Accessed,
    /// A peer has written to our memory, and wanted us to know.
    Written,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All bytes are where they should be.
    Success,
    /// The receive had no room for all of the message.
    Truncated,
    /// It was cancelled.
    Cancelled,
    /// There is no such message to look at.
    NoMessage,
    /// It failed below.
    Failed(Status),
}

/// Something that has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The program's.
    pub token: Token,
    /// What.
    pub what: What,
    /// How.
    pub outcome: Outcome,
    /// Received, or looked at: who sent it. Sent: to whom.
    pub peer: Option<Peer>,
    /// The message's tag, if it has one.
    pub tag: Option<u64>,
    /// What came beside the message.
    pub data: Option<u64>,
    /// Bytes that are there.
    pub length: usize,
    /// Bytes that there was no room for.
    pub left: usize,
    /// Address of the first byte.
    pub at: usize,
}

/// Who is told.
pub trait Sink {
    /// Something has finished.
    fn done(&mut self, done: Done);

    /// A peer has written to the memory that we call `key`, or changed or read it: of interest to those who [watch](crate::Endpoint::watch).
    fn touched(&mut self, _key: u64, _read: bool) {}

    /// Something has happened to a connection: of interest to those who have some.
    fn connection(&mut self, _event: ConnectionEvent<'_>) {}
}

impl<F: FnMut(Done)> Sink for F {
    #[inline]
    fn done(&mut self, done: Done) {
        self(done)
    }
}
