//! The lane natively, in two threads, against an oracle.
//!
//! The long run is `cargo run --release -p bellwire-ring --example oracle -- --operations 1000000000`. Under Miri this needs
//! `MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation"`: its emulation of weak memory gives up on lines
//! that carry now a tag, now payload.
#![cfg(not(loom))]

mod run;

use bellwire_ring::lane::Geometry;
use bellwire_ring::sync::Fences;

const SMALL: Geometry = Geometry { pool_chunks: 6, chunk_lines: 4, small_lines: 3, host_chunks: 2 };

/// Packets of the test's size; fewer where every step is interpreted.
const PACKETS: u64 = if cfg!(miri) { 60 } else { 150_000 };

/// Every packet arrives once, in order and whole, through parkings, sleeps, want of credit and wrap-around of the counters.
// shows: D-02, D-13, D-16, D-17, D-19
#[test]
fn every_packet_once_in_order() {
    let starts = [0, u64::MAX - 100, 7, u64::from(u32::MAX) - 50];
    for (seed, start) in (1..).zip(starts) {
        for geometry in [SMALL, Geometry::STANDARD] {
            for fences in [Fences::Symmetric, Fences::Asymmetric] {
                let max_bytes = geometry.packet_bytes();
                let report = run::run(geometry, fences, PACKETS, max_bytes, seed, start);
                if !cfg!(miri) {
                    assert!(report.parkings > 0 && report.sleeps > 0, "{report:?}");
                    assert!(report.grants > 100 && report.went_host > 0, "{report:?}");
                }
            }
        }
    }
}
