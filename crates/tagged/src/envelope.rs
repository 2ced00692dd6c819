//! The envelope of a message: everything about it except its bytes.

use crate::completion::{CompletionKind, Outcome, Peer, TaggedCompletion, Token};
use crate::head::{ACKNOWLEDGE, DATA, Head, Kind, SEGMENTED, TAGGED};

/// Everything about a message except its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) peer: Peer,
    pub(crate) tagged: bool,
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    pub(crate) length: usize,
    /// The sender's number for it, if it wants to know when it is received.
    pub(crate) operation: Option<u64>,
}

impl Envelope {
    /// The envelope of an eager message or an offer, from the words behind its head (`head.rs`). If
    /// no word gives the length, it is 0, and the caller knows it.
    // Always inlined, like the next one. Otherwise the structure goes through memory, and its
    // reader uses other widths than its writer, which defeats store forwarding.
    #[inline(always)]
    pub(crate) fn read(
        peer: Peer,
        head: &Head,
        tag: u64,
        mut word: impl FnMut() -> Option<u64>,
    ) -> Option<Envelope> {
        let has = |flag| head.flags & flag != 0;
        let offered = head.kind == Kind::Offer;
        Some(Envelope {
            peer,
            tagged: has(TAGGED),
            tag,
            data: if has(DATA) { Some(word()?) } else { None },
            operation: if offered || has(ACKNOWLEDGE) { Some(word()?) } else { None },
            length: if offered || has(SEGMENTED) { usize::try_from(word()?).ok()? } else { 0 },
        })
    }

    /// The completion of a receive into memory at `address`, with `length` bytes of the message
    /// delivered.
    #[inline(always)]
    pub(crate) fn received(
        &self,
        token: Token,
        length: usize,
        address: usize,
        outcome: Outcome,
    ) -> TaggedCompletion {
        let overflow = self.length - length;
        let truncated = overflow > 0 && outcome == Outcome::Success;
        TaggedCompletion {
            token,
            kind: CompletionKind::Received,
            outcome: if truncated { Outcome::Truncated } else { outcome },
            peer: Some(self.peer),
            tag: self.tag(),
            data: self.data,
            length,
            overflow,
            address,
        }
    }

    /// The completion of a peek at the message.
    pub(crate) fn peeked(&self, token: Token) -> TaggedCompletion {
        let (peer, tag, data, length) = (Some(self.peer), self.tag(), self.data, self.length);
        let peeked = TaggedCompletion::new(token, CompletionKind::Peeked, Outcome::Success);
        TaggedCompletion { peer, tag, data, length, ..peeked }
    }

    pub(crate) fn tag(&self) -> Option<u64> {
        self.tagged.then_some(self.tag)
    }
}
