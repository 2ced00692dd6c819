//! The tests of a device's promises: the conformance suite, crash tests, hostile peers, and
//! canaries.
//!
//! | what | where | run by |
//! |---|---|---|
//! | about a hundred checks for every device, of the public API | [`conformance`] | `cargo test` |
//! | devices with several ways to a peer, and the way that is right | [`ways`] | the same |
//! | a device inside one process, with faults on demand | [`loopback`] | the same |
//! | `kill -9` and `SIGSTOP` at every step that the sources name | [`crash`] | `--test crash` |
//! | thousands of connections that leave nothing behind | [`crash::churn`] | the same |
//! | peers that overwrite memory, lie and send garbage | `hostile` | `--test hostile` |
//! | a station that sends anything to `udp` and `eth` | [`attack`] | `--test attack` |
//! | another user, who takes names or keeps silent | [`stranger`] | `--test stranger` |
//! | programs whose sockets are an agent's | [`agent`] | `--test agent` |
//! | bytes from outside, and the fuzzers' corpus | [`fuzz`] | `--test corpus` |
//! | planted faults that must be noticed | `tests/canaries.rs` | `--test canaries` |
//!
//! Run each with `cargo test -p bellwire-testkit`. Crash and hostile tests need `--features steps`,
//! canaries need `--features canaries`, and strangers, attacks and agents need root.
//!
//! # Scenarios
//!
//! Conformance takes one process, and some checks 2 to 5. Both sides are in one thread, in two
//! threads, or in two processes. Each check holds the device to the documentation of the API, word
//! for word.
//!
//! In crash tests, a survivor and a subject work together:
//!
//! | scenario | what the subject does |
//! |---|---|
//! | initiator dies | it connects, works, and dies at the n-th passage of a step |
//! | target dies | it listens, works, and dies |
//! | crossing dies | both ask for a link at once; the subject has the lower address, and dies |
//! | the three, stopped | it stops itself and is continued later |
//! | churn (one process) | connections and functions come and go |
//!
//! After a death every descriptor completes with its buffer, and no descriptor, mapping, name or
//! process stays. The next run is clean. After a stop nothing is lost, and no process is taken for
//! dead. After churn the counts of descriptors, mappings and bytes are the same as before.
//!
//! In hostile tests, an attacker or a stranger attacks a victim:
//!
//! | scenario | what the attacker or stranger does | what must hold |
//! |---|---|---|
//! | own link | writes random words over its own link's memory | other traffic is right |
//! | pool | also over the victim's doorbell and pool | the victim lives (see `hostile`) |
//! | control socket | sends wrong records and descriptors, keeps silent | other traffic is right |
//! | packets | sends random headers and payloads over a proper link | other traffic is right |
//! | squat | holds the name of a node or function | the error names the user |
//! | silence | keeps 500 silent connections to a sleeping function | wake-ups are bounded |
//!
//! A proper peer connects and exchanges messages also while a stranger squats or keeps silent.
//!
//! `BELLWIRE_LONG=1` makes crash and hostile tests thorough: more passages, 100,000 connections,
//! minutes of attacks. `BELLWIRE_SEED` repeats an attack.

pub mod agent;
pub mod attack;
pub mod cases;
#[cfg(feature = "canaries")]
pub mod check;
pub mod conformance;
pub mod crash;
pub mod fuzz;
#[cfg(feature = "steps")]
pub mod hostile;
pub mod loopback;
pub mod mapping;
pub mod network;
pub mod stranger;
pub mod watchdog;
pub mod ways;

/// The main function of a second process that was started for this kind of tests; `false` if there
/// is no such kind.
pub fn play(kind: &str) -> bool {
    match kind {
        "process" => conformance::process::play(),
        "crash" => crash::play(),
        "stranger" => stranger::play(),
        "agent" => agent::play(),
        #[cfg(feature = "steps")]
        "hostile" => hostile::play(),
        #[cfg(feature = "canaries")]
        "check" => check::play(),
        _ => return false,
    }
    true
}

/// Plants the fault that `BELLWIRE_CANARY` names, if any, in the state machines of the protocol
/// too. These look for it in the calling thread; the other crates read the environment themselves.
#[cfg(feature = "canaries")]
pub fn plant_from_environment() -> Option<bellwire_protocol::canary::Planted> {
    let name = std::env::var("BELLWIRE_CANARY").ok()?;
    // Once per process, in a test binary that was started to fail.
    Some(bellwire_protocol::canary::plant(Box::leak(name.into_boxed_str())))
}
