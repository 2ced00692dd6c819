//! The link layer against an oracle, under every single and double fault; its behaviour at its
//! limits.

#[path = "oracles/link_layer.rs"]
mod oracle;

use bellwire_protocol::link_layer::{
    Arrival, Cost, CreditGate, CreditLedger, Lacking, NotSent, Overflow, Receiver, TimedOut,
    Transmitter,
};
use bellwire_wire::link::dllp::Dllp;
use oracle::{Case, Fault};
use proptest::prelude::*;

/// Any one or two frames, acknowledgements or credits may be damaged or lost. Everything arrives
/// once and in order, and all buffers are empty at the end.
// shows: S-15, S-16
#[test]
fn every_single_and_double_fault_is_survived() {
    let mut runs = 0;
    for case in oracle::cases() {
        runs += oracle::every_double_fault(&case).unwrap();
    }
    assert!(runs > 3_000, "only {runs} runs");
}

proptest! {
    /// The same with up to twelve faults anywhere, any first number, and buffers of any size. The
    /// link may ask for retraining only if that many faults hit one place.
    // shows: S-16
    #[test]
    fn many_faults_are_survived(
        first in 0..4096u16, packets in 1..60u32, replay in 1..20usize, headers in 1..20u8,
        places in prop::collection::vec((0..200u32, any::<bool>()), 0..12)
    ) {
        let faults = places.into_iter().map(|(place, damaged)| {
            (place, if damaged { Fault::Damaged } else { Fault::Vanished })
        });
        let case = Case { first, packets, replay, headers, faults: faults.collect() };
        match oracle::run(&case) {
            Err(error) if !error.contains("did not help") => prop_assert!(false, "{error}"),
            _ => {}
        }
    }
}

/// The sender stops exactly when a credit is missing, and says which; the receiver refuses what was
/// not granted. The counters wrap many times meanwhile.
// shows: S-15
#[test]
fn credits_stop_the_sender_exactly() {
    let mut ledger = CreditLedger::new(5, 12);
    let mut gate = CreditGate::default();
    assert_eq!(gate.allows(Cost { data: 0 }), Err(Lacking::Header), "nothing is granted yet");
    for round in 0..3_000 {
        gate.handle_granted(ledger.granted());
        let cost = Cost { data: 1 + round % 4 };
        let mut inside = 0;
        let lacking = loop {
            match gate.allows(cost) {
                Ok(()) => gate.spend(cost),
                Err(lacking) => break lacking,
            }
            ledger.enter(cost).unwrap();
            inside += 1;
        };
        let fit = (12 / cost.data).min(5);
        assert_eq!(inside, fit);
        assert_eq!(lacking, if fit == 5 { Lacking::Header } else { Lacking::Data });
        assert_eq!(ledger.enter(cost), Err(Overflow));
        (0..inside).for_each(|_| ledger.leave(cost));
        assert_eq!(ledger.held(), (0, 0));
    }
    assert_eq!(Cost::of(0), Cost { data: 0 });
    assert_eq!(Cost::of(17), Cost { data: 2 }, "17 bytes touch two units of 4 DW");
}

/// The replay buffer takes frames until it is full, and again when the oldest is acknowledged. An
/// acknowledgement of an unsent frame is refused; an old one has no effect.
// shows: S-17
#[test]
fn the_replay_buffer_is_bounded() {
    let mut transmitter = Transmitter::starting_at(4094, 300, 50);
    assert_eq!(transmitter.push("a", 100), Ok(4094));
    assert_eq!(transmitter.push("b", 100), Ok(4095));
    assert_eq!(transmitter.push("c", 100), Ok(0));
    assert_eq!(transmitter.push("d", 1), Err("d"));
    assert_eq!(transmitter.handle_ack(0, 4094, drop), Err(NotSent { sequence: 4094 }));
    assert_eq!(transmitter.poll(0), Some((4094, &"a", true)));
    assert_eq!(transmitter.poll(4), Some((4095, &"b", true)));
    assert_eq!(transmitter.handle_ack(9, 0, drop), Err(NotSent { sequence: 0 }));
    let mut freed = Vec::new();
    transmitter.handle_ack(10, 4094, |frame| freed.push(frame)).unwrap();
    assert_eq!((freed, transmitter.held_bytes()), (vec!["a"], 200));
    transmitter.handle_ack(11, 4094, drop).unwrap();
    transmitter.handle_ack(11, 4000, drop).unwrap();
    assert_eq!(transmitter.held_frames(), 2);
    assert_eq!(transmitter.push("d", 100), Ok(1));
    // A NAK retransmits the rest in order, and so does the timer; four times in a row ask for
    // retraining.
    transmitter.handle_nak(12, 4094, drop).unwrap();
    assert_eq!(transmitter.poll(12), Some((4095, &"b", false)));
    assert_eq!(transmitter.poll(13), Some((0, &"c", true)));
    for (round, expected) in
        (1..).zip([TimedOut::Replay, TimedOut::Replay, TimedOut::Replay, TimedOut::Retrain])
    {
        let deadline = transmitter.deadline().unwrap();
        assert_eq!(transmitter.handle_timeout(deadline - 1), TimedOut::NotYet);
        assert_eq!(transmitter.handle_timeout(deadline), expected, "round {round}");
        assert_eq!(transmitter.poll(deadline), Some((4095, &"b", false)));
    }
}

/// The receiver's action and report for past, expected, repeated, future and damaged frames.
// shows: S-16
#[test]
fn the_receiver_takes_each_frame_once() {
    let mut receiver = Receiver::starting_at(4095, 20);
    assert_eq!(receiver.handle_frame(0, 4095), Arrival::Deliver);
    assert_eq!((receiver.deadline(0), receiver.poll(19)), (Some(20), None));
    assert_eq!(receiver.handle_frame(5, 0), Arrival::Deliver);
    assert_eq!(receiver.poll(20), Some(Dllp::Ack { sequence: 0 }), "one serves both");
    assert_eq!((receiver.deadline(20), receiver.poll(99)), (None, None));
    assert_eq!(receiver.handle_frame(30, 0), Arrival::Repeated);
    assert_eq!(receiver.poll(30), Some(Dllp::Ack { sequence: 0 }), "said again at once");
    assert_eq!(receiver.handle_frame(31, 2), Arrival::OutOfOrder);
    assert_eq!(receiver.poll(31), Some(Dllp::Nak { sequence: 0 }));
    assert_eq!(receiver.handle_damaged(), Arrival::OutOfOrder);
    assert_eq!(receiver.poll(40), None, "asked once already");
    assert_eq!(receiver.handle_frame(41, 1), Arrival::Deliver);
    assert_eq!(receiver.handle_damaged(), Arrival::OutOfOrder);
    assert_eq!(receiver.poll(42), Some(Dllp::Nak { sequence: 1 }), "a new gap");
    assert_eq!(receiver.frames_delivered, 3);
}

/// Half of all numbers may be in flight, whatever the buffer holds. Each frame that waits is seen,
/// and first and further transmissions are counted apart.
#[test]
fn half_of_the_numbers_may_be_in_flight() {
    let mut transmitter = Transmitter::new(10, 50);
    for number in 0..2048 {
        assert_eq!(transmitter.push((), 0), Ok(number));
    }
    assert_eq!(transmitter.push((), 0), Err(()));
    for number in 0..3 {
        assert!(transmitter.is_waiting());
        assert_eq!(transmitter.poll(0), Some((number, &(), true)));
    }
    transmitter.handle_ack(1, 1, drop).unwrap();
    assert_eq!(transmitter.push((), 0), Ok(2048));
    transmitter.handle_nak(2, 1, drop).unwrap();
    assert_eq!(transmitter.poll(3), Some((2, &(), false)));
    assert_eq!(transmitter.poll(3), Some((3, &(), true)));
    let it = (transmitter.frames_sent, transmitter.frames_repeated);
    assert_eq!((it, transmitter.frames_acknowledged), ((5, 1), 2));
    let mut idle = Transmitter::new(10, 50);
    assert!(!idle.is_waiting());
    idle.push((), 1).unwrap();
    idle.poll(0).unwrap();
    assert!(!idle.is_waiting());
}

/// Only an acknowledgement that acknowledges a frame starts the replay timer anew. It stops when
/// nothing is under way.
#[test]
fn progress_starts_the_timer_anew() {
    let mut transmitter = Transmitter::new(300, 50);
    for frame in ["a", "b", "c"] {
        transmitter.push(frame, 100).unwrap();
    }
    assert_eq!(transmitter.deadline(), None);
    transmitter.poll(10).unwrap();
    transmitter.poll(20).unwrap();
    assert_eq!(transmitter.deadline(), Some(60));
    transmitter.handle_ack(30, 4095, drop).unwrap();
    assert_eq!(transmitter.deadline(), Some(60), "nothing new");
    transmitter.handle_ack(40, 0, drop).unwrap();
    assert_eq!(transmitter.deadline(), Some(90));
    transmitter.handle_ack(50, 1, drop).unwrap();
    assert_eq!(transmitter.deadline(), None, "the third was not sent");
    assert_eq!((transmitter.held_frames(), transmitter.held_bytes()), (1, 100));
}

/// A frame counts as future up to half of all numbers ahead, and as repeated beyond. Every arrival
/// is counted once.
#[test]
fn half_of_the_numbers_are_ahead() {
    let mut receiver = Receiver::starting_at(4000, 20);
    assert!(receiver.expects(4000) && !receiver.expects(4001));
    assert_eq!(receiver.handle_frame(0, 4000 + 2047 - 4096), Arrival::OutOfOrder);
    assert_eq!(receiver.handle_frame(0, 4000 + 2048 - 4096), Arrival::Repeated);
    assert_eq!(receiver.handle_frame(0, 3999), Arrival::Repeated);
    assert_eq!(receiver.handle_damaged(), Arrival::OutOfOrder);
    assert_eq!(receiver.handle_frame(0, 4000), Arrival::Deliver);
    assert_eq!((receiver.frames_discarded, receiver.frames_repeated), (2, 2));
    assert_eq!(receiver.frames_delivered, 1);
    let mut ledger = CreditLedger::new(5, 12);
    ledger.enter(Cost { data: 4 }).unwrap();
    ledger.enter(Cost { data: 3 }).unwrap();
    assert_eq!(ledger.held(), (2, 7));
}
