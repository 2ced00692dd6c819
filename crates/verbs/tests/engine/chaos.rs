//! Random sequences of operations and accidents: links that are cut and queue pairs that are
//! destroyed at any moment.

use crate::steps::*;
use crate::world::*;
use bellwire::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn step() -> impl Strategy<Value = Step> {
    let side = || 0..SIDES;
    prop_oneof![
        24 => operation(8),
        1 => side().prop_map(|side| Step::Destroy { side }),
        1 => (side(), side()).prop_map(|(a, b)| Step::Cut { a, b }),
    ]
}

/// A message that begins with its number.
fn message(length: usize, number: u64) -> Vec<u8> {
    let mut message = pattern(length, number);
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

/// The number of the last message that arrived, by sending and receiving queue pair.
#[derive(Default)]
struct Arrived(HashMap<(Address, QueuePair), u64>);

impl Arrived {
    fn check(&mut self, done: Completion) {
        let is_whole = matches!(done.status, Status::Success | Status::Truncated);
        if done.operation != Operation::Receive || done.length < 8 || !is_whole {
            return;
        }
        let pair = (done.peer, done.queue_pair);
        let arrived = bytes(done);
        let number = u64::from_le_bytes(arrived[..8].try_into().unwrap());
        assert!(arrived == message(arrived.len(), number), "whole and unaltered");
        let before = self.0.insert(pair, number);
        assert!(before < Some(number), "once, and in order");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Links and queue pairs end at any moment, and every descriptor still completes once with its
    /// buffer. Messages arrive whole, in order and once; no loan of memory is left; the counters
    /// conserve.
    #[test]
    fn accidents_lose_no_descriptor(
        direct in any::<bool>(),
        pending_every in prop_oneof![Just(0u64), 2..5u64],
        link_packets in 1..6usize,
        steps in prop::collection::vec(step(), 1..STEPS),
    ) {
        let options = FabricOptions {
            packet_bytes: 200,
            link_packets,
            direct_allocated: direct,
            direct_brought: direct,
            pending_every,
            ..FabricOptions::default()
        };
        let mut game = Game::new(options, &FunctionOptions::default(), Rights::empty());
        let mut arrived = Arrived::default();
        for (number, step) in steps.into_iter().enumerate() {
            game.act(number as u64, step, message);
            game.completions().into_iter().for_each(|(_, done)| arrived.check(done));
        }
        game.world.settle();
        for side in &mut game.world.sides {
            // Only receives, sends without a receive, and descriptors behind those still wait.
            side.function.destroy_queue_pair(side.qp).unwrap();
        }
        game.world.settle();
        game.completions().into_iter().for_each(|(_, done)| arrived.check(done));
        for side in &game.world.sides {
            let total = side.function.counters().total;
            prop_assert_eq!(total.sends_posted, total.sends_completed);
            prop_assert_eq!(total.receives_posted, total.receives_completed);
            prop_assert_eq!(total.messages_arrived, total.messages_received + total.messages_discarded);
            prop_assert_eq!(total.messages_unfinished, 0);
            prop_assert_eq!(side.function.counters().function.violations, 0);
            prop_assert_eq!(game.world.fabric.exports(side.function.address()), 3);
        }
        prop_assert!(game.posted.is_empty(), "never completed: {:?}", game.posted);
    }
}
