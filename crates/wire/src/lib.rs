//! Byte layouts that cross a process, bus or network boundary.
#![forbid(unsafe_code)]
