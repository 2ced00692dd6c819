//! Random operations of a few functions, and the books that are kept of them.

use crate::world::*;
use bellwire::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One step of a test. `Destroy` replaces a queue pair, and `Cut` ends a link.
#[derive(Clone, Debug)]
pub enum Step {
    Send { from: usize, to: usize, length: usize, region: bool },
    Receive { side: usize, length: usize },
    Put { from: usize, to: usize, offset: usize, length: usize },
    Get { from: usize, to: usize, offset: usize, length: usize },
    Add { from: usize, to: usize },
    Turn { side: usize },
    Destroy { side: usize },
    Cut { a: usize, b: usize },
}

pub const SIDES: usize = 3;
pub const REGION: usize = 6000;
/// Most steps of a test.
pub const STEPS: usize = 150;

/// A step without an accident. Messages and receives have at least `shortest` bytes.
pub fn operation(shortest: usize) -> impl Strategy<Value = Step> {
    let side = || 0..SIDES;
    let length = move || prop_oneof![4 => shortest..80, 2 => shortest..3000, 1 => 2000..REGION];
    prop_oneof![
        6 => (side(), side(), length(), any::<bool>())
            .prop_map(|(from, to, length, region)| Step::Send { from, to, length, region }),
        5 => (side(), length()).prop_map(|(side, length)| Step::Receive { side, length }),
        2 => (side(), side(), length(), 0..REGION).prop_map(|(from, to, length, offset)| {
            Step::Put { from, to, offset, length: length.min(REGION - offset) }
        }),
        2 => (side(), side(), length(), 0..REGION).prop_map(|(from, to, length, offset)| {
            Step::Get { from, to, offset, length: length.min(REGION - offset) }
        }),
        1 => (side(), side()).prop_map(|(from, to)| Step::Add { from, to }),
        8 => side().prop_map(|side| Step::Turn { side }),
    ]
}

/// The functions of a test.
pub struct Game {
    pub world: World,
    addresses: Vec<Address>,
    /// Targets of puts, and sources of gets.
    shared: Vec<MemoryRegion>,
    /// Targets of additions.
    pub words: Vec<MemoryRegion>,
    /// Memory of messages that are sent from a region, and its used bytes.
    sources: Vec<MemoryRegion>,
    used: [usize; SIDES],
    /// Descriptors that have not completed, by side and context.
    pub posted: BTreeMap<(usize, u64), Operation>,
}

impl Game {
    pub fn new(options: FabricOptions, function: &FunctionOptions, sources: Rights) -> Game {
        let mut world = World::with(options, SIDES as u32, function);
        let addresses = world.sides.iter().map(Side::address).collect();
        let mut allocate = |length, rights| -> Vec<MemoryRegion> {
            let allocate = |side: &mut Side| side.function.allocate_region(length, rights);
            world.sides.iter_mut().map(|side| allocate(side).unwrap()).collect()
        };
        let shared = allocate(REGION, Rights::all());
        let words = allocate(8, Rights::REMOTE_ATOMIC);
        let sources = allocate(STEPS * REGION, sources);
        let (used, posted) = ([0; SIDES], BTreeMap::new());
        Game { world, addresses, shared, words, sources, used, posted }
    }

    /// Carries out a step, with a message of `message(length, context)`.
    pub fn act(&mut self, context: u64, step: Step, message: impl Fn(usize, u64) -> Vec<u8>) {
        let sides = &mut self.world.sides;
        let posted = match step {
            Step::Send { from, to, length, region } => {
                let message = message(length, context);
                let send = if region {
                    let at = self.used[from];
                    self.used[from] += length;
                    self.sources[from].write(at, &message);
                    Message::buffer(self.sources[from].slice(at, length))
                } else {
                    Message::buffer(message)
                };
                let (side, send) = (&mut sides[from], send.to(self.addresses[to]));
                side.function.post_send(side.qp, send.context(context)).unwrap();
                (from, Operation::Send)
            }
            Step::Receive { side, length } => {
                sides[side].receive(length, context);
                (side, Operation::Receive)
            }
            Step::Put { from, to, offset, length } => {
                let target = self.shared[to].remote_key().slice(offset as u64, length as u64);
                let put = Put::new(pattern(length, 0), target).context(context);
                let side = &mut sides[from];
                side.function.post_put(side.qp, put).unwrap();
                (from, Operation::Put)
            }
            Step::Get { from, to, offset, length } => {
                let source = self.shared[to].remote_key().slice(offset as u64, length as u64);
                let get = Get::new(source, vec![0; length]).context(context);
                let side = &mut sides[from];
                side.function.post_get(side.qp, get).unwrap();
                (from, Operation::Get)
            }
            Step::Add { from, to } => {
                let add = Atomic::fetch_add(self.words[to].remote_key().at(0), 1).context(context);
                let side = &mut sides[from];
                side.function.post_atomic(side.qp, add).unwrap();
                (from, Operation::FetchAdd)
            }
            Step::Turn { side } => {
                sides[side].turn();
                return self.world.check_counters();
            }
            Step::Destroy { side: number } => {
                let side = &mut sides[number];
                side.function.destroy_queue_pair(side.qp).unwrap();
                let options = QueuePairOptions::new(side.cq);
                side.qp = side.function.create_queue_pair(&options).unwrap();
                self.addresses[number] = side.address();
                return;
            }
            Step::Cut { a, b } => {
                let [a, b] = [a, b].map(|side| self.addresses[side].function_address());
                return self.world.fabric.cut(a, b, Status::PeerGone);
            }
        };
        self.posted.insert((posted.0, context), posted.1);
    }

    /// Takes all completions, each with its side. Checks them against what was posted.
    pub fn completions(&mut self) -> Vec<(usize, Completion)> {
        let mut all = Vec::new();
        for (side, at) in self.world.sides.iter_mut().enumerate() {
            for done in at.done.drain(..) {
                let posted = self.posted.remove(&(side, done.context));
                assert_eq!(posted, Some(done.operation), "each completes once, as what it is");
                let has_buffer = done.operation != Operation::FetchAdd;
                assert_eq!(done.buffer.is_some(), has_buffer, "and gives its buffer back");
                all.push((side, done));
            }
        }
        all
    }
}
