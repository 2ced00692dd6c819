//! The peers of an endpoint.

use crate::completion::Peer;
use crate::control::Control;
use crate::envelope::Envelope;
use crate::head::{Head, Kind, UNFINISHED};
use crate::segments::{
    Incoming, SEGMENTED_AHEAD_BYTES, SEGMENTED_BYTES, UnsentSegments, WINDOW_BYTES,
};
use bellwire::{
    Address, CompletionQueue, Function, FunctionAddress, QueuePair, QueuePairOptions, RemoteKey,
    Result, Status,
};
use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::time::{Duration, Instant};

/// Bytes of a unit of credit.
const UNIT_BYTES: usize = 64;
const WINDOW: u32 = (WINDOW_BYTES / UNIT_BYTES) as u32;
/// The same for segmented messages. Each counts one unit more than its bytes.
const SEGMENTED_WINDOW: u32 =
    (SEGMENTED_AHEAD_BYTES / UNIT_BYTES + SEGMENTED_AHEAD_BYTES / SEGMENTED_BYTES) as u32;

/// Messages after which a receiver that only listens returns credit: fewer than it consumes within
/// [`CREDIT_WAIT`].
const CREDIT_MESSAGES: u32 = 256;

/// How long a message that lacks credit is refused before it is offered. A receiver that keeps up
/// returns credit within some microseconds, and an offered message costs it as many. One that
/// posts no receive for it must not stop its sender for long.
const CREDIT_WAIT: Duration = Duration::from_micros(200);

/// The number of the queue pair that every endpoint receives on: the first of its function.
pub(crate) const MAILBOX: u32 = 1;

/// Maximum number of operations of one endpoint, and so of its offers.
pub(crate) const MAX_OPERATIONS: usize = 65_536;

/// Maximum number of messages that wait for one peer at its queue pair.
const SEND_DEPTH: usize = 1024;

/// Maximum number of cached keys of one peer; other keys are asked for again.
const MAX_CACHED_KEYS: usize = 4096;

/// What an endpoint knows of a peer.
pub(crate) struct PeerState {
    /// The queue pair that it receives on.
    pub(crate) address: Address,
    /// The queue pair for sends to this peer, so that a peer that takes no messages blocks no
    /// other.
    pair: Option<QueuePair>,
    /// The queue pair for fetches, so that long messages do not block short ones.
    fetch_pair: Option<QueuePair>,
    /// The peer's incarnation, once it has sent a message.
    incarnation: Option<u16>,
    /// Units that we have sent since we met, and those that the peer has consumed.
    sent: u32,
    returned: u32,
    /// When a message lacked credit, and what was returned then.
    starved: Option<(u32, Instant)>,
    /// Units of the peer that we have consumed, and the credit that we have returned to it.
    consumed: u32,
    advertised: u32,
    /// Messages that we have consumed since.
    unadvertised: u32,
    /// Units of the peer that wait here for a receive, and its offers.
    held: u32,
    offers: usize,
    /// It wants a report of every access to its memory.
    pub(crate) monitored: bool,
    /// Memory of the peer, by the keys that its program chose.
    keys: HashMap<u64, RemoteKey>,
    /// The rest of our segmented message.
    pub(crate) unsent: Option<UnsentSegments>,
    /// The peer's segmented message that is not complete.
    incoming: Option<Box<Incoming>>,
    /// Why messages that counted as sent are lost, until the program is told.
    pub(crate) lost: Option<Status>,
}

impl PeerState {
    fn new(address: FunctionAddress) -> PeerState {
        let address = Address::new(address.node, address.function, MAILBOX);
        PeerState {
            address,
            pair: None,
            fetch_pair: None,
            incarnation: None,
            sent: 0,
            returned: 0,
            starved: None,
            consumed: 0,
            advertised: 0,
            unadvertised: 0,
            held: 0,
            offers: 0,
            monitored: false,
            keys: HashMap::new(),
            unsent: None,
            incoming: None,
            lost: None,
        }
    }

    /// Its message that lacks segments.
    #[inline(always)]
    pub(crate) fn incoming(&mut self) -> Option<&mut Incoming> {
        self.incoming.as_deref_mut()
    }

    /// The memory that the peer's program calls `key`, if it is cached.
    #[inline]
    pub(crate) fn cached_memory(&self, key: u64) -> Option<RemoteKey> {
        self.keys.get(&key).copied()
    }

    /// Caches the owner's answer.
    pub(crate) fn cache_memory(&mut self, key: u64, memory: RemoteKey) {
        if self.keys.len() == MAX_CACHED_KEYS {
            self.keys.clear();
        }
        self.keys.insert(key, memory);
    }

    /// A cached key has proved wrong.
    pub(crate) fn forget_memory(&mut self, key: u64) {
        self.keys.remove(&key);
    }

    /// All cached keys are void.
    pub(crate) fn forget_all_memory(&mut self) {
        self.keys.clear();
    }

    /// The units of a message of `length` bytes.
    #[inline]
    pub(crate) fn units(length: usize) -> u32 {
        (1 + length.div_ceil(UNIT_BYTES)) as u32
    }

    /// Whether the credit suffices for `units` more.
    #[inline]
    pub(crate) fn may_send(&self, units: u32) -> bool {
        self.sent.wrapping_sub(self.returned) + units <= WINDOW
    }

    /// The same for a message that goes in segments.
    pub(crate) fn may_send_segments(&self, units: u32) -> bool {
        self.sent.wrapping_sub(self.returned) + units <= SEGMENTED_WINDOW
    }

    /// A message lacks credit. Returns whether it waits for more; otherwise it is offered.
    #[cold]
    pub(crate) fn awaits_credit(&mut self) -> bool {
        let returned = self.returned;
        let now = Instant::now();
        let starved = self.starved.take().filter(|starved| starved.0 == returned);
        let (_, since) = *self.starved.insert(starved.unwrap_or((returned, now)));
        now - since < CREDIT_WAIT
    }

    #[inline]
    pub(crate) fn count_sent(&mut self, units: u32) {
        self.sent = self.sent.wrapping_add(units);
    }

    /// A message was consumed. Returns whether to tell the peer even without another message for
    /// it.
    #[inline]
    pub(crate) fn count_consumed(&mut self, units: u32) -> bool {
        self.consumed = self.consumed.wrapping_add(units);
        self.unadvertised += 1;
        self.unadvertised >= CREDIT_MESSAGES
            || self.consumed.wrapping_sub(self.advertised) >= SEGMENTED_WINDOW / 2
    }

    /// Releases a message that came with its bytes. Returns the control message for its sender.
    #[inline(always)]
    pub(crate) fn consume(&mut self, envelope: &Envelope) -> Option<Control> {
        let due = self.count_consumed(PeerState::units(envelope.length));
        match envelope.operation {
            Some(operation) => Some(Control::Finished { operation, status: 0 }),
            None => due.then_some(Control::Credit),
        }
    }

    /// A message must wait for a receive. `false`: the peer has sent more than its window, which no
    /// proper peer does.
    pub(crate) fn reserve(&mut self, units: u32) -> bool {
        let room = self.held + units <= WINDOW;
        self.held += if room { units } else { 0 };
        room
    }

    /// The message waits no more.
    pub(crate) fn release(&mut self, units: u32) {
        self.held -= units;
    }

    /// As [`PeerState::reserve`], for an offer.
    pub(crate) fn reserve_offer(&mut self) -> bool {
        let room = self.offers < MAX_OPERATIONS;
        self.offers += usize::from(room);
        room
    }

    /// As [`PeerState::release`], for an offer.
    pub(crate) fn release_offer(&mut self) {
        self.offers -= 1;
    }

    /// The head of a message to this peer.
    #[inline]
    pub(crate) fn head(&mut self, kind: Kind, flags: u8, incarnation: u16) -> Head {
        (self.advertised, self.unadvertised) = (self.consumed, 0);
        let unfinished = if self.unsent.is_some() { UNFINISHED } else { 0 };
        Head { kind, flags: flags | unfinished, incarnation, credit: self.consumed }
    }

    /// Whether it is the endpoint that we know.
    #[inline]
    pub(crate) fn has_incarnation(&self, incarnation: u16) -> bool {
        self.incarnation == Some(incarnation)
    }

    /// Learns incarnation and credit from a head. `false`: another endpoint is at this address now.
    #[inline]
    pub(crate) fn update(&mut self, head: &Head) -> bool {
        if !self.has_incarnation(head.incarnation) && self.replaces(head.incarnation) {
            return false;
        }
        self.update_credit(head.credit);
        true
    }

    /// Learns the credit of an endpoint that we know already.
    #[inline(always)]
    pub(crate) fn update_credit(&mut self, credit: u32) {
        // Credit never exceeds what was sent, whatever a peer says.
        if credit.wrapping_sub(self.returned) <= self.sent.wrapping_sub(self.returned) {
            self.returned = credit;
        }
    }

    #[cold]
    fn replaces(&mut self, incarnation: u16) -> bool {
        self.incarnation.replace(incarnation).is_some()
    }

    /// Expects this incarnation; another endpoint at the same address is refused.
    pub(crate) fn expect(&mut self, incarnation: u16) {
        self.incarnation = Some(incarnation);
    }

    /// Starts anew with another endpoint at the same address. Its incarnation is known already.
    pub(crate) fn reset(&mut self) {
        (self.sent, self.returned, self.consumed) = (0, 0, 0);
        (self.advertised, self.unadvertised) = (0, 0);
        self.monitored = false;
    }

    /// The queue pair for sends, once it is created.
    #[inline(always)]
    pub(crate) fn created_pair(&self) -> Option<QueuePair> {
        self.pair
    }

    /// The queue pair for sends.
    #[inline]
    pub(crate) fn pair(
        &mut self,
        function: &mut Function,
        queue: CompletionQueue,
    ) -> Result<QueuePair> {
        match self.pair {
            Some(pair) => Ok(pair),
            None => create_pair(&mut self.pair, function, queue),
        }
    }

    /// The queue pair for fetches.
    pub(crate) fn fetch_pair(
        &mut self,
        function: &mut Function,
        queue: CompletionQueue,
    ) -> Result<QueuePair> {
        match self.fetch_pair {
            Some(pair) => Ok(pair),
            None => create_pair(&mut self.fetch_pair, function, queue),
        }
    }
}

#[cold]
fn create_pair(
    place: &mut Option<QueuePair>,
    function: &mut Function,
    queue: CompletionQueue,
) -> Result<QueuePair> {
    let options = QueuePairOptions::new(queue).send_depth(SEND_DEPTH).receive_depth(1);
    let pair = function.create_queue_pair(&options)?;
    *place = Some(pair);
    Ok(pair)
}

/// All peers.
pub(crate) struct Peers {
    states: Vec<PeerState>,
    numbers: HashMap<FunctionAddress, Peer>,
    /// The last sender.
    last: Option<(FunctionAddress, Peer)>,
    /// Peers whose messages lack segments.
    incoming: Vec<Peer>,
}

impl Peers {
    pub(crate) fn new() -> Peers {
        Peers { states: Vec::new(), numbers: HashMap::new(), last: None, incoming: Vec::new() }
    }

    /// The number of the peer at `address`.
    #[inline]
    pub(crate) fn at(&mut self, address: FunctionAddress) -> Peer {
        match self.last {
            Some((last, peer)) if last == address => peer,
            _ => self.look_up(address),
        }
    }

    fn look_up(&mut self, address: FunctionAddress) -> Peer {
        let states = &mut self.states;
        let peer = *self.numbers.entry(address).or_insert_with(|| {
            states.push(PeerState::new(address));
            Peer(states.len() as u32 - 1)
        });
        self.last = Some((address, peer));
        peer
    }

    /// Keeps a message that lacks segments.
    pub(crate) fn begin_incoming(&mut self, incoming: Incoming) {
        let peer = incoming.envelope.peer;
        let before = self[peer].incoming.replace(Box::new(incoming));
        debug_assert!(before.is_none(), "the caller ended what came before");
        self.incoming.push(peer);
    }

    /// A message has all segments, or never gets them.
    pub(crate) fn end_incoming(&mut self, peer: Peer) -> Option<Incoming> {
        let incoming = self[peer].incoming.take()?;
        self.incoming.retain(|&other| other != peer);
        Some(*incoming)
    }

    /// Peers whose messages lack segments.
    pub(crate) fn incoming(&self) -> &[Peer] {
        &self.incoming
    }
}

impl Index<Peer> for Peers {
    type Output = PeerState;
    #[inline]
    fn index(&self, peer: Peer) -> &PeerState {
        &self.states[peer.0 as usize]
    }
}

impl IndexMut<Peer> for Peers {
    #[inline]
    fn index_mut(&mut self, peer: Peer) -> &mut PeerState {
        &mut self.states[peer.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender stops at the window and goes on with returned credit, across the wrap of the
    /// counts. It believes no credit beyond what it sent.
    #[test]
    fn credit_holds_senders_back() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        (state.sent, state.returned) = (u32::MAX - 5, u32::MAX - 5);
        let head = |credit| Head { kind: Kind::Credit, flags: 0, incarnation: 7, credit };
        assert!(state.update(&head(u32::MAX - 5)));
        let units = PeerState::units(1000);
        let mut sent = 0;
        while state.may_send(units) {
            state.count_sent(units);
            sent += units;
        }
        assert!((WINDOW - units..=WINDOW).contains(&sent));
        assert!(state.update(&head((u32::MAX - 5).wrapping_add(sent).wrapping_add(1))));
        assert!(!state.may_send(units), "nobody returns more than was sent");
        assert!(state.update(&head((u32::MAX - 5).wrapping_add(units))));
        assert!(state.may_send(units) && !state.may_send(2 * units + 17));
        assert!(!state.update(&Head { incarnation: 8, ..head(0) }), "another one");
    }

    /// Two of the longest segmented messages may be on their way, and no third one. Short messages
    /// may go on.
    #[test]
    fn segmented_messages_are_two_ahead_at_most() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        let units = PeerState::units(SEGMENTED_BYTES);
        for _ in 0..2 {
            assert!(state.may_send_segments(units));
            state.count_sent(units);
        }
        assert!(!state.may_send_segments(1) && state.may_send(1));
        let credit = units;
        assert!(state.update(&Head { kind: Kind::Credit, flags: 0, incarnation: 7, credit }));
        assert!(state.may_send_segments(units));
    }

    /// A message that lacks credit waits a while, and again when some has been returned.
    #[test]
    fn credit_is_awaited_for_a_while() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        assert!(state.awaits_credit());
        std::thread::sleep(CREDIT_WAIT);
        assert!(!state.awaits_credit());
        state.count_sent(1);
        let head = Head { kind: Kind::Credit, flags: 0, incarnation: 7, credit: 1 };
        assert!(state.update(&head));
        assert!(state.awaits_credit());
    }

    /// A receiver that only listens returns credit when half of the window for segmented messages
    /// is consumed, or many messages are.
    #[test]
    fn credit_is_told_in_time() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        let messages = (1..).find(|_| state.count_consumed(PeerState::units(0))).unwrap();
        assert_eq!(messages, CREDIT_MESSAGES);
        assert_eq!(state.head(Kind::Credit, 0, 1).credit, CREDIT_MESSAGES);
        assert!(!state.count_consumed(SEGMENTED_WINDOW / 2 - 1) && state.count_consumed(1));
    }

    /// Messages and offers that wait for a receive have a limit, and make room when they go.
    #[test]
    fn what_waits_has_a_limit() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        assert!(state.reserve(WINDOW - 10) && !state.reserve(11) && state.reserve(10));
        state.release(4);
        assert!(!state.reserve(5) && state.reserve(4));
        state.release(WINDOW);
        assert!(state.reserve(WINDOW));
        let offers = (0..).find(|_| !state.reserve_offer());
        assert_eq!(offers, Some(MAX_OPERATIONS));
        state.release_offer();
        assert!(state.reserve_offer() && !state.reserve_offer());
    }

    /// Keys of a peer's memory are kept until they prove wrong, or are too many.
    #[test]
    fn keys_are_cached() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        let memory = RemoteKey { node: 1, function: 2, index: 3, key: 4, length: 5 };
        let known = |state: &PeerState| {
            (0..=MAX_CACHED_KEYS as u64).filter(|&key| state.cached_memory(key).is_some()).count()
        };
        for key in 0..MAX_CACHED_KEYS as u64 {
            state.cache_memory(key, memory);
        }
        assert_eq!(known(&state), MAX_CACHED_KEYS);
        state.forget_memory(7);
        assert!(state.cached_memory(7).is_none() && known(&state) == MAX_CACHED_KEYS - 1);
        state.cache_memory(7, memory);
        state.cache_memory(MAX_CACHED_KEYS as u64, memory);
        assert_eq!(known(&state), 1);
        state.forget_all_memory();
        assert_eq!(known(&state), 0);
    }

    /// An endpoint that is expected is no other one. With another one all counts begin anew.
    #[test]
    fn another_endpoint_begins_anew() {
        let mut state = PeerState::new(FunctionAddress { node: 1, function: 2 });
        state.expect(7);
        assert!(state.has_incarnation(7));
        let head = |incarnation| Head { kind: Kind::Credit, flags: 0, incarnation, credit: 0 };
        assert!(state.update(&head(7)) && !state.update(&head(8)));
        state.count_sent(WINDOW);
        state.count_consumed(5);
        state.monitored = true;
        assert!(!state.may_send(1));
        state.reset();
        assert!(state.may_send(WINDOW) && !state.monitored);
        assert_eq!(state.head(Kind::Credit, 3, 1).credit, 0);
        assert_eq!(state.head(Kind::Credit, 3, 1).flags, 3);
        state.unsent = Some(UnsentSegments::new(vec![1].into(), 1));
        assert_eq!(state.head(Kind::Credit, 3, 1).flags, 3 | UNFINISHED);
    }

    /// Peers have numbers in the order in which they come. Only those whose messages lack segments
    /// are awaited.
    #[test]
    fn peers_are_numbered() {
        let mut peers = Peers::new();
        let address = |node| FunctionAddress { node, function: 0 };
        let numbers = [3, 4, 3, 3, 4].map(|node| peers.at(address(node)));
        assert_eq!(numbers.map(|peer| peer.0), [0, 1, 0, 0, 1]);
        for peer in [Peer(0), Peer(1)] {
            let (tagged, tag, data, operation) = (false, 0, None, None);
            let envelope = Envelope { peer, tagged, tag, data, length: 10, operation };
            let destination = crate::segments::Destination::Discarded;
            peers.begin_incoming(Incoming::new(envelope, 4, destination));
        }
        assert_eq!(peers.incoming(), [Peer(0), Peer(1)]);
        assert!(peers.end_incoming(Peer(0)).is_some() && peers.end_incoming(Peer(0)).is_none());
        assert_eq!(peers.incoming(), [Peer(1)]);
    }
}
