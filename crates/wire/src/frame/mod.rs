//! Frames of the reliable protocol: what the devices `eth` and `udp` put on the wire.
//!
//! A frame is the payload of one Ethernet frame of type [`ETHERTYPE`], or of one UDP datagram to
//! port [`UDP_PORT_BASE`] + function. PROTOCOL.md says how endpoints use frames; this module has
//! only their layout.
//!
//! ```text
//!   0             32                                       length - 4      length
//!   +-------------+-----------+-----------+-- ... --+-----------+------------+
//!   | header      | section   | section   |         | section   | CRC-32C    |  Data, Acknowledge
//!   +-------------+-----------+-----------+-- ... --+-----------+------------+
//!   | header      | body of fixed length                        | CRC-32C    |  all other kinds
//!   +-------------+---------------------------------------------+------------+
//! ```
//!
//! Bytes behind `length` are padding of the network (Ethernet fills up to 60 bytes) and are
//! ignored. All numbers are little-endian. The check value covers everything before it, so it
//! protects every byte.
//!
//! - [`header`] is in front of every frame
//! - [`section`] divides the rest of a Data frame
//! - [`record`] is one packet or one piece of news inside a section
//! - [`open`] and [`finish`] are the bodies of the frames that begin and end a link
//! - [`challenge`] makes the sender of an Open prove its address
//! - [`seek`] finds the place of a node on a plain Ethernet
//! - [`keyed`] carries all of these between devices with a key
//! - [`check`] is the check value

pub mod challenge;
pub mod check;
pub mod finish;
pub mod header;
pub mod keyed;
pub mod open;
pub mod record;
pub mod section;
pub mod seek;

/// EtherType of our frames: the first of two that IEEE 802 (clause 9.2.4) reserves for local
/// experiments.
pub const ETHERTYPE: u16 = 0x88b5;

/// Function `f` of a node listens on this UDP port plus `f`, unless told otherwise. The 256 ports
/// from here are in the range for private use (RFC 6335, section 6).
pub const UDP_PORT_BASE: u16 = 49_664;

/// Bytes of a frame that are neither section nor body.
pub const FRAME_OVERHEAD_BYTES: usize = header::HEADER_BYTES + check::CHECK_BYTES;

/// Shortest frame buffer that a link works with. Every body fits, and so does a section with the
/// smallest piece of a packet.
pub const MIN_FRAME_BYTES: usize = 256;

/// Longest frame: its length is a 16-bit number.
pub const MAX_FRAME_BYTES: usize = u16::MAX as usize;

const _: () = assert!(UDP_PORT_BASE as u32 + 255 <= u16::MAX as u32);
const _: () = assert!(FRAME_OVERHEAD_BYTES + open::OPEN_BYTES <= MIN_FRAME_BYTES);
// A sender with an unproved address is answered by no more bytes than it sent.
const _: () = assert!(challenge::CHALLENGE_BYTES <= open::OPEN_BYTES);
const _: () = assert!(finish::REFUSE_BYTES <= open::OPEN_BYTES);

/// One function of one node, as frames name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FunctionId {
    /// Node number.
    pub node: u32,
    /// Function number.
    pub function: u8,
}

impl core::fmt::Display for FunctionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.node, self.function)
    }
}

/// The `N` bytes of `bytes` from `at`. Callers have checked the length once; the offsets are
/// constants.
#[inline(always)]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}
