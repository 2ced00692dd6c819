//! Pages that promise something by naming the tests that show it, as `path/to/file.rs::name`
//! between backticks: PROMISES.md, the part of PROTOCOL.md about who can do what, and the tables of
//! docs/security.md.

use crate::runs::Runs;

/// The faults of PROMISES.md, as sentences: a promise that is not numbered in turn, or names no
/// test, or one that is not run.
pub fn promises(page: &str, runs: &Runs) -> Vec<String> {
    let mut found = Vec::new();
    for (index, promise) in page.split("\n## ").skip(1).enumerate() {
        let title = promise.lines().next().unwrap_or_default();
        if !title.starts_with(&format!("{}. ", index + 1)) {
            found.push(format!("the promise \"{title}\" is not numbered {}", index + 1));
        }
        if named_tests(promise).next().is_none() {
            found.push(format!("the promise \"{title}\" names no test"));
        }
        found.extend(not_run(promise, runs));
    }
    if found.is_empty() && !page.contains("\n## 1. ") {
        found.push("there is no promise".to_owned());
    }
    found
}

/// The faults of PROTOCOL.md's part about who can do what, as sentences: an attack that fails
/// without a test of it, unless the text says that there is none, or with one that is not run.
pub fn attacks(page: &str, runs: &Runs) -> Vec<String> {
    let Some((_, part)) = page.split_once("\n## Who can do what\n") else {
        return vec!["nothing says who can do what".to_owned()];
    };
    let mut found = Vec::new();
    for item in part.split("\n- ").skip(1) {
        let item = item.split("\n\n").next().unwrap_or_default();
        let is_shown = named_tests(item).next().is_some();
        if !is_shown && item.contains("cannot") && !item.contains("No test") {
            found.push(format!("\"{item}\" names no test"));
        }
        found.extend(not_run(item, runs));
    }
    found
}

/// The faults of docs/security.md, as sentences: a row of a table with tests that names none, and
/// does not say why, or one that is not run.
pub fn audit(page: &str, runs: &Runs) -> Vec<String> {
    let mut found = Vec::new();
    let is_row = |line: &&str| line.starts_with("| ") && line.ends_with(" |");
    // The first row of a table has the titles of its columns.
    let (mut tables, mut has_tests, mut before) = (0, false, "");
    for line in page.lines() {
        let is_title = is_row(&line) && !before.starts_with('|');
        if is_title {
            has_tests = line.ends_with("| test |");
            tables += usize::from(has_tests);
        }
        if is_row(&line) && !is_title && has_tests {
            let is_shown = named_tests(line).next().is_some();
            if !is_shown && !line.contains("No test: ") {
                found.push(format!("the row \"{line}\" names no test"));
            }
        }
        before = line;
    }
    if tables == 0 {
        found.push("no table says who can do what".to_owned());
    }
    found.extend(not_run(page, runs));
    found
}

/// The file and the name of each test that a text names.
fn named_tests(text: &str) -> impl Iterator<Item = (String, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter_map(|quoted| quoted.split_once(".rs::"))
        .map(|(path, name)| (format!("{path}.rs"), name))
}

fn not_run(text: &str, runs: &Runs) -> impl Iterator<Item = String> {
    named_tests(text)
        .filter(|(file, name)| !runs.has(file, name))
        .map(|(file, name)| format!("no test program runs {file}::{name}, which is promised"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Runs {
        let mut runs = Runs::default();
        let all = "good: test\nslow: test\nstolen::udp: test\n";
        runs.add("crates/x/tests/t.rs", all, "slow: test\n");
        runs
    }

    /// Canary: promises without tests, with tests that are not run, or with wrong numbers are
    /// noticed.
    #[test]
    fn false_promises_are_noticed() {
        for good in [
            "\n## 1. A\n`crates/x/tests/t.rs::good`\n",
            "\n## 1. A\n`crates/x/tests/t.rs::stolen::udp`\n",
        ] {
            assert_eq!(promises(good, &runs()), Vec::<String>::new());
        }
        for bad in [
            "\n# Nothing\n",
            "\n## 1. A\nnothing\n",
            "\n## 1. A\n`crates/x/tests/t.rs::helper`\n",
            "\n## 1. A\n`crates/x/tests/t.rs::slow`\n",
            "\n## 1. A\n`crates/x/tests/t.rs::moved::udp`\n",
            "\n## 1. A\n`crates/none.rs::good`\n",
            "\n## 2. A\n`crates/x/tests/t.rs::good`\n",
        ] {
            assert_eq!(promises(bad, &runs()).len(), 1, "{bad}");
        }
    }

    /// Canary: a row of the audit without a test, or with one that is not run, is noticed.
    #[test]
    fn false_rows_of_the_audit_are_noticed() {
        let page = |row: &str| format!("# It\n\n| who | what | test |\n|---|---|---|\n{row}\n");
        for good in [
            "| he | cannot | `crates/x/tests/t.rs::good` |",
            "| he | can | No test: every network can |",
        ] {
            assert_eq!(audit(&page(good), &runs()), Vec::<String>::new());
        }
        for bad in [
            page("| he | cannot | surely |"),
            page("| he | cannot | `crates/x/tests/t.rs::slow` |"),
            page("| he | cannot | `crates/x/tests/t.rs::gone` |"),
            "# It\n\nNothing.\n".to_owned(),
            "# It\n\n| who | what |\n|---|---|\n| he | cannot |\n".to_owned(),
        ] {
            assert_eq!(audit(&bad, &runs()).len(), 1, "{bad}");
        }
    }

    /// Canary: an attack without a test, or with one that is not run, is noticed.
    #[test]
    fn false_safety_is_noticed() {
        let page = |item: &str| {
            format!("\n## Who can do what\n\n### A\n\n- {item}\n\nWhat he can do:\n\n- Much.\n")
        };
        let good = page("He cannot: `crates/x/tests/t.rs::good`.");
        assert_eq!(attacks(&good, &runs()), Vec::<String>::new());
        assert_eq!(attacks(&page("He cannot. No test."), &runs()), Vec::<String>::new());
        let idle = page("He cannot: `crates/x/tests/t.rs::slow`.");
        for bad in [page("He cannot do it."), idle, "\n## Who is who\n".to_owned()] {
            assert_eq!(attacks(&bad, &runs()).len(), 1, "{bad}");
        }
    }
}
