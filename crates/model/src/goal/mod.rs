//! Schedules of message-passing programs in GOAL, the text format of LogGOPSim (Hoefler, Schneider,
//! Lumsdaine: "LogGOPSim", 2010).
//!
//! ```text
//!   num_ranks 2
//!   rank 0 {
//!     l1: calc 1000 cpu 0              // nanoseconds of work
//!     l2: send 4096b to 1 tag 7
//!     l2 requires l1                   // begins when l1 is over
//!   }
//!   rank 1 {
//!     l1: recv 4096b from 0 tag 7      // -1: from anybody, with any tag
//!     l2: calc 500
//!     l2 irequires l1                  // begins when l1 has begun
//!   }
//! ```
//!
//! | statement | optional parts, in this order |
//! |---|---|
//! | `[LABEL:] send BYTESb to RANK` | `tag N`, `cpu N`, `nic N` |
//! | `[LABEL:] recv BYTESb from RANK` | `tag N`, `cpu N`, `nic N` |
//! | `[LABEL:] calc NANOSECONDS` | `cpu N`, `nic N` |
//! | `LABEL requires LABEL`, `LABEL irequires LABEL` | |
//!
//! Statements end with the line; here also with `;`, or with the brace that ends the rank. Comments
//! are `// ...` and `/* ... */`. Labels are local to a rank. Omitted numbers are 0.

mod parse;

/// An example: four ranks pass data around a ring, and then reduce in a tree.
pub const EXAMPLE: &str = include_str!("example.goal");

/// More ranks are refused.
pub const MOST_RANKS: u32 = 4096;

/// The schedules of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// By rank; a rank that the text omits does nothing.
    pub ranks: Vec<Rank>,
}

/// The schedule of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Its operations, in the order of the text.
    pub operations: Vec<Operation>,
}

/// An operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its kind.
    pub work: Work,
    /// The rank's processor that runs it.
    pub cpu: u32,
    /// Its line in the text.
    pub line: usize,
    /// Operations of the same rank that must end before it begins.
    pub requires: Vec<usize>,
    /// Operations of the same rank that must begin before it begins.
    pub irequires: Vec<usize>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sends.
    Send {
        /// Length in bytes.
        bytes: u64,
        /// Destination rank.
        to: u32,
        /// Tag, matched by the receiver.
        tag: u32,
    },
    /// Receives.
    Receive {
        /// Maximum length in bytes.
        bytes: u64,
        /// Source rank; nothing for any.
        from: Option<u32>,
        /// Tag; nothing for any.
        tag: Option<u32>,
    },
    /// Computes.
    Calculate {
        /// Duration in nanoseconds.
        ns: u64,
    },
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct GoalError {
    /// Line.
    pub line: usize,
    /// The error, and what was expected.
    pub why: String,
}

impl Schedule {
    /// All operations with their ranks.
    pub fn operations(&self) -> impl Iterator<Item = (usize, &Operation)> {
        self.ranks
            .iter()
            .enumerate()
            .flat_map(|(rank, all)| all.operations.iter().map(move |operation| (rank, operation)))
    }
}

impl std::fmt::Display for Work {
    /// In GOAL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let any = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
        match *self {
            Work::Send { bytes, to, tag } => write!(f, "send {bytes}b to {to} tag {tag}"),
            Work::Receive { bytes, from, tag } => {
                write!(f, "recv {bytes}b from {} tag {}", any(from), any(tag))
            }
            Work::Calculate { ns } => write!(f, "calc {ns}"),
        }
    }
}
