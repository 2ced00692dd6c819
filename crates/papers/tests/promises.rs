//! Every promise in PROMISES.md, and every sentence of PROTOCOL.md about who can do what, names
//! existing tests.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The tests that a text names: `path/to/file.rs::name` between backticks.
fn named_tests(text: &str) -> Vec<(String, String)> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|quoted| quoted.split_once(".rs::"))
        .map(|(path, name)| (format!("{path}.rs"), name.to_owned()))
        .collect()
}

/// Faults of a page of promises, as sentences.
fn problems(text: &str, root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let promises = text.split("\n## ").skip(1);
    for (place, promise) in promises.enumerate() {
        let title = promise.lines().next().unwrap_or_default();
        if !title.starts_with(&format!("{}. ", place + 1)) {
            found.push(format!("\"{title}\" is not numbered {}", place + 1));
        }
        let tests = named_tests(promise);
        if tests.is_empty() {
            found.push(format!("\"{title}\" names no test"));
        }
        let missing = tests.iter().filter_map(|(path, name)| missing(root, path, name));
        found.extend(missing.map(|what| format!("\"{title}\" {what}")));
    }
    found
}

/// The fault of a test's name, if there is one.
fn missing(root: &Path, path: &str, name: &str) -> Option<String> {
    match std::fs::read_to_string(root.join(path)) {
        Err(error) => Some(format!("names {path}: {error}")),
        Ok(source) if !source.contains(&format!("fn {name}(")) => {
            Some(format!("names {name}, which is not in {path}"))
        }
        Ok(_) => None,
    }
}

/// Faults of the part of PROTOCOL.md about who can do what: each attack that fails has a test, or
/// the text says that there is none.
fn claims(text: &str, root: &Path) -> Vec<String> {
    let Some((_, part)) = text.split_once("\n## Who can do what\n") else {
        return vec!["nobody says who can do what".to_owned()];
    };
    let mut found = Vec::new();
    for item in part.split("\n- ").skip(1) {
        let item = item.split("\n\n").next().unwrap_or_default();
        let tests = named_tests(item);
        if tests.is_empty() && item.contains("cannot") && !item.contains("No test") {
            found.push(format!("\"{item}\" names no test"));
        }
        found.extend(tests.iter().filter_map(|(path, name)| missing(root, path, name)));
    }
    found
}

#[test]
fn who_cannot_do_what_is_shown() {
    let text = std::fs::read_to_string(root().join("PROTOCOL.md")).expect("it stands at the top");
    let found = claims(&text, &root());
    assert!(found.is_empty(), "{found:#?}");
}

/// Canary: a claim without a test, or with a missing test, is noticed.
#[test]
fn false_claims_are_noticed() {
    let page = |item: &str| {
        format!("\n## Who can do what\n\n### A\n\n- {item}\n\nWhat he can do:\n\n- Much.\n")
    };
    let here = "crates/papers/tests/promises.rs";
    let good = page(&format!("He cannot: `{here}::false_claims_are_noticed`."));
    assert_eq!(claims(&good, &root()), Vec::<String>::new());
    let gone = format!("He cannot: `{here}::{}`.", "no_such_test");
    for bad in [page("He cannot do it."), page(&gone), "\n## Who is who\n".to_owned()] {
        assert_eq!(claims(&bad, &root()).len(), 1, "{bad}");
    }
}

#[test]
fn every_promise_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("PROMISES.md")).expect("it stands at the top");
    assert!(text.contains("\n## 1. "), "there are promises");
    let found = problems(&text, &root());
    assert!(found.is_empty(), "{found:#?}");
}

/// Canary: promises without tests, with missing tests, or with wrong numbers are noticed.
#[test]
fn false_promises_are_noticed() {
    let here = "crates/papers/tests/promises.rs";
    let good = format!("\n## 1. A\n`{here}::false_promises_are_noticed`\n");
    assert_eq!(problems(&good, &root()), Vec::<String>::new());
    for bad in [
        "\n## 1. A\nnothing\n".to_owned(),
        format!("\n## 1. A\n`{here}::{}`\n", "no_such_test"),
        "\n## 1. A\n`crates/none.rs::x`\n".to_owned(),
        format!("\n## 2. A\n`{here}::false_promises_are_noticed`\n"),
    ] {
        assert_eq!(problems(&bad, &root()).len(), 1, "{bad}");
    }
}
