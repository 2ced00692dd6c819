//! The traffic of each link, as a capture for Wireshark (pcapng, times in picoseconds).
//!
//! | interface of the file | its frames | time |
//! |---|---|---|
//! | `host n to interface` | PCIe transaction layer packets | first byte leaves |
//! | `interface n to host` | PCIe transaction layer packets | first byte leaves |
//! | `interface n to controller` | network packets (`bellwire_wire::packet`) | first beat leaves |
//! | `controller to interface n` | network packets | through the receive dispatch |
//! | `controller a to controller b` | network packets | complete at the far end |
//!
//! PCIe packets are reads, writes and completions (base specification 2.0, 2.2).
//!
//! Stores into an interface's window go to addresses above all hosts' memories, see
//! [`window_address`]. Traffic between processors and I/O devices is not recorded.

use std::fmt;

use bellwire_wire::pcapng::{self, LinkType, Resolution};
use bellwire_wire::span::ByteSpan;

use super::MOST_NOTES;
use crate::chpp::machine::Machine;
use crate::units::Time;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// From a host to its interface.
    Down(u8),
    /// From an interface to its host.
    Up(u8),
    /// From an interface into the crossbar of its controller.
    Into(u8),
    /// Out of the crossbar into an interface.
    OutOf(u8),
    /// Between controllers.
    Between(u8, u8),
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wire::Down(node) => write!(f, "host {node} to interface"),
            Wire::Up(node) => write!(f, "interface {node} to host"),
            Wire::Into(node) => write!(f, "interface {node} to controller"),
            Wire::OutOf(node) => write!(f, "controller to interface {node}"),
            Wire::Between(from, to) => write!(f, "controller {from} to controller {to}"),
        }
    }
}

/// Frames in recording order, which is not the order of their times.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    frames: Vec<(Time, Wire, Vec<u8>)>,
    /// Whether frames were dropped at the limit.
    pub cut: bool,
}

impl Frames {
    /// Records a frame.
    pub(crate) fn note(&mut self, time: Time, wire: Wire, bytes: Vec<u8>) {
        if self.frames.len() < MOST_NOTES {
            self.frames.push((time, wire, bytes));
        } else {
            self.cut = true;
        }
    }
}

/// The recorded frames of a machine's links; a file without frames if none were recorded.
pub fn capture(machine: &Machine) -> Vec<u8> {
    let mut frames: Vec<&(Time, Wire, Vec<u8>)> =
        machine.journal().frames().iter().flat_map(|frames| &frames.frames).collect();
    frames.sort_by_key(|(time, wire, _)| (*time, *wire));
    let mut wires: Vec<Wire> = frames.iter().map(|(_, wire, _)| *wire).collect();
    wires.sort_unstable();
    wires.dedup();
    let mut out = Vec::new();
    pcapng::section(&mut out, concat!("Bellwire ", env!("CARGO_PKG_VERSION")));
    for wire in &wires {
        let link = match wire {
            Wire::Down(_) | Wire::Up(_) => LinkType::PcieTransaction,
            Wire::Into(_) | Wire::OutOf(_) | Wire::Between(..) => LinkType::ChppPacket,
        };
        pcapng::interface(&mut out, link, &wire.to_string(), Resolution::Picoseconds);
    }
    for (time, wire, bytes) in frames {
        let number = wires.binary_search(wire).unwrap_or_default() as u32;
        pcapng::packet(&mut out, (number, time.ps()), None, (&[], bytes));
    }
    out
}

/// Address of a store into the window of a function of an interface. The paper says only that the
/// window is the function's own (4.1). Bit 40 is set, bits 24 to 31 are the node, 12 to 15 the
/// function; the lower bits are the place in its page.
pub fn window_address(node: u8, function: usize, place: u64) -> u64 {
    1 << 40 | u64::from(node) << 24 | (function as u64) << 12 | place
}

/// A read request (2.2.7): 4 DWs of header. The model chooses the tag.
pub(crate) fn read_request(node: u8, tag: u8, address: u64, length: u64) -> Vec<u8> {
    request(0x20, (node, tag), address, length)
}

/// A write with its data in whole DWs (2.2.7).
pub(crate) fn write_request(node: u8, address: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(0x60, (node, 0), address, data.len() as u64);
    append(&mut bytes, address, data);
    bytes
}

/// A completion with data (2.2.9): 3 DWs of header. `left` is the number of bytes that this
/// completion and all later ones of the request carry.
pub(crate) fn completion(node: u8, tag: u8, address: u64, left: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 + data.len() + 6);
    bytes.extend(first_dword(0x4a, dwords(address, data.len() as u64)));
    // Completer: the root complex, 0. Status: successful. A byte count of 4096 is encoded as 0.
    bytes.extend([0, 0, (left >> 8 & 0xf) as u8, left as u8]);
    bytes.extend([node, 0, tag, (address & 0x7f) as u8]);
    append(&mut bytes, address, data);
    bytes
}

fn request(kind: u8, (node, tag): (u8, u8), address: u64, length: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + length as usize + 6);
    bytes.extend(first_dword(kind, dwords(address, length)));
    bytes.extend([node, 0, tag, enables(address, length)]);
    bytes.extend((address & !3).to_be_bytes());
    bytes
}

/// Format and type, and the length in DWs; 1024 is encoded as 0.
fn first_dword(kind: u8, dwords: u64) -> [u8; 4] {
    [kind, 0, (dwords >> 8 & 3) as u8, dwords as u8]
}

fn dwords(address: u64, length: u64) -> u64 {
    (address % 4 + length).div_ceil(4).max(1)
}

/// Byte enables of the last and the first DW. They depend only on the offset in a DW, so the
/// address width is irrelevant.
fn enables(address: u64, length: u64) -> u8 {
    ByteSpan::new(address % 4, length as usize).map_or(0, |span| {
        let dwords = span.to_dwords();
        dwords.last_enables << 4 | dwords.first_enables
    })
}

/// Data behind a header, in its byte lanes.
fn append(bytes: &mut Vec<u8>, address: u64, data: &[u8]) {
    let from = bytes.len();
    bytes.extend(std::iter::repeat_n(0, (address % 4) as usize));
    bytes.extend(data);
    bytes.resize(from + (dwords(address, data.len() as u64) * 4) as usize, 0);
}
