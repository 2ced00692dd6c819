//! Acknowledgements that are owed to peers, and the news that a queue pair ends.

use crate::head::{Head, Opcode, flag};
use crate::state::State;
use bellwire_ring::steps::step;

/// Messages without an acknowledgement after which one leaves at once.
const ACK_EVERY: u32 = 32;
/// As how many a message counts whose sender asks. The acknowledgement leaves after a few more, or
/// when the receiver finds no more.
const ASKED: u32 = 28;

impl State {
    /// One more message of the peer is in its receive.
    #[inline]
    pub(crate) fn delivered(&mut self, number: u32) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        qp.delivered = qp.delivered.wrapping_add(1);
        self.owe(number, true);
    }

    /// Owes the peer an acknowledgement, which later packets carry or which leaves alone.
    #[inline]
    pub(crate) fn owe(&mut self, number: u32, is_asked: bool) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        qp.owed += if is_asked { ASKED } else { 1 };
        if qp.owed >= ACK_EVERY {
            self.acknowledge_now(number, false);
        } else if !std::mem::replace(&mut qp.owes, true) {
            self.owing.push(number);
        }
    }

    /// Sends an acknowledgement of its own. It promises receives: messages before `word` find one.
    pub(crate) fn acknowledge_now(&mut self, number: u32, is_answer: bool) {
        let Some(qp) = self.qps.get(number) else { return };
        let Some(peer) = qp.peer else { return };
        // Those of a shared queue may go to another queue pair.
        let is_shared = qp.options.shared.is_some();
        let free = if is_shared { 0 } else { qp.receives.len().saturating_sub(qp.unmatched()) };
        let mut head = Head::new(Opcode::Ack, qp.attributes.peer, number);
        (head.flags, head.extra) = (flag::ACKS, u64::from(is_answer));
        (head.psn, head.acked) = (qp.expected, qp.delivered);
        head.word = qp.expected.wrapping_add(free as u32);
        self.peers.answer(peer, head, Vec::new());
        step("rdma-acknowledges");
        self.qps.get_mut(number).into_iter().for_each(|qp| qp.owed = 0);
    }

    /// Tells the peer of a queue pair that it ends in order. The peer then keeps its receives, as
    /// it would with a card.
    pub(crate) fn leave(&mut self, number: u32) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        if let Some(peer) = qp.peer.filter(|_| qp.is_reliable() && qp.state().receives()) {
            let head = Head::new(Opcode::Leave, qp.attributes.peer, number);
            self.peers.answer(peer, head, Vec::new());
        }
    }

    /// Whether an acknowledgement is owed, and whether its sender asks for it. Forgets those that
    /// other packets have carried.
    #[inline]
    pub(crate) fn owes(&mut self) -> Option<bool> {
        while let Some(&number) = self.owing.last() {
            match self.qps.get_mut(number) {
                Some(qp) if qp.owed > 0 => return Some(qp.owed >= ASKED),
                Some(qp) => qp.owes = false,
                None => {}
            }
            self.owing.pop();
        }
        None
    }

    /// Sends the acknowledgements that are owed. Returns how many.
    pub(crate) fn settle(&mut self) -> usize {
        let owing = std::mem::take(&mut self.owing);
        for &number in &owing {
            let Some(qp) = self.qps.get_mut(number) else { continue };
            qp.owes = false;
            if qp.owed > 0 {
                self.acknowledge_now(number, false);
            }
        }
        let count = owing.len();
        self.owing = owing;
        self.owing.clear();
        count
    }
}
