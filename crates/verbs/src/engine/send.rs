//! Posting a message, and the eager path: the message leaves inside one packet, at once.

use super::rendezvous::{Data, QueuedMessage};
use super::undelivered::Undelivered;
use super::waiting::{Outcome, Posted, Tried, Work};
use super::*;
use crate::Message;
use crate::descriptor::{Destination, Payload};
use bellwire_device::{
    Address, Buffer, Kind, Operation as Finished, PacketFlags, PacketHeader, QueuePair, Receipt,
    SendError,
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
        if self.sends_at_once(transport, queue_pair, send) {
            return Ok(());
        }
        self.post_waiting_send(transport, queue_pair, send)
    }

    /// The fast path: sends a short message that can leave at once. `false`: this path does not
    /// apply, and nothing has changed.
    #[inline(always)]
    fn sends_at_once<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> bool {
        let QueuePair { slot, generation, .. } = queue_pair;
        let Some(entry) = self.queue_pairs.find_mut(slot, generation) else { return false };
        let Some(link) = entry.way(&self.links, send.to) else { return false };
        let Some((head, body)) = send.payload.parts(&self.regions) else { return false };
        let length = head.len() + body.len();
        // State that is needed after the send is looked up again: the compiler would spill a kept
        // reference to the stack.
        let ring = entry.send_completions;
        let header = message_header(entry.handle.number, entry.routing.lately(), send.immediate);
        if length > self.limits.eager_bytes
            || !entry.sends.is_empty()
            || (send.signaled || T::DELIVERS_LATER) && !self.completion_queues[ring].has_room()
            || T::DELIVERS_LATER && entry.posted_sends >= entry.send_depth
        {
            return false;
        }
        let Some(sent) = transport.send_message(link, header, head, body) else { return false };
        if T::DELIVERS_LATER
            && let Receipt::Pending(receipt) = sent
        {
            entry.posted_sends += 1;
            entry.tally.sends_posted += 1;
            let reserved = self.completion_queues[ring].reserve();
            debug_assert!(reserved, "there was room a moment ago");
            let Message { context, signaled, .. } = *send;
            let to = entry.routing.lately();
            let buffer = send.take_buffer();
            let message = Undelivered { receipt, slot, signaled, to, context, length, buffer };
            self.await_delivery(link, message);
            return true;
        }
        entry.tell_sent(&mut self.completion_queues, send, length);
        true
    }

    /// Posts a message that cannot leave at once, or not as one packet.
    #[cold]
    fn post_waiting_send<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        let (link, to) = self.route(transport, queue_pair, send.to.address())?;
        if T::DELIVERS_LATER && transport.watch_gate(link, to.queue_pair).is_none() {
            // The usual cause is unread packets, acknowledgements among them. A program that posts
            // much and polls little would otherwise find the window closed most of the time.
            transport.poll(self, POLL_BUDGET);
            if self.sends_at_once(transport, queue_pair, send) {
                return Ok(());
            }
        }
        // Waiting descriptors go first. If all of them leave now, this message takes the fast path.
        // Without this, a program that posts one message per completion would never return to the
        // fast path.
        let entry = self.queue_pairs.at(queue_pair.slot);
        if entry.is_some_and(|entry| !entry.sends.is_empty())
            && self.catch_up(transport, queue_pair.slot)
        {
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
            Payload::Gathered(head, body) => {
                let mut bytes = vec![0; length];
                bytes[..head.len()].copy_from_slice(head);
                body.read(0, &mut bytes[head.len()..]);
                Data::Copied(bytes.into())
            }
            Payload::Buffer(buffer) => Data::Buffer(buffer),
        };
        let work = Work::Message(QueuedMessage { data, immediate: send.immediate, length });
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
    ) -> Tried {
        match transport.watch_gate(posted.link, posted.to.queue_pair) {
            Some(Gate::Open) => {}
            // The link is being set up, or the receiver said STOP.
            None | Some(Gate::Stopped) => return Tried::Waits(posted),
            Some(Gate::Closed) => {
                return self.give_up(transport, slot, posted, Status::NoSuchQueuePair);
            }
        }
        let Work::Message(message) = &posted.work else { unreachable!("the caller looked") };
        if message.length > self.limits.eager_bytes {
            return self.offer(transport, slot, posted);
        }
        let number = self.queue_pairs[slot].handle.number;
        let header = message_header(number, posted.to, message.immediate);
        let length = message.length;
        match transport.send(posted.link, header, &[], message.data.view()) {
            Ok(Receipt::Pending(receipt)) if T::DELIVERS_LATER => {
                let link = posted.link;
                self.await_delivery(link, Undelivered::of(posted, slot, length, receipt));
                Tried::Gone
            }
            Ok(_) => {
                self.finish_posted(slot, posted, Outcome::success(length));
                Tried::Gone
            }
            Err(SendError::Busy) => Tried::Waits(posted),
            Err(SendError::Down(status)) => self.give_up(transport, slot, posted, status),
        }
    }

    /// Ends a descriptor that cannot be started.
    pub(super) fn give_up<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
        status: Status,
    ) -> Tried {
        let length = self.take_back(transport, &mut posted);
        self.finish_posted(slot, posted, Outcome::failure(status, length));
        Tried::Gone
    }

    /// Frees the key or the operation number of a descriptor that is still in its queue. Returns
    /// the number of bytes that have moved.
    pub(super) fn take_back<T: Transport>(
        &mut self,
        transport: &mut T,
        posted: &mut Posted,
    ) -> usize {
        match &mut posted.work {
            Work::Message(message) => {
                self.withdraw(transport, message);
                0
            }
            Work::Put(put) => {
                let (operation, done) = put.under_way();
                operation.and_then(|id| self.end_operation(id));
                done
            }
            Work::Get(get) => get.done as usize,
            Work::Atomic(_) | Work::Accept(_) => 0,
        }
    }

    /// The link and the address to send to.
    pub(super) fn route<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        to: Option<Address>,
    ) -> Result<(LinkId, Address)> {
        let entry = self
            .queue_pairs
            .find(queue_pair.slot, queue_pair.generation)
            .ok_or_else(|| Error::NoSuchQueuePair)?;
        match (entry.routing.route(), to) {
            (Route::Connected { link, peer }, None) => Ok((link, peer)),
            (Route::Unconnected, Some(to)) => {
                if is_channel(to.queue_pair) || entry.channel.is_some() {
                    same_channel(queue_pair.number, to.queue_pair)?;
                }
                Ok((self.link_to(transport, to.function_address())?, to))
            }
            (route, to) => Err(no_route(route, to)),
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

impl Entry {
    /// The link to a descriptor's destination, if there is one and the queue pair may send there.
    #[inline(always)]
    pub(super) fn way(&mut self, links: &Links, named: Destination) -> Option<LinkId> {
        match self.routing.again(named, links.epoch()) {
            Some(link) => Some(link),
            None => look_up(links, self, named),
        }
    }

    /// Counts a message that has arrived at once. Completes it if it is signaled.
    #[inline(always)]
    pub(super) fn tell_sent(
        &mut self,
        queues: &mut Table<CompletionRing>,
        send: &mut Message<'_>,
        length: usize,
    ) {
        self.sent_at_once.count(length);
        let buffer = send.take_buffer();
        if !send.signaled {
            return;
        }
        let completion = queues[self.send_completions].push(Completion {
            queue_pair: self.handle,
            peer: self.routing.lately(),
            operation: Finished::Send,
            status: Status::Success,
            context: send.context,
            length,
            buffer: None,
            has_immediate: false,
            word: 0,
            rest: None,
        });
        // Stored afterwards: the compiler would build a conditional value in memory first.
        if buffer.is_some() {
            completion.buffer = buffer;
        }
    }
}

/// The link to a descriptor's destination, if it is in the cache and the queue pair may send there.
/// Remembers it for the next message.
#[inline(never)]
fn look_up(links: &Links, entry: &mut Entry, named: Destination) -> Option<LinkId> {
    let way = match (entry.routing.route(), named.address()) {
        (Route::Connected { link, peer }, None) => (link, peer),
        (Route::Unconnected, Some(to)) => {
            let number = entry.handle.number;
            if is_channel(to.queue_pair | number) && to.queue_pair != number {
                return None;
            }
            (links.cached(to.function_address())?, to)
        }
        _ => return None,
    };
    entry.routing.remember(named, links.epoch(), way);
    Some(way.0)
}

#[inline]
fn is_channel(number: u32) -> bool {
    number >= Address::CHANNEL_BASE
}

/// Members of different channels never exchange messages (H-22).
fn same_channel(ours: u32, theirs: u32) -> Result<()> {
    match (is_channel(ours), is_channel(theirs)) {
        (true, true) if ours == theirs => Ok(()),
        (true, _) => Err(Error::BadDestination(
            "a channel sends only to its own number: use Address::channel with it",
        )),
        _ => Err(Error::BadDestination(
            "only a member of a channel can send to it: open the channel first",
        )),
    }
}

#[cold]
pub(super) fn no_route(route: Route, to: Option<Address>) -> Error {
    let wrong = |state, hint| Error::WrongState { call: "posting a send", state, hint };
    match (route, to) {
        (Route::Connecting, _) => wrong("connecting", "wait for the connection first"),
        (Route::Disconnected { .. }, _) => {
            wrong("disconnected", "connect it again, or use another one")
        }
        (Route::Connected { .. }, _) => Error::BadDestination(
            "this queue pair is connected and sends to its peer only: name no destination",
        ),
        (Route::Unconnected, _) => Error::BadDestination(
            "this queue pair is not connected: name a destination with Message::to, or connect it",
        ),
    }
}

/// Whether a buffer is the program's own or part of a region that is registered here (M-05).
#[inline]
pub(super) fn registered(regions: &Regions, buffer: &Buffer) -> bool {
    buffer.region().is_none_or(|region| regions.holds(region))
}

#[inline]
fn message_header(from: u32, to: Address, immediate: Option<u64>) -> PacketHeader {
    let mut header =
        PacketHeader::new(Kind::Send, to.queue_pair, from, immediate.unwrap_or_default());
    header.flags.set(PacketFlags::IMMEDIATE, immediate.is_some());
    header
}
