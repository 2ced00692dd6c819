//! The experiments of the paper, one file each. Each says what it was calibrated on, what it predicts, and what was published.

pub mod single;

pub use single::Kind;
