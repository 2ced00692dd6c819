//! Messages that a program takes in place, without a receive.

use super::*;
use bellwire_device::{Address, Kind, PacketFlags, PacketHeader, QueuePair, Sink};
use bellwire_ring::canary::planted;

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
}

/// The engine behind an inbox, which sees messages first.
pub(super) struct Shown<'a> {
    pub(super) core: &'a mut Core,
    /// The slot of the queue that is polled.
    pub(super) queue: u32,
    pub(super) inbox: &'a mut dyn Inbox,
}

impl Shown<'_> {
    /// Offers a message, if nothing of its queue pair waits to be reported before it.
    #[inline(always)]
    fn is_taken(&mut self, from: FunctionAddress, header: [u64; 3], payload: View<'_>) -> bool {
        let [first, ends, argument] = header;
        let (number, source) = (ends as u32, (ends >> 32) as u32);
        let core = &mut *self.core;
        let slot = number.wrapping_sub(1);
        let Some(entry) = core.queue_pairs.at_mut(slot) else { return false };
        let is_next = !entry.backlogged
            && entry.held.is_empty()
            && !core.hand.is_full()
            && core.completion_queues[self.queue].is_empty();
        if entry.handle.number != number
            || entry.receive_completions != self.queue
            || !entry.takes_from(from, source)
            || !(is_next || planted("shown-too-early"))
        {
            return false;
        }
        let has_immediate = first >> 8 & PacketFlags::IMMEDIATE.bits() as u64 != 0;
        let from = Address::new(from.node, from.function, source);
        let taken =
            self.inbox.message(entry.handle, from, has_immediate.then_some(argument), payload);
        if taken {
            entry.shown.count(payload.len());
        }
        taken
    }
}

impl Sink for Shown<'_> {
    #[inline(always)]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        if header[0] as u8 == Kind::Send as u8 && self.is_taken(from, header, payload) {
            return Verdict::Taken;
        }
        if header[0] as u8 == Kind::Batch as u8 {
            let Shown { core, queue, inbox } = self;
            let queue = *queue;
            core.learn(link, from);
            let header = PacketHeader::from_words(header);
            return core.on_batch(link, header, payload, |core, header, payload| {
                Shown { core, queue, inbox: &mut **inbox }.packet(link, from, header, payload)
            });
        }
        self.core.packet(link, from, header, payload)
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
