//! The published experiments and the scoreboard of feature rows.
//!
//! Bellwire joins five published systems. Each of their mechanisms, limits and experiments has a
//! *row* with an identity such as C-31 or D-02. So has each system that they compare themselves
//! with. The code that implements a mechanism cites its row in a comment; the test that shows it
//! carries a `shows:` line. From both, this crate computes the state of the project:
//!
//! ```
//! use bellwire_papers::{Paper, Query, State, scoreboard};
//!
//! let query = Query { paper: Some(Paper::ChppNic), state: Some(State::Open) };
//! let board = scoreboard(std::path::Path::new("."), &query)?;
//! println!("{board}"); // a table; serialise `board` for JSON
//! # Ok::<(), bellwire_papers::BoardError>(())
//! ```
//!
//! Read from the bottom up. [`mod@rows`] holds the content of the papers. [`evidence`] finds the
//! project's evidence for it. [`board`] joins the two, [`document`] writes the rows for readers.
//! [`experiments`] lists and runs the papers' experiments, [`mod@contradictions`] lists where
//! papers contradict themselves. [`page`] makes one report of all this. [`promises`] reads the
//! pages that name tests, and [`mod@runs`] knows which tests are run. No mechanism lives here.
#![forbid(unsafe_code)]

pub mod board;
pub mod checkout;
pub mod contradictions;
pub mod document;
pub mod evidence;
pub mod experiments;
pub mod page;
mod paper;
pub mod promises;
pub mod rows;
pub mod runs;

pub use board::{Board, BoardError, Query, State, scoreboard};
pub use evidence::scan;
pub use paper::{Paper, UnknownPaper};
pub use rows::{Row, RowId, rows};
