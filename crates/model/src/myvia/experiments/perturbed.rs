//! Short measurements of every experiment, of a setup that may have been changed: `perturbed.toml`
//! says what must follow. Bytes are counted where they come.

use super::SEED;
use crate::engine::Random;
use crate::myvia::kmem::PAGE;
use crate::myvia::programs::{Flow, Lengths, Places, Window, ping_pong, run_window, window};
use crate::myvia::{Machine, Setup};
use crate::perturbed::{Figure, Probe, exact, within};

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Messages of a window.
const MESSAGES: u64 = 100;

/// Percent by which interrupts for a ring move when the NIC takes one descriptor more or fewer
/// while a handler fills it.
const TAKEN_MEANWHILE: f64 = 10.0;

/// The measurements.
pub const PROBES: [Probe<Setup>; 14] = [
    one_way("fig6", &[exact("one way: MyVIA on LANai9", "us")], || paper("myvia-b")),
    one_way("fig6", &[exact("one way: GM on LANai9", "us")], || paper("gm-b")),
    one_way("fig5", &[exact("one way: MyVIA on LANai4", "us")], || paper("myvia-a")),
    one_way("fig5", &[exact("one way: Berkeley VIA on LANai4", "us")], || paper("berkeley-a")),
    one_way("m-via", &[exact("one way: M-VIA at 100 Mb/s", "us")], || paper("m-via-100")),
    stream("fig6", &[within(1.0, "32 KB: MyVIA on LANai9", "MB/s")], || paper("myvia-b")),
    stream("fig6", &[within(1.0, "32 KB: Berkeley VIA on LANai9", "MB/s")], || paper("berkeley-b")),
    stream("fig5", &[within(1.0, "32 KB: MyVIA on LANai4", "MB/s")], || paper("myvia-a")),
    stream("m-via", &[within(1.0, "32 KB: M-VIA at a gigabit", "MB/s")], || paper("m-via-gigabit")),
    Probe {
        experiment: "tlb",
        figures: &[within(1.0, "2 KB from scattered pages: Berkeley VIA on LANai9", "MB/s")],
        base: || {
            let mut setup = paper("berkeley-b");
            setup.system.cache_entries = ENTRIES;
            setup
        },
        run: |setup| {
            let places = Places::Scattered(4 * ENTRIES as u64 * PAGE, Random::new(SEED));
            let flow = window(setup, Lengths::Fixed(2048), places, 20 * MESSAGES, SEED)?;
            Ok(vec![flow.megabytes_per_second])
        },
    },
    Probe {
        experiment: "rings",
        figures: &[within(TAKEN_MEANWHILE, "rings: interrupts in 1000 messages", "1")],
        base: || {
            let mut setup = paper("myvia-b");
            (setup.system.small_ring, setup.system.low_mark) = (16, 4);
            setup
        },
        run: |setup| {
            let mut running = Machine::new(setup, 2, SEED).map_err(|error| error.to_string())?;
            let (lengths, places) = (Lengths::Fixed(64), Places::Reused);
            let mut program = Window::begin(&mut running, lengths, places, 1000, true)?;
            program.unfinished = 512;
            let (running, _) = run_window(running, &mut program)?;
            Ok(vec![running.model.nodes[0].vis[0].queues[0].counts.interrupts as f64])
        },
    },
    Probe {
        experiment: "dma",
        figures: &[exact("dma: transfers for 120 KB", "1")],
        base: || paper("myvia-b"),
        run: |setup| {
            let flow = flow(setup, 122_880, 10)?;
            let counts = &flow.running.model.nodes[0].agent.counts;
            Ok(vec![counts.data_transfers as f64 / 10.0])
        },
    },
    Probe {
        experiment: "pipelines",
        figures: &[exact("pipelines: locks taken for 100 messages", "1")],
        base: || paper("myvia-a"),
        run: |setup| {
            let flow = flow(setup, 64, MESSAGES)?;
            let counts = &flow.running.model.nodes[0].agent.counts;
            Ok(vec![(counts.lock_tries - counts.lock_failures) as f64])
        },
    },
    Probe {
        experiment: "mix",
        figures: &[within(1.0, "mix: MyVIA on LANai4", "MB/s")],
        base: || paper("myvia-a"),
        run: |setup| {
            let lengths = Lengths::Mix(Random::new(SEED), 65_536);
            let flow = window(setup, lengths, Places::Reused, 2 * MESSAGES, SEED)?;
            Ok(vec![flow.megabytes_per_second])
        },
    },
];

/// Entries of the cache that is too small.
const ENTRIES: usize = 128;

/// A message of 4 B to and fro.
const fn one_way(
    experiment: &'static str,
    figures: &'static [Figure],
    base: fn() -> Setup,
) -> Probe<Setup> {
    let run =
        |setup: &Setup| Ok(vec![ping_pong(setup, Lengths::Fixed(4), 20, SEED)?.as_ns() / 1e3]);
    Probe { experiment, figures, base, run }
}

/// Messages of 32 KB behind each other.
const fn stream(
    experiment: &'static str,
    figures: &'static [Figure],
    base: fn() -> Setup,
) -> Probe<Setup> {
    let run = |setup: &Setup| Ok(vec![flow(setup, 32_768, MESSAGES)?.megabytes_per_second]);
    Probe { experiment, figures, base, run }
}

/// A system of the paper.
fn paper(name: &str) -> Setup {
    Setup::paper(name).expect("the paper's systems are checked by a test")
}

fn flow(setup: &Setup, bytes: u32, messages: u64) -> Result<Flow, String> {
    window(setup, Lengths::Fixed(bytes), Places::Reused, messages, SEED)
}
