//! What is measured: the operations, the sizes, and how a sample's time becomes a figure.

use serde::Serialize;

/// One operation that a contender may know how to run.
///
/// Every contender does the same work for the same word, so that figures may be compared; the comments state that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Two-sided ping-pong: `count` round trips, the receiver posts its receive in advance.
    Latency,
    /// Ping-pong of one-sided writes: each side polls the memory that the other one writes.
    PutLatency,
    /// Two-sided messages in one direction, `count` of them, ended by one message back.
    Rate,
    /// Two-sided messages from [`FAN_IN_SENDERS`] senders into one receiver, which stops after `count` in total.
    FanIn,
    /// Two-sided messages in one direction, from [`STREAM_WINDOW`] source buffers to as many destination buffers in turn,
    /// each message stamped with its number, ended by one message back.
    Stream,
    /// One-sided writes of one source buffer into one destination that the library allocated, until all are complete.
    PutStream,
}

/// Senders in [`Op::FanIn`].
pub const FAN_IN_SENDERS: usize = 8;

/// Buffers on each side, and messages in flight, in [`Op::Stream`].
pub const STREAM_WINDOW: usize = 4;

/// The unit of a figure, and with it which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// One-way nanoseconds; less is better.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Million messages a second; more is better.
    #[serde(rename = "M/s")]
    MillionPerSecond,
    /// 10^9 bytes a second; more is better.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

impl Unit {
    /// The unit as printed.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::MillionPerSecond => "M/s",
            Unit::GigabytesPerSecond => "GB/s",
        }
    }

    /// Whether figure `a` beats figure `b`.
    pub fn better(self, a: f64, b: f64) -> bool {
        if self == Unit::Nanoseconds { a < b } else { a > b }
    }
}

impl Op {
    /// Every operation, in the order of the report.
    pub const ALL: [Op; 6] =
        [Op::Latency, Op::PutLatency, Op::Rate, Op::FanIn, Op::Stream, Op::PutStream];

    /// The operation's word in the line protocol and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Op::Latency => "latency",
            Op::PutLatency => "put_latency",
            Op::Rate => "rate",
            Op::FanIn => "fan_in",
            Op::Stream => "stream",
            Op::PutStream => "put_stream",
        }
    }

    /// The operation of a word; `None` if there is none of that name.
    pub fn from_word(word: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.word() == word)
    }

    /// The unit of this operation's figures.
    pub fn unit(self) -> Unit {
        match self {
            Op::Latency | Op::PutLatency => Unit::Nanoseconds,
            Op::Rate | Op::FanIn => Unit::MillionPerSecond,
            Op::Stream | Op::PutStream => Unit::GigabytesPerSecond,
        }
    }

    /// The figure of a sample: `count` messages of `bytes` took `time_ns`.
    pub fn figure(self, bytes: usize, count: u64, time_ns: u64) -> f64 {
        let (count, time_ns) = (count as f64, time_ns.max(1) as f64);
        match self.unit() {
            // A round trip is two messages one after the other.
            Unit::Nanoseconds => time_ns / (2.0 * count),
            Unit::MillionPerSecond => count / time_ns * 1e3,
            Unit::GigabytesPerSecond => bytes as f64 * count / time_ns,
        }
    }

    /// How long one sample should take. A fan-in needs every sender to be scheduled several times.
    pub fn sample_ns(self) -> u64 {
        if self == Op::FanIn { 250_000_000 } else { 4_000_000 }
    }
}

/// One table of the report: an operation at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Bytes of each message.
    pub bytes: usize,
}

/// Every row, in the order of the report.
pub const ROWS: [Row; 9] = [
    Row { op: Op::Latency, bytes: 8 },
    Row { op: Op::PutLatency, bytes: 8 },
    Row { op: Op::Rate, bytes: 8 },
    Row { op: Op::FanIn, bytes: 8 },
    Row { op: Op::Stream, bytes: 64 << 10 },
    Row { op: Op::Stream, bytes: 1 << 20 },
    Row { op: Op::PutStream, bytes: 64 << 10 },
    Row { op: Op::PutStream, bytes: 1 << 20 },
    Row { op: Op::PutStream, bytes: LARGEST_BYTES },
];

/// The largest message of any row.
pub const LARGEST_BYTES: usize = 16 << 20;

impl Row {
    /// The limits that this row's figures are held against; the best of them counts.
    pub fn yardsticks(self) -> &'static [&'static str] {
        match self.op {
            Op::Latency | Op::Rate | Op::FanIn => &["ring"],
            Op::PutLatency => &["line"],
            Op::Stream => &["copy-straight", "copy-through", "attach"],
            Op::PutStream => &["memcpy", "memcpy-nt"],
        }
    }

    /// The row's heading in the report.
    pub fn title(self) -> String {
        let size = match self.bytes {
            bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
            bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
            bytes => format!("{bytes} B"),
        };
        match self.op {
            Op::Latency => format!("Send, {size}, one way"),
            Op::PutLatency => format!("Put, {size}, one way"),
            Op::Rate => format!("Send rate, {size}, one pair"),
            Op::FanIn => format!("Send rate, {size}, {FAN_IN_SENDERS} senders to 1 receiver"),
            Op::Stream => format!("Send stream, {size}"),
            Op::PutStream => format!("Put stream into library memory, {size}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation's word leads back to it, so that workers and driver speak of the same thing.
    #[test]
    fn words_lead_back() {
        for op in Op::ALL {
            assert_eq!(Op::from_word(op.word()), Some(op));
        }
        assert_eq!(Op::from_word("sleep"), None);
    }

    /// A figure is half a round trip, messages a microsecond, or bytes a nanosecond.
    #[test]
    fn figures_have_their_units() {
        assert_eq!(Op::Latency.figure(8, 10, 2_000), 100.0);
        assert_eq!(Op::Rate.figure(8, 20, 1_000), 20.0);
        assert_eq!(Op::Stream.figure(1 << 10, 10, 1 << 10), 10.0);
        assert!(Op::Latency.unit().better(1.0, 2.0) && Op::Rate.unit().better(2.0, 1.0));
    }
}
