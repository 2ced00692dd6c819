//! Messages that a program takes in place, without a receive.

use super::Core;
use super::routing::destination;
use bellwire_device::{
    Address, FunctionAddress, Kind, LinkId, PacketHeader, QueuePair, Sink, Status, Verdict,
};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

/// Takes messages in place, in the device's memory ([`crate::Function::poll_with`]). For programs
/// that learn from a message's first bytes where the others belong: this saves the copy through a
/// receive's buffer.
///
/// ```
/// use bellwire::{Address, Inbox, QueuePair, View};
///
/// /// A table of numbers that peers fill: each message has a place and what belongs there.
/// struct Table([u64; 100]);
///
/// impl Inbox for Table {
///     fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, bytes: View<'_>) -> bool {
///         let mut entry = [[0; 8]; 2];
///         if bytes.len() != entry.as_flattened().len() {
///             return false;
///         }
///         bytes.read(0, entry.as_flattened_mut());
///         let [place, value] = entry.map(u64::from_le_bytes);
///         match self.0.get_mut(place as usize) {
///             Some(number) => *number = value,
///             None => return false,
///         }
///         true
///     }
/// }
/// ```
pub trait Inbox {
    /// A whole message has come for `queue_pair`, and the program has seen all messages before it.
    /// `true`: taken; it has no completion. `false`: it goes to a receive as usual.
    ///
    /// A hostile peer may change `bytes` at any time: copy them before you check them.
    fn message(
        &mut self,
        queue_pair: QueuePair,
        from: Address,
        immediate: Option<u64>,
        bytes: View<'_>,
    ) -> bool;

    /// Whether the message that was just not taken stays in its link until the next poll, with all
    /// behind it. Then the program may know by then where it belongs. Say so for a few polls only:
    /// the peer's other messages wait, too.
    fn leaves(&mut self) -> bool {
        false
    }
}

/// The engine behind an inbox, which sees messages first.
pub(super) struct InboxSink<'a> {
    pub(super) core: &'a mut Core,
    /// The slot of the queue that is polled.
    pub(super) queue: u32,
    pub(super) inbox: &'a mut dyn Inbox,
}

impl InboxSink<'_> {
    /// Offers a message, if nothing of its queue pair waits to be reported before it. `None`: it
    /// goes to a receive.
    #[inline(always)]
    fn offer(
        &mut self,
        from: FunctionAddress,
        header: &PacketHeader,
        payload: View<'_>,
    ) -> Option<Verdict> {
        let core = &mut *self.core;
        let qp = destination(&mut core.queue_pairs, from, header)?;
        let is_next = qp.is_in_order()
            && !core.bypass.is_full()
            && core.completion_queues[self.queue].is_empty();
        if qp.receive_completions != self.queue || !(is_next || planted("shown-too-early")) {
            return None;
        }
        let from = Address::new(from.node, from.function, header.source);
        if self.inbox.message(qp.handle, from, header.immediate(), payload) {
            qp.inbox_taken.count(payload.len());
            return Some(Verdict::Taken);
        }
        self.inbox.leaves().then(|| core.stalled())
    }
}

impl Sink for InboxSink<'_> {
    #[inline(always)]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        words: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let header = PacketHeader::from_words(words);
        if header.kind == Kind::Send as u8
            && let Some(verdict) = self.offer(from, &header, payload)
        {
            return verdict;
        }
        if header.kind == Kind::Batch as u8 {
            let InboxSink { core, queue, inbox } = self;
            let queue = *queue;
            core.learn(link, from);
            return core.on_batch(link, header, payload, |core, words, payload| {
                InboxSink { core, queue, inbox: &mut **inbox }.packet(link, from, words, payload)
            });
        }
        self.core.packet(link, from, words, payload)
    }

    fn delivered(&mut self, link: LinkId, count: u64) {
        self.core.delivered(link, count);
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.core.link_down(link, peer, why);
    }

    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        self.core.tick(counters);
    }
}
