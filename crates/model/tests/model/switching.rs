//! Switches against closed formulas and published values, without calibration.

use bellwire_model::engine::Policy;
use bellwire_model::network::{
    Allocation, Arrival, Duration, Experiment, FabricConfig, Report, Select, Topology, Traffic,
};

/// A crossbar for cells: packets of one beat, buffers without limit.
fn cells(
    ports: usize,
    queues: u8,
    select: Select,
    allocation: Allocation,
    iterations: u8,
) -> (Topology, FabricConfig) {
    let config = FabricConfig {
        vcs: queues,
        select,
        buffer_beats: 0,
        pipeline_cycles: 0,
        allocation,
        iterations,
        ..FabricConfig::default()
    };
    (Topology::crossbar(ports).unwrap(), config)
}

fn report(network: (Topology, FabricConfig), traffic: Traffic, cycles: u64, seed: u64) -> Report {
    let duration = Duration { cycles, warm_up_cycles: Some(cycles / 10) };
    let mut experiment = Experiment::new(network.0, network.1, traffic, duration, seed).unwrap();
    experiment.run().unwrap()
}

fn saturated() -> Traffic {
    Traffic { arrival: Arrival::Saturated, ..Traffic::uniform(1.0, 1) }
}

/// Waiting time: latency without the two lines of one cycle each.
fn wait(report: &Report) -> f64 {
    report.latency_cycles.mean - 2.0
}

/// A switch with one FIFO per input saturates as Karol, Hluchyj and Morgan (1987) say: .75 for two
/// ports, falling towards 2 - sqrt 2 = .586.
// shows: B-03
#[test]
fn fifo_inputs_saturate_as_karol_says() {
    for (ports, expected) in
        [(2, 0.7500), (3, 0.6825), (4, 0.6553), (8, 0.6184), (16, 0.601), (32, 0.594)]
    {
        for allocation in [Allocation::Policy(Policy::Random), Allocation::Islip] {
            let network = cells(ports, 1, Select::Free, allocation, 1);
            let report = report(network, saturated(), 60_000, ports as u64);
            check(report.throughput.mean, expected, 0.004)
                .unwrap_or_else(|error| panic!("{ports} ports, {allocation:?}: {error}"));
            assert!(report.limit.binding, "{report}");
        }
    }
}

/// With one queue per output the same switch carries everything; with fewer queues, it carries more
/// the closer their number is to that.
// shows: B-03
#[test]
fn virtual_output_queues_remove_blocking() {
    let mut last = 0.0;
    for queues in [1, 2, 4, 8] {
        let network = cells(8, queues, Select::Destination, Allocation::Islip, 3);
        let report = report(network, saturated(), 40_000, 3);
        assert!(report.throughput.mean > last + 0.03, "{queues} queues: {report}");
        last = report.throughput.mean;
    }
    assert!(last > 0.99, "{last}");
}

/// The check that canaries must fail.
fn check(got: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    if (got - expected).abs() < tolerance { Ok(()) } else { Err(format!("{got}, not {expected}")) }
}

/// Canaries: each check here fails for a switch that differs in exactly the checked property.
#[test]
fn other_switches_fail_the_checks() {
    let throughput = |network, traffic, cycles| report(network, traffic, cycles, 4).throughput.mean;
    // Two queues instead of one are not Karol's switch.
    let two = cells(8, 2, Select::Destination, Allocation::Islip, 1);
    check(throughput(two, saturated(), 20_000), 0.6184, 0.004).unwrap_err();
    // Two rounds of PIM are not one.
    let pim = cells(16, 16, Select::Destination, Allocation::Pim, 2);
    check(throughput(pim, saturated(), 10_000), 0.6439, 0.004).unwrap_err();
    // Two rounds of iSLIP are not four; nor is one round of PIM.
    for (allocation, rounds) in [(Allocation::Islip, 2), (Allocation::Pim, 1)] {
        let network = cells(16, 16, Select::Destination, allocation, rounds);
        let report = report(network, Traffic::uniform(0.8, 1), 40_000, 4);
        check(wait(&report), 3.75, 0.3).unwrap_err();
    }
}

/// One round of PIM on full queues matches 1 - (1 - 1/N)^N of the outputs.
#[test]
fn one_round_of_pim_matches_the_formula() {
    for (ports, expected) in [(4, 0.6836), (16, 0.6439), (32, 0.6379)] {
        let network = cells(ports, ports as u8, Select::Destination, Allocation::Pim, 1);
        let report = report(network, saturated(), 20_000, 5);
        let got = report.throughput.mean;
        assert!((got - expected).abs() < 0.004, "{ports} ports: {got}, {expected}");
    }
}

/// Pointers that always move synchronise, so outputs choose the same inputs, and throughput falls
/// towards 1 - (1 - 1/N)^N (RRM, McKeown 1999). iSLIP's pointers desynchronise and reach 100 %.
#[test]
fn turns_that_always_move_on_fall_into_step() {
    for seed in 0..4 {
        let rrm = cells(16, 16, Select::Destination, Allocation::Policy(Policy::RoundRobin), 1);
        let got = report(rrm, saturated(), 10_000, seed).throughput.mean;
        assert!((0.25..0.75).contains(&got), "{got}");
        let islip = cells(16, 16, Select::Destination, Allocation::Islip, 1);
        let got = report(islip, saturated(), 10_000, seed).throughput.mean;
        // At a load of one, queues fill slowly; until they are full, throughput is slightly lower.
        assert!(got > 0.95, "{got}");
    }
}

/// Mean waits of iSLIP, 16 ports, one and four rounds.
#[test]
fn islip_waits_are_known() {
    for (iterations, load, expected, cycles) in [
        (1, 0.5, 1.32_f64, 60_000),
        (1, 0.8, 44.2, 200_000),
        (1, 0.95, 264.0, 600_000),
        (4, 0.8, 3.75, 100_000),
        (4, 0.95, 24.5, 300_000),
    ] {
        let network = cells(16, 16, Select::Destination, Allocation::Islip, iterations);
        let report = report(network, Traffic::uniform(load, 1), cycles, 7);
        let got = wait(&report);
        let tolerance = (0.04 * expected).max(3.0 * report.latency_cycles.half_width);
        assert!(
            (got - expected).abs() < tolerance,
            "{iterations} rounds at {load}: {got}, {expected}\n{report}"
        );
    }
}
