//! One open function.

use crate::nic::{PAYLOAD_BYTES, Tag};
use crate::wire::Condition;
use crate::world::{Turn, World};
use bellwire_device::{
    Error, FunctionAddress, Gate, LinkId, PacketHeader, Receipt, SendError, Sink, Status,
    Transport, TransportLimits, Verdict,
};
use bellwire_model::units::{Span, Time};
use bellwire_ring::memory::View;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Virtual time between two reports to the engine.
const TICK: Span = Span::from_ns(1_000_000);

/// A function of `model:chpp`.
pub struct VirtualTransport {
    world: Arc<World>,
    address: FunctionAddress,
    place: usize,
    bell: Arc<OwnedFd>,
    /// The link that was polled last, for round-robin.
    turn: usize,
    next_tick: Time,
    sent: u64,
    received: u64,
}

impl VirtualTransport {
    /// Name and value of each counter.
    fn counter_rows(&self) -> [(&'static str, u64); 2] {
        [("packets_sent", self.sent), ("packets_received", self.received)]
    }

    pub(crate) fn open(
        world: Arc<World>,
        host: usize,
        address: FunctionAddress,
    ) -> Result<VirtualTransport, Error> {
        let mut turn = world.arrive();
        let me = turn.me;
        let place = turn.open(host, address, me)?;
        let bell = turn.seats[place].as_ref().map(|seat| seat.bell.clone());
        let bell = bell.expect("it was opened just now");
        drop(turn);
        let next_tick = Time::ZERO;
        Ok(VirtualTransport {
            world,
            address,
            place,
            bell,
            turn: 0,
            next_tick,
            sent: 0,
            received: 0,
        })
    }

    /// Passes one packet of a link, or the link's end, to the engine. `None`: there was none, or
    /// the packet has to stay.
    fn poll_link(&mut self, turn: &mut Turn<'_>, sink: &mut impl Sink, link: LinkId) -> Option<()> {
        let seat = turn.seats[self.place].as_ref()?;
        let (index, end) = seat.wire(link)?;
        turn.check_asking(index);
        let wire = &turn.wires[index];
        let peer = wire.ends[wire.far(end)];
        if !wire.inbox[end].is_empty() || wire.is_over() {
            // An earlier link to the same peer is polled to its end first.
            let seat = turn.seats[self.place].as_ref()?;
            let earlier = seat.links.iter().flatten().any(|&(other, end)| {
                let other = &turn.wires[other];
                other.born < wire.born
                    && other.is_over()
                    && !other.told[end]
                    && other.ends[other.far(end)] == peer
            });
            if earlier {
                return None;
            }
        }
        let Some(packet) = turn.wires[index].inbox[end].pop_front() else {
            let why = turn.wires[index].end_to_tell(end)?;
            turn.wires[index].told[end] = true;
            sink.link_down(link, peer, why);
            return Some(());
        };
        let cost = turn.nic.cost_of_receiving(packet.payload.len());
        match sink.packet(link, peer, packet.words, View::of(&packet.payload)) {
            Verdict::Taken => {
                self.received += 1;
                turn.spend(cost);
                turn.room_at(index, end);
                Some(())
            }
            Verdict::Stalled => {
                turn.wires[index].inbox[end].push_front(packet);
                None
            }
            Verdict::Violation => {
                let wire = &mut turn.wires[index];
                wire.inbox[end].clear();
                if !wire.is_over() {
                    wire.condition = Condition::Down(Status::ProtocolViolation);
                }
                let far = wire.far(end);
                turn.news_at(index, far);
                turn.news_at(index, end);
                Some(())
            }
        }
    }
}

impl Drop for VirtualTransport {
    fn drop(&mut self) {
        self.world.visit(self.place).close_function(self.place);
    }
}

impl Transport for VirtualTransport {
    fn address(&self) -> FunctionAddress {
        self.address
    }

    fn limits(&self) -> TransportLimits {
        TransportLimits {
            packet_bytes: PAYLOAD_BYTES,
            queue_pairs: 16_384,
            regions: 4_096,
            links: 1_024,
        }
    }

    fn seed(&self) -> Option<u64> {
        // A different seed for each function's keys.
        let FunctionAddress { node, function } = self.address;
        Some(self.world.seed ^ u64::from(node) << 32 ^ u64::from(function) << 8)
    }

    fn now(&self) -> Instant {
        // Its driver's clock. The driver may have used other functions since.
        let state = self.world.lock();
        let seat = state.seats[self.place].as_ref();
        let clock = seat.map_or(Time::ZERO, |seat| state.turns[seat.driver].clock);
        self.world.base + Duration::from_nanos(clock.ps() / 1000)
    }

    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error> {
        let mut turn = self.world.visit(self.place);
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let until = turn.clock() + Span::from_ns(patience_ns.min(1 << 50));
        Ok(turn.link(self.place, peer, until))
    }

    fn close(&mut self, link: LinkId) {
        let mut turn = self.world.visit(self.place);
        if let Some(seat) = &mut turn.seats[self.place]
            && let Some((index, end)) = seat.wire(link)
        {
            seat.links[link.0 as usize] = None;
            seat.free.push(link.0);
            turn.hang_up(index, end, Status::PeerGone);
        }
    }

    fn is_up(&self, link: LinkId) -> bool {
        let state = self.world.lock();
        let wire = state.seats[self.place].as_ref().and_then(|seat| seat.wire(link));
        wire.is_some_and(|(index, _)| state.wires[index].condition == Condition::Up)
    }

    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        let mut turn = self.world.visit(self.place);
        let (index, end) = turn.seats[self.place].as_ref()?.wire(link)?;
        turn.check_asking(index);
        let wire = &turn.wires[index];
        if wire.condition != Condition::Up {
            return None;
        }
        let place = turn.place_of_end(index, wire.far(end))?;
        let gates = &turn.seats[place].as_ref()?.gates;
        Some(gates.get(&queue_pair).copied().unwrap_or(Gate::Closed))
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        self.world.visit(self.place).set_gate(self.place, queue_pair, gate);
    }

    fn send(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        let length = head.len() + body.len();
        assert!(length <= PAYLOAD_BYTES, "a packet of {length} bytes");
        let mut turn = self.world.visit(self.place);
        let down = SendError::Down(Status::PeerGone);
        let found = turn.seats[self.place].as_ref().and_then(|seat| seat.wire(link));
        let (index, end) = found.ok_or(down)?;
        turn.check_asking(index);
        let wire = &turn.wires[index];
        match wire.condition {
            Condition::Asking(_) => return Err(SendError::Busy),
            Condition::Down(why) => return Err(SendError::Down(why)),
            Condition::Up => {}
        }
        let far = wire.far(end);
        let to = turn.place_of_end(index, far).ok_or(down)?;
        if !turn.has_room(index, far, (self.place, to), header, length) {
            turn.want_room(self.place);
            if !turn.has_room(index, far, (self.place, to), header, length) {
                turn.wires[index].wants[far] = true;
                return Err(SendError::Busy);
            }
        }
        // Charges the time to build the packet, then checks again: others may have taken the room
        // meanwhile.
        let cost = turn.nic.cost_of_sending(length);
        drop(turn);
        let mut turn = self.world.enter(self.place, cost);
        let tag = Tag { wire: index, end: far };
        if turn.wires[index].condition != Condition::Up
            || !turn.has_room(index, far, (self.place, to), header, length)
        {
            turn.want_room(self.place);
            turn.wires[index].wants[far] = true;
            return Err(SendError::Busy);
        }
        let started = turn.nic.send((self.place, to), tag, header, head, body);
        turn.wires[index].flying[far] += 1;
        turn.wires[index].wants[far] = false;
        turn.spend_until(started);
        let me = turn.me;
        turn.turns[me].empty_polls.end();
        self.sent += 1;
        Ok(Receipt::Delivered)
    }

    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let world = self.world.clone();
        let cost = world.lock().nic.config.program.poll;
        let mut turn = world.spin(world.enter(self.place, cost));
        turn.hear(self.place);
        let count = turn.seats[self.place].as_ref().map_or(0, |seat| seat.links.len());
        let (mut taken, mut left) = (0, count);
        // Links round-robin, one packet at a time, until all are empty or the budget is used.
        while left > 0 && taken < budget {
            self.turn = (self.turn + 1) % count;
            match self.poll_link(&mut turn, sink, LinkId(self.turn as u32)) {
                Some(()) => (taken, left) = (taken + 1, count),
                None => left -= 1,
            }
        }
        if left > 0
            && let Some(seat) = &mut turn.seats[self.place]
        {
            seat.news = true;
        }
        let me = turn.me;
        turn.note_poll(me, self.place, taken > 0);
        if turn.clock() >= self.next_tick {
            self.next_tick = turn.clock() + TICK;
            sink.tick(&self.counter_rows());
        }
        taken
    }

    fn counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        rows.extend(self.counter_rows());
    }

    // No direct access: the interface has only 8-bit keys and windows of whole functions (C-09,
    // C-39). The owner's engine checks regions' keys.

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.world.arm(self.place)
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        drop(self.world.sleep(self.place, timeout));
        self.standstill().map_or(Ok(()), Err)
    }

    fn standstill(&self) -> Option<Error> {
        let why = self.world.lock().standstill.clone()?;
        Some(Error::Standstill { why })
    }
}
