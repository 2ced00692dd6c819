//! Messages that are copied straight from the device's memory to where they belong.
//!
//! Most are of this kind: they, or their first piece, find a receive when they come. All others, and all else that endpoints say to each other,
//! go through a buffer of the endpoint's ([`Endpoint::progress`]).

use crate::connection::Company;
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::head::{Head, Kind, PIECES};
use crate::peers::Peers;
use crate::pieces::Coming;
use crate::receive::{Destination, Label, Matching, Taken};
use crate::{Outcome, Peer, Sink};
use bellwire::{Address, Completion, Inbox, QueuePair, Result};
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// What an endpoint needs for a message in place: all but its function, which shows the message.
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
    /// Looks at the wire. Returns how many messages were taken in place, and what came otherwise.
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
    #[inline]
    fn take(&mut self, peer: Peer, tag: u64, mut bytes: View<'_>) -> Option<()> {
        let head = Head::from_word(take_word(&mut bytes)?)?;
        if !self.peers[peer].is(head.incarnation) || !self.company.admits(peer, head.kind) {
            return None;
        }
        match head.kind {
            Kind::Eager if self.peers[peer].coming.is_none() => {
                let label = Label::eager(peer, &head, tag, || take_word(&mut bytes))?;
                self.take_message(&head, label, bytes)
            }
            Kind::Piece => {
                let at = usize::try_from(take_word(&mut bytes)?).ok()?;
                self.take_piece(&head, peer, at, bytes)
            }
            _ => None,
        }
    }

    /// A whole message, or the first piece of one, for which a receive waits.
    #[inline]
    fn take_message(&mut self, head: &Head, mut label: Label, bytes: View<'_>) -> Option<()> {
        let is_first = head.flags & PIECES != 0;
        if !is_first {
            label.length = bytes.len();
        } else if !Coming::can_begin(label.length, bytes.len()) {
            return None;
        }
        let taken = self.matching[usize::from(label.tagged)].take_single(&label)?;
        let known = &mut self.peers[label.peer];
        known.learn(head);
        taken.into.write_at(0, bytes);
        if is_first {
            let to = Destination::Receive(taken);
            known.coming = Some(Box::new(Coming { label, come: bytes.len(), to }));
            self.coming.push(label.peer);
        } else {
            self.end(&label, taken);
        }
        Some(())
    }

    /// A piece of a message whose receive waits for it.
    fn take_piece(&mut self, head: &Head, peer: Peer, at: usize, bytes: View<'_>) -> Option<()> {
        let known = &mut self.peers[peer];
        let coming = known.coming.as_mut()?;
        let Destination::Receive(Taken { into, many: None, .. }) = &coming.to else { return None };
        if !coming.goes_on(at, bytes.len()) {
            return None;
        }
        into.write_at(at, bytes);
        coming.come += bytes.len();
        let whole = coming.is_whole();
        known.learn(head);
        if whole && let Some(coming) = known.coming.take() {
            self.coming.retain(|&other| other != peer);
            if let Destination::Receive(taken) = coming.to {
                self.end(&coming.label, taken);
            }
        }
        Some(())
    }

    /// A message is where it belongs. What its sender is to be told waits until the look is over.
    #[inline]
    fn end(&mut self, label: &Label, taken: Taken) {
        let length = label.length.min(taken.into.len());
        if let Some(receipt) = self.peers[label.peer].consume(label) {
            self.outbox.push_back((label.peer, receipt));
        }
        self.sink.done(taken.done(label, length, Outcome::Success));
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
