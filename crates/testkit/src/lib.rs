//! Conformance suite, oracles, fault injection and canaries.

pub mod loopback;
