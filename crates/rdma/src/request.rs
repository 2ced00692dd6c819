//! Work requests, as a program posts them.

use crate::memory::{Binding, Sge};
use std::net::Ipv4Addr;

/// What a send queue executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A message, or a datagram.
    Send {
        /// Goes into the receiver's completion.
        immediate: Option<u32>,
        /// The receiver invalidates this key of its own.
        invalidate: Option<u32>,
    },
    /// An RDMA write.
    Write {
        /// Where.
        address: u64,
        /// The key of the memory.
        key: u32,
        /// Takes a receive at the peer.
        immediate: Option<u32>,
    },
    /// An RDMA read.
    Read {
        /// Where.
        address: u64,
        /// The key of the memory.
        key: u32,
    },
    /// Replaces the word if it is `expected`. The list gets its previous value.
    CompareSwap {
        /// Where.
        address: u64,
        /// The key of the memory.
        key: u32,
        /// The compared value.
        expected: u64,
        /// The new value.
        new: u64,
    },
    /// Adds to the word. The list gets its previous value.
    FetchAdd {
        /// Where.
        address: u64,
        /// The key of the memory.
        key: u32,
        /// The summand.
        operand: u64,
    },
    /// Unbinds a window.
    LocalInvalidate {
        /// Its key.
        key: u32,
    },
    /// Binds a window.
    BindWindow {
        /// The present key of the window.
        window: u32,
        /// Its new key.
        key: u32,
        /// Where.
        to: Binding,
    },
}

impl Default for Operation {
    fn default() -> Self {
        Operation::Send { immediate: None, invalidate: None }
    }
}

impl Operation {
    /// The key of the peer's memory.
    pub(crate) fn remote_key(&self) -> Option<u32> {
        match *self {
            Operation::Write { key, .. }
            | Operation::Read { key, .. }
            | Operation::CompareSwap { key, .. }
            | Operation::FetchAdd { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// The bytes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes<'a> {
    /// In registered memory.
    Listed(&'a [Sge]),
    /// Copied before the post returns.
    Inline(&'a [u8]),
}

/// Where a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The host.
    pub host: Ipv4Addr,
    /// The queue pair there.
    pub queue_pair: u32,
    /// The key that it must have.
    pub key: u32,
}

/// A request for a send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// The completion has this number.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// The bytes.
    pub bytes: Bytes<'a>,
    /// Complete also after success.
    pub signaled: bool,
    /// Raise an event at a receiver that waits for one.
    pub solicited: bool,
    /// Start after all earlier reads and atomics.
    pub fence: bool,
    /// For datagrams.
    pub to: Option<Datagram>,
}
