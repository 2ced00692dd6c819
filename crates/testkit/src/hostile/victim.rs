//! The process under attack.

use super::{ATTACK, ATTACKER, Attack};
use crate::conformance::bytes::{Random, assert_same, pattern};
use crate::conformance::child::{DEVICE, Process, ROLE, told};
use crate::conformance::stage::{A, B, Stage, accepted};
use crate::conformance::{Fixture, Node};
use bellwire::{
    Address, Atomic, Device, DeviceOptions, Get, MemoryRegion, Message, Operation, Put, QueuePair,
    RemoteKey, Result, Rights, Status, Wait,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The node that the attacker claims to be. It is below the victim's, so that its attempts to
/// connect take precedence.
pub const ATTACKER_NODE: u32 = 2;
/// The first of the victim's nodes, which is attacked.
pub const VICTIM_NODE: u32 = 5;

/// The device that the environment names, with nodes from [`VICTIM_NODE`] on.
struct Told(AtomicU32);

impl Fixture for Told {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let options = options.clone().node(self.0.fetch_add(1, Ordering::Relaxed));
        Device::open_with(&told(DEVICE), &options)
    }
}

/// The victim's main function.
pub fn play(attack: Attack) {
    let attack_name = told(ATTACK);
    let told = Told(AtomicU32::new(VICTIM_NODE));
    let mut stage = Stage::pair(&told);
    // Function 1 of the same nodes: the attacker has no link to it.
    for who in [A, B] {
        let device = stage.nodes[who].device.clone();
        stage.nodes.push(Node::of(device, 1, &Default::default()));
    }
    let start = || Process::start("hostile", &[(ROLE, ATTACKER), (ATTACK, &attack_name)]);
    let mut attacker = start();
    let mut same = Traffic::new(&mut stage, A, B);
    let mut other = Traffic::new(&mut stage, 2, 3);
    let mut poked = Poked::new(&mut stage.nodes[A]);
    let shares_pool = attack == Attack::Pool;
    let mut rounds = 0;
    // Each exchange has a limit of its own, so that an attack that holds the victim up fails there.
    // On a slow machine attackers follow each other until some rounds were attacked.
    while attacker.ended().is_none() || rounds <= 5 {
        if attacker.ended().is_some() {
            attacker.succeed();
            attacker = start();
        }
        if shares_pool {
            // The attacker may alter the pool meanwhile: nothing may hang or crash, and no more is
            // required.
            same = same.survive(&mut stage);
        } else {
            same.exchange(&mut stage);
        }
        other.exchange(&mut stage);
        poked.poke(&mut stage.nodes[A], rounds);
        // Sometimes asleep, too.
        if rounds.is_multiple_of(16) {
            let node = &mut stage.nodes[A];
            let quiet =
                node.function.wait(poked.completions, Wait::Block, Duration::from_millis(1));
            drop(quiet);
        }
        rounds += 1;
    }
    attacker.succeed();
    if shares_pool {
        for who in [A, B] {
            let device = stage.nodes[who].device.clone();
            let spare = Node::of(device.clone(), 2, &Default::default());
            drop(std::mem::replace(&mut stage.nodes[who], spare));
            let anew = Node::of(device, 0, &Default::default());
            drop(std::mem::replace(&mut stage.nodes[who], anew));
        }
        same = Traffic::new(&mut stage, A, B);
    }
    for _ in 0..50 {
        same.exchange(&mut stage);
        other.exchange(&mut stage);
    }
}

/// Correct traffic between two nodes of a stage, over queue pairs that are connected to each other.
struct Traffic {
    who: [usize; 2],
    pairs: [QueuePair; 2],
    regions: [MemoryRegion; 2],
    random: Random,
}

impl Traffic {
    fn new(stage: &mut Stage<'_>, first: usize, second: usize) -> Traffic {
        let who = [first, second];
        for who in who {
            // Any peer may send to an unconnected queue pair, and raise events there.
            let Node { function, queue_pair, .. } = &mut stage.nodes[who];
            function.destroy_queue_pair(*queue_pair).expect("every node has one");
        }
        let pairs = who.map(|who| stage.nodes[who].another());
        stage.connect((first, pairs[0]), (second, pairs[1]));
        Self::over(stage, who, pairs)
    }

    fn over(stage: &mut Stage<'_>, who: [usize; 2], pairs: [QueuePair; 2]) -> Traffic {
        let regions = who.map(|who| {
            let function = &mut stage.nodes[who].function;
            function.allocate_region(40_000, Rights::all()).expect("room")
        });
        Traffic { who, pairs, regions, random: Random(3) }
    }

    /// A few messages both ways, a put and a get, all of which must be right.
    fn exchange(&mut self, stage: &mut Stage<'_>) {
        for side in [0, 1] {
            let (from, to) = (self.who[side], self.who[1 - side]);
            let sizes: Vec<_> =
                (0..4).map(|_| [8, 100, 3_000, 20_000][self.random.below(4)]).collect();
            let pair = self.pairs[1 - side];
            for &size in &sizes {
                stage.nodes[to].receive_on(pair, size, 0);
            }
            let key = self.regions[1 - side].remote_key().slice(64, 10_000);
            let bytes = pattern(self.random.0, 10_000);
            let function = &mut stage.nodes[from].function;
            function.post_put(self.pairs[side], Put::new(bytes.clone(), key)).expect("room");
            for &size in &sizes {
                let send = Message::buffer(pattern(size as u64, size));
                function.post_send(self.pairs[side], send).expect("room");
            }
            for &size in &sizes {
                let done = stage.success(to);
                let own = done.operation == Operation::Receive && done.queue_pair == pair;
                assert!(own, "nobody else is heard: {done:?}");
                let found = done.buffer.expect("its buffer").into_bytes(done.length);
                assert_same(&found, &pattern(size as u64, size), "good traffic");
            }
            for _ in 0..5 {
                let done = stage.success(from);
                let own = matches!(done.operation, Operation::Send | Operation::Put);
                assert!(own && done.queue_pair == self.pairs[side], "not ours: {done:?}");
            }
            let get = Get::new(key, vec![0; 10_000]);
            stage.nodes[from].function.post_get(self.pairs[side], get).expect("room");
            let found = stage.success(from).buffer.expect("its buffer").into_bytes(10_000);
            assert_same(&found, &bytes, "good memory");
        }
    }

    /// The same while the attacker overwrites the memory. Operations may fail, but every posted
    /// descriptor comes back, and the nodes go on.
    fn survive(self, stage: &mut Stage<'_>) -> Traffic {
        let mut posted = [0u32; 2];
        for side in [0, 1] {
            let (node, pair) = (&mut stage.nodes[self.who[side]], self.pairs[side]);
            for size in [8, 3_000, 20_000] {
                if node.function.post_receive(pair, vec![0; size], 0).is_ok() {
                    posted[side] += 1;
                }
                if node.function.post_send(pair, Message::buffer(vec![1; size])).is_ok() {
                    posted[side] += 1;
                }
            }
            let key = self.regions[1 - side].remote_key();
            if node.function.post_put(pair, Put::new(vec![2; 40_000], key)).is_ok() {
                posted[side] += 1;
            }
        }
        let since = Instant::now();
        while posted != [0; 2] && since.elapsed() < Duration::from_millis(20) {
            for side in [0, 1] {
                stage.turn();
                while let Some(done) = stage.nodes[self.who[side]].poll() {
                    posted[side] -= u32::from(done.queue_pair == self.pairs[side]);
                }
            }
        }
        for side in [0, 1] {
            stage.nodes[self.who[side]]
                .function
                .destroy_queue_pair(self.pairs[side])
                .expect("it exists");
        }
        let what = "everything to come back from destroyed queue pairs";
        stage.until(what, |stage| {
            for side in [0, 1] {
                while let Some(done) = stage.nodes[self.who[side]].poll() {
                    posted[side] -= u32::from(done.queue_pair == self.pairs[side]);
                }
            }
            (posted == [0; 2]).then_some(())
        });
        for (who, region) in self.who.into_iter().zip(self.regions) {
            stage.until("the region to be free", |stage| {
                stage.nodes[who].function.deregister(region.clone()).ok()
            });
        }
        // A new connection if the attack lets one through; otherwise all posts of the next round
        // are refused.
        let pairs = self.who.map(|who| stage.nodes[who].another());
        let to = stage.nodes[self.who[1]].function.address();
        let function = &mut stage.nodes[self.who[1]].function;
        let listener = function.listen(70).expect("free");
        let there = Address::new(to.node, to.function, 70);
        let patience = Duration::from_millis(30);
        let asking = &mut stage.nodes[self.who[0]].function;
        if asking.start_connect(pairs[0], there, b"", patience).is_ok() {
            loop {
                stage.turn();
                let listening = &mut stage.nodes[self.who[1]].function;
                while let Some(request) = listening.poll_request(listener).expect("listening") {
                    let _ = listening.accept(request, pairs[1], b"");
                }
                let asking = &mut stage.nodes[self.who[0]].function;
                match asking.poll_connection(pairs[0]) {
                    Ok(bellwire::ConnectionProgress::Waiting) => {}
                    _ => break,
                }
            }
        }
        stage.nodes[self.who[1]].function.stop_listening(listener).expect("it listened");
        Self::over(stage, self.who, pairs)
    }
}

/// Operations of the victim on the attacker, which may answer anything or nothing.
struct Poked {
    pair: QueuePair,
    completions: bellwire::CompletionQueue,
    region: MemoryRegion,
}

impl Poked {
    fn new(node: &mut Node) -> Poked {
        let completions = node.function.create_completion_queue(512).expect("a queue");
        let pair = Self::pair(node, completions);
        let region = node.function.register(vec![5; 5_000], Rights::all()).expect("room");
        Poked { pair, completions, region }
    }

    fn pair(node: &mut Node, completions: bellwire::CompletionQueue) -> QueuePair {
        let options = bellwire::QueuePairOptions::new(completions).send_depth(64);
        node.function.create_queue_pair(&options).expect("a queue pair")
    }

    fn poke(&mut self, node: &mut Node, round: u64) {
        let to = Address::new(ATTACKER_NODE, 0, (round % 5) as u32);
        let (node_number, index) = (ATTACKER_NODE, (round % 7) as u16);
        let key =
            RemoteKey { node: node_number, function: 0, index, key: round + 1, length: 1 << 20 };
        let function = &mut node.function;
        let size = [8, 5_000, 30_000][round as usize % 3];
        let mut room =
            accepted(function.post_send(self.pair, Message::buffer(vec![1; size]).to(to)));
        room &= accepted(function.post_send(self.pair, Message::buffer(&self.region).to(to)));
        room &= accepted(function.post_put(self.pair, Put::new(vec![1; 100], key.slice(8, 100))));
        room &= accepted(function.post_get(self.pair, Get::new(key.slice(0, 99), vec![1; 99])));
        room &= function.post_atomic(self.pair, Atomic::fetch_add(key.at(8), 1).context(1)).is_ok();
        let _ = function.post_receive(self.pair, vec![0; 64], 0);
        while let Some(done) = function.poll(self.completions).expect("a queue") {
            let peer = done.peer.node;
            assert!(
                peer == ATTACKER_NODE || done.operation == Operation::Receive,
                "an answer from nobody: {done:?}"
            );
            assert!(done.status != Status::Misaligned, "{done:?}");
        }
        if !room {
            function.destroy_queue_pair(self.pair).expect("it exists");
            while let Some(done) = function.poll(self.completions).expect("a queue") {
                drop(done);
            }
            self.pair = Self::pair(node, self.completions);
        }
    }
}
