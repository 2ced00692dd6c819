//! Host memory: bytes in the global address space, and the access times.
//!
//! Ports: a read or write arrives from the bus; the returned time says when the read is ready or
//! the write visible. All accesses share one memory channel and wait for each other (contention). A
//! read then takes the memory's latency.

use super::config::{Distribution, HostConfig};
use super::zeroed::ZeroedBytes;
use crate::engine::{Random, Server, Service};
use crate::units::{Bytes, Rate, Span, Time};

/// Address bits below the node number: each node has 64 GiB of the 1 TiB of global addresses
/// (C-05).
pub const NODE_SHIFT: u32 = 36;

/// The memory of one host.
pub struct HostMemory {
    base: u64,
    bytes: ZeroedBytes,
    latency: Span,
    jitter: Span,
    distribution: Distribution,
    rate: Rate,
    channel: Server,
    random: Random,
}

impl HostMemory {
    /// Memory of `length` zero bytes at the addresses of `node`.
    pub fn new(node: usize, length: u64, host: &HostConfig, random: Random) -> HostMemory {
        HostMemory {
            base: (node as u64) << NODE_SHIFT,
            bytes: ZeroedBytes::new(length as usize),
            latency: host.memory_latency,
            jitter: host.memory_jitter,
            distribution: host.memory_distribution,
            rate: host.memory_rate,
            channel: Server::default(),
            random,
        }
    }

    /// Global address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The bytes at a global address, or nothing if not all of them exist.
    pub fn slice(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get(start, length)
    }

    /// The same for writing.
    pub fn slice_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get_mut(start, length)
    }

    /// Serves a read that arrives at `time`; calls must come in order of arrival. It ends when the
    /// data is ready.
    pub fn serve_read(&mut self, time: Time, bytes: u64) -> Service {
        let Service { begins, ends } = self.serve_write(time, bytes);
        let more = match self.distribution {
            _ if self.jitter == Span::ZERO => 0,
            Distribution::Uniform => self.random.below(self.jitter.ps() + 1),
            Distribution::Exponential => self.random.exponential_of(self.jitter.ps()),
        };
        Service { begins, ends: ends + self.latency + Span::from_ps(more) }
    }

    /// Serves a write that arrives at `time`; calls must come in order of arrival. Writes become
    /// visible in order, at the end of their service.
    pub fn serve_write(&mut self, time: Time, bytes: u64) -> Service {
        self.channel.reserve(time, self.rate.time(Bytes::new(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    /// Reads take the memory's latency and a random addition. In units of the parameter, a uniform
    /// draw has mean 1/2 and mean square 1/3, an exponential one 1 and 2. Canary: the two differ
    /// clearly.
    #[test]
    fn additional_times_are_drawn_as_asked() {
        let moments = |distribution| {
            let mut host = Config::prototype().host;
            (host.memory_jitter, host.memory_distribution) = (Span::from_ns(100), distribution);
            let mut memory = HostMemory::new(0, 4096, &host, Random::new(3));
            let (mut sum, mut squares) = (0.0, 0.0);
            for at in 0..100_000u64 {
                let access = memory.serve_read(Time::from_ps(at * 1_000_000), 64);
                let served = access.begins + host.memory_rate.time(Bytes::new(64));
                let more = (access.ends - served - host.memory_latency).as_ns() / 100.0;
                sum += more / 100_000.0;
                squares += more * more / 100_000.0;
            }
            (sum, squares)
        };
        let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 0.03;
        let (mean, square) = moments(Distribution::Uniform);
        assert!(near(mean, 0.5) && near(square, 1.0 / 3.0), "{mean} {square}");
        let (mean, square) = moments(Distribution::Exponential);
        assert!(near(mean, 1.0) && near(square, 2.0), "{mean} {square}");
        assert!(!near(moments(Distribution::Uniform).0, mean));
    }

    /// 32 B at 12.8 GB/s take 2.5 ns and 148 more for a read; accesses wait for each other, but not
    /// for a read's latency. Even jitter is drawn up to its limit.
    #[test]
    fn accesses_share_the_channel() {
        let config = crate::chpp::Config::prototype().host;
        let mut memory = HostMemory::new(3, 64, &config, Random::new(1));
        assert_eq!(memory.base(), 3 << 36);
        let read = memory.serve_read(Time::from_ps(1_000), 32);
        assert_eq!((read.begins.ps(), read.ends.ps()), (1_000, 1_000 + 2_500 + 148_000));
        let write = memory.serve_write(Time::from_ps(2_000), 64);
        assert_eq!((write.begins.ps(), write.ends.ps()), (3_500, 8_500));
        let jitter = Span::from_ns(50);
        let host = HostConfig { memory_jitter: jitter, ..config };
        let mut memory = HostMemory::new(0, 64, &host, Random::new(7));
        let mut random = Random::new(7);
        for at in 0..20 {
            let read = memory.serve_read(Time::from_ps(at * 1_000_000), 32);
            let more = random.below(jitter.ps() + 1);
            assert_eq!(read.ends.ps(), at * 1_000_000 + 150_500 + more);
        }
    }
}
