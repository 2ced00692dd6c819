//! The units of systemd that are installed with the command name what there is. `tools/units.sh`
//! has systemd read them, too.

mod support;

use bellwire_ethernet::agent::PATH;
use std::fs;
use std::path::Path;
use support::{bellwire, run};

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn units() -> [String; 2] {
    ["service.in", "socket"].map(|kind| source(&format!("tools/systemd/bellwire-agent.{kind}")))
}

/// The values of a key in a unit.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// What does not fit, as sentences. `help` is that of `bellwire agent`.
fn faults(service: &str, socket: &str, help: &str) -> Vec<String> {
    let mut found = Vec::new();
    let options = values(service, "# It holds one line: AGENT_OPTIONS").concat();
    let line = values(service, "ExecStart").concat().replace("$AGENT_OPTIONS", &options);
    let words: Vec<&str> = line.split_whitespace().collect();
    if !words.starts_with(&["@PREFIX@/bin/bellwire", "agent"]) {
        found.push(format!("it starts {line:?}"));
    }
    for option in words.iter().filter(|word| word.starts_with('-')) {
        if !help.split_whitespace().any(|word| word == *option) {
            found.push(format!("the command has no option {option}"));
        }
    }
    let group = words.iter().position(|word| *word == "--allow-group");
    let group = group.and_then(|at| words.get(at + 1)).copied().unwrap_or("");
    for (unit, key, expected) in [
        (service, "EnvironmentFile", "/etc/default/bellwire-agent"),
        (service, "Requires", "bellwire-agent.socket"),
        (service, "After", "bellwire-agent.socket"),
        (service, "Also", "bellwire-agent.socket"),
        (socket, "ListenSequentialPacket", PATH),
        (socket, "SocketMode", "0660"),
        (socket, "SocketGroup", group),
    ] {
        if values(unit, key) != [expected] {
            found.push(format!("{key} is {:?} and not {expected:?}", values(unit, key)));
        }
    }
    found
}

fn help() -> String {
    run(bellwire().args(["agent", "--help"])).done().stdout
}

/// The service starts a command that there is, with options that it has. The socket is where
/// programs look for it. docs/agent.md has the same line of options.
#[test]
fn units_fit_the_command() {
    let [service, socket] = units();
    assert_eq!(faults(&service, &socket, &help()), Vec::<String>::new());
    let options = values(&service, "# It holds one line: AGENT_OPTIONS").concat();
    assert!(source("docs/agent.md").contains(&format!("'AGENT_OPTIONS={options}'")), "{options}");
}

/// Canary: a wrong command, option, path, mode, group or name of a unit is noticed.
#[test]
fn wrong_units_are_noticed() {
    let [service, socket] = units();
    let help = help();
    for (right, wrong) in [
        ("bellwire agent $", "bellwire agents $"),
        ("/bin/bellwire", "/sbin/bellwire"),
        ("--iface", "--interface"),
        ("$AGENT_OPTIONS", "--allow-user $AGENT_OPTIONS"),
        ("Requires=bellwire-agent.socket", "Requires=bellwire.socket"),
        (PATH, "/run/agent.sock"),
        ("0660", "0666"),
        ("SocketGroup=bellwire", "SocketGroup=root"),
        ("Also=bellwire-agent.socket\n", ""),
    ] {
        let [bad_service, bad_socket] = [&service, &socket].map(|unit| unit.replace(right, wrong));
        assert!([&bad_service, &bad_socket] != [&service, &socket], "{right} is nowhere");
        assert_eq!(faults(&bad_service, &bad_socket, &help).len(), 1, "{wrong}");
    }
}
