//! The link of a function to itself: packets in our memory, and the gates of our queue pairs.

use bellwire_device::{
    FunctionAddress, Gate, LinkId, PacketHeader, Receipt, SendError, Sink, Verdict,
};
use bellwire_ring::memory::View;
use std::collections::{HashMap, VecDeque};

/// Maximum number of packets that a function has in flight to itself.
const PACKETS: usize = 256;

#[derive(Default)]
pub(super) struct Loopback {
    gates: HashMap<u32, Gate>,
    packets: VecDeque<(PacketHeader, Vec<u8>)>,
    /// The engine refused the last packet that it was offered.
    is_stalled: bool,
}

impl Loopback {
    /// The link is new: packets of an earlier one are forgotten.
    pub fn reset(&mut self) {
        self.packets.clear();
        self.is_stalled = false;
    }

    pub fn gate(&self, queue_pair: u32) -> Gate {
        self.gates.get(&queue_pair).copied().unwrap_or(Gate::Closed)
    }

    pub fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        match gate {
            Gate::Closed => self.gates.remove(&queue_pair),
            Gate::Open | Gate::Stopped => self.gates.insert(queue_pair, gate),
        };
    }

    /// Queues a packet.
    pub fn send(
        &mut self,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        if self.packets.len() >= PACKETS {
            return Err(SendError::Busy);
        }
        let mut payload = vec![0; head.len() + body.len()];
        payload[..head.len()].copy_from_slice(head);
        body.read(0, &mut payload[head.len()..]);
        self.packets.push_back((header, payload));
        // It is in our memory.
        Ok(Receipt::Delivered)
    }

    /// Whether packets wait, and the engine may take them.
    pub fn is_waiting(&self) -> bool {
        !self.packets.is_empty() && !self.is_stalled
    }

    /// Delivers at most `budget` packets from `own`, our address. Returns their number; `Err`: the
    /// engine reports a violation.
    #[cold]
    pub fn deliver(
        &mut self,
        link: LinkId,
        own: FunctionAddress,
        sink: &mut impl Sink,
        budget: usize,
    ) -> Result<usize, usize> {
        self.is_stalled = false;
        for packets in 0..budget {
            let Some((header, payload)) = self.packets.front() else { return Ok(packets) };
            match sink.packet(link, own, header.to_words(), View::of(payload)) {
                Verdict::Taken => _ = self.packets.pop_front(),
                Verdict::Stalled => {
                    self.is_stalled = true;
                    return Ok(packets);
                }
                Verdict::Violation => return Err(packets),
            }
        }
        Ok(budget)
    }
}
