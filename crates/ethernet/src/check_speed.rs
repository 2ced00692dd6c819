//! Which way to compute check values is quicker on this processor, as measured.
//!
//! What a processor says about its instructions does not tell their speed: an emulated one carries
//! CRC-32C out bit by bit, and is five times as quick with tables.

use bellwire_wire::frame::check;
use std::hint::black_box;
use std::sync::Once;
use std::time::{Duration, Instant};

/// Bytes of a measurement. A real processor takes 10 us for the whole of it.
const BYTES: usize = 8192;
/// The best of this many counts.
const ROUNDS: usize = 3;

/// Measures once in a process, and chooses.
pub(crate) fn choose() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let bytes = [0x5a; BYTES];
        if is_much_quicker(time(&bytes, check::by_table), time(&bytes, check::by_instruction)) {
            check::prefer_table();
        }
    });
}

/// The shortest time that `way` takes.
fn time(bytes: &[u8], way: fn(&[u8]) -> u32) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        black_box(way(black_box(bytes)));
        begin.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

/// Whether the tables win by so much that it is no accident: on a real processor they take ten
/// times as long.
fn is_much_quicker(table: Duration, instruction: Duration) -> bool {
    table * 2 < instruction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables need half of the instruction's time or less.
    #[test]
    fn tables_have_to_win_clearly() {
        let ns = Duration::from_nanos;
        assert!(is_much_quicker(ns(2300), ns(10_700)));
        assert!(is_much_quicker(ns(499), ns(1000)));
        assert!(!is_much_quicker(ns(500), ns(1000)));
        assert!(!is_much_quicker(ns(700), ns(70)));
        choose();
    }
}
