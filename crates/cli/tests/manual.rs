//! The manual pages and completions that the command writes of itself. `make manual` has groff, zsh
//! and fish read them, too.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::{bellwire, run};

/// A folder with everything written, that goes with the test.
struct Written(PathBuf);

impl Written {
    fn new(test: &str) -> Written {
        let name = format!("bellwire-manual-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        run(bellwire().arg("write-manual").arg(&folder)).done();
        Written(folder)
    }

    fn page(&self, name: &str) -> PathBuf {
        self.0.join("man1").join(format!("{name}.1"))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The subcommands that `--help` lists below some words.
fn listed(words: &[&str]) -> Vec<String> {
    let help = run(bellwire().args(words).arg("--help")).done().stdout;
    let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    // A name is indented by two; its text, which may take lines of its own, by more.
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let first = names.filter_map(|line| line.split_whitespace().next());
    first.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command that `--help` lists has a page with its options, and no hidden one has.
#[test]
fn every_command_has_a_page() {
    let written = Written::new("pages");
    let mut expected = vec!["bellwire".to_owned()];
    for command in listed(&[]) {
        let below = listed(&[&command]);
        expected.extend(below.iter().map(|name| format!("bellwire-{command}-{name}")));
        expected.push(format!("bellwire-{command}"));
    }
    assert!(expected.len() > 15, "{expected:?}");
    expected.sort();
    let folder = fs::read_dir(written.0.join("man1")).expect("it was written");
    let mut found: Vec<String> = folder
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().replace(".1", ""))
        .collect();
    found.sort();
    assert_eq!(found, expected);

    let page = fs::read_to_string(written.page("bellwire-copy")).expect("it was written");
    for part in ["\\-\\-listen", ".SH EXAMPLES", "bellwire 0."] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

/// bash completes subcommands and options, as a user would by the tabulator, and offers no hidden
/// command.
#[test]
fn bash_completes() {
    let written = Written::new("bash");
    let script = written.0.join("bash/bellwire.bash");
    let complete = |words: &[&str]| -> Vec<String> {
        let call = format!(
            ". '{}'; COMP_WORDS=({}); COMP_CWORD={}; _bellwire bellwire '{}' '{}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let done = run(Command::new("bash").args(["--norc", "-c", &call])).done();
        done.stdout.lines().map(str::to_owned).filter(|word| !word.is_empty()).collect()
    };
    assert_eq!(complete(&["bellwire", "mo"]), ["model"]);
    assert_eq!(complete(&["bellwire", "model", "expl"]), ["explain"]);
    assert!(complete(&["bellwire", "copy", "--li"]).contains(&"--listen".to_owned()));
    assert!(complete(&["bellwire", "write"]).is_empty());
    assert!(complete(&["bellwire", "read"]).is_empty());
}
