//! An adversary: it tries to end links, keep peers apart, pass for a peer, amplify traffic through
//! others, or fill tables.
//!
//! **Off the path** it sends any frame from any address, and reads only what is sent to its own
//! addresses. It must achieve nothing: the world is checked as if it were absent, and it goes on
//! until the world ends.
//!
//! **On the path** it also reads every frame, delays, drops and repeats it, and forwards it from
//! another address. It makes up or alters every kind of frame except those with packets, which
//! without keys cannot be told from the peer's. With keys it alters all of them. It may end links.
//! It may not pass for a peer at
//! another address, make others send to strangers, or fill tables. When it stops, everything must
//! go on.

use std::collections::BTreeMap;

use bellwire_protocol::discovery::seek::{self, ANY_NODE, SeekFrame};
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::check::{CHECK_BYTES, seal};
use bellwire_wire::frame::finish::{CloseReason, RefuseBody, RefuseReason};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::keyed::KEYED;
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::seek::SeekBody;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};

use crate::chance::Chance;
use crate::scenario::{Attack, Scenario};

/// Addresses of the adversary, where it receives.
pub const OWN_HOSTS: usize = 2;
/// Nodes from here on are made-up names.
pub const MADE_UP: u32 = 1 << 30;
/// Most handshakes at a time.
const HANDSHAKES: usize = 48;
/// Most recorded frames for reuse.
const SEEN: usize = 64;
/// Longest frames that may go to a stranger's address where a peer seems to be: one at a time, at
/// growing intervals.
const TRIALS: u64 = 24;
/// Frames of one flood.
const FLOOD: u64 = 96;

/// A frame that the adversary sends.
pub struct Forged {
    /// The claimed source address.
    pub from: usize,
    /// The destination function.
    pub to: usize,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// What happens to a frame that the adversary has seen.
pub enum Fate {
    /// It goes on, possibly altered.
    Passes,
    /// It is dropped or delayed.
    Stays,
}

/// A link that the adversary asks for.
struct Handshake {
    from: usize,
    to: usize,
    open: OpenBody,
}

/// The adversary of one world.
pub struct Adversary {
    attack: Attack,
    chance: Chance,
    functions: Vec<FunctionId>,
    /// The partners of each function, by index.
    partners: Vec<Vec<usize>>,
    /// Only sends unasked answers until all partners have met.
    pub is_waiting: bool,
    /// When it acts next, in ns.
    pub next_ns: u64,
    pause_ns: u64,
    handshakes: Vec<Handshake>,
    seen: Vec<(usize, usize, Vec<u8>)>,
    late: Vec<(u64, Forged)>,
    /// The last unused address that it sent from.
    stranger: usize,
    /// Bytes from and to each unused address.
    accounts: BTreeMap<usize, [u64; 2]>,
    longest: u64,
    made_up: u32,
}

impl Adversary {
    /// The adversary of a scenario, if it has one.
    pub fn new(scenario: &Scenario) -> Option<Self> {
        let attack = scenario.attack?;
        let mut chance = Chance::new(scenario.seed ^ 0x00ad_5e25);
        let mut partners = vec![Vec::new(); scenario.functions.len()];
        for &(first, second) in &scenario.pairs {
            partners[first].push(second);
            partners[second].push(first);
        }
        let longest = scenario.functions.iter().map(|(_, config)| config.frame_bytes).max();
        Some(Adversary {
            attack,
            functions: scenario.functions.iter().map(|(address, _)| *address).collect(),
            // A chosen number belongs to the first node that uses it, so the others begin.
            is_waiting: scenario.seeks(),
            next_ns: 1,
            partners,
            pause_ns: chance.pick(&[3_000, 20_000, 200_000]),
            handshakes: Vec::new(),
            seen: Vec::new(),
            late: Vec::new(),
            stranger: 0,
            accounts: BTreeMap::new(),
            longest: longest.unwrap_or(0) as u64,
            made_up: MADE_UP,
            chance,
        })
    }

    /// All partners have met.
    pub fn all_met(&mut self) {
        self.is_waiting = false;
    }

    /// The faults stop. An adversary on the path stops, too; one off the path goes on, 40 times
    /// slower, so that the world can end.
    pub fn calm_down(&mut self) {
        match self.attack {
            Attack::OnPath => self.next_ns = u64::MAX,
            Attack::OffPath | Attack::OffPathSeeking => self.pause_ns *= 40,
        }
    }

    /// The frames that it sends now.
    pub fn act(&mut self, now_ns: u64) -> Vec<Forged> {
        self.next_ns = now_ns + 1 + self.chance.below(2 * self.pause_ns);
        let mut out: Vec<Forged> =
            self.late.extract_if(.., |(at_ns, _)| *at_ns <= now_ns).map(|(_, late)| late).collect();
        let to = self.chance.below(self.functions.len() as u64) as usize;
        let what = if self.is_waiting { 12 } else { self.chance.below(24) };
        match what {
            0..5 => out.push(self.open_as_peer(to)),
            5..7 => out.push(self.open_as_nobody(to)),
            7 => out.extend((0..FLOOD).map(|_| self.open_from_stranger(to))),
            8..12 => out.push(self.guess(to)),
            12..14 => out.push(self.tell(to)),
            14 => out.push(self.ask(to)),
            15 => out.extend((0..FLOOD).map(|_| self.noise(to))),
            16..20 if !self.seen.is_empty() => out.push(self.reuse()),
            _ => out.push(self.noise(to)),
        }
        for Forged { from, bytes, .. } in &out {
            self.accounts.entry(*from).or_default()[0] += bytes.len() as u64;
        }
        out
    }

    /// A function sends a frame to an address without a function. Returns the adversary's answers,
    /// or what is wrong.
    pub fn receive(
        &mut self,
        host: usize,
        from: usize,
        bytes: &[u8],
    ) -> Result<Vec<Forged>, String> {
        if !self.is_own(host) {
            let [came, went] = self.accounts.entry(host).or_default();
            *went += bytes.len() as u64;
            let trials = if self.attack == Attack::OnPath { TRIALS * self.longest } else { 0 };
            return match *went <= *came + trials {
                true => Ok(Vec::new()),
                false => Err(format!(
                    "{from} has sent {went} bytes to {host}, where nobody is, for {came} bytes in its name"
                )),
            };
        }
        Ok(self.answer(host, from, bytes).into_iter().collect())
    }

    /// Takes part in a handshake at one of its own addresses.
    fn answer(&mut self, host: usize, from: usize, bytes: &[u8]) -> Option<Forged> {
        let header = FrameHeader::parse(bytes).ok()?;
        let body = &bytes[HEADER_BYTES..header.length as usize - CHECK_BYTES];
        let reply = |bytes| Some(Forged { from: host, to: from, bytes });
        match header.kind {
            FrameKind::Challenge => {
                let open = self.handshake(header.token)?.open;
                let cookie = ChallengeBody::parse(body).ok()?.cookie;
                reply(open_frame(FrameKind::Open, &open, cookie))
            }
            FrameKind::Accept => {
                let open = self.handshake(header.token)?.open;
                let token = OpenBody::parse(body).ok()?.token;
                // Now it counts as the named peer, unless an endpoint objects.
                let mut header = FrameHeader::new(
                    FrameKind::Acknowledge,
                    open.to.function,
                    open.from.function,
                    token,
                );
                header.acknowledged = header.sequence;
                header.credit = [1 << 20; 2];
                reply(frame(header, &[]))
            }
            FrameKind::Open => {
                // A function believes that a peer is here: accept.
                let open = OpenBody::parse(body).ok()?;
                let accept = OpenBody {
                    version: open.version_high,
                    features: 0,
                    from: open.to,
                    to: open.from,
                    incarnation: 1 << 40,
                    token: 77 << 16,
                    peer_incarnation: open.incarnation,
                    ..open
                };
                reply(open_frame(FrameKind::Accept, &accept, open.token))
            }
            FrameKind::Seek => {
                let (SeekFrame::Seek(asked), _) = seek::parse(bytes)? else { return None };
                // If asked, it answers in the name of a random node.
                let node = self.functions[self.chance.below(self.functions.len() as u64) as usize];
                let body = SeekBody { from: node.node, to: asked.from, ..asked };
                reply(seek_frame(SeekFrame::Here(body)))
            }
            _ => None,
        }
    }

    /// Sees a frame from one function to another, and decides what happens to it.
    pub fn see(&mut self, from: usize, to: usize, bytes: &mut [u8], now_ns: u64) -> Fate {
        if self.attack != Attack::OnPath || self.next_ns == u64::MAX {
            return Fate::Passes;
        }
        if self.chance.hits(100) {
            let seen = (from, to, bytes.to_vec());
            match self.seen.len() < SEEN {
                true => self.seen.push(seen),
                false => self.seen[self.chance.below(SEEN as u64) as usize] = seen,
            }
        }
        match self.chance.below(400) {
            0..4 => Fate::Stays,
            4..12 => {
                let at_ns = now_ns + self.chance.below(3_000_000);
                self.late.push((at_ns, Forged { from, to, bytes: bytes.to_vec() }));
                Fate::Stays
            }
            12..16 => {
                // A copy from another address, in time.
                let from = self.some_address();
                self.late.push((now_ns, Forged { from, to, bytes: bytes.to_vec() }));
                Fate::Passes
            }
            16..24 => {
                self.alter(bytes);
                Fate::Passes
            }
            _ => Fate::Passes,
        }
    }

    /// An Open in the name of a peer of the victim, with a small, plausible or absurd incarnation.
    fn open_as_peer(&mut self, to: usize) -> Forged {
        let index = self.partner(to);
        let peer = self.functions[index];
        let from = match self.chance.hits(800) {
            true => self.own_host(),
            // From the peer's own address, where the answer cannot be read.
            false => index,
        };
        let open = self.open_body(peer, to);
        self.begin(from, to, open)
    }

    /// An Open in a fresh name.
    fn open_as_nobody(&mut self, to: usize) -> Forged {
        self.made_up += 1;
        let from = self.own_host();
        let open = self.open_body(FunctionId { node: self.made_up, function: 3 }, to);
        self.begin(from, to, open)
    }

    fn open_from_stranger(&mut self, to: usize) -> Forged {
        self.made_up += 1;
        let (from, node) = (self.next_stranger(), self.made_up);
        let open = self.open_body(FunctionId { node, function: 0 }, to);
        Forged { from, to, bytes: open_frame(FrameKind::Open, &open, self.chance.bits()) }
    }

    /// A frame that would end or confuse a link if its token were right.
    fn guess(&mut self, to: usize) -> Forged {
        let kind = self.chance.pick(&[
            FrameKind::Data,
            FrameKind::Acknowledge,
            FrameKind::Close,
            FrameKind::Unknown,
            FrameKind::Refuse,
            FrameKind::Challenge,
            FrameKind::Accept,
        ]);
        // The slot is no secret.
        let token = self.chance.bits() & !0xffff | self.chance.below(8);
        let (peer, victim) = (self.chance.below(self.functions.len() as u64) as usize, to);
        let (me, peer) = (self.functions[victim], self.functions[peer]);
        let header = FrameHeader::new(kind, me.function, peer.function, token);
        let bytes = match kind {
            FrameKind::Close => frame(header, &[CloseReason::Done as u8]),
            FrameKind::Refuse => frame(header, &refuse(RefuseReason::NotHere, token).emit()),
            FrameKind::Challenge => frame(header, &ChallengeBody { cookie: 5 }.emit()),
            FrameKind::Accept => open_frame(kind, &self.open_body(peer, to), token),
            _ => frame(header, &[]),
        };
        Forged { from: self.some_address(), to, bytes }
    }

    /// An unasked answer.
    fn tell(&mut self, to: usize) -> Forged {
        let place = self.chance.below(self.functions.len() as u64) as usize;
        let body = SeekBody {
            from: self.functions[place].node,
            to: self.functions[to].node,
            frame_bytes: 1500,
            nonce: self.chance.bits(),
        };
        Forged { from: self.own_host(), to, bytes: seek_frame(SeekFrame::Here(body)) }
    }

    /// A question in the name of a peer.
    fn ask(&mut self, to: usize) -> Forged {
        let from = self.functions[self.chance.below(self.functions.len() as u64) as usize].node;
        let body = SeekBody { from, to: ANY_NODE, frame_bytes: 1500, nonce: self.chance.bits() };
        Forged { from: self.some_address(), to, bytes: seek_frame(SeekFrame::Seek(body)) }
    }

    /// A meaningless or damaged frame from an address not heard before.
    fn noise(&mut self, to: usize) -> Forged {
        let header = FrameHeader::new(FrameKind::Unknown, 0, 0, self.chance.bits());
        let mut bytes = frame(header, &[]);
        if self.chance.hits(300) {
            let at = self.chance.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.chance.below(8);
        }
        Forged { from: self.next_stranger(), to, bytes }
    }

    /// A recorded frame, altered, from any address to its old destination.
    fn reuse(&mut self) -> Forged {
        let chosen = self.chance.below(self.seen.len() as u64) as usize;
        let (from, to, mut bytes) = self.seen[chosen].clone();
        let from = if self.chance.hits(500) { from } else { self.some_address() };
        self.alter(&mut bytes);
        if self.chance.hits(200)
            && let Ok(header) = FrameHeader::parse(&bytes)
            && matches!(header.kind, FrameKind::Data | FrameKind::Acknowledge)
        {
            // The token is enough to end a link.
            let kind = FrameHeader { kind: FrameKind::Close, flags: 0, ..header };
            bytes = frame(kind, &[1 + self.chance.below(2) as u8]);
        }
        Forged { from, to, bytes }
    }

    /// Alters a frame that carries no packets and gives it a right check value.
    fn alter(&mut self, bytes: &mut [u8]) {
        if bytes.get(1).is_some_and(|kind| kind & 0xf == KEYED) {
            // With a key it may alter everything.
            let at = self.chance.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.chance.below(8);
            return;
        }
        let Ok(header) = FrameHeader::parse(bytes) else { return };
        let bytes = &mut bytes[..header.length as usize];
        let body = HEADER_BYTES..bytes.len() - CHECK_BYTES;
        let at = match header.kind {
            FrameKind::Data | FrameKind::Acknowledge => return,
            // Names, incarnations and openings. Altered terms for packets would be as effective as
            // altered packets.
            FrameKind::Open | FrameKind::Accept => {
                body.start + self.chance.pick(&[16, 20, 24, 32, 33, 39, 40, 41, 56]) as usize
            }
            _ if body.is_empty() => 8 + self.chance.below(8) as usize,
            _ => body.start + self.chance.below(body.len() as u64) as usize,
        };
        bytes[at] ^= 1 << self.chance.below(8);
        // The frame has a check value, so there is room for it.
        let _ = seal(bytes);
    }

    fn begin(&mut self, from: usize, to: usize, open: OpenBody) -> Forged {
        if self.is_own(from) {
            let handshake = Handshake { from, to, open };
            match self.handshakes.len() < HANDSHAKES {
                true => self.handshakes.push(handshake),
                false => {
                    let place = self.chance.below(HANDSHAKES as u64) as usize;
                    self.handshakes[place] = handshake;
                }
            }
        }
        Forged { from, to, bytes: open_frame(FrameKind::Open, &open, 0) }
    }

    fn handshake(&self, token: u64) -> Option<&Handshake> {
        self.handshakes.iter().find(|of| of.open.token == token && of.from != of.to)
    }

    fn open_body(&mut self, from: FunctionId, to: usize) -> OpenBody {
        let incarnation = self.chance.pick(&[1, 999, 1001, 1002, 1 << 40, (1 << 63) - 1, u64::MAX]);
        OpenBody {
            version_low: 3,
            version_high: 3,
            version: 0,
            demanded: 0,
            features: 0,
            packet_bytes: 256,
            from,
            to: self.functions[to],
            incarnation,
            opening: self.chance.pick(&[1, 2, 50, u64::MAX]),
            token: self.chance.bits() | 1 << 20,
            peer_incarnation: 0,
            window: 8,
            frame_bytes: 256,
        }
    }

    /// A random partner of a function.
    fn partner(&mut self, of: usize) -> usize {
        let count = self.partners[of].len() as u64;
        self.partners[of][self.chance.below(count) as usize]
    }

    fn is_own(&self, host: usize) -> bool {
        (self.functions.len()..self.functions.len() + OWN_HOSTS).contains(&host)
    }

    fn own_host(&mut self) -> usize {
        self.functions.len() + self.chance.below(OWN_HOSTS as u64) as usize
    }

    /// The unused address whose last use is longest ago.
    fn next_stranger(&mut self) -> usize {
        let first = self.functions.len() + OWN_HOSTS;
        self.stranger = (self.stranger + 1) % (0xffff - first);
        first + self.stranger
    }

    fn some_address(&mut self) -> usize {
        match self.chance.below(3) {
            0 => self.chance.below(self.functions.len() as u64) as usize,
            1 => self.own_host(),
            _ => self.next_stranger(),
        }
    }
}

fn refuse(reason: RefuseReason, token: u64) -> RefuseBody {
    RefuseBody { reason, version_low: 3, version_high: 3, features: 0, token }
}

fn open_frame(kind: FrameKind, open: &OpenBody, token: u64) -> Vec<u8> {
    let mut header = FrameHeader::new(kind, open.to.function, open.from.function, token);
    header.credit = [1 << 20; 2];
    frame(header, &open.emit())
}

fn seek_frame(frame: SeekFrame) -> Vec<u8> {
    let mut bytes = vec![0; seek::FRAME_BYTES];
    seek::emit(frame, 0, 255, &mut bytes);
    bytes
}

/// A frame with the right check value.
fn frame(header: FrameHeader, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; FRAME_OVERHEAD_BYTES + body.len()];
    let header = FrameHeader { length: bytes.len() as u16, ..header };
    header.emit(&mut bytes).expect("room for a header");
    bytes[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    seal(&mut bytes).expect("room for the check value");
    bytes
}
