//! Shared-memory rings: the only place that names atomics.
