//! One world: functions, their programs, the network between them, and time.

use std::collections::VecDeque;

use bellwire_protocol::Secret;
use bellwire_protocol::discovery::SeekOutcome;
use bellwire_protocol::discovery::seek::{self, SeekFrame};
use bellwire_protocol::reliable::{Channel, Config, Endpoint, GateState, PeerId};
use bellwire_wire::frame::check::CHECK_BYTES;
use bellwire_wire::frame::seek::SeekBody;

use crate::adversary::{Adversary, Fate, Forged};
use crate::chance::{Chance, scatter};
use crate::device::{self, Device};
use crate::network::{Network, Traffic};
use crate::oracle::Oracle;
use crate::program::{Program, Taker, Turn, fold};
use crate::scenario::{Scenario, Weather};
use crate::sealing::{self, Sealing};
use crate::seals::Seals;

/// Everything must finish within this time after the faults stopped, in ns. The longest wait adds
/// up: a closed link lingers (5 s), after a peer is found dead (6 s), after an unanswered request.
pub const CALM_NS: u64 = 30_000_000_000;
/// The faults stop after this time, even if few frames went, in ns.
const STORM_NS: u64 = 20_000_000_000;
/// After this many turns without a frame the world spins.
const MOST_IDLE_TURNS: u64 = 300_000;
/// Events kept for the report of a failure.
const LOG_LINES: usize = 60;

/// The result of a world without a failure.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Changes with every frame that arrived, its time and content, and every packet that was
    /// taken.
    pub hash: u64,
    /// What happened to frames.
    pub traffic: Traffic,
    /// Packets that programs took and the oracle compared.
    pub packets: u64,
    /// Links that ended before the world did.
    pub downs: u64,
    /// Functions that were started again.
    pub restarts: u64,
    /// Frames that functions sent again.
    pub resent: u64,
    /// Virtual time, in ns.
    pub ns: u64,
}

/// A failure, and the events before it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the world.
    pub seed: u64,
    /// Virtual time of the failure, in ns.
    pub at_ns: u64,
    /// Frames sent before it.
    pub frames: u64,
    /// The failure.
    pub what: String,
    /// The last events before it.
    pub log: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "seed {}: after {} frames and {} ns: {}",
            self.seed, self.frames, self.at_ns, self.what
        )?;
        for line in &self.log {
            writeln!(f, "  {line}")?;
        }
        write!(f, "run it again with --seed {} --frames 1", self.seed)
    }
}

impl std::error::Error for Failure {}

/// One function.
struct Function {
    /// `None`: gone for good.
    endpoint: Option<Endpoint>,
    program: Program,
    device: Device,
    /// It is stalled until then.
    stalled_until_ns: u64,
    /// Pending answers to seeks for its place: destination, answer, function.
    answers: Vec<(device::Place, SeekBody, u8)>,
    /// With a key, what goes in and out is sealed.
    sealing: Option<Sealing>,
}

struct World<'a> {
    scenario: &'a Scenario,
    now_ns: u64,
    functions: Vec<Function>,
    /// When each function wants its turn. Kept apart, because every event searches for the next
    /// one.
    wakes_ns: Vec<u64>,
    network: Network,
    oracle: Oracle,
    /// With a key, what the wire shows of it.
    seals: Option<Seals>,
    adversary: Option<Adversary>,
    chance: Chance,
    fault_ns: u64,
    fault_pause_ns: u64,
    /// When cuts end: from, to.
    cuts: Vec<(u64, usize, usize)>,
    calm_since_ns: Option<u64>,
    idle_turns: u64,
    outcome: Outcome,
    log: VecDeque<String>,
}

/// Runs the world of a scenario until everything has finished.
///
/// # Errors
/// What the oracle objects to.
pub fn run(scenario: &Scenario) -> Result<Outcome, Box<Failure>> {
    let mut world = World::new(scenario);
    match world.run() {
        Ok(()) => Ok(world.outcome),
        Err(what) => Err(Box::new(Failure {
            seed: scenario.seed,
            at_ns: world.now_ns,
            frames: world.network.traffic.sent,
            what,
            log: world.log.into(),
        })),
    }
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let count = scenario.functions.len();
        let mut chance = Chance::new(scenario.seed ^ 0x0007_1e5d);
        let fault_pause_ns = chance.pick(&[20_000, 200_000, 1_000_000]);
        let mut world = World {
            scenario,
            now_ns: 1,
            functions: Vec::with_capacity(count),
            wakes_ns: vec![1; count],
            network: Network::new(scenario),
            adversary: Adversary::new(scenario),
            seals: scenario.has_key.then(|| Seals::new(sealing::limits(scenario.seed).end_ns)),
            oracle: Oracle::new(scenario.seed, count, scenario.longest_bytes, scenario.race),
            chance,
            fault_ns: 1,
            fault_pause_ns,
            cuts: Vec::new(),
            calm_since_ns: None,
            idle_turns: 0,
            outcome: Outcome::default(),
            log: VecDeque::new(),
        };
        for index in 0..count {
            let function = world.birth(index, 1);
            world.functions.push(function);
        }
        world
    }

    /// Function `index` begins its life `life`.
    fn birth(&mut self, index: usize, life: u32) -> Function {
        let (address, config) = self.scenario.functions[index];
        let seed = scatter(self.scenario.seed ^ (index as u64) << 32 ^ life as u64);
        let secret = Secret::from_seed(seed);
        let sealing = self.scenario.has_key.then(|| Sealing::new(self.scenario.seed, seed));
        let config = Config { has_check: sealing.is_none(), ..config };
        let endpoint = Endpoint::new(config, address, 1000 + life as u64, secret);
        Function {
            device: Device::new(self.scenario, address.node, config.frame_bytes, secret),
            endpoint: Some(endpoint.expect("the scenario's settings can work")),
            program: Program::new(index, life, self.scenario, self.now_ns, scatter(seed)),
            stalled_until_ns: 0,
            answers: Vec::new(),
            sealing,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            let arrival_ns = self.network.next_arrival_ns();
            let (index, wake_ns) = self.next_wake();
            let attack_ns = self.adversary.as_ref().map_or(u64::MAX, |adversary| adversary.next_ns);
            let next_ns = arrival_ns.min(wake_ns).min(self.fault_ns).min(attack_ns);
            if next_ns == u64::MAX {
                if self.calm_since_ns.is_some() && self.has_finished() && self.is_over()? {
                    return self.finish();
                }
                return Err("nothing will ever happen any more".to_owned() + &self.open_ends());
            }
            self.now_ns = self.now_ns.max(next_ns);
            if self.fault_ns <= next_ns {
                self.disturb()?;
            } else if attack_ns <= next_ns {
                self.attack();
            } else if arrival_ns <= wake_ns {
                self.arrive()?;
            } else {
                self.turn(index)?;
                self.idle_turns += 1;
                if self.idle_turns > MOST_IDLE_TURNS {
                    return Err(format!("{index} wants its turn again and again for nothing"));
                }
                if self.calm_since_ns.is_some() && self.has_finished() && self.is_over()? {
                    return self.finish();
                }
            }
            if let Some(since_ns) = self.calm_since_ns
                && self.now_ns > since_ns + CALM_NS
            {
                return Err(format!("no end {CALM_NS} ns after the faults") + &self.open_ends());
            }
        }
    }

    #[inline]
    fn next_wake(&self) -> (usize, u64) {
        let mut next = (0, u64::MAX);
        for (index, &wake_ns) in self.wakes_ns.iter().enumerate() {
            if wake_ns < next.1 {
                next = (index, wake_ns);
            }
        }
        next
    }

    /// The adversary acts.
    fn attack(&mut self) {
        if let Some(adversary) = &mut self.adversary {
            for Forged { from, to, bytes } in adversary.act(self.now_ns) {
                self.network.forge(from, to, &bytes, self.now_ns);
            }
        }
    }

    /// A frame arrives.
    fn arrive(&mut self) -> Result<(), String> {
        let Some(place) = self.network.arrive() else { return Ok(()) };
        let frame = self.network.frame(place);
        let (index, from) = (frame.to, frame.from);
        let function = &mut self.functions[index];
        let Some(endpoint) = &mut function.endpoint else {
            self.network.lose(place);
            return Ok(());
        };
        if function.stalled_until_ns > self.now_ns {
            self.network.put_off(place, function.stalled_until_ns);
            return Ok(());
        }
        self.idle_turns = 0;
        let bytes = frame.bytes();
        let check = bytes.last_chunk::<4>().map_or(0, |check| u32::from_le_bytes(*check));
        let seen = fold(self.outcome.hash, self.now_ns ^ (check as u64) << 32 ^ index as u64);
        self.outcome.hash = seen;
        let device = &mut function.device;
        let is_sealed = function.sealing.is_some();
        let opened = function.sealing.as_mut().map(|it| it.open(from, bytes, self.now_ns));
        if let Some(seals) = &mut self.seals
            && opened.as_ref().is_some_and(|frame| !frame.is_empty())
        {
            seals.opens(bytes, self.now_ns)?;
        }
        let bytes = opened.as_deref().unwrap_or(bytes);
        if let Some(seek) = seek::parse(bytes) {
            let Device { discovery, directory, .. } = device;
            if let SeekOutcome::Asked(answer, to) =
                discovery.handle(directory, from, seek, self.now_ns)
            {
                function.answers.push((from, answer, to));
            }
        } else if bytes.is_empty() {
            // It was not opened.
        } else if let Some(path) = match is_sealed {
            true => Some(device.path_of(from, endpoint)),
            false => device.path_of_sender(from, bytes, endpoint),
        } {
            let (now_ns, oracle, scenario) = (self.now_ns, &mut self.oracle, self.scenario);
            let is_calm = self.calm_since_ns.is_some();
            let mut turn = Turn { now_ns, oracle, device, scenario, is_calm };
            let program = &mut function.program;
            let mut taker = Taker { program, turn: &mut turn, hash: seen };
            endpoint.handle_frame(path, bytes, self.now_ns, &mut taker);
            self.outcome.hash = taker.hash;
        }
        self.network.release(place);
        function.program.wake(self.now_ns);
        self.carry_requests(index)?;
        if self.scenario.batch_ns == 0 {
            self.turn(index)
        } else {
            let wake_ns = &mut self.wakes_ns[index];
            *wake_ns = (*wake_ns).min(self.now_ns + self.scenario.batch_ns);
            Ok(())
        }
    }

    /// A function has its turn: it reads events, takes what it had refused, and sends.
    fn turn(&mut self, index: usize) -> Result<(), String> {
        let function = &mut self.functions[index];
        let Some(endpoint) = &mut function.endpoint else {
            self.wakes_ns[index] = u64::MAX;
            return Ok(());
        };
        if function.stalled_until_ns > self.now_ns {
            self.wakes_ns[index] = function.stalled_until_ns;
            return Ok(());
        }
        let (program, device) = (&mut function.program, &mut function.device);
        let (now_ns, oracle, scenario) = (self.now_ns, &mut self.oracle, self.scenario);
        let is_calm = self.calm_since_ns.is_some();
        let mut turn = Turn { now_ns, oracle, device, scenario, is_calm };
        let mut log = program.read_news(endpoint, &mut turn);
        if endpoint.has_deliverable() {
            let mut taker = Taker { program, turn: &mut turn, hash: self.outcome.hash };
            endpoint.deliver(&mut taker);
            self.outcome.hash = taker.hash;
        }
        program.act(endpoint, &mut turn);
        let mut post = Vec::new();
        loop {
            let place = self.network.reserve();
            let buffer = self.network.buffer(place);
            let transmit = match function.sealing {
                None => endpoint.poll_transmit(self.now_ns, buffer),
                Some(_) => {
                    endpoint.poll_transmit_apart(self.now_ns, buffer).map(|(sent, apart)| {
                        let end = sent.length - CHECK_BYTES;
                        buffer[end - apart.len()..end].copy_from_slice(apart);
                        sent
                    })
                }
            };
            let Some(transmit) = transmit else {
                self.network.release(place);
                break;
            };
            self.idle_turns = 0;
            // A place that only answers go to may have been forgotten.
            match turn.device.discovery.places.place(transmit.path) {
                Some(to) => post.push((place, to, transmit.length)),
                None => self.network.swallow(place, transmit.length),
            }
        }
        let (answers, network) = (&mut function.answers, &mut self.network);
        post.extend(device_frames(index, &mut turn, answers, network));
        log.extend(program.read_news(endpoint, &mut turn));
        let program_ns = program.deadline_ns(endpoint, self.now_ns);
        let device_ns = turn.device.deadline_ns();
        self.wakes_ns[index] =
            endpoint.next_deadline().min(program_ns).min(device_ns).max(self.now_ns + 1);
        if let Some(error) = program.error.take() {
            return Err(error);
        }
        turn.device.check()?;
        for (place, to, length) in post {
            self.carry(place, index, to, length)?;
        }
        if let Some(adversary) = self.adversary.as_mut().filter(|_| !log.is_empty())
            && adversary.is_waiting
        {
            let mut partners = self.functions.iter().flat_map(|of| &of.program.partners);
            if partners.all(|partner| partner.has_met) {
                adversary.all_met();
            }
        }
        for line in log {
            // A link has come or gone: there may be something to send.
            self.functions[index].program.wake(self.now_ns);
            self.wakes_ns[index] = self.now_ns + 1;
            self.note(line);
        }
        Ok(())
    }

    /// Carries a frame of a function to its destination, sealed if there is a key.
    fn carry(
        &mut self,
        place: u32,
        from: usize,
        to: device::Place,
        length: usize,
    ) -> Result<(), String> {
        let Some(sealing) = &mut self.functions[from].sealing else {
            return self.pass(place, from, to, length);
        };
        let buffer = self.network.buffer(place);
        match sealing.seal(to, buffer, length, self.now_ns) {
            Some(length) => self.pass(place, from, to, length)?,
            None => self.network.release(place),
        }
        self.carry_requests(from)
    }

    /// Carries what a function sends to get a session.
    fn carry_requests(&mut self, from: usize) -> Result<(), String> {
        while let Some((to, bytes)) =
            self.functions[from].sealing.as_mut().and_then(Sealing::poll_transmit)
        {
            let place = self.network.reserve();
            self.network.buffer(place)[..bytes.len()].copy_from_slice(&bytes);
            self.pass(place, from, to, bytes.len())?;
        }
        Ok(())
    }

    /// Carries a frame as it is on the wire, past the adversary.
    fn pass(
        &mut self,
        place: u32,
        from: usize,
        to: device::Place,
        length: usize,
    ) -> Result<(), String> {
        if let Some(seals) = &mut self.seals {
            seals.leaves(&self.network.buffer(place)[..length], self.now_ns)?;
        }
        let host = device::host(to);
        if let Some(adversary) = &mut self.adversary {
            let bytes = &mut self.network.buffer(place)[..length];
            if host >= self.functions.len() {
                let answers = adversary.receive(host, from, bytes)?;
                self.network.swallow(place, length);
                for Forged { from, to, bytes } in answers {
                    self.network.forge(from, to, &bytes, self.now_ns);
                }
                return Ok(());
            }
            if let Fate::Stays = adversary.see(from, host, bytes, self.now_ns) {
                self.network.swallow(place, length);
                return Ok(());
            }
        }
        self.network.send(place, from, to, length, self.now_ns);
        Ok(())
    }

    fn note(&mut self, line: String) {
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(format!("{:>14} ns: {line}", self.now_ns));
    }

    /// Starts or ends a random fault.
    fn disturb(&mut self) -> Result<(), String> {
        let end_ns = self.scenario.race.map_or(STORM_NS, |race| race.ends_ns);
        let is_over = self.network.traffic.sent >= self.scenario.frames || self.now_ns > end_ns;
        if is_over {
            return self.calm_down();
        }
        self.fault_ns = self.now_ns + 1 + self.chance.below(2 * self.fault_pause_ns);
        // A slow world has few frames for its time: rarer faults keep it from doing nothing else.
        self.fault_pause_ns += self.fault_pause_ns >> 12;
        for cut in self.cuts.extract_if(.., |cut| cut.0 <= self.now_ns) {
            self.network.cut[cut.1][cut.2] = false;
        }
        let count = self.functions.len() as u64;
        let index = self.chance.below(count) as usize;
        match self.chance.below(40) {
            0..8 => self.network.weather = weather(&self.scenario.worst, &mut self.chance),
            8..16 if self.scenario.stalls => {
                let most_ns = self.chance.pick(&[20_000, 1_000_000, 1_000_000, 50_000_000]);
                self.functions[index].stalled_until_ns = self.now_ns + self.chance.below(most_ns);
            }
            16..20 if self.scenario.cuts => self.cut(index),
            20..22 if self.scenario.interfaces > 1 && self.scenario.cuts => {
                let interface = self.chance.below(self.scenario.interfaces as u64) as usize;
                self.network.dead[interface] = !self.network.dead[interface];
            }
            22..24 if self.scenario.mtu_changes => self.change_mtu(),
            24..26 if self.scenario.restarts => self.restart(index)?,
            26..28 if self.scenario.closes => self.close(index),
            28..32 => self.set_gate(index),
            _ => {}
        }
        Ok(())
    }

    fn cut(&mut self, from: usize) {
        let to = self.chance.below(self.functions.len() as u64) as usize;
        let most_ns = self.chance.pick(&[200_000, 2_000_000, 20_000_000, 500_000_000]);
        let until_ns = self.now_ns + self.chance.below(most_ns);
        self.network.cut[from][to] = true;
        self.cuts.push((until_ns, from, to));
        if self.chance.hits(500) {
            self.network.cut[to][from] = true;
            self.cuts.push((until_ns, to, from));
        }
        self.note(format!("{from} is cut from {to} until {until_ns}"));
    }

    fn change_mtu(&mut self) {
        let mtu = self.chance.pick(&[65_535, 9000, 1500, 700, 512]);
        self.network.mtu = mtu;
        self.note(format!("frames may have {mtu} bytes"));
        for (function, wake_ns) in self.functions.iter_mut().zip(&mut self.wakes_ns) {
            // Not every function is told; the others must find out.
            if let Some(endpoint) = &mut function.endpoint
                && self.chance.hits(700)
            {
                endpoint.set_frame_bytes(mtu);
                *wake_ns = (*wake_ns).min(self.now_ns);
            }
        }
    }

    fn restart(&mut self, index: usize) -> Result<(), String> {
        self.bury(index)?;
        let life = self.functions[index].program.life + 1;
        self.note(format!("{index} begins life {life}"));
        self.oracle.restarted(index);
        self.outcome.restarts += 1;
        self.functions[index] = self.birth(index, life);
        self.wakes_ns[index] = self.now_ns;
        Ok(())
    }

    /// A life ends: its counters must balance before the endpoint is dropped.
    fn bury(&mut self, index: usize) -> Result<(), String> {
        let Some(endpoint) = self.functions[index].endpoint.take() else { return Ok(()) };
        let counters = endpoint.counters();
        self.outcome.resent += counters.frames_resent;
        self.outcome.downs += self.functions[index].program.downs;
        let waiting: u64 = endpoint.peers().map(|peer| endpoint.unacknowledged(peer)).sum();
        let known = counters.packets_acknowledged + counters.packets_failed + waiting;
        // The sum misses only links that the program closed and that still linger.
        let all_told = endpoint.peers().count() == endpoint.link_count();
        if known > counters.packets_queued || all_told && known != counters.packets_queued {
            return Err(format!("the books of {index} do not balance: {waiting} {counters:?}"));
        }
        if counters.packets_delivered != self.oracle.taken(index) {
            return Err(format!("{index} took {}: {counters:?}", self.oracle.taken(index)));
        }
        Ok(())
    }

    fn close(&mut self, index: usize) {
        let function = &mut self.functions[index];
        let (Some(endpoint), program) = (&mut function.endpoint, &mut function.program) else {
            return;
        };
        if program.partners.is_empty() {
            return;
        }
        let place = self.chance.below(program.partners.len() as u64) as usize;
        let (now_ns, oracle, scenario) = (self.now_ns, &mut self.oracle, self.scenario);
        let device = &mut function.device;
        let mut turn = Turn { now_ns, oracle, device, scenario, is_calm: false };
        program.close(place, endpoint, &mut turn);
        self.wakes_ns[index] = self.now_ns;
        self.note(format!("{index} closes the link of its partner {place}"));
    }

    fn set_gate(&mut self, index: usize) {
        let function = &mut self.functions[index];
        let Some(endpoint) = &mut function.endpoint else { return };
        let queue_pair = self.chance.below(8);
        let state = self.chance.pick(GateState::ALL);
        function.program.gates[queue_pair as usize] = state;
        endpoint.set_gate(queue_pair as u32, state);
        self.wakes_ns[index] = self.wakes_ns[index].min(self.now_ns);
    }

    /// The faults stop.
    fn calm_down(&mut self) -> Result<(), String> {
        self.note("the faults stop".to_owned());
        self.fault_ns = u64::MAX;
        self.calm_since_ns = Some(self.now_ns);
        self.network.weather = Weather::default();
        self.network.mtu = usize::MAX;
        if let Some(adversary) = &mut self.adversary {
            adversary.calm_down();
        }
        self.network.dead = [false; 3];
        for row in &mut self.network.cut {
            row.fill(false);
        }
        if self.scenario.death && !self.scenario.is_silent {
            self.die()?;
        }
        self.wakes_ns.fill(self.now_ns);
        for function in &mut self.functions {
            function.stalled_until_ns = 0;
            function.program.refuses_until_ns = [0; 2];
            function.program.wake(self.now_ns);
        }
        Ok(())
    }

    /// The last function is gone for good, and no partner asks for it any more.
    fn die(&mut self) -> Result<(), String> {
        let dead = self.functions.len() - 1;
        self.bury(dead)?;
        self.note(format!("{dead} is gone for good"));
        for function in &mut self.functions {
            for partner in &mut function.program.partners {
                partner.asks &= partner.index != dead;
            }
        }
        Ok(())
    }

    /// Whether a world that has finished is over. In a silent one a function may die only now,
    /// after all packets have arrived, and its partners have to notice.
    fn is_over(&mut self) -> Result<bool, String> {
        let dead = self.functions.len() - 1;
        if !self.scenario.death || self.functions[dead].endpoint.is_none() {
            return Ok(true);
        }
        self.die()?;
        self.calm_since_ns = Some(self.now_ns);
        Ok(false)
    }

    /// Whether every link is up, every queued packet taken, every seek answered, and every gate
    /// known correctly.
    fn has_finished(&self) -> bool {
        self.functions.iter().all(|function| {
            let Some(endpoint) = &function.endpoint else { return true };
            endpoint.is_drained()
                && !endpoint.has_deliverable()
                && function.program.partners.iter().all(|partner| {
                    let other = &self.functions[partner.index];
                    if other.endpoint.is_none() {
                        return partner.peer.is_none();
                    }
                    let Some(peer) = partner.peer else { return false };
                    endpoint.is_up(peer)
                        && function.program.is_done_with(partner, self.scenario)
                        && self.oracle.unanswered(partner.streams[0]) == 0
                        && partner.streams.iter().all(|&stream| {
                            let stream = self.oracle.stream(stream);
                            let is_told = stream.channel == Channel::Response
                                || stream.queued == stream.delivered;
                            stream.queued == stream.taken && is_told
                        })
                        && (self.scenario.is_silent || knows_gates(endpoint, peer, other))
                })
        })
    }

    /// The unfinished work, as text.
    fn open_ends(&self) -> String {
        let mut text = String::new();
        for (index, function) in self.functions.iter().enumerate() {
            let Some(endpoint) = &function.endpoint else { continue };
            text += &format!("\n  {index} wakes at {}: ", self.wakes_ns[index]);
            text += &format!("drained {}, ", endpoint.is_drained());
            text += &format!("to deliver {}", endpoint.has_deliverable());
            for partner in &function.program.partners {
                let streams = partner.streams.map(|stream| {
                    self.oracle.streams().get(stream as usize).map(|of| (of.queued, of.taken))
                });
                let gates = partner.peer.map(|peer| {
                    [0, 1, 2, 3, 4, 5, 6, 7].map(|queue_pair| endpoint.gate(peer, queue_pair))
                });
                text += &format!("\n    {partner:?} {streams:?} {gates:?}");
            }
            text += &format!("\n    {:?}", endpoint.counters());
        }
        text
    }

    /// The end: the counters of all must balance.
    fn finish(&mut self) -> Result<(), String> {
        for index in 0..self.functions.len() {
            self.bury(index)?;
        }
        let Scenario { restarts, closes, death, .. } = *self.scenario;
        let dead = death.then_some(self.functions.len() - 1);
        self.oracle.finish(|function| !restarts && !closes && dead != Some(function))?;
        if let Some(shares) = &self.oracle.shares {
            shares.check()?;
        }
        if !self.network.balances() {
            return Err(format!("frames are missing: {:?}", self.network.traffic));
        }
        self.outcome.traffic = self.network.traffic;
        self.outcome.packets = self.oracle.streams().iter().map(|stream| stream.taken as u64).sum();
        self.outcome.ns = self.now_ns;
        Ok(())
    }
}

/// The pending seeks and answers of a device: buffer in the network, destination, length.
fn device_frames(
    index: usize,
    turn: &mut Turn<'_>,
    answers: &mut Vec<(device::Place, SeekBody, u8)>,
    network: &mut Network,
) -> Vec<(u32, device::Place, usize)> {
    let mut frames = Vec::new();
    let mut send = |to, frame, function| {
        let place = network.reserve();
        seek::emit(frame, 0, function, network.buffer(place));
        frames.push((place, to, seek::FRAME_BYTES));
    };
    for (to, answer, function) in answers.drain(..) {
        send(to, SeekFrame::Here(answer), function);
    }
    while let Some((to, seek)) = turn.device.discovery.poll_seek(turn.now_ns) {
        send(to, SeekFrame::Seek(seek), 255);
    }
    for seek in turn.device.seeks(turn.now_ns) {
        for other in (0..turn.scenario.functions.len()).filter(|&other| other != index) {
            send(device::place(other, 0), SeekFrame::Seek(seek), 255);
        }
    }
    frames
}

/// Whether an endpoint knows the gates of its peer correctly.
fn knows_gates(endpoint: &Endpoint, peer: PeerId, other: &Function) -> bool {
    other
        .program
        .gates
        .iter()
        .enumerate()
        .all(|(queue_pair, &state)| endpoint.gate(peer, queue_pair as u32) == Some(state))
}

/// Rates of faults, none above the worst.
fn weather(worst: &Weather, chance: &mut Chance) -> Weather {
    let mut rate = |worst: u32| {
        if chance.hits(300) { 0 } else { chance.below(worst as u64 + 1) as u32 }
    };
    Weather {
        loss: rate(worst.loss),
        repeat: rate(worst.repeat),
        late: rate(worst.late),
        damage: rate(worst.damage),
        replay: rate(worst.replay),
    }
}
