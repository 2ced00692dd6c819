//! The sender's side: eager messages, segments and offers.

use crate::completion::{
    CompletionKind, Outcome, Peer, PostError, Sink, TaggedCompletion, Token, is_no_room,
};
use crate::head::{ACKNOWLEDGE, DATA, Kind, SEGMENTED, TAGGED};
use crate::memory::Spans;
use crate::peers::PeerState;
use crate::segments::{Burst, SEGMENT_HEAD_BYTES, SEGMENTED_BYTES, UnsentSegments};
use crate::slots::Slots;
use crate::transport::{COUNTED_AS_SENT, Transport};
use bellwire::{MemoryRegion, RemoteKey, Rights, Status};
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// A message to send.
///
/// ```
/// use bellwire_tagged::{Peer, SendMode, Span, Spans, TaggedMessage, Token};
///
/// let bytes = *b"hello";
/// // SAFETY: the bytes outlive the message, which is not sent.
/// let body: Spans = unsafe { Span::new(bytes.as_ptr(), bytes.len()) }.into();
/// let message = TaggedMessage {
///     to: Peer(0),
///     tag: Some(7),
///     data: None,
///     body: &body,
///     token: Token::default(),
///     mode: SendMode::Transmit,
/// };
/// assert_eq!(message.body.len(), 5);
/// ```
#[must_use = "`Endpoint::send` sends it"]
#[derive(Clone, Copy, Debug)]
pub struct TaggedMessage<'a> {
    /// The receiver.
    pub to: Peer,
    /// For receives with tags; `None`: for those without.
    pub tag: Option<u64>,
    /// A data word beside the message.
    pub data: Option<u64>,
    /// The bytes, in at most four spans.
    pub body: &'a Spans,
    /// Comes back in [`TaggedCompletion`], if the message has not finished when the call returns.
    pub token: Token,
    /// When it counts as sent.
    pub mode: SendMode,
}

/// When a message counts as sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// When the call returns: the bytes are copied. For messages of up to
    /// [`crate::Endpoint::inject_bytes`] bytes.
    Inject,
    /// When its memory can be reused.
    Transmit,
    /// When a receive has it.
    Delivery,
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendStatus {
    /// It has finished; there will be no [`TaggedCompletion`].
    Complete,
    /// Its [`TaggedCompletion`] comes, unless it was [`SendMode::Inject`].
    Pending,
}

/// A message that its receiver is not done with.
struct PendingSend {
    peer: Peer,
    token: Token,
    tag: Option<u64>,
    data: Option<u64>,
    length: usize,
    /// Reported only if it fails.
    silent: bool,
    /// Our memory, registered for the receiver.
    regions: Vec<MemoryRegion>,
    /// The copy of the message, if it was copied.
    _copy: Option<Box<[u8]>>,
}

/// The sends of an endpoint.
pub(crate) struct Sends {
    pending: Slots<PendingSend>,
    /// Those of the pending sends whose segments are copied, and which are complete when all
    /// packets for the peer have left: peer and number.
    leaving: VecDeque<(Peer, u64)>,
    /// Peers that the rest of a segmented message must still be sent to.
    unsent: VecDeque<Peer>,
    burst: Burst,
    max_pending: usize,
}

impl Sends {
    /// `first`: peers may repeat the numbers of an endpoint that was here before.
    pub(crate) fn new(max_pending: usize, first: u32) -> Sends {
        Sends {
            pending: Slots::from(first),
            leaving: VecDeque::new(),
            unsent: VecDeque::new(),
            burst: Burst::new(),
            max_pending,
        }
    }

    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
    ) -> Result<SendStatus, PostError> {
        let is_plain = message.data.is_none() && message.mode != SendMode::Delivery;
        if let Some(body) = message.body.as_one().filter(|_| is_plain)
            && let Some(sent) = transport.send_plain(message.to, message.tag, body)
        {
            return sent.map(|()| SendStatus::Complete).map_err(PostError::from);
        }
        self.send_other(transport, message)
    }

    /// As [`Sends::send`], for a message that others follow at once. A short one waits for them.
    pub(crate) fn send_more(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
    ) -> Result<SendStatus, PostError> {
        let is_plain = message.data.is_none() && message.mode != SendMode::Delivery;
        if let Some(body) = message.body.as_one().filter(|_| is_plain)
            && let Some(held) = transport.hold(message.to, message.tag, body)
        {
            return held.map(|()| SendStatus::Complete).map_err(PostError::from);
        }
        self.send(transport, message)
    }

    #[inline(never)]
    fn send_other(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
    ) -> Result<SendStatus, PostError> {
        let length = message.body.len();
        if transport.peer(message.to).lost.is_some() {
            return Self::report_lost(transport, message.to);
        }
        let units = PeerState::units(length);
        if length <= transport.eager_bytes() && transport.peer(message.to).may_send(units) {
            return self.send_eager(transport, message, length, units);
        }
        if length <= SEGMENTED_BYTES && !self.burst.forbids(message.to, length) {
            if transport.peer(message.to).may_send_segments(units) {
                self.burst.add(message.to, length);
                return self.send_segmented(transport, message, units);
            }
            if transport.peer(message.to).awaits_credit() {
                return Err(PostError::Again);
            }
        }
        self.offer(transport, message)
    }

    #[cold]
    fn report_lost(transport: &mut Transport, to: Peer) -> Result<SendStatus, PostError> {
        let lost = transport.peer(to).lost.take();
        Err(PostError::Lost(lost.expect("the caller looked")))
    }

    /// Sends a whole message in one packet, or its first segment of `length` bytes.
    fn send_eager(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
        length: usize,
        units: u32,
    ) -> Result<SendStatus, PostError> {
        let TaggedMessage { to, tag, data, body, mode, .. } = message;
        let mut flags = message.flags();
        let operation = match mode {
            SendMode::Delivery => {
                flags |= ACKNOWLEDGE;
                Some(self.insert(transport, PendingSend::of(&message))?)
            }
            _ => None,
        };
        let whole = (length < body.len()).then_some(body.len() as u64);
        if whole.is_some() {
            flags |= SEGMENTED;
        }
        let (words, tag) = ([data, operation, whole], tag.unwrap_or_default());
        let context = if operation.is_none() { COUNTED_AS_SENT } else { 0 };
        let sent =
            transport.send_gathered(to, Kind::Eager, flags, words, tag, context, |scratch| {
                body.segment(0, length, scratch)
            });
        if let Err(error) = sent {
            if let Some(number) = operation {
                self.pending.remove(number);
            }
            return Err(error.into());
        }
        transport.peer(to).count_sent(units);
        Ok(if operation.is_some() { SendStatus::Pending } else { SendStatus::Complete })
    }

    /// Sends a message of `units` in segments.
    #[cold]
    fn send_segmented(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
        units: u32,
    ) -> Result<SendStatus, PostError> {
        let TaggedMessage { to, body, .. } = message;
        if transport.peer(to).unsent.is_some() {
            return Err(PostError::Again);
        }
        let first = transport.eager_bytes();
        transport.hold_packets();
        let status = self.send_eager(transport, message, first, units);
        let Ok(status) = status else {
            transport.flush();
            return status;
        };
        let (mut at, limit) = (first, transport.packet_bytes - SEGMENT_HEAD_BYTES);
        while at < body.len() {
            let length = (body.len() - at).min(limit);
            if !send_segment(transport, to, at, |scratch| body.segment(at, length, scratch)) {
                let mut bytes = vec![0; body.len() - at].into_boxed_slice();
                body.read_from(at, &mut bytes);
                transport.peer(to).unsent = Some(UnsentSegments::new(bytes, at));
                self.unsent.push_back(to);
                break;
            }
            at += length;
        }
        // Reported before it has left it might stay: a program that has all completions may wait
        // for its peer by other means, and make no progress.
        transport.flush();
        if message.mode == SendMode::Transmit
            && !transport.has_left(to)
            && let Ok(number) = self.insert(transport, PendingSend::of(&message))
        {
            self.leaving.push_back((to, number));
            return Ok(SendStatus::Pending);
        }
        Ok(status)
    }

    /// Whether messages are complete when their packets have left.
    #[inline]
    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Whether the packets of such a message have left.
    pub(crate) fn has_left(&self, transport: &Transport) -> bool {
        self.leaving.iter().any(|&(to, _)| transport.has_left(to))
    }

    /// Completes the messages whose packets have left. Returns how many.
    pub(crate) fn complete_left(
        &mut self,
        transport: &mut Transport,
        sink: &mut impl Sink,
    ) -> usize {
        let before = self.leaving.len();
        for _ in 0..before {
            let Some((to, number)) = self.leaving.pop_front() else { break };
            if transport.has_left(to) {
                self.complete(transport, number, Outcome::Success, sink);
            } else {
                self.leaving.push_back((to, number));
            }
        }
        before - self.leaving.len()
    }

    /// Something has come.
    #[inline(always)]
    pub(crate) fn end_burst(&mut self) {
        self.burst = Burst::new();
    }

    /// Whether segments wait for room.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends further segments of messages that found no room. Returns how many.
    pub(crate) fn send_segments(&mut self, transport: &mut Transport) -> usize {
        let (mut sent, limit) = (0, transport.packet_bytes - SEGMENT_HEAD_BYTES);
        transport.hold_packets();
        for _ in 0..self.unsent.len() {
            let Some(to) = self.unsent.pop_front() else { break };
            let Some(mut unsent) = transport.peer(to).unsent.take() else { continue };
            while let Some((at, bytes)) = unsent.next(limit) {
                let length = bytes.len();
                if !send_segment(transport, to, at, |_| View::of(bytes)) {
                    transport.peer(to).unsent = Some(unsent);
                    self.unsent.push_back(to);
                    break;
                }
                unsent.advance(length);
                sent += 1;
            }
        }
        transport.flush();
        sent
    }

    /// Offers a message that is long, or exceeds the credit.
    #[cold]
    fn offer(
        &mut self,
        transport: &mut Transport,
        message: TaggedMessage<'_>,
    ) -> Result<SendStatus, PostError> {
        let TaggedMessage { to, tag, data, body, mode, .. } = message;
        body.check_count("the spans of a message")?;
        let mut pending = PendingSend::of(&message);
        if mode == SendMode::Inject {
            let (copy, span) = body.copied();
            pending.regions = transport.register([span], Rights::REMOTE_READ)?;
            pending._copy = Some(copy);
        } else {
            let spans = body.spans().iter().copied();
            pending.regions = transport.register(spans, Rights::REMOTE_READ)?;
        }
        let keys: Vec<RemoteKey> = pending.regions.iter().map(MemoryRegion::remote_key).collect();
        let number = self.insert(transport, pending)?;
        let (flags, tag) = (message.flags(), tag.unwrap_or_default());
        let sent = transport.send_packet(to, Kind::Offer, flags, tag, |writer| {
            if let Some(data) = data {
                writer.word(data);
            }
            writer.word(number);
            writer.word(body.len() as u64);
            for key in keys {
                writer.key(key);
            }
        });
        if let Err(error) = sent {
            self.remove(transport, number);
            return Err(error.into());
        }
        Ok(SendStatus::Pending)
    }

    /// Numbers a send, or releases it if there are too many.
    fn insert(&mut self, transport: &mut Transport, send: PendingSend) -> Result<u64, PostError> {
        if self.pending.len() >= self.max_pending {
            transport.release(send.regions);
            return Err(PostError::Again);
        }
        Ok(self.pending.insert(send))
    }

    /// Ends a send: peers can no longer read its memory.
    fn remove(&mut self, transport: &mut Transport, number: u64) -> Option<PendingSend> {
        let mut send = self.pending.remove(number)?;
        transport.release(std::mem::take(&mut send.regions));
        Some(send)
    }

    /// A peer is done with a message.
    pub(crate) fn finished(
        &mut self,
        transport: &mut Transport,
        from: Peer,
        number: u64,
        status: u64,
        sink: &mut impl Sink,
    ) {
        // A number that belongs to another peer ends nothing.
        if self.pending.find(number).is_none_or(|send| send.peer != from) {
            return;
        }
        let outcome = match status {
            0 => Outcome::Success,
            _ => Outcome::Failed(Status::ProtocolViolation),
        };
        self.complete(transport, number, outcome, sink);
    }

    fn complete(
        &mut self,
        transport: &mut Transport,
        number: u64,
        outcome: Outcome,
        sink: &mut impl Sink,
    ) {
        let Some(send) = self.remove(transport, number) else { return };
        let PendingSend { peer, token, tag, data, length, silent, .. } = send;
        if !silent || outcome != Outcome::Success {
            let sent = TaggedCompletion::new(token, CompletionKind::Sent, outcome);
            sink.completed(TaggedCompletion { peer: Some(peer), tag, data, length, ..sent });
        }
    }

    /// A peer is gone: sends to it fail.
    pub(crate) fn peer_gone(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        why: Status,
        sink: &mut impl Sink,
    ) {
        self.leaving.retain(|&(to, _)| to != peer);
        for number in self.pending.numbers(|send| send.peer == peer) {
            self.complete(transport, number, Outcome::Failed(why), sink);
        }
        let state = transport.peer(peer);
        if state.unsent.take().is_some() {
            state.lost = Some(why);
        }
    }

    /// The receivers that are not done.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = Peer> {
        self.pending.iter().map(|send| send.peer)
    }

    /// Takes memory that peers may read back for the program.
    pub(crate) fn close(&mut self, transport: &mut Transport) {
        self.leaving.clear();
        for number in self.pending.numbers(|_| true) {
            self.remove(transport, number);
        }
    }
}

/// Sends the segment at offset `at`. `false`: there is no room now.
fn send_segment<'s>(
    transport: &'s mut Transport,
    to: Peer,
    at: usize,
    bytes: impl FnOnce(&'s mut [u8]) -> View<'s>,
) -> bool {
    let words = [Some(at as u64), None, None];
    let sent = transport.send_gathered(to, Kind::Segment, 0, words, 0, COUNTED_AS_SENT, bytes);
    // Another completion reports that the peer is gone, which voids this message too.
    !sent.is_err_and(|error| is_no_room(&error))
}

impl TaggedMessage<'_> {
    #[inline(always)]
    fn flags(&self) -> u8 {
        (if self.tag.is_some() { TAGGED } else { 0 }) | if self.data.is_some() { DATA } else { 0 }
    }
}

impl PendingSend {
    fn of(message: &TaggedMessage<'_>) -> PendingSend {
        let TaggedMessage { to, tag, data, body, token, mode } = *message;
        PendingSend {
            peer: to,
            token,
            tag,
            data,
            length: body.len(),
            silent: mode == SendMode::Inject,
            regions: Vec::new(),
            _copy: None,
        }
    }
}
