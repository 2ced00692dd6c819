//! Sweeps: one run of a model for each point of a grid, a list, or a sample of its parameters.
//!
//! - [`Sweep`] reads a file, and knows the parameters and the seed of each point by its number;
//! - [`run()`] runs points on threads;
//! - [`Row`] is the result of a point;
//! - [`Journal`] keeps rows on disk, so that a killed sweep goes on where it stopped;
//! - [`front`] and [`effect`] look for good points, and for the parameters that matter;
//! - [`page`] draws results.
//!
//! A row depends on the file and the number of its point alone. So it does not matter where a point
//! runs, or how often. Whatever distributes points needs their numbers only.

#![forbid(unsafe_code)]

mod axis;
mod cell;
pub mod effect;
mod example;
pub mod front;
mod journal;
mod layout;
mod number;
pub mod page;
mod row;
mod run;
mod sweep;

pub use cell::{Cell, Column, Kind};
pub use example::EXAMPLE;
pub use journal::{Journal, JournalError};
pub use row::Row;
pub use run::run;
pub use sweep::{Sweep, SweepError};

/// The version that a row names.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
