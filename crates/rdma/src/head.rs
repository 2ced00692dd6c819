//! The head of each packet between two adapters.

use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

/// The version of all that adapters tell each other: heads, lists, and what follows a head. It is
/// raised with each change of these, from 1 to 15 and then again. Adapters without it had 0.
pub(crate) const VERSION: u8 = 1;

/// What a packet is. The upper half of the byte is the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Opcode {
    /// A whole message; its bytes follow the head.
    Send = VERSION << 4 | 1,
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
    /// Short messages, the first of which has number `psn`; their records follow the head.
    List,
}

impl Opcode {
    #[inline]
    fn parse(byte: u8) -> Option<Opcode> {
        use Opcode::*;
        const OWN: u8 = VERSION << 4;
        let number = byte ^ OWN;
        Some(match number {
            1 => Send,
            2 => Offer,
            3 => WriteImmediate,
            4 => Datagram,
            5 => Ack,
            6 => Nak,
            7 => Resolve,
            8 => Resolved,
            9 => Fatal,
            10 => Probe,
            11 => Leave,
            12 => List,
            16.. if planted("any-version") => return Opcode::parse(OWN | (byte & 0xf)),
            _ => return planted("opcode-unknown").then_some(Send),
        })
    }
}

/// [`Opcode::Leave`] in every version: it wants no answer.
pub(crate) const NO_ANSWER: u8 = 11;

/// The version of a packet of another build, which is no packet here, and the number of its opcode.
#[cold]
pub(crate) fn other_version(packet: View<'_>) -> Option<(u8, u8)> {
    let mut byte = [0];
    packet.part(0, 1)?.read(0, &mut byte);
    let version = byte[0] >> 4;
    // Without a version a byte counted up to 12.
    (version != VERSION && byte != [0]).then_some((version, byte[0] & 0xf))
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
    /// The sender asks for an acknowledgement soon: its program waits for a completion.
    pub(crate) const ASKS: u8 = 32;
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

/// The head of a packet, little-endian. A message without an immediate value or a key has the first
/// 16 bytes only, so that head and payload share a line of the lane; see [`Head::is_short`].
///
/// The upper half of the opcode is [`VERSION`].
///
/// ```text
///  0        1       2        5          8     12
///  opcode | flags | to QPN | from QPN | psn | acked
///  16     20         21     24
///  word | syndrome | zero | extra (u64)  | payload ...
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) opcode: Opcode,
    pub(crate) flags: u8,
    pub(crate) syndrome: Option<Syndrome>,
    /// The queue pair that the packet is for; 24 bits.
    pub(crate) to: u32,
    /// The sender's queue pair; 24 bits.
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
    /// Bytes of the longest head.
    pub(crate) const BYTES: usize = 32;
    /// Bytes of a short head.
    pub(crate) const SHORT_BYTES: usize = 16;

    pub(crate) fn new(opcode: Opcode, to: u32, from: u32) -> Head {
        let (flags, psn, acked, word, extra) = (0, 0, 0, 0, 0);
        Head { opcode, flags, syndrome: None, to, from, psn, acked, word, extra }
    }

    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether a head of this kind ends after [`Head::acked`].
    #[inline(always)]
    fn is_short(opcode: Opcode, flags: u8) -> bool {
        matches!(opcode, Opcode::Send | Opcode::List)
            && flags & (flag::IMMEDIATE | flag::INVALIDATE) == 0
    }

    /// The first 16 bytes: all of a short head.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 2] {
        const QPN: u64 = 0xff_ffff;
        let first = self.opcode as u64
            | u64::from(self.flags) << 8
            | (u64::from(self.to) & QPN) << 16
            | (u64::from(self.from) & QPN) << 40;
        [first, u64::from(self.psn) | u64::from(self.acked) << 32]
    }

    /// The bytes behind them; `None`: the head is short.
    #[inline(always)]
    pub(crate) fn tail(&self) -> Option<[u8; Self::BYTES - Self::SHORT_BYTES]> {
        if Self::is_short(self.opcode, self.flags) {
            return None;
        }
        let syndrome = self.syndrome.map_or(0, Syndrome::emit);
        let third = u64::from(self.word) | u64::from(syndrome) << 32;
        let mut bytes = [0; Self::BYTES - Self::SHORT_BYTES];
        bytes[..8].copy_from_slice(&third.to_le_bytes());
        bytes[8..].copy_from_slice(&self.extra.to_le_bytes());
        Some(bytes)
    }

    /// Writes the head to the front of `bytes`. Returns its length.
    pub(crate) fn emit(&self, bytes: &mut [u8; Self::BYTES]) -> usize {
        let [first, second] = self.words();
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..16].copy_from_slice(&second.to_le_bytes());
        let Some(tail) = self.tail() else { return Self::SHORT_BYTES };
        bytes[Self::SHORT_BYTES..].copy_from_slice(&tail);
        Self::BYTES
    }

    /// The head of a packet, and the payload behind it. `None`: not a packet.
    #[inline(always)]
    pub(crate) fn split<'v>(packet: View<'v>) -> Option<(Head, View<'v>)> {
        const QPN: u32 = 0xff_ffff;
        let word = |at: usize| {
            let mut word = [0; 8];
            match packet.part(at, 8) {
                Some(part) => part.read(0, &mut word),
                // The planted fault takes what is missing as zeroes.
                None if planted("short-packet") => {
                    let at = at.min(packet.len());
                    let there = (packet.len() - at).min(8);
                    packet.read(at, &mut word[..there]);
                }
                None => return None,
            }
            Some(u64::from_le_bytes(word))
        };
        let (first, second) = (word(0)?, word(8)?);
        let (opcode, flags) = (Opcode::parse(first as u8)?, (first >> 8) as u8);
        let mut head = Head {
            opcode,
            flags,
            syndrome: None,
            to: (first >> 16) as u32 & QPN,
            from: (first >> 40) as u32,
            psn: second as u32,
            acked: (second >> 32) as u32,
            word: 0,
            extra: 0,
        };
        let length = if Self::is_short(opcode, flags) {
            Self::SHORT_BYTES
        } else {
            let third = word(16)?;
            head.word = third as u32;
            head.syndrome = Syndrome::parse((third >> 32) as u8);
            head.extra = word(24)?;
            Self::BYTES
        };
        let (_, payload) = packet.split_at(length.min(packet.len()));
        Some((head, payload))
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
        let parse =
            |bytes: &[u8]| Head::split(View::of(bytes)).map(|(head, rest)| (head, rest.len()));
        let mut bytes = [0; Head::BYTES];
        for code in 0..32 {
            head.syndrome = Some(Syndrome::NotReady(code));
            assert_eq!(head.emit(&mut bytes), Head::BYTES);
            assert_eq!(parse(&bytes), Some((head, 0)));
        }
        assert_eq!(parse(&bytes[..Head::BYTES - 1]), None);
        let own = VERSION << 4;
        for opcode in [0, 1, own, own | 13, own ^ 0x11, 0xf1] {
            bytes[0] = opcode;
            assert_eq!(parse(&bytes), None);
        }
        for (byte, version) in [
            (0, None),
            (own, None),
            (own | 13, None),
            (1, Some((0, 1))),
            (0xfb, Some((15, NO_ANSWER))),
        ] {
            assert_eq!(other_version(View::of(&[byte])), version);
        }
        assert_eq!(other_version(View::of(&[])), None);
        assert_eq!(Opcode::Leave as u8 & 0xf, NO_ANSWER);
        let mut short = Head::new(Opcode::Send, 0xff_fffe, 0x12_3456);
        (short.flags, short.psn, short.acked) = (flag::ACKS | flag::SOLICITED, 1 << 31, u32::MAX);
        assert_eq!(short.emit(&mut bytes), Head::SHORT_BYTES);
        assert_eq!(parse(&bytes), Some((short, Head::BYTES - Head::SHORT_BYTES)));
        assert_eq!(parse(&bytes[..Head::SHORT_BYTES]), Some((short, 0)));
        assert_eq!(parse(&bytes[..Head::SHORT_BYTES - 1]), None);
        let written = Written { key: 0x1234_5678, address: 1 << 63 | 5 };
        assert_eq!(Written::parse(&written.emit()), Some(written));
        assert_eq!(Written::parse(&written.emit()[1..]), None);
    }
}
