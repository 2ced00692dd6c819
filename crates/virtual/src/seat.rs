//! One open function: its gates, its links and its pending events.

use bellwire_device::{FunctionAddress, Gate, LinkId};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An open function.
pub(crate) struct Seat {
    pub(crate) address: FunctionAddress,
    /// The program that drives it.
    pub(crate) driver: usize,
    pub(crate) gates: HashMap<u32, Gate>,
    /// Wire and end of it, by link number.
    pub(crate) links: Vec<Option<(usize, usize)>>,
    /// Free link numbers. The last freed one is reused first, so that a stale use shows early.
    pub(crate) free: Vec<u32>,
    /// A change other than a packet that its engine has to look at.
    pub(crate) news: bool,
    /// A packet was refused for lack of room: room is news for this function.
    pub(crate) refused: bool,
    /// How its program waits.
    pub(crate) waits: Waits,
    /// The series of empty polls that last included this function.
    pub(crate) empty_series: u64,
    /// Readable when there is something to do, after arming.
    pub(crate) bell: Arc<OwnedFd>,
}

/// How a program waits for a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// It does not wait.
    No,
    /// In a call that sleeps.
    Sleeps,
    /// In a call that polls repeatedly.
    Spins,
    /// On the function's descriptor, outside of the device.
    Armed,
}

impl Seat {
    /// A number for one end of a wire.
    pub(crate) fn attach(&mut self, wire: usize, end: usize) -> LinkId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.links.push(None);
            self.links.len() as u32 - 1
        });
        self.links[number as usize] = Some((wire, end));
        LinkId(number)
    }

    /// The wire of a link number, and the function's end of it.
    pub(crate) fn wire(&self, link: LinkId) -> Option<(usize, usize)> {
        *self.links.get(link.0 as usize)?
    }
}
