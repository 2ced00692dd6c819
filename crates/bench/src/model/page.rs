//! The page about the model's speed.

use super::networks::{BUFFER_BEATS, ISLIP_ROUNDS, PACKET_BEATS, VCS};
use super::{Row, experiments};
use crate::statistics::Summary;

pub fn markdown(rows: &[Row], experiments: &[experiments::Run]) -> String {
    let mut page = format!(
        "# Performance of the model

Made by `cargo run --release -p bellwire-bench -- model --booksim PATH`. Do not edit by hand: the
next run writes it anew.

Rates are per second of CPU time (user and system, of the simulator's process) on one core. They
are medians of rounds in which the simulators took turns, with the least and the most.

Both simulators run the same network: uniform random traffic, packets of {PACKET_BEATS} flits,
{VCS} virtual channels with {BUFFER_BEATS} flits of buffer each, credits that take a cycle, and
iSLIP with {ISLIP_ROUNDS} rounds. In BookSim2 that is `sw_allocator = islip({ISLIP_ROUNDS})`,
because it ignores `alloc_iters`. Pipelines are of two cycles here, and of BookSim2's default
stages without speculation there, so latencies differ by a constant per router.

A flit-hop is one flit through one router: flits accepted times mean hops, over all cycles
simulated, warm-up included. BookSim2 runs fewer cycles, because each takes longer. The time to
set up the network counts for both. The goal is 20 times the rate of stock BookSim2 on the machine
where the goal was set. The ratio is to BookSim2 in this run.

| load | model, M/s | least - most | BookSim2, M/s | ratio | goal, M/s | |
| --- | --- | --- | --- | --- | --- | --- |
"
    );
    for row in rows {
        let Some(Summary { median: rate, min, max, .. }) = Summary::of(&row.model) else {
            continue;
        };
        let (theirs, ratio) = match Summary::of(&row.booksim) {
            Some(Summary { median, .. }) => {
                (format!("{:.3}", median / 1e6), format!("{:.0}", rate / median))
            }
            None => ("not run".to_owned(), "-".to_owned()),
        };
        let met = if rate >= row.goal { "met" } else { "MISSED" };
        page += &format!(
            "| {}, {} | {:.2} | {:.2} - {:.2} | {theirs} | {ratio} | {:.2} | {met} |\n",
            row.what,
            row.unit,
            rate / 1e6,
            min / 1e6,
            max / 1e6,
            row.goal / 1e6,
        );
    }
    page += "\nThe papers' experiments, two at a time, on the wall:\n
| experiments of | how many | s | goal, s | |
| --- | --- | --- | --- | --- |
";
    for run in experiments {
        let met = if run.seconds <= run.goal_seconds { "met" } else { "MISSED" };
        page += &format!(
            "| {} | {} | {:.2} | {:.0} | {met} |\n",
            run.what, run.experiments, run.seconds, run.goal_seconds
        );
    }
    page += "\nWhat they found, to show that it is the same work:\n
| load | simulator | flits per terminal and cycle | packet latency, cycles | routers crossed | cycles |
| --- | --- | --- | --- | --- | --- |
";
    for row in rows {
        for found in &row.found {
            page += &format!(
                "| {} | {} | {:.3} | {:.1} | {:.2} | {} |\n",
                row.what,
                found.simulator,
                found.throughput,
                found.latency,
                found.hops,
                found.cycles
            );
        }
    }
    for row in rows {
        if let Some(memory) = row.memory_mib {
            let met = if memory <= 2048 { "met" } else { "MISSED" };
            page += &format!(
                "\nMemory for the {}: {memory} MiB at most; the goal of 2048 MiB is {met}.\n",
                row.what
            );
        }
    }
    page
}
