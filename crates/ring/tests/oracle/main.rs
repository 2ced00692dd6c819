//! The lane on real memory, in two threads, against an oracle.
//!
//! The long run is `cargo run --release -p bellwire-ring --example oracle -- --operations
//! 1000000000`. Under Miri this needs `MIRIFLAGS="-Zmiri-disable-isolation
//! -Zmiri-disable-weak-memory-emulation"`: its emulation of weak memory does not support words that
//! hold a tag at one time and payload at another.
#![cfg(not(loom))]

mod run;

use bellwire_ring::lane::Geometry;
use bellwire_ring::sync::Fences;

const SMALL: Geometry = Geometry { pool_chunks: 6, chunk_lines: 4, small_lines: 3, host_chunks: 2 };

/// Packets of a run. Fewer under Miri, which interprets every step.
const PACKETS: u64 = if cfg!(miri) { 60 } else { 150_000 };
/// Packets of a run in a small pool. It is full after a dozen, and on a busy machine the other side
/// then waits for its turn on a processor.
const PACKETS_IN_SMALL: u64 = if cfg!(miri) { 60 } else { 20_000 };

/// Every packet arrives once, in order and whole, through parkings, sleeps, lack of credit and
/// wrap-around of the counters.
// shows: D-02, D-13, D-16, D-17, D-19
#[test]
fn every_packet_once_in_order() {
    let starts = [0, u64::MAX - 100, 7, u64::from(u32::MAX) - 50];
    let (mut parkings, mut sleeps, mut grants, mut host_fallbacks) = (0, 0, 0, 0);
    for (seed, start) in (1..).zip(starts) {
        for (geometry, packets) in [(SMALL, PACKETS_IN_SMALL), (Geometry::STANDARD, PACKETS)] {
            for fences in [Fences::Symmetric, Fences::Asymmetric] {
                let max_bytes = geometry.packet_bytes();
                let report = run::run(geometry, fences, packets, max_bytes, seed, start);
                parkings += report.parkings;
                sleeps += report.sleeps;
                grants += report.grants;
                host_fallbacks += report.host_fallbacks;
            }
        }
    }
    // The schedule of a single run may skip one of these cases; all runs together cover them.
    if !cfg!(miri) {
        let seen = [parkings, sleeps, grants, host_fallbacks];
        assert!(seen.iter().all(|&count| count > 0), "parkings, sleeps, grants, host: {seen:?}");
    }
}
