//! Functions on one fabric, driven round-robin by one thread.

use bellwire::*;
pub use bellwire_testkit::loopback::{Fabric, FabricOptions};
use bellwire_testkit::watchdog::Watchdog;
use std::time::Duration;

/// Longest time that a test waits for an expected event.
pub const LONG: Duration = Duration::from_secs(8);
/// Most that a test computes with one world.
const LIMIT: Duration = Duration::from_secs(4);

/// One node with one function, one completion queue and one queue pair.
pub struct Side {
    pub device: Device,
    pub function: Function,
    pub cq: CompletionQueue,
    pub qp: QueuePair,
    /// Completions that no test has looked at yet.
    pub done: Vec<Completion>,
}

pub struct World {
    pub fabric: Fabric,
    pub sides: Vec<Side>,
    _watchdog: Watchdog,
}

impl World {
    /// `nodes` sides, numbered from 0.
    pub fn new(options: FabricOptions, nodes: u32) -> World {
        Self::with(options, nodes, &FunctionOptions::default())
    }

    pub fn with(options: FabricOptions, nodes: u32, function: &FunctionOptions) -> World {
        let fabric = Fabric::new(options);
        let sides = (0..nodes).map(|node| Side::new(&fabric, node, function)).collect();
        World { fabric, sides, _watchdog: Watchdog::new(LIMIT) }
    }

    pub fn pair() -> World {
        Self::new(FabricOptions::default(), 2)
    }

    /// A pair whose memory is reached only by packets, which are few and short.
    pub fn narrow() -> World {
        Self::new(FabricOptions { packet_bytes: 64, link_packets: 2, ..by_packets() }, 2)
    }

    /// Both sides at once.
    pub fn both(&mut self) -> (&mut Side, &mut Side) {
        let (a, b) = self.sides.split_at_mut(1);
        (&mut a[0], &mut b[0])
    }

    /// One turn of all sides. Returns how much they did.
    pub fn turn(&mut self) -> usize {
        self.sides.iter_mut().map(Side::turn).sum()
    }

    /// Turns until the second side has a completion.
    pub fn turn_until_done(&mut self) {
        for _ in 0..100_000 {
            self.turn();
            if !self.sides[1].done.is_empty() {
                return;
            }
        }
    }

    /// Lets all sides make progress until nothing changes any more.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..1_000_000 {
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            // Long enough for a fabric that refuses every other packet.
            if quiet == 60 {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// Checks the invariants of the counters.
    pub fn check_counters(&self) {
        for side in &self.sides {
            for queue_pair in side.function.queue_pairs() {
                let state = side.function.query(queue_pair).unwrap();
                let QueuePairState { posted_sends, posted_receives, counters, .. } = state;
                let sends = counters.sends_completed + posted_sends as u64;
                assert_eq!(counters.sends_posted, sends);
                let receives = counters.receives_completed + posted_receives as u64;
                assert_eq!(counters.receives_posted, receives);
                let waiting = counters.messages_unfinished + state.backlog_messages as u64;
                let gone = counters.messages_received + counters.messages_discarded;
                assert_eq!(counters.messages_arrived, gone + waiting);
            }
        }
    }
}

impl Side {
    pub fn new(fabric: &Fabric, node: u32, options: &FunctionOptions) -> Side {
        let device = fabric.device(node);
        let mut function = device.open_function_with(0, options).unwrap();
        let cq = function.create_completion_queue(4096).unwrap();
        let qp = function.create_queue_pair(&QueuePairOptions::new(cq)).unwrap();
        Side { device, function, cq, qp, done: Vec::new() }
    }

    /// One turn: makes progress and takes completions. Returns how much it did.
    pub fn turn(&mut self) -> usize {
        let mut done = self.function.progress().unwrap();
        while let Some(completion) = self.function.poll(self.cq).unwrap() {
            self.done.push(completion);
            done += 1;
        }
        done
    }

    pub fn address(&self) -> Address {
        self.function.query(self.qp).unwrap().address
    }

    pub fn receive(&mut self, length: usize, context: u64) {
        self.function.post_receive(self.qp, vec![0; length], context).unwrap();
    }

    pub fn send(&mut self, to: Address, bytes: &[u8], context: u64) {
        let send = Message::buffer(bytes.to_vec()).to(to).context(context);
        self.function.post_send(self.qp, send).unwrap();
    }

    /// The oldest completion; panics if there is none.
    pub fn take(&mut self) -> Completion {
        assert!(!self.done.is_empty(), "a completion is missing");
        self.done.remove(0)
    }

    /// All completions of one operation, oldest first.
    pub fn take_all(&mut self, operation: Operation) -> Vec<Completion> {
        let done = std::mem::take(&mut self.done);
        let (taken, left) =
            done.into_iter().partition(|completion| completion.operation == operation);
        self.done = left;
        taken
    }

    pub fn state(&self) -> QueuePairState {
        self.function.query(self.qp).unwrap()
    }
}

/// A fabric on which no memory is reached directly.
pub fn by_packets() -> FabricOptions {
    FabricOptions { direct_allocated: false, direct_brought: false, ..FabricOptions::default() }
}

/// The bytes of a region from `offset` on.
pub fn part(region: &MemoryRegion, offset: usize, length: usize) -> Vec<u8> {
    let mut found = vec![0xcc; length];
    region.read(offset, &mut found);
    found
}

/// Bytes that depend on position and seed.
pub fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let byte = |at: usize| (at as u64).wrapping_mul(31).wrapping_add(seed * 17 + at as u64 / 251);
    (0..length).map(|at| byte(at) as u8).collect()
}

/// The bytes that a receive or get left in its buffer.
pub fn bytes(completion: Completion) -> Vec<u8> {
    let length = completion.length;
    completion.buffer.expect("a buffer comes back").into_bytes(length)
}
