//! All sessions of a function.

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;

use bellwire_protocol::canary::planted;
use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::header::FrameKind;
use bellwire_wire::frame::keyed::{
    KEYED_HEADER_BYTES, KeyedHeader, KeyedStep, SEAL_BYTES, SEALED_OVERHEAD_BYTES, TAG_BYTES,
};

use crate::cipher::{Suite, Unopened};
use crate::handshake::{self, Handshake};
use crate::keys::{KEY_BYTES, Key, Keys};
use crate::peer::{Next, Peer, Request, Which};
use crate::session::{Agreed, Limits, Session};
use crate::tags::{TagKey, split};

/// Most peers with a session: four paths of each of 1,024 links.
pub const PEERS: usize = 4_096;
/// Most handshake frames that wait to be sent; more are dropped.
const OUTGOING: usize = 64;
/// Longest frame that waits for a session: an Open, an Accept, or a few acknowledgements.
const HELD_BYTES: usize = 256;
/// Time between two looks for sessions that are over, in ns.
const SWEEP_NS: u64 = 5_000_000_000;
/// How long a cookie stays the same, in ns, and how long it holds after that.
const COOKIE_NS: u64 = 4_000_000_000;
/// Version of the handshake.
const VERSION: u8 = 1;

/// Fills bytes at random.
pub type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

bellwire_protocol::counters! {
    /// What a function with a key counts.
    Counters {
        /// Frames that were sealed.
        frames_sealed,
        /// Frames that were opened.
        frames_opened,
        /// Frames without a key, dropped.
        frames_plain,
        /// Frames of no session of ours, dropped. A session may be over.
        frames_of_no_session,
        /// Frames that came twice, or too late to tell, dropped.
        frames_replayed,
        /// Frames that were altered, or made by somebody without the key, dropped.
        frames_forged,
        /// Requests under none of our keys, dropped.
        requests_refused,
        /// Sessions that we asked for and got.
        sessions_asked,
        /// Sessions that peers asked for and began.
        sessions_answered,
    }
}

/// The sessions of a function with all peers. `P` is a place: a source or destination of frames.
pub struct Sessions<P> {
    keys: Keys,
    limits: Limits,
    has_aes: bool,
    entropy: Entropy,
    cookies: TagKey,
    /// By the low 16 bits of the indices of their sessions.
    peers: Vec<Option<Peer<P>>>,
    by_place: BTreeMap<(P, u8), u16>,
    /// The peer asked for last: frames go in bursts.
    last: Option<((P, u8), u16)>,
    outgoing: VecDeque<(P, Vec<u8>)>,
    /// Who asked about places and may be answered, and as which pair.
    askers: VecDeque<(P, usize)>,
    /// The frame that was opened last.
    opened: Vec<u8>,
    next_sweep_ns: u64,
    counters: Counters,
}

impl<P: Copy + Ord + Hash> Sessions<P> {
    /// No sessions yet. `has_aes`: the processor has instructions for AES-GCM. `entropy` must be
    /// unpredictable: everything rests on it.
    pub fn new(keys: Keys, limits: Limits, has_aes: bool, mut entropy: Entropy) -> Sessions<P> {
        let mut seed: Key = [0; KEY_BYTES];
        entropy(&mut seed);
        Sessions {
            keys,
            limits,
            has_aes,
            entropy,
            cookies: TagKey::derive("bellwire 1: cookies", &[&seed]),
            peers: Vec::new(),
            by_place: BTreeMap::new(),
            last: None,
            outgoing: VecDeque::new(),
            askers: VecDeque::new(),
            opened: Vec::new(),
            next_sweep_ns: 0,
            counters: Counters::default(),
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Peers that have a session or are asked for one.
    pub fn peer_count(&self) -> usize {
        self.by_place.len()
    }

    /// Where the frame for [`Sessions::seal`] begins in its buffer.
    pub const ROOM: usize = KEYED_HEADER_BYTES;

    /// Seals the frame of `length` bytes at [`Sessions::ROOM`] of `buffer`, which has room for
    /// [`SEALED_OVERHEAD_BYTES`] more. The last four bytes, the frame's check value, are not sent.
    /// The bytes before them are `apart`, and need not be in the buffer: sealing moves them there.
    /// Returns the length of the sealed frame, which begins at 0.
    /// `None`: there is no session yet. The frame is lost then, or goes later if it is short.
    #[inline]
    pub fn seal(
        &mut self,
        to: P,
        buffer: &mut [u8],
        length: usize,
        apart: &[u8],
        now_ns: u64,
    ) -> Option<usize> {
        let [_, kind, function, from] = *buffer.get(Self::ROOM..)?.first_chunk::<4>()?;
        let kind = kind & 0xf;
        if kind == FrameKind::Seek as u8 || kind == FrameKind::Here as u8 {
            join(buffer, length, apart);
            return self.tag(to, kind == FrameKind::Here as u8, buffer, length);
        }
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns);
        }
        let slot = self.slot_of(to, function);
        let session = slot.and_then(|slot| {
            let peer = self.peers[slot as usize].as_mut()?;
            peer.used_ns = now_ns;
            peer.current.as_mut().filter(|session| session.can_seal(now_ns))
        });
        let (Some(slot), Some(session)) = (slot, session) else {
            join(buffer, length, apart);
            self.ask_first(to, buffer, length, now_ns);
            return None;
        };
        let length = length.max(CHECK_BYTES) + SEALED_OVERHEAD_BYTES;
        write_sealed(session, [function, from], &mut buffer[..length], apart, now_ns);
        self.counters.frames_sealed += 1;
        if session.is_worn(&self.limits, now_ns) {
            self.renew(slot, from, now_ns);
        }
        Some(length)
    }

    /// Takes what came from a place. Returns the frame in it, if a peer with a key made it and it
    /// was not opened before. Its check value is 0. No input causes a panic or exceeds a limit.
    #[inline]
    pub fn open(&mut self, from: P, bytes: &[u8], now_ns: u64) -> Option<&[u8]> {
        let Ok(header) = KeyedHeader::parse(bytes) else {
            self.counters.frames_plain += 1;
            if planted("keys-accept-plain") {
                self.opened = bytes.to_vec();
                return Some(&self.opened);
            }
            return None;
        };
        let frame = &bytes[..header.length as usize];
        if header.step == KeyedStep::Sealed {
            return self.open_sealed(&header, frame, now_ns);
        }
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns);
        }
        if header.step == KeyedStep::Tagged {
            return self.open_tagged(from, &header, frame);
        }
        let taken = match header.step {
            KeyedStep::Knock => self.take_knock(from, &header, frame, now_ns),
            KeyedStep::Cookie => self.take_cookie(&header, frame, now_ns),
            KeyedStep::Hello => self.take_hello(from, &header, frame, now_ns),
            KeyedStep::Reply => self.take_reply(&header, frame, now_ns),
            KeyedStep::Sealed | KeyedStep::Tagged => None,
        };
        if taken.is_none() {
            self.counters.requests_refused += 1;
        }
        None
    }

    /// The next handshake frame to be sent, and where to.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(P, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// Ends a frame with right tags.
    pub(crate) fn tag_for_test(&self, frame: &mut Vec<u8>) {
        self.keys.tag_for_all(frame);
    }

    #[inline]
    fn open_sealed(&mut self, header: &KeyedHeader, frame: &[u8], now_ns: u64) -> Option<&[u8]> {
        let Some(peer) = self.peers.get_mut(slot(header.session)).and_then(Option::as_mut) else {
            self.counters.frames_of_no_session += 1;
            return None;
        };
        let found = peer.session(header.session);
        let Some((which, session)) = found.filter(|(_, session)| !session.is_over(now_ns)) else {
            self.counters.frames_of_no_session += 1;
            return None;
        };
        let (associated, sealed) = frame.split_at(KEYED_HEADER_BYTES);
        let Some(length) = sealed.len().checked_sub(SEAL_BYTES) else {
            self.counters.frames_forged += 1;
            return None;
        };
        // It grows to the longest frame, so that room is rarely cleared.
        let whole = length + CHECK_BYTES;
        if self.opened.len() < whole {
            self.opened.resize(whole, 0);
        }
        let opened = &mut self.opened[..whole];
        match session.opener.open(associated, header.counter, sealed, &mut opened[..length]) {
            Ok(()) => {
                session.heard();
                if which == Which::Next {
                    peer.confirm();
                    self.counters.sessions_answered += 1;
                }
                self.counters.frames_opened += 1;
                if length == 0 {
                    return None;
                }
                opened[length..].fill(0);
                Some(opened)
            }
            Err(why) => {
                self.counters.frames_replayed += u64::from(why == Unopened::Repeated);
                self.counters.frames_forged += u64::from(why == Unopened::Forged);
                None
            }
        }
    }

    /// Wraps a question or answer about places. A question has a tag for each peer, because it may
    /// be for any of them. An answer has one, so that it is not longer than the question.
    #[cold]
    fn tag(&mut self, to: P, is_answer: bool, buffer: &mut [u8], length: usize) -> Option<usize> {
        let [_, _, function, from] = *buffer[Self::ROOM..].first_chunk::<4>()?;
        let asker = match is_answer {
            true => {
                let index = self.askers.iter().position(|(place, _)| *place == to)?;
                Some(self.askers.remove(index)?.1)
            }
            false => None,
        };
        let pairs = asker.map_or(&self.keys.pairs[..], |pair| &self.keys.pairs[pair..=pair]);
        let end = KEYED_HEADER_BYTES + length;
        let total = end + TAG_BYTES * pairs.len();
        let target = buffer.get_mut(..total)?;
        let header = keyed(KeyedStep::Tagged, [function, from], total, pairs.len(), 0, 0);
        target[..KEYED_HEADER_BYTES].copy_from_slice(&header);
        let (signed, tags) = target.split_at_mut(end);
        for (pair, tag) in pairs.iter().zip(tags.as_chunks_mut::<TAG_BYTES>().0) {
            *tag = pair.tags.tag(&[signed]).to_le_bytes();
        }
        Some(total)
    }

    #[cold]
    fn open_tagged(&mut self, from: P, header: &KeyedHeader, frame: &[u8]) -> Option<&[u8]> {
        let (signed, _) = split(frame, header);
        let inner = &signed[KEYED_HEADER_BYTES..];
        let kind = inner.get(1)? & 0xf;
        // Every other frame needs a session.
        let is_question = kind == FrameKind::Seek as u8;
        let is_about_places = is_question || kind == FrameKind::Here as u8;
        let Some(pair) = self.keys.find(frame, header).filter(|_| is_about_places) else {
            self.counters.requests_refused += 1;
            return None;
        };
        if is_question {
            if self.askers.len() >= OUTGOING {
                self.askers.pop_front();
            }
            self.askers.push_back((from, pair));
        }
        self.opened.clear();
        self.opened.extend_from_slice(inner);
        Some(&self.opened)
    }

    /// A frame is to be sent and there is no session. Only frames that ask for something are worth
    /// one: answers to frames of an earlier session are not.
    #[cold]
    fn ask_first(&mut self, to: P, buffer: &[u8], length: usize, now_ns: u64) {
        let frame = &buffer[Self::ROOM..Self::ROOM + length];
        let [_, kind, function, from] = *frame.first_chunk::<4>().expect("seal has read them");
        let asks = [FrameKind::Open, FrameKind::Accept, FrameKind::Data, FrameKind::Acknowledge];
        if !asks.iter().any(|&asking| asking as u8 == kind & 0xf) {
            return;
        }
        let slot = self.slot_of(to, function).unwrap_or_else(|| self.add(to, function, now_ns));
        let peer = self.peers[slot as usize].as_mut().expect("it is in the table");
        if length <= HELD_BYTES {
            peer.held.clear();
            peer.held.extend_from_slice(&frame[..length.saturating_sub(CHECK_BYTES)]);
        }
        self.ask(slot, from, now_ns);
    }

    /// Asks for the session after one that is old.
    #[cold]
    fn renew(&mut self, slot: u16, from: u8, now_ns: u64) {
        if let Some(session) = self.peers[slot as usize].as_mut().and_then(|it| it.current.as_mut())
        {
            session.asks(now_ns);
        }
        self.ask(slot, from, now_ns);
    }

    /// Sends a request for a session, or repeats it.
    fn ask(&mut self, slot: u16, from: u8, now_ns: u64) {
        let peer = self.peers[slot as usize].as_mut().expect("it is in the table");
        peer.request.take_if(|request| request.is_over(now_ns));
        if let Some(request) = &mut peer.request {
            if request.is_due(now_ns) {
                push(&mut self.outgoing, peer.place, request.frame.clone());
            }
            return;
        }
        let index = new_index(&mut self.entropy, slot);
        let nonce = random(&mut self.entropy);
        let tags = self.keys.pairs.len();
        let total = KEYED_HEADER_BYTES + TAG_BYTES * tags;
        let functions = [peer.function, from];
        let mut frame = keyed(KeyedStep::Knock, functions, total, tags, index, nonce).to_vec();
        self.keys.tag_for_all(&mut frame);
        push(&mut self.outgoing, peer.place, frame.clone());
        peer.request = Some(Request::new(index, nonce, frame, now_ns));
    }

    /// A peer asks whether we have a key: it must show first that it receives at its place. Nothing
    /// is remembered.
    fn take_knock(
        &mut self,
        from: P,
        header: &KeyedHeader,
        frame: &[u8],
        now_ns: u64,
    ) -> Option<()> {
        let pair = self.keys.find(frame, header)?;
        if self.is_ours(header.session) && !planted("keys-reflect") {
            return None;
        }
        let cookie = self.cookie(from, header.session, header.counter, now_ns / COOKIE_NS);
        self.send_cookie(from, header, header.counter, cookie, pair);
        Some(())
    }

    fn send_cookie(&mut self, to: P, asked: &KeyedHeader, nonce: u64, cookie: u64, pair: usize) {
        let total = KEYED_HEADER_BYTES + TAG_BYTES;
        let functions = [asked.from, asked.function];
        let mut frame =
            keyed(KeyedStep::Cookie, functions, total, 1, asked.session, cookie).to_vec();
        let tag = self.keys.pairs[pair].tags.tag(&[&frame, &nonce.to_le_bytes()]);
        frame.extend_from_slice(&tag.to_le_bytes());
        push(&mut self.outgoing, to, frame);
    }

    fn cookie(&self, place: P, index: u64, nonce: u64, span: u64) -> u64 {
        self.cookies.cookie((place, index, nonce, span))
    }

    /// The answer to our Knock: begins the handshake.
    fn take_cookie(&mut self, header: &KeyedHeader, frame: &[u8], now_ns: u64) -> Option<()> {
        let cookie = header.counter;
        let peer = self.peers.get_mut(slot(header.session))?.as_mut()?;
        let request = peer.request.as_mut().filter(|request| request.index == header.session)?;
        if matches!(&request.hello, Some((known, _)) if *known == cookie) {
            return Some(());
        }
        if header.from != peer.function || header.tags != 1 {
            return None;
        }
        let (signed, tag) = split(frame, header);
        let is_of = |pair: usize| {
            let expected = self.keys.pairs[pair].tags.tag(&[signed, &request.nonce.to_le_bytes()]);
            expected.to_le_bytes() == *tag || planted("keys-skip-tag")
        };
        let pair = (0..self.keys.pairs.len()).find(|&pair| is_of(pair))?;
        let functions = [header.from, header.function];
        let mut seed = [0; KEY_BYTES];
        (self.entropy)(&mut seed);
        // The length is not known before the message, and is checked by the tag.
        let mut hello = keyed(KeyedStep::Hello, functions, 0, 1, request.index, cookie).to_vec();
        hello.extend_from_slice(&request.nonce.to_le_bytes());
        let payload = [VERSION, VERSION, u8::from(self.has_aes), 0];
        let (handshake, message) = Handshake::ask(&self.keys, pair, seed, &hello, &payload)?;
        hello.extend_from_slice(&message);
        let total = (hello.len() + TAG_BYTES) as u16;
        hello[4..6].copy_from_slice(&total.to_le_bytes());
        let tag = self.keys.pairs[pair].tags.tag(&[&hello]);
        hello.extend_from_slice(&tag.to_le_bytes());
        push(&mut self.outgoing, peer.place, hello.clone());
        request.goes_on(cookie, handshake, hello, now_ns);
        Some(())
    }

    /// The first message of a handshake, by a peer that knows a key and receives at its place.
    fn take_hello(
        &mut self,
        from: P,
        header: &KeyedHeader,
        frame: &[u8],
        now_ns: u64,
    ) -> Option<()> {
        let (signed, tag) = split(frame, header);
        let (context, message) = signed.split_at_checked(KEYED_HEADER_BYTES + 8)?;
        let nonce = u64::from_le_bytes(*context.last_chunk()?);
        let hello = u64::from_le_bytes(*tag.first_chunk()?);
        let pair = self.keys.find(frame, header).filter(|_| header.tags == 1)?;
        // Who returns our own frames would have us talk to ourselves.
        if self.is_ours(header.session) && !planted("keys-reflect") {
            return None;
        }
        let span = now_ns / COOKIE_NS;
        let mut spans = [span, span.wrapping_sub(1)].into_iter();
        if !spans.any(|span| self.cookie(from, header.session, nonce, span) == header.counter)
            && !planted("keys-skip-cookie")
        {
            let cookie = self.cookie(from, header.session, nonce, span);
            self.send_cookie(from, header, nonce, cookie, pair);
            return None;
        }
        let known = self.slot_of(from, header.from);
        if let Some(peer) = known.and_then(|slot| self.peers[slot as usize].as_ref()) {
            if let Some(next) = peer.next.as_ref().filter(|next| next.session.hello == hello) {
                let reply = next.reply.clone();
                push(&mut self.outgoing, from, reply);
                return Some(());
            }
            if peer.began_with(hello) {
                return Some(());
            }
        }
        let mut seed = [0; KEY_BYTES];
        (self.entropy)(&mut seed);
        // The peer's slot is known only after the peer has proved itself.
        let slot = known.unwrap_or_else(|| self.next_slot());
        let index = new_index(&mut self.entropy, slot);
        let has_aes = self.has_aes;
        let reply = |payload: &[u8]| {
            let &[low, high, has_too, _] = payload else { return None };
            if !(low..=high).contains(&VERSION) {
                return None;
            }
            let suite =
                if has_aes && has_too == 1 { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
            let mut answer = vec![VERSION, suite as u8];
            answer.extend_from_slice(&index.to_le_bytes());
            Some((answer, suite))
        };
        // The length was written after the message was made.
        let mut context = context.to_vec();
        context[4..6].fill(0);
        let (message, suite, keys) =
            handshake::answer(&self.keys, pair, seed, &context, message, reply)?;
        let total = KEYED_HEADER_BYTES + message.len();
        let functions = [header.from, header.function];
        let mut reply = keyed(KeyedStep::Reply, functions, total, 0, header.session, 0).to_vec();
        reply.extend_from_slice(&message);
        let agreed = Agreed { index, peer_index: header.session, hello, suite, keys };
        let session = Session::new(agreed, false, &self.limits, now_ns);
        let slot = match known {
            Some(slot) => slot,
            None => self.add(from, header.from, now_ns),
        };
        let peer = self.peers[slot as usize].as_mut()?;
        push(&mut self.outgoing, from, reply.clone());
        peer.next = Some(Next { session, reply });
        Some(())
    }

    /// The second message: the session begins.
    fn take_reply(&mut self, header: &KeyedHeader, frame: &[u8], now_ns: u64) -> Option<()> {
        let slot = slot(header.session);
        let peer = self.peers.get_mut(slot)?.as_mut()?;
        let request = peer.request.as_mut().filter(|request| request.index == header.session)?;
        let (_, handshake) = request.hello.as_mut()?;
        let (payload, keys) = handshake.finish(&frame[KEYED_HEADER_BYTES..])?;
        let (&[version, suite], peer_index) = payload.split_first_chunk()?;
        let suite = Suite::from_code(suite)?;
        if version != VERSION || suite == Suite::Aes256Gcm && !self.has_aes {
            return None;
        }
        let peer_index = u64::from_le_bytes(peer_index.try_into().ok()?);
        let agreed = Agreed { index: request.index, peer_index, hello: 0, suite, keys };
        peer.request = None;
        let mut session = Session::new(agreed, true, &self.limits, now_ns);
        // The first frame confirms the session, even if it carries nothing.
        let held = std::mem::take(&mut peer.held);
        let mut first = vec![0; KEYED_HEADER_BYTES];
        first.extend_from_slice(&held);
        first.resize(first.len() + SEAL_BYTES, 0);
        write_sealed(&mut session, [header.from, header.function], &mut first, &[], now_ns);
        self.counters.frames_sealed += 1;
        push(&mut self.outgoing, peer.place, first);
        peer.change_to(session);
        self.counters.sessions_asked += 1;
        Some(())
    }

    /// Whether a session or request with this index is our own.
    fn is_ours(&self, index: u64) -> bool {
        self.peers.get(slot(index)).and_then(Option::as_ref).is_some_and(|peer| peer.has(index))
    }

    /// The slot of a peer, if it has one.
    #[inline]
    fn slot_of(&mut self, place: P, function: u8) -> Option<u16> {
        match self.last {
            Some((last, slot)) if last == (place, function) => Some(slot),
            _ => {
                let slot = *self.by_place.get(&(place, function))?;
                self.last = Some(((place, function), slot));
                Some(slot)
            }
        }
    }

    /// The slot of the next peer. If all are taken, it is that of the least recently used one.
    fn next_slot(&self) -> u16 {
        if let Some(free) = self.peers.iter().position(Option::is_none) {
            return free as u16;
        }
        if self.peers.len() < PEERS {
            return self.peers.len() as u16;
        }
        let used =
            |(slot, peer): (usize, &Option<Peer<P>>)| (peer.as_ref().map(|it| it.used_ns), slot);
        self.peers.iter().enumerate().map(used).min().map_or(0, |(_, slot)| slot as u16)
    }

    fn add(&mut self, place: P, function: u8, now_ns: u64) -> u16 {
        let slot = self.next_slot();
        if slot as usize == self.peers.len() {
            self.peers.push(None);
        }
        let peer = Peer::new(place, function, now_ns);
        if let Some(evicted) = self.peers[slot as usize].replace(peer) {
            self.by_place.remove(&(evicted.place, evicted.function));
        }
        self.by_place.insert((place, function), slot);
        self.last = None;
        slot
    }

    /// Forgets keys whose time is over.
    #[cold]
    fn sweep(&mut self, now_ns: u64) {
        self.next_sweep_ns = now_ns + SWEEP_NS;
        self.last = None;
        for entry in &mut self.peers {
            if let Some(peer) = entry.take_if(|peer| !peer.sweep(now_ns)) {
                self.by_place.remove(&(peer.place, peer.function));
            }
        }
    }
}

/// Moves what lies apart to its place in the frame that is to be sealed.
fn join(buffer: &mut [u8], length: usize, apart: &[u8]) {
    let end = KEYED_HEADER_BYTES + length.saturating_sub(CHECK_BYTES);
    buffer[end - apart.len()..end].copy_from_slice(apart);
}

/// Writes the header of a sealed frame, and seals it.
#[inline]
fn write_sealed(
    session: &mut Session,
    functions: [u8; 2],
    frame: &mut [u8],
    apart: &[u8],
    now_ns: u64,
) {
    let header = keyed(KeyedStep::Sealed, functions, frame.len(), 0, session.peer_index, 0);
    frame[..KEYED_HEADER_BYTES].copy_from_slice(&header);
    session.sealer.seal(frame, apart);
    session.sends(now_ns);
}

/// A header. `functions` are those of destination and source.
#[inline]
fn keyed(
    step: KeyedStep,
    [function, from]: [u8; 2],
    length: usize,
    tags: usize,
    session: u64,
    counter: u64,
) -> [u8; KEYED_HEADER_BYTES] {
    let (length, tags) = (length as u16, tags as u16);
    KeyedHeader { step, function, from, length, tags, session, counter }.emit()
}

fn push<P>(outgoing: &mut VecDeque<(P, Vec<u8>)>, to: P, frame: Vec<u8>) {
    if outgoing.len() < OUTGOING {
        outgoing.push_back((to, frame));
    }
}

fn random(entropy: &mut Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// A number that leads to `slot`, and cannot be guessed.
fn new_index(entropy: &mut Entropy, slot: u16) -> u64 {
    random(entropy) & !0xffff | u64::from(slot)
}

#[inline]
fn slot(index: u64) -> usize {
    (index & 0xffff) as usize
}
