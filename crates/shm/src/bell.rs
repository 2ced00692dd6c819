//! How a peer learns of something that it does not poll for: a bit in its doorbell and, if it
//! sleeps, a control message that wakes it.

use crate::control::Control;
use crate::socket;
use bellwire_ring::doorbell::Doorbell;
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The doorbell of one peer, with our bit in it.
pub struct PeerBell {
    doorbell: Doorbell<Segment>,
    lane: usize,
    socket: Arc<OwnedFd>,
}

impl PeerBell {
    /// `lane` is the number of our lane there, and `socket` the link's control socket.
    pub fn new(doorbell: Doorbell<Segment>, lane: usize, socket: Arc<OwnedFd>) -> PeerBell {
        PeerBell { doorbell, lane, socket }
    }

    /// Rings. Returns whether the peer slept and this has woken it.
    #[cold]
    pub fn ring(&self) -> bool {
        let asleep = self.doorbell.ring(self.lane);
        if asleep {
            step("kick");
            // A full socket holds messages that the peer has not read: they wake it as well.
            let _ = socket::send(&self.socket, Control::Kick, &[]);
        }
        asleep
    }
}
