//! The published experiments and the scoreboard of feature rows.
#![forbid(unsafe_code)]
