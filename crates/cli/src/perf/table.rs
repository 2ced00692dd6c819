//! The figures as tables for people.

use super::order::{Op, WaitMode};
use super::report::{Ratios, Report};
use crate::command::word;
use crate::units::{bandwidth, bytes, rate, ratio, time};

/// Prints all tables, and what to try next.
pub fn print(report: &Report) {
    print_head(report);
    print_latency(report);
    print_streams(report);
    if report.pairs > 1 {
        println!("What stands to the right of the bar is of one pair alone.");
        print_shares(report);
    }
    print_foot(report);
}

/// Smaller sizes show a stream in messages per second, this size and larger ones in bytes per
/// second.
const BANDWIDTH_FROM_BYTES: usize = 4096;

/// Interruptions of a run on a quiet machine.
const INTERRUPTIONS_NORMAL: u64 = 100;

fn print_head(report: &Report) {
    let Report { carried_by, wait, pairs, affinity, .. } = report;
    println!("{carried_by}");
    let waiting = match wait {
        WaitMode::Spin => "both sides spin",
        WaitMode::Adaptive => "both sides spin for 50 us, then sleep",
        WaitMode::Block => "both sides sleep while they wait",
    };
    let pairs = if *pairs == 1 { "1 pair".to_owned() } else { format!("{pairs} pairs at once") };
    if let Some(simulated) = &report.simulated {
        println!(
            "Both sides in this process, {pairs}, {waiting}. ALL TIMES ARE VIRTUAL: those of the simulated machine, not of this computer."
        );
        println!(
            "{} of virtual time, {} packets, {} events, trace {:016x}.",
            time(simulated.virtual_ns),
            simulated.packets,
            simulated.events,
            simulated.trace_hash
        );
        return;
    }
    match (&affinity.leader_cpus[..], &affinity.follower_cpus[..]) {
        ([], _) | (_, []) => println!("Two processes on no CPU in particular, {pairs}, {waiting}."),
        (ours, theirs) => {
            println!("Two processes on CPUs {ours:?} and {theirs:?}, {pairs}, {waiting}.")
        }
    }
    if let Some(line) = report.limits.as_ref().and_then(|limits| limits.line_ns.as_ref()) {
        println!(
            "Between these CPUs a cache line takes {} (fastest {}, slowest of 100 {}): nothing can be faster.",
            time(line.p50),
            time(line.min),
            time(line.p99)
        );
    }
    if report.interruptions > INTERRUPTIONS_NORMAL {
        println!(
            "Other programs took our CPU away {} times meanwhile: the slow figures are theirs.",
            report.interruptions
        );
    }
}

fn print_latency(report: &Report) {
    println!(
        "\n{}LATENCY of one message, one way: the middle one, and the slowest of 100",
        virtual_word(report)
    );
    let mut table = Table::new(report);
    table.heading("send", 2);
    table.heading("put", 2);
    table.heading("get*", 2);
    if report.limits.is_some() {
        table.plain(&["cache line", "Unix", "TCP", "vs Unix"]);
    }
    for size in report.sizes() {
        table.begin(size);
        let mut line = None;
        for op in &table.ops.clone() {
            let row = report.row(*op, size);
            line = line.or(row.and_then(|row| row.line_ns).map(|line| line.p50));
            table.cell(row.map(|row| time(row.latency_ns.p50)));
            table.cell(row.map(|row| time(row.latency_ns.p99)));
        }
        let Some(limit) = report.limit(size) else { continue };
        table.cell(line.map(time));
        table.cell(Some(time(limit.unix.latency_ns.p50)));
        table.cell(Some(time(limit.tcp.latency_ns.p50)));
        table.cell(table.ratios(report, size).map(|ratios| ratio(ratios.unix_latency)));
    }
    table.print();
    if report.row(Op::Get, report.rows[0].bytes).is_some() {
        println!("* of a get the whole operation: there and back");
    }
}

fn print_streams(report: &Report) {
    println!(
        "\n{}STREAM of many messages: how many a second, and from 4 KiB on how many bytes",
        virtual_word(report)
    );
    let mut table = Table::new(report);
    table.heading("send", 1);
    table.heading("put", 1);
    table.heading("get", 1);
    if report.limits.is_some() {
        table.plain(&["memcpy", "Unix", "TCP", "vs Unix"]);
    }
    for size in report.sizes() {
        table.begin(size);
        let show = |per_s: f64| {
            if size < BANDWIDTH_FROM_BYTES { rate(per_s) } else { bandwidth(per_s * size as f64) }
        };
        for op in &table.ops.clone() {
            let row = report.row(*op, size);
            table.cell(row.map(|row| show(row.rate_msgs_per_s)));
        }
        let Some(limit) = report.limit(size) else { continue };
        table.cell(Some(show(limit.memcpy_bytes_per_s / size as f64)));
        table.cell(Some(show(limit.unix.rate_msgs_per_s)));
        table.cell(Some(show(limit.tcp.rate_msgs_per_s)));
        table.cell(table.ratios(report, size).map(|ratios| ratio(ratios.unix_rate)));
    }
    table.print();
}

/// The prefix of headings of virtual times.
fn virtual_word(report: &Report) -> &'static str {
    if report.simulated.is_some() { "VIRTUAL " } else { "" }
}

fn print_shares(report: &Report) {
    println!("\nSHARES of the pairs in these streams: the smallest and the largest");
    for row in &report.rows {
        let rates = &row.pair_rates_msgs_per_s;
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        println!(
            "{:>9}  {:<5} {:>10} {:>10}",
            bytes(row.bytes as u64),
            word(&row.op),
            rate(least),
            rate(most)
        );
    }
}

fn print_foot(report: &Report) {
    let compared: u64 = report.rows.iter().map(|row| row.compared_messages).sum();
    println!(
        "\nAll data was right: every byte of {compared} messages, and the number in each timed message, were checked."
    );
    println!("The same again:  {}", report.command);
    println!("Try next:        {}", next(report));
}

/// The suggestion for the next command.
fn next(report: &Report) -> &'static str {
    if report.simulated.is_some() {
        "bellwire model explain        (where the time of one operation goes)"
    } else if report.pairs > 1 {
        "bellwire perf --json          (all figures, for a program)"
    } else if report.wait == WaitMode::Spin {
        "bellwire perf --wait block    (both sides sleep while they wait: what does that cost?)"
    } else {
        "bellwire perf --pairs 4       (several pairs at once)"
    }
}

/// Columns of equal width under headings that may span several.
struct Table {
    /// The measured operations, in the order of the columns.
    ops: Vec<Op>,
    head: String,
    lines: Vec<String>,
}

const CELL: usize = 11;

impl Table {
    fn new(report: &Report) -> Table {
        let measured = |op: &Op| report.rows.iter().any(|row| row.op == *op);
        let ops = [Op::Send, Op::Put, Op::Get].into_iter().filter(measured).collect();
        Table { ops, head: format!("{:>9}", "size"), lines: Vec::new() }
    }

    /// The heading over `columns` columns of an operation, if it was measured.
    fn heading(&mut self, text: &str, columns: usize) {
        if self.ops.iter().any(|op| text.starts_with(&word(op))) {
            self.head += &format!("{text:>CELL$}{:1$}", "", (columns - 1) * CELL);
        }
    }

    fn plain(&mut self, texts: &[&str]) {
        self.head += "  |";
        for text in texts {
            self.head += &format!("{text:>CELL$}");
        }
    }

    fn begin(&mut self, size: usize) {
        self.lines.push(format!("{:>9}", bytes(size as u64)));
    }

    fn cell(&mut self, text: Option<String>) {
        let text = text.unwrap_or_else(|| "-".into());
        if let Some(line) = self.lines.last_mut() {
            // Keep the bar in the same column as in the head.
            if self.head[line.len()..].starts_with("  |") {
                line.push_str("  |");
            }
            line.push_str(&format!("{text:>CELL$}"));
        }
    }

    /// The ratios in the last column: those of sends if there are any.
    fn ratios<'a>(&self, report: &'a Report, bytes: usize) -> Option<&'a Ratios> {
        report.row(*self.ops.first()?, bytes)?.ratios.as_ref()
    }

    fn print(self) {
        println!("{}", self.head);
        for line in self.lines {
            println!("{line}");
        }
    }
}
