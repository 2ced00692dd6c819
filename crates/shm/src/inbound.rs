//! The lane from one peer to us: hands the peer's packets to the engine.

use crate::bell::PeerBell;
use crate::layout::GEOMETRY;
use bellwire_device::{FunctionAddress, LinkId, Sink, Verdict};
use bellwire_protocol::Extent;
use bellwire_ring::lane::{Arrival, Freed, LaneMemory, LaneReceiver, LaneState};
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use bellwire_ring::sync::Fences;
use std::sync::Arc;

/// Lines that a lane of weight 1 may deliver in one round (deficit round robin, C-41).
const QUANTUM_LINES: i64 = 16;

/// Extents that an active lane holds ahead of the one that it fills.
const AHEAD: usize = 2;

/// How often a parked lane is served after its doorbell rang, between two sleeps, before it is
/// unparked. A parked lane needs no barrier before the next sleep, which is cheap for few messages
/// between sleeps. Its sender rings for each message, which is expensive for many.
pub const PARKED_SERVES: u32 = 4;

/// What a lane delivered in its turn.
#[derive(Default)]
pub struct Turn {
    pub packets: usize,
    pub lines: i64,
    /// Whether the lane may have more to take now.
    pub more: bool,
}

/// Why a lane delivers no more for now.
pub enum End {
    /// No packet stands at its cursor.
    Empty,
    /// The budget or the allowance is used up.
    Limit,
    /// The engine has no room for the packet at the cursor.
    Stalled,
    /// The sender moved to its next run.
    Moved { freed: Option<Freed>, starved: bool },
    /// The sender broke the rules.
    Violation,
}

/// What a polled lane still holds for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undelivered {
    Nothing,
    /// A packet that the next poll delivers.
    Packet,
    /// A packet that the engine has no room for.
    Stalled,
}

/// What a lane needs to complete its parking.
pub enum Parking {
    /// It is parked, and gave its credit back now.
    Completed,
    /// It was parked already and has no packet.
    Idle,
    /// A packet, or its sender, comes first. `ready`: the engine can take that packet.
    Later { ready: bool },
}

/// The lane from one peer.
pub struct Inbound {
    pub receiver: LaneReceiver<Segment>,
    peer: FunctionAddress,
    /// Tells the peer that there is room. Credit and the peer's bells reach the lane while it has
    /// this: from the moment the link is up until it is over.
    pub bell: Option<Arc<PeerBell>>,
    polled: bool,
    /// The engine had no room for the packet at the cursor.
    pub stalled: bool,
    /// [`PARKED_SERVES`] from each sleep on.
    pub parked_serves_left: u32,
    /// The last poll found a packet, so the next may find several.
    pub streaming: bool,
    /// Packets taken since the last check for idle lanes.
    recent: u64,
    weight: u32,
    /// Lines that the lane may still deliver in this round.
    allowance: i64,
}

impl Inbound {
    /// A lane whose link is being set up. `seed` and `start` as in [`LaneReceiver::new`].
    pub fn new(peer: FunctionAddress, memory: LaneMemory<Segment>, seed: u64, start: u64) -> Self {
        Inbound {
            receiver: LaneReceiver::new(memory, GEOMETRY, Fences::Symmetric, seed, start),
            peer,
            bell: None,
            polled: false,
            stalled: false,
            parked_serves_left: 0,
            streaming: false,
            recent: 0,
            weight: 1,
            allowance: 0,
        }
    }

    /// The link is up.
    pub fn open(&mut self, fences: Fences, weight: u32, bell: Arc<PeerBell>) {
        self.receiver.set_fences(fences);
        self.weight = weight.max(1);
        self.bell = Some(bell);
    }

    /// Whether the lane is polled from now on. Returns whether that is a change.
    pub fn set_polled(&mut self, polled: bool) -> bool {
        std::mem::replace(&mut self.polled, polled) != polled
    }

    /// Whether a packet waits, or the lane is polled for another reason.
    pub fn needs_poll(&self) -> bool {
        self.receiver.state() != LaneState::Parked || self.receiver.is_ready()
    }

    pub fn undelivered(&self) -> Undelivered {
        match (self.polled && self.receiver.is_ready(), self.stalled) {
            (false, _) => Undelivered::Nothing,
            (true, false) => Undelivered::Packet,
            (true, true) => Undelivered::Stalled,
        }
    }

    /// Looks at the cursor and hands the packet there to `sink`. Returns its payload bytes.
    ///
    /// # Errors
    /// None, and why.
    #[inline(always)]
    pub fn deliver_one(&mut self, number: u32, sink: &mut impl Sink) -> Result<usize, End> {
        Err(match self.receiver.peek() {
            Arrival::Nothing => End::Empty,
            Arrival::Packet(words, payload) => {
                let length = payload.len();
                match sink.packet(LinkId(number), self.peer, words, payload) {
                    Verdict::Taken => {
                        step("packet-taken");
                        self.receiver.take(words[0]);
                        self.stalled = false;
                        return Ok(length);
                    }
                    Verdict::Stalled => {
                        self.stalled = true;
                        End::Stalled
                    }
                    Verdict::Violation => End::Violation,
                }
            }
            Arrival::Moved { freed, starved } => End::Moved { freed, starved },
            Arrival::Violation => End::Violation,
        })
    }

    /// A packet was delivered by a look at this lane alone.
    #[inline(always)]
    pub fn delivered_alone(&mut self) {
        self.streaming = true;
        self.recent += 1;
    }

    /// The hot loop of the receiving side: everything that it touches is in this lane and in
    /// `sink`.
    #[inline(always)]
    pub fn deliver(
        &mut self,
        number: u32,
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
            match self.deliver_one(number, sink) {
                Ok(length) => {
                    packets += 1;
                    lines += 1 + (length / 64) as i64;
                }
                Err(end) => break end,
            }
        };
        self.recent += (packets - turn.packets) as u64;
        // After a lone packet the next line is probably not written yet, and one look is enough.
        self.streaming = packets > 0;
        (turn.packets, turn.lines) = (packets, lines);
        end
    }

    /// The lines that the lane may deliver in this turn.
    pub fn begin_turn(&mut self) -> i64 {
        if self.allowance <= 0 {
            self.allowance += i64::from(self.weight) * QUANTUM_LINES;
        }
        self.allowance
    }

    /// Pays for a turn. Returns whether the next lane is served now.
    pub fn end_turn(&mut self, turn: &Turn) -> bool {
        // An empty lane loses its unused allowance. A long packet overdraws, and later rounds pay
        // it back.
        self.allowance = if turn.more { self.allowance - turn.lines } else { 0 };
        self.allowance <= 0
    }

    /// Whether the lane should hold more credit than it does.
    pub fn wants_more_credit(&self) -> bool {
        self.bell.is_some()
            && self.receiver.state() == LaneState::Active
            && self.receiver.open_grants() < AHEAD
    }

    /// Grants an extent. `false`: the lane cannot use it now. It asks again when it can.
    #[must_use]
    pub fn grant(&mut self, extent: Extent) -> bool {
        let usable = self.bell.is_some() && self.receiver.state() == LaneState::Active;
        if usable {
            self.receiver.grant(extent.first, extent.count);
        }
        usable
    }

    /// Room was made: wakes the sender if it sleeps until there is room. Returns whether it did.
    pub fn call_sender(&self) -> bool {
        let waiting = self.receiver.take_waiting();
        self.bell.as_ref().is_some_and(|bell| waiting && bell.ring())
    }

    /// The sender rang. Returns whether the lane needs credit now; if not, it is served as it is.
    pub fn answer_bell(&mut self) -> bool {
        match self.receiver.state() {
            // A lane that is being parked is drained first.
            LaneState::Active | LaneState::Parking => false,
            // A credit-starved sender rings for credit: either there is no packet, or it announced
            // that it sleeps. (If the lane is polled, the bell may belong to a packet that was
            // taken already.)
            LaneState::Parked => {
                let starved =
                    self.receiver.is_waiting() || !(self.polled || self.receiver.is_ready());
                if self.parked_serves_left > 0 && !starved {
                    self.parked_serves_left -= 1;
                    return false;
                }
                step("lane-woken");
                true
            }
        }
    }

    /// Polls the lane again, if it is parked.
    pub fn unpark(&mut self) {
        if self.receiver.state() == LaneState::Parked {
            self.receiver.unpark();
        }
    }

    /// Begins to park the lane. Returns the fences that come before [`Inbound::try_park`].
    pub fn begin_park(&mut self) -> Option<Fences> {
        // A lane that stays parked needs an empty small chunk while its sender still has room in
        // the old one. Parking it anew gives it one.
        let room_lines = GEOMETRY.small_lines / 2;
        if self.receiver.room_lines() < room_lines {
            self.unpark();
        }
        (self.receiver.state() == LaneState::Active).then(|| {
            self.receiver.begin_park();
            self.receiver.fences()
        })
    }

    /// Completes the parking if possible.
    pub fn try_park(&mut self) -> Parking {
        let receiver = &mut self.receiver;
        match receiver.state() {
            // The credit manager takes all extents back at once.
            LaneState::Parking if receiver.try_park(|_| {}) => Parking::Completed,
            // It was served without being unparked.
            LaneState::Parked if !receiver.is_ready() => Parking::Idle,
            _ => Parking::Later { ready: receiver.is_ready() && !self.stalled },
        }
    }

    /// Whether to park the lane, or to go on with parking it. `pressed`: others need its credit, or
    /// its place among the polled lanes. Asked at each check for idle lanes.
    pub fn should_park(&mut self, pressed: bool) -> bool {
        let quiet = std::mem::take(&mut self.recent) == 0 && !self.receiver.is_ready();
        self.receiver.state() == LaneState::Parking || (pressed && quiet)
    }
}
