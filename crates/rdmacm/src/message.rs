//! What two managers say to each other. Numbers are big endian.
//!
//! A look-up is one UDP datagram to the port that a program listens on, and one back:
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 4 | `BWCM` |
//! | 4 | version |
//! | 5 | 1: who listens; 2: I do; 3: nobody |
//! | 6 to 8 | port space |
//! | 8 to 16 | nonce of who asks |
//! | 16 to 18 | where the conversation takes place; 0 in a question |
//!
//! A conversation is a TCP connection of frames:
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 4 | `BWCM` |
//! | 4 | version |
//! | 5 | kind: 1 request, 2 reply, 3 ready, 4 reject, 5 disconnect, 6 disconnected |
//! | 6 to 8 | bytes that follow |
//!
//! A request and a reply are an [`Offer`], drawn at [`Offer::emit`]. A reject is a reason of four
//! bytes, and private data. The others are empty.

use bellwire_ring::canary::planted;

/// What each message begins with.
const MAGIC: [u8; 4] = *b"BWCM";
/// The version of both formats.
pub const VERSION: u8 = 1;
/// Bytes of a look-up.
pub const LOOK_UP_BYTES: usize = 18;
/// Bytes before the body of a frame.
const HEAD_BYTES: usize = 8;
/// Bytes of an offer without private data.
const OFFER_BYTES: usize = 40;
/// Bytes of the longest frame.
pub const FRAME_BYTES: usize = HEAD_BYTES + OFFER_BYTES + PRIVATE_BYTES;
/// The most private data of a program, in bytes: the length has one byte.
pub const PRIVATE_BYTES: usize = 255;

/// A datagram about who listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookUp {
    /// Question or answer.
    pub kind: LookUpKind,
    /// The port space (`RDMA_PS_*`).
    pub space: u16,
    /// The number that the answer repeats.
    pub nonce: u64,
    /// The TCP port of the conversation.
    pub port: u16,
}

/// What a look-up says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookUpKind {
    /// Does anybody listen?
    Who = 1,
    /// This is the port.
    Here = 2,
    /// Nobody does, in this port space and version.
    Nobody = 3,
}

impl LookUp {
    /// Its bytes.
    pub fn emit(&self) -> [u8; LOOK_UP_BYTES] {
        let mut bytes = [0; LOOK_UP_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.kind as u8;
        bytes[6..8].copy_from_slice(&self.space.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.nonce.to_be_bytes());
        bytes[16..].copy_from_slice(&self.port.to_be_bytes());
        bytes
    }

    /// Reads it. `None`: it is not one of this version.
    pub fn parse(bytes: &[u8]) -> Option<LookUp> {
        let longer = bytes.first_chunk().filter(|_| planted("look-up-longer"));
        let bytes: &[u8; LOOK_UP_BYTES] = longer.or(bytes.try_into().ok())?;
        if bytes[..4] != MAGIC || (bytes[4] != VERSION && !planted("look-up-version")) {
            return None;
        }
        let kind = match bytes[5] {
            1 => LookUpKind::Who,
            2 => LookUpKind::Here,
            3 => LookUpKind::Nobody,
            _ => return None,
        };
        Some(LookUp {
            kind,
            space: u16::from_be_bytes([bytes[6], bytes[7]]),
            nonce: u64::from_be_bytes(bytes[8..16].try_into().ok()?),
            port: u16::from_be_bytes([bytes[16], bytes[17]]),
        })
    }
}

/// What one side brings to a connection: its queue pair, and what its program wants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// The queue pair, 24 bits.
    pub queue_pair: u32,
    /// The first packet sequence number that it sends, 24 bits.
    pub psn: u32,
    /// The Q_Key of datagrams.
    pub qkey: u32,
    /// The address of the port.
    pub gid: [u8; 16],
    /// The port that the asking program is bound to.
    pub port: u16,
    /// The port space (`RDMA_PS_*`).
    pub space: u16,
    /// Reads and atomics that this side answers at a time.
    pub responder_resources: u8,
    /// Reads and atomics that this side asks for at a time.
    pub initiator_depth: u8,
    /// Whether there is end-to-end flow control.
    pub flow_control: u8,
    /// How often the peer is to send again without an acknowledgement.
    pub retry_count: u8,
    /// How often the peer is to send again while there is no receive.
    pub rnr_retry_count: u8,
    /// Whether the queue pair has a shared receive queue.
    pub has_shared: u8,
    /// The kind of queue pair (`IBV_QPT_*`).
    pub service: u8,
    /// What the program adds.
    pub data: Vec<u8>,
}

impl Offer {
    /// ```text
    ///  0       4     8      12    28     30      32..39: seven bytes, in the order of the fields
    /// +-------+-----+------+-----+------+-------+---------------------------+--------+------
    /// | queue | psn | qkey | gid | port | space | resources ... kind of pair | length | data
    /// +-------+-----+------+-----+------+-------+---------------------------+--------+------
    ///                                                                       39       40
    /// ```
    fn emit(&self, to: &mut Vec<u8>) {
        for number in [self.queue_pair, self.psn, self.qkey] {
            to.extend(number.to_be_bytes());
        }
        to.extend(self.gid);
        to.extend(self.port.to_be_bytes());
        to.extend(self.space.to_be_bytes());
        to.extend([
            self.responder_resources,
            self.initiator_depth,
            self.flow_control,
            self.retry_count,
            self.rnr_retry_count,
            self.has_shared,
            self.service,
        ]);
        emit_data(&self.data, to);
    }

    fn parse(bytes: &[u8]) -> Option<Offer> {
        let (fixed, data) = bytes.split_at_checked(OFFER_BYTES - 1)?;
        let word = |at: usize| u32::from_be_bytes(fixed[at..at + 4].try_into().expect("4 bytes"));
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let (queue_pair, psn) = (word(0), word(4));
        if (queue_pair >> 24 != 0 || psn >> 24 != 0) && !planted("number-of-25-bits") {
            return None;
        }
        Some(Offer {
            queue_pair,
            psn,
            qkey: word(8),
            gid: fixed[12..28].try_into().expect("16 bytes"),
            port: half(28),
            space: half(30),
            responder_resources: fixed[32],
            initiator_depth: fixed[33],
            flow_control: fixed[34],
            retry_count: fixed[35],
            rnr_retry_count: fixed[36],
            has_shared: fixed[37],
            service: fixed[38],
            data: parse_data(data)?,
        })
    }
}

/// A length of one byte, and that many bytes.
fn emit_data(data: &[u8], to: &mut Vec<u8>) {
    let data = &data[..data.len().min(PRIVATE_BYTES)];
    to.push(data.len() as u8);
    to.extend(data);
}

fn parse_data(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&length, data) = bytes.split_first()?;
    (data.len() == usize::from(length) || planted("data-length")).then(|| data.to_vec())
}

/// A frame of a conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// The active side asks for a connection.
    Request(Offer),
    /// The passive side accepts.
    Reply(Offer),
    /// The active side has connected its queue pair.
    Ready,
    /// No: a reason, and what the program adds.
    Reject(u32, Vec<u8>),
    /// One side ends the connection.
    Disconnect,
    /// The other one has heard it.
    Disconnected,
}

/// Bytes that are no frame of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl Frame {
    /// Adds its bytes.
    pub fn emit(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend(MAGIC);
        to.extend([VERSION, self.kind(), 0, 0]);
        match self {
            Self::Request(offer) | Self::Reply(offer) => offer.emit(to),
            Self::Reject(reason, data) => {
                to.extend(reason.to_be_bytes());
                emit_data(data, to);
            }
            Self::Ready | Self::Disconnect | Self::Disconnected => {}
        }
        let body = (to.len() - begin - HEAD_BYTES) as u16;
        to[begin + 6..begin + HEAD_BYTES].copy_from_slice(&body.to_be_bytes());
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Request(_) => 1,
            Self::Reply(_) => 2,
            Self::Ready => 3,
            Self::Reject(..) => 4,
            Self::Disconnect => 5,
            Self::Disconnected => 6,
        }
    }

    /// Reads the first frame of `bytes`, and says how long it is. `None`: it is not all there yet.
    ///
    /// # Errors
    /// What is there cannot become a frame.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Malformed> {
        let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else { return Ok(None) };
        let is_ours = head[..4] == MAGIC || planted("frame-magic");
        if !is_ours || (head[4] != VERSION && !planted("frame-version")) {
            return Err(Malformed);
        }
        let length = usize::from(u16::from_be_bytes([head[6], head[7]]));
        if HEAD_BYTES + length > FRAME_BYTES && !planted("frame-length") {
            return Err(Malformed);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = match head[5] {
            1 => Self::Request(Offer::parse(body).ok_or(Malformed)?),
            2 => Self::Reply(Offer::parse(body).ok_or(Malformed)?),
            4 => {
                let (reason, data) = body.split_first_chunk().ok_or(Malformed)?;
                Self::Reject(u32::from_be_bytes(*reason), parse_data(data).ok_or(Malformed)?)
            }
            3 if length == 0 => Self::Ready,
            5 if length == 0 => Self::Disconnect,
            6 if length == 0 => Self::Disconnected,
            _ => return Err(Malformed),
        };
        Ok(Some((frame, HEAD_BYTES + length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        Offer {
            queue_pair: 0x12_3456,
            psn: 0xff_fffe,
            qkey: 0x0123_4567,
            gid: std::array::from_fn(|at| at as u8),
            port: 7174,
            space: 0x0106,
            responder_resources: 1,
            initiator_depth: 2,
            flow_control: 3,
            retry_count: 4,
            rnr_retry_count: 5,
            has_shared: 6,
            service: 7,
            data: (0..255).collect(),
        }
    }

    fn frames() -> Vec<Frame> {
        let short = Offer { data: Vec::new(), ..offer() };
        let reject = Frame::Reject(28, vec![9; 148]);
        let empty = [Frame::Ready, Frame::Disconnect, Frame::Disconnected];
        [Frame::Request(offer()), Frame::Reply(short), reject].into_iter().chain(empty).collect()
    }

    /// What is emitted is parsed, also from a stream that has only a part of it so far.
    #[test]
    fn a_frame_comes_back_and_a_part_of_it_waits() {
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.emit(&mut bytes);
            let length = bytes.len();
            assert!(length <= FRAME_BYTES);
            for part in 0..length {
                assert_eq!(Frame::parse(&bytes[..part]), Ok(None));
            }
            bytes.extend(b"more");
            assert_eq!(Frame::parse(&bytes), Ok(Some((frame, length))));
        }
    }

    /// Each field is where the drawing has it.
    #[test]
    fn a_request_is_as_drawn() {
        let mut bytes = Vec::new();
        Frame::Request(Offer { data: vec![0xaa, 0xbb], ..offer() }).emit(&mut bytes);
        let mut drawn = b"BWCM\x01\x01\x00\x2a".to_vec();
        drawn.extend([0, 0x12, 0x34, 0x56, 0, 0xff, 0xff, 0xfe, 1, 0x23, 0x45, 0x67]);
        drawn.extend(0..16);
        drawn.extend([0x1c, 0x06, 0x01, 0x06, 1, 2, 3, 4, 5, 6, 7, 2, 0xaa, 0xbb]);
        assert_eq!(bytes, drawn);
    }

    /// Lies about lengths, numbers of more than 24 bits and other versions are refused.
    #[test]
    fn lies_are_refused() {
        let mut good = Vec::new();
        Frame::Request(Offer { data: vec![1, 2], ..offer() }).emit(&mut good);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for (what, bytes) in [
            ("magic", with(0, b'X')),
            ("version", with(4, 2)),
            ("kind", with(5, 7)),
            ("a body longer than any", with(6, 2)),
            ("a body shorter than its data", with(7, 41)),
            ("data longer than the body", with(47, 3)),
            ("a queue pair of 25 bits", with(8, 1)),
            ("a PSN of 25 bits", with(12, 1)),
            ("a body where none is", with(5, 3)),
            ("a reject of another shape", with(5, 4)),
        ] {
            assert_eq!(Frame::parse(&bytes), Err(Malformed), "{what}");
        }
        assert!(Frame::parse(&good).unwrap().is_some());
    }

    #[test]
    fn a_look_up_comes_back_and_lies_are_refused() {
        let asked = LookUp { kind: LookUpKind::Who, space: 0x111, nonce: 1 << 63 | 5, port: 0 };
        for kind in [LookUpKind::Who, LookUpKind::Here, LookUpKind::Nobody] {
            let it = LookUp { kind, port: 40_000, ..asked };
            assert_eq!(LookUp::parse(&it.emit()), Some(it));
        }
        let good = asked.emit();
        assert_eq!(LookUp::parse(&good[..17]), None);
        assert_eq!(LookUp::parse(&[&good[..], b"x"].concat()), None);
        for (at, byte) in [(0, b'X'), (4, 2), (5, 0), (5, 4)] {
            let mut bytes = good;
            bytes[at] = byte;
            assert_eq!(LookUp::parse(&bytes), None, "byte {at}");
        }
    }
}
