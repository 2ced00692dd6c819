//! Buffers for many messages, one behind the other.

use crate::completion::{CompletionKind, Outcome, Sink, TaggedCompletion, Token};
use crate::envelope::Envelope;
use crate::matching::Matched;
use crate::memory::Span;
use crate::slots::Slots;

/// A buffer for many messages.
struct MultiReceive {
    span: Span,
    used: usize,
    /// With fewer free bytes than this it has ended.
    min_free: usize,
    /// Matched messages that are not complete.
    in_flight: usize,
    ended: bool,
    token: Token,
}

/// The buffers of an endpoint.
pub(crate) struct MultiReceives(Slots<MultiReceive>);

impl MultiReceives {
    pub(crate) fn new() -> MultiReceives {
        MultiReceives(Slots::new())
    }

    /// Adds a buffer. Returns its number.
    pub(crate) fn add(&mut self, span: Span, min_free: usize, token: Token) -> u64 {
        let min_free = min_free.max(1);
        self.0.insert(MultiReceive { span, used: 0, min_free, in_flight: 0, ended: false, token })
    }

    /// Matches a message of `length` bytes with the next part of a buffer. The message is in flight
    /// until [`MultiReceives::complete`]. Returns also whether the buffer has ended.
    pub(crate) fn match_next(&mut self, number: u64, length: usize) -> (Matched, bool) {
        let buffer = self.0.find(number).expect("it lasts as long as its receive");
        let part = buffer.span.part(buffer.used, length);
        buffer.used += part.len();
        buffer.ended = buffer.span.len() - buffer.used < buffer.min_free;
        buffer.in_flight += 1;
        let (token, multi_receive) = (buffer.token, Some(number));
        (Matched { into: part.into(), token, multi_receive }, buffer.ended)
    }

    /// Completes a receive, with `length` bytes of its message delivered.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        envelope: &Envelope,
        length: usize,
        matched: Matched,
        outcome: Outcome,
        sink: &mut impl Sink,
    ) {
        let Matched { into, token, multi_receive } = matched;
        sink.completed(envelope.received(token, length, into.address(), outcome));
        if let Some(number) = multi_receive {
            self.end_part(number, sink);
        }
    }

    fn end_part(&mut self, number: u64, sink: &mut impl Sink) {
        let Some(buffer) = self.0.find(number) else { return };
        buffer.in_flight -= 1;
        if buffer.ended && buffer.in_flight == 0 {
            let (kind, outcome) = (CompletionKind::BufferReleased, Outcome::Success);
            sink.completed(TaggedCompletion::new(buffer.token, kind, outcome));
            self.0.remove(number);
        }
    }

    /// The receive of a buffer was cancelled. Delivered messages stay, and the rest of the buffer
    /// is the program's again.
    pub(crate) fn cancel(&mut self, number: u64) {
        let Some(buffer) = self.0.find(number) else { return };
        buffer.ended = true;
        if buffer.in_flight == 0 {
            self.0.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::Peer;

    /// A buffer whose receive was cancelled lasts until its last message is complete.
    #[test]
    fn a_cancelled_buffer_lasts_until_its_last_message() {
        let mut buffers = MultiReceives::new();
        let mut bytes = [0; 64];
        // SAFETY: the test keeps the bytes.
        let span = unsafe { Span::new(bytes.as_mut_ptr(), 64) };
        let idle = buffers.add(span, 8, Token::default());
        buffers.cancel(idle);
        assert_eq!(buffers.0.len(), 0);
        let busy = buffers.add(span, 8, Token::default());
        let (matched, has_ended) = buffers.match_next(busy, 10);
        assert!(!has_ended && matched.into.len() == 10);
        buffers.cancel(busy);
        assert_eq!(buffers.0.len(), 1);
        let (peer, tagged, tag, data, operation) = (Peer(0), false, 0, None, None);
        let envelope = Envelope { peer, tagged, tag, data, length: 10, operation };
        let mut done = Vec::new();
        buffers.complete(&envelope, 10, matched, Outcome::Success, &mut |one| done.push(one));
        let kinds: Vec<_> = done.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [CompletionKind::Received, CompletionKind::BufferReleased]);
        assert_eq!(buffers.0.len(), 0);
        buffers.cancel(busy);
    }
}
