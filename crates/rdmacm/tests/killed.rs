//! A program that is killed at any step of a conversation, on either side: the other one learns
//! that it is over, nothing stays behind, and a listener serves the next.

use bellwire_rdmacm::{Endpoint, Event, Manager, Offer, Patience, Sink};
use bellwire_testkit::crash::{Residue, steps_in};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const TCP: u16 = 0x0106;
/// What anything may take before it counts as a hang.
const LIMIT: Duration = Duration::from_secs(60);
/// A server that was killed holds no port, so that a client is told at once.
const PATIENCE: Patience =
    Patience { silent: Duration::from_secs(5), nobody: Duration::from_millis(100) };
/// The port of the survivor that listens; without it the subject listens.
const PORT: &str = "BELLWIRE_TEST_PORT";
/// The line by which the subject tells its port.
const AT: &str = "listens at ";

fn sink() -> (Sink, Receiver<Event>) {
    let (sender, receiver) = channel();
    let sink: Sink = Arc::new(move |event| drop(sender.send(event)));
    (sink, receiver)
}

fn offer() -> Offer {
    Offer { queue_pair: 17, psn: 3, ..Offer::default() }
}

fn bound(manager: &Manager) -> (Endpoint, Receiver<Event>, u16) {
    let (sink, events) = sink();
    let end = manager.endpoint(TCP, sink);
    let at = end.bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    (end, events, at.port())
}

/// A client from the request to the end. Returns whether the connection stood.
fn ask(manager: &Manager, port: u16) -> bool {
    let (end, events, _) = bound(manager);
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    end.connect_within(to, offer(), PATIENCE).expect("bound");
    let mut stood = false;
    loop {
        match events.recv_timeout(LIMIT).expect("the client learns how it ends") {
            // The server may be gone by now; its end follows.
            Event::Reply(_) if end.ready().is_ok() => {
                stood = true;
                end.disconnect().expect("connected");
            }
            Event::Disconnected
            | Event::Rejected(..)
            | Event::Unreachable(_)
            | Event::ConnectError(_) => return stood,
            _ => {}
        }
    }
}

/// A server from the request to the end.
fn answer(end: Endpoint) {
    let (sink, events) = sink();
    end.adopt(&sink);
    // Who asked may be gone by now.
    if end.accept(offer()).is_err() {
        return;
    }
    loop {
        match events.recv_timeout(LIMIT).expect("the server learns how it ends") {
            Event::Disconnected | Event::Rejected(..) | Event::ConnectError(_) => return,
            _ => {}
        }
    }
}

/// The subject: one conversation, unless it is killed before.
#[test]
#[ignore = "a child of `killed_at_every_step` runs it"]
fn plays_the_subject() {
    let manager = Manager::new().expect("a manager");
    match std::env::var(PORT) {
        Ok(port) => drop(ask(&manager, port.parse().expect("a port"))),
        Err(_) => {
            let (listener, requests, port) = bound(&manager);
            listener.listen(0).expect("bound");
            println!("\n{AT}{port}");
            let request = requests.recv_timeout(LIMIT).expect("a request");
            let Event::Request { end, .. } = request else { panic!("{request:?}") };
            answer(end);
        }
    }
}

fn start(step: &str, port: Option<u16>) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "plays_the_subject", "--ignored", "--nocapture"])
        .env("BELLWIRE_STEP", format!("{step}:1:kill"))
        .envs(port.map(|port| (PORT, port.to_string())))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Whether the subject was killed. It must not fail by itself.
fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    assert!(status.success() || status.signal() == Some(libc::SIGKILL), "{status}");
    status.signal().is_some()
}

/// The subject asks a listener, which serves another client afterwards.
fn a_client(step: &str) -> bool {
    let manager = Manager::new().expect("a manager");
    let (listener, requests, port) = bound(&manager);
    listener.listen(0).expect("bound");
    let mut child = start(step, Some(port));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        assert!(Instant::now() < deadline, "{step}: the client hangs");
        if let Ok(Event::Request { end, .. }) = requests.recv_timeout(Duration::from_millis(5)) {
            answer(end);
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    let next = std::thread::spawn(move || ask(&Manager::new().expect("a manager"), port));
    while !next.is_finished() {
        assert!(Instant::now() < deadline, "{step}: the next client hangs");
        // The request of the killed client may still come.
        if let Ok(Event::Request { end, .. }) = requests.recv_timeout(Duration::from_millis(5)) {
            answer(end);
        }
    }
    assert!(next.join().unwrap(), "{step}: the next client is not served");
    was_killed(status)
}

/// The subject listens, and a client asks it.
fn a_server(step: &str) -> bool {
    let mut child = start(step, None);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix(AT).map(|port| port.parse().expect("a port")));
    if let Some(port) = port {
        ask(&Manager::new().expect("a manager"), port);
    }
    // It writes until its end.
    drop(lines.map_while(Result::ok).last());
    was_killed(child.wait().unwrap())
}

/// Killed at every step, as client and as server.
#[test]
fn killed_at_every_step() {
    let steps = steps_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(steps.len() >= 15, "{steps:?}");
    let before = Residue::count("none");
    assert!(!a_client("none") && !a_server("none"));
    let mut reached = BTreeSet::new();
    for step in &steps {
        for is_killed in [a_client(step), a_server(step)] {
            if is_killed {
                reached.insert(step.clone());
            }
        }
        let deadline = Instant::now() + LIMIT;
        // The managers' threads end a moment later.
        loop {
            let now = Residue::count("none");
            if now == before {
                break;
            }
            assert!(Instant::now() < deadline, "{step} left something: {now:?}, before {before:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(reached, steps, "steps that the subject does not come to");
}
