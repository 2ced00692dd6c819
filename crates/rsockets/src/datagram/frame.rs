//! What two sockets of datagrams say to each other.
//!
//! Two sockets find each other by datagrams of UDP, between the addresses that their programs know.
//! An [`Ask`] wants to know the way to the receiver's queue pair, and carries a datagram of the
//! program. A [`Hello`] answers. From then on datagrams go from queue pair to queue pair. There
//! each begins with a [`Seal`] that its receiver has given to the address of the sender: who does
//! not get the mail of an address cannot send in its name.
//!
//! Numbers are big endian.

use crate::canary::planted;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::{Ipv4Addr, SocketAddrV4};

const MAGIC: [u8; 4] = *b"BWRD";
const VERSION: u8 = 1;
const ASK: u8 = 1;
const HELLO: u8 = 2;

/// The question for the way to a socket.
///
/// ```text
/// 0      4         5     6        8       16            44
/// +------+---------+-----+--------+-------+------+------+
/// | BWRD | version |  1  | length | nonce | data | zero |
/// +------+---------+-----+--------+-------+------+------+
/// ```
///
/// `length` is that of the data, and 65,535 without any. A question is not shorter than its answer,
/// so nobody can be flooded through a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// The answer has it too.
    pub nonce: u64,
    /// A datagram of the program.
    pub data: Option<&'a [u8]>,
}

impl<'a> Ask<'a> {
    /// Bytes before the data.
    pub const BYTES: usize = 16;
    const NO_DATA: u16 = u16::MAX;

    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let length = self.data.map_or(Ask::NO_DATA, |data| data.len() as u16);
        let data = self.data.unwrap_or_default();
        let mut bytes = Vec::with_capacity(Hello::BYTES.max(Ask::BYTES + data.len()));
        bytes.extend(MAGIC);
        bytes.extend([VERSION, ASK]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.nonce.to_be_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().max(Hello::BYTES), 0);
        bytes
    }

    /// Reads it. `None`: it is none of this version.
    pub fn parse(bytes: &'a [u8]) -> Option<Ask<'a>> {
        let (head, data) = bytes.split_first_chunk::<{ Ask::BYTES }>()?;
        if head[..4] != MAGIC || head[4..6] != [VERSION, ASK] {
            return None;
        }
        let nonce = u64::from_be_bytes(*head.last_chunk()?);
        let data = match u16::from_be_bytes([head[6], head[7]]) {
            Ask::NO_DATA => None,
            length => Some(data.get(..length.into())?),
        };
        let length = Ask::BYTES + data.map_or(0, <[u8]>::len);
        (bytes.len() == length.max(Hello::BYTES)).then_some(Ask { nonce, data })
    }
}

/// The way to a socket.
///
/// ```text
/// 0      4         5     6      8       16     32     36           40     44
/// +------+---------+-----+------+-------+------+------+------------+------+
/// | BWRD | version |  2  | zero | nonce | seal | host | queue pair | Q_Key|
/// +------+---------+-----+------+-------+------+------+------------+------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// That of the question.
    pub nonce: u64,
    /// What who asked puts before each datagram.
    pub seal: Seal,
    /// The device of the socket, and its queue pair there.
    pub host: Ipv4Addr,
    /// 24 bits.
    pub queue_pair: u32,
    /// The queue pair's Q_Key.
    pub key: u32,
}

impl Hello {
    /// Its length in bytes.
    pub const BYTES: usize = 44;

    /// Its bytes.
    pub fn emit(&self) -> [u8; Hello::BYTES] {
        let mut bytes = [0; Hello::BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (VERSION, HELLO);
        bytes[8..16].copy_from_slice(&self.nonce.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.seal.emit());
        bytes[32..36].copy_from_slice(&self.host.octets());
        bytes[36..40].copy_from_slice(&self.queue_pair.to_be_bytes());
        bytes[40..].copy_from_slice(&self.key.to_be_bytes());
        bytes
    }

    /// Reads it. `None`: it is none of this version, or out of range.
    pub fn parse(bytes: &[u8]) -> Option<Hello> {
        let bytes: &[u8; Hello::BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let hello = Hello {
            nonce: u64::from_be_bytes(bytes[8..16].try_into().ok()?),
            seal: Seal::parse(bytes[16..32].try_into().ok()?)?,
            host: Ipv4Addr::from(word(32)),
            queue_pair: word(36),
            key: word(40),
        };
        let good = bytes[..4] == MAGIC && bytes[4..8] == [VERSION, HELLO, 0, 0];
        (good && hello.queue_pair < 1 << 24).then_some(hello)
    }
}

/// The head of a datagram between queue pairs: the sender's address, and what proves it.
///
/// ```text
/// 0       8         12     14        15     16
/// +-------+---------+------+---------+------+
/// | token | address | port | version | zero |
/// +-------+---------+------+---------+------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// From the receiver, which had it from [`Secret::seal`].
    pub token: u64,
    /// The address of the sender, as the receiver sees it.
    pub from: SocketAddrV4,
}

impl Seal {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// Its bytes.
    pub fn emit(&self) -> [u8; Seal::BYTES] {
        let mut bytes = [0; Seal::BYTES];
        bytes[..8].copy_from_slice(&self.token.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.from.ip().octets());
        bytes[12..14].copy_from_slice(&self.from.port().to_be_bytes());
        bytes[14] = VERSION;
        bytes
    }

    /// Reads it. `None`: it is none of this version.
    pub fn parse(bytes: &[u8; Seal::BYTES]) -> Option<Seal> {
        let token = u64::from_be_bytes(*bytes.first_chunk()?);
        let host = Ipv4Addr::new(bytes[8], bytes[9], bytes[10], bytes[11]);
        let from = SocketAddrV4::new(host, u16::from_be_bytes([bytes[12], bytes[13]]));
        (bytes[14..] == [VERSION, 0]).then_some(Seal { token, from })
    }
}

/// What a socket knows alone. Its words to an address are computed from this, so that it need not
/// keep them.
pub struct Secret {
    key: [u8; 16],
}

impl Secret {
    /// A new one, at random.
    pub fn new() -> std::io::Result<Secret> {
        let mut key = [0; 16];
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
        Ok(Secret { key })
    }

    fn word(&self, purpose: u8, address: SocketAddrV4) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        let [a, b, c, d] = address.ip().octets();
        let [high, low] = address.port().to_be_bytes();
        hasher.write(&[purpose, a, b, c, d, high, low]);
        hasher.finish()
    }

    /// What a question to this address has.
    pub fn nonce(&self, to: SocketAddrV4) -> u64 {
        self.word(0, to)
    }

    /// Whether an answer from this address is one to a question.
    pub fn has_asked(&self, to: SocketAddrV4, nonce: u64) -> bool {
        nonce == self.nonce(to) || planted("nonce-unchecked")
    }

    /// What this address is given to send with.
    pub fn seal(&self, from: SocketAddrV4) -> Seal {
        Seal { token: self.word(1, from), from }
    }

    /// Whether this seal is of this socket.
    pub fn has_given(&self, seal: &Seal) -> bool {
        *seal == self.seal(seal.from) || planted("token-unchecked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 0x1234)
    }

    /// What is written is read again, and other bytes are refused.
    #[test]
    fn formats_are_read_as_written() {
        for data in [None, Some(&b""[..]), Some(b"abc"), Some(&[7; 2000])] {
            let ask = Ask { nonce: 7, data };
            let bytes = ask.emit();
            assert_eq!(Ask::parse(&bytes), Some(ask));
            for at in 0..7 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0x40;
                assert_eq!(Ask::parse(&bytes), None, "byte {at}");
            }
            for length in 0..bytes.len() {
                assert_eq!(Ask::parse(&bytes[..length]), None, "{length} bytes");
            }
            assert_eq!(Ask::parse(&[&bytes[..], b"x"].concat()), None);
        }
        let seal = Seal { token: 1 << 63 | 5, from: address() };
        assert_eq!(Seal::parse(&seal.emit()), Some(seal));
        let (host, queue_pair, key) = (Ipv4Addr::new(10, 9, 8, 7), 0xff_fffe, 9);
        let hello = Hello { nonce: 8, seal, host, queue_pair, key };
        let bytes = hello.emit();
        assert_eq!(Hello::parse(&bytes), Some(hello));
        // The seal's version and zero, the highest byte of the number, and the frame's own head.
        for at in [0, 1, 2, 3, 4, 5, 6, 7, 30, 31, 36] {
            let mut bytes = bytes;
            bytes[at] ^= 0x40;
            assert_eq!(Hello::parse(&bytes), None, "byte {at}");
        }
        assert_eq!(Hello::parse(&bytes[..43]), None);
    }

    /// A seal counts for the address and the socket that it was made for, and a nonce as well.
    #[test]
    fn words_count_for_one_address_and_one_socket() {
        let (own, other) = (Secret::new().unwrap(), Secret::new().unwrap());
        let seal = own.seal(address());
        assert!(own.has_given(&seal) && !other.has_given(&seal));
        let elsewhere = SocketAddrV4::new(*address().ip(), 0x1235);
        assert!(!own.has_given(&Seal { from: elsewhere, ..seal }));
        let nonce = own.nonce(address());
        assert!(own.has_asked(address(), nonce) && !own.has_asked(elsewhere, nonce));
        assert!(!other.has_asked(address(), nonce));
        assert_ne!(nonce, seal.token, "a question tells no token");
    }
}
