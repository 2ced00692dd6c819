//! The ring on the NIC and its overflow (3.3; M-12 to M-17): interrupts and dry rings, by length
//! and low mark.

use super::{MESSAGES, SEED, paper};
use crate::experiment::{Axis, Origin, Report};
use crate::myvia::programs::{Lengths, Places, Window, run_window};
use crate::myvia::{Machine, Setup};

/// Measures of a window's send queue.
struct Ring {
    /// Refill interrupts of the sender per 1000 messages.
    interrupts: f64,
    /// Share of the time in which the small ring was empty but the big one was not, in percent.
    dry: f64,
    /// Thousands of messages per second.
    rate: f64,
    /// Share of the descriptors that went through the big ring, in percent.
    overflowed: f64,
}

/// Runs a window of short messages with `unfinished` sends in flight.
fn ring(setup: &Setup, length: u32, unfinished: u64) -> Result<Ring, String> {
    let mut running = Machine::new(setup, 2, SEED).map_err(|error| error.to_string())?;
    let mut program =
        Window::begin(&mut running, Lengths::Fixed(length), Places::Reused, MESSAGES, true)?;
    program.unfinished = unfinished;
    let (running, took) = run_window(running, &mut program)?;
    let vi = &running.model.nodes[0].vis[0];
    let counts = vi.queues[0].counts;
    Ok(Ring {
        interrupts: counts.interrupts as f64 * 1000.0 / MESSAGES as f64,
        dry: vi.dry.as_ns() / took.as_ns() * 100.0,
        rate: MESSAGES as f64 / took.as_ns() * 1e6,
        overflowed: counts.overflowed as f64 / MESSAGES as f64 * 100.0,
    })
}

fn with(setup: &Setup, small_ring: usize, low_mark: usize) -> Setup {
    let mut setup = setup.clone();
    setup.system.small_ring = small_ring;
    setup.system.low_mark = low_mark;
    setup
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let systems = [("LANai4", paper("myvia-a")?), ("LANai9", paper("myvia-b")?)];
    let mut marks = Vec::new();
    let mut lengths = Vec::new();
    for (name, setup) in &systems {
        // Messages of 64 B with a ring of 16: the worst case.
        let mut by_mark = Vec::new();
        for low_mark in [0, 1, 2, 4, 8, 12, 15] {
            by_mark.push((low_mark, ring(&with(setup, 16, low_mark), 64, 512)?));
        }
        let (first, last) = (&by_mark[0].1, &by_mark[6].1);
        for (low_mark, of) in by_mark.iter().filter(|(mark, _)| [0, 4, 15].contains(mark)) {
            let what = format!("{name}, ring of 16, mark {low_mark}: interrupts");
            report.value(what, "per 1000", of.interrupts);
            let what = format!("{name}, ring of 16, mark {low_mark}: NIC runs dry");
            report.value(what, "% of time", of.dry);
        }
        report.claim(
            format!("{name}: a high mark brings more interrupts"),
            last.interrupts > 2.0 * first.interrupts,
        );
        report.claim(
            format!("{name}: a low mark lets the NIC run dry"),
            first.dry > 2.0 * by_mark[3].1.dry && first.dry > 0.5,
        );
        let mut by_length = Vec::new();
        for small_ring in [2, 4, 8, 16, 32, 64, 128, 256] {
            let setup = with(setup, small_ring, small_ring / 4);
            // The NIC's memory must hold the rings of all VIs besides its buffers.
            if setup.check().is_ok() {
                by_length.push((small_ring, ring(&setup, 64, 512)?));
            }
        }
        let longest = by_length.last().map_or(0, |(length, _)| *length) as f64;
        let what = format!("{name}: longest ring that the memory holds for 128 VIs");
        report.value(what, "entries", longest);
        let best = by_length.iter().map(|(_, of)| of.rate).fold(0.0, f64::max);
        let at = |entries| {
            by_length.iter().find(|(length, _)| *length == entries).map_or(0.0, |(_, of)| of.rate)
        };
        for entries in [2, 8, 16, 64] {
            let what = format!("{name}, ring of {entries}, mark a quarter: messages");
            report.value(what, "1000/s", at(entries));
        }
        let plateau = if *name == "LANai4" { 16 } else { 64 };
        let flat = by_length
            .iter()
            .filter(|(length, _)| *length >= plateau)
            .all(|(_, of)| of.rate > 0.99 * best);
        report
            .claim(format!("{name}: from {plateau} entries on a longer ring hardly matters"), flat);
        marks.push((*name, by_mark));
        lengths.push((*name, by_length));
    }
    // M-17: the measured load, with the configured rings.
    for (name, setup) in &systems {
        let mut most: f64 = 0.0;
        for length in [64, 4096] {
            let of = ring(setup, length, super::super::programs::WINDOW)?;
            most = most.max(of.interrupts);
            let what = format!("{name} as set, window of 64, {length} B: interrupts");
            report.value(what, "per 1000", of.interrupts);
        }
        if *name == "LANai9" {
            report.note(format!(
                "LANai9 has {most} interrupts per 1000 messages at the measured load: no more \
                 sends are unfinished than its ring holds, so none can occur (M-17)."
            ));
        }
    }
    let all_at_once = ring(&systems[1].1, 4096, 1000)?;
    let what = "LANai9 as set, 1000 posted at once, 4 KB: interrupts";
    report.value(what, "per 1000", all_at_once.interrupts);
    report.value("the same: descriptors through the big ring", "%", all_at_once.overflowed);
    let mut draw =
        |title: &str, x, y, curves: &[(&str, Vec<(usize, Ring)>)], of: fn(&Ring) -> f64| {
            let figure = report.figure(title, x, y);
            for (name, points) in curves {
                let points = points.iter().map(|(x, ring)| (*x as f64, of(ring)));
                figure.series(*name, Origin::Model, points);
            }
        };
    let mark = Axis::linear("low mark", "");
    let y = Axis::linear("interrupts for 1000 messages", "");
    draw("Interrupts by low mark, ring of 16", mark, y, &marks, |ring| ring.interrupts);
    let y = Axis::linear("dry", "%");
    draw("NIC without work by low mark, ring of 16", mark, y, &marks, |ring| ring.dry);
    let (x, y) = (Axis::logarithmic("entries", ""), Axis::linear("messages", "1000/s"));
    let title = "Messages by length of the small ring, mark a quarter";
    draw(title, x, y, &lengths, |ring| ring.rate);
    Ok(())
}
