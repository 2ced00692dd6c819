//! Crashes: a process dies, or stops for a while, at every step that the device's sources name, in
//! every role.
//!
//! Three processes take part. The test starts a *survivor*, alone in its process so that its
//! descriptors and mappings can be counted exactly. The survivor starts the *subject*. Both carry
//! out the same workout, and at the planned step the subject kills or stops itself
//! (`BELLWIRE_STEP`, see `bellwire_ring::steps`).
//!
//! | scenario | the subject |
//! |---|---|
//! | [`Scenario::Initiator`] | connects to the survivor |
//! | [`Scenario::Target`] | listens, and the survivor connects to it |
//! | [`Scenario::Crossing`] | has the lower address, and both begin at once, without a connection |
//!
//! After a kill every descriptor that the survivor had posted completes, with its buffer. After a
//! stop and a continuation both finish the workout with all data right. In either case nothing
//! stays behind, and the next run under the same names is clean.

mod churn;
mod residue;
mod steps;
mod subject;
mod survivor;
mod workout;

pub use churn::churn;
pub use residue::Residue;
pub use steps::{Passage, steps_in, steps_of_the_sources};
pub use survivor::{Outcome, survive};

/// Which side begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// The subject connects to the survivor.
    Initiator,
    /// The survivor connects to the subject.
    Target,
    /// Both begin at once.
    Crossing,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Scenario; 3] = [Scenario::Initiator, Scenario::Target, Scenario::Crossing];

    fn parse(text: &str) -> Scenario {
        let known = Scenario::ALL.into_iter().find(|scenario| format!("{scenario:?}") == text);
        known.unwrap_or_else(|| panic!("no scenario {text}"))
    }
}

/// The kind of tests that second processes are started for.
const CRASH: &str = "crash";
/// Role of the process that survives.
const SURVIVOR: &str = "survivor";
/// Role of the process that crashes.
const SUBJECT: &str = "subject";
/// Role of the process that connects and disconnects repeatedly.
const CHURN: &str = "churn";
/// Names the scenario for both.
const SCENARIO: &str = "BELLWIRE_TEST_SCENARIO";
/// Tells the survivor at which passage the subject crashes.
const PASSAGE: &str = "BELLWIRE_TEST_PASSAGE";

/// Plays the role that the environment names.
pub fn play() {
    use crate::conformance::child::{ROLE, told};
    match told(ROLE).as_str() {
        SURVIVOR => survivor::play(),
        SUBJECT => subject::play(Scenario::parse(&told(SCENARIO))),
        CHURN => churn::play(),
        other => panic!("no role {other}"),
    }
}
