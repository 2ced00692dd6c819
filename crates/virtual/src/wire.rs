//! A link between two functions.

use bellwire_device::{FunctionAddress, LinkId, Status};
use bellwire_model::units::Time;
use std::collections::VecDeque;

/// Most packets of one direction that may be in flight or unread at once: a slow receiver blocks no
/// more than this.
pub(crate) const LINK_PACKETS: usize = 32;

/// A link between two functions, with the state of both ends.
pub(crate) struct Wire {
    pub(crate) ends: [FunctionAddress; 2],
    /// Serial number. Links to the same function are polled in the order of their creation.
    pub(crate) born: u64,
    pub(crate) condition: Condition,
    /// The link's number at each end.
    pub(crate) numbers: [Option<LinkId>; 2],
    /// Packets that have arrived at each end and that its engine has not taken.
    pub(crate) inbox: [VecDeque<Packet>; 2],
    /// Packets in flight towards each end.
    pub(crate) flying: [usize; 2],
    /// The last attempt to send towards each end found no room.
    pub(crate) wants: [bool; 2],
    /// The link's end was reported to each end, or that end does not need the report.
    pub(crate) told: [bool; 2],
}

/// The state of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// The other function is not open. It may open until this time.
    Asking(Time),
    Up,
    Down(Status),
}

/// A packet of the engine that has been read from its ring.
pub(crate) struct Packet {
    pub(crate) words: [u64; 3],
    pub(crate) payload: Vec<u8>,
}

impl Wire {
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.condition, Condition::Down(_))
    }

    /// Whether it connects a function with itself. Both directions are then one, which belongs to
    /// end 0.
    pub(crate) fn is_loop(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    /// The end that a packet from `end` goes to.
    pub(crate) fn far(&self, end: usize) -> usize {
        if self.is_loop() { end } else { 1 - end }
    }

    /// Whether there is room for a packet towards `end`.
    pub(crate) fn has_room(&self, end: usize) -> bool {
        self.flying[end] + self.inbox[end].len() < LINK_PACKETS
    }

    /// The reason of the link's end, if `end` has taken all packets and the end was not reported
    /// there yet.
    pub(crate) fn end_to_tell(&self, end: usize) -> Option<Status> {
        match self.condition {
            Condition::Down(why)
                if !self.told[end] && self.inbox[end].is_empty() && self.flying[end] == 0 =>
            {
                Some(why)
            }
            _ => None,
        }
    }

    /// Whether no function uses it any more.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.is_over() && self.numbers == [None; 2] && self.flying == [0; 2]
    }
}
