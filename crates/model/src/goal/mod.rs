//! Schedules of message-passing programs in GOAL, the textual format of LogGOPSim (Hoefler, Schneider, Lumsdaine: "LogGOPSim", 2010).
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
//! | statement | what may follow, in this order |
//! |---|---|
//! | `[LABEL:] send BYTESb to RANK` | `tag N`, `cpu N`, `nic N` |
//! | `[LABEL:] recv BYTESb from RANK` | `tag N`, `cpu N`, `nic N` |
//! | `[LABEL:] calc NANOSECONDS` | `cpu N`, `nic N` |
//! | `LABEL requires LABEL`, `LABEL irequires LABEL` | |
//!
//! Statements end with the line; here also with `;`, or with the brace that ends the rank. Comments are `// ...` and `/* ... */`. Labels are those of one rank.
//! What is not mentioned is 0.

mod parse;

/// An example: four ranks pass something round, and then reduce in a tree.
pub const EXAMPLE: &str = include_str!("example.goal");

/// Ranks beyond this are refused.
pub const MOST_RANKS: u32 = 4096;

/// What all ranks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// By rank; a rank that the text does not have does nothing.
    pub ranks: Vec<Rank>,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Its operations, in the order of the text.
    pub operations: Vec<Operation>,
}

/// Something that a rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub work: Work,
    /// On which of the rank's processors.
    pub cpu: u32,
    /// The line of the text.
    pub line: usize,
    /// Operations of the same rank that must be over before it begins.
    pub requires: Vec<usize>,
    /// Operations of the same rank that must have begun before it begins.
    pub irequires: Vec<usize>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sends.
    Send {
        /// How much.
        bytes: u64,
        /// To which rank.
        to: u32,
        /// Matched by the receiver.
        tag: u32,
    },
    /// Receives.
    Receive {
        /// At most how much.
        bytes: u64,
        /// From which rank; nothing is from any.
        from: Option<u32>,
        /// With which tag; nothing is with any.
        tag: Option<u32>,
    },
    /// Computes.
    Calculate {
        /// For how long.
        ns: u64,
    },
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct GoalError {
    /// Where.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub why: String,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line: what does not belong there, a label that is not defined or defined twice, a rank that is not
    /// there, operations that require each other.
    pub fn read(text: &str) -> Result<Schedule, GoalError> {
        parse::read(text)
    }

    /// All operations with their ranks.
    pub fn operations(&self) -> impl Iterator<Item = (usize, &Operation)> {
        self.ranks
            .iter()
            .enumerate()
            .flat_map(|(rank, all)| all.operations.iter().map(move |operation| (rank, operation)))
    }
}

impl std::fmt::Display for Work {
    /// As a schedule says it.
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
