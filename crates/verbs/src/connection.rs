//! Connections (VIA, M-03): one control message each way, with private data.

use crate::Address;

/// Handle of a number on which connection requests arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listener {
    /// The number that peers connect to.
    pub number: u32,
    pub(crate) generation: u32,
}

/// Somebody wants a connection. Answer it with [`crate::Function::accept`] or [`crate::Function::reject`]; if it is dropped,
/// the peer's deadline ends its waiting.
#[derive(Debug)]
pub struct ConnectionRequest {
    /// The queue pair that wants to be connected.
    pub peer: Address,
    /// What it says about itself, up to [`crate::Limits::private_data_bytes`].
    pub private_data: Vec<u8>,
    /// The link that it came by, which must still be up when it is answered.
    pub(crate) link: u32,
    /// The link's generation.
    pub(crate) link_generation: u32,
    /// The peer's number for the request.
    pub(crate) operation: u64,
}

/// How far a connection is that [`crate::Function::start_connect`] began.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionProgress {
    /// No answer yet.
    Waiting,
    /// The peer accepted, with this private data.
    Connected(Vec<u8>),
}
