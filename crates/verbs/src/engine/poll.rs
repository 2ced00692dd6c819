//! Polling a queue that is empty: what arrives meanwhile need not pass through its ring.

use super::*;
use crate::completion_queue::Hand;
use bellwire_device::Sink;

impl Core {
    /// Makes progress for a program that polls `queue`, which is empty. The first completion that a packet leaves there goes to `hand`,
    /// if nothing else has come before it.
    #[inline(always)]
    pub(crate) fn poll<T: Transport>(&mut self, transport: &mut T, queue: u32, hand: &mut Hand) {
        transport.poll(&mut Poller { core: self, queue, hand }, POLL_BUDGET);
        // With a message in its hand the program comes back, and finds the errands then.
        if !hand.is_full() && self.has_errands() {
            self.run_errands(transport);
        }
    }
}

/// Takes packets as [`Core`] does, and hands a completion over on the way.
struct Poller<'a> {
    core: &'a mut Core,
    queue: u32,
    hand: &'a mut Hand,
}

impl Sink for Poller<'_> {
    #[inline(always)]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let in_hand = |queue, ring: &mut CompletionRing, done| {
            if queue == self.queue && ring.is_empty() && !self.hand.is_full() {
                ring.release();
                self.hand.fill(done);
            } else {
                ring.push_reserved(done);
            }
        };
        if self.core.meets_receive(from, header, payload, in_hand) {
            return Verdict::Taken;
        }
        self.core.on_packet(link, from, header, payload)
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.core.link_down(link, peer, why);
    }

    fn tick(&mut self, device: &[(&'static str, u64)]) {
        self.core.tick(device);
    }
}
