//! Bellwire: a user-level interconnect. The public API.
