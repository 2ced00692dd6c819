//! The published experiments and the scoreboard of feature rows.
//!
//! Bellwire joins five published systems. Each of their mechanisms, limits and experiments, and
//! each system that they compare themselves with, has a *row* with an identity such as C-31 or
//! D-02. The code that implements a mechanism cites its row in a comment; the test that shows it
//! carries a `shows:` line. From both, this crate says how far the project has come:
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
//! Read from the bottom up: [`mod@rows`] holds what the papers contain, [`evidence`] finds what the
//! project says of it, [`board`] puts the two together, [`document`] writes the rows out for
//! readers. [`experiments`] lists and runs what reproduces the papers, [`mod@contradictions`] says
//! where these contradict themselves, and [`page`] makes one report of all this. No mechanism lives here.
#![forbid(unsafe_code)]

pub mod board;
pub mod checkout;
pub mod contradictions;
pub mod document;
pub mod evidence;
pub mod experiments;
pub mod page;
mod paper;
pub mod rows;

pub use board::{Board, BoardError, Query, State, scoreboard};
pub use evidence::scan;
pub use paper::{Paper, UnknownPaper};
pub use rows::{Row, RowId, rows};
