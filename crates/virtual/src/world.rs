//! The machine and its users. All state is behind one lock. A calling program waits for its turn
//! ([`turns`](crate::turns)), runs the machine up to its clock, and acts.

use crate::keeper;
use crate::nic::{Nic, Tag};
use crate::seat::{Seat, Waits};
use crate::turns::{Doing, Turns};
use crate::wire::{Condition, Packet, Wire};
use bellwire_device::{Error, FunctionAddress, Gate, LinkId, PacketHeader, Status};
use bellwire_model::chpp::config::ProgramConfig;
use bellwire_model::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a waiting program checks whether the others are still there, in real time.
const TICK: Duration = Duration::from_millis(1);

/// After this many empty polls, a program's n-th poll blocks until there is news, or for the time
/// of n polls. Without this, threads that wait for each other would pass the turn at every poll.
const EMPTY_POLLS: u32 = 4;

/// Longest time that one of these polls blocks.
const EMPTY_POLL_STEP: Span = Span::from_ns(100_000_000);

/// Most that idle virtual time may run ahead of real time while other threads may still call.
const LEAD: Duration = Duration::from_millis(2);

/// The rest of [`LEAD`] that may be used now. It recovers as real time passes.
struct Lead {
    room: Duration,
    at: Instant,
}

impl Lead {
    fn room(&self, now: Instant) -> Duration {
        LEAD.min(self.room + now.saturating_duration_since(self.at))
    }

    fn spend(&mut self, passed: Duration, now: Instant) {
        self.room = self.room(now).saturating_sub(passed);
        self.at = now;
    }
}

/// A machine with a name.
pub(crate) struct World {
    /// Virtual time zero, as an instant.
    pub(crate) base: Instant,
    pub(crate) seed: u64,
    state: Mutex<State>,
}

/// The state of a world.
pub(crate) struct State {
    pub(crate) nic: Nic,
    pub(crate) turns: Turns,
    /// By place.
    pub(crate) seats: Vec<Option<Seat>>,
    addresses: BTreeMap<FunctionAddress, usize>,
    pub(crate) wires: Vec<Wire>,
    free_wires: Vec<usize>,
    wires_born: u64,
    pub(crate) nodes: BTreeSet<u32>,
    /// Places of functions that their programs wait for.
    pub(crate) waiting: Vec<usize>,
    /// Number of programs that must have called before virtual time begins. `has_begun`: they have.
    programs: usize,
    has_begun: bool,
    has_keeper: bool,
    /// Number of functions that wait for room.
    refusals: usize,
    lead: Lead,
    /// Time of the last event of the machine, or news for a function.
    pub(crate) changed: Time,
    /// The report of a standstill, after it has begun.
    pub(crate) standstill: Option<String>,
}

/// The calling program's turn. While it is held, all actions happen at the program's clock.
pub(crate) struct Turn<'w> {
    /// `Some` until the turn ends.
    state: Option<MutexGuard<'w, State>>,
    /// The program's index.
    pub(crate) me: usize,
}

impl World {
    pub(crate) fn new(nic: Nic, seed: u64, programs: usize) -> World {
        let seats = (0..nic.config.nodes() * nic.config.nic.functions * nic.config.nic.queue_pairs)
            .map(|_| None)
            .collect();
        let state = State {
            nic,
            turns: Turns::default(),
            seats,
            addresses: BTreeMap::new(),
            wires: Vec::new(),
            free_wires: Vec::new(),
            wires_born: 0,
            nodes: BTreeSet::new(),
            waiting: Vec::new(),
            programs,
            has_begun: programs == 0,
            has_keeper: false,
            refusals: 0,
            lead: Lead { room: LEAD, at: Instant::now() },
            changed: Time::ZERO,
            standstill: None,
        };
        World { base: Instant::now(), seed, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the calling thread's turn to use the function at `place`, after `cost` of its
    /// processor's time. Counts the program as begun.
    pub(crate) fn enter(&self, place: usize, cost: Span) -> Turn<'_> {
        let mut state = self.lock();
        let me = state.call_for(place);
        state.turns[me].has_begun = true;
        if !state.has_begun && state.turns.begun() >= state.programs {
            state.has_begun = true;
            state.turns.notify_all();
        }
        state.turns[me].clock += cost;
        self.wait_for_turn(state, me)
    }

    /// The same for calls without a cost, which can also come before virtual time begins.
    pub(crate) fn visit(&self, place: usize) -> Turn<'_> {
        let mut state = self.lock();
        let me = state.call_for(place);
        // A panicking thread does not wait for a turn.
        if !state.has_begun || std::thread::panicking() {
            return Turn::new(state, me);
        }
        self.wait_for_turn(state, me)
    }

    /// The same for a call without a function yet.
    pub(crate) fn arrive(&self) -> Turn<'_> {
        let mut state = self.lock();
        let now = state.nic.now();
        let me = state.turns.caller(now);
        state.turns[me].came_in(now);
        if !state.has_begun {
            return Turn::new(state, me);
        }
        let program = &mut state.turns[me];
        program.clock = program.clock.max(now);
        self.wait_for_turn(state, me)
    }

    fn wait_for_turn<'w>(&'w self, mut state: MutexGuard<'w, State>, me: usize) -> Turn<'w> {
        loop {
            if state.has_begun && state.turns.first() == Some(me) {
                let clock = state.turns[me].clock;
                if state.run(clock) {
                    return Turn::new(state, me);
                }
            } else {
                state.turns.notify_first();
                state = self.wait(state, me, TICK);
            }
        }
    }

    /// Waits for a notification. After `patience` of real time, marks absent programs as away.
    fn wait<'w>(
        &'w self,
        state: MutexGuard<'w, State>,
        me: usize,
        patience: Duration,
    ) -> MutexGuard<'w, State> {
        let bell = state.turns[me].bell.clone();
        let (mut state, late) =
            bell.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() && state.has_begun {
            state.turns.dismiss_absent(Some(me));
        }
        state
    }

    /// Sleeps until there is news for the function at `place`, or `timeout` of virtual time has
    /// passed.
    pub(crate) fn sleep(&self, place: usize, timeout: Option<Duration>) -> Turn<'_> {
        let turn = self.enter(place, Span::ZERO);
        if turn.has_news(place) {
            return turn;
        }
        let most = u128::from(FAR.ps() / 2);
        let until = timeout.map(|timeout| {
            let span = (timeout.as_nanos() * 1000).min(most);
            turn.clock() + Span::from_ps(span as u64)
        });
        self.rest(turn, &[place], Waits::Sleeps, until)
    }

    /// Blocks a program after several empty polls, at most for the time of its polls. News for one
    /// of the functions that it has polled ends this.
    pub(crate) fn spin<'w>(&'w self, turn: Turn<'w>) -> Turn<'w> {
        let program = &turn.turns[turn.me];
        if program.empty_polls.count < EMPTY_POLLS {
            return turn;
        }
        let (me, series) = (turn.me, program.empty_polls);
        let own = |seat: &Seat| seat.driver == me && seat.empty_series == series.number;
        let places: Vec<usize> = (0..turn.seats.len())
            .filter(|&place| turn.seats[place].as_ref().is_some_and(own))
            .collect();
        if places.iter().any(|&place| turn.has_news(place)) {
            return turn;
        }
        let step = turn.nic.config.program.poll * u64::from(series.count);
        let until = turn.clock() + step.min(EMPTY_POLL_STEP);
        self.rest(turn, &places, Waits::Spins, Some(until))
    }

    /// Lets time pass until there is news for one of the functions at `places`, or until `until`.
    fn rest<'w>(
        &'w self,
        turn: Turn<'w>,
        places: &[usize],
        how: Waits,
        until: Option<Time>,
    ) -> Turn<'w> {
        let (mut state, me) = turn.into_parts();
        let since = Instant::now();
        let limit = until.unwrap_or(FAR);
        let span = limit.since(state.turns[me].clock);
        let patience = Duration::from_nanos(span.ps() / 1000);
        let patience = patience.saturating_sub(state.lead.room(since));
        state.turns[me].doing = Doing::Sleeps(limit);
        places.iter().for_each(|&place| state.wait_at(place, how));
        while let Doing::Sleeps(_) = state.turns[me].doing {
            if state.turns.first() != Some(me) {
                state.turns.notify_first();
                state = self.wait(state, me, TICK);
                continue;
            }
            // No other program comes first. Time advances, at first only through pending events.
            if !state.run_out(limit)
                || state.turns[me].doing == Doing::Asks
                || state.gets_stuck(limit)
            {
                continue;
            }
            if state.nic.now() < limit {
                // Nothing happens until `limit`. While other threads may still call, virtual time
                // passes at the rate of real time.
                let left = patience.saturating_sub(since.elapsed());
                if until.is_none() || !left.is_zero() && !state.knows_all() {
                    let left = if until.is_none() { TICK } else { left.min(TICK) };
                    state = self.wait(state, me, left);
                    continue;
                }
                let begins = state.nic.now();
                let has_come = state.run(limit);
                let passed = Duration::from_nanos(state.nic.now().since(begins).ps() / 1000);
                state.lead.spend(passed, Instant::now());
                if !has_come {
                    continue;
                }
            }
            let program = &mut state.turns[me];
            program.clock = program.clock.max(limit);
            program.doing = Doing::Asks;
        }
        places.iter().for_each(|&place| state.wait_at(place, Waits::No));
        self.wait_for_turn(state, me)
    }

    /// Records that the program waits on the function's descriptor. `false`: there is news already.
    pub(crate) fn arm(self: &Arc<Self>, place: usize) -> bool {
        let turn = self.enter(place, Span::ZERO);
        if turn.has_news(place) {
            return false;
        }
        let (mut state, me) = turn.into_parts();
        if let Some(seat) = &state.seats[place] {
            let mut drained = [0; 8];
            let _ = rustix::io::read(&seat.bell, &mut drained);
        }
        state.wait_at(place, Waits::Armed);
        state.turns[me].doing = Doing::Away;
        state.run_idle();
        if !state.has_keeper {
            let world = Arc::downgrade(self);
            let step = move || world.upgrade().is_some_and(|world| world.run_armed());
            // Without the thread, waiting programs depend on the calls of others: no worse than a
            // silent peer on another device.
            state.has_keeper = keeper::start(step);
        }
        true
    }

    /// The keeper's step. `false`: no function is armed any more, and the keeper ends.
    fn run_armed(&self) -> bool {
        let mut state = self.lock();
        let armed = |place: &usize| {
            state.seats[*place].as_ref().is_some_and(|seat| seat.waits == Waits::Armed)
        };
        state.has_keeper = state.waiting.iter().any(armed);
        if state.has_keeper {
            state.turns.dismiss_absent(None);
            state.run_idle();
        }
        state.has_keeper
    }
}

/// The end of virtual time: 53 days.
pub(crate) const FAR: Time = Time::from_ps(1 << 62);

impl State {
    /// The calling thread's program, which drives the function at `place` from now on. Begins its
    /// call.
    fn call_for(&mut self, place: usize) -> usize {
        let now = self.nic.now();
        let me = self.turns.caller(now);
        self.turns[me].came_in(now);
        let Some(seat) = &mut self.seats[place] else { return me };
        let before = std::mem::replace(&mut seat.driver, me);
        let address = seat.address;
        if seat.waits == Waits::Armed {
            seat.waits = Waits::No;
            self.waiting.retain(|&waiting| waiting != place);
        }
        if before != me {
            self.turns[before].functions -= 1;
            self.turns[me].functions += 1;
            // Earlier actions of the former driver come first.
            let clock = self.turns[before].clock;
            let program = &mut self.turns[me];
            program.clock = program.clock.max(clock);
        }
        self.turns[me].used = address;
        me
    }

    /// Runs the machine up to `until`. `false`: a program was woken before that.
    fn run(&mut self, until: Time) -> bool {
        let is_due = self.run_out(until);
        if is_due {
            // No event is left until then: this only advances time.
            self.nic.step(until);
        }
        is_due
    }

    /// Runs the pending events up to `until`, without advancing time beyond them. `false`: a
    /// program was woken before that.
    pub(crate) fn run_out(&mut self, until: Time) -> bool {
        loop {
            if self.wake() {
                return false;
            }
            if !self.nic.machine.is_pending() || !self.nic.step(until) {
                return true;
            }
            self.changed = self.nic.now();
            self.absorb();
        }
    }

    /// Puts packets that were read into the inbox of their link.
    pub(crate) fn absorb(&mut self) {
        while let Some(read) = self.nic.next_read() {
            let Tag { wire: index, end } = read.tag;
            let wire = &mut self.wires[index];
            wire.flying[end] -= 1;
            let wanted = wire.numbers[end].is_some() && self.seats[read.place].is_some();
            if wanted && !wire.told[end] {
                wire.inbox[end].push_back(Packet { words: read.words, payload: read.payload });
                self.news_at(index, end);
            }
            self.room_at(index, end);
            self.forget(index);
        }
    }

    /// Wakes all waiting programs with news. `true`: one of them was waiting in a call.
    pub(crate) fn wake(&mut self) -> bool {
        let mut woken = false;
        for at in (0..self.waiting.len()).rev() {
            let place = self.waiting[at];
            if !self.has_news(place) {
                continue;
            }
            let now = self.nic.now();
            let ProgramConfig { wake, poll, .. } = self.nic.config.program;
            let Some(seat) = &mut self.seats[place] else { continue };
            self.waiting.remove(at);
            let waits = std::mem::replace(&mut seat.waits, Waits::No);
            if waits == Waits::Armed {
                let rung = rustix::io::write(&seat.bell, &1u64.to_ne_bytes());
                debug_assert!(rung.is_ok(), "an eventfd takes a small number");
                continue;
            }
            let program = &mut self.turns[seat.driver];
            let cost = if waits == Waits::Sleeps { wake } else { poll };
            program.clock = program.clock.max(now) + cost;
            program.doing = Doing::Asks;
            program.bell.notify_one();
            woken = true;
        }
        woken
    }

    /// Whether there is news for the function at `place`: its engine has something to do, or there
    /// is a standstill.
    pub(crate) fn has_news(&self, place: usize) -> bool {
        let Some(seat) = &self.seats[place] else { return false };
        self.standstill.is_some()
            || seat.news
            || self.nic.unread(place) > 0
            || seat.refused && self.nic.unnoticed(place) > 0
    }

    fn wait_at(&mut self, place: usize, how: Waits) {
        self.waiting.retain(|&waiting| waiting != place);
        if let Some(seat) = &mut self.seats[place] {
            seat.waits = how;
            if how != Waits::No {
                self.waiting.push(place);
            }
        }
    }

    /// Whether all programs of the world are known and none is away: no other can call while time
    /// passes.
    pub(crate) fn knows_all(&self) -> bool {
        self.programs > 0 && !self.turns.somebody_is_away()
    }

    /// Runs the pending events, if no program will do so.
    fn run_idle(&mut self) {
        if self.turns.first().is_none() {
            self.run_out(FAR);
            if self.gets_stuck(FAR) {
                self.wake();
            }
        }
        self.turns.notify_first();
    }

    /// Records a poll of the function at `place`. `found`: it was not empty.
    pub(crate) fn note_poll(&mut self, me: usize, place: usize, found: bool) {
        let program = &mut self.turns[me];
        if found {
            program.empty_polls.end();
        } else {
            program.empty_polls.count = program.empty_polls.count.saturating_add(1);
            if let Some(seat) = &mut self.seats[place] {
                seat.empty_series = program.empty_polls.number;
            }
        }
    }

    /// Opens a function on `host`.
    pub(crate) fn open(
        &mut self,
        host: usize,
        address: FunctionAddress,
        me: usize,
    ) -> Result<usize, Error> {
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { what: "making an eventfd", cause: error.into() })?;
        let Some(place) = self.nic.take_place(host) else {
            let nic = &self.nic.config.nic;
            return Err(Error::Exhausted {
                what: "queue pairs of the modelled host, of which each function needs one",
                limit: (nic.functions * nic.queue_pairs) as u64,
                hint: "Open fewer functions, or give a configuration with more: ?config=FILE with more crossbar.ports spreads the nodes over more hosts",
            });
        };
        self.changed = self.nic.now();
        self.turns[me].functions += 1;
        self.turns[me].used = address;
        self.seats[place] = Some(Seat {
            address,
            driver: me,
            gates: Default::default(),
            links: Vec::new(),
            free: Vec::new(),
            news: false,
            refused: false,
            waits: Waits::No,
            empty_series: 0,
            bell: Arc::new(bell),
        });
        self.addresses.insert(address, place);
        // Peers may be waiting for this function.
        for index in 0..self.wires.len() {
            if matches!(self.wires[index].condition, Condition::Asking(_))
                && self.wires[index].ends[1] == address
            {
                self.join(index);
            }
        }
        Ok(place)
    }

    /// Closes a function: all its links end.
    pub(crate) fn close_function(&mut self, place: usize) {
        let Some(seat) = self.seats[place].take() else { return };
        self.refusals -= usize::from(seat.refused);
        self.waiting.retain(|&waiting| waiting != place);
        self.addresses.remove(&seat.address);
        self.turns[seat.driver].functions -= 1;
        self.nic.leave_place(place);
        self.absorb();
        for (index, end) in seat.links.into_iter().flatten() {
            self.hang_up(index, end, Status::PeerGone);
        }
    }

    /// The link from the function at `place` to `peer`.
    pub(crate) fn link(&mut self, place: usize, peer: FunctionAddress, until: Time) -> LinkId {
        let Some(seat) = &self.seats[place] else { unreachable!("the caller is open") };
        for (number, end) in seat.links.iter().enumerate() {
            let Some((index, end)) = *end else { continue };
            let wire = &self.wires[index];
            if wire.ends[wire.far(end)] == peer && !wire.is_over() {
                return LinkId(number as u32);
            }
        }
        self.wires_born += 1;
        let wire = Wire {
            ends: [seat.address, peer],
            born: self.wires_born,
            condition: Condition::Asking(until),
            numbers: [None; 2],
            inbox: Default::default(),
            flying: [0; 2],
            wants: [false; 2],
            told: [false; 2],
        };
        let index = match self.free_wires.pop() {
            Some(index) => {
                self.wires[index] = wire;
                index
            }
            None => {
                self.wires.push(wire);
                self.wires.len() - 1
            }
        };
        let Some(seat) = &mut self.seats[place] else { unreachable!("the caller is open") };
        let number = seat.attach(index, 0);
        self.wires[index].numbers[0] = Some(number);
        if self.addresses.contains_key(&peer) {
            self.join(index);
        }
        number
    }

    /// Connects a wire to the function that it was waiting for.
    fn join(&mut self, index: usize) {
        let wire = &mut self.wires[index];
        wire.condition = Condition::Up;
        if wire.is_loop() {
            wire.told[1] = true;
        } else if let Some(place) = self.addresses.get(&wire.ends[1])
            && let Some(seat) = &mut self.seats[*place]
        {
            wire.numbers[1] = Some(seat.attach(index, 1));
        }
        self.news_at(index, 0);
    }

    /// Ends a wire on behalf of one end, which gets no report of it.
    pub(crate) fn hang_up(&mut self, index: usize, end: usize, why: Status) {
        let wire = &mut self.wires[index];
        if !wire.is_over() {
            wire.condition = Condition::Down(why);
        }
        wire.told[end] = true;
        wire.numbers[end] = None;
        wire.inbox[end].clear();
        if wire.is_loop() {
            wire.numbers[1] = None;
        }
        self.news_at(index, 1 - end);
        self.forget(index);
    }

    fn forget(&mut self, index: usize) {
        if self.wires[index].is_forgotten() && !self.free_wires.contains(&index) {
            self.free_wires.push(index);
        }
    }

    /// Ends a wire that has found no function in time.
    pub(crate) fn check_asking(&mut self, index: usize) {
        if let Condition::Asking(until) = self.wires[index].condition
            && self.nic.now() >= until
        {
            self.wires[index].condition = Condition::Down(Status::Unreachable);
        }
    }

    /// The place of the function at one end of a wire, if it is open.
    pub(crate) fn place_of_end(&self, index: usize, end: usize) -> Option<usize> {
        self.addresses.get(&self.wires[index].ends[end]).copied()
    }

    /// Marks news for the function at one end of a wire.
    pub(crate) fn news_at(&mut self, index: usize, end: usize) {
        self.changed = self.nic.now();
        if let Some(place) = self.place_of_end(index, end)
            && let Some(seat) = &mut self.seats[place]
        {
            seat.news = true;
        }
    }

    /// Marks room for packets towards `end` of a wire as news for all peers of the function there
    /// that were refused.
    pub(crate) fn room_at(&mut self, index: usize, end: usize) {
        if self.refusals == 0 {
            return;
        }
        let Some(place) = self.place_of_end(index, end) else { return };
        let Some(seat) = &self.seats[place] else { return };
        let peers: Vec<(usize, usize)> = seat.links.iter().flatten().copied().collect();
        for (index, end) in peers {
            let far = self.wires[index].far(end);
            if let Some(place) = self.place_of_end(index, far)
                && let Some(seat) = &mut self.seats[place]
                && seat.refused
            {
                seat.news = true;
            }
        }
    }

    /// Sets a gate, and marks it as news for all linked peers.
    pub(crate) fn set_gate(&mut self, place: usize, queue_pair: u32, gate: Gate) {
        let Some(seat) = &mut self.seats[place] else { return };
        seat.gates.insert(queue_pair, gate);
        let links: Vec<(usize, usize)> = seat.links.iter().flatten().copied().collect();
        for (index, end) in links {
            let far = self.wires[index].far(end);
            self.news_at(index, far);
        }
    }

    /// Whether a packet towards `end` of a wire has room on the wire, at the sender's interface and
    /// at the receiver. The receiver's place takes a bounded number of packets at once; each wire
    /// has a share.
    pub(crate) fn has_room(
        &self,
        index: usize,
        end: usize,
        (from, to): (usize, usize),
        header: PacketHeader,
        length: usize,
    ) -> bool {
        let wire = &self.wires[index];
        if !wire.has_room(end) || !self.nic.takes((from, to), header, length) {
            return false;
        }
        let expects = self.nic.expects(to);
        // All wires with packets in flight to this function, or waiting for room, get equal shares.
        let Some(seat) = &self.seats[to] else { return true };
        let active = |&&(index, end): &&(usize, usize)| {
            let wire = &self.wires[index];
            wire.flying[end] > 0 || wire.wants[end]
        };
        let active = seat.links.iter().flatten().filter(active).count();
        wire.flying[end] < (expects / active.max(1)).max(1)
    }

    /// Records that the function at `place` waits for room. Reads its finished operations, which
    /// may free some.
    pub(crate) fn want_room(&mut self, place: usize) {
        if let Some(seat) = &mut self.seats[place]
            && !std::mem::replace(&mut seat.refused, true)
        {
            self.refusals += 1;
        }
        self.nic.look(place);
        self.absorb();
    }

    /// The engine of the function at `place` is about to handle all its news.
    pub(crate) fn hear(&mut self, place: usize) {
        self.nic.look(place);
        self.absorb();
        if let Some(seat) = &mut self.seats[place] {
            seat.news = false;
            self.refusals -= usize::from(std::mem::take(&mut seat.refused));
        }
    }

    /// The lowest node number that is free, or `wanted` if that is.
    pub(crate) fn claim_node(&mut self, wanted: Option<u32>) -> Option<u32> {
        let node = wanted.unwrap_or_else(|| {
            (0..).find(|node| !self.nodes.contains(node)).expect("fewer than 2^32 nodes are open")
        });
        self.nodes.insert(node).then_some(node)
    }
}

impl<'w> Turn<'w> {
    fn new(state: MutexGuard<'w, State>, me: usize) -> Turn<'w> {
        Turn { state: Some(state), me }
    }

    /// Charges the program `cost` for its last action.
    pub(crate) fn spend(&mut self, cost: Span) {
        self.spend_until(self.clock() + cost);
    }

    /// Moves the program's clock to `time`.
    pub(crate) fn spend_until(&mut self, time: Time) {
        let me = self.me;
        let program = &mut self.turns[me];
        program.clock = program.clock.max(time);
    }

    /// The program's clock.
    pub(crate) fn clock(&self) -> Time {
        self.turns[self.me].clock
    }

    /// Takes the turn apart: the program stays in its call, and the lock stays held.
    fn into_parts(mut self) -> (MutexGuard<'w, State>, usize) {
        let state = self.state.take().expect("a turn has its lock until it ends");
        (state, self.me)
    }
}

impl Deref for Turn<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("a turn has its lock until it ends")
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("a turn has its lock until it ends")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(state) = &mut self.state {
            state.turns[self.me].doing = Doing::Computes;
            state.turns.notify_first();
        }
    }
}
