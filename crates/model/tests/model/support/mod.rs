//! Readers of formats that the model writes, for tests only.

pub mod perfetto;
