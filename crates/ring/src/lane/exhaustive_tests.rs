//! The core of the lane and of the doorbell in *every* interleaving that the memory model allows,
//! without a bound on preemptions.
//!
//! The models of [`super::model_tests`] run a receiver until it has all packets: too many steps for
//! all interleavings. These tests are single races. One thread brings the lane to the start of the
//! race. The sender then runs in its own thread beside a fixed number of receiver steps, without a
//! polling loop. At the end every packet that the receiver has not seen must be findable: behind a
//! bell, or at the cursor of a polled lane.

use super::model_tests::{
    MODEL, Model, ONE_PACKET_RUNS, Shared, Sink, Source, TWO_PACKET_RUNS, lane,
};
use super::*;
use loom::thread;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A lane that is polled, has delivered one packet, and holds `credit` chunks.
fn polled(geometry: Geometry, credit: usize, shared: &Shared) -> (Source, Sink) {
    let (mut source, mut sink) = lane(Model { geometry, credit, ..MODEL }, 0, shared);
    source.send(1);
    hear(&mut sink, shared);
    assert!(sink.step() && sink.taken == 1, "the first packet is in the small chunk");
    (source, sink)
}

/// Answers the bell.
fn hear(sink: &mut Sink, shared: &Shared) {
    if shared.doorbell.is_rung() {
        shared.doorbell.answer(|_| sink.rang());
    }
}

/// Runs `receive` beside a sender that sends packets `numbers` while there is room. Afterwards all
/// sent packets must be found.
fn race(
    prepare: impl Fn(&Shared) -> (Source, Sink) + Sync + Send + 'static,
    numbers: RangeInclusive<u64>,
    receive: impl Fn(&mut Sink, &Shared) + Sync + Send + 'static,
) {
    exhaust(move || {
        let shared = Shared::new();
        let (mut source, mut sink) = prepare(&shared);
        let numbers = numbers.clone();
        let sender = thread::spawn(move || {
            let last = *numbers.end();
            numbers.into_iter().find(|&number| !source.send(number)).map_or(last, |full| full - 1)
        });
        receive(&mut sink, &shared);
        let sent = sender.join().unwrap();
        hear(&mut sink, &shared);
        while sink.polled && sink.step() {}
        assert_eq!(sink.taken, sent, "a packet is where the receiver does not look");
        sink.check_accounts();
    });
}

/// Runs `scene` in every interleaving, and prints their number.
fn exhaust(scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.max_branches = 5_000;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    println!("{} interleavings", runs.load(Ordering::Relaxed));
}

/// Looks `looks` times.
fn look(sink: &mut Sink, looks: usize) {
    for _ in 0..looks {
        sink.step();
    }
}

/// Parks, looks once more if parking cannot complete, and sleeps if nothing is there. The sleep
/// ends only if a sender wakes the receiver.
fn park_and_sleep(sink: &mut Sink, shared: &Shared) {
    if sink.lane.state() == LaneState::Active {
        sink.park();
    }
    if sink.lane.state() == LaneState::Parking && !sink.try_park() {
        sink.step();
    }
    if !sink.polled && shared.doorbell.prepare_sleep() {
        shared.kernel.sleep();
        shared.doorbell.end_sleep();
    }
    hear(sink, shared);
}

/// Covers the LINK to an extent, two slots there, the LINK to the next extent and a slot there.
// shows: D-02, D-13
#[test]
fn two_slots_and_two_links() {
    race(|shared| polled(TWO_PACKET_RUNS, 2, shared), 2..=4, |sink, _| look(sink, 5));
}

/// Without credit the lane goes from the small chunk to one host chunk, to the other, and back to
/// the first after it was read.
// shows: D-16, D-19
#[test]
fn host_chunks() {
    race(|shared| polled(ONE_PACKET_RUNS, 0, shared), 2..=4, |sink, _| look(sink, 4));
}

/// Credit arrives while the sender falls back on host memory.
// shows: D-16, D-17
#[test]
fn credit_comes() {
    race(
        |shared| {
            let (source, mut sink) = polled(ONE_PACKET_RUNS, 0, shared);
            sink.set_credit(1);
            (source, sink)
        },
        2..=3,
        |sink, _| {
            sink.grant();
            look(sink, 3);
        },
    );
}

/// The race in the lane's documentation, with a packet before and after it.
// shows: D-02, D-13
#[test]
fn parking() {
    race(
        |shared| polled(TWO_PACKET_RUNS, 1, shared),
        2..=3,
        |sink, _| {
            sink.park();
            sink.try_park();
            look(sink, 1);
        },
    );
}

/// A parking that begins before the packet that rang is read: the next packet must not overwrite
/// it.
// shows: D-02
#[test]
fn parking_early() {
    race(
        |shared| {
            let (mut source, mut sink) = lane(MODEL, 0, shared);
            source.send(1);
            hear(&mut sink, shared);
            (source, sink)
        },
        2..=2,
        |sink, _| {
            sink.park();
            look(sink, 2);
        },
    );
}

/// A bell arrives after its packet was read and the lane parked. So the lane is polled again, while
/// the sender has not seen the parking and still uses its old cursor.
// shows: D-02, D-13
#[test]
fn late_bell() {
    race(
        |shared| polled(ONE_PACKET_RUNS, 1, shared),
        2..=3,
        |sink, shared| {
            look(sink, 2);
            sink.park();
            sink.try_park();
            hear(sink, shared);
        },
    );
}

/// Two parkings while one packet is being sent.
// shows: D-02, D-13
#[test]
fn parking_twice() {
    race(
        |shared| polled(ONE_PACKET_RUNS, 1, shared),
        2..=2,
        |sink, shared| {
            for _ in 0..2 {
                if sink.lane.state() == LaneState::Active {
                    sink.park();
                }
                look(sink, 1);
                hear(sink, shared);
            }
        },
    );
}

/// Parking and sleep, twice, while one packet is being sent.
// shows: D-02, D-14
#[test]
fn parking_and_sleep() {
    race(
        |shared| polled(ONE_PACKET_RUNS, 1, shared),
        2..=2,
        |sink, shared| {
            park_and_sleep(sink, shared);
            look(sink, 2);
        },
    );
}

/// Two packets, a parking, and sleep.
// shows: D-02, D-14
#[test]
fn sleep_between() {
    race(
        |shared| polled(ONE_PACKET_RUNS, 1, shared),
        2..=3,
        |sink, shared| {
            sink.park();
            if sink.try_park() && !sink.polled && shared.doorbell.prepare_sleep() {
                shared.kernel.sleep();
                shared.doorbell.end_sleep();
            }
        },
    );
}

/// A lane that stays parked while it delivers: each sleep ends with a packet.
// shows: D-02, D-14
#[test]
fn sleep_while_parked() {
    race(
        |shared| {
            let (source, mut sink) = polled(TWO_PACKET_RUNS, 0, shared);
            sink.park();
            assert!(sink.try_park());
            sink.parked_serves_left = 2;
            (source, sink)
        },
        2..=3,
        |sink, shared| {
            for _ in 0..2 {
                park_and_sleep(sink, shared);
                look(sink, 2);
            }
        },
    );
}

/// A ringer is still handling an earlier sleep when the next begins.
// shows: D-02
#[test]
fn two_sleeps() {
    exhaust(|| {
        let shared = Shared::new();
        let ringing = shared.clone();
        let ringer = thread::spawn(move || {
            for lane in [3, 70] {
                if ringing.doorbell.ring(lane) {
                    ringing.kernel.wake();
                }
            }
        });
        let mut heard = Vec::new();
        while heard.len() < 2 {
            if shared.doorbell.prepare_sleep() {
                shared.kernel.sleep();
                shared.doorbell.end_sleep();
            }
            shared.doorbell.answer(|lane| heard.push(lane));
        }
        ringer.join().unwrap();
        assert_eq!(heard, [3, 70], "each bell once, in order");
    });
}

/// Two ringers and a sleeper: every bell is seen, and the sleep ends.
// shows: D-02
#[test]
fn two_ringers() {
    exhaust(|| {
        let shared = Shared::new();
        let ringers: Vec<_> = [3, 70]
            .map(|lane| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if shared.doorbell.ring(lane) {
                        shared.kernel.wake();
                    }
                })
            })
            .into();
        let mut heard = Vec::new();
        if shared.doorbell.prepare_sleep() {
            shared.kernel.sleep();
            shared.doorbell.end_sleep();
        }
        shared.doorbell.answer(|lane| heard.push(lane));
        assert!(!heard.is_empty(), "no sleep ends without a bell");
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
        shared.doorbell.answer(|lane| heard.push(lane));
        heard.sort();
        assert_eq!(heard, [3, 70], "each bell once");
    });
}
