//! A device inside one process, for testing the engine: small queues, rare answers, and faults on
//! demand.
//!
//! All functions of one [`Fabric`] can reach each other and themselves. This device does often what
//! real devices do rarely, as its [`FabricOptions`] say. Examples are queues of two packets, memory
//! without direct access, access that must be requested first, and links that die. It tells peers
//! nothing that is optional, and reuses link numbers as soon as possible.

use bellwire::engine::DynTransport;
use bellwire::{Device, DeviceBackend, Error, FunctionAddress, RemoteKey};
use bellwire::{Result, Rights, Status};
use bellwire_device::{
    AtomicOperation, Direct, Gate, LinkId, Memory, NodeInfo, PacketHeader, Receipt, SendError,
    Sink, Transport, TransportLimits, Verdict, View,
};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a fabric behaves.
#[derive(Clone, Debug)]
pub struct FabricOptions {
    /// Longest payload of a packet, in bytes.
    pub packet_bytes: usize,
    /// Packets that one direction of a link holds.
    pub link_packets: usize,
    /// Maximum number of queue pairs.
    pub queue_pairs: usize,
    /// Maximum number of registered regions.
    pub regions: usize,
    /// Whether memory that was allocated can be reached directly.
    pub direct_allocated: bool,
    /// Whether memory that the program brought can be reached directly.
    pub direct_brought: bool,
    /// One of this many direct accesses must be repeated later; 0: none.
    pub pending_every: u64,
    /// One of this many packets is refused although there is room; 0: none.
    pub busy_every: u64,
    /// Longest time until an unanswered link counts as unreachable.
    pub patience: Duration,
    /// Whether a program counts as one that posts rarely, each time a post looks around.
    pub is_rare: bool,
    /// Whether packets can be held ([`Transport::hold`]). Then none carries several messages.
    pub holds: bool,
}

impl Default for FabricOptions {
    fn default() -> Self {
        FabricOptions {
            packet_bytes: 1024,
            link_packets: 64,
            queue_pairs: 256,
            regions: 64,
            direct_allocated: true,
            direct_brought: true,
            pending_every: 0,
            busy_every: 0,
            patience: Duration::from_secs(5),
            is_rare: false,
            holds: false,
        }
    }
}

/// A set of functions that reach each other.
#[derive(Clone)]
pub struct Fabric {
    state: Arc<Mutex<State>>,
    options: FabricOptions,
}

struct State {
    functions: HashMap<FunctionAddress, Node>,
    links: Vec<Wire>,
    /// Counts accesses and packets, to time the faults.
    clock: u64,
    /// The function whose requests are refused for now.
    stuck: Option<FunctionAddress>,
    /// How often posts looked around.
    looks: u64,
    /// Answers that were sent by [`Transport::send_later`].
    later: u64,
}

/// One open function.
#[derive(Default)]
struct Node {
    gates: HashMap<u32, Gate>,
    exports: HashMap<u16, (RemoteKey, Memory, Rights)>,
    /// By link number: the wire, and our end of it.
    links: Vec<Option<(usize, usize)>>,
    /// Something changed since the last poll.
    news: bool,
    bell: Option<Arc<OwnedFd>>,
    armed: bool,
}

/// A link, seen from outside.
struct Wire {
    ends: [FunctionAddress; 2],
    condition: Condition,
    /// Packets towards each end. So many of the last ones are held.
    towards: [VecDeque<Packet>; 2],
    held: [usize; 2],
    /// The first packet towards this end was refused.
    stalled: [bool; 2],
    told: [bool; 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Condition {
    /// Deadline for the other function to appear.
    Asking(Instant),
    Up,
    Down(Status),
}

impl Wire {
    fn is_over(&self) -> bool {
        matches!(self.condition, Condition::Down(_))
    }

    /// Packets that have left towards an end.
    fn left(&self, end: usize) -> usize {
        self.towards[end].len() - self.held[end]
    }
}

struct Packet {
    header: PacketHeader,
    payload: Vec<u8>,
}

impl Fabric {
    /// A fabric without functions.
    pub fn new(options: FabricOptions) -> Fabric {
        let functions = HashMap::new();
        let state =
            State { functions, links: Vec::new(), clock: 0, stuck: None, looks: 0, later: 0 };
        Fabric { state: Arc::new(Mutex::new(state)), options }
    }

    /// How often posts of all its functions looked around.
    pub fn looks(&self) -> u64 {
        self.lock().looks
    }

    /// Node `node` of it, as a device of the API.
    pub fn device(&self, node: u32) -> Device {
        let device = LoopbackDevice { fabric: self.clone(), node };
        Device::from_backend("loopback:test", Box::new(device)).expect("memory for one page")
    }

    /// A function without an engine: for a test that plays a hostile peer.
    pub fn transport(&self, address: FunctionAddress) -> Loopback {
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK);
        let bell = Arc::new(bell.expect("an eventfd"));
        let node = Node { bell: Some(bell.clone()), ..Node::default() };
        let old = self.lock().functions.insert(address, node);
        assert!(old.is_none(), "{address} is open already");
        let (turn, refused, holds) = (0, false, false);
        Loopback { fabric: self.clone(), address, bell, turn, refused, holds }
    }

    /// Answers that the device was allowed to keep for a moment.
    pub fn later(&self) -> u64 {
        self.lock().later
    }

    /// No link takes requests from `address` for now (`None`: all take them again). Answers pass,
    /// as on devices with separate channels for the two (C-27).
    pub fn hold_requests(&self, address: Option<FunctionAddress>) {
        self.lock().stuck = address;
    }

    /// Ends all links of a function, as if its process had died.
    pub fn kill(&self, address: FunctionAddress) {
        self.lock().end_links(|ends| ends.contains(&address), Status::PeerGone);
    }

    /// Ends the link between two functions.
    pub fn cut(&self, a: FunctionAddress, b: FunctionAddress, why: Status) {
        self.lock().end_links(|ends| ends == [a, b] || ends == [b, a], why);
    }

    /// Packets in flight to `address`.
    pub fn packets_towards(&self, address: FunctionAddress) -> usize {
        let state = self.lock();
        let towards = |wire: &Wire| {
            (0..2).filter(|&end| wire.ends[end] == address).map(|end| wire.left(end)).sum()
        };
        let counts: Vec<usize> = state.links.iter().map(towards).collect();
        counts.into_iter().sum()
    }

    /// Number of keys that `address` exports now.
    pub fn exports(&self, address: FunctionAddress) -> usize {
        self.lock().functions.get(&address).map_or(0, |node| node.exports.len())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_links(&mut self, which: impl Fn([FunctionAddress; 2]) -> bool, why: Status) {
        for wire in &mut self.links {
            if which(wire.ends) && !matches!(wire.condition, Condition::Down(_)) {
                wire.condition = Condition::Down(why);
                for end in wire.ends {
                    if let Some(node) = self.functions.get_mut(&end) {
                        node.wake();
                    }
                }
            }
        }
    }

    fn wake(&mut self, address: FunctionAddress) {
        if let Some(node) = self.functions.get_mut(&address) {
            node.wake();
        }
    }

    /// The wire behind a function's link number, and the function's end of it.
    fn wire(&mut self, address: FunctionAddress, link: LinkId) -> Option<(&mut Wire, usize)> {
        let node = self.functions.get(&address)?;
        let (wire, end) = (*node.links.get(link.0 as usize)?)?;
        let wire = &mut self.links[wire];
        if let Condition::Asking(until) = wire.condition {
            if self.functions.contains_key(&wire.ends[1 - end]) {
                wire.condition = Condition::Up;
            } else if Instant::now() >= until {
                wire.condition = Condition::Down(Status::Unreachable);
            }
        }
        Some((wire, end))
    }

    /// A number for one end of a wire. It is the one that was freed last, so that the use of a
    /// stale one shows.
    fn attach(&mut self, address: FunctionAddress, wire: usize, end: usize) -> LinkId {
        let node = self.functions.get_mut(&address).expect("an open function");
        let place = match node.links.iter().rposition(Option::is_none) {
            Some(place) => place,
            None => {
                node.links.push(None);
                node.links.len() - 1
            }
        };
        node.links[place] = Some((wire, end));
        LinkId(place as u32)
    }

    /// Whether a fault with frequency 1 / `each` happens now. It is pseudo-random (SplitMix64, by
    /// Steele, Lea and Flood). A regular sequence, such as multiples of the golden ratio, would
    /// always hit the peer whose attempts are in step with it.
    fn is_due(&mut self, each: u64) -> bool {
        self.clock = self.clock.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.clock;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        each > 0 && mixed.is_multiple_of(each)
    }
}

impl Node {
    fn wake(&mut self) {
        self.news = true;
        if std::mem::take(&mut self.armed)
            && let Some(bell) = &self.bell
        {
            let rung = rustix::io::write(bell, &1u64.to_ne_bytes());
            rung.expect("an eventfd takes a small number");
        }
    }
}

/// One node of a fabric as a device.
struct LoopbackDevice {
    fabric: Fabric,
    node: u32,
}

impl NodeInfo for LoopbackDevice {
    fn node(&self) -> u32 {
        self.node
    }

    fn describe(&self) -> String {
        "loopback: queues inside one process".to_owned()
    }
}

impl DeviceBackend for LoopbackDevice {
    fn info(&self) -> &dyn NodeInfo {
        self
    }

    fn functions(&self) -> u8 {
        8
    }

    fn open_function(&self, function: u8, _weight: u8) -> Result<Box<dyn DynTransport>> {
        let address = FunctionAddress { node: self.node, function };
        Ok(Box::new(self.fabric.transport(address)))
    }
}

/// One function of a fabric.
pub struct Loopback {
    fabric: Fabric,
    address: FunctionAddress,
    bell: Arc<OwnedFd>,
    /// The next link in the round-robin.
    turn: usize,
    /// A packet was refused for now. Retry it before sleep, because no peer rings when there is
    /// room.
    refused: bool,
    /// Packets wait for each other.
    holds: bool,
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.release();
        self.fabric.kill(self.address);
        self.fabric.lock().functions.remove(&self.address);
    }
}

impl Transport for Loopback {
    fn address(&self) -> FunctionAddress {
        self.address
    }

    fn limits(&self) -> TransportLimits {
        TransportLimits {
            packet_bytes: self.fabric.options.packet_bytes,
            queue_pairs: self.fabric.options.queue_pairs,
            regions: self.fabric.options.regions,
            links: 1024,
        }
    }

    fn link(&mut self, peer: FunctionAddress, patience: Duration) -> Result<LinkId, Error> {
        let mut state = self.fabric.lock();
        let links = state.functions[&self.address].links.clone();
        for (number, place) in links.iter().enumerate() {
            let Some((wire, end)) = *place else { continue };
            let wire = &state.links[wire];
            if wire.ends[1 - end] == peer && !matches!(wire.condition, Condition::Down(_)) {
                return Ok(LinkId(number as u32));
            }
        }
        let until = Instant::now() + patience.min(self.fabric.options.patience);
        state.links.push(Wire {
            ends: [self.address, peer],
            condition: Condition::Asking(until),
            towards: Default::default(),
            held: [0; 2],
            stalled: [false; 2],
            told: [false; 2],
        });
        let wire = state.links.len() - 1;
        Ok(state.attach(self.address, wire, 0))
    }

    fn close(&mut self, link: LinkId) {
        self.release();
        let mut state = self.fabric.lock();
        let Some((wire, end)) = state.wire(self.address, link) else { return };
        let peer = wire.ends[1 - end];
        if !matches!(wire.condition, Condition::Down(_)) {
            wire.condition = Condition::Down(Status::PeerGone);
        }
        state.wake(peer);
        let node = state.functions.get_mut(&self.address).expect("an open function");
        node.links[link.0 as usize] = None;
    }

    fn is_up(&self, link: LinkId) -> bool {
        let mut state = self.fabric.lock();
        state.wire(self.address, link).is_some_and(|(wire, _)| wire.condition == Condition::Up)
    }

    fn watch_gate(&mut self, link: LinkId, queue_pair: u32) -> Option<Gate> {
        let mut state = self.fabric.lock();
        let (wire, end) = state.wire(self.address, link)?;
        if wire.condition != Condition::Up {
            return None;
        }
        let peer = wire.ends[1 - end];
        let gates = &state.functions.get(&peer)?.gates;
        let gate = gates.get(&queue_pair).copied().unwrap_or(Gate::Closed);
        if gate == Gate::Stopped {
            self.refused = true;
        }
        Some(gate)
    }

    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        let mut state = self.fabric.lock();
        let node = state.functions.get_mut(&self.address).expect("an open function");
        node.gates.insert(queue_pair, gate);
        let waiting: Vec<FunctionAddress> = state.functions.keys().copied().collect();
        waiting.into_iter().for_each(|peer| state.wake(peer));
    }

    fn send(
        &mut self,
        link: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        let length = head.len() + body.len();
        assert!(length <= self.fabric.options.packet_bytes, "a packet of {length} bytes");
        let mut state = self.fabric.lock();
        let is_stuck = state.stuck == Some(self.address) && !header.is_answer();
        let busy = is_stuck || state.is_due(self.fabric.options.busy_every);
        let (wire, end) =
            state.wire(self.address, link).ok_or(SendError::Down(Status::PeerGone))?;
        match wire.condition {
            Condition::Asking(_) => {
                self.refused = true;
                return Err(SendError::Busy);
            }
            Condition::Down(why) => return Err(SendError::Down(why)),
            Condition::Up => {}
        }
        let peer = wire.ends[1 - end];
        let to = if peer == self.address { end } else { 1 - end };
        // The peer wakes us when a full link has room again.
        if busy || wire.towards[to].len() >= self.fabric.options.link_packets {
            self.refused |= busy;
            return Err(SendError::Busy);
        }
        let mut payload = head.to_vec();
        payload.resize(length, 0);
        body.read(0, &mut payload[head.len()..]);
        header.length = length as u32;
        // Through its words, as a real device sends it.
        let header = PacketHeader::from_words(header.to_words());
        wire.towards[to].push_back(Packet { header, payload });
        if !self.fabric.options.holds {
            state.wake(peer);
            return Ok(Receipt::Delivered);
        }
        wire.held[to] += 1;
        drop(state);
        if !self.holds {
            self.release();
        }
        Ok(Receipt::Delivered)
    }

    fn send_later(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        self.fabric.lock().later += 1;
        self.send(link, header, head, body)
    }

    fn carries_batches(&self, _link: LinkId) -> bool {
        !self.fabric.options.holds
    }

    fn hold(&mut self) {
        self.holds = self.fabric.options.holds;
    }

    fn let_go(&mut self, at_once: bool) {
        self.holds = false;
        if at_once {
            self.release();
        }
    }

    fn look_around(&mut self, _: &mut impl Sink) -> bool {
        self.fabric.lock().looks += 1;
        self.fabric.options.is_rare
    }

    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        // The engine tries again after each poll.
        self.refused = false;
        self.release();
        self.welcome();
        let mut taken = 0;
        let count = {
            let mut state = self.fabric.lock();
            let node = state.functions.get_mut(&self.address).expect("an open function");
            node.news = false;
            node.links.len()
        };
        self.turn = self.turn.wrapping_add(1);
        for step in 0..count {
            let link = LinkId(((self.turn + step) % count) as u32);
            while taken < budget && self.poll_link(sink, link) {
                taken += 1;
            }
        }
        taken
    }

    fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) -> Result<(), Error> {
        let mut state = self.fabric.lock();
        let node = state.functions.get_mut(&self.address).expect("an open function");
        let old = node.exports.insert(key.index, (key, memory.clone(), rights));
        assert!(old.is_none(), "index {} is exported twice", key.index);
        Ok(())
    }

    fn retract(&mut self, key: RemoteKey) {
        let mut state = self.fabric.lock();
        let node = state.functions.get_mut(&self.address).expect("an open function");
        let old = node.exports.remove(&key.index);
        assert_eq!(old.map(|old| old.0), Some(key), "only what was exported is retracted");
    }

    fn put(&mut self, link: LinkId, key: RemoteKey, offset: u64, from: View<'_>) -> Direct {
        self.reach(link, key, offset, from.len(), Rights::REMOTE_WRITE, |part| {
            part.copy_from(from);
            Some(0)
        })
    }

    fn get(&mut self, link: LinkId, key: RemoteKey, offset: u64, into: View<'_>) -> Direct {
        self.reach(link, key, offset, into.len(), Rights::REMOTE_READ, |part| {
            into.copy_from(part);
            Some(0)
        })
    }

    fn atomic(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        operation: AtomicOperation,
    ) -> Direct {
        self.reach(link, key, offset, 8, Rights::REMOTE_ATOMIC, |part| operation.apply(part, 0))
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn arm(&mut self) -> bool {
        self.release();
        if std::mem::take(&mut self.refused) {
            return false;
        }
        self.welcome();
        let mut drained = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut drained);
        let mut state = self.fabric.lock();
        let links = state.functions[&self.address].links.len();
        for number in 0..links {
            let Some((wire, end)) = state.wire(self.address, LinkId(number as u32)) else {
                continue;
            };
            let down = matches!(wire.condition, Condition::Down(_)) && !wire.told[end];
            if down || (wire.left(end) > 0 && !wire.stalled[end]) {
                return false;
            }
        }
        let node = state.functions.get_mut(&self.address).expect("an open function");
        node.armed = !node.news;
        node.armed
    }
}

impl Loopback {
    /// Held packets leave.
    fn release(&self) {
        if !self.fabric.options.holds {
            return;
        }
        let mut state = self.fabric.lock();
        let links = state.functions[&self.address].links.clone();
        for (wire, end) in links.into_iter().flatten() {
            let wire = &mut state.links[wire];
            let peer = wire.ends[1 - end];
            let to = if peer == self.address { end } else { 1 - end };
            if std::mem::take(&mut wire.held[to]) > 0 {
                state.wake(peer);
            }
        }
    }

    /// Gives numbers to links that peers have made to us.
    fn welcome(&mut self) {
        let mut state = self.fabric.lock();
        let known: Vec<usize> =
            state.functions[&self.address].links.iter().flatten().map(|place| place.0).collect();
        for wire in 0..state.links.len() {
            let Wire { ends, condition, told, .. } = &state.links[wire];
            let ours = ends[1] == self.address && ends[0] != self.address;
            let over = matches!(condition, Condition::Down(_)) || told[1];
            if ours && !over && !known.contains(&wire) {
                state.links[wire].condition = Condition::Up;
                state.attach(self.address, wire, 1);
            }
        }
    }

    /// Delivers one packet, or the end of a link. `false`: there was none.
    fn poll_link(&mut self, sink: &mut impl Sink, link: LinkId) -> bool {
        let mut state = self.fabric.lock();
        let links = &state.functions[&self.address].links;
        let Some((wire, end)) = links[link.0 as usize] else { return false };
        // Packets of an earlier link to the same peer come first.
        let peer = state.links[wire].ends[1 - end];
        let earlier = links.iter().flatten().filter(|(other, _)| *other < wire);
        if earlier.into_iter().any(|&(other, end)| {
            let other = &state.links[other];
            other.is_over() && other.ends[1 - end] == peer
        }) {
            return false;
        }
        let Some((wire, end)) = state.wire(self.address, link) else { return false };
        let packet = if wire.left(end) > 0 { wire.towards[end].pop_front() } else { None };
        let Some(packet) = packet else {
            // Packets that a peer sent before its end are still delivered.
            if let Condition::Down(why) = wire.condition
                && !std::mem::replace(&mut wire.told[end], true)
            {
                drop(state);
                sink.link_down(link, peer, why);
                return true;
            }
            return false;
        };
        wire.stalled[end] = false;
        drop(state);
        let verdict = sink.packet(link, peer, packet.header.to_words(), View::of(&packet.payload));
        let mut state = self.fabric.lock();
        let Some((wire, end)) = state.wire(self.address, link) else { return true };
        match verdict {
            Verdict::Taken => {
                state.wake(peer);
                true
            }
            Verdict::Stalled => {
                wire.towards[end].push_front(packet);
                wire.stalled[end] = true;
                false
            }
            Verdict::Violation => {
                wire.towards[end].clear();
                wire.held[end] = 0;
                wire.condition = Condition::Down(Status::ProtocolViolation);
                state.wake(peer);
                true
            }
        }
    }

    /// Accesses a peer's memory, if this fabric and the key allow it.
    fn reach(
        &mut self,
        link: LinkId,
        key: RemoteKey,
        offset: u64,
        length: usize,
        right: Rights,
        access: impl FnOnce(View<'_>) -> Option<u64>,
    ) -> Direct {
        let options = &self.fabric.options;
        let mut state = self.fabric.lock();
        if state.is_due(options.pending_every) {
            return Direct::Pending;
        }
        let Some((wire, end)) = state.wire(self.address, link) else {
            return Direct::Refused(Status::PeerGone);
        };
        match wire.condition {
            Condition::Asking(_) => return Direct::Pending,
            Condition::Down(why) => return Direct::Refused(why),
            Condition::Up => {}
        }
        let owner = wire.ends[1 - end];
        assert_eq!(key.owner(), owner, "a key is used on its owner's link");
        if !options.direct_allocated && !options.direct_brought {
            return Direct::ByPacket;
        }
        let export = state.functions.get(&owner).and_then(|node| node.exports.get(&key.index));
        let Some((known, memory, rights)) = export else {
            return Direct::Refused(Status::WrongKey);
        };
        if known.key != key.key {
            return Direct::Refused(Status::WrongKey);
        }
        let direct =
            if memory.is_brought() { options.direct_brought } else { options.direct_allocated };
        if !direct {
            return Direct::ByPacket;
        }
        let part = usize::try_from(offset).ok().and_then(|at| memory.view().part(at, length));
        let Some(part) = part else { return Direct::Refused(Status::OutOfBounds) };
        if !rights.contains(right) {
            return Direct::Refused(Status::NotPermitted);
        }
        match access(part) {
            Some(value) => Direct::Done(value),
            None => Direct::Refused(Status::Misaligned),
        }
    }
}
