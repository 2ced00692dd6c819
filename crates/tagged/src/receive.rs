//! The receiver's side: posted receives meet messages.

use crate::completion::{CompletionKind, Outcome, Peer, PostError, Sink, TaggedCompletion, Token};
use crate::connection::PeerMode;
use crate::control::Control;
use crate::envelope::Envelope;
use crate::fetch::Fetches;
use crate::in_place::{InPlace, Patience};
use crate::matching::{Body, MatchCriteria, Matched, Matching, Offer, Peek, Target, Unexpected};
use crate::memory::{Span, Spans};
use crate::multi_receive::MultiReceives;
use crate::peers::PeerState;
use crate::segments::{Destination, Incoming};
use crate::shared::SharedReceives;
use crate::transport::Transport;
use bellwire::Status;
use bellwire_ring::memory::View;

/// The receives of an endpoint, and the messages that have come.
pub(crate) struct Receives {
    matching: Matching,
    patience: Patience,
    buffers: MultiReceives,
    pub(crate) fetches: Fetches,
    /// For messages that match no receive of the endpoint's own.
    shared: Option<SharedReceives>,
}

// Calls of the program; `Endpoint` documents them.
impl Receives {
    /// `max_posted`: maximum number of posted receives of each kind.
    pub(crate) fn new(max_posted: usize) -> Receives {
        Receives {
            matching: Matching::new(max_posted),
            patience: Patience::default(),
            buffers: MultiReceives::new(),
            fetches: Fetches::new(),
            shared: None,
        }
    }

    #[inline]
    pub(crate) fn receive(
        &mut self,
        transport: &mut Transport,
        criteria: MatchCriteria,
        into: Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        if let Some(at) = self.matching.find_unexpected(&criteria) {
            let message = self.matching.unexpected(criteria.tag.is_some()).take(at);
            let matched = Matched { into, token, multi_receive: None };
            self.deliver_unexpected(transport, message, matched, sink);
            return Ok(());
        }
        self.matching.post(criteria, Target::Spans(into), token)
    }

    pub(crate) fn receive_many(
        &mut self,
        transport: &mut Transport,
        criteria: MatchCriteria,
        (span, min_free): (Span, usize),
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        let tagged = criteria.tag.is_some();
        if !self.matching.has_room(tagged) {
            return Err(PostError::Again);
        }
        let number = self.buffers.add(span, min_free, token);
        while let Some(at) = self.matching.find_unexpected(&criteria) {
            let message = self.matching.unexpected(tagged).take(at);
            let (matched, ended) = self.buffers.match_next(number, message.envelope.length);
            self.deliver_unexpected(transport, message, matched, sink);
            if ended {
                return Ok(());
            }
        }
        self.matching.post(criteria, Target::MultiReceive(number), token)
    }

    pub(crate) fn cancel(&mut self, context: u64, sink: &mut impl Sink) -> bool {
        self.cancel_one(|token| token.context == context, sink)
    }

    /// Cancels all receives. Returns how many.
    pub(crate) fn cancel_all(&mut self, sink: &mut impl Sink) -> usize {
        std::iter::from_fn(|| self.cancel_one(|_| true, sink).then_some(())).count()
    }

    fn cancel_one(&mut self, wanted: impl Fn(&Token) -> bool, sink: &mut impl Sink) -> bool {
        let removed = self.matching.remove_posted(|posted| wanted(&posted.token));
        let Some((tagged, posted)) = removed else { return false };
        if let Target::MultiReceive(number) = posted.target {
            self.buffers.cancel(number);
        }
        let tag = tagged.then_some(posted.tag());
        let (kind, outcome) = (CompletionKind::Received, Outcome::Cancelled);
        sink.completed(TaggedCompletion {
            tag,
            ..TaggedCompletion::new(posted.token, kind, outcome)
        });
        true
    }

    pub(crate) fn peek(
        &mut self,
        transport: &mut Transport,
        criteria: MatchCriteria,
        action: Peek,
        token: Token,
        sink: &mut impl Sink,
    ) {
        let tag = criteria.tag.map(|(tag, _)| tag);
        let (kind, outcome) = (CompletionKind::Peeked, Outcome::NoMessage);
        let mut peeked = TaggedCompletion { tag, ..TaggedCompletion::new(token, kind, outcome) };
        if let Some(at) = self.matching.find_unexpected(&criteria) {
            let unexpected = self.matching.unexpected(criteria.tag.is_some());
            let envelope = unexpected.at(at).envelope;
            peeked = envelope.peeked(token);
            match action {
                Peek::Look => {}
                Peek::Claim => unexpected.at(at).claimed = Some(token.context),
                Peek::Discard => {
                    let message = unexpected.take(at);
                    self.discard(transport, message);
                }
            }
        }
        sink.completed(peeked);
    }

    pub(crate) fn receive_claimed(
        &mut self,
        transport: &mut Transport,
        tagged: bool,
        into: Option<Spans>,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        let unexpected = self.matching.unexpected(tagged);
        let Some(at) = unexpected.find(|message| message.claimed == Some(token.context)) else {
            return Err(PostError::Failed(bellwire::Error::WrongState {
                call: "receiving a claimed message",
                state: "without one",
                hint: "claim it first, by peeking with the same context",
            }));
        };
        let message = unexpected.take(at);
        match into {
            Some(into) => {
                let matched = Matched { into, token, multi_receive: None };
                self.deliver_unexpected(transport, message, matched, sink);
            }
            None => {
                let envelope = message.envelope;
                self.discard(transport, message);
                let kind = CompletionKind::Received;
                sink.completed(TaggedCompletion { kind, ..envelope.peeked(token) });
            }
        }
        Ok(())
    }

    /// Messages that match no receive of the endpoint's own take those of `receives`.
    pub(crate) fn share(&mut self, receives: &SharedReceives) {
        self.shared = Some(receives.clone());
    }

    pub(crate) fn match_shared(&mut self, transport: &mut Transport, sink: &mut impl Sink) {
        let Some(shared) = self.shared.clone() else { return };
        for tagged in [false, true] {
            while let Some((message, matched)) =
                shared.take_unexpected(tagged, self.matching.unexpected(tagged))
            {
                self.deliver_unexpected(transport, message, matched, sink);
            }
        }
    }

    /// How many messages are unexpected.
    pub(crate) fn unexpected(&self) -> usize {
        self.matching.unexpected_count()
    }
}

// Messages of peers.
impl Receives {
    /// Looks at packets in the device's memory.
    #[inline(always)]
    pub(crate) fn in_place<'a, S>(&'a mut self, mode: PeerMode, sink: &'a mut S) -> InPlace<'a, S> {
        InPlace::new(mode, &mut self.matching, &mut self.patience, sink)
    }

    /// Before sleep: messages stay in the device's memory no more. Returns whether some may have
    /// stayed.
    pub(crate) fn end_patience(&mut self) -> bool {
        self.patience.end()
    }

    /// A whole message has come. `None`: it is invalid, and is dropped.
    #[inline]
    pub(crate) fn eager(
        &mut self,
        transport: &mut Transport,
        envelope: Envelope,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        let Some(matched) = self.match_posted(transport, &envelope, sink) else {
            let reserved = transport.peer(envelope.peer).reserve(PeerState::units(envelope.length));
            return reserved.then(|| {
                self.matching.keep(envelope, Body::Buffered(bytes.into()));
            });
        };
        self.deliver(transport, &envelope, bytes, matched, sink);
        Some(())
    }

    /// A message waits at its sender. `None`: it is invalid, and is dropped.
    #[cold]
    pub(crate) fn offered(
        &mut self,
        transport: &mut Transport,
        envelope: Envelope,
        offer: Offer,
        sink: &mut impl Sink,
    ) -> Option<()> {
        if let Some(matched) = self.match_posted(transport, &envelope, sink) {
            self.fetches.begin(transport, &mut self.buffers, (envelope, offer, matched), sink);
            return Some(());
        }
        transport.peer(envelope.peer).reserve_offer().then(|| {
            self.matching.keep(envelope, Body::Offered(offer));
        })
    }

    /// The first segment of a message has come. `None`: it is invalid, and is dropped.
    pub(crate) fn first_segment(
        &mut self,
        transport: &mut Transport,
        envelope: Envelope,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        if !Incoming::can_begin(envelope.length, bytes.len()) {
            return None;
        }
        let destination = match self.match_posted(transport, &envelope, sink) {
            Some(matched) => Destination::Receive(matched),
            None => {
                let units = PeerState::units(envelope.length);
                if !transport.peer(envelope.peer).reserve(units) {
                    return None;
                }
                let body = Body::Partial(vec![0; envelope.length].into());
                Destination::Unexpected(self.matching.keep(envelope, body))
            }
        };
        transport.peers.begin_incoming(Incoming::new(envelope, 0, destination));
        self.segment(transport, envelope.peer, 0, bytes, sink)
    }

    /// The segment at offset `at` has come. `None`: it belongs to no message.
    pub(crate) fn segment(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        at: usize,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        let incoming = transport.peer(peer).incoming()?;
        if !incoming.is_next(at, bytes.len()) {
            self.abandon_incoming(transport, peer, Status::PeerGone, sink);
            return Some(());
        }
        match &incoming.destination {
            Destination::Receive(matched) => matched.into.write_at(at, View::of(bytes)),
            Destination::Unexpected(place) => {
                let unexpected = self.matching.unexpected(incoming.envelope.tagged);
                unexpected.at(*place).write(at, bytes);
            }
            Destination::Discarded => {}
        }
        if incoming.advance(bytes.len()) {
            let Incoming { envelope, destination, .. } = transport.peers.end_incoming(peer)?;
            match destination {
                Destination::Receive(matched) => {
                    consumed(transport, &envelope);
                    let length = envelope.length.min(matched.into.len());
                    self.buffers.complete(&envelope, length, matched, Outcome::Success, sink);
                }
                Destination::Unexpected(place) => {
                    self.matching.unexpected(envelope.tagged).at(place).complete();
                }
                Destination::Discarded => consumed(transport, &envelope),
            }
        }
        Some(())
    }

    /// The remaining segments of a peer's message will not come.
    #[cold]
    pub(crate) fn abandon_incoming(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        why: Status,
        sink: &mut impl Sink,
    ) {
        let Some(incoming) = transport.peers.end_incoming(peer) else { return };
        let Incoming { envelope, destination, .. } = incoming;
        let units = PeerState::units(envelope.length);
        match destination {
            Destination::Receive(matched) => {
                self.buffers.complete(&envelope, 0, matched, Outcome::Failed(why), sink);
            }
            Destination::Unexpected(place) => {
                self.matching.unexpected(envelope.tagged).take(place);
                transport.peer(peer).release(units);
            }
            Destination::Discarded => {}
        }
        // It counts as consumed, so that the sender's window does not shrink for good.
        transport.peer(peer).count_consumed(units);
    }

    /// The receive that matches a message. It is removed from the queue, unless it is for many
    /// messages and has room left.
    #[inline]
    fn match_posted(
        &mut self,
        transport: &mut Transport,
        envelope: &Envelope,
        sink: &mut impl Sink,
    ) -> Option<Matched> {
        let posted = self.matching.posted(envelope.tagged);
        let Some(at) = posted.find(|posted| posted.accepts(envelope.tag, envelope.peer)) else {
            return self.match_posted_shared(transport, envelope, sink);
        };
        let Target::MultiReceive(number) = posted.at(at).target else {
            return Some(posted.take(at).into_matched());
        };
        let (matched, ended) = self.buffers.match_next(number, envelope.length);
        if ended {
            posted.take(at);
        }
        Some(matched)
    }

    /// The shared receive for a message that matches no receive of the endpoint's own.
    #[cold]
    fn match_posted_shared(
        &mut self,
        transport: &mut Transport,
        envelope: &Envelope,
        sink: &mut impl Sink,
    ) -> Option<Matched> {
        // Earlier messages go first: a receive may have been posted for them meanwhile.
        self.match_shared(transport, sink);
        self.shared.as_ref()?.take_posted(envelope)
    }

    /// Copies a message to its destination.
    #[inline]
    fn deliver(
        &mut self,
        transport: &mut Transport,
        envelope: &Envelope,
        bytes: &[u8],
        matched: Matched,
        sink: &mut impl Sink,
    ) {
        matched.into.write_at(0, View::of(bytes));
        let length = bytes.len().min(matched.into.len());
        consumed(transport, envelope);
        self.buffers.complete(envelope, length, matched, Outcome::Success, sink);
    }

    /// Gives an unexpected message to a receive.
    #[cold]
    fn deliver_unexpected(
        &mut self,
        transport: &mut Transport,
        message: Unexpected,
        matched: Matched,
        sink: &mut impl Sink,
    ) {
        let Unexpected { envelope, body, .. } = message;
        match body {
            Body::Buffered(bytes) => {
                transport.peer(envelope.peer).release(PeerState::units(envelope.length));
                self.deliver(transport, &envelope, &bytes, matched, sink);
            }
            Body::Partial(bytes) => {
                redirect_incoming(transport, &envelope, &bytes, Destination::Receive(matched));
            }
            Body::Offered(offer) => {
                transport.peer(envelope.peer).release_offer();
                self.fetches.begin(transport, &mut self.buffers, (envelope, offer, matched), sink);
            }
        }
    }

    fn discard(&mut self, transport: &mut Transport, message: Unexpected) {
        let Unexpected { envelope, body, .. } = message;
        match body {
            Body::Buffered(_) => {
                transport.peer(envelope.peer).release(PeerState::units(envelope.length));
                consumed(transport, &envelope);
            }
            Body::Partial(bytes) => {
                redirect_incoming(transport, &envelope, &bytes, Destination::Discarded);
            }
            Body::Offered(_) => {
                transport.peer(envelope.peer).release_offer();
                if let Some(operation) = envelope.operation {
                    let finished = Control::Finished { operation, status: 0 };
                    transport.send_control(envelope.peer, finished);
                }
            }
        }
    }
}

// Fetches, and peers that are gone.
impl Receives {
    /// Posts fetches that had to wait. Returns how many.
    pub(crate) fn post_fetches(
        &mut self,
        transport: &mut Transport,
        sink: &mut impl Sink,
    ) -> usize {
        self.fetches.post_waiting(transport, &mut self.buffers, sink)
    }

    /// A fetch has ended.
    pub(crate) fn fetched(
        &mut self,
        transport: &mut Transport,
        number: u64,
        status: Status,
        sink: &mut impl Sink,
    ) {
        self.fetches.finish(transport, &mut self.buffers, number, status, sink);
    }

    /// A peer is gone: what waits for it fails.
    pub(crate) fn peer_gone(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        why: Status,
        sink: &mut impl Sink,
    ) {
        self.fetches.fail_unposted(transport, &mut self.buffers, peer, why, sink);
        self.abandon_incoming(transport, peer, why, sink);
    }

    /// Drops the messages of a peer that is gone, if their bytes are not here. The others can still
    /// be received, unless `all` are to go.
    pub(crate) fn forget(&mut self, transport: &mut Transport, peer: Peer, all: bool) {
        for Unexpected { envelope, body, .. } in self.matching.remove_unexpected(peer, all) {
            match body {
                Body::Buffered(_) | Body::Partial(_) => {
                    transport.peer(peer).release(PeerState::units(envelope.length));
                }
                Body::Offered(_) => transport.peer(peer).release_offer(),
            }
        }
    }
}

/// Releases the credit of a message that came with its bytes, and tells its sender if it is due.
#[inline]
fn consumed(transport: &mut Transport, envelope: &Envelope) {
    if let Some(receipt) = transport.peer(envelope.peer).consume(envelope) {
        transport.send_control(envelope.peer, receipt);
    }
}

/// A receive takes over an unexpected message that lacks segments, or the program discards it.
/// `body` has the bytes so far.
fn redirect_incoming(transport: &mut Transport, envelope: &Envelope, body: &[u8], to: Destination) {
    let peer = transport.peer(envelope.peer);
    peer.release(PeerState::units(envelope.length));
    let incoming = peer.incoming().expect("a partial message is incoming");
    if let Destination::Receive(matched) = &to {
        matched.into.write_at(0, View::of(&body[..incoming.received()]));
    }
    incoming.destination = to;
}
