//! The private data of connection request and answer, and the reason of a refusal.

use crate::abi::ViAttributes;
use crate::end_point::{DISCRIMINATOR_BYTES, EndPoint, Role};
use bellwire::{RemoteKey, Rights};

/// ```text
///   0      4         5      6             8        9    10     11    12
///   +------+---------+------+-------------+--------+----+------+-----+
///   | VIPL | version | role | reliability | rights | k  | from | to  |
///   +------+---------+------+-------------+--------+----+------+-----+
///   12: transfer bytes (8), key of the directory (24, if k is 1), discriminators from and to
/// ```
/// Little-endian; the fields `from` and `to` are lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    pub role: Role,
    pub reliability: u16,
    /// What the VI lets its peer do.
    pub rights: Rights,
    pub transfer_bytes: u64,
    pub directory: Option<RemoteKey>,
    /// The speaker's discriminator.
    pub from: Vec<u8>,
    /// The listener's discriminator.
    pub to: Vec<u8>,
}

const VERSION: u8 = 2;
const HEAD_BYTES: usize = 20;

impl Greeting {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(*b"VIPL");
        bytes.extend([VERSION, self.role as u8]);
        bytes.extend(self.reliability.to_le_bytes());
        bytes.extend([self.rights.bits(), self.directory.is_some().into()]);
        bytes.extend([self.from.len() as u8, self.to.len() as u8]);
        bytes.extend(self.transfer_bytes.to_le_bytes());
        if let Some(key) = self.directory {
            bytes.extend(key.to_bytes());
        }
        bytes.extend(&self.from);
        bytes.extend(&self.to);
        bytes
    }

    /// `None` if it is no greeting, but a request of another program.
    pub fn parse(bytes: &[u8]) -> Option<Greeting> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        if !head.starts_with(b"VIPL") || head[4] != VERSION || head[9] > 1 {
            return None;
        }
        let role = match head[5] {
            1 => Role::Client,
            2 => Role::Peer,
            _ => return None,
        };
        let (key, rest) = rest.split_at_checked(RemoteKey::BYTES * usize::from(head[9]))?;
        let directory = if key.is_empty() { None } else { Some(RemoteKey::from_bytes(key)?) };
        let (from, to) = rest.split_at_checked(head[10].into())?;
        if from.len() > DISCRIMINATOR_BYTES || to.len() > DISCRIMINATOR_BYTES {
            return None;
        }
        (to.len() == usize::from(head[11])).then_some(Greeting {
            role,
            reliability: u16::from_le_bytes([head[6], head[7]]),
            rights: Rights::from_bits_truncate(head[8]),
            transfer_bytes: u64::from_le_bytes(head[12..20].try_into().ok()?),
            directory,
            from: from.to_vec(),
            to: to.to_vec(),
        })
    }

    /// The end point that it is for.
    pub fn end_point(&self) -> EndPoint {
        match self.role {
            Role::Client => EndPoint::of_server(&self.to),
            Role::Peer => EndPoint::of_peer(&self.to, &self.from),
        }
    }

    /// The attributes of the speaker's VI. Its tag has no meaning here.
    pub fn attributes(&self) -> ViAttributes {
        ViAttributes {
            reliability_level: self.reliability,
            max_transfer_size: self.transfer_bytes,
            qos: std::ptr::null_mut(),
            ptag: std::ptr::null_mut(),
            enable_rdma_write: self.rights.contains(Rights::REMOTE_WRITE).into(),
            enable_rdma_read: self.rights.contains(Rights::REMOTE_READ).into(),
        }
    }
}

/// Why a request is refused. It travels as text, so that other Bellwire programs can read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The program rejected it.
    #[error("rejected")]
    Rejected,
    /// It is no greeting.
    #[error("this is a VIA end point, and the request is none of VIA")]
    Stranger,
    /// The levels of the two VIs differ.
    #[error("reliability levels differ")]
    Reliability,
    /// Too many requests wait for the program.
    #[error("too many requests")]
    TooMany,
    /// No program waits for it yet.
    #[error("nobody waits for it yet")]
    NotYet,
    /// Another function of the node waits for it.
    #[error("ask function {0}")]
    Elsewhere(u8),
}

impl Refusal {
    /// Parses a peer's reason.
    pub fn parse(text: &str) -> Refusal {
        let elsewhere = text.strip_prefix("ask function ").and_then(|number| number.parse().ok());
        let known = [Refusal::Stranger, Refusal::Reliability, Refusal::TooMany, Refusal::NotYet];
        let said = known.into_iter().find(|refusal| refusal.to_string() == text);
        elsewhere.map(Refusal::Elsewhere).or(said).unwrap_or(Refusal::Rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Greetings round-trip. Truncated or malformed ones are refused, and no bytes cause a panic.
    // shows: M-03
    #[test]
    fn greetings_survive_or_are_refused() {
        let key = RemoteKey { node: 9, function: 1, index: 3, key: 77, length: 4096 };
        for directory in [None, Some(key)] {
            let greeting = Greeting {
                role: Role::Peer,
                reliability: 2,
                rights: Rights::REMOTE_WRITE,
                transfer_bytes: 1 << 20,
                directory,
                from: b"client".to_vec(),
                to: vec![7; DISCRIMINATOR_BYTES],
            };
            let bytes = greeting.to_bytes();
            assert!(bytes.len() <= 256, "fits the private data of a request");
            assert_eq!(Greeting::parse(&bytes), Some(greeting));
            for length in 0..bytes.len() {
                assert_eq!(Greeting::parse(&bytes[..length]), None);
            }
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 0xff;
                let _ = Greeting::parse(&changed);
            }
        }
    }

    /// Refusals round-trip. Any other text is a program's refusal, never a redirect.
    // shows: M-03
    #[test]
    fn refusals_survive() {
        for refusal in [
            Refusal::Rejected,
            Refusal::Stranger,
            Refusal::Reliability,
            Refusal::TooMany,
            Refusal::NotYet,
            Refusal::Elsewhere(0),
            Refusal::Elsewhere(255),
        ] {
            assert_eq!(Refusal::parse(&refusal.to_string()), refusal);
        }
        for text in
            ["", "ask function ", "ask function 256", "ask function -1", "ask node 3", "\u{fffd}"]
        {
            assert_eq!(Refusal::parse(text), Refusal::Rejected, "{text:?}");
        }
    }
}
