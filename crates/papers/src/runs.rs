//! The tests that a run of the project really runs, as its test programs themselves list them.
//!
//! Whether a test is run cannot be read off its source: its file may belong to no module, its
//! module to another configuration, or it may be ignored. So each test program is asked.

use std::path::Path;

/// Where the conformance cases are: functions that every device's tests call.
const CONFORMANCE: &str = "crates/testkit/src/conformance/";

/// The tests that some test programs run by default.
#[derive(Debug, Default)]
pub struct Runs {
    tests: Vec<Test>,
}

#[derive(Debug)]
struct Test {
    /// The source file at the root of its program, from the top of the checkout.
    root: String,
    /// Its modules, and its name last.
    path: Vec<String>,
}

impl Runs {
    /// Adds a test program. `root` is the source file at its root, from the top of the checkout.
    /// `all` is what it prints with `--list --format terse`, `ignored` what with `--ignored` too.
    pub fn add(&mut self, root: &str, all: &str, ignored: &str) {
        let is_test = |line: &&str| line.ends_with(": test");
        let ignored: Vec<&str> = ignored.lines().filter(is_test).collect();
        for line in all.lines().filter(is_test).filter(|line| !ignored.contains(line)) {
            let name = line.trim_end_matches(": test");
            let path = name.split("::").map(str::to_owned).collect();
            self.tests.push(Test { root: root.to_owned(), path });
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tests.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether the test `name` of the source file `file` (from the top of the checkout) is among
    /// them. The name may begin with modules that a macro makes. A conformance case is, if the
    /// tests of any device run it under its topic.
    pub fn has(&self, file: &str, name: &str) -> bool {
        self.tests.iter().any(|test| test.is(file, name))
    }
}

impl Test {
    fn is(&self, file: &str, name: &str) -> bool {
        let name: Vec<String> = name.split("::").map(str::to_owned).collect();
        let Some(modules) = self.path.strip_suffix(name.as_slice()) else { return false };
        let module = module_of(file);
        if file.starts_with(CONFORMANCE) {
            modules.last().is_some_and(|topic| topic == module)
        } else if file == self.root {
            modules.len() <= 1
        } else {
            let is_near = Path::new(&self.root).parent().is_some_and(|top| {
                Path::new(file).starts_with(top)
                    && file.contains("/src/") == self.root.contains("/src/")
            });
            is_near && modules.iter().any(|own| own == module)
        }
    }
}

/// The module of a source file: `a` of `a.rs` and of `a/mod.rs`.
fn module_of(file: &str) -> &str {
    let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
    stem.rsplit('/').next().unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: what is not run is not taken for evidence, however much it looks like it.
    #[test]
    fn only_tests_that_are_run_count() {
        let mut runs = Runs::default();
        let all = "alone: test\nlane::tests::deep: test\nlane::slow: test\na::b::c::deeper: test\n\
                   lane::speed: benchmark\n";
        runs.add("crates/x/src/lib.rs", all, "lane::slow: test\n");
        runs.add(
            "crates/x/tests/engine/main.rs",
            "eager::one: test\ncheck: test\nstolen::udp: test\n",
            "",
        );
        runs.add("crates/testkit/tests/shm.rs", "inbox::order: test\nbatch::late: test\n", "");
        runs.add("crates/testkit/tests/udp.rs", "batch::late: test\n", "batch::late: test\n");
        assert_eq!(runs.len(), 8);
        for (file, name) in [
            ("crates/x/src/lib.rs", "alone"),
            ("crates/x/src/lane.rs", "deep"),
            ("crates/x/src/lane/mod.rs", "deep"),
            ("crates/x/src/a/b/c.rs", "deeper"),
            ("crates/x/tests/engine/eager.rs", "one"),
            ("crates/x/tests/engine/main.rs", "check"),
            ("crates/x/tests/engine/main.rs", "stolen::udp"),
            ("crates/testkit/src/conformance/inbox.rs", "order"),
            ("crates/testkit/src/conformance/batch.rs", "late"),
        ] {
            assert!(runs.has(file, name), "{file}::{name}");
        }
        for (file, name, why) in [
            ("crates/x/src/lane.rs", "slow", "ignored"),
            ("crates/x/src/lane.rs", "speed", "a benchmark"),
            ("crates/x/src/lane.rs", "helper", "not a test"),
            ("crates/x/src/ring.rs", "deep", "another module's"),
            ("crates/x/src/lib.rs", "deeper", "another module's"),
            ("crates/x/tests/engine/main.rs", "other::udp", "of another module"),
            ("crates/x/tests/lane.rs", "deep", "another program's"),
            ("crates/y/src/lane.rs", "deep", "another crate's"),
            ("crates/testkit/src/conformance/batch.rs", "order", "another topic's"),
            ("crates/testkit/src/conformance/bytes.rs", "late", "a helper's file"),
        ] {
            assert!(!runs.has(file, name), "{file}::{name}: {why}");
        }
    }
}
