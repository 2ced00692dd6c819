//! Host memory: bytes in the global address space, and how long an access to them takes.
//!
//! Ports: a read or write arrives from the bus; a read is ready, a write is visible, at the time that is returned. All accesses share one
//! memory channel, so that they wait for each other (contention), and a read then takes the latency of the memory.

use crate::engine::Random;
use crate::units::{Bytes, Rate, Span, Time};

/// Bits of an address below the number of the node: each node has 64 GiB of the 1 TiB of global addresses (C-05).
pub const NODE_SHIFT: u32 = 36;

/// The memory of one host.
pub struct HostMemory {
    base: u64,
    bytes: Vec<u8>,
    latency: Span,
    jitter: Span,
    rate: Rate,
    free_at: Time,
    random: Random,
    /// Accesses that were served.
    pub accesses: u64,
    /// How long accesses waited for others.
    pub contention: Span,
}

/// When an access is served.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// When the channel took it up; from its arrival until then it waited for others.
    pub begins: Time,
    /// When the data is ready (read) or visible to the processor (write).
    pub done: Time,
}

impl HostMemory {
    /// Zeros, `length` of them, at the addresses of `node`.
    pub fn new(
        node: usize,
        length: u64,
        latency: Span,
        jitter: Span,
        rate: Rate,
        random: Random,
    ) -> HostMemory {
        HostMemory {
            base: (node as u64) << NODE_SHIFT,
            bytes: vec![0; length as usize],
            latency,
            jitter,
            rate,
            free_at: Time::ZERO,
            random,
            accesses: 0,
            contention: Span::ZERO,
        }
    }

    /// Global address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The bytes at a global address, or nothing if they are not all here.
    pub fn slice(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// The same, to write.
    pub fn slice_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }

    /// A read that arrives at `time`; calls come in the order of arrival.
    pub fn serve_read(&mut self, time: Time, bytes: u64) -> Access {
        let begins = self.occupy(time, bytes);
        let more =
            if self.jitter == Span::ZERO { 0 } else { self.random.below(self.jitter.ps() + 1) };
        Access { begins, done: self.free_at + self.latency + Span::from_ps(more) }
    }

    /// A write that arrives at `time`; calls come in the order of arrival. Writes become visible in order.
    pub fn serve_write(&mut self, time: Time, bytes: u64) -> Access {
        let begins = self.occupy(time, bytes);
        Access { begins, done: self.free_at }
    }

    fn occupy(&mut self, time: Time, bytes: u64) -> Time {
        let begins = time.max(self.free_at);
        self.contention += begins - time;
        self.accesses += 1;
        self.free_at = begins + self.rate.time(Bytes::new(bytes));
        begins
    }
}
