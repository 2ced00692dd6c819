//! Conformance suite, oracles, fault injection and canaries.
