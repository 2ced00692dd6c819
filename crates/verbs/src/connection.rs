//! Connections (VIA, M-03): one control message each way, with private data.

use crate::Address;

/// Handle of a number on which connection requests arrive.
///
/// ```no_run
/// # use bellwire::{Function, QueuePair, Result, Wait};
/// # use std::time::Duration;
/// # fn example(function: &mut Function, queue_pair: QueuePair) -> Result<()> {
/// let listener = function.listen(7)?;
/// let request = function.wait_request(listener, Wait::Block, Duration::from_secs(60))?;
/// if request.private_data == b"version 1" {
///     function.accept(request, queue_pair, b"welcome")?;
/// } else {
///     function.reject(request, b"version 1 only")?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listener {
    /// The number that peers connect to.
    pub number: u32,
    pub(crate) generation: u32,
}

/// A peer's connection request ([`Listener`] has an example). Answer it with
/// [`crate::Function::accept`] or [`crate::Function::reject`]. If it is dropped, the peer waits
/// until its deadline.
#[derive(Debug)]
#[must_use = "an unanswered peer waits until its deadline"]
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
#[must_use = "the outcome is reported once"]
pub enum ConnectionProgress {
    /// No answer yet.
    Waiting,
    /// The peer accepted, with this private data.
    Connected(Vec<u8>),
}
