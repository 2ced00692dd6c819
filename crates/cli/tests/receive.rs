//! `bellwire copy --listen`: that whoever connects can put files into the destination, and can do nothing else.

mod support;

use bellwire::{
    Address, CompletionQueue, Device, Error, Function, Put, QueuePair, QueuePairOptions, RemoteKey,
    Send, Wait,
};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use support::{DEADLINE, Folder, Running, bellwire, run, unique, wait};

const VERSION: &[u8] = b"bellwire copy 2";

/// A listener, and what it says on standard error.
struct Listener {
    running: Running,
    complaints: JoinHandle<Vec<String>>,
}

impl Listener {
    /// Returns when it listens.
    fn start(device: &str, destination: &Path) -> Listener {
        let mut command = bellwire();
        command.args(["copy", "--json", "--device", device, "--listen"]).arg(destination);
        let mut child = listening(&mut command);
        let mut lines = BufReader::new(child.0.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        assert!(first.starts_with("Listening as node "), "{first}");
        let complaints = std::thread::spawn(move || lines.map_while(Result::ok).collect());
        Listener { running: child, complaints }
    }

    /// The exit code once it has ended, its report, and its complaints.
    fn end(mut self) -> (i32, Value, Vec<String>) {
        let mut output = self.running.0.stdout.take().expect("piped");
        let code = wait(&mut self.running.0);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut output, &mut text).expect("a pipe");
        let report = serde_json::from_str(&text).unwrap_or(Value::Null);
        (code, report, self.complaints.join().expect("no panic"))
    }
}

fn listening(command: &mut Command) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(command.spawn().expect("it starts"))
}

/// Somebody who says what he likes.
struct Stranger {
    function: Function,
    pair: QueuePair,
    queue: CompletionQueue,
    key: Option<RemoteKey>,
}

impl Stranger {
    /// Asks node 0 for a connection, as `who`, until it has time.
    fn connect(device: &str, who: &[u8]) -> Result<Stranger, Error> {
        let device = Device::open(device)?;
        let mut function = device.open_function(0)?;
        let queue = function.create_completion_queue(256)?;
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue))?;
        for _ in 0..32 {
            function.post_receive(pair, vec![0; 48 << 10], 0).map_err(Error::from)?;
        }
        function.connect(pair, Address::new(0, 1, 1), who, DEADLINE)?;
        Ok(Stranger { function, pair, queue, key: None })
    }

    /// Connects, once the listener has noticed that the one before has gone.
    fn accepted(device: &str) -> Stranger {
        let mut connected = None;
        support::until("a connection", || {
            match Stranger::connect(device, VERSION) {
                Err(Error::Rejected { reason, .. }) if reason == "busy" => {}
                other => connected = Some(other.expect("accepted")),
            }
            connected.is_some()
        });
        connected.expect("until it is")
    }

    fn say(&mut self, what: &str) {
        let send = Send::immediate(what.as_bytes());
        self.function.post_send(self.pair, send).map_err(Error::from).expect("room");
    }

    /// The next message.
    fn hear(&mut self) -> Value {
        loop {
            let done = self.function.wait(self.queue, Wait::Adaptive, DEADLINE).expect("an answer");
            assert!(done.status.is_success(), "{done:?}");
            if done.operation == bellwire::Operation::Receive {
                let bytes = done.buffer.expect("a buffer").into_bytes(done.length);
                return serde_json::from_slice(&bytes).expect("JSON");
            }
        }
    }

    /// Introduces itself as the sender of something called `name`.
    fn hello(&mut self, name: &str, folder: bool) -> Value {
        let hello = json!({ "Hello": { "name": text(name), "folder": folder, "bytes": u64::MAX } });
        self.say(&hello.to_string());
        let answer = self.hear();
        if let Some(key) = answer["Ready"]["key"].as_array() {
            let bytes: Vec<u8> = key.iter().map(|b| b.as_u64().expect("a byte") as u8).collect();
            self.key = RemoteKey::from_bytes(&bytes);
        }
        answer
    }

    /// Why it was turned away, after saying `what`.
    fn turned_away(&mut self, what: &[Value]) -> String {
        for message in what {
            self.say(&message.to_string());
        }
        loop {
            match self.hear()["Failed"]["why"].as_str() {
                Some(why) => return why.to_owned(),
                None => continue,
            }
        }
    }
}

/// A name as it is in messages.
fn text(name: &str) -> Value {
    json!({ "Unix": name.as_bytes() })
}

fn entry(path: &str, mode: u32, kind: &Value) -> Value {
    json!({ "Entry": { "path": text(path), "mode": mode, "kind": kind } })
}

fn folder(path: &str) -> Value {
    entry(path, 0o755, &json!("Folder"))
}

fn file(path: &str, size: u64) -> Value {
    entry(path, 0o644, &json!({ "File": { "size": size } }))
}

fn link(path: &str, target: &str) -> Value {
    entry(path, 0o777, &json!({ "Link": { "target": text(target) } }))
}

fn begin() -> Value {
    json!({ "Begin": { "from": 0 } })
}

fn chunk(slot: u32, length: u32) -> Value {
    json!({ "Chunk": { "slot": slot, "length": length } })
}

/// Names that lead elsewhere, links to write through, rights of the owner, absurd sizes and lies are refused with a reason, change
/// nothing outside of the destination, and leave the listener to the next sender, who is served.
#[test]
fn a_hostile_sender_is_turned_away() {
    let place = Folder::new("hostile");
    let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
    fs::create_dir_all(&inside).expect("a folder");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(outside.join("precious"), "precious").expect("a file");
    fs::write(inside.join("mine"), "mine").expect("a file");
    let device = format!("shm:{}", unique("hostile"));
    let listener = Listener::start(&device, &inside);

    for name in ["", ".", "..", "/etc/passwd", "../outside/precious", "a/", "a/b"] {
        let mut stranger = Stranger::accepted(&device);
        let answer = stranger.hello(name, false);
        let why = answer["Failed"]["why"].as_str().unwrap_or_default();
        assert!(why.contains("none for a file or folder"), "{name:?}: {answer}");
    }
    let mut stranger = Stranger::accepted(&device);
    let answer = stranger.hello("mine", false);
    assert!(answer.to_string().contains("exists already"), "{answer}");
    drop(stranger);

    let outside_name = outside.display().to_string();
    let no_hash = json!(vec![0; 32]);
    let tree: [(&[Value], &str); 12] = [
        (&[folder(""), file("../outside/new", 0)], "leads elsewhere"),
        (&[folder(""), file(&format!("{outside_name}/new"), 0)], "leads elsewhere"),
        (&[folder(""), folder("a"), file("a/../../outside/new", 0)], "leads elsewhere"),
        (&[folder(""), folder("a"), file("a//b", 0)], "leads elsewhere"),
        (&[folder(""), file("./a", 0)], "leads elsewhere"),
        (&[folder(""), link("l", &outside_name), file("l/new", 0)], "its folder was not sent"),
        (&[folder(""), link("l", &outside_name), folder("l")], "came twice"),
        (&[file("a", 0)], "its folder was not sent"),
        (&[file("", 0)], "announced as a folder"),
        (&[folder(""), entry("s", 0o4755, &json!("Folder"))], "its permissions"),
        (&[json!({ "Finish": { "hash": no_hash, "failures": 0 } })], "not what was sent"),
        (&[begin()], "the sender said"),
    ];
    for (messages, reason) in tree {
        let mut stranger = Stranger::accepted(&device);
        stranger.hello("tree", true);
        let why = stranger.turned_away(messages);
        assert!(why.contains(reason), "{messages:?}: {why}");
    }
    let empty = blake3::hash(b"");
    let end = json!({ "End": { "hash": empty.as_bytes() } });
    let alone: [(&[Value], &str); 8] = [
        (&[link("", &outside_name)], "a link alone"),
        (&[file("", u64::MAX)], "no file can have"),
        (&[file("", 5), begin(), chunk(0, 6)], "more data came"),
        (&[file("", 1 << 62), begin(), chunk(99, 1)], "lies elsewhere"),
        (&[file("", 1 << 62), begin(), chunk(0, u32::MAX)], "lies elsewhere"),
        (&[file("", 5), begin(), chunk(0, 5), end.clone()], "not what was sent"),
        (&[file("", 1), begin(), end], "not what was sent"),
        (&[json!({ "Finish": { "hash": empty.as_bytes(), "failures": 0 } })], "nothing arrived"),
    ];
    for (messages, reason) in alone {
        let mut stranger = Stranger::accepted(&device);
        stranger.hello("file", false);
        let why = stranger.turned_away(messages);
        assert!(why.contains(reason), "{messages:?}: {why}");
    }
    // Who talks nonsense, or dies, or puts where it may not.
    let mut stranger = Stranger::accepted(&device);
    stranger.hello("file", false);
    stranger.say("{\"Entry\":[[[[");
    assert!(stranger.hear().to_string().contains("Failed"));
    let mut stranger = Stranger::accepted(&device);
    stranger.hello("file", false);
    let key = stranger.key.expect("a key of memory for chunks");
    let beyond = Put::new(vec![0; 8], key.slice(key.length - 4, 8));
    assert!(stranger.function.post_put(stranger.pair, beyond).is_err());
    drop(stranger);

    // While one is served, others are told so; and another version is not served at all.
    let first = Stranger::accepted(&device);
    match Stranger::connect(&device, VERSION).map(|_| ()) {
        Err(Error::Rejected { reason, .. }) => assert_eq!(reason, "busy"),
        other => panic!("{other:?}"),
    }
    drop(first);
    support::until("a refusal", || {
        match Stranger::connect(&device, b"bellwire copy 1").map(|_| ()) {
            // It has to notice that the first one has gone.
            Err(Error::Rejected { reason, .. }) if reason == "busy" => false,
            Err(Error::Rejected { reason, .. }) => reason == "this is bellwire copy 2",
            other => panic!("{other:?}"),
        }
    });

    let honest = place.path().join("honest");
    fs::write(&honest, "honest").expect("a file");
    let output = run(bellwire().args(["copy", "--device", &device, "--connect", "0"]).arg(&honest));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let (code, report, complaints) = listener.end();
    assert_eq!(code, 0, "{complaints:?}");
    assert_eq!(report["destination"], inside.join("honest").display().to_string().as_str());
    assert_eq!((&report["files"], &report["failures_of_sender"]), (&1.into(), &0.into()));
    assert!(complaints.iter().any(|line| line.contains("lies elsewhere")), "{complaints:?}");

    assert_eq!(fs::read(inside.join("honest")).expect("a file"), b"honest");
    assert_eq!(fs::read(inside.join("mine")).expect("ours"), b"mine");
    assert_eq!(fs::read_dir(&outside).expect("ours").count(), 1, "something was written outside");
    assert_eq!(fs::read(outside.join("precious")).expect("ours"), b"precious");
    for child in fs::read_dir(&inside).expect("ours").flatten() {
        let name = child.file_name().to_string_lossy().into_owned();
        let known = ["honest", "mine"].contains(&&*name) || name.ends_with(".bellwire-part");
        assert!(known, "{name}");
    }
}

/// What the sender could not read is known to the listener too, by its exit code.
#[test]
fn both_sides_know_of_what_could_not_be_read() {
    let place = Folder::new("partly");
    let source = place.path().join("from");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("fine"), "fine").expect("a file");
    symlink("fine", source.join("link")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket");
    let device = format!("shm:{}", unique("partly"));
    let target = place.path().join("to");
    let listener = Listener::start(&device, &target);
    let output = run(bellwire().args(["copy", "--device", &device, "--connect", "0"]).arg(&source));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("a socket is no file"), "{}", output.stderr);
    let (code, report, _) = listener.end();
    assert_eq!(code, 1);
    assert_eq!(report["failures_of_sender"], 1);
    assert_eq!(fs::read(target.join("fine")).expect("a file"), b"fine");
    assert_eq!(fs::read_link(target.join("link")).expect("a link"), Path::new("fine"));

    // A file alone that cannot be read ends nothing: the listener waits for the next.
    let listener = Listener::start(&device, &place.path().join("memory"));
    let connect = ["copy", "--device", &device, "--connect", "0"];
    assert_eq!(run(bellwire().args(connect).arg("/proc/self/mem")).code, 1);
    assert_eq!(run(bellwire().args(connect).arg(source.join("fine"))).code, 0);
    let (code, _, complaints) = listener.end();
    assert_eq!(code, 0, "{complaints:?}");
    assert_eq!(fs::read(place.path().join("memory")).expect("a file"), b"fine");
}

/// Nobody there, somebody of another version, a destination that cannot be: each is told, and what to do.
#[test]
fn what_keeps_two_sides_apart_is_told() {
    let place = Folder::new("apart");
    let source = place.path().join("from");
    fs::write(&source, "data").expect("a file");
    let device = format!("shm:{}", unique("apart"));

    let nowhere = place.path().join("no/where");
    let output = run(bellwire().args(["copy", "--device", &device, "--listen"]).arg(nowhere));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("mkdir -p"), "{}", output.stderr);

    let output = run(bellwire().args(["copy", "--device", &device, "--connect", "0"]).arg(&source));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("nobody listens"), "{}", output.stderr);
    let output = run(bellwire().args(["copy", "--device", &device, "--connect", "7"]).arg(&source));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("`bellwire copy --listen` running on 7"), "{}", output.stderr);

    let theirs = Device::open(&device).expect("a job");
    for (reason, told) in [
        (&b"this is bellwire copy 9"[..], "the same version of Bellwire on both sides"),
        (b"this is another program", "something else listens"),
        (b"\x1b[2J", "?[2J"),
    ] {
        let mut function = theirs.open_function(1).expect("a function");
        let listener = function.listen(1).expect("a number");
        let mut command = bellwire();
        command.args(["copy", "--device", &device, "--connect", "0"]).arg(&source);
        let sender = std::thread::spawn(move || run(&mut command));
        let request = function.wait_request(listener, Wait::Block, DEADLINE).expect("a sender");
        function.reject(request, reason).expect("it waits");
        while !sender.is_finished() {
            function.progress().expect("open");
            std::thread::yield_now();
        }
        let output = sender.join().expect("no panic");
        assert_eq!(output.code, 1);
        assert!(output.stderr.contains(told), "{}", output.stderr);
        assert!(!output.stderr.contains('\x1b'), "{}", output.stderr);
    }
}
