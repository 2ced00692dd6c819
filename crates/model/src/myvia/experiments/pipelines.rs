//! The pipelines (3.2; M-18 to M-21): stages, overlap, the gain of double buffers and the cost of
//! locks.

use super::{MESSAGES, SEED, paper};
use crate::experiment::Report;
use crate::myvia::config::Pipeline;
use crate::myvia::pipeline::{STEPS, Side, Step, Unit};
use crate::myvia::programs::{Lengths, Places, Window, run_window, window};
use crate::myvia::{Machine, Setup};

/// Number of stages of a pipeline.
fn stages(pipeline: Pipeline, side: Side) -> f64 {
    let of_side = STEPS.into_iter().filter(|step: &Step| step.side() == side);
    of_side.map(|step| f64::from(step.stage(pipeline))).fold(0.0, f64::max)
}

/// A window with the journal of unit uses open.
pub(super) fn observed(setup: &Setup, length: u32, messages: u64) -> Result<Machine, String> {
    let mut running = Machine::new(setup, 2, SEED).map_err(|error| error.to_string())?;
    let mut program =
        Window::begin(&mut running, Lengths::Fixed(length), Places::Reused, messages, true)?;
    running.model.journal.open();
    run_window(running, &mut program).map(|(running, _)| running)
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    for (name, pipeline) in [("LANai4", Pipeline::Locked), ("LANai9", Pipeline::Chained)] {
        let counted = (stages(pipeline, Side::Send), stages(pipeline, Side::Receive));
        report.value(format!("{name}, stages of sending"), "1", counted.0);
        report.value(format!("{name}, stages of receiving"), "1", counted.1);
    }
    for (name, system) in
        [("LANai4", "myvia-a"), ("LANai9", "myvia-b"), ("Berkeley VIA on LANai4", "berkeley-a")]
    {
        let setup = paper(system)?;
        for kilobytes in [4, 32] {
            let running = observed(&setup, kilobytes << 10, MESSAGES / 10)?;
            let journal = &running.model.journal;
            journal.check().map_err(|error| error.to_string())?;
            let all = journal.overlap(0, &[Unit::SendDma]).as_ns();
            let both = journal.overlap(0, &[Unit::HostDma, Unit::SendDma]).as_ns();
            let what = format!("{name}, {kilobytes} KB: sending while the host DMA works");
            report.value(what, "%", both / all * 100.0);
        }
        let mut single = setup.clone();
        (single.system.send_buffers, single.system.receive_buffers) = (1, 1);
        let rate =
            |setup: &Setup| window(setup, Lengths::Fixed(4096), Places::Reused, MESSAGES, SEED);
        let (double, single) = (rate(&setup)?, rate(&single)?);
        let gain = double.megabytes_per_second / single.megabytes_per_second;
        report.value(format!("{name}, 4 KB: two buffers over one"), "1", gain);
    }
    let locked = paper("myvia-a")?;
    let mut free = locked.clone();
    free.firmware.lock = 0;
    for length in [64, 1024, 4096, 32_768] {
        let rate =
            |setup: &Setup| window(setup, Lengths::Fixed(length), Places::Reused, MESSAGES, SEED);
        let (locked, free) = (rate(&locked)?, rate(&free)?);
        let cost = (1.0 - locked.megabytes_per_second / free.megabytes_per_second) * 100.0;
        let what = format!("LANai4, {length} B: bandwidth that locks cost");
        report.value(what, "%", cost);
        if length == 64 {
            let counts = &locked.running.model.nodes[0].agent.counts;
            let tries = counts.lock_tries as f64 / MESSAGES as f64;
            report.value("LANai4, 64 B: tries to lock for a message", "1", tries);
            let failed = counts.lock_failures as f64 / counts.lock_tries as f64 * 100.0;
            report.value("of them in vain", "%", failed);
        }
    }
    Ok(())
}
