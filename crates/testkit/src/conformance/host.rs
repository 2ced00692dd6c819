//! Devices that the processes of one host share.

use super::stage::{A, B, Stage, accepted, refuses};
use super::{Fixture, Node, Patience};
use bellwire::{DeviceOptions, Error, FunctionOptions, Get, Message, RemoteKey, Rights, Status};

/// A device has as many functions as it was opened with, from 1 on.
// shows: C-38
pub fn functions_as_configured(fixture: &dyn Fixture) {
    let open = |functions| fixture.open(&DeviceOptions::default().functions(functions));
    for (functions, last) in [(20, 19), (1, 0), (255, 254)] {
        let device = open(functions).expect("a node opens");
        device.open_function(last).expect("the last function");
        refuses!(device.open_function(functions), Error::BadFunction { .. });
    }
    refuses!(open(0), Error::OutOfRange { .. });
}

/// When functions of weights 3 and 1 both offer more than the receiver takes, it takes about three
/// times as much of the first.
// shows: C-40
pub fn weights_share_the_receiver(fixture: &dyn Fixture) {
    let shares = shares(fixture, &[48, 16], 4_000);
    let ratio = shares[0] as f64 / shares[1] as f64;
    assert!((2.7..3.3).contains(&ratio), "weights 48 and 16 gave {shares:?}");
}

/// When eight functions of equal weight all offer more than the receiver takes, each gets about an
/// eighth.
// shows: C-41
pub fn equal_weights_share_equally(fixture: &dyn Fixture) {
    let shares = shares(fixture, &[16; 8], 8_000);
    let total: usize = shares.iter().sum();
    for &share in &shares {
        let percent = 100.0 * share as f64 / total as f64;
        assert!((9.5..15.5).contains(&percent), "12.5 % each, but {shares:?}");
    }
}

/// Messages delivered per function, when functions of these weights of one node all keep more ready
/// than is taken.
fn shares(fixture: &dyn Fixture, weights: &[u8], deliveries: usize) -> Vec<usize> {
    /// Messages of each sender that come before the count.
    const FIRST: usize = 10;
    let mut stage = Stage::of(fixture, 1);
    let device = fixture.open(&DeviceOptions::default()).expect("a node opens");
    for (number, &weight) in weights.iter().enumerate() {
        let options = FunctionOptions::default().weight(weight);
        stage.nodes.push(Node::of(device.clone(), number as u8, &options));
    }
    let to = stage.nodes[A].address();
    let mut counts = vec![0; weights.len()];
    let mut posted = 0;
    let refill = |stage: &mut Stage<'_>, who: usize| {
        let (pair, bytes) = (stage.nodes[who].queue_pair, [who as u8; 1000]);
        let function = &mut stage.nodes[who].function;
        // Until its queue is full.
        while accepted(function.post_send(pair, Message::inline(&bytes).to(to).unsignaled())) {}
        function.progress().expect("progress");
    };
    // The count begins once each sender has a link, however long that takes it.
    let mut first = vec![0; weights.len()];
    let mut patience = Patience::new();
    while counts.iter().sum::<usize>() < deliveries {
        if counts.iter().all(|&count| count == 0) {
            patience.spend(|| format!("not all senders come through: {first:?}"));
        }
        for who in 1..=weights.len() {
            refill(&mut stage, who);
        }
        while posted < 256 {
            stage.nodes[A].receive(1000, 0);
            posted += 1;
        }
        stage.nodes[A].function.progress().expect("progress");
        while let Some(done) = {
            let queue = stage.nodes[A].completions;
            let waiting = posted > 0;
            waiting.then(|| stage.nodes[A].function.poll(queue).expect("a queue")).flatten()
        } {
            posted -= 1;
            assert_eq!(done.status, Status::Success);
            let from = done.peer.function as usize;
            match first.iter().all(|&messages| messages >= FIRST) {
                true => counts[from] += 1,
                false => first[from] += 1,
            }
            // The receiver never waits for a sender.
            for who in 1..=weights.len() {
                refill(&mut stage, who);
            }
        }
    }
    counts
}

/// A wrong key increments a counter at the target, whichever side carries the operation out.
// shows: C-09
pub fn wrong_keys_are_counted(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for region in stage.nodes[B].regions(4096) {
        let before = stage.nodes[B].counters().function.wrong_keys;
        let key = region.remote_key();
        let forged = RemoteKey { key: key.key ^ 4, ..key };
        for _ in 0..5 {
            stage.nodes[A].get(Get::new(forged.slice(0, 64), vec![0; 64]));
            assert_eq!(stage.next(A).status, Status::WrongKey);
        }
        stage.until("the target's counter of wrong keys", |stage| {
            (stage.nodes[B].counters().function.wrong_keys >= before + 5).then_some(())
        });
    }
}

/// A region larger than the memory is refused at once, with the amount and the reason, and never by
/// a signal later.
pub fn absurd_regions(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 1);
    let function = &mut stage.nodes[A].function;
    for length in [1 << 50, usize::MAX / 2, usize::MAX - 4096, usize::MAX] {
        let absurd = function.allocate_region(length, Rights::all());
        refuses!(absurd, Error::NoMemory { .. } | Error::OutOfRange { .. });
    }
    function.allocate_region(4096, Rights::all()).expect("nothing is left over");
}
