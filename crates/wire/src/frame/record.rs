//! Records: the packets and the news inside a section.
//!
//! # A packet
//! Carries words 1 to 3 of the header of a packet between engines, without the zero bytes, and the
//! payload:
//! ```text
//!   0        1        2                                                         header    +payload
//!   +--------+--------+-------+-----+---------+-------------+--------+----------+-- ... ---+
//!   | kind   | shape  | flags | aux | payload | destination | source | argument | payload  |
//!   |        |        | 0, 1  | 0,2 | 0,1,2,4 | 0, 1, 2, 4  | same   | 0,2,4,8  | bytes    |
//!   +--------+--------+-------+-----+---------+-------------+--------+----------+-- ... ---+
//!
//!   shape:  bit 0     flags there           bits 4-5  bytes of each queue pair number (code)
//!           bit 1     aux there             bits 6-7  bytes of the argument (code)
//!           bits 2-3  bytes of the payload's length (code)
//! ```
//! Each size is the smallest that holds the value (for the two queue pair numbers: the larger of
//! them), so a packet has one form. An eager message of 8 bytes between low queue pair numbers
//! without an immediate value takes 13 bytes. The words are those of cHPP's 16-byte header as
//! Bellwire widened them; PROTOCOL.md has the table.
//!
//! # News
//! ```text
//!   0        1                                   5
//!   +--------+-----------------------------------+
//!   | what   | queue pair                        |
//!   +--------+-----------------------------------+
//! ```
//! `what` is the gate of the sender's queue pair: 0 closed, 1 open, 2 stopped. A 3 asks for the
//! gate of the receiver's queue pair, now and at each change.

use super::array;
use crate::WireError;
use crate::error::codes;

/// Longest header of a packet.
pub const PACKET_HEADER_MAX_BYTES: usize = 25;
/// Credit that a packet costs in addition to its payload: its header's size in memory.
pub const PACKET_COST_BYTES: u32 = 32;
/// Size of a piece of news.
pub const NEWS_BYTES: usize = 5;

const LENGTH_BYTES: [u8; 4] = [0, 1, 2, 4];
const PAIR_BYTES: [u8; 4] = [0, 1, 2, 4];
const ARGUMENT_BYTES: [u8; 4] = [0, 2, 4, 8];

/// Bytes of the header for each shape.
static HEADER_BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut shape = 0;
    while shape < 256 {
        table[shape] = 2
            + (shape as u8 & 1)
            + 2 * (shape as u8 >> 1 & 1)
            + LENGTH_BYTES[shape >> 2 & 3]
            + 2 * PAIR_BYTES[shape >> 4 & 3]
            + ARGUMENT_BYTES[shape >> 6];
        shape += 1;
    }
    table
};

const _: () = assert!(HEADER_BYTES[255] as usize == PACKET_HEADER_MAX_BYTES);

/// Words 1 to 3 of a packet's header: kind, flags, aux and payload length; destination and source;
/// argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketWords(pub [u64; 3]);

impl PacketWords {
    /// Bytes of the payload.
    #[inline]
    pub const fn payload_bytes(self) -> u32 {
        (self.0[0] >> 32) as u32
    }

    /// The same with another payload length.
    #[inline]
    pub const fn with_payload_bytes(self, length: u32) -> Self {
        PacketWords([self.0[0] as u32 as u64 | (length as u64) << 32, self.0[1], self.0[2]])
    }

    #[inline]
    fn shape(self) -> u8 {
        let [first, pairs, argument] = self.0;
        let flags = (first >> 8 & 0xff != 0) as u8;
        let aux = (first >> 16 & 0xffff != 0) as u8;
        let pairs = (pairs | pairs >> 32) as u32 as u64;
        flags
            | aux << 1
            | code(first >> 32, [0, 8, 16]) << 2
            | code(pairs, [0, 8, 16]) << 4
            | code(argument, [0, 16, 32]) << 6
    }

    /// Writes the compact form and returns its length in bytes.
    #[inline]
    pub fn emit(self, buffer: &mut [u8; PACKET_HEADER_MAX_BYTES]) -> usize {
        let [first, pairs, argument] = self.0;
        let shape = self.shape();
        let mut put = Put { buffer, at: 0 };
        put.bytes([first as u8, shape]);
        if shape & 1 != 0 {
            put.bytes([(first >> 8) as u8]);
        }
        if shape & 2 != 0 {
            put.bytes(((first >> 16) as u16).to_le_bytes());
        }
        put.number((first >> 32) as u32, shape >> 2 & 3);
        put.number(pairs as u32, shape >> 4 & 3);
        put.number((pairs >> 32) as u32, shape >> 4 & 3);
        match shape >> 6 {
            0 => {}
            1 => put.bytes((argument as u16).to_le_bytes()),
            2 => put.bytes((argument as u32).to_le_bytes()),
            _ => put.bytes(argument.to_le_bytes()),
        }
        put.at
    }

    /// Reads a compact header from the front of `bytes`. Returns it and its length, or `None` if
    /// `bytes` ends inside the header.
    ///
    /// # Errors
    /// [`WireError::Reserved`] if it is not the smallest form of its values.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, WireError> {
        let &[kind, shape, ..] = bytes else { return Ok(None) };
        let length = HEADER_BYTES[shape as usize] as usize;
        if bytes.len() < length {
            return Ok(None);
        }
        let mut take = Take { bytes, at: 2 };
        let flags = if shape & 1 != 0 { take.bytes::<1>()[0] } else { 0 };
        let aux = if shape & 2 != 0 { u16::from_le_bytes(take.bytes()) } else { 0 };
        let payload = take.number(shape >> 2 & 3);
        let destination = take.number(shape >> 4 & 3);
        let source = take.number(shape >> 4 & 3);
        let argument = match shape >> 6 {
            0 => 0,
            1 => u16::from_le_bytes(take.bytes()) as u64,
            2 => u32::from_le_bytes(take.bytes()) as u64,
            _ => u64::from_le_bytes(take.bytes()),
        };
        let words = PacketWords([
            kind as u64 | (flags as u64) << 8 | (aux as u64) << 16 | (payload as u64) << 32,
            destination as u64 | (source as u64) << 32,
            argument,
        ]);
        if words.shape() != shape {
            return Err(WireError::Reserved { field: "packet shape", value: shape as u64 });
        }
        Ok(Some((words, length)))
    }
}

/// Code of the smallest of four sizes that holds `value`: no bytes, or one of the sizes that end at
/// these bits.
#[inline]
fn code(value: u64, bits: [u32; 3]) -> u8 {
    (value >> bits[0] != 0) as u8 + (value >> bits[1] != 0) as u8 + (value >> bits[2] != 0) as u8
}

struct Put<'a> {
    buffer: &'a mut [u8; PACKET_HEADER_MAX_BYTES],
    at: usize,
}

impl Put<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.buffer[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    #[inline(always)]
    fn number(&mut self, value: u32, code: u8) {
        match code {
            0 => {}
            1 => self.bytes([value as u8]),
            2 => self.bytes((value as u16).to_le_bytes()),
            _ => self.bytes(value.to_le_bytes()),
        }
    }
}

struct Take<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Take<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let out = array(self.bytes, self.at);
        self.at += N;
        out
    }

    #[inline(always)]
    fn number(&mut self, code: u8) -> u32 {
        match code {
            0 => 0,
            1 => self.bytes::<1>()[0] as u32,
            2 => u16::from_le_bytes(self.bytes()) as u32,
            _ => u32::from_le_bytes(self.bytes()),
        }
    }
}

codes! {
    /// The gate of a queue pair, as peers see it.
    GateState, "news";

    /// There is no such queue pair.
    Closed = 0,
    /// It takes sends.
    Open = 1,
    /// The queue pair exists, but takes no sends now.
    Stopped = 2,
}

/// What a piece of news is that asks for a gate.
const ASK: u8 = 3;

/// News of one queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The sender's queue pair is in this state now.
    Gate {
        /// The queue pair.
        queue_pair: u32,
        /// Its state.
        state: GateState,
    },
    /// Asks for the state of the receiver's queue pair, and for its changes.
    Ask {
        /// The queue pair.
        queue_pair: u32,
    },
}

impl News {
    /// The bytes.
    #[inline]
    pub fn emit(self) -> [u8; NEWS_BYTES] {
        let (what, queue_pair) = match self {
            News::Gate { queue_pair, state } => (state as u8, queue_pair),
            News::Ask { queue_pair } => (ASK, queue_pair),
        };
        let [a, b, c, d] = queue_pair.to_le_bytes();
        [what, a, b, c, d]
    }

    /// The reverse of [`News::emit`].
    ///
    /// # Errors
    /// [`WireError::UnknownCode`].
    #[inline]
    pub fn parse(bytes: [u8; NEWS_BYTES]) -> Result<Self, WireError> {
        let queue_pair = u32::from_le_bytes(array(&bytes, 1));
        if bytes[0] == ASK {
            return Ok(News::Ask { queue_pair });
        }
        Ok(News::Gate { queue_pair, state: GateState::from_code(bytes[0])? })
    }
}
