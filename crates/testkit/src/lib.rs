//! What shows that a device does what it promises: the conformance suite, crash tests, hostile peers, and canaries.
//!
//! | what | where | run by |
//! |---|---|---|
//! | about a hundred checks that every device must pass, against the public API | [`conformance`] | `cargo test -p bellwire-testkit` |
//! | a device inside one process, with accidents on demand | [`loopback`] | the same |
//! | `kill -9` and `SIGSTOP` at every step that the sources name | [`crash`] | `--features steps --test crash` |
//! | thousands of connections that leave nothing behind | [`crash::churn`] | the same |
//! | peers that scribble, lie and send garbage | `hostile` | `--features steps --test hostile` |
//! | a station that sends what it likes to functions of `udp` and `eth` | [`attack`] | `--test attack`, as root |
//! | another user of the host, who takes names and keeps silent | [`stranger`] | `--test stranger`, as root |
//! | bytes from outside, and those that the fuzzers kept | [`fuzz`] | `--test corpus` |
//! | faults that are planted and must be noticed | `tests/canaries.rs` | `--features canaries --test canaries` |
//!
//! # Scenarios
//!
//! | scenario | processes | what happens | what must hold |
//! |---|---|---|---|
//! | conformance | 1, some 2 to 5 | both sides in one thread, in two threads, in two processes | the documentation of the API, word for word |
//! | initiator dies | survivor, subject | the subject connects, works, and dies at the n-th passage of a step | every descriptor completes with its buffer; no descriptor, mapping, name or process stays; the next run is clean |
//! | target dies | survivor, subject | the subject listens, works, and dies | the same |
//! | crossing dies | survivor, subject | both ask for a link at once; the subject has the lower address, and dies | the same |
//! | the three, stopped | survivor, subject | the subject stops itself and is continued later | nothing is lost, nobody is taken for dead |
//! | churn | 1 | connections and functions come and go | counts of descriptors, mappings and bytes are the same as before |
//! | own link scribbled | victim, attacker | random words over control blocks, host chunks, the attacker's pool and board | the victim's other traffic is right |
//! | pool scribbled | victim, attacker | the same, over the victim's doorbell and pool too | the victim lives, its other functions are right, and so is this one when opened anew |
//! | control socket | victim, attacker | wrong records and descriptors at every stage, silence, impostors | the victim's other traffic is right |
//! | squat | 1, stranger | another user holds the name of a node or function | the error names the user; others exchange messages |
//! | silence | 1, stranger | another user keeps 500 silent connections to a sleeping function | wake-ups are bounded, a proper peer gets in |
//! | packets | victim, attacker | random headers and payloads over a proper link | the victim's other traffic is right |
//!
//! `BELLWIRE_LONG=1` makes crash and hostile tests thorough: more passages, 100,000 connections, minutes of scribbling.
//! `BELLWIRE_SEED` repeats an attack.

pub mod attack;
#[cfg(feature = "canaries")]
pub mod check;
pub mod conformance;
pub mod crash;
pub mod fuzz;
#[cfg(feature = "steps")]
pub mod hostile;
pub mod loopback;
pub mod network;
pub mod stranger;

/// The whole life of a second process, which was started for this kind of tests; `false` if there is no such kind.
pub fn play(kind: &str) -> bool {
    match kind {
        "process" => conformance::process::play(),
        "crash" => crash::play(),
        "stranger" => stranger::play(),
        #[cfg(feature = "steps")]
        "hostile" => hostile::play(),
        #[cfg(feature = "canaries")]
        "check" => check::play(),
        _ => return false,
    }
    true
}

/// Plants the fault that `BELLWIRE_CANARY` names, if any, in the state machines of the protocol too, which look for it in the
/// calling thread. (The other crates ask the environment themselves.)
#[cfg(feature = "canaries")]
pub fn plant_from_environment() -> Option<bellwire_protocol::canary::Planted> {
    let name = std::env::var("BELLWIRE_CANARY").ok()?;
    // Once per process: a test binary that was started to fail.
    Some(bellwire_protocol::canary::plant(Box::leak(name.into_boxed_str())))
}
