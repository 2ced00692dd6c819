//! The receiving half: takes frames in order, once each, and acknowledges them (S-16).

use bellwire_wire::link::dllp::Dllp;

use super::sequence::{WINDOW, after, distance};
use crate::acknowledge::Acknowledge;
use crate::canary::planted;

/// How to handle a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the expected one: deliver it.
    Deliver,
    /// It has come before: drop it.
    Repeated,
    /// It is damaged, or an earlier one is missing: drop it, it will come again.
    OutOfOrder,
}

/// The expected number, and what the sender should be told.
///
/// Acknowledgements are cumulative and wait for up to `acknowledge_after` ticks (PCIe's AckNak
/// latency), so that one serves many frames. After damage, one NAK goes out at once, and no other
/// before a good frame has come.
#[derive(Clone, Copy)]
pub struct Receiver {
    expected: u16,
    acknowledge: Acknowledge,
    /// A NAK went out and the frame that it asks for has not come.
    asked: bool,
    /// Frames delivered.
    pub frames_delivered: u64,
    /// Frames that were damaged or came behind a gap.
    pub frames_discarded: u64,
    /// Frames that came again.
    pub frames_repeated: u64,
}

impl Receiver {
    /// Expects frame 0 first.
    pub fn new(acknowledge_after: u64) -> Self {
        Self::starting_at(0, acknowledge_after)
    }

    /// The same with the first frame numbered `sequence`, modulo 2^12: for tests of wrapping
    /// numbers.
    pub fn starting_at(sequence: u16, acknowledge_after: u64) -> Self {
        Receiver {
            expected: after(sequence, 0),
            acknowledge: Acknowledge::new(u16::MAX, acknowledge_after),
            asked: false,
            frames_delivered: 0,
            frames_discarded: 0,
            frames_repeated: 0,
        }
    }

    /// Whether this is the expected number. For a receiver that passes a frame on before it can
    /// check it.
    pub fn expects(&self, sequence: u16) -> bool {
        sequence == self.expected
    }

    /// Handles a frame with a correct CRC.
    pub fn handle_frame(&mut self, now: u64, sequence: u16) -> Arrival {
        match usize::from(distance(self.expected, sequence)) {
            0 => {
                self.expected = after(self.expected, 1);
                self.asked = false;
                self.acknowledge.arrived(now);
                self.frames_delivered += 1;
                Arrival::Deliver
            }
            ahead if ahead < WINDOW => self.handle_damaged(),
            _ if planted("link-take-repeated") => Arrival::Deliver,
            _ => {
                // Our acknowledgement was lost: repeat it.
                self.acknowledge.due = true;
                self.frames_repeated += 1;
                Arrival::Repeated
            }
        }
    }

    /// Handles a frame with a wrong CRC; its number is unknown.
    pub fn handle_damaged(&mut self) -> Arrival {
        self.frames_discarded += 1;
        if !self.asked {
            self.asked = true;
            self.acknowledge.gap(false);
        }
        Arrival::OutOfOrder
    }

    /// What the sender must be told now, if anything.
    pub fn poll(&mut self, now: u64) -> Option<Dllp> {
        let is_due = self.acknowledge.due || now >= self.acknowledge.deadline_ns();
        if !is_due {
            return None;
        }
        let sequence = after(self.expected, u16::MAX);
        let packet = match self.acknowledge.lose {
            true => Dllp::Nak { sequence },
            false => Dllp::Ack { sequence },
        };
        self.acknowledge.went(false, now);
        Some(packet)
    }

    /// When [`poll`](Self::poll) will have something; `now` if it has something already.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        if self.acknowledge.due {
            return Some(now);
        }
        Some(self.acknowledge.deadline_ns()).filter(|deadline| *deadline != u64::MAX)
    }
}
