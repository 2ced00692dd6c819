//! Captures that Wireshark reads: blocks of pcapng (IETF draft-ietf-opsawg-pcapng, sections 4.1 to
//! 4.3), written one behind the other.
//!
//! ```text
//!   section header | interface 0 | interface 1 | ... | packet | packet | ...
//!
//!   each block:  type 4 | length 4 | body, multiple of 4 | length 4    all little-endian
//! ```
//!
//! Nothing is stored here: bytes go to any output that can be extended by bytes.

/// How the frames of an interface begin (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet = 1,
    /// An IP header of either version.
    Ip = 101,
    /// A packet of [`crate::packet`]; the number is reserved for private use.
    ChppPacket = 147,
    /// A PCIe transaction layer packet, from its first DW to the end of its data; the number is
    /// reserved for private use.
    PcieTransaction = 148,
}

/// Direction of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To us.
    Received = 1,
    /// From us.
    Sent = 2,
}

/// Unit of the times of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Resolution {
    /// 10^-9 s.
    Nanoseconds = 9,
    /// 10^-12 s.
    Picoseconds = 12,
}

/// The beginning of a file; `program` wrote it.
pub fn section(out: &mut impl Extend<u8>, program: &str) {
    const SECTION: u32 = 0x0a0d_0d0a;
    const BYTE_ORDER: u32 = 0x1a2b_3c4d;
    let body = 16 + option_length(program.len()) + END_LENGTH;
    begin(out, SECTION, body);
    out.extend(BYTE_ORDER.to_le_bytes());
    // Version 1.0, length of the section not known.
    out.extend([1, 0, 0, 0]);
    out.extend(u64::MAX.to_le_bytes());
    option(out, 4, program.as_bytes());
    option(out, 0, &[]);
    end(out, body);
}

/// An interface; packets name it by the number of interfaces before it. `name` is for people.
pub fn interface(out: &mut impl Extend<u8>, link: LinkType, name: &str, resolution: Resolution) {
    const INTERFACE: u32 = 1;
    let body = 8 + option_length(name.len()) + option_length(1) + END_LENGTH;
    begin(out, INTERFACE, body);
    out.extend((link as u16).to_le_bytes());
    // Reserved; no limit to a frame's length.
    out.extend([0; 6]);
    option(out, 2, name.as_bytes());
    option(out, 9, &[resolution as u8]);
    option(out, 0, &[]);
    end(out, body);
}

/// A frame of an interface, in two pieces, with its time in the interface's unit.
pub fn packet(
    out: &mut impl Extend<u8>,
    (interface, time): (u32, u64),
    direction: Option<Direction>,
    (header, frame): (&[u8], &[u8]),
) {
    const ENHANCED_PACKET: u32 = 6;
    let length = header.len() + frame.len();
    let flags = if direction.is_some() { option_length(4) } else { 0 };
    let body = 20 + length.next_multiple_of(4) + flags + END_LENGTH;
    begin(out, ENHANCED_PACKET, body);
    for word in [interface, (time >> 32) as u32, time as u32, length as u32, length as u32] {
        out.extend(word.to_le_bytes());
    }
    out.extend(header.iter().copied());
    out.extend(frame.iter().copied());
    pad(out, length);
    if let Some(direction) = direction {
        option(out, 2, &(direction as u32).to_le_bytes());
    }
    option(out, 0, &[]);
    end(out, body);
}

/// Length of the option that ends a list of options.
const END_LENGTH: usize = 4;

fn begin(out: &mut impl Extend<u8>, kind: u32, body: usize) {
    out.extend(kind.to_le_bytes());
    end(out, body);
}

fn end(out: &mut impl Extend<u8>, body: usize) {
    out.extend((12 + body as u32).to_le_bytes());
}

/// An option of a block: code, length, value in multiples of four bytes.
fn option(out: &mut impl Extend<u8>, code: u16, value: &[u8]) {
    // A value of more than 65535 bytes is cut.
    let value = &value[..value.len().min(u16::MAX.into())];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value.iter().copied());
    pad(out, value.len());
}

fn option_length(value: usize) -> usize {
    4 + value.min(u16::MAX.into()).next_multiple_of(4)
}

fn pad(out: &mut impl Extend<u8>, length: usize) {
    out.extend(core::iter::repeat_n(0, length.next_multiple_of(4) - length));
}
