//! Fails if a test that stands for something is not run: one with a `shows:` line, or one that
//! PROMISES.md, PROTOCOL.md or docs/security.md names. It also fails if a promise names none. The
//! arguments are the commands that run all tests, with `+` between them: `make evidence` does it.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bellwire_papers::promises::{attacks, audit, promises};
use bellwire_papers::runs::Runs;
use bellwire_papers::{checkout, scan};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let top = checkout::find(Path::new("."))?;
    let mut runs = Runs::default();
    for command in arguments.split(|word| word == "+") {
        add_tests(&mut runs, &top, command)?;
    }

    let mut shown: Vec<String> = scan(&top)?.tests.into_values().flatten().collect();
    shown.sort();
    shown.dedup();
    let mut faults: Vec<String> = shown
        .iter()
        .filter(|test| !test.split_once("::").is_some_and(|(file, name)| runs.has(file, name)))
        .map(|test| format!("no test program runs {test}, which stands for a row"))
        .collect();
    let page = |name: &str| fs::read_to_string(top.join(name)).map_err(|e| format!("{name}: {e}"));
    faults.extend(promises(&page("PROMISES.md")?, &runs));
    faults.extend(attacks(&page("PROTOCOL.md")?, &runs));
    faults.extend(audit(&page("docs/security.md")?, &runs));
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    if !faults.is_empty() {
        return Err(format!("{} faults of what the project promises", faults.len()).into());
    }
    println!(
        "{} tests run; the {} that stand for rows, and all promised ones, are among them",
        runs.len(),
        shown.len()
    );
    Ok(())
}

/// Builds the tests that `command` runs, and asks each of their programs for their names.
fn add_tests(runs: &mut Runs, top: &Path, command: &[String]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command
        .split_first()
        .ok_or("give the commands that run all tests: cargo test ... + ...")?;
    let built = Command::new(program)
        .args(arguments)
        .args(["--no-run", "--message-format=json"])
        .current_dir(top)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !built.status.success() {
        return Err(format!("{} ended with {}", command.join(" "), built.status).into());
    }
    let before = runs.len();
    for line in String::from_utf8(built.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let (Some(program), true) =
            (message["executable"].as_str(), message["profile"]["test"] == true)
        else {
            continue;
        };
        let root = Path::new(message["target"]["src_path"].as_str().ok_or("no source")?);
        let root = root.strip_prefix(top)?.to_str().ok_or("a name that is not UTF-8")?;
        let list = |more: &[&str]| -> Result<String, Box<dyn Error>> {
            let listed =
                Command::new(program).args(["--list", "--format", "terse"]).args(more).output()?;
            if !listed.status.success() {
                return Err(format!("{program} --list ended with {}", listed.status).into());
            }
            Ok(String::from_utf8(listed.stdout)?)
        };
        runs.add(root, &list(&[])?, &list(&["--ignored"])?);
    }
    if runs.len() == before {
        return Err(format!("{} runs no tests", command.join(" ")).into());
    }
    Ok(())
}
