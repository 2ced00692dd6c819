//! One open function: what peers see of it, its links, and what it should look at.

use bellwire_device::{FunctionAddress, Gate, LinkId};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A function that is open.
pub(crate) struct Seat {
    pub(crate) address: FunctionAddress,
    /// The program that drives it.
    pub(crate) driver: usize,
    pub(crate) gates: HashMap<u32, Gate>,
    /// By link number: which wire, and which end of it.
    pub(crate) links: Vec<Option<(usize, usize)>>,
    /// Numbers that are free again; the one that was freed last is given out first, so that a stale one is noticed.
    pub(crate) free: Vec<u32>,
    /// Something has changed that its engine should look at, beside packets.
    pub(crate) news: bool,
    /// Something was refused for lack of room: it wants to hear when there is some.
    pub(crate) refused: bool,
    /// How its program waits.
    pub(crate) waits: Waits,
    /// The row of looks in vain that it was last looked at in.
    pub(crate) vain: u64,
    /// Readable when there is something to do, once armed.
    pub(crate) bell: Arc<OwnedFd>,
}

/// How a program waits for a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// It does not.
    No,
    /// In a call that sleeps.
    Sleeps,
    /// In a call that looks again and again.
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

    /// The wire behind a link number, and the end that the function is at.
    pub(crate) fn wire(&self, link: LinkId) -> Option<(usize, usize)> {
        *self.links.get(link.0 as usize)?
    }
}
