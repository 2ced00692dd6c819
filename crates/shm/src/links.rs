//! All links of a function, by number and by peer.

use crate::control::Control;
use crate::inbound::Undelivered;
use crate::lanes::Lanes;
use crate::layout::LINKS;
use crate::link::Link;
use crate::outbound::Outbound;
use crate::socket::Received;
use bellwire_device::{
    Direct, FunctionAddress, LinkId, PacketHeader, Receipt, SendError, Sink, Status,
};
use bellwire_ring::canary::planted;
use bellwire_ring::lane::Sent;
use bellwire_ring::memory::View;
use bellwire_ring::steps::step;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A peer that lets more control messages pile up violates the protocol: each of its questions has
/// one answer at most.
const UNSENT: usize = 8_192;

/// All links.
#[derive(Default)]
pub struct Links {
    slots: Vec<Option<Box<Link>>>,
    by_peer: HashMap<FunctionAddress, u32>,
    free: Vec<u32>,
    /// Links that went down, but are not yet reported or fully delivered.
    pub downs: Vec<u32>,
    /// Control messages wait because a socket was full.
    unsent: bool,
    /// Control messages are awaited: check the sockets often.
    pub urgent: bool,
    // Counters.
    pub packets: u64,
    pub lane_full: u64,
    pub rings: u64,
    pub kicks: u64,
    pub violations: u64,
}

impl Links {
    /// The regions of peers in use: mapped, reached by the kernel's copies, and by packets.
    pub fn regions_by_way(&self) -> [u64; 3] {
        let ups = || self.slots.iter().flatten().filter_map(|link| link.up());
        std::array::from_fn(|way| ups().map(|up| up.regions.by_way()[way]).sum())
    }

    // The table.

    /// Adds a link, and returns its number. `None`: there are [`LINKS`].
    pub fn insert(&mut self, link: Link) -> Option<u32> {
        let link = Some(Box::new(link));
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = link;
            return Some(number);
        }
        if self.slots.len() == LINKS {
            return None;
        }
        self.slots.push(link);
        Some(self.slots.len() as u32 - 1)
    }

    /// The link with this number.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&Link> {
        self.slots.get(number as usize)?.as_deref()
    }

    #[inline(always)]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Link> {
        self.slots.get_mut(number as usize)?.as_deref_mut()
    }

    /// The number of links.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Times that lanes fell back on host memory, of the links that are up.
    pub fn host_fallbacks(&self) -> u64 {
        let ups = self.slots.iter().flatten().filter_map(|link| link.up());
        ups.map(|up| up.sender.host_fallbacks()).sum()
    }

    /// The numbers of all links, and some that are free.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// The link to a peer.
    pub fn to(&self, peer: FunctionAddress) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    /// Makes a link the one to `peer`.
    pub fn assign(&mut self, peer: FunctionAddress, number: u32) {
        self.by_peer.insert(peer, number);
    }

    /// Ends the assignment of a link to its peer.
    pub fn unassign(&mut self, peer: FunctionAddress, number: u32) {
        if self.by_peer.get(&peer) == Some(&number) {
            self.by_peer.remove(&peer);
        }
    }

    /// The way to the peer, if the link is up.
    #[inline(always)]
    pub fn up_mut(&mut self, number: u32) -> Option<&mut Outbound> {
        self.get_mut(number)?.up_mut()
    }

    fn ups(&mut self) -> impl Iterator<Item = &mut Outbound> {
        self.slots.iter_mut().flatten().filter_map(|link| link.up_mut())
    }

    // Packets.

    /// Sends one packet.
    #[inline(always)]
    pub fn send(
        &mut self,
        number: u32,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        let Some(link) = self.get_mut(number) else {
            return Err(SendError::Down(Status::PeerGone));
        };
        let up = link.outbound()?;
        match up.send(header, head, body) {
            Ok(Sent::Done) => {}
            Ok(Sent::Ring) => self.ring(number),
            Err(_full) => {
                let kicked = up.note_refusal();
                self.kicks += u64::from(kicked);
                self.lane_full += 1;
                return Err(SendError::Busy);
            }
        }
        self.packets += 1;
        Ok(Receipt::Delivered)
    }

    /// Sends one message if its gate is open and there is room.
    #[inline(always)]
    pub fn send_message(
        &mut self,
        number: u32,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Option<Receipt> {
        let up = self.up_mut(number)?;
        if !up.is_gate_open(header.destination) {
            return None;
        }
        match up.send(header, head, body) {
            Ok(Sent::Done) => self.packets += 1,
            Ok(Sent::Ring) => {
                self.packets += 1;
                self.ring(number);
            }
            Err(_full) => return None,
        }
        Some(Receipt::Delivered)
    }

    /// Tells the peer of a packet on a lane that it does not poll.
    #[cold]
    fn ring(&mut self, number: u32) {
        step("ring");
        self.rings += 1;
        self.kicks += u64::from(self.up_mut(number).is_some_and(|up| up.bell.ring()));
    }

    /// The peer rang: there may be room now. If a packet is refused again, the peer is told again.
    pub fn rang(&mut self, number: u32) {
        if let Some(up) = self.up_mut(number) {
            up.announced = false;
        }
    }

    // Direct access.

    /// Runs an access to the peer's memory, and sends the message that it has for the peer.
    #[cold]
    pub fn access(
        &mut self,
        number: u32,
        access: impl FnOnce(&mut Outbound) -> (Direct, Option<Control>),
    ) -> Direct {
        let Some(link) = self.get_mut(number) else {
            return Direct::Refused(Status::PeerGone);
        };
        let (direct, message) = match link.outbound() {
            Ok(up) => access(up),
            Err(SendError::Down(why)) => return Direct::Refused(why),
            Err(SendError::Busy) => return Direct::Pending,
        };
        if let Some(message) = message {
            self.urgent |= matches!(message, Control::Ask { .. });
            self.send_control(number, message, None);
        }
        direct
    }

    // Control messages.

    /// Sends a control message, now or as soon as the socket has room.
    pub fn send_control(&mut self, number: u32, message: Control, fd: Option<OwnedFd>) {
        let Some(link) = self.get_mut(number) else { return };
        if !link.send(message, fd) {
            self.unsent = true;
            self.urgent = true;
        }
    }

    /// Sends control messages that found a socket full.
    fn flush(&mut self, lanes: &mut Lanes) {
        if !std::mem::take(&mut self.unsent) {
            return;
        }
        for number in self.numbers() {
            let left = self.get_mut(number).map_or(0, Link::flush);
            if left > UNSENT {
                self.fail(lanes, number, Status::ProtocolViolation);
            } else if left > 0 {
                self.unsent = true;
                self.urgent = true;
            }
        }
    }

    /// Receives a control message. Garbage and the end of the socket are dealt with here.
    pub fn receive(&mut self, lanes: &mut Lanes, number: u32) -> Received {
        let Some(link) = self.get(number) else { return Received::Nothing };
        let expelled = link.expelled;
        let received = link.receive();
        match &received {
            Received::Message(..) if expelled => return Received::Garbage,
            Received::Garbage => self.fail(lanes, number, Status::ProtocolViolation),
            Received::Closed => self.hang_up(lanes, number),
            Received::Message(..) | Received::Nothing => {}
        }
        received
    }

    /// A check begins: sends what waits. Each part of the check finds out anew what is urgent.
    pub fn begin_check(&mut self, lanes: &mut Lanes) {
        self.urgent = false;
        self.flush(lanes);
    }

    // Sleep.

    /// Whether a link is being set up.
    pub fn is_setting_up(&self) -> bool {
        self.slots.iter().flatten().any(|link| link.is_setting_up())
    }

    /// Tells receivers that had no room for us that we are about to sleep. `true`: some were told
    /// now, so retry the refused packets once before sleep.
    pub fn announce_waiting(&mut self) -> bool {
        self.ups().filter_map(|up| up.announce_waiting().then_some(())).count() > 0
    }

    /// The sleep is over: the next one is announced anew.
    pub fn end_sleep(&mut self) {
        self.ups().for_each(|up| up.announced = false);
    }

    /// Gives back pages that no lane of ours has needed for `linger`. Returns whether some were
    /// needed later than that.
    pub fn tidy(&mut self, linger: Duration) -> bool {
        self.ups().map(|up| up.tidy(linger)).filter(|&later| later).count() > 0
    }

    // The end of a link.

    /// The link fails: its peer is gone or broke the rules.
    pub fn fail(&mut self, lanes: &mut Lanes, number: u32, why: Status) {
        if why == Status::PeerGone && planted("death-unnoticed") {
            return;
        }
        let Some(link) = self.get_mut(number) else { return };
        if link.expelled {
            // It may be in the middle of a packet: nothing is freed before it hangs up.
            return;
        }
        let (violation, was_down) = (why == Status::ProtocolViolation, link.down().is_some());
        let expelled = !was_down
            && {
                if violation {
                    tracing::warn!(peer = %link.peer, "the peer broke the protocol; its link is closed");
                }
                link.take_down(why)
            };
        self.violations += u64::from(violation);
        if expelled {
            lanes.expel(number);
        } else if violation {
            // No more of a lane that breaks the rules is read, not even if its peer is dead.
            lanes.abandon(number);
        } else if !was_down {
            // Packets that the peer sent before it went are still delivered.
            lanes.look_at(number);
        }
        if !was_down {
            self.downs.push(number);
            self.urgent = true;
        }
    }

    /// A link's peer may have died. The link may be another one by now: the program may have closed
    /// it since the event.
    pub fn see_death(&mut self, lanes: &mut Lanes, number: u32) {
        if self.get(number).is_some_and(Link::is_dead) {
            self.hang_up(lanes, number);
        }
    }

    /// The peer closed its end, or died.
    fn hang_up(&mut self, lanes: &mut Lanes, number: u32) {
        let Some(link) = self.get_mut(number) else { return };
        if !link.is_setting_up() && !link.expelled {
            return self.fail(lanes, number, Status::PeerGone);
        }
        // While the link is set up, the peer may come back.
        if link.let_go() {
            self.downs.push(number);
        }
        self.urgent = true;
    }

    /// Reports down links to the engine, once their packets are delivered or cannot be delivered
    /// now.
    pub fn report_down(&mut self, lanes: &mut Lanes, sink: &mut impl Sink) {
        for number in std::mem::take(&mut self.downs) {
            let Some(link) = self.get_mut(number) else { continue };
            let Some(why) = link.down() else { continue };
            let undelivered = lanes.undelivered(number);
            if undelivered != Undelivered::Packet && link.report() {
                let peer = link.peer;
                lanes.end(number);
                self.unassign(peer, number);
                sink.link_down(LinkId(number), peer, why);
            }
            if undelivered == Undelivered::Nothing {
                self.reap(lanes, number);
            } else {
                self.downs.push(number);
                self.urgent = true;
            }
        }
    }

    /// The engine is done with a link.
    pub fn close(&mut self, lanes: &mut Lanes, number: u32) {
        let Some(link) = self.get_mut(number) else { return };
        link.close();
        let peer = link.peer;
        self.unassign(peer, number);
        lanes.end(number);
        self.fail(lanes, number, Status::PeerGone);
        self.reap(lanes, number);
    }

    /// Frees what a link that is down does not need any more: its lane once that is empty, and its
    /// slot once the engine has closed it.
    fn reap(&mut self, lanes: &mut Lanes, number: u32) {
        let empty = lanes.undelivered(number) == Undelivered::Nothing;
        let Some(link) = self.get(number) else { return };
        if !empty || link.expelled || link.down().is_none() {
            return;
        }
        let closed = link.closed;
        lanes.abandon(number);
        if closed {
            self.slots[number as usize] = None;
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{POOL_SEGMENT_BYTES, doorbell_of};
    use crate::mapping::{Sharing, create};
    use crate::socket;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    const PEER: FunctionAddress = FunctionAddress { node: 1, function: 2 };

    /// One link that is set up over a socket, the other end of that, and no lanes.
    fn one() -> (Links, Lanes, OwnedFd) {
        let pool = create("test", POOL_SEGMENT_BYTES, 0, Sharing::ReadWrite).expect("memory");
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let both = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (near, far) = both.expect("two sockets");
        let mut link = Link::awaiting(PEER);
        link.await_welcome(near);
        let mut links = Links::default();
        assert_eq!(links.insert(link), Some(0));
        (links, Lanes::new(doorbell_of(&pool.memory)), far)
    }

    /// Control messages leave at once while the socket has room. Those that find none leave later,
    /// and that is urgent. A peer that has too many of them waiting loses its link.
    #[test]
    fn control_messages_wait_and_are_limited() {
        let (mut links, mut lanes, far) = one();
        let (mut sent, mut got) = (0, 0);
        links.send_control(0, Control::Kick, None);
        assert!(!links.urgent && !links.unsent, "it has left");
        sent += 1;
        while !links.urgent {
            links.send_control(0, Control::Kick, None);
            sent += 1;
            assert!(sent < 100_000, "a socket has an end");
        }
        for waiting in [1, UNSENT] {
            while links.get_mut(0).expect("it is there").flush() < waiting {
                links.send_control(0, Control::Kick, None);
                sent += 1;
            }
            links.begin_check(&mut lanes);
            assert!(links.urgent && links.get(0).expect("it is there").down().is_none());
        }
        while links.urgent {
            while let Received::Message(..) = socket::receive(&far) {
                got += 1;
            }
            links.begin_check(&mut lanes);
        }
        while let Received::Message(..) = socket::receive(&far) {
            got += 1;
        }
        assert_eq!((got, links.unsent), (sent, false));
        while links.get_mut(0).expect("it is there").flush() <= UNSENT {
            links.send_control(0, Control::Kick, None);
        }
        links.begin_check(&mut lanes);
        let down = links.get(0).expect("it is there").down();
        assert_eq!((down, links.violations), (Some(Status::ProtocolViolation), 1));
    }

    /// The death of an earlier peer that had the link's number does it no harm.
    #[test]
    fn a_death_may_be_about_an_earlier_link() {
        let (mut links, mut lanes, _far) = one();
        links.see_death(&mut lanes, 0);
        links.see_death(&mut lanes, 1);
        assert!(!links.urgent && links.get(0).expect("it is there").socket.is_some());
        assert!(links.is_setting_up());
    }
}
