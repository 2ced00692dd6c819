//! A link between two functions.

use bellwire_device::{FunctionAddress, LinkId, Status};
use bellwire_model::units::Time;
use std::collections::VecDeque;

/// Packets of one direction that may be on their way or unread at once: what a link can hold up, whatever its receiver does.
pub(crate) const LINK_PACKETS: usize = 32;

/// A link, seen from outside.
pub(crate) struct Wire {
    pub(crate) ends: [FunctionAddress; 2],
    /// Links to the same function are heard in the order of their making.
    pub(crate) born: u64,
    pub(crate) condition: Condition,
    /// What each end calls it.
    pub(crate) numbers: [Option<LinkId>; 2],
    /// Packets that have come to each end, and that its engine has not taken.
    pub(crate) inbox: [VecDeque<Packet>; 2],
    /// Packets on their way towards each end.
    pub(crate) flying: [usize; 2],
    /// The last try to send towards each end found no room.
    pub(crate) wants: [bool; 2],
    /// Each end has been told, or does not want to be, that it is over.
    pub(crate) told: [bool; 2],
}

/// Whether a link carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// The other function is not open; it may appear until then.
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

    /// Whether it connects a function with itself. Both directions are one then, and belong to end 0.
    pub(crate) fn is_loop(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    /// Which end a packet from `end` goes to.
    pub(crate) fn far(&self, end: usize) -> usize {
        if self.is_loop() { end } else { 1 - end }
    }

    /// Whether there is room for a packet towards `end`.
    pub(crate) fn has_room(&self, end: usize) -> bool {
        self.flying[end] + self.inbox[end].len() < LINK_PACKETS
    }

    /// Why it is over, once `end` has had all that was sent to it and has not been told yet.
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

    /// Whether nobody will ask for it any more.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.is_over() && self.numbers == [None; 2] && self.flying == [0; 2]
    }
}
