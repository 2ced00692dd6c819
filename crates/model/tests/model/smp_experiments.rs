//! The experiments of the SMP paper: calibrated values fit, predictions are as close as documented,
//! and no deviation above 5 % lacks an explanation.

use bellwire_model::experiment::Report;
use bellwire_model::experiment::Role;
use bellwire_model::smp::bench::{Lengths, Machine};
use bellwire_model::smp::config::Config;
use bellwire_model::smp::experiments::run_length::{
    RunLength, run_length, run_lengths, run_lengths_of,
};
use bellwire_model::smp::transport::Stall;
use bellwire_model::units::{Bytes, Frequency, Span, Time};

use crate::support;

fn run(id: &str) -> Report {
    let report = support::report("smp", id);
    assert_eq!(report.unexplained(), Vec::<&str>::new());
    let points = report.figures.iter().flat_map(|figure| &figure.series).flat_map(|of| &of.points);
    assert!(points.clone().count() > 0 && points.clone().all(|(x, y)| *x > 0.0 && y.is_finite()));
    report
}

fn value(report: &Report, what: &str) -> f64 {
    let found = report.values.iter().find(|value| value.what.starts_with(what));
    found.unwrap_or_else(|| panic!("no value {what}")).model
}

fn holds(report: &Report, claim: &str) -> bool {
    let found = report.claims.iter().find(|found| found.claim.starts_with(claim));
    found.unwrap_or_else(|| panic!("no claim {claim}")).holds
}

/// The bytes on the wire give the published ratios before and after the optimisation, and the
/// bandwidths derived from them.
// shows: S-10, S-11, S-23, S-24, B-20
#[test]
fn effective_bandwidth() {
    let report = run("bandwidth");
    let published = report.values.iter().filter(|value| value.published.is_some());
    assert!(published.clone().count() >= 17);
    assert!(published.clone().all(|value| value.error_percent.unwrap().abs() < 0.2));
    // With all overhead counted, no more arrives than 8b/10b leaves.
    let counted = report.values.iter().filter(|value| value.what.ends_with("all counted"));
    assert!(counted.clone().count() == 10 && counted.clone().all(|value| value.model < 32.0));
}

/// Delays of both policies are within 5 % of the published values, with one calibrated value; so is
/// the mean over the powers of two. One value misses by up to 10 %: cut-through at 128 DW, which a
/// network layer slower than the line delays. The wait for the other channel grows with the length.
// shows: S-20, S-21, S-22, B-19
#[test]
fn transfer_delay() {
    let report = run("fig5");
    let calibrated = report.values.iter().filter(|value| value.role == Role::Calibrated);
    assert_eq!(calibrated.count(), 1);
    for (what, published, within) in [
        ("SF, 16 DW", 148.0, 0.05),
        ("SF, 128 DW", 372.0, 0.05),
        ("SF, mean over 1,", 189.0, 0.05),
        ("CT, 1 DW", 120.0, 0.05),
        ("CT, 16 DW", 134.0, 0.05),
        ("CT, 128 DW", 238.0, 0.1),
        ("CT, mean over 1,", 150.0, 0.05),
    ] {
        let error = value(&report, what) / published - 1.0;
        assert!(error.abs() < within, "{what}: {error}");
    }
    assert!(report.claims.iter().all(|claim| claim.holds));
}

/// Packets before a stall with one channel: all published numbers, which are calibrated, and the
/// limits of short and long packets. Above 64 packets, which the paper calls for ever, 32 DW stop
/// with 4 KB, and the report says so.
// shows: S-25, S-26, S-27, S-28, B-20
#[test]
fn run_lengths_with_one_channel() {
    let report = run("fig6");
    assert_eq!(value(&report, "2 KB default, 32 DW: data"), 17.0);
    assert_eq!(value(&report, "2 KB optimised, 128 DW: data"), 3.0);
    assert_eq!(value(&report, "8 KB default, 128 DW: replay"), 4.0);
    let published = report.values.iter().filter(|value| value.unit == "packets");
    let published = published.filter(|value| value.published.is_some());
    let roles: Vec<Role> = published.map(|value| value.role).collect();
    assert_eq!(roles, [Role::Calibrated; 3]);
    assert!(value(&report, "4 KB default, 32 DW") > 64.0);
    assert!(report.notes.iter().any(|note| note.contains("4 KB default stops after 534")));
    assert!(report.claims.iter().all(|claim| claim.holds));
}

/// With two channels all four settings give the published results, one of them by a fit: what
/// stops a run, and that the others pass the 64 packets above which the paper draws no bar. No
/// number of packets is published, so none counts as predicted.
// shows: S-17, S-26, S-29
#[test]
fn run_lengths_with_two_channels() {
    let report = run("fig7");
    let published = report.values.iter().filter(|value| value.published.is_some());
    assert!(published.clone().all(|value| value.unit != "packets"));
    for claim in [
        "(2K, 2K): below 32 DW",
        "(2K, 2K): 64 and 128 DW stop, for the replay buffer",
        "(4K, 2K): 64 DW",
        "(4K, 4K): 128 DW still stop, for data credits",
        "(4K, 4K) with 192",
        "recommended: no length that coherence uses",
        "recommended: a random mix",
    ] {
        assert!(holds(&report, claim), "{claim}");
    }
    // Only what is drawn has independent tries.
    let tries = report.claims.iter().filter_map(|claim| claim.tries);
    assert_eq!(tries.collect::<Vec<_>>(), [30]);
    // The steps between the settings are larger than the last digit: a smaller replay buffer, or
    // half the data credits, end the run below half of the paper's 64 packets.
    for (what, most) in [
        ("(2K, 2K) optimised, 64 DW: replay buffer", 5.0),
        ("(2K, 2K) optimised, 128 DW: replay buffer", 3.0),
        ("(4K, 4K) default, 128 DW: data", 32.0),
    ] {
        assert!(value(&report, what) < most, "{what}");
    }
    assert_eq!(value(&report, "recommended, receive buffer"), 2048.0);
    assert_eq!(value(&report, "recommended, lengths of 1 to 16 DW"), 0.0);
}

/// At the recommended setting no packet of a length that coherence uses waits for credits or for
/// the replay buffer, in 16 runs of 40,000 packets: one for each length from 1 to 16 DW. Nor does
/// any in a random mix of these lengths, with each of 30 seeds: by the rule of three fewer than one
/// run in ten of 4,000 packets stalls, at 95 %. That longer runs do not stall either follows from
/// the rates (docs/model-smp.md). A mix that fills both directions does not stall in 80,000
/// packets. The check can fail: a network layer of 220 MHz stalls at 15 DW.
// shows: S-30
#[test]
fn coherence_does_not_stall_at_the_recommended_setting() {
    const PACKETS: u64 = 20_000;
    let config = Config::recommended();
    assert_eq!((config.replay_buffer.count(), config.headers, config.data), (2048, 32, 92));
    let none = RunLength { packets: None, lacks: None };
    for length_dw in 1..=16 {
        let run = run_lengths(&config, Lengths::Fixed(length_dw), PACKETS).unwrap();
        assert_eq!(run, none, "{length_dw} DW");
    }
    for seed in 1..=30 {
        let run = run_lengths_of(&config, Lengths::Coherence, PACKETS / 10, seed).unwrap();
        assert_eq!(run, none, "seed {seed}");
    }
    let mut running = Machine::new(&config, 1);
    for (end, channel) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        running.stimulate(end, channel, Lengths::Coherence, PACKETS);
    }
    running.run(Time::ZERO + Span::from_ns(1_000_000_000));
    assert_eq!((running.missing(), running.model.compared), (0, 4 * PACKETS));
    for end in [0, 1].map(|end| running.model.link.end(end)) {
        assert_eq!((end.first_stall, end.counters.stalls), (None, 0));
    }
    let slow = Config { network_clock: "220 MHz".parse().unwrap(), ..config };
    let run = run_lengths(&slow, Lengths::Fixed(15), PACKETS).unwrap();
    assert!(run.packets.is_some(), "a network layer slower than the line fills the buffer");
}

/// A network layer that is slower stops sooner, for each time of a link packet and each clock from
/// 190 to 250 MHz. The 17 packets of Fig. 6 need a clock from 215 to 227 MHz, below the line's
/// rate, and a link packet of 18 ns at most. With such a clock the four settings of Fig. 7 come
/// out, if a link packet takes at least 16 ns.
// shows: S-28, S-29
#[test]
fn both_figures_have_one_reading() {
    let of = |link_packet_ns: u64, network_khz: u64| Config {
        link_packet: Span::from_ns(link_packet_ns),
        network_clock: format!("{network_khz} kHz").parse::<Frequency>().unwrap(),
        ..Config::recommended()
    };
    let with = |config: Config, replay_kb: u64| Config {
        replay_buffer: Bytes::new(replay_kb << 10),
        ..config
    };
    let stops = |run: RunLength, lacks| !run.is_for_ever() && run.lacks == Some(lacks);
    for (link_packet_ns, fits) in [
        (0, Some((215_750, false))),
        (8, Some((220_500, false))),
        (16, Some((225_500, true))),
        (18, Some((226_750, true))),
        (20, None),
    ] {
        let mut last = 0;
        let mut first_of_17 = None;
        // In steps of 5 MHz, and of 0.25 MHz where the fits lie.
        let clocks = (190_000..214_000).step_by(5_000).chain((214_000..228_000).step_by(250));
        for network_khz in clocks.chain((228_000..=250_000).step_by(5_000)) {
            let config = of(link_packet_ns, network_khz);
            let one = Config { channels: 1, ..config }.with_default_credits(2);
            let packets = run_length(&one, 32).unwrap().packets.unwrap_or(u64::MAX);
            assert!(packets >= last, "{packets} after {last} at {network_khz} kHz");
            last = packets;
            if packets == 17 {
                first_of_17.get_or_insert(network_khz);
            }
        }
        assert_eq!(first_of_17, fits.map(|(clock, _)| clock), "{link_packet_ns} ns");
        let Some((network_khz, frees_128)) = fits else { continue };
        let config = of(link_packet_ns, network_khz);
        let large = config.clone().with_default_credits(4);
        let larger = Config { headers: 32, data: 192, ..large.clone() };
        let [a, b, c, d] = [
            (with(config.clone(), 2), 64),
            (with(config, 4), 64),
            (with(large, 4), 128),
            (with(larger, 4), 128),
        ]
        .map(|(config, length_dw)| run_length(&config, length_dw).unwrap());
        assert!(stops(a, Stall::Replay) && stops(c, Stall::Data), "{link_packet_ns} ns");
        assert_eq!([b.is_for_ever(), d.is_for_ever()], [frees_128; 2], "{link_packet_ns} ns");
    }
}
