//! What the cHPP model costs: processor time for a message of 128 bytes through the whole interface, and for a packet of a long PUT.
//!
//! `cargo run --release -p bellwire-model --example chpp_cost`

use std::time::Instant;

use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::stream::stream;

fn main() -> Result<(), String> {
    let config = Config::prototype();
    for (kind, bytes, count, unit, of_each) in [
        (Kind::Put, 128, 100_000, "PUT of 128 B", 1),
        (Kind::NapIndirect, 128, 100_000, "indirect NAP of 128 B", 1),
        (Kind::NapImmediate, 128, 100_000, "immediate NAP of 128 B", 1),
        (Kind::Get, 128, 100_000, "GET of 128 B", 1),
        (Kind::Put, 1 << 20, 32, "packet of 128 B of a PUT of 1 MiB", 8192),
    ] {
        let began = Instant::now();
        let run = stream(&config, kind, bytes, 32.min(count), count)?;
        let each = began.elapsed().as_nanos() as f64 / (count * of_each) as f64;
        println!(
            "{each:>8.0} ns, {:.1} events for each {unit}; trace {:016x}",
            run.events as f64 / (count * of_each) as f64,
            run.trace_hash
        );
    }
    Ok(())
}
