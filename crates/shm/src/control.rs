//! Messages on the control socket between two functions. No packet waits for them.
//!
//! ```text
//!   connecting function                             listening function
//!        | Hello  + pair's memory, its pool, its board -->|   checks version, credentials,
//!        |                                                |   seals, sizes
//!        |<--------------------  Welcome + its pool, board|   (or Refuse)
//!        |                  lanes both ways               |
//!        | Ask (index, key) ----------------------------->|   region that can be mapped:
//!        |                                                |   once per region and peer
//!        |<-------------------------- Answer + its memory |
//!        | Kick ----------------------------------------->|   wakes a sleeper
//! ```
//! Fixed-size little-endian records; a record that does not parse closes the link.

/// "BELLWIRE", little-endian.
const MAGIC: u64 = 0x4552_4957_4c4c_4542;
/// Version of everything that two processes share: control messages, lane layout, packet header.
pub const VERSION: u32 = 2;
/// Bytes of the longest record.
pub const RECORD_BYTES: usize = 96;

/// The identity of a function, and what its peer needs to map its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Introduction {
    pub version: u32,
    pub node: u32,
    pub function: u8,
    /// Weight of this function among those that share a receiver.
    pub weight: u8,
    /// Whether its process is registered for, and can issue, system-wide memory barriers.
    pub barriers: bool,
    pub pool_chunks: u32,
    pub gates: u32,
    pub regions: u32,
    /// The doorbell bit that the peer rings.
    pub lane: u32,
    /// Address of a word with `probe_value` in its memory. Reading it shows whether cross-memory
    /// attach works.
    pub probe_address: u64,
    pub probe_value: u64,
}

/// Why a link was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refused {
    /// The versions differ.
    Version = 1,
    /// The peer is connecting to us at the same moment, and its attempt takes precedence.
    Crossed = 2,
    /// No room for another link.
    Full = 3,
    /// The peer's user or group may not connect.
    Credentials = 4,
}

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    Hello(Introduction),
    Welcome(Introduction),
    Refuse(Refused, u32),
    Kick,
    /// Asks to map region `index`.
    Ask {
        index: u16,
        key: u64,
    },
    /// The answer: length of the attached memory, or 0 if refused, and whether it is writable.
    Answer {
        index: u16,
        key: u64,
        length: u64,
        writable: bool,
    },
    /// The peer's program used a key that is not valid here. It is only counted.
    WrongKey {
        index: u16,
    },
}

impl Control {
    /// The record, and its length in bytes.
    pub fn to_bytes(self) -> ([u8; RECORD_BYTES], usize) {
        let mut to = Writer { bytes: [0; RECORD_BYTES], at: 0 };
        match self {
            Control::Hello(introduction) => to.introduction(1, introduction),
            Control::Welcome(introduction) => to.introduction(2, introduction),
            Control::Refuse(why, version) => {
                to.put(&[(3, 1), (why as u64, 1), (version.into(), 4)])
            }
            Control::Kick => to.put(&[(4, 1)]),
            Control::Ask { index, key } => to.put(&[(5, 1), (index.into(), 2), (key, 8)]),
            Control::Answer { index, key, length, writable } => {
                to.put(&[(6, 1), (index.into(), 2), (key, 8), (length, 8), (writable.into(), 1)]);
            }
            Control::WrongKey { index } => to.put(&[(7, 1), (index.into(), 2)]),
        }
        (to.bytes, to.at)
    }

    /// Parses a record; `None` if it is not one of ours, or is too short or too long.
    pub fn from_bytes(bytes: &[u8]) -> Option<Control> {
        let mut from = Reader { bytes };
        let message = match from.take(1)? {
            1 => Control::Hello(from.introduction()?),
            2 => Control::Welcome(from.introduction()?),
            3 => {
                let why = match from.take(1)? {
                    1 => Refused::Version,
                    2 => Refused::Crossed,
                    3 => Refused::Full,
                    4 => Refused::Credentials,
                    _ => return None,
                };
                Control::Refuse(why, from.take(4)? as u32)
            }
            4 => Control::Kick,
            5 => Control::Ask { index: from.take(2)? as u16, key: from.take(8)? },
            6 => Control::Answer {
                index: from.take(2)? as u16,
                key: from.take(8)?,
                length: from.take(8)?,
                writable: from.take(1)? != 0,
            },
            7 => Control::WrongKey { index: from.take(2)? as u16 },
            _ => return None,
        };
        from.bytes.is_empty().then_some(message)
    }
}

struct Writer {
    bytes: [u8; RECORD_BYTES],
    at: usize,
}

impl Writer {
    /// Appends numbers, each with its length in bytes.
    fn put(&mut self, numbers: &[(u64, usize)]) {
        for &(value, bytes) in numbers {
            self.bytes[self.at..self.at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            self.at += bytes;
        }
    }

    fn introduction(&mut self, kind: u64, of: Introduction) {
        self.put(&[(kind, 1), (MAGIC, 8), (of.version.into(), 4), (of.node.into(), 4)]);
        self.put(&[(of.function.into(), 1), (of.weight.into(), 1), (of.barriers.into(), 1)]);
        self.put(&[(of.pool_chunks.into(), 4), (of.gates.into(), 4), (of.regions.into(), 4)]);
        self.put(&[(of.lane.into(), 4), (of.probe_address, 8), (of.probe_value, 8)]);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let (head, rest) = self.bytes.split_at_checked(bytes)?;
        self.bytes = rest;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(head);
        Some(u64::from_le_bytes(word))
    }

    fn introduction(&mut self) -> Option<Introduction> {
        if self.take(8)? != MAGIC {
            return None;
        }
        let version = self.take(4)? as u32;
        if version != VERSION {
            // The rest may have another layout. Only the version matters then: the refusal names
            // it.
            self.bytes = &[];
            return Some(Introduction { version, ..Introduction::default() });
        }
        Some(Introduction {
            version,
            node: self.take(4)? as u32,
            function: self.take(1)? as u8,
            weight: self.take(1)? as u8,
            barriers: self.take(1)? != 0,
            pool_chunks: self.take(4)? as u32,
            gates: self.take(4)? as u32,
            regions: self.take(4)? as u32,
            lane: self.take(4)? as u32,
            probe_address: self.take(8)?,
            probe_value: self.take(8)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Control> {
        let introduction = Introduction {
            version: VERSION,
            node: 1,
            function: 2,
            weight: 3,
            barriers: true,
            pool_chunks: 4,
            gates: 5,
            regions: 6,
            lane: 7,
            probe_address: u64::MAX,
            probe_value: 9,
        };
        vec![
            Control::Hello(introduction),
            Control::Welcome(introduction),
            Control::Refuse(Refused::Crossed, 77),
            Control::Refuse(Refused::Version, 77),
            Control::Refuse(Refused::Full, 77),
            Control::Refuse(Refused::Credentials, 77),
            Control::Kick,
            Control::Ask { index: 1, key: 2 },
            Control::Answer { index: 1, key: 2, length: 3, writable: true },
            Control::WrongKey { index: 65535 },
        ]
    }

    #[test]
    fn messages_survive_their_records() {
        for message in samples() {
            let (bytes, length) = message.to_bytes();
            assert_eq!(Control::from_bytes(&bytes[..length]), Some(message));
            for short in 0..length {
                assert_eq!(Control::from_bytes(&bytes[..short]), None, "cut to {short}");
            }
            assert_eq!(Control::from_bytes(&[&bytes[..length], &[0]].concat()), None, "one more");
        }
    }

    #[test]
    fn another_version_is_named_whatever_follows() {
        let (mut bytes, length) = samples()[0].to_bytes();
        bytes[9] = 200;
        match Control::from_bytes(&bytes[..length + 5]) {
            Some(Control::Hello(peer)) => assert_eq!(peer.version, 200),
            other => panic!("{other:?}"),
        }
    }
}
