//! The long run against the oracle:
//! `cargo run --release -p bellwire-ring --example oracle -- --operations 1000000000`.
//!
//! An operation is one packet, sent and received. Half of the rounds start just before the counters
//! wrap.

#[cfg(not(loom))]
#[path = "../tests/oracle/run.rs"]
mod run;

#[cfg(not(loom))]
fn main() {
    use bellwire_ring::lane::Geometry;
    use bellwire_ring::sync::Fences;

    let mut arguments = std::env::args().skip(1);
    let operations = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Some(10_000_000),
        (Some("--operations"), Some(number)) => number.parse().ok(),
        _ => None,
    };
    let Some(operations) = operations else {
        eprintln!("usage: oracle [--operations NUMBER]");
        std::process::exit(2);
    };
    let rounds = 40;
    let begin = std::time::Instant::now();
    let mut total = run::Report::default();
    for round in 0..rounds {
        let start = [0, u64::MAX - 1_000, 1 << 40, u64::from(u32::MAX) - 1_000][round % 4];
        let fences = [Fences::Symmetric, Fences::Asymmetric][round / 4 % 2];
        let geometry = match round % 5 {
            0 => Geometry { pool_chunks: 16, chunk_lines: 16, small_lines: 5, host_chunks: 3 },
            _ => Geometry::STANDARD,
        };
        let packets = operations / rounds as u64;
        let report =
            run::run(geometry, fences, packets, geometry.packet_bytes(), round as u64, start);
        total.packets += report.packets;
        total.bytes += report.bytes;
        total.parkings += report.parkings;
        total.sleeps += report.sleeps;
        total.host_fallbacks += report.host_fallbacks;
        total.grants += report.grants;
    }
    println!(
        "{total:?} in {:.1} s: every packet once, in order, whole",
        begin.elapsed().as_secs_f64()
    );
}

#[cfg(loom)]
fn main() {}
