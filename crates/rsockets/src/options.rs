//! Options of a socket: rsocket(7), socket(7) and tcp(7).

use crate::message::{MOST_MAPS, MOST_SLOTS, SLOT_BYTES};
use libc::c_int;
use std::time::Duration;

/// `SOL_RDMA` of `rdma/rsocket.h`.
pub const SOL_RDMA: c_int = 0x10000;
/// `RDMA_SQSIZE` and so on.
pub const RDMA_SQSIZE: c_int = 0;
pub const RDMA_RQSIZE: c_int = 1;
pub const RDMA_INLINE: c_int = 2;
pub const RDMA_IOMAPSIZE: c_int = 3;
pub const RDMA_ROUTE: c_int = 4;

/// The sizes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Bytes that wait to be sent.
    pub send_bytes: usize,
    /// Bytes that wait to be read, in all slots.
    pub receive_bytes: usize,
    pub slots: u16,
    /// Requests in the send queue.
    pub sends: usize,
    /// Longer writes go through the ring.
    pub inline_bytes: usize,
    /// Mappings that the peer may announce.
    pub maps: u8,
}

impl Sizes {
    /// Bytes of a slot: a multiple of 64.
    pub fn slot_bytes(&self) -> u32 {
        let bytes = (self.receive_bytes / usize::from(self.slots)).next_multiple_of(64);
        (bytes as u32).clamp(*SLOT_BYTES.start(), *SLOT_BYTES.end())
    }
}

/// What a program has set.
#[derive(Clone, Debug)]
pub struct Options {
    pub sizes: Sizes,
    /// `SO_LINGER`.
    pub linger: Option<Duration>,
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
    /// Options without effect here, by level and name: they are kept and given back. A connection
    /// is always kept alive, and never delays small messages.
    pub kept: Vec<(c_int, c_int, c_int)>,
}

/// The least and the most bytes of a buffer.
const BUFFER: std::ops::RangeInclusive<usize> = 4096..=64 << 20;

/// Options that are kept without effect.
const KEPT: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
];

impl Options {
    pub fn new() -> Options {
        Options {
            sizes: Sizes {
                send_bytes: 512 << 10,
                receive_bytes: 1 << 20,
                slots: 32,
                sends: 64,
                inline_bytes: 512,
                maps: 0,
            },
            linger: None,
            receive_timeout: None,
            send_timeout: None,
            kept: Vec::new(),
        }
    }

    /// Sets an option that is a number. `false`: there is none of that name.
    pub fn set(&mut self, level: c_int, name: c_int, value: c_int) -> bool {
        let count = usize::try_from(value).unwrap_or(0);
        match (level, name) {
            (SOL_RDMA, RDMA_SQSIZE) => self.sizes.sends = count.clamp(8, 4096),
            (SOL_RDMA, RDMA_RQSIZE) => self.sizes.slots = count.clamp(2, MOST_SLOTS.into()) as u16,
            (SOL_RDMA, RDMA_INLINE) => {
                self.sizes.inline_bytes = count.min(bellwire_rdma::LIMITS.inline_bytes);
            }
            (SOL_RDMA, RDMA_IOMAPSIZE) => self.sizes.maps = count.min(MOST_MAPS.into()) as u8,
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
                self.sizes.send_bytes = count.clamp(*BUFFER.start(), *BUFFER.end());
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
                self.sizes.receive_bytes = count.clamp(*BUFFER.start(), *BUFFER.end());
            }
            _ if KEPT.contains(&(level, name)) => {
                self.kept.retain(|it| (it.0, it.1) != (level, name));
                self.kept.push((level, name, value));
            }
            _ => return false,
        }
        true
    }

    /// The value of an option that is a number.
    pub fn value(&self, level: c_int, name: c_int) -> Option<c_int> {
        Some(match (level, name) {
            (SOL_RDMA, RDMA_SQSIZE) => self.sizes.sends as c_int,
            (SOL_RDMA, RDMA_RQSIZE) => self.sizes.slots.into(),
            (SOL_RDMA, RDMA_INLINE) => self.sizes.inline_bytes as c_int,
            (SOL_RDMA, RDMA_IOMAPSIZE) => self.sizes.maps.into(),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => self.sizes.send_bytes as c_int,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => self.sizes.receive_bytes as c_int,
            _ if KEPT.contains(&(level, name)) => {
                let known = self.kept.iter().find(|it| (it.0, it.1) == (level, name));
                let is_segment = (level, name) == (libc::IPPROTO_TCP, libc::TCP_MAXSEG);
                let unset = if is_segment { self.sizes.slot_bytes() as c_int } else { 0 };
                known.map_or(unset, |it| it.2)
            }
            _ => return None,
        })
    }
}
