//! Hostile peers. `BELLWIRE_LONG=1` lets each attack last for minutes; `BELLWIRE_SEED` repeats one.

use bellwire_testkit::hostile::{Attack, withstand};
use std::time::Duration;

fn attack(attack: Attack) {
    let seed = std::env::var("BELLWIRE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let long = std::env::var_os("BELLWIRE_LONG").is_some();
    let time = Duration::from_millis(if long { 180_000 } else { 3_000 });
    println!("BELLWIRE_SEED={seed}");
    withstand(attack, time, seed);
}

/// A peer that overwrites the memory of its own link cannot disturb the others.
#[test]
fn scribbling_over_its_own_link() {
    attack(Attack::Pair);
}

/// A peer overwrites everything that it can write, including the victim's pool and doorbell. It
/// cannot crash or hang the victim, nor reach another function of it.
#[test]
fn scribbling_over_everything() {
    attack(Attack::Pool);
}

/// Garbage on the control socket, with any descriptors, cannot disturb the others.
#[test]
fn garbage_on_the_control_socket() {
    attack(Attack::Socket);
}

/// Packets that no engine would send cannot disturb the others.
#[test]
fn garbage_in_packets() {
    attack(Attack::Packets);
}
