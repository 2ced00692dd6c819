//! The receive path: lanes are served in turn, each in proportion to its weight, and get credit as
//! they deliver.

use crate::link::{GEOMETRY, Link, State};
use crate::transport::ShmTransport;
use bellwire_device::{LinkId, Sink, Status, Verdict};
use bellwire_protocol::Extent;
use bellwire_ring::lane::{Arrival, Freed, Position};
use bellwire_ring::steps::step;

/// Lines that a lane of weight 1 may deliver in one round (deficit round robin, C-41).
const QUANTUM_LINES: i64 = 16;

/// Extents that an active lane holds ahead of the one that it fills.
const AHEAD: usize = 2;

/// What a lane delivered in its turn.
#[derive(Default)]
struct Turn {
    packets: usize,
    lines: i64,
    /// Whether the lane may have more to take now.
    more: bool,
}

/// Why a lane delivers no more for now.
pub(crate) enum End {
    /// No packet stands at its cursor.
    Empty,
    /// The budget or the allowance is used up.
    Limit,
    /// The engine has no room for the packet at the cursor.
    Stalled,
    /// The sender moved to its next run.
    Moved { freed: Option<Freed>, dry: bool },
    /// The sender broke the rules.
    Violation,
}

/// The result of a look at a lane.
pub(crate) enum Delivered {
    /// A packet of this many payload bytes.
    Packet(usize),
    /// None, and why.
    Not(End),
}

impl Link {
    /// Looks at the lane's cursor and hands the packet there to `sink`.
    #[inline(always)]
    pub(crate) fn deliver_one(&mut self, lane: u32, sink: &mut impl Sink) -> Delivered {
        let Some(receiver) = self.receiver.as_mut() else { return Delivered::Not(End::Empty) };
        let end = match receiver.peek() {
            Arrival::Nothing => End::Empty,
            Arrival::Packet(words, payload) => {
                let length = payload.len();
                match sink.packet(LinkId(lane), self.peer, words, payload) {
                    Verdict::Taken => {
                        step("packet-taken");
                        receiver.take(words[0]);
                        self.stalled = false;
                        return Delivered::Packet(length);
                    }
                    Verdict::Stalled => End::Stalled,
                    Verdict::Violation => End::Violation,
                }
            }
            Arrival::Moved { freed, dry } => End::Moved { freed, dry },
            Arrival::Violation => End::Violation,
        };
        self.stalled = matches!(end, End::Stalled);
        Delivered::Not(end)
    }

    /// The hot loop of the receiving side: everything that it touches is in this link and in
    /// `sink`.
    #[inline(always)]
    fn deliver(
        &mut self,
        lane: u32,
        allowance: i64,
        sink: &mut impl Sink,
        budget: usize,
        turn: &mut Turn,
    ) -> End {
        let (mut packets, mut lines) = (turn.packets, turn.lines);
        let end = loop {
            if packets == budget || lines >= allowance {
                break End::Limit;
            }
            match self.deliver_one(lane, sink) {
                Delivered::Packet(length) => {
                    packets += 1;
                    lines += 1 + (length / 64) as i64;
                }
                Delivered::Not(end) => break end,
            }
        };
        self.recent += (packets - turn.packets) as u64;
        // After a lone packet the next line is probably not written yet, and one look is enough.
        self.streaming = packets > 0;
        (turn.packets, turn.lines) = (packets, lines);
        end
    }
}

impl ShmTransport {
    /// Hands at most `budget` packets of the polled lanes to `sink`.
    #[inline(always)]
    pub(crate) fn serve(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        match self.active[..] {
            [] => 0,
            // A pair that is alone needs no round-robin.
            [lane] => {
                let mut turn = Turn::default();
                self.drain(lane, i64::MAX, sink, budget, &mut turn);
                turn.packets
            }
            _ => self.serve_in_turn(sink, budget),
        }
    }

    fn serve_in_turn(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let mut taken = 0;
        let mut quiet = 0;
        while taken < budget && quiet < self.active.len() {
            if self.turn >= self.active.len() {
                self.turn = 0;
            }
            let lane = self.active[self.turn];
            let Some(link) = self.links[lane as usize].as_deref_mut() else { break };
            if link.allowance <= 0 {
                link.allowance += i64::from(link.weight) * QUANTUM_LINES;
            }
            let allowance = link.allowance;
            let mut turn = Turn::default();
            self.drain(lane, allowance, sink, budget - taken, &mut turn);
            taken += turn.packets;
            quiet = if turn.packets == 0 { quiet + 1 } else { 0 };
            let Some(link) = self.links[lane as usize].as_deref_mut() else { break };
            // An empty lane loses its unused allowance. A long packet overdraws, and later rounds
            // pay it back.
            link.allowance = if turn.more { link.allowance - turn.lines } else { 0 };
            if link.allowance <= 0 {
                self.turn += 1;
            }
        }
        taken
    }

    /// Takes packets off one lane while it has some, `allowance` (in lines) lasts and `sink` takes
    /// them.
    #[inline(always)]
    fn drain(
        &mut self,
        lane: u32,
        allowance: i64,
        sink: &mut impl Sink,
        budget: usize,
        turn: &mut Turn,
    ) {
        /// A bound: a peer could move from run to run without end.
        const MOVES: usize = 64;
        for _ in 0..MOVES {
            let Some(link) = self.links[lane as usize].as_deref_mut() else { return };
            let end = link.deliver(lane, allowance, sink, budget, turn);
            turn.more = matches!(end, End::Limit);
            if matches!(end, End::Empty | End::Limit) || !self.goes_on(lane, end) {
                return;
            }
        }
        turn.more = true;
    }

    /// Handles the rarer ends. Returns whether the lane may have more for this turn.
    #[cold]
    pub(crate) fn goes_on(&mut self, lane: u32, end: End) -> bool {
        match end {
            End::Empty | End::Stalled | End::Limit => {}
            End::Moved { freed, dry } => {
                self.follow(lane, freed, dry);
                return true;
            }
            End::Violation => self.fail(lane, Status::ProtocolViolation),
        }
        false
    }

    /// A lane moved to its next run: the receiver takes credit back, and grants credit on demand,
    /// first come first served (D-14 to D-17).
    #[cold]
    fn follow(&mut self, lane: u32, freed: Option<(u16, u16)>, dry: bool) {
        if let Some((first, count)) = freed {
            // The lane's receiver keeps its own record, so only a bug of ours can make this fail.
            self.credits
                .consumed(lane as u16, Extent { first, count })
                .expect("a lane returns what it was granted");
        }
        if dry {
            self.want_credit(lane);
        }
        self.serve_waiting();
        self.top_up(lane);
        // Leaving a host chunk makes room too.
        self.call_waiting(lane);
    }

    /// Grants credit that came back to the lanes that wait for it.
    pub(crate) fn serve_waiting(&mut self) {
        while let Some((lane, extent)) = self.credits.next_grant() {
            self.grant(lane.into(), extent);
        }
    }

    fn top_up(&mut self, lane: u32) {
        while self.links[lane as usize]
            .as_deref()
            .and_then(|link| link.receiver.as_ref())
            .is_some_and(|r| r.position() == Position::Active && r.open_grants() < AHEAD)
        {
            let Some(extent) = self.credits.top_up(lane as u16) else { break };
            self.grant(lane, extent);
        }
    }

    fn grant(&mut self, lane: u32, extent: Extent) {
        let link = self.links[lane as usize].as_deref_mut().filter(|link| !link.expelled);
        match link.and_then(|link| link.receiver.as_mut()) {
            Some(receiver) if receiver.position() == Position::Active => {
                receiver.grant(extent.first, extent.count);
                self.counters.grants += 1;
                self.call_waiting(lane);
            }
            // The waiting lane is being parked meanwhile: it will ask again.
            _ => self.credits.consumed(lane as u16, extent).expect("granted just now"),
        }
    }

    /// Room was made in a lane: wakes its sender if that sleeps until there is room.
    pub(crate) fn call_waiting(&mut self, lane: u32) {
        let Some(link) = self.link_mut(lane) else { return };
        let waiting = link.receiver.as_ref().is_some_and(|receiver| receiver.take_waiting());
        let State::Up(up) = &link.state else { return };
        if waiting && up.doorbell.ring(up.remote_lane) {
            self.kick(lane);
        }
    }

    /// Polls the lanes that rang.
    #[cold]
    pub(crate) fn answer_doorbell(&mut self) {
        let mut rung = std::mem::take(&mut self.rung);
        self.doorbell.answer(|lane| rung.push(lane as u32));
        for lane in rung.drain(..) {
            self.wake_lane(lane);
        }
        self.rung = rung;
    }

    /// Polls a lane again if a packet waits there, even without a bell.
    pub(crate) fn look_at(&mut self, lane: u32) {
        let receiver = self.link_mut(lane).and_then(|link| link.receiver.as_ref());
        if receiver.is_some_and(|r| r.position() != Position::Parked || r.is_ready()) {
            self.wake_lane(lane);
        }
    }

    /// Polls a lane again after its sender rang. This has an effect only once its link is up.
    pub(crate) fn wake_lane(&mut self, lane: u32) {
        let Some(link) = self.link_mut(lane) else { return };
        // It may have rung because there is room now. If it is refused again, it says so again.
        link.announced = false;
        if matches!(link.state, State::Connecting { .. } | State::Crossed { .. }) {
            return;
        }
        // A bell after the end of the link wakes nothing.
        if link.reported || link.expelled {
            return;
        }
        let Some(receiver) = link.receiver.as_mut() else { return };
        match receiver.position() {
            Position::Active => {}
            // `park_idle` drains it and completes the parking.
            Position::Parking => {}
            // A credit-starved sender rings for credit: either there is no packet, or it announced
            // that it sleeps. (If the lane is polled, the bell may belong to a packet that was
            // taken already.)
            Position::Parked
                if link.favours == 0
                    || receiver.is_waiting()
                    || !(link.polled || receiver.is_ready()) =>
            {
                step("lane-woken");
                self.want_credit(lane);
                self.top_up(lane);
            }
            Position::Parked => link.favours -= 1,
        }
        self.poll_lane(lane);
    }

    /// Gets credit for a lane, at once or when there is some. A parked lane is unparked.
    fn want_credit(&mut self, lane: u32) {
        let Some(receiver) = self.link_mut(lane).and_then(|link| link.receiver.as_mut()) else {
            return;
        };
        if receiver.position() == Position::Parked {
            receiver.unpark();
        }
        if let Some(extent) = self.credits.want(lane as u16) {
            self.grant(lane, extent);
        }
    }

    fn poll_lane(&mut self, lane: u32) {
        let Some(link) = self.link_mut(lane) else { return };
        if !link.polled {
            link.polled = true;
            self.active.push(lane);
        }
    }

    pub(crate) fn stop_polling(&mut self, lane: u32) {
        if let Some(link) = self.link_mut(lane) {
            link.polled = false;
        }
        self.active.retain(|&l| l != lane);
    }

    /// Parks `lanes` in three steps: active lanes begin, one barrier serves all, and lanes whose
    /// senders have nothing in flight complete. Returns whether any has a packet that should be
    /// taken first.
    pub(crate) fn park(&mut self, lanes: &[u32]) -> bool {
        /// A lane that stays parked needs an empty small chunk while its sender still has room in
        /// the old one. Parking it anew gives it one.
        const ROOM_LINES: usize = GEOMETRY.small_lines / 2;
        let mut fences = None;
        for &lane in lanes {
            let Some(receiver) = self.link_mut(lane).and_then(|l| l.receiver.as_mut()) else {
                continue;
            };
            if receiver.position() == Position::Parked && receiver.room_lines() < ROOM_LINES {
                receiver.unpark();
            }
            if receiver.position() == Position::Active {
                receiver.begin_park();
                // One barrier serves all: the strongest that any of them needs.
                if fences != Some(bellwire_ring::sync::Fences::Asymmetric) {
                    fences = Some(receiver.fences());
                }
            }
        }
        step("park-begun");
        if let Some(fences) = fences {
            fences.heavy(crate::barrier::issue);
        }
        let mut packets = false;
        for &lane in lanes {
            packets |= self.try_park(lane);
        }
        self.serve_waiting();
        packets
    }

    /// Completes the parking of a lane if possible. Returns whether a packet stands at its cursor.
    pub(crate) fn try_park(&mut self, lane: u32) -> bool {
        let Some(link) = self.link_mut(lane) else { return false };
        let stalled = link.stalled;
        let Some(receiver) = link.receiver.as_mut() else { return false };
        match receiver.position() {
            Position::Parking => {}
            Position::Active => return receiver.is_ready() && !stalled,
            // It was served without being unparked.
            Position::Parked if receiver.is_ready() => return !stalled,
            Position::Parked => {
                self.stop_polling(lane);
                return false;
            }
        }
        // The credit manager takes all extents back at once, below.
        if !receiver.try_park(|_| {}) {
            return receiver.is_ready() && !stalled;
        }
        // The sender may have written to the new place already.
        let ready = receiver.is_ready();
        self.credits.park(lane as u16);
        self.counters.parks += 1;
        self.stop_polling(lane);
        if ready {
            self.wake_lane(lane);
        }
        ready
    }

    /// Parks lanes that delivered nothing since the last check, if others need their credit or too
    /// many lanes are polled. Completes parkings that had to wait.
    pub(crate) fn park_idle(&mut self) {
        /// Polling this many lanes costs less than the barrier of parking one.
        const FEW: usize = 8;
        let pressed = self.credits.waiting() > 0 || self.active.len() > FEW;
        let mut idle = Vec::new();
        for &lane in &self.active {
            let Some(link) = self.links[lane as usize].as_deref_mut() else { continue };
            let Some(receiver) = &link.receiver else { continue };
            let parking = receiver.position() == Position::Parking;
            let quiet = link.recent == 0 && !receiver.is_ready();
            link.recent = 0;
            if parking || (pressed && quiet) {
                idle.push(lane);
            }
        }
        if !idle.is_empty() {
            self.park(&idle);
        }
    }

    /// Takes all credit from a lane whose sender is gone.
    pub(crate) fn abandon_lane(&mut self, lane: u32) {
        if let Some(receiver) = self.link_mut(lane).and_then(|l: &mut Link| l.receiver.as_mut()) {
            receiver.abandon(|_| {});
        }
        self.credits.park(lane as u16);
        self.stop_polling(lane);
        self.serve_waiting();
    }
}
