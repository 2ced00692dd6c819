//! The operations, the sizes, and the figure of a sample's time.

use clap::ValueEnum;
use serde::Serialize;

/// One operation that a contender may know how to run.
///
/// Every contender does the same work for the same word, so that figures are comparable; the
/// comments define that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Op {
    /// Two-sided ping-pong: `count` round trips, the receiver posts its receive in advance.
    Latency,
    /// Ping-pong of one-sided writes: each side polls the memory that the other one writes.
    PutLatency,
    /// Two-sided messages in one direction, `count` of them, ended by one message back.
    Rate,
    /// As [`Op::Rate`], posted [`BATCH`] at a time with one call.
    BatchRate,
    /// Two-sided messages from [`FAN_IN_SENDERS`] senders to one receiver, which stops after
    /// `count` in total.
    FanIn,
    /// Two-sided messages in one direction, from [`STREAM_WINDOW`] source buffers to as many
    /// destination buffers in turn. Each message is stamped with its number, and one message back
    /// ends the stream.
    Stream,
    /// One-sided writes from one source buffer to one destination that the library allocated, until
    /// all are complete.
    PutStream,
    /// As [`Op::PutStream`], with small writes.
    PutRate,
    /// As [`Op::Latency`], but both sides sleep in the kernel until their message arrives.
    BlockingLatency,
    /// Two-sided messages at random times to the leader, at half of a line of 1 Gbit/s. The time is
    /// the delay that one of 1,000 messages exceeds, from when it was due to when it was taken.
    Tail,
    /// Both sides sleep in the kernel for a message that does not come, `count` milliseconds. The
    /// time is the leader's processor time meanwhile.
    Idle,
}

/// Messages of one call in [`Op::BatchRate`].
pub const BATCH: usize = 16;

/// The mean time between messages of [`Op::Tail`], for each of their bytes, in ns.
pub const HALF_LOAD_NS_PER_BYTE: f64 = 16.0;

/// Messages of a sample of [`Op::Tail`]: two are slower than its figure. They take 33 ms, so that
/// in most samples no other program had a time slice.
pub const TAIL_MESSAGES: u64 = 2_000;

pub const FAN_IN_SENDERS: usize = 8;

/// Buffers on each side, and messages in flight, in [`Op::Stream`].
pub const STREAM_WINDOW: usize = 4;

/// The unit of a figure; it decides whether more or less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// One-way nanoseconds; less is better.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Millions of messages per second; more is better.
    #[serde(rename = "M/s")]
    MillionPerSecond,
    /// 10^9 bytes per second; more is better.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// Hundredths of one processor; less is better.
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::MillionPerSecond => "M/s",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::Percent => "%",
        }
    }

    /// Whether figure `a` beats figure `b`.
    pub fn better(self, a: f64, b: f64) -> bool {
        if matches!(self, Unit::Nanoseconds | Unit::Percent) { a < b } else { a > b }
    }
}

impl Op {
    /// The operation's word in the line protocol and in JSON.
    pub fn word(self) -> String {
        self.to_possible_value().expect("no operation is skipped").get_name().to_owned()
    }

    /// The operation of a word; `None` for an unknown word.
    pub fn from_word(word: &str) -> Option<Op> {
        Op::from_str(word, false).ok()
    }

    /// The unit of this operation's figures.
    pub fn unit(self) -> Unit {
        match self {
            Op::Latency | Op::PutLatency | Op::BlockingLatency | Op::Tail => Unit::Nanoseconds,
            Op::Rate | Op::BatchRate | Op::FanIn | Op::PutRate => Unit::MillionPerSecond,
            Op::Stream | Op::PutStream => Unit::GigabytesPerSecond,
            Op::Idle => Unit::Percent,
        }
    }

    /// The figure of a sample: `count` messages of `bytes` took `time_ns`.
    pub fn figure(self, bytes: usize, count: u64, time_ns: u64) -> f64 {
        let (count, time_ns) = (count as f64, time_ns.max(1) as f64);
        match self.unit() {
            Unit::Nanoseconds if self == Op::Tail => time_ns,
            // A round trip is two messages in sequence.
            Unit::Nanoseconds => time_ns / (2.0 * count),
            Unit::MillionPerSecond => count / time_ns * 1e3,
            Unit::GigabytesPerSecond => bytes as f64 * count / time_ns,
            Unit::Percent => time_ns / (count * 1e6) * 1e2,
        }
    }
}

/// The connection of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    Memory,
    /// A veth pair between two network namespaces, frames of 1500 bytes.
    Frames1500,
    /// A veth pair with jumbo frames, 9000 bytes.
    Frames9000,
    /// Two veth pairs with frames of 1500 bytes, limited to 1 Gbit/s each: two processors cannot
    /// drive two fast ones.
    Slow,
}

impl Wire {
    /// The interface's MTU in bytes; `None` for shared memory.
    pub fn mtu(self) -> Option<usize> {
        match self {
            Wire::Memory => None,
            Wire::Frames1500 => Some(1500),
            Wire::Frames9000 => Some(9000),
            Wire::Slow => Some(1500),
        }
    }
}

/// One table of the report: an operation at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Row {
    /// The connection of the two processes.
    pub wire: Wire,
    pub op: Op,
    /// Bytes of each message.
    pub bytes: usize,
}

const fn memory(op: Op, bytes: usize) -> Row {
    Row { wire: Wire::Memory, op, bytes }
}

const fn frames(op: Op, bytes: usize) -> Row {
    Row { wire: Wire::Frames1500, op, bytes }
}

/// A row of the network with jumbo frames.
const fn jumbo(op: Op, bytes: usize) -> Row {
    Row { wire: Wire::Frames9000, op, bytes }
}

/// Every row of shared memory, in the order of the report.
pub const MEMORY_ROWS: &[Row] = &[
    memory(Op::Latency, 8),
    memory(Op::PutLatency, 8),
    memory(Op::PutRate, 8),
    memory(Op::Rate, 8),
    memory(Op::BatchRate, 8),
    memory(Op::FanIn, 8),
    memory(Op::Stream, 64 << 10),
    memory(Op::Stream, 1 << 20),
    memory(Op::PutStream, 64 << 10),
    memory(Op::PutStream, 1 << 20),
    memory(Op::PutStream, LARGEST_BYTES),
];

/// Every row of the network, in the order of the report.
pub const NETWORK_ROWS: &[Row] = &[
    frames(Op::Latency, 8),
    frames(Op::Latency, 128),
    frames(Op::Latency, PAPER_BYTES),
    frames(Op::Latency, 4 << 10),
    frames(Op::BlockingLatency, 8),
    frames(Op::Rate, 8),
    frames(Op::Rate, PAPER_BYTES),
    frames(Op::Stream, 64 << 10),
    frames(Op::Stream, 1 << 20),
    jumbo(Op::Latency, 4 << 10),
    jumbo(Op::Stream, 64 << 10),
    jumbo(Op::Stream, 1 << 20),
    Row { wire: Wire::Slow, op: Op::Stream, bytes: 1 << 20 },
    Row { wire: Wire::Slow, op: Op::Tail, bytes: 1 << 10 },
    frames(Op::Idle, 8),
];

/// The longest message in the HPCL/Ethernet paper's measurements, in bytes.
pub const PAPER_BYTES: usize = 1196;

/// The largest message of any row, in bytes.
pub const LARGEST_BYTES: usize = 16 << 20;

impl Row {
    /// Target duration of one sample. A fan-in must schedule every sender several times, and a
    /// megabyte takes longer on a network.
    pub fn sample_ns(self) -> u64 {
        match (self.op, self.wire) {
            (Op::FanIn, _) => 250_000_000,
            (Op::Idle, _) => 3_000_000_000,
            (_, Wire::Slow) => 100_000_000,
            (Op::Stream, Wire::Frames1500 | Wire::Frames9000) => 12_000_000,
            _ => 4_000_000,
        }
    }

    /// The limits that this row's figures are compared with; the best one counts.
    pub fn yardsticks(self) -> &'static [&'static str] {
        match (self.wire, self.op) {
            (Wire::Memory, Op::Latency | Op::Rate | Op::BatchRate | Op::FanIn) => &["ring"],
            (Wire::Memory, Op::PutLatency) => &["line"],
            (Wire::Memory, Op::PutRate) => &[],
            (Wire::Memory, Op::Stream) => &["copy-straight", "copy-through", "attach"],
            (Wire::Memory, _) => &["memcpy", "memcpy-nt"],
            (Wire::Slow, Op::Tail) => &["tcp"],
            (Wire::Slow, _) => &["bellwire-eth-one"],
            (_, Op::BlockingLatency) => &["tcp"],
            (_, Op::Idle) => &[],
            _ => &["raw-xdp", "raw-packet", "raw-udp"],
        }
    }

    /// The row's heading in the report.
    pub fn title(self) -> String {
        let size = match self.bytes {
            bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
            bytes if bytes >= 4 << 10 => format!("{} KiB", bytes >> 10),
            bytes => format!("{bytes} B"),
        };
        let title = match self.op {
            Op::Latency => format!("Send, {size}, one way"),
            Op::PutLatency => format!("Put, {size}, one way"),
            Op::Rate => format!("Send rate, {size}, one pair"),
            Op::BatchRate => format!("Send rate, {size}, one pair, posted {BATCH} at a time"),
            Op::FanIn => format!("Send rate, {size}, {FAN_IN_SENDERS} senders to 1 receiver"),
            Op::Stream => format!("Send stream, {size}"),
            Op::PutRate => format!("Put rate into library memory, {size}"),
            Op::PutStream => format!("Put stream into library memory, {size}"),
            Op::BlockingLatency => format!("Send, {size}, one way, both sides asleep meanwhile"),
            Op::Tail => format!("Send, {size}, at random times, half load, 99.9 % are faster"),
            Op::Idle => "Processor time of a process that waits asleep".to_string(),
        };
        match self.wire {
            Wire::Memory => title,
            Wire::Frames1500 => format!("Network: {title}"),
            Wire::Frames9000 => format!("Network, jumbo frames: {title}"),
            Wire::Slow => format!("Network, wires of 1 Gbit/s: {title}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation's word leads back to it, so workers and driver agree.
    #[test]
    fn words_lead_back() {
        for &op in Op::value_variants() {
            assert_eq!(Op::from_word(&op.word()), Some(op));
        }
        assert_eq!(Op::from_word("sleep"), None);
    }

    /// A figure is half a round trip, messages per microsecond, or bytes per nanosecond.
    #[test]
    fn figures_have_their_units() {
        assert_eq!(Op::Latency.figure(8, 10, 2_000), 100.0);
        assert_eq!(Op::Rate.figure(8, 20, 1_000), 20.0);
        assert_eq!(Op::Stream.figure(1 << 10, 10, 1 << 10), 10.0);
        assert_eq!(Op::Tail.figure(1 << 10, 10, 2_000), 2_000.0);
        assert!(Op::Latency.unit().better(1.0, 2.0) && Op::Rate.unit().better(2.0, 1.0));
    }
}
