//! One check in a process of its own, perhaps with a fault planted in it.

use crate::conformance::child::{Process, told};
use crate::conformance::{Named, Stage, find, patience, run, stage};
use crate::crash::Residue;

/// Names the check that a child runs.
const CHECK: &str = "BELLWIRE_TEST_CHECK";
/// Names the fault that is planted in it.
const CANARY: &str = "BELLWIRE_CANARY";
/// A check besides those of the conformance suite: opening and closing leaves no mapping behind.
pub const NO_MAPPING_STAYS: &str = "no mapping stays";

/// Whether check `TOPIC::CHECK` of the conformance suite, or [`NO_MAPPING_STAYS`], succeeds on the shared-memory device, perhaps with
/// a fault.
pub fn succeeds(check: &str, fault: Option<&str>) -> bool {
    // A check that hangs shows the fault too, and need not take long about it.
    let mut environment = vec![(CHECK, check), (patience::LIMIT, "4000")];
    environment.extend(fault.map(|fault| (CANARY, fault)));
    Process::start("check", &environment).end().success()
}

/// The whole life of the child.
pub fn play() {
    match told(CHECK).as_str() {
        NO_MAPPING_STAYS => no_mapping_stays(),
        name => run(find(name).expect("a check of that name"), &Named::new("shm")),
    }
}

fn no_mapping_stays() {
    let before = Residue::count("nobody");
    for _ in 0..3 {
        let network = Named::new("shm");
        let mut stage = Stage::connected(&network);
        stage.nodes[stage::A].function.allocate(4096, bellwire::Rights::all()).expect("room");
    }
    assert_eq!(Residue::count("nobody"), before);
}
