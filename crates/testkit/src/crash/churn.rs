//! Repeated connecting and disconnecting leaves nothing behind.

use super::residue::Residue;
use super::{CHURN, CRASH};
use crate::conformance::child::{DEVICE, Process, ROLE, told};
use crate::conformance::stage::{A, B, Stage};
use crate::conformance::{Fixture, Named, Node};
use bellwire::{Device, DeviceOptions, Message, Result, Status};
use std::time::Duration;

/// Gives the number of rounds.
const ROUNDS: &str = "BELLWIRE_TEST_ROUNDS";

/// Connects and disconnects `rounds` times in a process of its own. Panics if the process kept
/// anything.
pub fn churn(rounds: u64) {
    let network = Named::new("shm");
    let rounds = rounds.to_string();
    let name = network.name().expect("a name");
    let mut child = Process::start(CRASH, &[(ROLE, CHURN), (DEVICE, name), (ROUNDS, &rounds)]);
    let status = child.end_within(Duration::from_secs(3600));
    assert!(status.success(), "the process failed: {status}; its words are above");
}

/// The device that the environment names.
struct Told;

impl Fixture for Told {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        Device::open_with(&told(DEVICE), options)
    }
}

/// The process's main function.
pub fn play() {
    let rounds: u64 = told(ROUNDS).parse().expect("a number");
    let device = told(DEVICE);
    let job = device.split_once(':').expect("a device name").1.to_owned();
    let empty = Residue::count(&job);
    let mut stage = Stage::pair(&Told);
    // Warm up first: objects that are made once and kept exist after a few rounds of each kind.
    // Places for queue pairs are used in turn, so each must have been used once.
    for node in stage.nodes.iter_mut() {
        for _ in 0..node.function.limits().queue_pairs {
            let pair = node.another_with(|options| options.send_depth(2));
            node.function.destroy_queue_pair(pair).expect("it exists");
        }
    }
    connections(&mut stage, 50);
    functions(&mut stage, 50);
    let (before, memory) = (Residue::count(&job), private_kib());
    connections(&mut stage, rounds);
    assert_eq!(Residue::count(&job), before, "after {rounds} connections");
    functions(&mut stage, rounds / 10);
    assert_eq!(Residue::count(&job), before, "after {} functions", rounds / 10);
    let grown = private_kib().saturating_sub(memory);
    // Some slack for fragmentation. A leak of a hundred bytes a round would show with the long
    // count.
    assert!(grown < 1024 + rounds / 20, "{grown} KiB more after {rounds} rounds");
    drop(stage);
    assert_eq!(Residue::count(&job), empty, "when all is closed");
}

/// Queue pairs connect, talk and disconnect; each time they are new ones.
fn connections(stage: &mut Stage<'_>, rounds: u64) {
    for round in 0..rounds {
        let pairs = [A, B].map(|who| stage.nodes[who].another_with(|o| o.send_depth(2)));
        stage.connect((A, pairs[A]), (B, pairs[B]));
        stage.nodes[B].receive_on(pairs[B], 8, round);
        stage.nodes[B].receive_on(pairs[B], 8, round);
        let node = &mut stage.nodes[A];
        node.send_on(pairs[A], Message::inline(b"hello").unsignaled());
        assert_eq!(stage.success(B).length, 5);
        stage.nodes[A].function.disconnect(pairs[A]).expect("connected");
        assert_eq!(stage.next(B).status, Status::PeerGone);
        for (node, pair) in stage.nodes.iter_mut().zip(pairs) {
            node.function.destroy_queue_pair(pair).expect("it exists");
        }
    }
}

/// A function opens, meets the other node's, registers memory that is used, and closes.
fn functions(stage: &mut Stage<'_>, rounds: u64) {
    for _ in 0..rounds {
        let device = stage.nodes[B].device.clone();
        let mut node = Node::of(device, 1, &Default::default());
        let region = node.function.allocate_region(10_000, bellwire::Rights::all()).expect("room");
        stage.nodes.push(node);
        stage.nodes[A].put(bellwire::Put::new(vec![1; 10_000], region.remote_key()));
        stage.success(A);
        let lost = stage.nodes[A].counters().function.links_lost;
        stage.nodes.remove(2);
        stage.until("the function's end to be noticed", |stage| {
            (stage.nodes[A].counters().function.links_lost > lost).then_some(())
        });
    }
}

/// Private memory of this process, in KiB, without free memory that the allocator keeps: its amount
/// varies.
fn private_kib() -> u64 {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only gives back free memory.
    unsafe {
        libc::malloc_trim(0)
    };
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
