//! Translation (3.1; M-10, B-14, B-15): the cost of poor locality for a cache on the NIC, and the
//! costs of the other classes.

use super::{MESSAGES, SEED, paper};
use crate::engine::Random;
use crate::experiment::{Axis, Report, of_each_seed};
use crate::myvia::Setup;
use crate::myvia::config::Translation;
use crate::myvia::kmem::PAGE;
use crate::myvia::programs::{Flow, Lengths, Places, window};
use crate::stats::over_seeds;

/// Sizes of the messages' regions, relative to the reach of the cache.
const REGIONS: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 4.0];
const LENGTHS: [u32; 4] = [512, 2048, 4096, 8192];
/// Entries of the cache: enough for all receive buffers, few enough that a run visits each page of
/// a region many times.
const ENTRIES: usize = 128;

/// A window whose sends lie at random places in a region of `pages` pages.
fn scattered(
    setup: &Setup,
    length: u32,
    pages: u64,
    messages: u64,
    seed: u64,
) -> Result<Flow, String> {
    let places = Places::Scattered(pages * PAGE, Random::new(seed));
    window(setup, Lengths::Fixed(length), places, messages, seed)
}

/// Lost bandwidth and added misses against a cache that covers the region, in percent. Compulsory
/// misses do not count: both caches have them.
fn loss(setup: &Setup, length: u32, times: f64, seed: u64) -> Result<(f64, f64), String> {
    let entries = setup.system.cache_entries as f64;
    let pages = (entries * times) as u64;
    let run = |setup: &Setup, messages| scattered(setup, length, pages, messages, seed);
    let steady = |setup: &Setup| -> Result<(f64, f64), String> {
        let (short, long) = (run(setup, MESSAGES)?, run(setup, 2 * MESSAGES)?);
        let misses = |flow: &Flow| flow.running.model.nodes[0].agent.cache.misses as f64;
        let took = (long.took - short.took).as_ns();
        let pages = MESSAGES as f64 * f64::from(length).max(1.0) / PAGE as f64;
        Ok((took, (misses(&long) - misses(&short)) / pages.max(MESSAGES as f64)))
    };
    let mut covering = setup.clone();
    covering.system.cache_entries = 1 << 16;
    let ((slow, misses), (quick, compulsory)) = (steady(setup)?, steady(&covering)?);
    // The covering cache still has some compulsory misses; the other misses are those of the small
    // cache.
    let added = (misses - compulsory).max(0.0) * 100.0;
    Ok(((1.0 - quick / slow).max(0.0) * 100.0, added))
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut berkeley = paper("berkeley-b")?;
    berkeley.system.cache_entries = ENTRIES;
    let mut curves = Vec::new();
    // The losses with each seed, of each length and region beyond the cache.
    let mut within: Vec<Vec<f64>> = Vec::new();
    for length in LENGTHS {
        let mut points = Vec::new();
        for times in REGIONS {
            let runs = of_each_seed(|seed| loss(&berkeley, length, times, seed))?;
            let (lost, misses): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
            points.push((times, over_seeds(&lost)));
            if times > 1.0 {
                let what = format!("{length} B, region {times} times the cache: loss");
                report.drawn(what, "%", &lost);
                let what = format!("{length} B, region {times} times the cache: misses added");
                report.drawn(what, "% of pages", &misses);
                within.push(lost);
            }
        }
        curves.push((length, points));
    }
    let of_seeds = |of: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        let of_seed = |seed| within.iter().map(|losses| losses[seed]).collect::<Vec<f64>>();
        (0..within[0].len()).map(|seed| of(&of_seed(seed))).collect()
    };
    let least = |losses: &[f64]| losses.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |losses: &[f64]| losses.iter().copied().fold(0.0, f64::max);
    report.drawn("poor locality, least loss", "%", &of_seeds(&least));
    report.drawn("poor locality, greatest loss", "%", &of_seeds(&most));
    let inside = |losses: &[f64]| {
        let inside = losses.iter().filter(|lost| (5.0..=45.0).contains(*lost)).count();
        inside as f64 / losses.len() as f64 * 100.0
    };
    report.drawn("runs with a loss of 5 to 45 %", "%", &of_seeds(&inside));
    let covered = curves.iter().all(|(_, points)| points[0].1.is_below(1.0));
    report.claim("a cache that covers the region loses nothing", covered);
    let myvia = paper("myvia-b")?;
    let rate = |pages| {
        scattered(&myvia, 4096, pages, MESSAGES, SEED).map(|flow| flow.megabytes_per_second)
    };
    let (near, far) = (rate(16)?, rate(4096)?);
    report.claim("MyVIA does not depend on locality", (near / far - 1.0).abs() < 0.001);
    let flow = scattered(&myvia, 4096, 4096, MESSAGES, SEED)?;
    let interrupts = flow.running.model.nodes.iter().map(|node| node.processor.counts.interrupts());
    let interrupts = interrupts.sum::<u64>() as f64;
    report.value("MyVIA, interrupts for translation", "1", interrupts);
    // Class 2: the NIC translates with its own table.
    for name in ["myvia-a", "myvia-b"] {
        let mut table = paper(name)?;
        table.system.translation = Translation::NicTable;
        let pages = table.table_pages().unwrap_or(0);
        let what = format!("{name} with a table on the NIC: memory that can be registered");
        report.value(what, "MiB", (pages * PAGE) as f64 / (1 << 20) as f64);
        let mut running =
            crate::myvia::Machine::new(&table, 2, SEED).map_err(|error| error.to_string())?;
        let all = running.model.register(0, pages * PAGE).is_ok();
        let refused = running.model.register(0, 1).is_err();
        report.claim(format!("{name}: the table takes that much and refuses more"), all && refused);
    }
    report.value("with the table on the host", "MiB", 512.0).by_formula();
    let figure = report.figure(
        "Bandwidth lost by misses of the cache on the NIC",
        Axis::linear("region over what the cache covers", ""),
        Axis::linear("loss", "%"),
    );
    for (length, points) in curves {
        figure.drawn(format!("{length} B"), points);
    }
    Ok(())
}
