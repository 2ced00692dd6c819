//! Named cases, and the planted faults that they must notice: each in a process of its own, because
//! a fault is planted in a whole process.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// Names the case that a child carries out.
const CASE: &str = "BELLWIRE_TEST_CASE";

/// A case panics if it fails.
pub type Case = (&'static str, fn());

/// Runs all cases, one after the other.
pub fn run(cases: &[Case]) {
    for (name, case) in cases {
        println!("{name}");
        case();
    }
}

/// Each case passes in a process of its own. `child` is the test that calls [`carry_out`].
pub fn pass_alone(cases: &[Case], child: &str) {
    for (name, _) in cases {
        println!("{name}");
        assert!(passes(child, name, None), "{name}");
    }
}

/// Each fault is noticed by the case beside it, and these cases pass while nothing is planted.
/// `child` is the test that calls [`carry_out`], and `at_once` the number of processes at a time.
pub fn notice(cases: &[Case], faults: &[(&str, &str)], child: &str, at_once: usize) {
    let unknown: Vec<_> =
        faults.iter().filter(|(_, name)| cases.iter().all(|(case, _)| case != name)).collect();
    assert!(unknown.is_empty(), "no such cases: {unknown:?}");
    let without = faults.iter().map(|(_, name)| (None, *name)).collect::<BTreeSet<_>>();
    let with = faults.iter().map(|(fault, name)| (Some(*fault), *name));
    let tries: Vec<(Option<&str>, &str)> = without.into_iter().chain(with).collect();
    let (next, wrong) = (Mutex::new(tries.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some((fault, name)) = next.lock().unwrap().next() else { return };
                    if passes(child, name, *fault) == fault.is_some() {
                        wrong.lock().unwrap().push((fault, name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "not noticed, or failed without a fault: {wrong:?}");
}

/// Whether a case passes in a process of its own.
fn passes(child: &str, name: &str, fault: Option<&str>) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command.args(["--exact", child, "--ignored"]).env(CASE, name);
    command.env_remove("BELLWIRE_CANARY").envs(fault.map(|fault| ("BELLWIRE_CANARY", fault)));
    command.output().expect("a child").status.success()
}

/// What a child does.
pub fn carry_out(cases: &[Case]) {
    let name = std::env::var(CASE).expect("the name of a case");
    let known = cases.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("no case {name}")).1();
}

/// Gives `parse` every input of the corpus of a fuzz target, whole and cut after each byte.
pub fn read_corpus(target: &str, parse: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("an input");
        for end in 0..=bytes.len() {
            parse(&bytes[..end]);
        }
        inputs += 1;
    }
    assert!(inputs >= 20, "{inputs} inputs");
}
