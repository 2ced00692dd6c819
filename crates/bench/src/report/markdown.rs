//! The report as Markdown: docs/performance.md, and the terminal's output.

use super::{Line, Report, best};
use crate::contenders::{Contender, Kind};
use crate::distance::Distance;
use crate::op::{MEMORY_ROWS, NETWORK_ROWS, Op, Row, Unit};
use crate::statistics::Summary;

/// The whole report. `all` are the available contenders, for the list of contenders.
pub fn markdown(report: &Report, all: &[Contender]) -> String {
    let mut text = String::from("# Performance\n\n");
    text += &format!(
        "Made by `{}`. Do not edit by hand: the next run writes it anew.\n\n",
        report.command
    );
    text += "Every figure is the median of short samples on two pinned CPUs, in one run. Contenders and rows\n\
             take turns, in rounds. Each contender is two processes that sleep while others are measured.\n\
             Latencies are half a round trip. Receivers check that every message is the expected one. Streams\n\
             go from 4 source buffers to 4 destination buffers in turn.\n\n\
             [performance-model.md](performance-model.md) says how fast the model simulates, beside BookSim2.\n\n";
    text += &machine(report);
    text += &goals(report);
    for &row in MEMORY_ROWS {
        text += &row_table(report, row);
    }
    if report.rows.iter().any(|line| NETWORK_ROWS.contains(&line.row)) {
        text += NETWORK;
    }
    for &row in NETWORK_ROWS {
        text += &row_table(report, row);
    }
    text += &who(report, all);
    text
}

/// The text before the tables of the network.
const NETWORK: &str = "## The network\n\n\
    Each contender has a veth pair of its own between two network namespaces, with frames of 1500\n\
    bytes or jumbo frames of 9000. Several wires are two wires that a token bucket holds to 1 Gbit/s\n\
    each, because two CPUs cannot fill two faster ones. The two processes are on two CPUs and spin,\n\
    unless a table says that they sleep. One send in the kernel carries a frame through both sides of\n\
    a veth pair, so the cost is per frame, not per byte. Receivers check beginning and end of every\n\
    message. The raw limits have no protocol: a lost frame would end them.\n\n";

fn machine(report: &Report) -> String {
    let mut text = String::from("## The machine\n\n");
    for line in report.machine.lines() {
        text += &format!("- {line}\n");
    }
    let line = |summary: &Option<Summary>| match summary {
        Some(summary) => format!("{:.0} ns", summary.median),
        None => "never seen".to_string(),
    };
    let distances = &report.distances;
    text += &format!(
        "\nOn a virtual machine two CPUs are at times near and at times far. A ping-pong on one cache line\n\
         before and after each sample measures it: below {} ns one way in both is near, above {} ns in\n\
         both is far. Other samples are not used. In this run of {} rounds {} samples were near (the line\n\
         took {}), {} far ({}), and {} neither.\n\n",
        distances.near_below_ns,
        distances.far_above_ns,
        report.rounds,
        distances.near_samples,
        line(&distances.near_line),
        distances.far_samples,
        line(&distances.far_line),
        distances.unclear_samples,
    );
    text
}

fn goals(report: &Report) -> String {
    let cell = |ratio: &Option<super::goals::Ratio>| match ratio {
        Some(ratio) => {
            let verdict = if ratio.met { "met" } else { "MISSED" };
            format!("{:.2} ({}), {verdict}", ratio.ratio, ratio.against)
        }
        None => "not measured".to_string(),
    };
    let rows = report
        .goals
        .iter()
        .map(|goal| vec![goal.what.clone(), goal.bound.clone(), cell(&goal.near), cell(&goal.far)]);
    format!(
        "## Goals\n\nThe figure is Bellwire's median divided by the other one's, in the same class. Without another\n\
         one it is Bellwire's median.\n\n{}\n",
        table(&["Bellwire's ... / ...", "goal", "near", "far"], rows)
    )
}

fn row_table(report: &Report, row: Row) -> String {
    let lines: Vec<&Line> = report.rows.iter().filter(|line| line.row == row).collect();
    if lines.is_empty() {
        return String::new();
    }
    let unit = row.op.unit().symbol();
    let decimals = match row.op.unit() {
        Unit::Nanoseconds => 0,
        _ if row.wire.mtu().is_some() => 2,
        _ => 1,
    };
    let figure = |summary: Option<Summary>| match summary {
        Some(s) => [
            format!("{:.decimals$}", s.median),
            format!("{:.decimals$} - {:.decimals$}", s.p25, s.p75),
            s.samples.to_string(),
        ],
        None => ["-".to_string(), "-".to_string(), "0".to_string()],
    };
    let ratio = |line: &Line, distance| {
        let limit =
            best(&report.rows, row, distance, |line| row.yardsticks().contains(&line.contender))?;
        Some(format!("{:.2}", line.at(distance)?.median / limit.0))
    };
    let rows = lines.iter().map(|line| {
        let [near, near_spread, near_samples] = figure(line.near);
        let [far, far_spread, far_samples] = figure(line.far);
        let ratios =
            Distance::REPORTED.map(|at| ratio(line, at).unwrap_or_else(|| "-".to_string()));
        vec![
            line.contender.to_string(),
            near,
            near_spread,
            far,
            far_spread,
            ratios.join(" / "),
            format!("{near_samples} / {far_samples}"),
        ]
    });
    let (near, far) = (format!("near, {unit}"), format!("far, {unit}"));
    let over = match row.yardsticks() {
        [] => "-".to_string(),
        [one] => format!("/ {one}"),
        _ => "/ best limit".to_string(),
    };
    let mut text = format!("## {}\n\n", row.title());
    text += &table(&["", &near, "p25 - p75", &far, "p25 - p75", &over, "samples"], rows);
    for line in lines.iter().filter(|line| row.op == Op::FanIn && !line.shares.is_empty()) {
        let fair = 1.0 / line.shares.len() as f64;
        let shares: Vec<String> =
            line.shares.iter().map(|share| format!("{:.2}", share / fair)).collect();
        text += &format!(
            "\nShares of {} (1 is fair, over all samples): {}\n",
            line.contender,
            shares.join(" ")
        );
    }
    text + "\n"
}

fn who(report: &Report, all: &[Contender]) -> String {
    let rows = all.iter().map(|contender| {
        let kind = match contender.kind {
            Kind::Limit => "limit",
            Kind::Bellwire => "Bellwire",
            Kind::Peer => "peer",
        };
        let about = report.rows.iter().find(|line| line.contender == contender.name);
        let about = about.map_or(contender.about, |line| line.about.as_str());
        vec![contender.name.to_string(), kind.to_string(), about.to_string()]
    });
    let mut text = format!("## Who is who\n\n{}", table(&["name", "kind", "what"], rows));
    if !report.not_measured.is_empty() {
        text += "\nNot measured, or not to the end:\n\n";
        for missing in &report.not_measured {
            text += &format!("- {}: {}\n", missing.contender, missing.why);
        }
    }
    text
}

/// A Markdown table with padded columns, so that its source is readable.
fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let header = header.iter().map(|cell| cell.to_string()).collect();
    let mut rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3))
        .collect();
    rows.insert(1, widths.iter().map(|&width| "-".repeat(width)).collect());
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table's columns are as wide as their widest cell.
    #[test]
    fn columns_are_padded() {
        let text = table(&["a", "b"], [vec!["long one".to_string(), "1".to_string()]].into_iter());
        assert_eq!(text, "| a        | b   |\n| -------- | --- |\n| long one | 1   |\n");
    }
}
