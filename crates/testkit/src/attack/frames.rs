//! Frames that an attacker makes: their check values are right, and what they say is wrong.

use bellwire_protocol::discovery::seek::ANY_NODE;
use bellwire_protocol::reliable::Config;
use bellwire_wire::frame::finish::{RefuseBody, RefuseReason};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::open::{OPEN_BYTES, OpenBody};
use bellwire_wire::frame::seek::SeekBody;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId, check};

/// The highest incarnation that the protocol accepts: later than that of any honest peer.
pub const LATEST: u64 = (1 << 63) - 1;

/// A request for a link in somebody's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Whose name is used.
    pub name: FunctionId,
    /// Who is asked.
    pub victim: FunctionId,
    /// Incarnation of the name.
    pub incarnation: u64,
    /// Opening of that incarnation.
    pub opening: u64,
    /// The token for answers.
    pub token: u64,
}

impl Claim {
    /// A claim with a later incarnation than the true owner of the name can have.
    pub fn latest(node: u32, victim: u32) -> Claim {
        let [name, victim] = [node, victim].map(|node| FunctionId { node, function: 0 });
        Claim { name, victim, incarnation: LATEST, opening: 1 << 40, token: 0x5eed_0000 }
    }

    /// The Open, with the cookie of a Challenge or 0.
    pub fn open(&self, cookie: u64) -> Vec<u8> {
        let config = Config::new(1_400);
        let body = OpenBody {
            version_low: config.versions[0],
            version_high: config.versions[1],
            version: 0,
            demanded: 0,
            features: config.features[0],
            packet_bytes: config.packet_bytes,
            from: self.name,
            to: self.victim,
            incarnation: self.incarnation,
            opening: self.opening,
            token: self.token,
            peer_incarnation: 0,
            window: config.window_frames,
            frame_bytes: 1_400,
        };
        self.frame(FrameKind::Open, cookie, &body.emit())
    }

    /// The Acknowledge that confirms an Accept.
    pub fn confirm(&self, accept: &FrameHeader, accepted: &OpenBody) -> Vec<u8> {
        let mut header = self.header(FrameKind::Acknowledge, accepted.token);
        header.acknowledged = accept.sequence;
        header.credit = [1 << 16; 2];
        sealed(header, &[])
    }

    /// A frame of any kind from the claimed function.
    pub fn frame(&self, kind: FrameKind, token: u64, body: &[u8]) -> Vec<u8> {
        sealed(self.header(kind, token), body)
    }

    fn header(&self, kind: FrameKind, token: u64) -> FrameHeader {
        FrameHeader::new(kind, self.victim.function, self.name.function, token)
    }
}

/// The Refuse that answers an Open, with this reason.
pub fn refusal(open: &[u8], reason: RefuseReason) -> Vec<u8> {
    let header = FrameHeader::parse(open).expect("a frame");
    let open = OpenBody::parse(&open[HEADER_BYTES..][..OPEN_BYTES]).expect("an Open");
    let config = Config::new(1_400);
    let body = RefuseBody {
        reason,
        version_low: config.versions[0],
        version_high: config.versions[1],
        features: config.features[0],
        token: open.token,
    };
    sealed(FrameHeader::new(FrameKind::Refuse, header.from, header.function, 0), &body.emit())
}

/// A Here that says that `node` is at the place that it comes from.
pub fn here(node: u32, nonce: u64) -> Vec<u8> {
    let body = SeekBody { from: node, to: ANY_NODE, frame_bytes: 1_400, nonce };
    sealed(FrameHeader::new(FrameKind::Here, 0, 0, 0), &body.emit())
}

/// A Seek that asks for `node` in the name of another one.
pub fn seek(node: u32, from: u32) -> Vec<u8> {
    let body = SeekBody { from, to: node, frame_bytes: 1_400, nonce: 1 };
    sealed(FrameHeader::new(FrameKind::Seek, 0, 0, 0), &body.emit())
}

/// A frame for no link of the victim. Each is of another kind than the one before.
pub fn senseless(number: u64) -> Vec<u8> {
    let kinds = [
        FrameKind::Data,
        FrameKind::Acknowledge,
        FrameKind::Close,
        FrameKind::Unknown,
        FrameKind::Challenge,
    ];
    let kind = kinds[number as usize % kinds.len()];
    let body: &[u8] = match kind {
        FrameKind::Close => &[1],
        FrameKind::Challenge => &[7; 8],
        _ => &[],
    };
    sealed(FrameHeader::new(kind, 0, 0, number << 16 | 0xffff), body)
}

/// A frame with the right length and check value.
fn sealed(mut header: FrameHeader, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; FRAME_OVERHEAD_BYTES + body.len()];
    header.length = frame.len() as u16;
    header.emit(&mut frame).expect("room for a header");
    frame[HEADER_BYTES..][..body.len()].copy_from_slice(body);
    check::seal(&mut frame).expect("room for the check value");
    frame
}
