//! One endpoint against a peer whose frames are written here, so that each field can be wrong and
//! each time is exact.

#[path = "by_hand/bench.rs"]
mod bench;
#[path = "by_hand/handshake.rs"]
mod handshake;
#[path = "by_hand/running.rs"]
mod running;
