//! Matching: posted receives and unexpected messages, each in the order in which they came.

use crate::completion::{Peer, PostError, Token};
use crate::envelope::Envelope;
use crate::memory::Spans;
use crate::queue::Queue;
use bellwire::RemoteKey;

/// The messages that a receive accepts.
///
/// ```
/// use bellwire_tagged::MatchCriteria;
///
/// // From any peer, with 5 in the upper half of the tag.
/// let criteria = MatchCriteria { source: None, tag: Some((5 << 32, 0xffff_ffff)) };
/// assert_ne!(criteria, MatchCriteria { tag: None, ..criteria });
/// ```
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatchCriteria {
    /// Only from this peer; `None`: from any.
    pub source: Option<Peer>,
    /// Tag, and a mask of its bits to ignore; `None`: messages without a tag.
    pub tag: Option<(u64, u64)>,
}

/// What to do with a message that is peeked at before a receive is posted for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peek {
    /// Nothing.
    Look,
    /// Keep it for [`crate::Endpoint::receive_claimed`] with the same context.
    Claim,
    /// Drop it.
    Discard,
}

/// A receive that waits for a message.
pub(crate) struct Posted {
    source: Option<Peer>,
    tag: u64,
    ignore: u64,
    pub(crate) target: Target,
    pub(crate) token: Token,
}

/// Where a posted receive puts its message.
pub(crate) enum Target {
    Spans(Spans),
    /// The next free part of a buffer for many messages, by number.
    MultiReceive(u64),
}

/// A posted receive, once a message has matched it.
pub(crate) struct Matched {
    pub(crate) into: Spans,
    pub(crate) token: Token,
    /// The buffer for many messages that `into` is a part of.
    pub(crate) multi_receive: Option<u64>,
}

/// A message that found no posted receive.
pub(crate) struct Unexpected {
    pub(crate) envelope: Envelope,
    pub(crate) body: Body,
    /// The context of the claim, if it is claimed.
    pub(crate) claimed: Option<u64>,
}

/// The bytes of an unexpected message.
pub(crate) enum Body {
    Buffered(Box<[u8]>),
    /// Room for the whole message. Segments fill it.
    Partial(Box<[u8]>),
    /// They are the sender's memory.
    Offered(Offer),
}

/// The sender's memory of an offered message, span by span.
pub(crate) struct Offer {
    pub(crate) keys: Vec<RemoteKey>,
}

/// The receives and messages without tags, and those with.
pub(crate) struct Matching {
    posted: [Queue<Posted>; 2],
    unexpected: [Queue<Unexpected>; 2],
    /// Maximum number of posted receives of each kind.
    max_posted: usize,
}

impl MatchCriteria {
    #[inline]
    fn accepts(&self, message: &Unexpected) -> bool {
        let (tag, ignore) = self.tag.unwrap_or_default();
        (tag ^ message.envelope.tag) & !ignore == 0
            && message.claimed.is_none()
            && self.source.is_none_or(|source| source == message.envelope.peer)
    }
}

impl Posted {
    #[inline]
    pub(crate) fn new(criteria: MatchCriteria, target: Target, token: Token) -> Posted {
        let (tag, ignore) = criteria.tag.unwrap_or_default();
        Posted { source: criteria.source, tag, ignore, target, token }
    }

    /// The tag that it waits for.
    pub(crate) fn tag(&self) -> u64 {
        self.tag
    }

    /// The destination, if the receive is for one message.
    #[inline]
    pub(crate) fn single(&self) -> Option<&Spans> {
        match &self.target {
            Target::Spans(into) => Some(into),
            Target::MultiReceive(_) => None,
        }
    }

    /// The receive for one message, matched.
    #[inline]
    pub(crate) fn into_matched(self) -> Matched {
        let Target::Spans(into) = self.target else { unreachable!("the caller looked") };
        Matched { into, token: self.token, multi_receive: None }
    }

    /// Whether it accepts a message with this tag of this peer.
    #[inline(always)]
    pub(crate) fn accepts(&self, tag: u64, peer: Peer) -> bool {
        (self.tag ^ tag) & !self.ignore == 0 && self.source.is_none_or(|source| source == peer)
    }
}

impl Unexpected {
    /// Stores bytes of a partial message.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Body::Partial(body) = &mut self.body {
            body[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The last segment has come.
    pub(crate) fn complete(&mut self) {
        if let Body::Partial(body) = &mut self.body {
            self.body = Body::Buffered(std::mem::take(body));
        }
    }
}

impl Matching {
    pub(crate) fn new(max_posted: usize) -> Matching {
        let posted = [Queue::new(), Queue::new()];
        Matching { posted, unexpected: [Queue::new(), Queue::new()], max_posted }
    }

    /// The posted receives with or without tags.
    #[inline(always)]
    pub(crate) fn posted(&mut self, tagged: bool) -> &mut Queue<Posted> {
        &mut self.posted[usize::from(tagged)]
    }

    /// The unexpected messages with or without tags.
    #[inline(always)]
    pub(crate) fn unexpected(&mut self, tagged: bool) -> &mut Queue<Unexpected> {
        &mut self.unexpected[usize::from(tagged)]
    }

    /// How many messages are unexpected.
    pub(crate) fn unexpected_count(&self) -> usize {
        self.unexpected.iter().map(Queue::len).sum()
    }

    /// Whether one more receive may be posted.
    pub(crate) fn has_room(&self, tagged: bool) -> bool {
        self.posted[usize::from(tagged)].len() < self.max_posted
    }

    /// Posts a receive.
    #[inline]
    pub(crate) fn post(
        &mut self,
        criteria: MatchCriteria,
        target: Target,
        token: Token,
    ) -> Result<(), PostError> {
        let tagged = criteria.tag.is_some();
        if !self.has_room(tagged) {
            return Err(PostError::Again);
        }
        self.posted(tagged).push(Posted::new(criteria, target, token));
        Ok(())
    }

    /// The place of the oldest unexpected message that meets the criteria.
    #[inline]
    pub(crate) fn find_unexpected(&self, criteria: &MatchCriteria) -> Option<u32> {
        let unexpected = &self.unexpected[usize::from(criteria.tag.is_some())];
        unexpected.find(|message| criteria.accepts(message))
    }

    /// Keeps a message that found no receive. Returns its place.
    pub(crate) fn keep(&mut self, envelope: Envelope, body: Body) -> u32 {
        self.unexpected(envelope.tagged).push(Unexpected { envelope, body, claimed: None })
    }

    /// Removes a receive that is `wanted`, those with tags first. Returns whether it has a tag.
    pub(crate) fn remove_posted(
        &mut self,
        wanted: impl Fn(&Posted) -> bool,
    ) -> Option<(bool, Posted)> {
        [true, false].into_iter().find_map(|tagged| {
            let posted = self.posted(tagged);
            let at = posted.find(&wanted)?;
            Some((tagged, posted.take(at)))
        })
    }

    /// Removes the unexpected messages of a peer: `all`, or those whose bytes are not here.
    pub(crate) fn remove_unexpected(&mut self, peer: Peer, all: bool) -> Vec<Unexpected> {
        let gone = |message: &Unexpected| {
            let is_here = matches!(message.body, Body::Buffered(_));
            message.envelope.peer == peer && (all || !is_here)
        };
        self.unexpected.iter_mut().flat_map(|unexpected| unexpected.drain(gone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many receives of each kind wait as there is room for. A receive knows its tag, and its
    /// only destination.
    #[test]
    fn receives_find_room() {
        let mut matching = Matching::new(1);
        let criteria = MatchCriteria { source: None, tag: Some((5, 1)) };
        let post = |matching: &mut Matching, criteria| {
            matching.post(criteria, Target::Spans(Spans::empty()), Token::default()).is_ok()
        };
        assert!(matching.has_room(true) && post(&mut matching, criteria));
        assert!(!matching.has_room(true) && !post(&mut matching, criteria));
        assert!(post(&mut matching, MatchCriteria { tag: None, ..criteria }));
        let (tagged, posted) = matching.remove_posted(|_| true).expect("it waits");
        assert!(tagged && posted.tag() == 5 && posted.single().is_some());
        let buffer = Posted::new(criteria, Target::MultiReceive(1), Token::default());
        assert!(buffer.single().is_none());
    }

    /// Of a peer that is gone, messages whose bytes are here may stay. Those of others do.
    #[test]
    fn messages_of_a_peer_are_removed() {
        let mut matching = Matching::new(1);
        let keep = |matching: &mut Matching, peer, here| {
            let (tagged, tag, data, operation) = (false, 0, None, None);
            let envelope = Envelope { peer, tagged, tag, data, length: 1, operation };
            let bytes: Box<[u8]> = vec![0].into();
            matching
                .keep(envelope, if here { Body::Buffered(bytes) } else { Body::Partial(bytes) });
        };
        let (one, other) = (Peer(0), Peer(1));
        for peer in [one, other] {
            keep(&mut matching, peer, true);
            keep(&mut matching, peer, false);
        }
        let [gone] = &matching.remove_unexpected(one, false)[..] else { panic!("one is gone") };
        assert!(matches!(gone.body, Body::Partial(_)), "its bytes are not all here");
        assert_eq!(matching.unexpected_count(), 3);
        assert_eq!(matching.remove_unexpected(one, true).len(), 1);
        assert_eq!(matching.unexpected_count(), 2);
    }
}
