//! Messages that are copied straight from the device's memory to where they belong.
//!
//! This is the common case: the message, or its first piece, finds a receive when it comes. All
//! other messages go through a buffer of the endpoint ([`Endpoint::progress`]).

use crate::connection::Company;
use crate::control::{Control, say_later};
use crate::endpoint::Endpoint;
use crate::head::{Head, Kind, PIECES};
use crate::peers::Peers;
use crate::pieces::Coming;
use crate::receive::{Destination, Label, Matching, Taken};
use crate::{Outcome, Peer, Sink, Token};
use bellwire::{Address, Completion, Inbox, QueuePair, Result};
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// The parts of an endpoint that a message in place needs: all except its function, which shows the
/// message.
struct InPlace<'a, S> {
    mailbox: QueuePair,
    company: Company,
    peers: &'a mut Peers,
    matching: &'a mut [Matching; 2],
    coming: &'a mut Vec<Peer>,
    outbox: &'a mut VecDeque<(Peer, Control)>,
    sink: &'a mut S,
    taken: usize,
}

impl Endpoint {
    /// Polls the device. Returns how many messages were taken in place, and another completion if
    /// one came.
    #[inline]
    pub(crate) fn look(&mut self, sink: &mut impl Sink) -> Result<(usize, Option<Completion>)> {
        let mut inbox = InPlace {
            mailbox: self.mailbox,
            company: self.company,
            peers: &mut self.peers,
            matching: &mut self.matching,
            coming: &mut self.coming,
            outbox: &mut self.outbox,
            sink,
            taken: 0,
        };
        let next = self.function.poll_with(self.completions, &mut inbox)?;
        Ok((inbox.taken, next))
    }
}

impl<S: Sink> Inbox for InPlace<'_, S> {
    #[inline]
    fn message(
        &mut self,
        queue_pair: QueuePair,
        from: Address,
        immediate: Option<u64>,
        bytes: View<'_>,
    ) -> bool {
        let Some(tag) = immediate.filter(|_| queue_pair == self.mailbox) else { return false };
        let peer = self.peers.at(from.function_address());
        let taken = self.take(peer, tag, bytes).is_some();
        self.taken += usize::from(taken);
        taken
    }
}

impl<S: Sink> InPlace<'_, S> {
    /// `None`: nothing was done.
    #[inline(always)]
    fn take(&mut self, peer: Peer, tag: u64, mut bytes: View<'_>) -> Option<()> {
        let head = Head::from_word(take_word(&mut bytes)?)?;
        let known = &mut self.peers[peer];
        if !known.is(head.incarnation) || !self.company.admits(peer, head.kind) {
            return None;
        }
        if head.kind == Kind::Piece {
            let at = usize::try_from(take_word(&mut bytes)?).ok()?;
            return self.take_piece(&head, peer, at, bytes);
        }
        if head.kind != Kind::Eager || known.coming.is_some() {
            return None;
        }
        let mut label = Label::read(peer, &head, tag, || take_word(&mut bytes))?;
        if head.flags & PIECES != 0 {
            return self.take_first_piece(&head, label, bytes);
        }
        label.length = bytes.len();
        // The receive stays in the queue until its message is there, so that it is never moved.
        let posted = &mut self.matching[usize::from(label.tagged)].posted;
        let at = posted.find(|posted| posted.takes(&label))?;
        let receive = posted.at(at);
        let (into, token) = (receive.single()?, receive.token);
        into.write_at(0, bytes);
        let (length, start) = (bytes.len().min(into.len()), into.address());
        drop(posted.take(at));
        known.learn_credit(&head);
        let receipt = known.consume(&label);
        self.end(&label, receipt, token, length, start);
        Some(())
    }

    /// The first piece of a message that finds a receive.
    #[inline(never)]
    fn take_first_piece(&mut self, head: &Head, label: Label, bytes: View<'_>) -> Option<()> {
        if !Coming::can_begin(label.length, bytes.len()) {
            return None;
        }
        let posted = &mut self.matching[usize::from(label.tagged)].posted;
        let at = posted.find(|posted| posted.takes(&label))?;
        posted.at(at).single()?;
        let (into, token) = posted.take(at).into_spans();
        into.write_at(0, bytes);
        let to = Destination::Receive(Taken { into, token, many: None });
        let known = &mut self.peers[label.peer];
        known.learn_credit(head);
        known.coming = Some(Box::new(Coming { label, come: bytes.len(), to }));
        self.coming.push(label.peer);
        Some(())
    }

    /// A piece of a message whose receive waits for it.
    #[inline(never)]
    fn take_piece(&mut self, head: &Head, peer: Peer, at: usize, bytes: View<'_>) -> Option<()> {
        let known = &mut self.peers[peer];
        let coming = known.coming.as_mut()?;
        let Destination::Receive(Taken { into, many: None, token }) = &coming.to else {
            return None;
        };
        if !coming.goes_on(at, bytes.len()) {
            return None;
        }
        into.write_at(at, bytes);
        let (label, token) = (coming.label, *token);
        let (length, start) = (label.length.min(into.len()), into.address());
        coming.come += bytes.len();
        let whole = coming.is_whole();
        known.learn_credit(head);
        if whole {
            known.coming = None;
            let receipt = known.consume(&label);
            self.coming.retain(|&other| other != peer);
            self.end(&label, receipt, token, length, start);
        }
        Some(())
    }

    /// The message is in place. Its sender's notification waits until the poll is over.
    #[inline(always)]
    fn end(
        &mut self,
        label: &Label,
        receipt: Option<Control>,
        token: Token,
        length: usize,
        start: usize,
    ) {
        if let Some(receipt) = receipt {
            say_later(self.outbox, label.peer, receipt);
        }
        self.sink.done(label.received(token, length, start, Outcome::Success));
    }
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
