//! The endpoint under test, and the frames of its peer.

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{
    Channel, Config, Counters, Endpoint, Event, PathId, PeerId, PlaceCheck, Sink, Verdict,
};
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::check::{CHECK_BYTES, seal};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::record::{PACKET_HEADER_MAX_BYTES, PacketWords};
use bellwire_wire::frame::section::{Section, SectionKind};
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};

/// The endpoint under test, its peer, and the path between them.
pub const OURS: FunctionId = FunctionId { node: 5, function: 2 };
pub const PEER: FunctionId = FunctionId { node: 7, function: 3 };
pub const PATH: PathId = PathId(9);
/// The incarnation of the endpoint, and of its peer.
pub const INCARNATION: u64 = 100;
pub const PEER_INCARNATION: u64 = 200;
/// The peer's token. Its upper half is the first sum of credit that the endpoint counts.
pub const PEER_TOKEN: u64 = 0x0000_1000_0000_0005;
/// The number of the peer's first frame, and its first credit.
pub const FIRST: u32 = 0xffff_fffe;
pub const CREDIT: u32 = 0x1000 + 60_000;

/// A frame that the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub path: PathId,
    pub header: FrameHeader,
    pub body: Vec<u8>,
}

impl Sent {
    /// The body of an Open or Accept.
    pub fn open(&self) -> OpenBody {
        OpenBody::parse(&self.body).unwrap()
    }
}

/// A packet as the user saw it: channel, payload.
pub type Packet = (Channel, Vec<u8>);

/// What the user of the endpoint sees, and what it answers.
pub struct User {
    pub packets: Vec<Packet>,
    pub delivered: Vec<u64>,
    pub verdict: Verdict,
    pub place: PlaceCheck,
}

impl Sink for User {
    fn packet(&mut self, _: PeerId, channel: Channel, _: [u64; 3], payload: &[u8]) -> Verdict {
        if self.verdict == Verdict::Taken {
            assert!(self.packets.len() < 1_000, "packets without end");
            self.packets.push((channel, payload.to_vec()));
        }
        self.verdict
    }

    fn check_place(&mut self, _: u32, _: PathId) -> PlaceCheck {
        self.place
    }

    fn delivered(&mut self, _: PeerId, count: u64) {
        self.delivered.push(count);
    }
}

pub struct Bench {
    pub endpoint: Endpoint,
    pub now_ns: u64,
    pub user: User,
}

/// A link that is up: its number, the token of frames to the endpoint, and the number of the
/// endpoint's first frame. The other numbers are those of the next frame of the peer.
pub struct Up {
    pub peer: PeerId,
    pub token: u64,
    pub first: u32,
    pub sequence: u32,
    pub acknowledged: u32,
    pub credit: [u32; 2],
}

impl Bench {
    pub fn new(config: Config) -> Bench {
        let endpoint = Endpoint::new(config, OURS, INCARNATION, Secret::from_seed(3)).unwrap();
        let (packets, delivered) = (Vec::new(), Vec::new());
        let (verdict, place) = (Verdict::Taken, PlaceCheck::Belongs);
        let user = User { packets, delivered, verdict, place };
        Bench { endpoint, now_ns: 5_000_000_000, user }
    }

    /// Hands a frame to the endpoint.
    pub fn hand_by(&mut self, path: PathId, header: FrameHeader, body: &[u8]) {
        let frame = sealed(header, body);
        self.endpoint.handle_frame(path, &frame, self.now_ns, &mut self.user);
    }

    pub fn hand(&mut self, header: FrameHeader, body: &[u8]) {
        self.hand_by(PATH, header, body);
    }

    /// All frames that the endpoint sends now.
    pub fn sent(&mut self) -> Vec<Sent> {
        let mut buffer = vec![0; 65_535];
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(self.now_ns, &mut buffer) {
            assert!(sent.len() < 1_000, "frames without end");
            let header = FrameHeader::parse(&buffer[..transmit.length]).unwrap();
            assert_eq!(header.length as usize, transmit.length);
            let body = buffer[HEADER_BYTES..transmit.length - CHECK_BYTES].to_vec();
            sent.push(Sent { path: transmit.path, header, body });
        }
        sent
    }

    /// The only frame that the endpoint sends now.
    pub fn sent_one(&mut self) -> Sent {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Waits until the endpoint has something to do; returns what it sends then.
    pub fn wait(&mut self) -> Vec<Sent> {
        let deadline_ns = self.endpoint.next_deadline();
        assert!(deadline_ns > self.now_ns && deadline_ns < u64::MAX, "{deadline_ns}");
        self.now_ns = deadline_ns;
        self.sent()
    }

    pub fn counters(&self) -> Counters {
        self.endpoint.counters()
    }

    pub fn event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// Hands an Open to the endpoint, with the cookie that it demands. Returns the next frame that
    /// the endpoint sends.
    pub fn ask_by(&mut self, path: PathId, open: &OpenBody) -> Option<Sent> {
        let header = header(FrameKind::Open, open.from.function, 0);
        self.hand_by(path, header, &open.emit());
        let challenge = self.sent_one();
        assert_eq!(challenge.header.kind, FrameKind::Challenge);
        let cookie = ChallengeBody::parse(&challenge.body).unwrap().cookie;
        self.hand_by(path, FrameHeader { token: cookie, ..header }, &open.emit());
        let mut sent = self.sent();
        assert!(sent.len() <= 1, "{sent:?}");
        sent.pop()
    }

    /// A link that the endpoint asked for and that the peer has accepted.
    pub fn up(&mut self) -> Up {
        self.up_after(0)
    }

    /// The same, with so much time between the Open and its Accept.
    pub fn up_after(&mut self, round_trip_ns: u64) -> Up {
        let peer = self.endpoint.connect(PEER, PATH, 1 << 40, self.now_ns).unwrap();
        let asked = self.sent_one();
        assert_eq!((asked.header.kind, asked.path), (FrameKind::Open, PATH));
        let (token, first) = (asked.open().token, asked.header.sequence);
        self.now_ns += round_trip_ns;
        let accept = OpenBody { peer_incarnation: INCARNATION, ..open() };
        let header = FrameHeader {
            sequence: FIRST,
            credit: [CREDIT; 2],
            ..header(FrameKind::Accept, PEER.function, token)
        };
        self.hand(header, &accept.emit());
        assert_eq!(self.event(), Some(Event::Up { peer, address: PEER }));
        let confirmed = self.sent_one();
        assert_eq!(confirmed.header.kind, FrameKind::Acknowledge);
        assert_eq!((confirmed.header.token, confirmed.header.acknowledged), (PEER_TOKEN, FIRST));
        Up { peer, token, first, sequence: FIRST, acknowledged: first, credit: [CREDIT; 2] }
    }

    /// Queues a packet of so many bytes.
    pub fn send(&mut self, up: &Up, bytes: usize) {
        let payload = vec![bytes as u8; bytes];
        self.endpoint.send(up.peer, Channel::Request, [1, 2, 3], &[], &payload.as_slice()).unwrap();
    }

    /// Hands an Acknowledge frame of the peer to the endpoint.
    pub fn acknowledge(&mut self, up: &Up) {
        self.hand(up.header(FrameKind::Acknowledge), &[]);
    }

    /// Hands the next Data frame of the peer to the endpoint.
    pub fn data(&mut self, up: &mut Up, body: &[u8]) {
        self.hand(up.header(FrameKind::Data), body);
        up.sequence = up.sequence.wrapping_add(1);
    }
}

impl Up {
    /// The header of the peer's next frame.
    pub fn header(&self, kind: FrameKind) -> FrameHeader {
        FrameHeader {
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            credit: self.credit,
            ..header(kind, PEER.function, self.token)
        }
    }
}

/// A header to the endpoint.
pub fn header(kind: FrameKind, from: u8, token: u64) -> FrameHeader {
    FrameHeader::new(kind, OURS.function, from, token)
}

/// The peer's Open; with the right `peer_incarnation` it is its Accept, too.
pub fn open() -> OpenBody {
    OpenBody {
        version_low: 3,
        version_high: 3,
        version: 3,
        demanded: 0,
        features: 0,
        packet_bytes: 1 << 16,
        from: PEER,
        to: OURS,
        incarnation: PEER_INCARNATION,
        opening: 1,
        token: PEER_TOKEN,
        peer_incarnation: 0,
        window: 64,
        frame_bytes: 1500,
    }
}

/// A whole frame.
pub fn sealed(mut header: FrameHeader, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; FRAME_OVERHEAD_BYTES + body.len()];
    header.length = frame.len() as u16;
    header.emit(&mut frame).unwrap();
    frame[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    seal(&mut frame).unwrap();
    frame
}

/// A section.
pub fn section(kind: SectionKind, flags: u8, bytes: &[u8]) -> Vec<u8> {
    [&Section::head(kind, flags, bytes.len() as u16)[..], bytes].concat()
}

/// The record of a packet.
pub fn record(payload: &[u8]) -> Vec<u8> {
    let mut header = [0; PACKET_HEADER_MAX_BYTES];
    let words = PacketWords([1, 2, 3]).with_payload_bytes(payload.len() as u32);
    let length = words.emit(&mut header);
    [&header[..length], payload].concat()
}

/// The sections of a body: kind, flags, bytes.
pub fn sections(body: &[u8]) -> Vec<(SectionKind, u8, Vec<u8>)> {
    let (mut rest, mut sections) = (body, Vec::new());
    while let Some((section, behind)) = Section::split(rest).unwrap() {
        sections.push((section.kind, section.flags, section.bytes.to_vec()));
        rest = behind;
    }
    sections
}
