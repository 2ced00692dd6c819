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
    let (mut parkings, mut sleeps, mut grants, mut went_host) = (0, 0, 0, 0);
    for (seed, start) in (1..).zip(starts) {
        for geometry in [SMALL, Geometry::STANDARD] {
            for fences in [Fences::Symmetric, Fences::Asymmetric] {
                let max_bytes = geometry.packet_bytes();
                let report = run::run(geometry, fences, PACKETS, max_bytes, seed, start);
                parkings += report.parkings;
                sleeps += report.sleeps;
                grants += report.grants;
                went_host += report.went_host;
            }
        }
    }
    // A single run may be so scheduled that it never comes to one of these; all of them together are not.
    if !cfg!(miri) {
        let seen = [parkings, sleeps, grants, went_host];
        assert!(seen.iter().all(|&count| count > 0), "parkings, sleeps, grants, host: {seen:?}");
    }
}
