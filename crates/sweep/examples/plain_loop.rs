//! A sweep as a plain loop: one thread, no journal, no results. `tools/bench-sweep.sh` compares the
//! command with it.

use bellwire_sweep::Sweep;
use std::time::Instant;

fn main() {
    let file = std::env::args().nth(1).expect("the file of a sweep");
    let text = std::fs::read_to_string(file).expect("the file can be read");
    let sweep = Sweep::read(&text).expect("the file is a sweep");
    let began = Instant::now();
    let failed = (0..sweep.points()).filter(|point| sweep.run(*point).error.is_some()).count();
    let seconds = began.elapsed().as_secs_f64();
    println!("{} {seconds} {failed}", sweep.points());
}
