//! What two streams say to each other.
//!
//! Each message is a send with an immediate value:
//!
//! | bits | what |
//! |---|---|
//! | 30, 31 | 0 data, 1 nothing but credit, 2 end of the stream, 3 a mapping |
//! | 16 to 29 | zero |
//! | 0 to 15 | receives that the sender of the message has freed: credit for its peer |
//!
//! Data and a mapping take one credit each. A message of credit alone and the end take none: each
//! side posts [`RESERVE`] receives more than it gives credit for.
//!
//! A [`Hello`] is the private data of request and reply, and a [`Mapping`] the body of its message.
//! Numbers are big endian.

/// Receives without credit. At most two messages of credit and one end are under way: the next
/// credit needs half of the receives to be used in between.
pub const RESERVE: u16 = 4;
/// The most receives that a side gives credit for.
pub const MOST_SLOTS: u16 = 1024;
/// The most mappings.
pub const MOST_MAPS: u8 = 128;
/// Bytes of a receive.
pub const SLOT_BYTES: std::ops::RangeInclusive<u32> = 64..=1 << 20;

const MAGIC: [u8; 4] = *b"BWRS";
const VERSION: u8 = 1;

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes of the stream.
    Data,
    /// Nothing but credit.
    Credit,
    /// No more data follows.
    End,
    /// A [`Mapping`].
    Map,
}

impl Kind {
    /// The immediate value of a message.
    pub fn with(self, credit: u16) -> u32 {
        (self as u32) << 30 | u32::from(credit)
    }

    /// Reads an immediate value. `None`: it is none of this version.
    pub fn parse(immediate: u32) -> Option<(Kind, u16)> {
        let kind = [Kind::Data, Kind::Credit, Kind::End, Kind::Map][(immediate >> 30) as usize];
        (immediate & 0x3fff_0000 == 0).then_some((kind, immediate as u16))
    }
}

/// What a side tells the other one before the stream begins.
///
/// ```text
/// 0      4         5      6       8            12
/// +------+---------+------+-------+------------+
/// | BWRS | version | maps | slots | slot bytes |
/// +------+---------+------+-------+------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Receives that the peer has credit for, 2 to [`MOST_SLOTS`].
    pub slots: u16,
    /// Bytes of each.
    pub slot_bytes: u32,
    /// Mappings that the peer may announce.
    pub maps: u8,
}

impl Hello {
    /// Its length in bytes.
    pub const BYTES: usize = 12;

    /// Its bytes.
    pub fn emit(&self) -> [u8; Hello::BYTES] {
        let mut bytes = [0; Hello::BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (VERSION, self.maps);
        bytes[6..8].copy_from_slice(&self.slots.to_be_bytes());
        bytes[8..].copy_from_slice(&self.slot_bytes.to_be_bytes());
        bytes
    }

    /// Reads it. `None`: it is none of this version, or out of range.
    pub fn parse(bytes: &[u8]) -> Option<Hello> {
        let bytes: &[u8; Hello::BYTES] = bytes.try_into().ok()?;
        let hello = Hello {
            slots: u16::from_be_bytes([bytes[6], bytes[7]]),
            slot_bytes: u32::from_be_bytes(bytes[8..].try_into().ok()?),
            maps: bytes[5],
        };
        let good = bytes[..4] == MAGIC
            && bytes[4] == VERSION
            && (2..=MOST_SLOTS).contains(&hello.slots)
            && SLOT_BYTES.contains(&hello.slot_bytes)
            && hello.maps <= MOST_MAPS;
        good.then_some(hello)
    }
}

/// Memory of the sender of this message that its peer may write: `riomap(3)`.
///
/// ```text
/// 0        8         16       24    28      32
/// +--------+---------+--------+-----+-------+
/// | offset | address | length | key | index |
/// +--------+---------+--------+-----+-------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    /// How the peer's program names its first byte.
    pub offset: u64,
    /// Where it is.
    pub address: u64,
    /// Bytes; 0: the mapping of this index has ended.
    pub length: u64,
    /// The key of the memory.
    pub key: u32,
    /// Its place in the peer's table.
    pub index: u32,
}

impl Mapping {
    /// Its length in bytes.
    pub const BYTES: usize = 32;

    /// Its bytes.
    pub fn emit(&self) -> [u8; Mapping::BYTES] {
        let mut bytes = [0; Mapping::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.address.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.key.to_be_bytes());
        bytes[28..].copy_from_slice(&self.index.to_be_bytes());
        bytes
    }

    /// Reads it.
    pub fn parse(bytes: &[u8; Mapping::BYTES]) -> Mapping {
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Mapping {
            offset: long(0),
            address: long(8),
            length: long(16),
            key: word(24),
            index: word(28),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is read again, and other bytes are refused.
    #[test]
    fn formats_are_read_as_written() {
        let hello = Hello { slots: 32, slot_bytes: 1 << 15, maps: 3 };
        assert_eq!(Hello::parse(&hello.emit()), Some(hello));
        for at in 0..5 {
            let mut bytes = hello.emit();
            bytes[at] ^= 1;
            assert_eq!(Hello::parse(&bytes), None, "byte {at}");
        }
        for bad in [
            Hello { slots: 1, ..hello },
            Hello { slots: MOST_SLOTS + 1, ..hello },
            Hello { slot_bytes: 63, ..hello },
            Hello { slot_bytes: (1 << 20) + 1, ..hello },
            Hello { maps: MOST_MAPS + 1, ..hello },
        ] {
            assert_eq!(Hello::parse(&bad.emit()), None, "{bad:?}");
        }
        assert_eq!(Hello::parse(&[0; 11]), None);
        let mapping = Mapping { offset: 1, address: 2, length: 3, key: 4, index: 5 };
        assert_eq!(Mapping::parse(&mapping.emit()), mapping);
        for kind in [Kind::Data, Kind::Credit, Kind::End, Kind::Map] {
            assert_eq!(Kind::parse(kind.with(0xffff)), Some((kind, 0xffff)));
            assert_eq!(Kind::parse(kind.with(1) | 1 << 16), None);
        }
    }
}
