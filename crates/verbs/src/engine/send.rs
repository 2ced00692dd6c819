//! Posting a message, and the eager path: the message leaves inside one packet, at once.

use super::dyn_transport::Handle;
use super::queue_pair::QueuePairContext;
use super::regions::Regions;
use super::rendezvous::{Data, QueuedMessage};
use super::undelivered::Undelivered;
use super::work::{Attempt, Outcome, Posted, Work};
use super::{Core, POLL_BUDGET};
use crate::Message;
use crate::completion_queue::CompletionRing;
use crate::descriptor::Payload;
use crate::table::Table;
use bellwire_device::{
    Buffer, Completion, Error, Gate, Kind, Operation as Finished, PacketHeader, QueuePair, Receipt,
    Result, Status, Transport,
};
use bellwire_ring::memory::View;

impl Core {
    /// Posts a message to `queue_pair`. After an error `send` is unchanged; otherwise its payload
    /// has been taken out.
    #[inline(always)]
    pub(super) fn post_send<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        if self.sends_at_once(transport, queue_pair.into(), send) {
            return Ok(());
        }
        self.post_waiting_send(transport, queue_pair, send)
    }

    /// The fast path: sends a short message that can leave at once. `false`: this path does not
    /// apply, and nothing has changed.
    #[inline(always)]
    pub(super) fn sends_at_once<T: Transport>(
        &mut self,
        transport: &mut T,
        from: Handle,
        send: &mut Message<'_>,
    ) -> bool {
        let slot = from.slot();
        let Some(qp) = self.queue_pairs.find_mut(slot, from.generation()) else { return false };
        let Some(link) = qp.link_for(&self.links, send.to) else { return false };
        let Some((head, body)) = send.payload.parts(&self.regions) else { return false };
        let length = head.len() + body.len();
        // State that is needed after the send is looked up again: the compiler would spill a kept
        // reference to the stack.
        let ring = qp.send_completions;
        let (from, to) = (qp.handle.number, qp.routing.cache.to.queue_pair);
        let header = PacketHeader::with_immediate(Kind::Send, to, from, send.immediate);
        if length > self.limits.eager_bytes
            || !qp.sends.is_empty()
            || (send.signaled || transport.delivers_later())
                && !self.completion_queues[ring].has_room()
            || transport.delivers_later() && qp.posted_sends >= qp.send_depth
        {
            return false;
        }
        let Some(sent) = transport.send_message(link, header, head, body) else { return false };
        if transport.delivers_later()
            && let Receipt::Pending(receipt) = sent
        {
            qp.posted_sends += 1;
            qp.tally.sends_posted += 1;
            let reserved = self.completion_queues[ring].reserve();
            debug_assert!(reserved, "there was room a moment ago");
            let Message { context, signaled, .. } = *send;
            let to = qp.routing.cache.to;
            let buffer = send.take_buffer();
            let message = Undelivered { receipt, slot, signaled, to, context, length, buffer };
            self.await_delivery(link, message);
            return true;
        }
        qp.complete_sent(&mut self.completion_queues, send, length);
        true
    }

    /// Posts a message that cannot leave at once, or not as one packet. After an error `send` is
    /// unchanged; otherwise its payload has been taken out.
    #[cold]
    pub(super) fn post_waiting_send<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        let (link, to) = self.route(transport, queue_pair, send.to.address())?;
        if transport.delivers_later() && transport.watch_gate(link, to.queue_pair).is_none() {
            // The usual cause is unread packets, acknowledgements among them. A program that posts
            // much and polls little would otherwise find the window closed most of the time.
            transport.poll(self, POLL_BUDGET);
            if self.sends_at_once(transport, queue_pair.into(), send) {
                return Ok(());
            }
        }
        // Waiting descriptors go first. If all of them leave now, this message takes the fast path.
        // Without this, a program that posts one message per completion would never return to the
        // fast path.
        let qp = self.queue_pairs.at(queue_pair.slot);
        if qp.is_some_and(|qp| !qp.sends.is_empty()) && self.catch_up(transport, queue_pair.slot) {
            return self.post_send(transport, queue_pair, send);
        }
        let length = send.len();
        let (maximum, what) = match send.payload {
            Payload::Buffer(_) => (self.limits.message_bytes, "a message"),
            _ => (self.limits.eager_bytes, "data inside a descriptor"),
        };
        if length > maximum {
            return Err(Error::TooLong { length, maximum, what });
        }
        let slot = self.room_to_post(queue_pair)?;
        if let Payload::Buffer(buffer) = &send.payload
            && !registered(&self.regions, buffer)
        {
            return Err(Error::NoSuchRegion);
        }
        let data = match std::mem::replace(&mut send.payload, Payload::Inline(&[])) {
            Payload::Inline(bytes) => Data::Copied(bytes.into()),
            Payload::Gathered(head, body) => Data::Copied([head, &body.to_vec()].concat().into()),
            Payload::Buffer(buffer) => Data::Buffer(buffer),
        };
        let work = Work::Message(QueuedMessage {
            data,
            immediate: send.immediate,
            length,
            granted: false,
        });
        let Message { context, signaled, .. } = *send;
        self.accept(transport, slot, Posted { link, to, context, signaled, work });
        Ok(())
    }

    /// Tries to send a waiting message.
    pub(super) fn attempt_message<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        posted: Posted,
    ) -> Attempt {
        match transport.watch_gate(posted.link, posted.to.queue_pair) {
            Some(Gate::Open) => {}
            // The link is being set up, or the receiver said STOP.
            None | Some(Gate::Stopped) => return Attempt::Blocked(posted),
            Some(Gate::Closed) => {
                return self.fail(transport, slot, posted, Status::NoSuchQueuePair);
            }
        }
        let Work::Message(message) = &posted.work else { unreachable!("the caller looked") };
        if message.length > self.limits.eager_bytes {
            return self.offer(transport, slot, posted);
        }
        let number = self.queue_pairs[slot].handle.number;
        let (to, immediate) = (posted.to.queue_pair, message.immediate);
        let header = PacketHeader::with_immediate(Kind::Send, to, number, immediate);
        let length = message.length;
        match transport.send(posted.link, header, &[], message.data.view()) {
            Ok(Receipt::Pending(receipt)) if transport.delivers_later() => {
                let link = posted.link;
                self.await_delivery(link, Undelivered::of(posted, slot, length, receipt));
                Attempt::Started
            }
            Ok(_) => self.finish_posted(slot, posted, Outcome::success(length)),
            Err(why) => self.unsent(transport, slot, posted, why),
        }
    }
}

impl Payload<'_> {
    /// The bytes, as head and body; `None` if their region is no longer registered.
    #[inline(always)]
    pub(super) fn parts(&self, regions: &Regions) -> Option<(&[u8], View<'_>)> {
        match self {
            Payload::Inline(bytes) => Some((&[], View::of(bytes))),
            Payload::Gathered(head, body) => Some((head, *body)),
            Payload::Buffer(buffer) => {
                registered(regions, buffer).then(|| (&[] as &[u8], buffer.view()))
            }
        }
    }
}

impl QueuePairContext {
    /// Counts a message that has arrived at once. Completes it if it is signaled.
    #[inline(always)]
    pub(super) fn complete_sent(
        &mut self,
        queues: &mut Table<CompletionRing>,
        send: &mut Message<'_>,
        length: usize,
    ) {
        self.fast_sends.count(length);
        let buffer = send.take_buffer();
        if !send.signaled {
            return;
        }
        let (to, status) = (self.routing.cache.to, Status::Success);
        // SAFETY: a reference to a number. Volatile, because the compiler would load the field
        // behind it, too: see `take_buffer` for what a wide load costs.
        let context = unsafe { std::ptr::read_volatile(&send.context) };
        let kind = Finished::Send;
        let completion = queues[self.send_completions].push(Completion::new(
            self.handle,
            to,
            kind,
            status,
            context,
            length,
        ));
        // Stored afterwards: the compiler would build a conditional value in memory first.
        if buffer.is_some() {
            completion.buffer = buffer;
        }
    }
}

/// Whether a buffer is the program's own or part of a region that is registered here (M-05).
#[inline]
pub(super) fn registered(regions: &Regions, buffer: &Buffer) -> bool {
    buffer.region().is_none_or(|region| regions.holds(region))
}
