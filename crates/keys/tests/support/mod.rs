//! Functions with a key, and a network that belongs to an adversary. It sees all frames, records,
//! delays, drops, repeats, alters, splices, redirects and reflects them, makes up others, and gives
//! each side an answer in the other's name. It knows no key.
//!
//! The oracle knows what was sealed, and objects to each frame that is opened otherwise. It also
//! objects to content in the clear, a nonce that is used twice, and answers to a stranger.

pub mod renewal;

use std::collections::{HashMap, HashSet, VecDeque};

use bellwire_keys::{KEY_BYTES, Key, Keys, Limits, PEERS, Sessions, public_of};
use bellwire_wire::frame::check::{self, CHECK_BYTES};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::keyed::{
    KEYED_HEADER_BYTES, KeyedHeader, KeyedStep, SEALED_OVERHEAD_BYTES,
};

/// A host; on each is one function.
pub type Place = u8;

/// Functions that have the key.
const FRIENDS: usize = 3;
/// Where the adversary sends what it makes up: nothing may go there.
const STRANGER: Place = 90;
/// Where it sends recorded frames from: only cookies may go there.
const FORWARDER: Place = 91;
/// Recorded frames.
const RECORDED: usize = 12_000;
/// Stands in each frame: it must not be seen on the wire.
const SECRET: &[u8] = b"in confidence";

/// What was done, and by whom it was refused.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Frames that a function was given, of whatever kind.
    pub frames: u64,
    /// Frames of friends that were opened.
    pub opened: u64,
    /// Repeated frames that were refused.
    pub replayed: u64,
    /// Altered and made-up frames that were refused.
    pub forged: u64,
    /// Sessions.
    pub sessions: u64,
}

/// Random numbers from a seed (SplitMix64).
#[derive(Clone)]
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

struct InFlight {
    from: Place,
    to: Place,
    bytes: Vec<u8>,
}

struct Sealed {
    from: Place,
    to: Place,
    frame: Vec<u8>,
    /// When its session ends at the latest.
    end_ns: u64,
}

pub struct World {
    seed: u64,
    chance: Chance,
    limits: Limits,
    now_ns: u64,
    friends: Vec<Sessions<Place>>,
    restarts: u64,
    /// Most frames go between the first two, and time passes slowly: sessions become long.
    is_busy: bool,
    /// A friend whose handshakes come back to it.
    mirrored: Option<Place>,
    network: VecDeque<InFlight>,
    recorded: VecDeque<InFlight>,
    /// What was given to be sealed and was not opened yet.
    sealed: HashMap<u64, Sealed>,
    next_id: u64,
    /// Frames that friends put on the wire, as hashes.
    wire: HashSet<u64>,
    nonces: HashSet<(u64, u64)>,
    outcome: Outcome,
}

/// Runs worlds from `seed` on until `most` frames were handled.
pub fn run(seed: u64, most: u64, mut tell: impl FnMut(&Outcome)) -> Result<Outcome, String> {
    let mut total = Outcome::default();
    for seed in seed.. {
        let mut world = World::new(seed);
        let of_world = 20_000 + world.chance.below(40_000);
        world.run(of_world).map_err(|what| {
            format!("seed {seed}, frame {}, {} ns: {what}", world.outcome.frames, world.now_ns)
        })?;
        let Outcome { frames, opened, replayed, forged, sessions } = world.outcome;
        total.frames += frames;
        total.opened += opened;
        total.replayed += replayed;
        total.forged += forged;
        total.sessions += sessions;
        tell(&total);
        if total.frames >= most {
            break;
        }
    }
    Ok(total)
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut chance = Chance(seed);
        let is_busy = seed % 4 >= 2;
        let end_ns = match is_busy {
            true => 100_000_000_000,
            false => [300_000_000, 3_000_000_000, 20_000_000_000][chance.below(3) as usize],
        };
        let end_frames = match is_busy {
            true => 100_000,
            false => [500, 10_000, 100_000][chance.below(3) as usize],
        };
        let limits = Limits {
            renew_ns: end_ns * 2 / 3,
            end_ns,
            renew_frames: end_frames / 2,
            end_frames,
            silence_ns: 400_000_000,
        };
        let mut world = World {
            seed,
            chance,
            limits,
            now_ns: 1 << 33,
            friends: Vec::new(),
            restarts: 0,
            is_busy,
            mirrored: None,
            network: VecDeque::new(),
            recorded: VecDeque::new(),
            sealed: HashMap::new(),
            next_id: 1,
            wire: HashSet::new(),
            nonces: HashSet::new(),
            outcome: Outcome::default(),
        };
        world.friends = (0..FRIENDS).map(|number| world.friend(number)).collect();
        world
    }

    /// A function that has just started.
    fn friend(&mut self, number: usize) -> Sessions<Place> {
        self.restarts += 1;
        let mut entropy = Chance(self.seed ^ self.restarts << 40 ^ (number as u64) << 56);
        let private = |number: usize| -> Key { [(number + 1) as u8; KEY_BYTES] };
        let keys = if self.seed.is_multiple_of(2) {
            Keys::shared(&[self.seed as u8; KEY_BYTES])
        } else {
            let others = (0..FRIENDS).filter(|&other| other != number);
            let peers: Vec<Key> = others.map(|other| public_of(&private(other))).collect();
            Keys::listed(&private(number), &peers).expect("public keys")
        };
        let has_aes = (self.seed >> 1) % 4 != number as u64;
        Sessions::new(keys, self.limits, has_aes, Box::new(move |bytes| entropy.fill(bytes)))
    }

    pub fn run(&mut self, frames: u64) -> Result<(), String> {
        while self.outcome.frames < frames {
            let rarely = if self.is_busy { 40_000 } else { 4_000 };
            self.now_ns += match self.chance.below(rarely) {
                0 => self.limits.end_ns / 2 + self.chance.below(self.limits.end_ns),
                1..40 => self.chance.below(30_000_000),
                _ => self.chance.below(30_000),
            };
            match self.chance.below(100) {
                0..45 => self.send(None)?,
                45..88 => self.attack()?,
                88..94 => self.replay()?,
                94..99 => self.make_up()?,
                _ if self.chance.below(2) == 0 => {
                    let friend = self.chance.below(3 * FRIENDS as u64) as Place;
                    self.mirrored = Some(friend).filter(|&friend| (friend as usize) < FRIENDS);
                }
                _ if self.chance.below(150) == 0 => {
                    let number = self.chance.below(FRIENDS as u64) as usize;
                    self.friends[number] = self.friend(number);
                }
                _ => {}
            }
            while self.network.len() > 400 {
                self.network.pop_front();
            }
        }
        self.calm()?;
        self.outcome.sessions = self.friends.iter().map(|it| it.counters().sessions_asked).sum();
        Ok(())
    }

    /// The adversary goes away: everybody reaches everybody.
    fn calm(&mut self) -> Result<(), String> {
        self.mirrored = None;
        for (from, to) in (0..FRIENDS).flat_map(|a| (0..FRIENDS).map(move |b| (a, b))) {
            if from == to {
                continue;
            }
            let since_ns = self.now_ns;
            loop {
                let id = self.next_id;
                self.send(Some((from, to)))?;
                while let Some(InFlight { from, to, bytes }) = self.network.pop_front() {
                    self.give(from, to, &bytes)?;
                }
                if !self.sealed.contains_key(&id) {
                    break;
                }
                self.now_ns += 50_000_000;
                if self.now_ns > since_ns + 20_000_000_000 {
                    return Err(format!("{from} does not reach {to} after the attack"));
                }
            }
        }
        Ok(())
    }

    /// A friend sends a frame to another.
    fn send(&mut self, pair: Option<(usize, usize)>) -> Result<(), String> {
        let (from, to) = pair.unwrap_or_else(|| {
            let from = self.chance.below(FRIENDS as u64) as usize;
            if self.is_busy && self.chance.below(20) > 0 {
                return (from & 1, 1 - (from & 1));
            }
            (from, (from + 1 + self.chance.below(FRIENDS as u64 - 1) as usize) % FRIENDS)
        });
        let id = self.next_id;
        self.next_id += 1;
        let kind =
            [FrameKind::Open, FrameKind::Data, FrameKind::Data][self.chance.below(3) as usize];
        let mut frame = vec![0xb1, kind as u8, to as u8, from as u8];
        frame.extend_from_slice(&id.to_le_bytes());
        frame.extend_from_slice(SECRET);
        let filler = self.chance.below(200) as usize;
        frame.resize(frame.len() + filler, id as u8);
        // A check value, which is not sent.
        frame.extend_from_slice(&[0; CHECK_BYTES]);
        let mut buffer = vec![0; KEYED_HEADER_BYTES];
        // Some of the filler comes to its place only as it is sealed.
        let end = frame.len() - CHECK_BYTES;
        let apart = &frame[end - self.chance.below(filler as u64 + 1) as usize..end];
        buffer.extend_from_slice(&frame[..end - apart.len()]);
        buffer.resize(frame.len() + SEALED_OVERHEAD_BYTES, 0xee);
        let (from, to) = (from as Place, to as Place);
        let length = frame.len();
        let sealed = self.friends[from as usize].seal(to, &mut buffer, length, apart, self.now_ns);
        // Without a session it may wait until a request is given up.
        let held_ns = if sealed.is_some() { 0 } else { 9_000_000_000 };
        let end_ns = self.now_ns + held_ns + self.limits.end_ns;
        self.sealed.insert(id, Sealed { from, to, frame, end_ns });
        if let Some(length) = sealed {
            buffer.truncate(length);
            self.put(from, to, buffer)?;
        }
        self.transmit(from)
    }

    /// What a friend has to send on its own goes out.
    fn transmit(&mut self, from: Place) -> Result<(), String> {
        while let Some((to, bytes)) = self.friends[from as usize].poll_transmit() {
            let header = KeyedHeader::parse(&bytes).map_err(|_| "no frame with a key goes out")?;
            if to == STRANGER || to == FORWARDER && header.step != KeyedStep::Cookie {
                return Err(format!("a {:?} goes to a stranger", header.step));
            }
            if (to as usize) < FRIENDS {
                self.put(from, to, bytes)?;
            }
        }
        let peers = self.friends[from as usize].peer_count();
        if peers > FRIENDS.min(PEERS) {
            return Err(format!("{peers} peers are remembered"));
        }
        Ok(())
    }

    /// A frame of a friend is on the wire.
    fn put(&mut self, from: Place, to: Place, bytes: Vec<u8>) -> Result<(), String> {
        if bytes.windows(SECRET.len()).any(|part| part == SECRET) {
            return Err("content is on the wire in the clear".into());
        }
        if let Ok(header) = KeyedHeader::parse(&bytes)
            && header.step == KeyedStep::Sealed
            && !self.nonces.insert((header.session, header.counter))
        {
            return Err("a nonce is used twice".into());
        }
        self.wire.insert(hash(&bytes));
        self.recorded.push_back(InFlight { from, to, bytes: bytes.clone() });
        if self.recorded.len() > RECORDED {
            self.recorded.pop_front();
        }
        self.network.push_back(InFlight { from, to, bytes });
        Ok(())
    }

    /// The adversary decides about a frame on its way.
    fn attack(&mut self) -> Result<(), String> {
        let early = self.chance.below(8) == 0;
        let index = if early { self.chance.below(self.network.len() as u64) as usize } else { 0 };
        let Some(InFlight { from, to, bytes }) = self.network.remove(index) else { return Ok(()) };
        if self.mirrored == Some(from) && !is_sealed(&bytes) {
            return self.give(to, from, &bytes);
        }
        match self.chance.below(100) {
            0..6 => Ok(()),
            6..12 => {
                self.give(from, to, &bytes)?;
                self.give(from, to, &bytes)
            }
            12..24 => {
                let altered = self.alter(&bytes);
                self.give(from, to, &altered)?;
                self.give(from, to, &bytes)
            }
            24..28 => self.give(to, from, &bytes),
            28..31 => self.give(FORWARDER, to, &bytes),
            31..34 => self.give((to + 1) % FRIENDS as u8, to, &bytes),
            // Friends are friends: of a handshake that is led to another one the protocol inside
            // tells, because it names nodes.
            34..37 if is_sealed(&bytes) => self.give(from, (to + 1) % FRIENDS as u8, &bytes),
            37..40 => {
                self.network.push_back(InFlight { from, to, bytes });
                Ok(())
            }
            _ => {
                // Ethernet fills up short frames.
                let mut padded = bytes;
                let padding = self.chance.below(8) as usize;
                padded.resize(padded.len() + padding, 0);
                self.give(from, to, &padded)
            }
        }
    }

    /// A recorded frame comes again, perhaps from elsewhere or to somebody else.
    fn replay(&mut self) -> Result<(), String> {
        let index = self.chance.below(self.recorded.len() as u64) as usize;
        let Some(InFlight { from, to, bytes }) = self.recorded.get(index) else { return Ok(()) };
        let (from, to, bytes) = (*from, *to, bytes.clone());
        match self.chance.below(8) {
            0 => self.give(to, from, &bytes),
            1 => self.give(FORWARDER, to, &bytes),
            _ => self.give(from, to, &bytes),
        }
    }

    /// A frame of the adversary's own making.
    fn make_up(&mut self) -> Result<(), String> {
        let to = self.chance.below(FRIENDS as u64) as Place;
        let from = match self.chance.below(3) {
            0 => (to + 1) % FRIENDS as u8,
            _ => STRANGER,
        };
        let seen = self.chance.below(self.recorded.len() as u64) as usize;
        let known = self.recorded.get(seen).and_then(|it| KeyedHeader::parse(&it.bytes).ok());
        let mut body = vec![0; self.chance.below(200) as usize];
        self.chance.fill(&mut body);
        let bytes = match self.chance.below(4) {
            0 => {
                let mut bytes = vec![0; 60];
                let kinds = FrameKind::ALL;
                let kind = kinds[self.chance.below(kinds.len() as u64) as usize];
                let token = self.chance.next();
                let mut header = FrameHeader::new(kind, to, from, token);
                header.length = bytes.len() as u16;
                header.emit(&mut bytes).expect("it has room");
                bytes[HEADER_BYTES..].fill(7);
                check::seal(&mut bytes).expect("it has room");
                bytes
            }
            1 => body,
            _ => {
                let steps = KeyedStep::ALL;
                let step = steps[self.chance.below(steps.len() as u64) as usize];
                let header = KeyedHeader {
                    step,
                    function: to,
                    from,
                    length: (KEYED_HEADER_BYTES + body.len()) as u16,
                    tags: (body.len() / 8).min(1 + self.chance.below(9) as usize) as u16,
                    session: known.map_or(self.chance.next(), |it| it.session),
                    counter: known.map_or(0, |it| it.counter) + self.chance.below(3),
                };
                [&header.emit()[..], &body].concat()
            }
        };
        self.give(from, to, &bytes)
    }

    fn alter(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut altered = bytes.to_vec();
        match self.chance.below(6) {
            0 => {
                let at = self.chance.below(KEYED_HEADER_BYTES as u64) as usize;
                altered[at] ^= 1 << self.chance.below(8);
            }
            1 => {
                let length = self.chance.below(altered.len() as u64) as usize;
                altered.truncate(length);
                if length >= KEYED_HEADER_BYTES {
                    altered[4..6].copy_from_slice(&(length as u16).to_le_bytes());
                }
            }
            2 => {
                // The header of one frame before the body of another.
                let index = self.chance.below(self.recorded.len() as u64) as usize;
                let other = &self.recorded[index].bytes;
                let length = other.len().min(altered.len());
                altered[KEYED_HEADER_BYTES..length]
                    .copy_from_slice(&other[KEYED_HEADER_BYTES..length]);
            }
            3 => {
                let at =
                    altered.len() - 1 - self.chance.below(altered.len().min(16) as u64) as usize;
                altered[at] ^= 1 << self.chance.below(8);
            }
            _ => {
                let at = self.chance.below(altered.len() as u64) as usize;
                altered[at] ^= 1 << self.chance.below(8);
            }
        }
        altered
    }

    /// A function gets a frame, and the oracle looks at what it takes out of it.
    fn give(&mut self, from: Place, to: Place, bytes: &[u8]) -> Result<(), String> {
        self.outcome.frames += 1;
        let before = self.friends[to as usize].counters();
        let opened = self.friends[to as usize].open(from, bytes, self.now_ns).map(<[u8]>::to_vec);
        let after = self.friends[to as usize].counters();
        self.outcome.replayed += after.frames_replayed - before.frames_replayed;
        self.outcome.forged += after.frames_forged - before.frames_forged + after.requests_refused
            - before.requests_refused;
        if let Some(frame) = opened {
            self.outcome.opened += 1;
            let length = KeyedHeader::parse(bytes).map_or(bytes.len(), |it| it.length as usize);
            if !self.wire.contains(&hash(&bytes[..length])) {
                return Err("a frame that nobody sent was opened".into());
            }
            let id = frame.get(4..12).and_then(|id| id.try_into().ok()).map(u64::from_le_bytes);
            let sealed = id.and_then(|id| self.sealed.remove(&id));
            let Some(sealed) = sealed else {
                return Err("a frame was opened twice, or never sealed".into());
            };
            if sealed.frame != frame || sealed.to != to {
                return Err(format!("{to} has opened what was for {}", sealed.to));
            }
            if self.now_ns >= sealed.end_ns {
                return Err(format!("a frame of {} was opened after its session", sealed.from));
            }
        }
        self.transmit(to)
    }
}

fn is_sealed(bytes: &[u8]) -> bool {
    KeyedHeader::parse(bytes).is_ok_and(|header| header.step == KeyedStep::Sealed)
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
