//! Contiguous memory (3.4; M-22, M-23, B-18): one DMA for many pages, against one per page.

use super::{MESSAGES, SEED, latency_us, paper};
use crate::experiment::{Axis, Origin, Report};
use crate::myvia::Setup;
use crate::myvia::memory::Layout;
use crate::myvia::programs::{Lengths, Places, window};

const LENGTHS: [u32; 6] = [4096, 8192, 16_384, 32_768, 65_536, 122_880];

/// Host DMA starts per message at the sender, and MB/s.
fn starts_and_rate(setup: &Setup, length: u32) -> Result<(f64, f64), String> {
    let messages = MESSAGES / 10;
    let flow = window(setup, Lengths::Fixed(length), Places::Reused, messages, SEED)?;
    let counts = &flow.running.model.nodes[0].agent.counts;
    let transfers = counts.data_transfers as f64 / messages as f64;
    Ok((transfers, flow.megabytes_per_second))
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let message = Axis::logarithmic("message", "B");
    let mut curves = Vec::new();
    for (name, system) in [("LANai4", "myvia-a"), ("LANai9", "myvia-b")] {
        let contiguous = paper(system)?;
        let mut pages = contiguous.clone();
        pages.system.layout = Layout::Pages;
        let mut points = [Vec::new(), Vec::new()];
        let mut slower = true;
        for length in LENGTHS {
            let ((one, whole), (many, cut)) =
                (starts_and_rate(&contiguous, length)?, starts_and_rate(&pages, length)?);
            if length == 122_880 {
                report.value(format!("{name}, 120 KB, contiguous: DMA transfers"), "1", one);
                report.value(format!("{name}, 120 KB, by pages: DMA transfers"), "1", many);
            }
            let delays = (latency_us(&contiguous, length)?, latency_us(&pages, length)?);
            if length > 4096 {
                slower &= delays.1 > delays.0 && cut <= whole * 1.0001;
                let what = format!("{name}, {length} B: latency by pages over contiguous");
                report.value(what, "1", delays.1 / delays.0);
            }
            points[0].push((f64::from(length), whole));
            points[1].push((f64::from(length), cut));
        }
        report.claim(
            format!("{name}: by pages is slower for every message of several pages"),
            slower,
        );
        curves.push((name, points));
    }
    let (above, _) = starts_and_rate(&paper("myvia-b")?, 122_881)?;
    report.value("120 KB and 1 B: DMA transfers", "1", above);
    let mut berkeley = paper("berkeley-b")?;
    berkeley.system.layout = Layout::Contiguous;
    berkeley.system.packet = berkeley.system.largest_dma;
    let (two, _) = starts_and_rate(&berkeley, 122_880)?;
    let what = "Berkeley VIA with contiguous memory and whole packets, 120 KB: DMA transfers";
    report.value(what, "1", two);
    let figure = report.figure(
        "MyVIA with and without contiguous memory",
        message,
        Axis::linear("bandwidth", "MB/s"),
    );
    for (name, [contiguous, pages]) in curves {
        figure.series(format!("{name}, contiguous"), Origin::Model, contiguous);
        figure.series(format!("{name}, by pages"), Origin::Model, pages);
    }
    Ok(())
}
