//! Matching of receives and messages.

use crate::endpoint::Endpoint;
use crate::head::{ACKNOWLEDGE, DATA, Head, Kind, PIECES, TAGGED};
use crate::peers::Known;
use crate::queue::Queue;
use crate::transfer::Offer;
use crate::{Done, Outcome, Peer, Refusal, Sink, Span, Spans, Token, What};
use bellwire_ring::memory::View;

/// The messages that a receive accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Only from this peer; `None`: from any.
    pub from: Option<Peer>,
    /// Tag, and a mask of its bits to ignore; `None`: messages without a tag.
    pub tag: Option<(u64, u64)>,
}

/// What to do with a message that is peeked at before a receive is posted for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peek {
    /// Nothing.
    Look,
    /// Keep it for [`Endpoint::receive_claimed`] with the same context.
    Claim,
    /// Drop it.
    Discard,
}

/// The receives and messages of one kind: with tags, or without.
pub(crate) struct Matching {
    pub(crate) posted: Queue<Posted>,
    pub(crate) unexpected: Queue<Arrived>,
}

impl Matching {
    pub(crate) fn new() -> Self {
        Matching { posted: Queue::new(), unexpected: Queue::new() }
    }
}

/// A waiting receive.
pub(crate) struct Posted {
    from: Option<Peer>,
    tag: u64,
    ignore: u64,
    into: Into,
    pub(crate) token: Token,
}

/// The destination of a message.
enum Into {
    Spans(Spans),
    /// The next free part of a buffer for many messages, by number.
    Many(u64),
}

/// A buffer for many messages.
pub(crate) struct Many {
    span: Span,
    used: usize,
    /// With fewer free bytes than this it has ended.
    least: usize,
    /// Messages in flight into it.
    under_way: usize,
    ended: bool,
    token: Token,
}

/// A message that found no receive.
pub(crate) struct Arrived {
    pub(crate) label: Label,
    content: Content,
    pub(crate) claimed: Option<u64>,
}

/// Everything about a message except its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pub(crate) peer: Peer,
    pub(crate) tagged: bool,
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    pub(crate) length: usize,
    /// The sender's number for it, if it wants to know when it is received.
    pub(crate) number: Option<u64>,
}

enum Content {
    Here(Box<[u8]>),
    /// Room for the whole message, partly filled.
    Coming(Box<[u8]>),
    Offered(Offer),
}

/// A receive that a message has matched.
pub(crate) struct Taken {
    pub(crate) into: Spans,
    pub(crate) token: Token,
    /// The buffer for many messages that `into` is a part of.
    pub(crate) many: Option<u64>,
}

/// The destination of a message in pieces.
pub(crate) enum Destination {
    Receive(Taken),
    /// A place among those that found no receive.
    Unexpected(u32),
    /// Nowhere: it was dropped.
    Nowhere,
}

impl Arrived {
    /// Stores bytes of an incomplete message.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Content::Coming(body) = &mut self.content {
            body[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The last bytes have come.
    pub(crate) fn is_whole(&mut self) {
        if let Content::Coming(body) = &mut self.content {
            self.content = Content::Here(std::mem::take(body));
        }
    }
}

impl Posted {
    /// A receive for messages of all peers.
    pub(crate) fn from_anybody(tag: Option<(u64, u64)>, into: Spans, token: Token) -> Posted {
        let (tag, ignore) = tag.unwrap_or_default();
        Posted { from: None, tag, ignore, into: Into::Spans(into), token }
    }

    /// The destination, if the receive is for one message.
    #[inline]
    pub(crate) fn single(&self) -> Option<&Spans> {
        match &self.into {
            Into::Spans(into) => Some(into),
            Into::Many(_) => None,
        }
    }

    /// The destination and token, if the receive is for one message.
    pub(crate) fn into_spans(self) -> (Spans, Token) {
        let Into::Spans(into) = self.into else { unreachable!("buffers for many are not shared") };
        (into, self.token)
    }

    #[inline]
    pub(crate) fn takes(&self, label: &Label) -> bool {
        (self.tag ^ label.tag) & !self.ignore == 0
            && self.from.is_none_or(|from| from == label.peer)
    }
}

impl Selection {
    #[inline]
    fn takes(&self, arrived: &Arrived) -> bool {
        let (tag, ignore) = self.tag.unwrap_or_default();
        (tag ^ arrived.label.tag) & !ignore == 0
            && arrived.claimed.is_none()
            && self.from.is_none_or(|from| from == arrived.label.peer)
    }
}

impl Label {
    /// The completion of a receive into memory at `at`, with `length` bytes of the message
    /// delivered.
    // Always inlined, like the next one. Otherwise the structure goes through memory, and its
    // reader uses other widths than its writer, which defeats store forwarding.
    #[inline(always)]
    pub(crate) fn received(
        &self,
        token: Token,
        length: usize,
        at: usize,
        outcome: Outcome,
    ) -> Done {
        let left = self.length - length;
        let truncated = left > 0 && outcome == Outcome::Success;
        Done {
            token,
            what: What::Received,
            outcome: if truncated { Outcome::Truncated } else { outcome },
            peer: Some(self.peer),
            tag: self.tag(),
            data: self.data,
            length,
            left,
            at,
        }
    }

    /// The label of an eager message or an offer, from the words behind its head (`head.rs`). If no
    /// word gives the length, it is 0, and the caller knows it.
    #[inline(always)]
    pub(crate) fn read(
        peer: Peer,
        head: &Head,
        tag: u64,
        mut word: impl FnMut() -> Option<u64>,
    ) -> Option<Label> {
        let has = |flag| head.flags & flag != 0;
        let offered = head.kind == Kind::Offer;
        Some(Label {
            peer,
            tagged: has(TAGGED),
            tag,
            data: if has(DATA) { Some(word()?) } else { None },
            number: if offered || has(ACKNOWLEDGE) { Some(word()?) } else { None },
            length: if offered || has(PIECES) { usize::try_from(word()?).ok()? } else { 0 },
        })
    }

    pub(crate) fn tag(&self) -> Option<u64> {
        self.tagged.then_some(self.tag)
    }
}

// Calls of the program.
impl Endpoint {
    /// Receives one message into `into`.
    ///
    /// # Errors
    /// [`Refusal::Again`] if too many receives wait already.
    #[inline]
    pub fn receive(
        &mut self,
        selection: Selection,
        into: Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let matching = &mut self.matching[usize::from(selection.tag.is_some())];
        if matching.unexpected.len() > 0
            && let Some(at) = matching.unexpected.find(|arrived| selection.takes(arrived))
        {
            let arrived = matching.unexpected.take(at);
            self.hand_over(arrived, Taken { into, token, many: None }, sink);
            return Ok(());
        }
        if matching.posted.len() >= self.most_receives {
            return Err(Refusal::Again);
        }
        let (tag, ignore) = selection.tag.unwrap_or_default();
        let into = Into::Spans(into);
        matching.posted.push(Posted { from: selection.from, tag, ignore, into, token });
        Ok(())
    }

    /// Receives many messages into `span`, one behind the other, until less than `least` bytes are
    /// free. Then the span belongs to the program again, which is reported once
    /// ([`What::BufferEnded`]).
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_many(
        &mut self,
        selection: Selection,
        span: Span,
        least: usize,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let side = usize::from(selection.tag.is_some());
        if self.matching[side].posted.len() >= self.most_receives {
            return Err(Refusal::Again);
        }
        let least = least.max(1);
        let many = Many { span, used: 0, least, under_way: 0, ended: false, token };
        let number = self.many.insert(many);
        loop {
            let unexpected = &mut self.matching[side].unexpected;
            let Some(at) = unexpected.find(|arrived| selection.takes(arrived)) else { break };
            let arrived = unexpected.take(at);
            let (into, last) = self.next_part(number, arrived.label.length);
            self.begin_part(number);
            self.hand_over(arrived, Taken { into, token, many: Some(number) }, sink);
            if last {
                return Ok(());
            }
        }
        let (tag, ignore) = selection.tag.unwrap_or_default();
        let into = Into::Many(number);
        self.matching[side].posted.push(Posted { from: selection.from, tag, ignore, into, token });
        Ok(())
    }

    /// Cancels the oldest receive whose token has this context; it completes with
    /// [`Outcome::Cancelled`]. `false`: there is none.
    pub fn cancel(&mut self, context: u64, sink: &mut impl Sink) -> bool {
        for side in [1, 0] {
            let posted = &mut self.matching[side].posted;
            if let Some(at) = posted.find(|posted| posted.token.context == context) {
                self.take_back(side, at, sink);
                return true;
            }
        }
        false
    }

    /// Cancels all receives. Returns how many.
    pub(crate) fn cancel_all(&mut self, sink: &mut impl Sink) -> usize {
        let mut count = 0;
        for side in [1, 0] {
            while let Some(at) = self.matching[side].posted.find(|_| true) {
                self.take_back(side, at, sink);
                count += 1;
            }
        }
        count
    }

    fn take_back(&mut self, side: usize, at: u32, sink: &mut impl Sink) {
        let posted = self.matching[side].posted.take(at);
        if let Into::Many(number) = posted.into {
            // Delivered messages stay, and the rest of the buffer is given back.
            if let Some(many) = self.many.find(number) {
                many.ended = true;
            }
            self.finish_many(number);
        }
        sink.done(Done {
            token: posted.token,
            what: What::Received,
            outcome: Outcome::Cancelled,
            peer: None,
            tag: (side == 1).then_some(posted.tag),
            data: None,
            length: 0,
            left: 0,
            at: 0,
        });
    }

    /// Looks for a message that has come and found no receive. The result is reported as
    /// [`What::Peeked`].
    pub fn peek(&mut self, selection: Selection, how: Peek, token: Token, sink: &mut impl Sink) {
        let side = usize::from(selection.tag.is_some());
        let unexpected = &mut self.matching[side].unexpected;
        let mut done = Done {
            token,
            what: What::Peeked,
            outcome: Outcome::NoMessage,
            peer: None,
            tag: selection.tag.map(|(tag, _)| tag),
            data: None,
            length: 0,
            left: 0,
            at: 0,
        };
        if let Some(at) = unexpected.find(|arrived| selection.takes(arrived)) {
            let arrived = unexpected.at(at);
            let label = arrived.label;
            done.outcome = Outcome::Success;
            (done.peer, done.tag, done.data) = (Some(label.peer), label.tag(), label.data);
            done.length = label.length;
            match how {
                Peek::Look => {}
                Peek::Claim => arrived.claimed = Some(token.context),
                Peek::Discard => {
                    let arrived = unexpected.take(at);
                    self.discard(arrived);
                }
            }
        }
        sink.done(done);
    }

    /// Receives the message that was [claimed](Peek::Claim) with the token's context; without
    /// `into` it is dropped.
    ///
    /// # Errors
    /// [`Refusal::Failed`] if there is none.
    pub fn receive_claimed(
        &mut self,
        tagged: bool,
        into: Option<Spans>,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let unexpected = &mut self.matching[usize::from(tagged)].unexpected;
        let claimed = |arrived: &Arrived| arrived.claimed == Some(token.context);
        let Some(at) = unexpected.find(claimed) else {
            let error = bellwire::Error::WrongState {
                call: "receiving a claimed message",
                state: "without one",
                hint: "claim it first, by peeking with the same context",
            };
            return Err(Refusal::Failed(error));
        };
        let arrived = unexpected.take(at);
        match into {
            Some(into) => self.hand_over(arrived, Taken { into, token, many: None }, sink),
            None => {
                let Label { peer, data, length, .. } = arrived.label;
                let tag = arrived.label.tag();
                self.discard(arrived);
                let (what, outcome) = (What::Received, Outcome::Success);
                let peer = Some(peer);
                sink.done(Done { token, what, outcome, peer, tag, data, length, left: 0, at: 0 });
            }
        }
        Ok(())
    }
}

// Messages of peers.
impl Endpoint {
    /// A message has come. `None`: it is invalid, and is dropped.
    #[inline]
    pub(crate) fn arrive(&mut self, label: Label, body: &[u8], sink: &mut impl Sink) -> Option<()> {
        let Some(taken) = self.take_receive(&label, sink) else {
            let held = self.peers[label.peer].hold(Known::units(label.length));
            return held.then(|| {
                self.keep(label, Content::Here(body.into()));
            });
        };
        self.deliver(&label, body, taken, sink);
        Some(())
    }

    /// The destination of a message in pieces. `None`: it is invalid, and is dropped.
    pub(crate) fn find_destination(
        &mut self,
        label: &Label,
        sink: &mut impl Sink,
    ) -> Option<Destination> {
        if let Some(taken) = self.take_receive(label, sink) {
            return Some(Destination::Receive(taken));
        }
        let held = self.peers[label.peer].hold(Known::units(label.length));
        held.then(|| {
            let content = Content::Coming(vec![0; label.length].into());
            Destination::Unexpected(self.keep(*label, content))
        })
    }

    /// A message waits at its sender. `None`: it is invalid, and is dropped.
    pub(crate) fn arrive_offer(
        &mut self,
        label: Label,
        offer: Offer,
        sink: &mut impl Sink,
    ) -> Option<()> {
        if let Some(taken) = self.take_receive(&label, sink) {
            self.fetch(label, offer, taken, sink);
            return Some(());
        }
        let held = self.peers[label.peer].hold_offer();
        held.then(|| {
            self.keep(label, Content::Offered(offer));
        })
    }

    /// The receive that matches a message. It is removed from the queue, unless it is for many
    /// messages and has room left. A message for such a buffer is in flight until
    /// [`Endpoint::end_part`].
    #[inline]
    fn take_receive(&mut self, label: &Label, sink: &mut impl Sink) -> Option<Taken> {
        let matching = &mut self.matching[usize::from(label.tagged)];
        let Some(at) = matching.posted.find(|posted| posted.takes(label)) else {
            let (into, token) = self.take_shared(label, sink)?;
            return Some(Taken { into, token, many: None });
        };
        if matching.posted.at(at).single().is_some() {
            let (into, token) = matching.posted.take(at).into_spans();
            return Some(Taken { into, token, many: None });
        }
        let (into, token, number) = self.part_of_many(label, at);
        self.begin_part(number);
        Some(Taken { into, token, many: Some(number) })
    }

    /// Keeps a message that found no receive. Returns its place.
    fn keep(&mut self, label: Label, content: Content) -> u32 {
        let unexpected = &mut self.matching[usize::from(label.tagged)].unexpected;
        unexpected.push(Arrived { label, content, claimed: None })
    }

    /// Copies a message to its destination.
    #[inline]
    fn deliver(&mut self, label: &Label, body: &[u8], taken: Taken, sink: &mut impl Sink) {
        taken.into.write_at(0, View::of(body));
        let length = body.len().min(taken.into.len());
        self.consumed(label);
        self.received(label, length, taken, Outcome::Success, sink);
    }

    /// Completes a receive, with `length` bytes of its message delivered.
    #[inline]
    pub(crate) fn received(
        &mut self,
        label: &Label,
        length: usize,
        taken: Taken,
        outcome: Outcome,
        sink: &mut impl Sink,
    ) {
        let Taken { into, token, many } = taken;
        sink.done(label.received(token, length, into.address(), outcome));
        if let Some(many) = many {
            self.end_part(many, sink);
        }
    }

    /// Releases a message that came with its bytes.
    #[inline]
    pub(crate) fn consumed(&mut self, label: &Label) {
        if let Some(receipt) = self.peers[label.peer].consume(label) {
            self.tell(label.peer, receipt);
        }
    }

    /// Gives a message that waited to a receive.
    #[cold]
    pub(crate) fn hand_over(&mut self, arrived: Arrived, taken: Taken, sink: &mut impl Sink) {
        match arrived.content {
            Content::Here(body) => {
                self.peers[arrived.label.peer].let_go(Known::units(arrived.label.length));
                self.deliver(&arrived.label, &body, taken, sink);
            }
            Content::Coming(body) => {
                self.move_coming(&arrived.label, &body, Destination::Receive(taken));
            }
            Content::Offered(offer) => {
                self.peers[arrived.label.peer].let_offer_go();
                self.fetch(arrived.label, offer, taken, sink);
            }
        }
    }

    fn discard(&mut self, arrived: Arrived) {
        match arrived.content {
            Content::Here(_) => {
                self.peers[arrived.label.peer].let_go(Known::units(arrived.label.length));
                self.consumed(&arrived.label);
            }
            Content::Coming(body) => {
                self.move_coming(&arrived.label, &body, Destination::Nowhere);
            }
            Content::Offered(_) => {
                self.peers[arrived.label.peer].let_offer_go();
                if let Some(number) = arrived.label.number {
                    self.tell_finished(arrived.label.peer, number, 0);
                }
            }
        }
    }

    /// Drops the messages of a peer that is gone, if their bytes are not here. The others can still
    /// be received, unless `all` are to go.
    pub(crate) fn forget(&mut self, peer: Peer, all: bool) {
        for matching in &mut self.matching {
            let gone = |arrived: &Arrived| {
                let is_here = matches!(arrived.content, Content::Here(_));
                arrived.label.peer == peer && (all || !is_here)
            };
            for arrived in matching.unexpected.drain(gone) {
                match arrived.content {
                    Content::Here(_) | Content::Coming(_) => {
                        self.peers[peer].let_go(Known::units(arrived.label.length));
                    }
                    Content::Offered(_) => self.peers[peer].let_offer_go(),
                }
            }
        }
    }
}

// Buffers for many messages.
impl Endpoint {
    /// The next part of the buffer that the receive at `at` posted, its token, and its number. With
    /// the last part, the receive leaves the queue.
    fn part_of_many(&mut self, label: &Label, at: u32) -> (Spans, Token, u64) {
        let posted = &mut self.matching[usize::from(label.tagged)].posted;
        let Into::Many(number) = posted.at(at).into else { unreachable!("the caller looked") };
        let token = posted.at(at).token;
        let (into, last) = self.next_part(number, label.length);
        if last {
            self.matching[usize::from(label.tagged)].posted.take(at);
        }
        (into, token, number)
    }

    fn next_part(&mut self, number: u64, length: usize) -> (Spans, bool) {
        let many = self.many.find(number).expect("it lasts as long as its receive");
        let part = many.span.part(many.used, length);
        many.used += part.len();
        many.ended = many.span.len() - many.used < many.least;
        (part.into(), many.ended)
    }

    /// A message is in flight into a buffer.
    fn begin_part(&mut self, number: u64) {
        let many = self.many.find(number).expect("it lasts as long as its receive");
        many.under_way += 1;
    }

    /// A message for a buffer has come, or failed.
    pub(crate) fn end_part(&mut self, number: u64, sink: &mut impl Sink) {
        let Some(many) = self.many.find(number) else { return };
        many.under_way -= 1;
        if many.ended {
            self.end_many(number, sink);
        }
    }

    /// Gives back a buffer that takes no more messages, once the last has come.
    fn end_many(&mut self, number: u64, sink: &mut impl Sink) {
        if let Some(token) = self.finish_many(number) {
            sink.done(Done {
                token,
                what: What::BufferEnded,
                outcome: Outcome::Success,
                peer: None,
                tag: None,
                data: None,
                length: 0,
                left: 0,
                at: 0,
            });
        }
    }

    fn finish_many(&mut self, number: u64) -> Option<Token> {
        let many = self.many.find(number)?;
        if many.under_way > 0 {
            return None;
        }
        self.many.remove(number).map(|many| many.token)
    }
}
