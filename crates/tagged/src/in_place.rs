//! Messages that are copied straight from the device's memory to where they belong.
//!
//! This is the common case: the message, or its first segment, matches a posted receive when it
//! comes. All other messages go through a buffer of the endpoint (`endpoint.rs`).

use crate::completion::{CompletionKind, Outcome, Peer, Sink, TaggedCompletion, Token};
use crate::connection::PeerMode;
use crate::control::Control;
use crate::envelope::Envelope;
use crate::head::{Head, Kind, SEGMENTED};
use crate::matching::{Matched, Matching};
use crate::peers::{PeerState, Peers};
use crate::segments::{Destination, Incoming};
use crate::transport::{Outbox, PacketSink};
use bellwire_ring::memory::View;

/// Polls for which a message without a receive may stay in the device's memory.
const PATIENCE: u8 = 4;

/// For how many polls a message without a receive may stay in the device's memory, after another
/// one has met its receive: a program often posts the next receive when it has seen that one. As
/// an unexpected message it would be copied twice more.
#[derive(Default)]
pub(crate) struct Patience(u8);

impl Patience {
    /// A message has met its receive.
    #[inline(always)]
    fn renew(&mut self) {
        self.0 = PATIENCE;
    }

    /// Another poll begins.
    #[inline(always)]
    fn poll(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Messages stay no more. Returns whether some may have stayed.
    pub(crate) fn end(&mut self) -> bool {
        std::mem::take(&mut self.0) > 0
    }
}

/// Receives packets in place.
pub(crate) struct InPlace<'a, S> {
    mode: PeerMode,
    matching: &'a mut Matching,
    patience: &'a mut Patience,
    sink: &'a mut S,
    taken: usize,
    /// The last packet found no receive, and stays.
    leaves: bool,
}

impl<'a, S> InPlace<'a, S> {
    #[inline(always)]
    pub(crate) fn new(
        mode: PeerMode,
        matching: &'a mut Matching,
        patience: &'a mut Patience,
        sink: &'a mut S,
    ) -> Self {
        patience.poll();
        InPlace { mode, matching, patience, sink, taken: 0, leaves: false }
    }

    /// How many packets were taken or stay.
    #[inline(always)]
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

impl<S: Sink> PacketSink for InPlace<'_, S> {
    #[inline(always)]
    fn packet(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        peer: Peer,
        immediate: u64,
        bytes: View<'_>,
    ) -> bool {
        let taken = self.take(peers, outbox, peer, immediate, bytes).is_some();
        self.taken += usize::from(taken);
        taken
    }

    #[inline(always)]
    fn leaves(&mut self) -> bool {
        std::mem::take(&mut self.leaves)
    }
}

impl<S: Sink> InPlace<'_, S> {
    /// `None`: nothing was done.
    #[inline(always)]
    fn take(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        peer: Peer,
        tag: u64,
        mut bytes: View<'_>,
    ) -> Option<()> {
        let word = take_word(&mut bytes)?;
        if Head::is_plain(word) {
            return self.take_plain(peers, outbox, peer, (word, tag), bytes);
        }
        self.take_other(peers, outbox, peer, (word, tag), bytes)
    }

    /// A whole message of which the head and the tag say all.
    // It keeps no structures: each would go through memory.
    #[inline(always)]
    fn take_plain(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        peer: Peer,
        (word, tag): (u64, u64),
        bytes: View<'_>,
    ) -> Option<()> {
        let state = &mut peers[peer];
        let (incarnation, credit) = (Head::incarnation_of(word), Head::credit_of(word));
        if !state.has_incarnation(incarnation)
            || !self.mode.admits(peer, Kind::Eager)
            || state.incoming().is_some()
        {
            return None;
        }
        // The receive stays in the queue until its message is there, so that it is never moved.
        let tagged = Head::is_tagged(word);
        let posted = self.matching.posted(tagged);
        let Some(at) = posted.find(|posted| posted.accepts(tag, peer)) else {
            return self.leave();
        };
        let receive = posted.at(at);
        let (into, token) = (receive.single()?, receive.token);
        let (address, room) = (into.address(), into.len());
        into.write_at(0, bytes);
        posted.remove(at);
        state.update_credit(credit);
        if state.count_consumed(PeerState::units(bytes.len())) {
            outbox.push(peer, Control::Credit);
        }
        self.patience.renew();
        let (kind, length) = (CompletionKind::Received, bytes.len());
        let (peer, tag) = (Some(peer), tagged.then_some(tag));
        if length > room {
            let done = TaggedCompletion { peer, tag, address, ..truncated(token, length, room) };
            self.sink.completed(done);
        } else {
            let (outcome, data, overflow) = (Outcome::Success, None, 0);
            self.sink.completed(TaggedCompletion {
                token,
                kind,
                outcome,
                peer,
                tag,
                data,
                length,
                overflow,
                address,
            });
        }
        Some(())
    }

    /// Any other packet.
    #[inline(never)]
    fn take_other(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        peer: Peer,
        (word, tag): (u64, u64),
        mut bytes: View<'_>,
    ) -> Option<()> {
        let head = Head::from_word(word)?;
        let state = &mut peers[peer];
        if !state.has_incarnation(head.incarnation) || !self.mode.admits(peer, head.kind) {
            return None;
        }
        if head.kind == Kind::Segment {
            let at = usize::try_from(take_word(&mut bytes)?).ok()?;
            return self.take_segment(peers, outbox, &head, peer, at, bytes);
        }
        if head.kind != Kind::Eager || state.incoming().is_some() {
            return None;
        }
        let mut envelope = Envelope::read(peer, &head, tag, || take_word(&mut bytes))?;
        if head.flags & SEGMENTED != 0 {
            return self.take_first_segment(peers, &head, envelope, bytes);
        }
        envelope.length = bytes.len();
        // The receive stays in the queue until its message is there, so that it is never moved.
        let posted = self.matching.posted(envelope.tagged);
        let Some(at) = posted.find(|posted| posted.accepts(envelope.tag, peer)) else {
            return self.leave();
        };
        let receive = posted.at(at);
        let (into, token) = (receive.single()?, receive.token);
        into.write_at(0, bytes);
        let (length, address) = (bytes.len().min(into.len()), into.address());
        posted.remove(at);
        state.update_credit(head.credit);
        let receipt = state.consume(&envelope);
        self.complete(outbox, &envelope, receipt, token, length, address);
        Some(())
    }

    /// The first segment of a message that matches a receive.
    #[inline(never)]
    fn take_first_segment(
        &mut self,
        peers: &mut Peers,
        head: &Head,
        envelope: Envelope,
        bytes: View<'_>,
    ) -> Option<()> {
        if !Incoming::can_begin(envelope.length, bytes.len()) {
            return None;
        }
        let posted = self.matching.posted(envelope.tagged);
        let Some(at) = posted.find(|posted| posted.accepts(envelope.tag, envelope.peer)) else {
            return self.leave();
        };
        posted.at(at).single()?;
        let matched = posted.take(at).into_matched();
        matched.into.write_at(0, bytes);
        peers[envelope.peer].update_credit(head.credit);
        let destination = Destination::Receive(matched);
        peers.begin_incoming(Incoming::new(envelope, bytes.len(), destination));
        Some(())
    }

    /// A segment of a message whose receive waits for it.
    #[inline(never)]
    fn take_segment(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        head: &Head,
        peer: Peer,
        at: usize,
        bytes: View<'_>,
    ) -> Option<()> {
        let incoming = peers[peer].incoming()?;
        let Destination::Receive(Matched { into, token, multi_receive: None }) =
            &incoming.destination
        else {
            return None;
        };
        if !incoming.is_next(at, bytes.len()) {
            return None;
        }
        into.write_at(at, bytes);
        let (envelope, token) = (incoming.envelope, *token);
        let (length, address) = (envelope.length.min(into.len()), into.address());
        let is_whole = incoming.advance(bytes.len());
        peers[peer].update_credit(head.credit);
        if is_whole {
            peers.end_incoming(peer);
            let receipt = peers[peer].consume(&envelope);
            self.complete(outbox, &envelope, receipt, token, length, address);
        }
        Some(())
    }

    /// A message has no receive: it may stay.
    #[cold]
    fn leave(&mut self) -> Option<()> {
        self.leaves = self.patience.0 > 0;
        // There is still something to do.
        self.taken += usize::from(self.leaves);
        None
    }

    /// The message is in place. Its sender's notification waits until the poll is over.
    fn complete(
        &mut self,
        outbox: &mut Outbox,
        envelope: &Envelope,
        receipt: Option<Control>,
        token: Token,
        length: usize,
        address: usize,
    ) {
        if let Some(receipt) = receipt {
            outbox.push(envelope.peer, receipt);
        }
        self.patience.renew();
        self.sink.completed(envelope.received(token, length, address, Outcome::Success));
    }
}

/// The completion of a receive that has less room than its message has bytes.
#[cold]
fn truncated(token: Token, length: usize, room: usize) -> TaggedCompletion {
    let done = TaggedCompletion::new(token, CompletionKind::Received, Outcome::Truncated);
    TaggedCompletion { length: room, overflow: length - room, ..done }
}

/// The next word of a message, read once.
#[inline]
fn take_word(bytes: &mut View<'_>) -> Option<u64> {
    if bytes.len() < 8 {
        return None;
    }
    let (first, rest) = bytes.split_at(8);
    let mut word = [0; 8];
    first.read(0, &mut word);
    *bytes = rest;
    Some(u64::from_le_bytes(word))
}
