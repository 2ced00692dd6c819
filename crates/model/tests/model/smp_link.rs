//! The direct link: random traffic against the bench's checker, with and without errors, and each
//! of its limits.

use bellwire_model::engine::{Chance, Ended, Schedule};
use bellwire_model::smp::bench::{BenchEvent, Lengths, Machine};
use bellwire_model::smp::config::{Config, Header, Receive};
use bellwire_model::smp::link::{Link, Port};
use bellwire_model::smp::training::{Failure, Role};
use bellwire_model::smp::transport::Stall;
use bellwire_model::units::{Bytes, Frequency, Span, Time};

const FOREVER: Time = Time::from_ps(1_000_000_000_000);

/// Both ends send on both channels.
fn stimulate_all(running: &mut Machine, lengths: Lengths, packets: u64) {
    for end in 0..2 {
        for channel in 0..running.model.link.config().channels {
            running.stimulate(end, channel, lengths, packets);
        }
    }
}

/// The clock of a network layer that is never the bottleneck.
fn fast() -> Frequency {
    "1 GHz".parse().expect("a frequency")
}

/// Everything arrived, nothing else did, and nothing is left anywhere.
fn is_sound(running: &Machine) {
    assert_eq!((running.model.mismatches, running.missing()), (0, 0));
    assert!(running.model.link.is_quiet());
    running.model.link.audit(running.schedule.now()).unwrap();
}

/// Random packets of all lengths, on both channels and in both directions, arrive unchanged. This
/// holds for both policies and both header forms, and the same seed gives the same history.
// shows: S-09, S-13, S-31
#[test]
fn a_random_run_has_no_mismatch() {
    for (receive, header) in
        [(Receive::CutThrough, Header::Optimised), (Receive::StoreAndForward, Header::Standard)]
    {
        let config = Config { receive, header, ..Config::recommended() };
        let run = |seed| {
            let mut running = Machine::new(&config, seed);
            stimulate_all(&mut running, Lengths::Random, 5_000);
            assert_eq!(running.run(FOREVER), Ended::Quiet);
            is_sound(&running);
            assert_eq!(running.model.compared, 20_000);
            running.schedule.trace_hash()
        };
        let hash = run(1);
        assert_eq!(hash, run(1));
        assert_ne!(hash, run(2));
    }
}

/// Canary: the checker notices one packet of thousands that is changed behind the CRCs.
// shows: S-31
#[test]
fn a_planted_fault_is_caught() {
    let mut running = Machine::new(&Config::recommended(), 3);
    running.model.damage = Some(4_321);
    stimulate_all(&mut running, Lengths::Random, 2_000);
    running.run(FOREVER);
    assert_eq!(running.model.mismatches, 1);
}

/// With bit errors on all lanes, or many on one, everything arrives once and in order.
// shows: S-16, S-19
#[test]
fn flipped_bits_are_survived() {
    for (seed, chance) in [(1, 1e-6), (2, 1e-5), (3, 1e-4)] {
        let config = Config { bit_errors: chance, ..Config::recommended() };
        let mut running = Machine::new(&config, seed);
        stimulate_all(&mut running, Lengths::Random, 2_000);
        assert_eq!(running.run(FOREVER), Ended::Quiet);
        is_sound(&running);
        let end = running.model.link.end(0);
        assert!(
            end.bits_flipped() > 0 && end.counters.repeated > 0,
            "errors were made, and mended"
        );
    }
    let mut running = Machine::new(&Config::recommended(), 9);
    let mut chances = [Chance::NEVER; 8];
    chances[3] = Chance::new(1e-3);
    running.model.link.disturb(1, chances, &mut running.schedule);
    stimulate_all(&mut running, Lengths::Random, 2_000);
    running.run(FOREVER);
    is_sound(&running);
    assert_eq!(running.model.link.end(1).bits_flipped(), 0, "the other way is clean");
}

/// A cut-through receiver has forwarded the first flits of a packet when its CRC proves wrong. The
/// network layer gets the packet marked bad and drops it, whether header or data bits flip, and
/// everything still arrives once. A store-and-forward receiver never forwards such a packet.
// shows: S-21
#[test]
fn a_bad_tail_is_nullified() {
    crate::limit::limited(|| {
        for (receive, lengths) in [
            (Receive::CutThrough, Lengths::Random),
            (Receive::CutThrough, Lengths::Fixed(128)),
            (Receive::StoreAndForward, Lengths::Random),
        ] {
            let config = Config { receive, bit_errors: 1e-5, ..Config::recommended() };
            let mut running = Machine::new(&config, 11);
            stimulate_all(&mut running, lengths, 3_000);
            assert_eq!(running.run(FOREVER), Ended::Quiet);
            is_sound(&running);
            for end in [0, 1].map(|end| running.model.link.end(end)) {
                let nullified = end.receive.nullified;
                // A bad packet that still waits for the exit when its end arrives is dropped in its
                // buffer.
                assert!(nullified < end.counters.damaged, "{nullified} of {:?}", end.counters);
                assert_eq!(nullified > 10, receive == Receive::CutThrough, "{nullified}");
            }
        }
    });
}

/// Canary: the checker notices a network layer that accepts packets marked bad.
// shows: S-21, S-31
#[test]
fn an_ignored_mark_is_noticed() {
    let config = Config { bit_errors: 1e-5, ..Config::recommended() };
    let mut running = Machine::new(&config, 11);
    running.model.link.ignore_marks(1);
    stimulate_all(&mut running, Lengths::Random, 500);
    running.run(FOREVER);
    assert!(running.model.mismatches > 0);
}

/// A line that carries only noise for a while retrains repeatedly, and then nothing is missing.
// shows: S-16, S-18
#[test]
fn a_cut_is_survived() {
    crate::limit::limited(|| {
        let mut running = Machine::new(&Config::recommended(), 4);
        stimulate_all(&mut running, Lengths::Random, 500);
        running.run(Time::from_ps(5_000_000));
        running.model.link.disturb(1, [Chance::new(0.5); 8], &mut running.schedule);
        running.run(Time::from_ps(60_000_000));
        assert!(running.missing() > 0 && running.model.link.end(0).counters.retrained > 0);
        running.model.link.disturb(1, [Chance::NEVER; 8], &mut running.schedule);
        assert_eq!(running.run(FOREVER), Ended::Quiet);
        is_sound(&running);
    });
}

/// A receiver that takes no requests stops channel 0 exactly when its buffer is full, and channel 1
/// continues. Requests continue when they are taken again. At saturation both channels get the same
/// share.
// shows: S-14, S-15
#[test]
fn a_blocked_channel_does_not_stop_the_other() {
    let config = Config { headers: 6, ..Config::recommended() };
    let mut running = Machine::new(&config, 5);
    running.block(1, 0, true);
    running.stimulate(0, 0, Lengths::Fixed(8), 300);
    running.stimulate(0, 1, Lengths::Fixed(8), 300);
    running.run(FOREVER);
    let link = &running.model.link;
    let in_buffers = 6 + config.network_packets as u64;
    assert_eq!(link.end(0).sent(), [in_buffers, 300]);
    assert_eq!(link.end(1).receive.ledger(0).held(), (6, 6));
    assert_eq!(link.end(1).counters.refused, 0, "and nothing overflowed");
    assert_eq!(link.end(0).credits(0).0, 0, "not one header credit is left unused");
    assert!(link.end(0).counters.stalls > 0);
    running.block(1, 0, false);
    running.run(FOREVER);
    is_sound(&running);

    let mut running = Machine::new(&Config::recommended(), 6);
    for channel in 0..2 {
        running.stimulate(0, channel, Lengths::Fixed(32), 10_000);
    }
    running.run(Time::from_ps(100_000_000));
    let [requests, responses] = running.model.link.end(0).sent();
    assert!(requests > 1_000 && requests.abs_diff(responses) <= 1, "{requests}, {responses}");
}

/// Data credits stop the sender exactly, too: with 92 credits, two packets of 31 go and a third
/// does not.
// shows: S-15
#[test]
fn data_credits_stop_the_sender() {
    let config = Config { network_packets: 1, channels: 1, ..Config::recommended() };
    let mut running = Machine::new(&config, 7);
    running.block(1, 0, true);
    running.stimulate(0, 0, Lengths::Fixed(128), 20);
    running.run(FOREVER);
    let link = &running.model.link;
    // One packet is in the network layer; two fill the buffer except for 30 credits.
    assert_eq!(link.end(0).sent(), [3, 0]);
    assert_eq!(link.end(1).receive.ledger(0).held(), (2, 62));
}

/// A full replay buffer stops both channels until an acknowledgement arrives, whatever credits they
/// have.
// shows: S-17
#[test]
fn a_full_replay_buffer_stops_both_channels() {
    let config = Config {
        acknowledge_after: Span::from_ns(50_000),
        replay_after: Span::from_ns(150_000),
        headers: 100,
        data: 2_000,
        ..Config::recommended()
    };
    let mut running = Machine::new(&config, 8);
    for channel in 0..2 {
        running.stimulate(0, channel, Lengths::Fixed(32), 100);
    }
    running.run(Time::from_ps(40_000_000));
    // 33 DW each: 15 of them fill 2 KiB.
    let link = &running.model.link;
    assert_eq!(link.end(0).sent().iter().sum::<u64>(), 15);
    assert_eq!(link.end(0).replay_held(), 15 * 33 * 4);
    assert_eq!(link.end(0).first_stall.unwrap().lacks, [Some(Stall::Replay); 2]);
    running.run(FOREVER);
    is_sound(&running);
}

/// From reset a link comes up in its training time and then carries packets. With a dead Serdes it
/// has half the width, and packets take correspondingly longer. Two ends of the same role do not
/// come up.
// shows: S-03, S-18
#[test]
fn a_link_comes_up_from_reset() {
    crate::limit::limited(|| {
        let config = Config { channels: 1, ..Config::recommended() };
        let train = |roles: [Role; 2], wires| {
            let mut schedule = Schedule::new(1, config.cycle());
            let ports = roles.map(|role| Port::new(role, &config));
            let link =
                Link::train(&config, ports, wires, 0, |_, event| BenchEvent(event), &mut schedule);
            link.map(|link| Machine::on(link, schedule))
        };
        let delay = |mut running: Machine| {
            running.run(FOREVER);
            running.stimulate(0, 0, Lengths::Fixed(128), 1);
            running.run(FOREVER);
            is_sound(&running);
            running.model.link.end(1).receive.delays.mean() / 1000.0
        };
        let whole = train([Role::Rc, Role::Ep], 0xff).unwrap();
        assert!(whole.model.link.up_at() > Time::ZERO);
        // The network layer starts its 512 B when the header has arrived, after 4 ns of it; it ends
        // later than the arrival of the whole packet.
        let whole_ns = 245.0 - 127.0 + config.pass(512).as_ns();
        assert!((delay(whole) - whole_ns).abs() < 0.01);
        let half = train([Role::Ep, Role::Rc], 0xf0).unwrap();
        assert_eq!(half.model.link.choice().width(), 4);
        // 131 DW of frame take 131 ns more, and the network layer is then not the bottleneck.
        assert_eq!(delay(half), 245.0 + 131.0);
        assert_eq!(train([Role::Rc, Role::Rc], 0xff).err(), Some(Failure::TwoRcs));
        assert_eq!(train([Role::Ep, Role::Ep], 0xff).err(), Some(Failure::TwoEps));
        // Packets offered while the link trains wait for it.
        let mut early = train([Role::Rc, Role::Ep], 0xff).unwrap();
        early.stimulate(0, 0, Lengths::Fixed(16), 50);
        early.run(FOREVER);
        is_sound(&early);
    });
}

/// With layers that take no time, the delay is 25 + 25 ns of Serdes and the wire time.
// shows: S-19
#[test]
fn serdes_delay_is_25_ns_on_each_side() {
    let config =
        Config { layer_cycles: 0, network_clock: fast(), channels: 1, ..Config::recommended() };
    let mut running = Machine::new(&config, 1);
    running.stimulate(0, 0, Lengths::Fixed(64), 1);
    running.run(FOREVER);
    // 67 DW on the wire at 1 ns each.
    assert_eq!(running.model.link.end(1).receive.delays.mean() / 1000.0, 117.0);
}

/// Halving the lanes halves throughput; a larger buffer never lowers it.
// shows: S-19
#[test]
fn width_decides_bandwidth() {
    let gbps = |lanes, kilobytes: u64| {
        let replay_buffer = Bytes::new(kilobytes << 10);
        let network_clock = fast();
        let roomy = Config { headers: 127, data: 2_000, network_clock, ..Config::recommended() };
        let config = Config { lanes, channels: 1, replay_buffer, ..roomy };
        let mut running = Machine::new(&config, 1);
        running.stimulate(0, 0, Lengths::Fixed(128), 500);
        running.run(FOREVER);
        is_sound(&running);
        let bits = running.model.useful_bytes[1] as f64 * 8.0;
        bits * 1000.0 / running.model.last_arrival.ps() as f64
    };
    let whole = gbps(8, 16);
    assert!((30.0..32.0).contains(&whole), "{whole}");
    for (lanes, part) in [(4, 2.0), (2, 4.0), (1, 8.0)] {
        let ratio = whole / gbps(lanes, 16);
        assert!((ratio / part - 1.0).abs() < 0.02, "{lanes} lanes: {ratio}");
    }
    assert!(gbps(8, 2) < gbps(8, 4) && gbps(8, 4) <= gbps(8, 16));
}
