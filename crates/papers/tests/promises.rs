//! Every promise in PROMISES.md names tests that exist.

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

/// What is wrong with a page of promises, as sentences.
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
        for (path, name) in tests {
            match std::fs::read_to_string(root.join(&path)) {
                Err(error) => found.push(format!("\"{title}\" names {path}: {error}")),
                Ok(source) if !source.contains(&format!("fn {name}(")) => {
                    found.push(format!("\"{title}\" names {name}, which is not in {path}"));
                }
                Ok(_) => {}
            }
        }
    }
    found
}

#[test]
fn every_promise_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("PROMISES.md")).expect("it stands at the top");
    assert!(text.contains("\n## 1. "), "there are promises");
    let found = problems(&text, &root());
    assert!(found.is_empty(), "{found:#?}");
}

/// A canary: promises without tests, with tests that do not exist, or with wrong numbers are noticed.
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
