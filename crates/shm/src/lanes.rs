//! The receive path: lanes are served in turn, each in proportion to its weight, and get credit as
//! they deliver. Idle lanes are parked.

use crate::barrier;
use crate::bell::PeerBell;
use crate::inbound::{End, Inbound, PARKED_SERVES, Parking, Turn, Undelivered};
use crate::layout::{GEOMETRY, LINKS};
use bellwire_device::{FunctionAddress, Sink, random};
use bellwire_protocol::{CreditManager, Extent};
use bellwire_ring::doorbell::Doorbell;
use bellwire_ring::lane::{GRANTS, LaneMemory};
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use bellwire_ring::sync::Fences;
use std::sync::Arc;

/// All lanes to this function, numbered as their links are.
pub struct Lanes {
    slots: Vec<Option<Box<Inbound>>>,
    /// Lanes that are polled.
    pub polled: Vec<u32>,
    /// Index into `polled` of the lane whose turn it is.
    turn: usize,
    /// Scratch of `answer_doorbell`.
    rung: Vec<u32>,
    /// Lanes whose senders broke the rules, until their links are closed. They are not polled.
    pub violators: Vec<u32>,
    /// Rung by the senders of parked lanes.
    pub doorbell: Doorbell<Segment>,
    pub credits: CreditManager,
    // Counters.
    pub parks: u64,
    pub grants: u64,
    pub kicks: u64,
}

impl Lanes {
    /// No lanes yet. Peers ring at `doorbell`.
    pub fn new(doorbell: Doorbell<Segment>) -> Lanes {
        Lanes {
            slots: Vec::new(),
            polled: Vec::new(),
            turn: 0,
            rung: Vec::new(),
            violators: Vec::new(),
            doorbell,
            credits: CreditManager::new(GEOMETRY.pool_chunks as u16, LINKS as u16, GRANTS as u16),
            parks: 0,
            grants: 0,
            kicks: 0,
        }
    }

    fn lane(&self, number: u32) -> Option<&Inbound> {
        self.slots.get(number as usize)?.as_deref()
    }

    fn lane_mut(&mut self, number: u32) -> Option<&mut Inbound> {
        self.slots.get_mut(number as usize)?.as_deref_mut()
    }

    // The life of a lane.

    /// Adds the lane of a link that is being set up. It replaces an earlier one of that number.
    pub fn insert(&mut self, number: u32, peer: FunctionAddress, memory: LaneMemory<Segment>) {
        let slot = number as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(Box::new(Inbound::new(peer, memory, random(), random())));
    }

    /// The link is up.
    pub fn open(&mut self, number: u32, fences: Fences, weight: u32, bell: Arc<PeerBell>) {
        if let Some(lane) = self.lane_mut(number) {
            lane.open(fences, weight, bell);
        }
        // The peer may have sent and rung already, before the link was up here.
        self.look_at(number);
    }

    /// The link is over: the lane is not polled again once it is empty.
    pub fn end(&mut self, number: u32) {
        if let Some(lane) = self.lane_mut(number) {
            lane.bell = None;
        }
    }

    /// The peer broke the rules, and may still write where it had credit. So that part of the pool
    /// stays reserved until [`Lanes::abandon`].
    pub fn expel(&mut self, number: u32) {
        self.end(number);
        self.stop_polling(number);
    }

    /// Frees a lane whose sender is gone, and takes all its credit.
    pub fn abandon(&mut self, number: u32) {
        self.stop_polling(number);
        if let Some(slot) = self.slots.get_mut(number as usize) {
            *slot = None;
        }
        self.credits.park(number as u16);
        self.serve_waiting();
    }

    /// What the lane still holds for the engine, if it is polled.
    pub fn undelivered(&self, number: u32) -> Undelivered {
        self.lane(number).map_or(Undelivered::Nothing, Inbound::undelivered)
    }

    /// The region of ours that the lane's sender copies by a system call now.
    pub fn busy_region(&self, number: u32) -> Option<u16> {
        self.lane(number)?.receiver.busy_region()
    }

    /// Lanes whose senders copy region `index` by a system call now.
    pub fn busy_with(&self, index: u16) -> impl Iterator<Item = u32> {
        (0..self.slots.len() as u32).filter(move |&n| self.busy_region(n) == Some(index))
    }

    // Polling.

    /// The fast path for a pair that is alone: looks at one line, and takes one packet at most.
    /// `Some(taken)`: there is nothing else to do.
    #[inline(always)]
    pub fn poll_alone(&mut self, sink: &mut impl Sink) -> Option<usize> {
        let [number] = self.polled[..] else { return None };
        let lane = self.slots[number as usize].as_deref_mut().filter(|lane| !lane.streaming)?;
        let mut looked = false;
        loop {
            match lane.deliver_one(number, sink) {
                Ok(_) => {
                    lane.delivered_alone();
                    return Some(1);
                }
                Err(End::Empty) if !looked => {
                    // A second look finds what has just come, without a return to the program. The
                    // pause matters: a reader that polls the line without one takes it away from
                    // the sender between two of its stores. The message then arrives a whole line
                    // transfer later.
                    std::hint::spin_loop();
                    looked = true;
                }
                Err(End::Empty) => return (!self.doorbell.is_rung()).then_some(0),
                Err(end) => {
                    self.goes_on(number, end);
                    return None;
                }
            }
        }
    }

    /// Hands at most `budget` packets of the polled lanes to `sink`.
    #[inline(always)]
    pub fn serve(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        match self.polled[..] {
            [] => 0,
            // A pair that is alone needs no round-robin.
            [number] => {
                let mut turn = Turn::default();
                self.drain(number, i64::MAX, sink, budget, &mut turn);
                turn.packets
            }
            _ => self.serve_in_turn(sink, budget),
        }
    }

    fn serve_in_turn(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        let mut taken = 0;
        let mut quiet = 0;
        while taken < budget && quiet < self.polled.len() {
            if self.turn >= self.polled.len() {
                self.turn = 0;
            }
            let number = self.polled[self.turn];
            let Some(lane) = self.lane_mut(number) else { break };
            let allowance = lane.begin_turn();
            let mut turn = Turn::default();
            self.drain(number, allowance, sink, budget - taken, &mut turn);
            taken += turn.packets;
            quiet = if turn.packets == 0 { quiet + 1 } else { 0 };
            let Some(lane) = self.lane_mut(number) else { break };
            if lane.end_turn(&turn) {
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
        number: u32,
        allowance: i64,
        sink: &mut impl Sink,
        budget: usize,
        turn: &mut Turn,
    ) {
        /// A bound: a peer could move from run to run without end.
        const MOVES: usize = 64;
        for _ in 0..MOVES {
            let Some(lane) = self.slots[number as usize].as_deref_mut() else { return };
            let end = lane.deliver(number, allowance, sink, budget, turn);
            turn.more = matches!(end, End::Limit);
            if matches!(end, End::Empty | End::Limit) || !self.goes_on(number, end) {
                return;
            }
        }
        turn.more = true;
    }

    /// Handles the rarer ends. Returns whether the lane may have more for this turn.
    #[cold]
    fn goes_on(&mut self, number: u32, end: End) -> bool {
        match end {
            End::Empty | End::Stalled | End::Limit => {}
            End::Moved { freed, starved } => {
                self.follow(number, freed, starved);
                return true;
            }
            End::Violation => {
                // Not even a bell that comes late has it read again.
                self.expel(number);
                self.violators.push(number);
            }
        }
        false
    }

    fn start_polling(&mut self, number: u32) {
        if self.lane_mut(number).is_some_and(|lane| lane.set_polled(true)) {
            self.polled.push(number);
        }
    }

    fn stop_polling(&mut self, number: u32) {
        if self.lane_mut(number).is_some_and(|lane| lane.set_polled(false)) {
            self.polled.retain(|&n| n != number);
        }
    }

    // Doorbell and sleep.

    /// Polls the lanes that rang, and tells `rang` of each.
    #[cold]
    pub fn answer_doorbell(&mut self, mut rang: impl FnMut(u32)) {
        let mut rung = std::mem::take(&mut self.rung);
        self.doorbell.answer(|lane| rung.push(lane as u32));
        for number in rung.drain(..) {
            rang(number);
            self.wake(number);
        }
        self.rung = rung;
    }

    /// Polls a lane again if a packet waits there, even without a bell.
    pub fn look_at(&mut self, number: u32) {
        if self.lane(number).is_some_and(Inbound::needs_poll) {
            self.wake(number);
        }
    }

    /// Polls a lane again after its sender rang. A bell has no effect before the link is up and
    /// after its end.
    fn wake(&mut self, number: u32) {
        let Some(lane) = self.lane_mut(number).filter(|lane| lane.bell.is_some()) else { return };
        if lane.answer_bell() {
            self.want_credit(number);
            self.top_up(number);
        }
        self.start_polling(number);
    }

    /// Parks all lanes and announces sleep. `false`: there is something to do first.
    pub fn prepare_sleep(&mut self) -> bool {
        // A lane whose packet the engine cannot take now must not keep us awake.
        let stalled = |n| self.lane(n).is_none_or(|lane| lane.stalled);
        let lanes: Vec<u32> = self.polled.iter().copied().filter(|&n| !stalled(n)).collect();
        if self.park(&lanes) || !self.doorbell.prepare_sleep() {
            return false;
        }
        for number in lanes {
            if let Some(lane) = self.lane_mut(number) {
                lane.parked_serves_left = PARKED_SERVES;
            }
        }
        true
    }

    // Credit.

    /// A lane moved to its next run: the receiver takes credit back, and grants credit on demand,
    /// first come first served (D-14 to D-17).
    #[cold]
    fn follow(&mut self, number: u32, freed: Option<(u16, u16)>, starved: bool) {
        if let Some((first, count)) = freed {
            // The lane's receiver keeps its own record, so only a bug of ours can make this fail.
            self.credits
                .consumed(number as u16, Extent { first, count })
                .expect("a lane returns what it was granted");
        }
        if starved {
            self.want_credit(number);
        }
        self.serve_waiting();
        self.top_up(number);
        // Leaving a host chunk makes room too.
        self.call_sender(number);
    }

    /// Grants credit that came back to the lanes that wait for it.
    fn serve_waiting(&mut self) {
        while let Some((lane, extent)) = self.credits.next_grant() {
            self.grant(lane.into(), extent);
        }
    }

    fn top_up(&mut self, number: u32) {
        while self.lane(number).is_some_and(Inbound::wants_more_credit) {
            let Some(extent) = self.credits.top_up(number as u16) else { break };
            self.grant(number, extent);
        }
    }

    /// Gets credit for a lane, at once or when there is some. A parked lane is unparked.
    fn want_credit(&mut self, number: u32) {
        let Some(lane) = self.lane_mut(number) else { return };
        lane.unpark();
        if let Some(extent) = self.credits.want(number as u16) {
            self.grant(number, extent);
        }
    }

    fn grant(&mut self, number: u32, extent: Extent) {
        if self.lane_mut(number).is_some_and(|lane| lane.grant(extent)) {
            self.grants += 1;
            self.call_sender(number);
        } else {
            self.credits.consumed(number as u16, extent).expect("granted just now");
        }
    }

    /// Room was made in a lane: wakes its sender if that sleeps until there is room.
    fn call_sender(&mut self, number: u32) {
        self.kicks += u64::from(self.lane(number).is_some_and(Inbound::call_sender));
    }

    /// A gate was opened: wakes all senders that sleep until there is room.
    pub fn call_senders(&mut self) {
        for number in 0..self.slots.len() as u32 {
            self.call_sender(number);
        }
    }

    // Parking.

    /// Parks lanes that delivered nothing since the last check, if others need their credit or too
    /// many lanes are polled. Completes parkings that had to wait.
    pub fn park_idle(&mut self) {
        /// Polling this many lanes costs less than the barrier of parking one.
        const FEW: usize = 8;
        let pressed = self.credits.waiting() > 0 || self.polled.len() > FEW;
        let polled = std::mem::take(&mut self.polled);
        let idle: Vec<u32> = polled
            .iter()
            .copied()
            .filter(|&n| self.lane_mut(n).is_some_and(|lane| lane.should_park(pressed)))
            .collect();
        self.polled = polled;
        if !idle.is_empty() {
            self.park(&idle);
        }
    }

    /// Parks lanes in three steps: active lanes begin, one barrier serves all, and lanes whose
    /// senders have nothing in flight complete. Returns whether any has a packet that should be
    /// taken first.
    fn park(&mut self, lanes: &[u32]) -> bool {
        let mut fences = None;
        for &number in lanes {
            let needed = self.lane_mut(number).and_then(Inbound::begin_park);
            // One barrier serves all: the strongest that any of them needs.
            if fences != Some(Fences::Asymmetric) {
                fences = needed.or(fences);
            }
        }
        step("park-begun");
        if let Some(fences) = fences {
            fences.heavy(barrier::issue);
        }
        let mut packets = false;
        for &number in lanes {
            packets |= self.try_park(number);
        }
        self.serve_waiting();
        packets
    }

    /// Completes the parking of a lane if possible. Returns whether a packet stands at its cursor.
    fn try_park(&mut self, number: u32) -> bool {
        let Some(lane) = self.lane_mut(number) else { return false };
        match lane.try_park() {
            Parking::Later { ready } => ready,
            Parking::Idle => {
                self.stop_polling(number);
                false
            }
            Parking::Completed => {
                // The sender may have written to the new place already.
                let ready = lane.receiver.is_ready();
                self.credits.park(number as u16);
                self.parks += 1;
                self.stop_polling(number);
                if ready {
                    self.wake(number);
                }
                ready
            }
        }
    }
}
