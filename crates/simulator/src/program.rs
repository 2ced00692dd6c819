//! The program of one function: it sends, takes, refuses, answers and asks for links.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;
use bellwire_protocol::discovery::NeighbourTable;
use bellwire_protocol::reliable::{
    Body, Channel, DownReason, Endpoint, Event, GateState, PathId, PeerId, PlaceCheck, SendError,
    Sink, Verdict,
};

use crate::adversary::MADE_UP;
use crate::chance::Chance;
use crate::device::{self, Device};
use crate::oracle::{ANSWER, Memory, Oracle, QUESTION, perform};
use crate::scenario::{Attack, Scenario};

/// Most answers that a program owes one partner; beyond that it takes no more questions (C-26,
/// C-27).
const MOST_OWED: usize = 4;
/// Packets that each side of a pair sends after the faults have stopped.
const CALM_PACKETS: u32 = 12;
/// Retry time of a program that found no room, if nothing comes, in ns.
const BLOCKED_NS: u64 = 200_000;
/// How long a program waits for a link to come up, in ns: impatient and patient, like the
/// protocol's limits for links that are up.
const PATIENCE_NS: [u64; 2] = [1_000_000_000, 120_000_000_000];

/// A function that the program talks with.
#[derive(Clone, Default, Debug)]
pub struct Partner {
    /// The function's index.
    pub index: usize,
    /// Whether this side asks for the link.
    pub asks: bool,
    /// The link that is up.
    pub peer: Option<PeerId>,
    /// The link that was asked for.
    asked: Option<PeerId>,
    /// Streams of that link: requests, responses.
    pub streams: [u32; 2],
    /// The memory that the partner's questions change here.
    memory: Memory,
    /// Pending answers to questions that were taken.
    pub owed: VecDeque<u64>,
    /// There was a link with the partner.
    pub has_met: bool,
    /// Packets sent since the faults stopped, on this link.
    pub calm_packets: u32,
    /// The gates of all its queue pairs are known, and stay known on this link.
    knows_gates: bool,
    /// When to ask again for a link.
    retry_ns: u64,
}

/// The program of one function.
#[derive(Debug)]
pub struct Program {
    /// Index of the function.
    pub index: usize,
    /// The function's life.
    pub life: u32,
    /// The functions that it talks with.
    pub partners: Vec<Partner>,
    /// Live links that it was told of, with the index of their partner, and its stream of requests
    /// there.
    links: Vec<(PeerId, usize, u32)>,
    /// Links whose end it was told, or that it closed.
    ended: Vec<PeerId>,
    /// Links with made-up peers.
    strangers: Vec<PeerId>,
    /// Until when it refuses packets of each channel.
    pub refuses_until_ns: [u64; 2],
    /// When it sends next.
    send_ns: u64,
    /// It found no room, or no link.
    is_blocked: bool,
    /// The gates of its queue pairs, as it last set them.
    pub gates: [GateState; 8],
    /// The first error found.
    pub error: Option<String>,
    /// Links that ended.
    pub downs: u64,
    chance: Chance,
}

/// What a program may read and change in its turn.
pub struct Turn<'a> {
    /// The time.
    pub now_ns: u64,
    /// The oracle.
    pub oracle: &'a mut Oracle,
    /// What its function knows of places.
    pub device: &'a mut Device,
    /// The world's settings.
    pub scenario: &'a Scenario,
    /// Whether the faults have stopped.
    pub is_calm: bool,
}

/// Takes packets for a program.
pub struct Taker<'a, 'b> {
    /// The program.
    pub program: &'a mut Program,
    /// What it may read and change.
    pub turn: &'a mut Turn<'b>,
    /// Changes with every packet taken.
    pub hash: u64,
}

impl Sink for Taker<'_, '_> {
    #[inline]
    fn packet(
        &mut self,
        peer: PeerId,
        channel: Channel,
        words: [u64; 3],
        payload: &[u8],
    ) -> Verdict {
        let Taker { program, turn, hash } = self;
        if turn.now_ns < program.refuses_until_ns[channel as usize] {
            return Verdict::Stalled;
        }
        if turn.scenario.stalls && !turn.is_calm && program.chance.hits(3) {
            let long = program.chance.hits(30);
            let most_ns = if long { 30_000_000 } else { 300_000 };
            program.refuses_until_ns[channel as usize] =
                turn.now_ns + 1 + program.chance.below(most_ns);
            return Verdict::Stalled;
        }
        let Some(&(_, place, asked)) = program.links.iter().find(|link| link.0 == peer) else {
            if program.strangers.contains(&peer) {
                return Verdict::Violation;
            }
            if program.ended.contains(&peer) {
                program.fail(format!("a packet came by {peer:?} after its end"));
            }
            // The program has not yet read that the link is up.
            return Verdict::Stalled;
        };
        let partner = &mut program.partners[place];
        let is_question = channel == Channel::Request && words[0] & QUESTION != 0;
        let is_current = partner.peer == Some(peer);
        if is_question && is_current {
            if partner.owed.len() >= MOST_OWED {
                return Verdict::Stalled;
            }
            partner.owed.push_back(perform(&mut partner.memory, words));
            if planted("simulator-ask-twice") {
                perform(&mut partner.memory, words);
            }
        }
        let from = partner.index;
        let me = (program.index, program.life);
        let taken = turn.oracle.take(me, (peer, from), channel, asked, words, payload);
        if let Err(error) = taken {
            program.fail(error);
        }
        if let (Some(shares), 0) = (&mut turn.oracle.shares, program.index) {
            shares.took(from, payload.len(), turn.now_ns);
        }
        *hash = fold(*hash, words[1] ^ (channel as u64) << 63 ^ words[2]);
        Verdict::Taken
    }

    fn check_place(&mut self, node: u32, path: PathId) -> PlaceCheck {
        let Device { discovery, directory, .. } = &mut *self.turn.device;
        discovery.check_place(directory, node, path, self.turn.now_ns)
    }

    #[inline]
    fn delivered(&mut self, peer: PeerId, count: u64) {
        let program = &mut *self.program;
        match program.links.iter().find(|link| link.0 == peer) {
            Some(&(_, _, asked)) => {
                if let Err(error) = self.turn.oracle.delivered(asked, count) {
                    program.fail(error);
                }
            }
            // The program no longer tracks a link that it closed.
            None if program.ended.contains(&peer) => {}
            None => {
                program.fail(format!("{count} packets to {peer:?}, which sent none, delivered"))
            }
        }
    }
}

/// Adds a number to the hash of a history.
#[inline]
pub fn fold(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Program {
    /// The program of function `index` in its life `life`.
    pub fn new(index: usize, life: u32, scenario: &Scenario, now_ns: u64, seed: u64) -> Self {
        let mut partners = Vec::new();
        for &(first, second) in &scenario.pairs {
            let (other, asks) = match index {
                _ if index == first => (second, true),
                _ if index == second => (first, scenario.both_ask),
                _ => continue,
            };
            let is_late = index + 1 == scenario.functions.len();
            let late = scenario.race.filter(|_| is_late);
            partners.push(Partner {
                index: other,
                asks,
                retry_ns: late.map_or(0, |race| race.joins_ns),
                ..Partner::default()
            });
        }
        Program {
            index,
            life,
            partners,
            links: Vec::new(),
            ended: Vec::new(),
            strangers: Vec::new(),
            refuses_until_ns: [0; 2],
            send_ns: now_ns,
            is_blocked: false,
            gates: [GateState::Closed; 8],
            error: None,
            downs: 0,
            chance: Chance::new(seed),
        }
    }

    /// Reads the events of links. Returns them as text for the log.
    pub fn read_news(&mut self, endpoint: &mut Endpoint, turn: &mut Turn<'_>) -> Vec<String> {
        let mut log = Vec::new();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Gates { .. } => {}
                Event::Up { peer, address } => {
                    log.push(format!("{} has {peer:?} to {address}", self.index));
                    let functions = &turn.scenario.functions;
                    let index = functions.iter().position(|(of, _)| *of == address);
                    let heard = endpoint
                        .path_of(peer)
                        .and_then(|path| turn.device.discovery.places.place(path));
                    // On the path a function's number can be altered, too: then its node seems to
                    // have another function.
                    let is_altered =
                        index.is_none() && turn.scenario.attack == Some(Attack::OnPath);
                    if address.node > MADE_UP || is_altered {
                        self.strangers.push(peer);
                        if self.chance.hits(500) {
                            endpoint.close(peer, turn.now_ns);
                        }
                        continue;
                    }
                    if heard.map(device::host) != index {
                        self.fail(format!("somebody at {heard:?} passes for {address}"));
                    }
                    if let Some(place) = heard {
                        turn.device.directory.heard(address.node, place);
                    }
                    let place = self.partners.iter().position(|of| Some(of.index) == index);
                    let Some(place) = place else {
                        self.fail(format!("a link to {address}, which nobody wants"));
                        continue;
                    };
                    let partner = &mut self.partners[place];
                    for interface in 1..turn.scenario.interfaces {
                        let place = device::place(partner.index, interface);
                        let path = turn.device.path_of(place, endpoint);
                        endpoint.add_path(peer, path);
                    }
                    partner.peer = Some(peer);
                    partner.has_met = true;
                    partner.asked = None;
                    partner.memory = Memory::default();
                    partner.owed.clear();
                    partner.calm_packets = 0;
                    partner.knows_gates = false;
                    partner.streams = [Channel::Request, Channel::Response]
                        .map(|channel| turn.oracle.open(self.index, partner.index, channel));
                    self.links.push((peer, place, partner.streams[0]));
                }
                Event::Down { peer, .. } if self.strangers.contains(&peer) => {
                    self.strangers.retain(|stranger| *stranger != peer);
                    endpoint.close(peer, turn.now_ns);
                }
                Event::Down { peer, reason, .. } => {
                    log.push(format!("{} lost {peer:?}: {reason:?}", self.index));
                    self.downs += 1;
                    if !is_allowed(reason, turn.scenario) {
                        self.fail(format!("{peer:?} is down and must not be: {reason:?}"));
                    }
                    if let Err(error) = turn.oracle.ended(self.index, peer) {
                        self.fail(error);
                    }
                    self.end(peer, turn);
                    endpoint.close(peer, turn.now_ns);
                }
            }
        }
        log
    }

    /// Closes the link to one of its partners.
    pub fn close(&mut self, place: usize, endpoint: &mut Endpoint, turn: &mut Turn<'_>) {
        if let Some(peer) = self.partners[place].peer {
            // Nothing is kept for packets that were not taken: later packets are lost and must not
            // count as delivered.
            if !endpoint.has_deliverable()
                && let Err(error) = turn.oracle.ended(self.index, peer)
            {
                self.fail(error);
            }
            self.end(peer, turn);
            endpoint.close(peer, turn.now_ns);
        }
    }

    /// Asks for links, answers and sends.
    pub fn act(&mut self, endpoint: &mut Endpoint, turn: &mut Turn<'_>) {
        for place in 0..self.partners.len() {
            let partner = &mut self.partners[place];
            if partner.asks
                && partner.peer.is_none()
                && partner.asked.is_none()
                && turn.now_ns >= partner.retry_ns
            {
                let address = turn.scenario.functions[partner.index].0;
                let Some(place) = turn.device.find(partner.index, turn.now_ns) else { continue };
                let path = turn.device.path_of(place, endpoint);
                let patience_ns = PATIENCE_NS[turn.scenario.is_patient as usize];
                partner.asked = endpoint.connect(address, path, patience_ns, turn.now_ns);
                partner.retry_ns = turn.now_ns + 10_000_000;
            }
            let wants_gates = turn.is_calm && !turn.scenario.is_silent && !partner.knows_gates;
            if let (true, Some(peer)) = (wants_gates, partner.peer) {
                // Each call subscribes to a gate's changes. The endpoint limits how many are asked
                // at a time.
                let count = self.gates.len() as u32;
                let known = (0..count).filter_map(|queue_pair| endpoint.gate(peer, queue_pair));
                partner.knows_gates = known.count() as u32 == count;
            }
            if !partner.owed.is_empty() {
                self.answer(place, endpoint, turn);
            }
        }
        if turn.now_ns >= self.send_ns {
            self.send(endpoint, turn);
        }
    }

    /// Whether, after the faults, it has sent a partner all packets and knows all its gates.
    pub fn is_done_with(&self, partner: &Partner, scenario: &Scenario) -> bool {
        partner.owed.is_empty()
            && (scenario.is_silent || partner.calm_packets >= CALM_PACKETS && partner.knows_gates)
    }

    /// When it acts next, if nothing comes.
    pub fn deadline_ns(&self, endpoint: &Endpoint, now_ns: u64) -> u64 {
        let mut deadline_ns = self.send_ns;
        for partner in &self.partners {
            if partner.asks && partner.peer.is_none() && partner.asked.is_none() {
                // The device asks for a node that is sought.
                deadline_ns = deadline_ns.min(partner.retry_ns.max(now_ns + 100_000));
            }
        }
        if endpoint.has_deliverable() {
            let refuses = self.refuses_until_ns.iter().filter(|until_ns| **until_ns > now_ns).min();
            deadline_ns = deadline_ns.min(refuses.map_or(now_ns + 100_000, |until_ns| *until_ns));
        }
        deadline_ns
    }

    /// Something came, so there may be room to send now.
    #[inline]
    pub fn wake(&mut self, now_ns: u64) {
        if self.is_blocked {
            self.is_blocked = false;
            self.send_ns = now_ns;
        }
    }

    /// Records the first error.
    pub fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    fn end(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        self.ended.push(peer);
        self.links.retain(|link| link.0 != peer);
        turn.oracle.closed(self.index, peer);
        for partner in &mut self.partners {
            if partner.peer == Some(peer) {
                partner.peer = None;
                partner.owed.clear();
            }
            if partner.asked == Some(peer) {
                partner.asked = None;
            }
            partner.retry_ns = partner.retry_ns.max(turn.now_ns + self.chance.below(5_000_000));
        }
    }

    fn answer(&mut self, place: usize, endpoint: &mut Endpoint, turn: &mut Turn<'_>) {
        while let Some(&value) = self.partners[place].owed.front()
            && self.send_one(place, Channel::Response, Some(value), endpoint, turn)
        {
            self.partners[place].owed.pop_front();
        }
    }

    /// Sends a few packets to some partners.
    fn send(&mut self, endpoint: &mut Endpoint, turn: &mut Turn<'_>) {
        if turn.is_calm {
            // Nothing is due until something comes or a link comes up.
            self.send_ns = u64::MAX;
            self.is_blocked = true;
            let active = if turn.scenario.is_silent { 0 } else { self.partners.len() };
            for place in 0..active {
                while self.partners[place].calm_packets < CALM_PACKETS {
                    let channel =
                        [Channel::Request, Channel::Response][self.chance.below(2) as usize];
                    if !self.send_one(place, channel, None, endpoint, turn) {
                        break;
                    }
                    self.partners[place].calm_packets += 1;
                }
            }
            return;
        }
        self.send_ns = turn.now_ns + 1 + self.chance.below(2 * turn.scenario.pause_ns);
        if self.partners.is_empty() {
            return;
        }
        let place = self.chance.below(self.partners.len() as u64) as usize;
        let burst = [1, 1, 1, 2, 4, 32][self.chance.below(6) as usize];
        let channel = if self.chance.hits(200) { Channel::Response } else { Channel::Request };
        for _ in 0..burst {
            if !self.send_one(place, channel, None, endpoint, turn) {
                // Blocked until something comes; another partner is not tried.
                self.is_blocked = true;
                self.send_ns = turn.now_ns + BLOCKED_NS;
                break;
            }
        }
        if self.chance.hits(5) {
            let queue_pair = self.chance.below(8) as u32;
            self.partners[place].peer.map(|peer| endpoint.gate(peer, queue_pair));
        }
    }

    /// Sends the next packet of a stream, possibly as an answer; `false` if there is no room or no
    /// link.
    #[inline]
    fn send_one(
        &mut self,
        place: usize,
        channel: Channel,
        answer: Option<u64>,
        endpoint: &mut Endpoint,
        turn: &mut Turn<'_>,
    ) -> bool {
        let Partner { peer: Some(peer), streams, .. } = self.partners[place] else {
            return false;
        };
        let stream = streams[channel as usize];
        let (mut words, payload) = turn.oracle.next(stream);
        if let Some(value) = answer {
            words[0] |= ANSWER;
            words[2] = value;
        }
        // The head may be in a buffer of its own.
        let mut head = [0; 31];
        let head = &mut head[..payload.len().min((words[1] >> 32) as usize & 31)];
        payload.read(0, head);
        match endpoint.send(peer, channel, words, head, &payload.behind(head.len())) {
            Ok(_) => turn.oracle.queued(stream, words),
            Err(SendError::Busy) => return false,
            // No answer can be sent any more: drop the remaining questions.
            Err(SendError::Down) => {
                self.partners[place].peer = None;
                self.partners[place].owed.clear();
                return false;
            }
            Err(error @ SendError::TooLong { .. }) => {
                self.fail(format!("a packet of {} bytes: {error:?}", payload.len()));
                return false;
            }
        }
        true
    }
}

/// Whether a link may end for this reason in this scenario.
fn is_allowed(reason: DownReason, scenario: &Scenario) -> bool {
    match reason {
        _ if scenario.attack == Some(Attack::OnPath) => true,
        DownReason::Version { .. } | DownReason::Feature { .. } | DownReason::NotHere => false,
        DownReason::Accused | DownReason::Violation | DownReason::Elsewhere => false,
        DownReason::Closed => scenario.closes || scenario.links_may_end(),
        DownReason::NoAnswer | DownReason::Dead => !scenario.is_patient || scenario.restarts,
        DownReason::Restarted | DownReason::Full => scenario.links_may_end(),
    }
}
