//! The head of each packet between two adapters.

use bellwire_ring::canary::planted;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Opcode {
    /// A whole message; its bytes follow the head.
    Send = 1,
    /// A message that the receiver fetches; the keys of its parts follow the head.
    Offer,
    /// The immediate value of an RDMA write whose bytes are in place; a [`Written`] follows.
    WriteImmediate,
    /// A datagram; its bytes follow the head.
    Datagram,
    /// All messages before `acked` are in their receives.
    Ack,
    /// The message `psn` was not taken; `syndrome` says why.
    Nak,
    /// Asks for the memory of an rkey.
    Resolve,
    /// The answer to it.
    Resolved,
    /// The sender's queue pair failed, and so must its peer.
    Fatal,
    /// Asks for an [`Opcode::Ack`].
    Probe,
    /// The sender's queue pair ends in order; nothing is wrong.
    Leave,
}

impl Opcode {
    fn parse(byte: u8) -> Option<Opcode> {
        use Opcode::*;
        let all = [
            Send,
            Offer,
            WriteImmediate,
            Datagram,
            Ack,
            Nak,
            Resolve,
            Resolved,
            Fatal,
            Probe,
            Leave,
        ];
        let known = all.into_iter().find(|&opcode| opcode as u8 == byte);
        known.or(planted("opcode-unknown").then_some(Send))
    }
}

/// Bits of [`Head::flags`].
pub(crate) mod flag {
    /// `word` is an immediate value.
    pub(crate) const IMMEDIATE: u8 = 1;
    /// The receiver's event is asked for.
    pub(crate) const SOLICITED: u8 = 2;
    /// `word` is a key that the receiver invalidates.
    pub(crate) const INVALIDATE: u8 = 4;
    /// `acked` acknowledges messages of the other direction.
    pub(crate) const ACKS: u8 = 8;
    /// The sender waits for a receive without limit, so the receiver may keep the message.
    pub(crate) const PATIENT: u8 = 16;
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Syndrome {
    /// No receive is posted. The sender waits as long as this RNR timer code says.
    NotReady(u8),
    /// The queue pair does not receive yet, or does not exist.
    NoQueuePair,
    /// An earlier message is missing: `acked` is the expected one.
    Sequence,
    /// The message is longer than its receive, or not allowed.
    InvalidRequest,
    /// The receiver's own buffer could not be used.
    Operation,
    /// The key, the bounds or the rights are wrong.
    Access,
}

impl Syndrome {
    fn emit(self) -> u8 {
        match self {
            Syndrome::NotReady(code) => 0x20 | (code & 0x1f),
            Syndrome::NoQueuePair => 1,
            Syndrome::Sequence => 2,
            Syndrome::InvalidRequest => 3,
            Syndrome::Operation => 4,
            Syndrome::Access => 5,
        }
    }

    /// `None` also for 0, which says that nothing is wrong.
    fn parse(byte: u8) -> Option<Syndrome> {
        Some(match byte {
            0x20..=0x3f => Syndrome::NotReady(byte & 0x1f),
            1 => Syndrome::NoQueuePair,
            2 => Syndrome::Sequence,
            3 => Syndrome::InvalidRequest,
            4 => Syndrome::Operation,
            5 => Syndrome::Access,
            _ => return None,
        })
    }
}

/// The head of a packet, little-endian:
///
/// ```text
///  0        1       2          3      4        8
///  opcode | flags | syndrome | zero | to QPN | from QPN
///  12     16      20     24             32
///  psn  | acked | word | extra (u64)  | payload ...
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) opcode: Opcode,
    pub(crate) flags: u8,
    pub(crate) syndrome: Option<Syndrome>,
    /// The queue pair that the packet is for.
    pub(crate) to: u32,
    /// The sender's queue pair.
    pub(crate) from: u32,
    /// The number of a message of a connection; they are consecutive.
    pub(crate) psn: u32,
    /// The first message of the other direction that is not in its receive yet. In a datagram, the
    /// immediate value.
    pub(crate) acked: u32,
    /// An immediate value, or a key. In a datagram, the Q_Key.
    pub(crate) word: u32,
    /// A length or an address, by opcode.
    pub(crate) extra: u64,
}

impl Head {
    /// Bytes.
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn new(opcode: Opcode, to: u32, from: u32) -> Head {
        let (flags, psn, acked, word, extra) = (0, 0, 0, 0, 0);
        Head { opcode, flags, syndrome: None, to, from, psn, acked, word, extra }
    }

    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn emit(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.opcode as u8;
        bytes[1] = self.flags;
        bytes[2] = self.syndrome.map_or(0, Syndrome::emit);
        let words = [self.to, self.from, self.psn, self.acked, self.word];
        for (place, word) in bytes[4..24].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..].copy_from_slice(&self.extra.to_le_bytes());
        bytes
    }

    /// `None`: not the head of a packet.
    #[inline]
    pub(crate) fn parse(bytes: &[u8; Self::BYTES]) -> Option<Head> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Head {
            opcode: Opcode::parse(bytes[0])?,
            flags: bytes[1],
            syndrome: Syndrome::parse(bytes[2]),
            to: word(4),
            from: word(8),
            psn: word(12),
            acked: word(16),
            word: word(20),
            extra: u64::from(word(24)) | u64::from(word(28)) << 32,
        })
    }
}

/// Where the bytes of an RDMA write with immediate value are. [`Head::extra`] is their length.
///
/// ```text
///  0     4
///  key | address (u64)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    pub(crate) key: u32,
    pub(crate) address: u64,
}

impl Written {
    /// Bytes.
    pub(crate) const BYTES: usize = 12;

    pub(crate) fn emit(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[4..].copy_from_slice(&self.address.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Written> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (key, address) = bytes.split_first_chunk()?;
        let address = u64::from_le_bytes(address.try_into().ok()?);
        Some(Written { key: u32::from_le_bytes(*key), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head survives its bytes, and bytes that are no head are refused.
    #[test]
    fn heads_survive_their_bytes() {
        let mut head = Head::new(Opcode::Nak, 0x12_3456, 7);
        head.flags = flag::ACKS | flag::IMMEDIATE;
        head.psn = u32::MAX;
        head.acked = 3;
        head.word = 0xdead_beef;
        head.extra = u64::MAX - 1;
        for code in 0..32 {
            head.syndrome = Some(Syndrome::NotReady(code));
            assert_eq!(Head::parse(&head.emit()), Some(head));
        }
        let mut bytes = head.emit();
        bytes[0] = 0;
        assert_eq!(Head::parse(&bytes), None);
        bytes[0] = 12;
        assert_eq!(Head::parse(&bytes), None);
        let written = Written { key: 0x1234_5678, address: 1 << 63 | 5 };
        assert_eq!(Written::parse(&written.emit()), Some(written));
        assert_eq!(Written::parse(&written.emit()[1..]), None);
    }
}
