//! Hostile peers: a process of the same user that follows the protocol up to a point, and then
//! attacks.
//!
//! The *victim* runs alone in its process: two nodes that exchange messages, puts and gets without
//! a pause. They also talk to the attacker, whatever the result. The victim starts the *attacker*,
//! and ends when the attacker has ended.
//!
//! | attack | what the attacker does | the victim's other traffic |
//! |---|---|---|
//! | [`Attack::Pair`] | writes random bytes over the memory of its own link | is right |
//! | [`Attack::Pool`] | the same, and over the victim's doorbell and pool | goes on (see below) |
//! | [`Attack::Socket`] | sends wrong records and descriptors, hangs up, keeps silent | is right |
//! | [`Attack::Packets`] | sends random headers and payloads through a proper link | is right |
//!
//! The memory of a link is its control blocks, its host chunks, the attacker's pool and its board.
//! Attacks on the socket come at every stage. Under [`Attack::Pool`] the victim stays alive.
//! Another function of the same node works right, and all functions do once the attacked one was
//! opened anew.
//!
//! All senders of a function share its pool. So a process that can write to it can alter what other
//! peers of *this function* send while that lies there. It can also suppress the function's
//! wake-ups. That is the price of credits without private reserves; functions do not share pools.

mod attacker;
mod socket;
mod victim;

use crate::conformance::child::{DEVICE, Process, ROLE, told};
use crate::conformance::{Fixture, Named};
use std::time::Duration;

/// What the attacker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attack {
    /// Writes random words over its own link's memory.
    Pair,
    /// Also over the victim's pool and doorbell.
    Pool,
    /// Garbage on the control socket.
    Socket,
    /// Garbage in packets.
    Packets,
}

/// Role of the process under attack.
const VICTIM: &str = "victim";
/// Role of the process that attacks.
const ATTACKER: &str = "attacker";
/// Names the attack.
const ATTACK: &str = "BELLWIRE_TEST_ATTACK";
/// Gives the duration, in milliseconds.
const TIME_MS: &str = "BELLWIRE_TEST_TIME_MS";
/// Seeds the attacker's random choices.
const SEED: &str = "BELLWIRE_TEST_SEED";

/// Runs one attack for `time`. Panics if the victim panics, hangs, crashes or loses anything that
/// it must not lose.
pub fn withstand(attack: Attack, time: Duration, seed: u64) {
    let network = Named::new("shm");
    let (attack, time, seed) =
        (format!("{attack:?}"), time.as_millis().to_string(), seed.to_string());
    let environment = [
        (ROLE, VICTIM),
        (DEVICE, network.name().expect("a name")),
        (ATTACK, &attack),
        (TIME_MS, &time),
        (SEED, &seed),
    ];
    let mut victim = Process::start("hostile", &environment);
    let limit = Duration::from_millis(time.parse().expect("a number"));
    let status = victim.end_within(3 * limit + 2 * crate::conformance::patience::limit());
    assert!(status.success(), "{attack}, seed {seed}: the victim ended with {status}");
}

/// Plays the role that the environment names.
pub fn play() {
    let attacks = [Attack::Pair, Attack::Pool, Attack::Socket, Attack::Packets];
    let name = told(ATTACK);
    let attack = attacks.into_iter().find(|attack| format!("{attack:?}") == name);
    let attack = attack.expect("a known attack");
    match told(ROLE).as_str() {
        VICTIM => victim::play(attack),
        ATTACKER => {
            let time = Duration::from_millis(told(TIME_MS).parse().expect("a number"));
            attacker::play(attack, time, told(SEED).parse().expect("a number"));
        }
        other => panic!("no role {other}"),
    }
}
