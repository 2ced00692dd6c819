//! Remote events (S-Flag): a put reports to a queue pair of its target that the bytes are in memory
//! (C-14, C-23).
//!
//! An event takes no receive, but a completion entry. Without a free entry it waits in the backlog
//! like a message, so order holds and nothing is lost (C-16).

use super::Core;
use super::payload::{Head, words};
use super::receive::Packet;
use bellwire_device::{Address, Completion, Kind, Operation as Finished, Status, Verdict};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

impl Core {
    /// A peer reports a put that it carried out directly.
    pub(super) fn on_event(&mut self, packet: &Packet<'_>) -> Verdict {
        let Some([length]) = words(packet.payload) else { return self.violation() };
        self.raise(packet, length)
    }

    /// Raises an event at the queue pair that the header of `packet` names.
    pub(super) fn raise(&mut self, packet: &Packet<'_>, length: u64) -> Verdict {
        let header = &packet.header;
        let Some(slot) = self.admit(packet.from, header) else { return Verdict::Taken };
        if !self.queue_pairs[slot].backlogged && self.reserve_receive_completion(slot) {
            self.queue_pairs[slot].tally.messages_arrived += 1;
            self.complete_event(slot, packet.source(), header.immediate(), length);
            if planted("event-twice") && self.reserve_receive_completion(slot) {
                self.complete_event(slot, packet.source(), header.immediate(), length);
            }
            return Verdict::Taken;
        }
        let payload = Head::new(&[length]);
        let event = Packet { payload: View::of(payload.as_slice()), ..*packet };
        self.set_aside(slot, Kind::Event, &event)
    }

    /// Completes an event whose entry is reserved.
    pub(super) fn complete_event(
        &mut self,
        slot: u32,
        source: Address,
        immediate: Option<u64>,
        length: u64,
    ) {
        let tally = &mut self.queue_pairs[slot].tally;
        tally.messages_received += 1;
        tally.events_received += 1;
        let qp = self.queue_pairs[slot].handle;
        let (kind, status, length) = (Finished::RemotePut, Status::Success, length as usize);
        let completion = Completion {
            has_immediate: immediate.is_some(),
            word: immediate.unwrap_or_default(),
            ..Completion::new(qp, source, kind, status, 0, length)
        };
        self.keep_order(slot, completion);
    }
}
