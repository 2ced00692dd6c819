//! Two and four processors: block transfers, and coherence in time, with bit errors on the links.

use bellwire_model::engine::Ended;
use bellwire_model::smp::config::Config;
use bellwire_model::smp::lbt::{Refused, Registers};
use bellwire_model::smp::network::LONGEST_BLOCK_BYTES;
use bellwire_model::smp::system::{Machine, Sharing};
use bellwire_model::units::Time;

const FOREVER: Time = Time::from_ps(1_000_000_000_000);

/// Processors that do not access shared memory.
const QUIET: Sharing = Sharing { lines: 4, capacity: 2, accesses: 0, waiting: 1 };

fn system(nodes: usize, config: &Config, sharing: Sharing, seed: u64) -> Machine {
    Machine::new(nodes, config, sharing, seed).unwrap()
}

fn fill(running: &mut Machine, node: usize) {
    for (at, byte) in running.model.nodes[node].memory.iter_mut().enumerate() {
        *byte = (at * 7 + node * 31 + at / 256) as u8;
    }
}

fn registers(start: u64, length: u64, target: u8, target_start: u64) -> Registers {
    Registers { start, length, target, target_start }
}

/// Every pair of four processors exchanges blocks and coherence messages over its own link, and the
/// data arrives unchanged.
// shows: S-01, S-05, S-08
#[test]
fn all_pairs_exchange_blocks_and_messages() {
    crate::limit::limited(|| {
        let sharing = Sharing { lines: 32, capacity: 12, accesses: 500, waiting: 4 };
        let mut running = system(4, &Config::recommended(), sharing, 1);
        (0..4).for_each(|node| fill(&mut running, node));
        // Sources are below 64 KiB, targets above, with one place per pair.
        for node in 0..4u8 {
            for target in (0..4).filter(|target| *target != node) {
                let to = 0x1_0000 * (1 + u64::from(node));
                running
                    .start(node, registers(0x400 * u64::from(target), 3_000, target, to))
                    .unwrap();
            }
        }
        assert_eq!(running.run(FOREVER), Ended::Quiet);
        running.audit().unwrap();
        let nodes = &running.model.nodes;
        for (at, node) in nodes.iter().enumerate() {
            assert_eq!(node.interrupts.len(), 3);
            for (from, sender) in nodes.iter().enumerate().filter(|(from, _)| *from != at) {
                let place = 0x1_0000 * (1 + from);
                let sent = &sender.memory[0x400 * at..][..3_000];
                assert!(node.memory[place..place + 3_000] == *sent, "{from} to {at}");
                assert!(node.messages[from] > 0, "{from} has said nothing to {at}");
            }
        }
        let links = &running.model.links;
        assert_eq!(links.len(), 6);
        assert!(links.iter().all(|link| (0..2).all(|end| link.end(end).sent()[0] >= 7)));
    });
}

/// A block is cut into packets of the largest payload. It raises one interrupt, not before its last
/// packet is sent. Its packets arrive in order, also over links with bit errors.
// shows: S-05, S-06, S-07
#[test]
fn blocks_are_cut_sent_in_order_and_told() {
    for bit_errors in [0.0, 1e-5] {
        let config = Config { bit_errors, ..Config::recommended() };
        for length in [4, LONGEST_BLOCK_BYTES as u64, LONGEST_BLOCK_BYTES as u64 + 4, 100_000] {
            let mut running = system(2, &config, QUIET, length);
            fill(&mut running, 0);
            let number = running.start(0, registers(8, length, 1, 0x4_0000)).unwrap();
            assert_eq!(running.run(FOREVER), Ended::Quiet);
            running.audit().unwrap();
            let [sender, receiver] = running.model.nodes.as_slice() else { unreachable!() };
            let packets = length.div_ceil(LONGEST_BLOCK_BYTES as u64);
            assert_eq!((sender.lbt.packets, receiver.blocks.len() as u64), (packets, packets));
            assert_eq!(sender.interrupts.len(), 1);
            assert_eq!(
                (sender.interrupts[0].transfer, sender.interrupts[0].sent),
                (number, packets)
            );
            assert!(receiver.blocks.is_sorted_by_key(|block| block.2), "in order");
            let length = length as usize;
            assert!(receiver.memory[0x4_0000..][..length] == sender.memory[8..][..length]);
        }
    }
}

/// Invalid registers are refused with a reason and start nothing.
// shows: S-05
#[test]
fn nonsense_in_the_registers_is_refused() {
    crate::limit::limited(|| {
        let mut running = system(4, &Config::recommended(), QUIET, 1);
        let mut start = |registers| running.start(0, registers).unwrap_err();
        assert_eq!(start(registers(0, 0, 1, 0)), Refused::Misaligned);
        assert_eq!(start(registers(2, 8, 1, 0)), Refused::Misaligned);
        assert_eq!(start(registers(0, u64::MAX - 3, 1, 8)), Refused::OutOfMemory);
        assert_eq!(start(registers(0, 8, 0, 0)), Refused::NoTarget(0));
        assert_eq!(start(registers(0, 8, 4, 0)), Refused::NoTarget(4));
        for _ in 0..3 {
            running.start(0, registers(0, 50_000, 1, 0)).unwrap();
        }
        assert_eq!(running.start(0, registers(0, 8, 1, 0)), Err(Refused::Busy));
        running.run(FOREVER);
        running.audit().unwrap();
        assert!(Machine::new(5, &Config::recommended(), QUIET, 1).is_err(), "three interfaces");
    });
}

/// Two processors move three blocks over their three links in the time of one block over one link:
/// three times the bandwidth.
// shows: S-02
#[test]
fn three_links_carry_three_times_as_much() {
    let time = |blocks: u64| {
        let mut running = system(2, &Config::recommended(), QUIET, 3);
        fill(&mut running, 0);
        for block in 0..blocks {
            let start = block * 0x2_0000;
            running.start(0, registers(start, 0x2_0000, 1, start)).unwrap();
        }
        running.run(FOREVER);
        running.audit().unwrap();
        let last = running.model.nodes[0].interrupts.iter().map(|one| one.at).max().unwrap();
        let used = running.model.links.iter().filter(|link| link.end(0).sent()[0] > 0).count();
        assert_eq!(used as u64, blocks);
        last.ps() as f64
    };
    let ratio = 3.0 * time(1) / time(3);
    assert!((2.97..=3.03).contains(&ratio), "{ratio}");
}

/// Four processors contend for a few lines, and for more lines than their caches hold, over links
/// with bit errors and block transfers. Every read returns the last write, everything comes to
/// rest, and the network layer's queues stay short.
// shows: S-04, S-08
#[test]
fn coherence_holds_over_links_that_err() {
    for (seed, lines, capacity, bit_errors) in [(1, 64, 24, 0.0), (2, 6, 4, 0.0), (3, 32, 12, 1e-5)]
    {
        let config = Config { bit_errors, ..Config::recommended() };
        let sharing = Sharing { lines, capacity, accesses: 10_000, waiting: 4 };
        let mut running = system(4, &config, sharing, seed);
        running.start(0, registers(0, 200_000, 3, 0)).unwrap();
        assert_eq!(running.run(FOREVER), Ended::Quiet);
        running.audit().unwrap();
        let done: u64 = running.model.nodes.iter().map(|node| node.accesses_done).sum();
        assert_eq!(done, 40_000);
        // Each node has at most four requests in flight, and their answers; a home queries three
        // others.
        let longest = running.model.nodes.iter().map(|node| node.lmu.longest_queue).max();
        assert!(longest.unwrap() <= 64, "{longest:?}");
    }
}
