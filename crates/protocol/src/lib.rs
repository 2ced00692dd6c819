//! Protocol state machines without I/O.
#![forbid(unsafe_code)]
