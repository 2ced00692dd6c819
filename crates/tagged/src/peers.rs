//! The peers of an endpoint.

use crate::control::Control;
use crate::head::{Head, Kind, UNFINISHED};
use crate::pieces::{Coming, Tail};
use crate::receive::Label;
use bellwire::{
    Address, CompletionQueue, Function, FunctionAddress, QueuePair, QueuePairOptions, RemoteKey,
    Result, Status,
};
use std::collections::HashMap;
use std::ops::{Index, IndexMut};

/// One peer of an endpoint, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Peer(pub u32);

/// Credit window in bytes: what one sender may have at one receiver without a posted receive. Each
/// message counts slightly more than its own bytes.
pub const WINDOW_BYTES: usize = 512 << 10;

/// Bytes of a unit of credit.
const UNIT_BYTES: usize = 64;
const WINDOW: u32 = (WINDOW_BYTES / UNIT_BYTES) as u32;

/// The number of the queue pair that every endpoint receives on: the first of its function.
pub(crate) const MAILBOX: u32 = 1;

/// Maximum number of operations of one endpoint, and so of its offers.
pub(crate) const OFFERS: usize = 65_536;

/// Maximum number of messages that wait for one peer at its queue pair.
const SEND_DEPTH: usize = 1024;

/// Maximum number of cached keys of one peer; other keys are asked for again.
const KEYS: usize = 4096;

/// What an endpoint knows of a peer.
pub(crate) struct Known {
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
    /// Units of the peer that we have consumed, and that we have told it.
    consumed: u32,
    told: u32,
    /// Units of the peer that wait here for a receive, and its offers.
    held: u32,
    offers: usize,
    /// It wants a report of every access to its memory.
    pub(crate) watches: bool,
    /// Memory of the peer, by the keys that its program chose.
    keys: HashMap<u64, RemoteKey>,
    /// Our unfinished message in pieces. The peer's is `coming`.
    pub(crate) tail: Option<Tail>,
    /// Why messages that counted as sent are lost, until the program is told.
    pub(crate) lost: Option<Status>,
    pub(crate) coming: Option<Box<Coming>>,
}

impl Known {
    fn new(address: FunctionAddress) -> Known {
        let address = Address::new(address.node, address.function, MAILBOX);
        Known {
            address,
            pair: None,
            fetch_pair: None,
            incarnation: None,
            sent: 0,
            returned: 0,
            consumed: 0,
            told: 0,
            held: 0,
            offers: 0,
            watches: false,
            keys: HashMap::new(),
            tail: None,
            lost: None,
            coming: None,
        }
    }

    /// The memory that the peer's program calls `key`, if it is cached.
    #[inline]
    pub(crate) fn memory(&self, key: u64) -> Option<RemoteKey> {
        self.keys.get(&key).copied()
    }

    /// Caches the owner's answer.
    pub(crate) fn learn_memory(&mut self, key: u64, memory: RemoteKey) {
        if self.keys.len() == KEYS {
            self.keys.clear();
        }
        self.keys.insert(key, memory);
    }

    /// A cached key has proved wrong.
    pub(crate) fn forget_memory(&mut self, key: u64) {
        self.keys.remove(&key);
    }

    /// All cached keys are void.
    pub(crate) fn forget_memories(&mut self) {
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

    #[inline]
    pub(crate) fn count_sent(&mut self, units: u32) {
        self.sent = self.sent.wrapping_add(units);
    }

    /// A message was consumed. Returns whether to tell the peer even without another message for
    /// it.
    #[inline]
    pub(crate) fn count_consumed(&mut self, units: u32) -> bool {
        self.consumed = self.consumed.wrapping_add(units);
        self.consumed.wrapping_sub(self.told) >= WINDOW / 2
    }

    /// Releases a message that came with its bytes. Returns the control message for its sender.
    #[inline(always)]
    pub(crate) fn consume(&mut self, label: &Label) -> Option<Control> {
        let due = self.count_consumed(Known::units(label.length));
        match label.number {
            Some(number) => Some(Control::Finished { number, how: 0 }),
            None => due.then_some(Control::Credit),
        }
    }

    /// A message must wait for a receive. `false`: the peer has sent more than its window, which no
    /// proper peer does.
    pub(crate) fn hold(&mut self, units: u32) -> bool {
        let room = self.held + units <= WINDOW;
        self.held += if room { units } else { 0 };
        room
    }

    /// The message waits no more.
    pub(crate) fn let_go(&mut self, units: u32) {
        self.held -= units;
    }

    /// As [`Known::hold`], for an offer.
    pub(crate) fn hold_offer(&mut self) -> bool {
        let room = self.offers < OFFERS;
        self.offers += usize::from(room);
        room
    }

    /// As [`Known::let_go`], for an offer.
    pub(crate) fn let_offer_go(&mut self) {
        self.offers -= 1;
    }

    /// The head of a message to this peer.
    #[inline]
    pub(crate) fn head(&mut self, kind: Kind, flags: u8, incarnation: u16) -> Head {
        self.told = self.consumed;
        let unfinished = if self.tail.is_some() { UNFINISHED } else { 0 };
        Head { kind, flags: flags | unfinished, incarnation, credit: self.consumed }
    }

    /// Whether it is the endpoint that we know.
    #[inline]
    pub(crate) fn is(&self, incarnation: u16) -> bool {
        self.incarnation == Some(incarnation)
    }

    /// Learns incarnation and credit from a head. `false`: another endpoint is at this address now.
    #[inline]
    pub(crate) fn learn(&mut self, head: &Head) -> bool {
        if !self.is(head.incarnation) && self.is_other(head.incarnation) {
            return false;
        }
        self.learn_credit(head);
        true
    }

    /// Learns the credit of an endpoint that we know already.
    #[inline(always)]
    pub(crate) fn learn_credit(&mut self, head: &Head) {
        // Credit never exceeds what was sent, whatever a peer says.
        if head.credit.wrapping_sub(self.returned) <= self.sent.wrapping_sub(self.returned) {
            self.returned = head.credit;
        }
    }

    #[cold]
    fn is_other(&mut self, incarnation: u16) -> bool {
        self.incarnation.replace(incarnation).is_some()
    }

    /// Expects this incarnation; another endpoint at the same address is refused.
    pub(crate) fn expect(&mut self, incarnation: u16) {
        self.incarnation = Some(incarnation);
    }

    /// Starts anew with another endpoint at the same address. Its incarnation is known already.
    pub(crate) fn meet_again(&mut self) {
        (self.sent, self.returned, self.consumed, self.told) = (0, 0, 0, 0);
        self.watches = false;
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
            None => make(&mut self.pair, function, queue),
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
            None => make(&mut self.fetch_pair, function, queue),
        }
    }
}

#[cold]
fn make(
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
    known: Vec<Known>,
    numbers: HashMap<FunctionAddress, Peer>,
    /// The last sender.
    last: Option<(FunctionAddress, Peer)>,
}

impl Peers {
    pub(crate) fn new() -> Peers {
        Peers { known: Vec::new(), numbers: HashMap::new(), last: None }
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
        let known = &mut self.known;
        let peer = *self.numbers.entry(address).or_insert_with(|| {
            known.push(Known::new(address));
            Peer(known.len() as u32 - 1)
        });
        self.last = Some((address, peer));
        peer
    }
}

impl Index<Peer> for Peers {
    type Output = Known;
    #[inline]
    fn index(&self, peer: Peer) -> &Known {
        &self.known[peer.0 as usize]
    }
}

impl IndexMut<Peer> for Peers {
    #[inline]
    fn index_mut(&mut self, peer: Peer) -> &mut Known {
        &mut self.known[peer.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender stops at the window and goes on with returned credit, across the wrap of the
    /// counts. It believes no credit beyond what it sent.
    #[test]
    fn credit_holds_senders_back() {
        let mut known = Known::new(FunctionAddress { node: 1, function: 2 });
        (known.sent, known.returned) = (u32::MAX - 5, u32::MAX - 5);
        let head = |credit| Head { kind: Kind::Credit, flags: 0, incarnation: 7, credit };
        assert!(known.learn(&head(u32::MAX - 5)));
        let units = Known::units(1000);
        let mut sent = 0;
        while known.may_send(units) {
            known.count_sent(units);
            sent += units;
        }
        assert!((WINDOW - units..=WINDOW).contains(&sent));
        assert!(known.learn(&head((u32::MAX - 5).wrapping_add(sent).wrapping_add(1))));
        assert!(!known.may_send(units), "nobody returns more than was sent");
        assert!(known.learn(&head((u32::MAX - 5).wrapping_add(units))));
        assert!(known.may_send(units) && !known.may_send(2 * units + 17));
        assert!(!known.learn(&Head { incarnation: 8, ..head(0) }), "another one");
    }

    /// A receiver that only listens returns credit when half of the window is consumed.
    #[test]
    fn credit_is_told_in_time() {
        let mut known = Known::new(FunctionAddress { node: 1, function: 2 });
        let messages = (1..).find(|_| known.count_consumed(Known::units(0))).unwrap();
        assert_eq!(messages, WINDOW / 2);
        assert_eq!(known.head(Kind::Credit, 0, 1).credit, WINDOW / 2);
        assert!(!known.count_consumed(1));
    }
}
