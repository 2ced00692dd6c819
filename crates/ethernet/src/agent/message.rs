//! What a program and the agent tell each other: one request, one answer.
//!
//! ```text
//!            0         4         8                    16
//!  request   | "BWAG"  | version | want, function,    | interface's name,   | 32
//!            |         |         | 0, 0, index (32)   | zero-padded         |
//!  answer    | "BWAG"  | version | answer, 0, 0, 0,   | text, UTF-8, to the |
//!            |         |         | number (32)        | end of the record   |
//! ```
//! Numbers are in the machine's byte order: both are on one host. A record of another length, or
//! with another first word, is no message. The first eight bytes are the same in every version.

/// The version of these messages.
pub(crate) const VERSION: u32 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"BWAG");
/// Bytes of a request.
pub(super) const REQUEST_BYTES: usize = 32;
const HEADER_BYTES: usize = 16;
/// Most bytes of an answer.
pub(super) const ANSWER_BYTES: usize = 1024;
const NAME_BYTES: usize = libc::IFNAMSIZ;

/// What a program wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// The names of the interfaces.
    Interfaces,
    /// A packet socket of a function.
    Packet,
}

/// What a program asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub want: Want,
    pub function: u8,
    /// The interface's number, as the program sees it.
    pub index: u32,
    pub interface: String,
}

/// What a record from a program is.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Heard {
    Request(Request),
    OtherVersion,
    Garbage,
}

/// Why the agent gives nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The user is not in the group; the text is its name.
    Group,
    /// It does not serve this interface; the text has those that it serves.
    Interface,
    /// The interface has another number there: the program is in another network namespace.
    Namespace,
    /// The function has an owner.
    InUse,
    /// The user has as many sockets as it may; the number is the limit.
    Limit,
    /// It speaks another version; the number is its version.
    Version,
    /// The kernel refused; the text says what, the number why.
    System,
    /// What programs send cannot be restricted; the text says why.
    Unrestricted,
}

/// What the agent answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The descriptor comes with it.
    Granted,
    /// The interfaces that it serves.
    Interfaces(String),
    /// Why not, with a number and a text.
    Refused(Refused, u32, String),
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The version that a record names, if it is one of ours.
fn version_of(bytes: &[u8]) -> Option<u32> {
    (bytes.len() >= HEADER_BYTES && word(bytes, 0) == MAGIC).then(|| word(bytes, 4))
}

impl Request {
    pub fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[4..8].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[8] = self.want as u8;
        bytes[9] = self.function;
        bytes[12..16].copy_from_slice(&self.index.to_ne_bytes());
        for (to, from) in bytes[16..].iter_mut().zip(self.interface.bytes()).take(NAME_BYTES - 1) {
            *to = from;
        }
        bytes
    }
}

impl Heard {
    pub fn parse(bytes: &[u8]) -> Heard {
        match version_of(bytes) {
            Some(VERSION) if bytes.len() == REQUEST_BYTES => {}
            None | Some(VERSION) => return Heard::Garbage,
            Some(_) => return Heard::OtherVersion,
        }
        let want = match bytes[8] {
            0 => Want::Interfaces,
            1 => Want::Packet,
            _ => return Heard::Garbage,
        };
        let name = bytes[16..].split(|&byte| byte == 0).next().unwrap_or_default();
        let proper = name.len() < NAME_BYTES && bytes[16 + name.len()..].iter().all(|&b| b == 0);
        match std::str::from_utf8(name) {
            Ok(name) if proper && bytes[10..12] == [0, 0] => Heard::Request(Request {
                want,
                function: bytes[9],
                index: word(bytes, 12),
                interface: name.to_owned(),
            }),
            _ => Heard::Garbage,
        }
    }
}

impl Answer {
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, number, text) = match self {
            Answer::Granted => (0, 0, ""),
            Answer::Interfaces(names) => (1, 0, &**names),
            Answer::Refused(why, number, text) => (2 + *why as u8, *number, &**text),
        };
        let mut bytes = Vec::with_capacity(ANSWER_BYTES);
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend(VERSION.to_ne_bytes());
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(number.to_ne_bytes());
        let text = text.chars().scan(HEADER_BYTES, |length, c| {
            *length += c.len_utf8();
            (*length <= ANSWER_BYTES).then_some(c)
        });
        let text: String = text.collect();
        bytes.extend(text.bytes());
        bytes
    }

    /// What an agent said; `None` if it is no answer.
    pub fn parse(bytes: &[u8]) -> Option<Answer> {
        let version = version_of(bytes)?;
        if version != VERSION {
            return Some(Answer::Refused(Refused::Version, version, String::new()));
        }
        let text = std::str::from_utf8(&bytes[HEADER_BYTES..]).ok()?.to_owned();
        let refused = |why| Some(Answer::Refused(why, word(bytes, 12), text.clone()));
        match bytes[8] {
            0 => Some(Answer::Granted),
            1 => Some(Answer::Interfaces(text)),
            2 => refused(Refused::Group),
            3 => refused(Refused::Interface),
            4 => refused(Refused::Namespace),
            5 => refused(Refused::InUse),
            6 => refused(Refused::Limit),
            7 => refused(Refused::Version),
            8 => refused(Refused::System),
            9 => refused(Refused::Unrestricted),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request { want: Want::Packet, function: 7, index: 0x0102_0304, interface: "eth0".into() }
    }

    /// Requests survive their records, and every other record is told apart.
    #[test]
    fn requests_survive_their_records() {
        let longest = "fifteen-letters".to_owned();
        for request in [request(), Request { interface: longest, ..request() }] {
            assert_eq!(Heard::parse(&request.to_bytes()), Heard::Request(request));
        }
        let bytes = request().to_bytes();
        for length in 0..REQUEST_BYTES {
            assert_eq!(Heard::parse(&bytes[..length]), Heard::Garbage, "{length} bytes");
        }
        assert_eq!(Heard::parse(&[&bytes[..], &[0]].concat()), Heard::Garbage);
        for (at, value) in [(0, 9), (8, 9), (10, 1), (11, 1), (30, 1), (31, 1), (16, 0xff)] {
            let mut bad = bytes;
            bad[at] = value;
            assert_eq!(Heard::parse(&bad), Heard::Garbage, "byte {at}");
        }
        let mut other = bytes;
        other[4] += 1;
        assert_eq!(Heard::parse(&other), Heard::OtherVersion);
        assert_eq!(Heard::parse(&[&other[..], &[0]].concat()), Heard::OtherVersion);
    }

    /// Answers survive their records. A text that is too long is cut between characters.
    #[test]
    fn answers_survive_their_records() {
        let whys = [
            Refused::Group,
            Refused::Interface,
            Refused::Namespace,
            Refused::InUse,
            Refused::Limit,
            Refused::Version,
            Refused::System,
            Refused::Unrestricted,
        ];
        let refused = whys.map(|why| Answer::Refused(why, 77, "why".into()));
        let others = [Answer::Granted, Answer::Interfaces("eth0 eth1".into())];
        for answer in refused.into_iter().chain(others) {
            let bytes = answer.to_bytes();
            assert_eq!(Answer::parse(&bytes), Some(answer));
            assert_eq!(Answer::parse(&bytes[..HEADER_BYTES - 1]), None);
        }
        let long = Answer::Interfaces("ä".repeat(ANSWER_BYTES)).to_bytes();
        assert_eq!(long.len(), ANSWER_BYTES);
        assert_eq!(Answer::parse(&long), Some(Answer::Interfaces("ä".repeat(504))));
        let mut other = Answer::Granted.to_bytes();
        other[4] += 1;
        let theirs = Answer::Refused(Refused::Version, VERSION + 1, String::new());
        assert_eq!(Answer::parse(&other), Some(theirs));
        other[0] ^= 1;
        assert_eq!(Answer::parse(&other), None);
        let mut unknown = Answer::Granted.to_bytes();
        unknown[8] = 10;
        assert_eq!(Answer::parse(&unknown), None);
        unknown.extend([0xff, 0xff]);
        assert_eq!(Answer::parse(&unknown), None);
    }
}
