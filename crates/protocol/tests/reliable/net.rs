//! Endpoints, a clock that is only a number, and a network between them with all faults of
//! networks.

#![allow(dead_code)]

use std::collections::BTreeMap;

use bellwire_wire::frame::header::FrameKind;

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{
    Channel, Config, DownReason, Endpoint, Event, FunctionId, PathId, PeerId, SendError, Sink,
    Verdict,
};

/// A seeded random number generator (splitmix64).
#[derive(Clone)]
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn hits(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// Rates of faults, each per mille of the frames.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    pub loss: u64,
    pub repeat: u64,
    pub late: u64,
    pub flip: u64,
}

/// A packet as a user saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    pub from: FunctionId,
    pub by: PeerId,
    pub channel: Channel,
    pub words: [u64; 3],
    pub payload: Vec<u8>,
}

/// A packet as an endpoint offered it.
type Came = (PeerId, Channel, [u64; 3], Vec<u8>);

/// Takes all events that the endpoint has.
fn poll_events(endpoint: &mut Endpoint, events: &mut Vec<Event>) {
    for _ in 0..WITHOUT_END {
        let Some(event) = endpoint.poll_event() else { return };
        events.push(event);
    }
    panic!("events without end");
}

fn packets(endpoint: &Endpoint, came: Vec<Came>) -> impl Iterator<Item = Packet> {
    came.into_iter().map(|(by, channel, words, payload)| {
        let from = endpoint.peer_address(by).unwrap();
        Packet { from, by, channel, words, payload }
    })
}

/// A user with an appetite.
pub struct Taker<'a> {
    pub appetite: &'a mut [usize; 2],
    pub came: &'a mut Vec<Came>,
    pub delivered: Option<&'a mut BTreeMap<PeerId, u64>>,
}

impl Sink for Taker<'_> {
    fn packet(
        &mut self,
        peer: PeerId,
        channel: Channel,
        words: [u64; 3],
        payload: &[u8],
    ) -> Verdict {
        if self.appetite[channel as usize] == 0 {
            return Verdict::Stalled;
        }
        self.appetite[channel as usize] -= 1;
        assert!(self.came.len() < WITHOUT_END, "packets without end");
        self.came.push((peer, channel, words, payload.to_vec()));
        Verdict::Taken
    }

    fn delivered(&mut self, peer: PeerId, count: u64) {
        let delivered = self.delivered.as_mut().expect("said when a frame comes");
        let before = delivered.insert(peer, count).unwrap_or(0);
        assert!(count > before, "{count} after {before}");
    }
}

pub struct Node {
    pub endpoint: Endpoint,
    pub taken: Vec<Packet>,
    pub events: Vec<Event>,
    /// Requests reported as delivered, by link.
    pub delivered: BTreeMap<PeerId, u64>,
    /// Packets that the user still takes of each channel before it refuses.
    pub appetite: [usize; 2],
    /// Frames are neither taken nor sent.
    pub is_asleep: bool,
}

impl Node {
    pub fn new(config: Config, node: u32, incarnation: u64, seed: u64) -> Self {
        Node {
            endpoint: Endpoint::new(config, function(node), incarnation, Secret::from_seed(seed))
                .unwrap(),
            taken: Vec::new(),
            events: Vec::new(),
            delivered: BTreeMap::new(),
            appetite: [usize::MAX; 2],
            is_asleep: false,
        }
    }
}

pub fn function(node: u32) -> FunctionId {
    FunctionId { node, function: (node % 7) as u8 }
}

/// Length that the queue limit of a link assumes for each frame, in bytes.
const LONG_FRAME_BYTES: f64 = 1500.0;

/// Most packets, frames or events that one call may give, and most steps while the clock stands
/// still. More than these come only from a loop without end.
const WITHOUT_END: usize = 20_000;
/// Most steps of one network.
const MOST_STEPS: u64 = 500_000;

/// From, to, frame: does it disappear?
pub type DropIf = dyn FnMut(usize, usize, &[u8]) -> bool;
/// Time, from, to, frame.
pub type Tap = dyn FnMut(u64, usize, usize, &[u8]);

pub struct Net {
    pub now_ns: u64,
    pub nodes: Vec<Node>,
    /// By time of arrival: destination, path and frame.
    pub wire: BTreeMap<(u64, u64), (usize, PathId, Vec<u8>)>,
    pub chance: Chance,
    pub faults: Faults,
    pub latency_ns: u64,
    /// Extra latency of interface 1, 2, 3.
    pub extra_ns: [u64; 4],
    /// Time that a byte occupies the link into each node, in ns; 0: none.
    pub ns_per_byte: f64,
    /// Most frames of [`LONG_FRAME_BYTES`] that queue before a node's link.
    pub queue_frames: usize,
    busy_until_ns: Vec<[u64; 4]>,
    /// Frames sent, by kind.
    pub sent: [u64; 16],
    /// Decides which frames disappear: from, to, frame.
    pub drop_if: Box<DropIf>,
    /// Sees every frame that is sent.
    pub tap: Box<Tap>,
    order: u64,
    pub dropped_full: u64,
    /// Frames by these interfaces disappear.
    pub dead: [bool; 4],
    /// Data frames sent by node 0 by each interface.
    pub sent_by: [u64; 4],
    /// Longer frames disappear.
    pub mtu: usize,
    /// Nodes send after each frame that they take, not after each batch.
    pub is_eager: bool,
    /// Steps since the clock last moved.
    steps_at_once: usize,
    /// Steps, and packets queued since the last one.
    steps: u64,
    sends_at_once: usize,
}

impl Net {
    pub fn new(configs: &[Config], seed: u64) -> Self {
        let nodes = configs
            .iter()
            .enumerate()
            .map(|(number, config)| {
                Node::new(*config, number as u32, 1000 + seed % 7, seed ^ number as u64)
            })
            .collect();
        Net {
            now_ns: 1,
            nodes,
            wire: BTreeMap::new(),
            chance: Chance(seed),
            faults: Faults::default(),
            latency_ns: 5_000,
            extra_ns: [0; 4],
            ns_per_byte: 0.0,
            queue_frames: usize::MAX,
            busy_until_ns: vec![[0; 4]; configs.len()],
            sent: [0; 16],
            drop_if: Box::new(|_, _, _| false),
            tap: Box::new(|_, _, _, _| {}),
            order: 0,
            dropped_full: 0,
            dead: [false; 4],
            sent_by: [0; 4],
            mtu: usize::MAX,
            is_eager: false,
            steps_at_once: 0,
            steps: 0,
            sends_at_once: 0,
        }
    }

    /// The path from any node to node `to` by interface `interface`.
    pub fn path(to: usize, interface: u32) -> PathId {
        PathId((interface as u64) << 16 | to as u64)
    }

    pub fn connect(&mut self, from: usize, to: usize) -> PeerId {
        let address = self.nodes[to].endpoint.address();
        let now = self.now_ns;
        self.nodes[from].endpoint.connect(address, Self::path(to, 0), 10_000_000_000, now).unwrap()
    }

    /// Closes a link of node `node`.
    pub fn close(&mut self, node: usize, peer: PeerId) {
        self.nodes[node].endpoint.close(peer, self.now_ns);
    }

    /// Connects and waits until the link is up at both ends.
    pub fn link(&mut self, from: usize, to: usize) -> PeerId {
        let peer = self.connect(from, to);
        let me = self.nodes[from].endpoint.address();
        self.run_until(|net| {
            net.nodes[from].endpoint.is_up(peer)
                && net.peer_of(to, me).is_some_and(|peer| net.nodes[to].endpoint.is_up(peer))
        });
        peer
    }

    /// Why a link of `node` first went down, if one did.
    pub fn down_reason(&self, node: usize) -> Option<DownReason> {
        self.nodes[node].events.iter().find_map(|event| match event {
            Event::Down { reason, .. } => Some(*reason),
            _ => None,
        })
    }

    /// The link that `node` has to `address`.
    pub fn peer_of(&self, node: usize, address: FunctionId) -> Option<PeerId> {
        self.nodes[node].events.iter().rev().find_map(|event| match *event {
            Event::Up { peer, address: of } if of == address => Some(peer),
            _ => None,
        })
    }

    pub fn send(&mut self, from: usize, peer: PeerId, payload: &[u8]) -> Result<u64, SendError> {
        self.sends_at_once += 1;
        assert!(self.sends_at_once < WITHOUT_END, "room without end");
        self.nodes[from].endpoint.send(peer, Channel::Request, [1, 0, 0], &[], &payload)
    }

    /// Lets all nodes send what they have now.
    pub fn transmit(&mut self) {
        let mut buffer = vec![0; 65_536];
        for from in 0..self.nodes.len() {
            if self.nodes[from].is_asleep {
                continue;
            }
            let mut frames = 0;
            while let Some(transmit) =
                self.nodes[from].endpoint.poll_transmit(self.now_ns, &mut buffer)
            {
                frames += 1;
                assert!(frames < WITHOUT_END, "frames without end");
                let to = (transmit.path.0 & 0xffff) as usize;
                let interface = (transmit.path.0 >> 16) as u32;
                let frame = &buffer[..transmit.length];
                assert!(frame.len() <= self.nodes[from].endpoint.config().frame_bytes);
                self.sent[(frame[1] & 0xf) as usize] += 1;
                (self.tap)(self.now_ns, from, to, frame);
                self.carry(from, to, interface, frame);
            }
            let Node { endpoint, events, .. } = &mut self.nodes[from];
            poll_events(endpoint, events);
        }
    }

    /// Puts one frame on the wire and applies its faults.
    pub fn carry(&mut self, from: usize, to: usize, interface: u32, frame: &[u8]) {
        let is_data = frame[1] & 0xf == FrameKind::Data as u8;
        self.sent_by[interface as usize] += (from == 0 && is_data) as u64;
        if self.dead[interface as usize]
            || (self.drop_if)(from, to, frame)
            || frame.len() > self.mtu
            || self.chance.hits(self.faults.loss)
        {
            return;
        }
        let copies = 1 + self.chance.hits(self.faults.repeat) as usize;
        for _ in 0..copies {
            let mut bytes = frame.to_vec();
            if self.chance.hits(self.faults.flip) {
                let bit = self.chance.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let mut at = self.now_ns + self.latency_ns + self.extra_ns[interface as usize];
            if self.ns_per_byte > 0.0 {
                let busy = &mut self.busy_until_ns[to][interface as usize];
                let takes = (bytes.len() as f64 * self.ns_per_byte) as u64;
                let longest = (LONG_FRAME_BYTES * self.ns_per_byte) as u64;
                let waiting = busy.saturating_sub(self.now_ns) / longest.max(1);
                if waiting as usize >= self.queue_frames {
                    self.dropped_full += 1;
                    continue;
                }
                *busy = (*busy).max(self.now_ns) + takes;
                at += *busy - self.now_ns;
            }
            if self.chance.hits(self.faults.late) {
                at += self.chance.below(100_000);
            }
            self.order += 1;
            let path = PathId((interface as u64) << 16 | from as u64);
            self.wire.insert((at, self.order), (to, path, bytes));
        }
    }

    /// When the next frame arrives, or a node that is awake is due.
    fn next_event_ns(&self) -> u64 {
        let arrival = self.wire.keys().next().map_or(u64::MAX, |key| key.0);
        let awake = self.nodes.iter().filter(|node| !node.is_asleep);
        awake.map(|node| node.endpoint.next_deadline()).fold(arrival, u64::min)
    }

    /// Advances to the next event; `false` if there will be none.
    pub fn step(&mut self) -> bool {
        self.transmit();
        let next = self.next_event_ns();
        if next == u64::MAX {
            return false;
        }
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "steps without end");
        self.sends_at_once = 0;
        self.steps_at_once = if next > self.now_ns { 0 } else { self.steps_at_once + 1 };
        assert!(self.steps_at_once < WITHOUT_END, "the clock stands still at {} ns", self.now_ns);
        self.now_ns = self.now_ns.max(next);
        while let Some((&key, _)) = self.wire.first_key_value() {
            if key.0 > self.now_ns {
                break;
            }
            let (to, path, bytes) = self.wire.remove(&key).unwrap();
            self.hand(to, path, &bytes);
            if self.is_eager {
                self.transmit();
            }
        }
        for node in 0..self.nodes.len() {
            self.deliver(node);
        }
        true
    }

    /// Hands a frame to a node.
    pub fn hand(&mut self, to: usize, path: PathId, bytes: &[u8]) {
        let node = &mut self.nodes[to];
        if node.is_asleep {
            return;
        }
        let Node { endpoint, taken, appetite, events, delivered, .. } = node;
        let mut came = Vec::new();
        let mut taker = Taker { appetite, came: &mut came, delivered: Some(delivered) };
        endpoint.handle_frame(path, bytes, self.now_ns, &mut taker);
        taken.extend(packets(endpoint, came));
        poll_events(endpoint, events);
    }

    /// Offers a node its refused packets again.
    pub fn deliver(&mut self, node: usize) {
        let Node { endpoint, taken, appetite, .. } = &mut self.nodes[node];
        if *appetite == [0; 2] || !endpoint.has_deliverable() {
            return;
        }
        let mut came = Vec::new();
        endpoint.deliver(&mut Taker { appetite, came: &mut came, delivered: None });
        taken.extend(packets(endpoint, came));
    }

    /// Steps until `done`; panics after a million steps or if nothing more happens.
    pub fn run_until(&mut self, mut done: impl FnMut(&Net) -> bool) {
        for _ in 0..1_000_000 {
            if done(self) {
                return;
            }
            if !self.step() {
                assert!(done(self), "nothing happens any more at {} ns", self.now_ns);
                return;
            }
        }
        panic!("no end in a million steps: {:?}", self.nodes[0].endpoint.counters());
    }

    /// Steps until `ns` have passed.
    pub fn run_for(&mut self, ns: u64) {
        let end = self.now_ns + ns;
        while self.now_ns < end {
            self.transmit();
            if self.next_event_ns() > end {
                self.now_ns = end;
                return;
            }
            self.step();
        }
    }

    /// Whether everything queued anywhere is acknowledged.
    pub fn is_quiet(&self) -> bool {
        self.nodes.iter().all(|node| node.endpoint.is_drained())
    }

    /// The counters of every endpoint must balance.
    pub fn check_books(&self) {
        for node in &self.nodes {
            let counters = node.endpoint.counters();
            let waiting: u64 =
                node.endpoint.peers().map(|peer| node.endpoint.unacknowledged(peer)).sum();
            assert_eq!(
                counters.packets_queued,
                counters.packets_acknowledged + counters.packets_failed + waiting,
                "{counters:?}"
            );
        }
    }
}
