//! Connections (VIA, M-03): one control message each way, with private data.

use crate::Address;

/// Handle of a number on which connection requests arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listener {
    /// The number that peers connect to.
    pub number: u32,
    pub(crate) generation: u32,
}

/// A peer's connection request. Answer it with [`crate::Function::accept`] or
/// [`crate::Function::reject`]. If it is dropped, the peer waits until its deadline.
#[derive(Debug)]
pub struct ConnectionRequest {
    /// The requesting queue pair.
    pub peer: Address,
    /// The peer's private data, at most [`crate::Limits::private_data_bytes`].
    pub private_data: Vec<u8>,
    /// The link of the request. It must still be up at the answer.
    pub(crate) link: u32,
    /// The link's generation.
    pub(crate) link_generation: u32,
    /// The peer's number for the request.
    pub(crate) operation: u64,
}

/// The progress of a connection that [`crate::Function::start_connect`] began.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionProgress {
    /// No answer yet.
    Waiting,
    /// The peer accepted, with this private data.
    Connected(Vec<u8>),
}
