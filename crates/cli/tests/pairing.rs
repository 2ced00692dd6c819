//! `bellwire copy --listen` on a network: a code of one use lets one sender in, and nobody else.

mod support;

use bellwire::{Address, Device, Wait};
use bellwire_keys::{Code, KeyFile, Pairing, Side};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use support::copying::{PAIRING, RECEIVER, Stranger, VERSION, begin, file, folder};
use support::{DEADLINE, Folder, Output, Running, bellwire, run, until, wait};

/// A loopback address for each test of this process.
fn device(last: u8) -> String {
    let number = std::process::id();
    format!("udp:127.{}.{}.{last}", 1 + number % 120, number / 120 % 250)
}

fn host(device: &str) -> &str {
    device.strip_prefix("udp:").expect("such a device")
}

/// A listener, and the lines that it prints.
struct Listener {
    running: Running,
    lines: Receiver<String>,
    /// The lines that were looked at.
    seen: Vec<String>,
}

impl Listener {
    fn start(device: &str, destination: &Path, more: &[&str]) -> Listener {
        let mut command = bellwire();
        command.args(["copy", "--json", "--device", device, "--listen"]).arg(destination);
        command.args(more).env_remove("BELLWIRE_KEY");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().expect("it starts"));
        let (tell, lines) = channel();
        let printed = BufReader::new(running.0.stderr.take().expect("piped")).lines();
        std::thread::spawn(move || {
            printed.map_while(Result::ok).for_each(|line| {
                let _ = tell.send(line);
            });
        });
        Listener { running, lines, seen: Vec::new() }
    }

    /// Waits for a line with `part`.
    #[track_caller]
    fn says(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {
                    panic!("no line has {part:?}: {:#?}", self.seen)
                }
            }
            let line = self.seen.last().expect("just pushed");
            if line.contains(part) {
                return line.clone();
            }
        }
    }

    /// The next code.
    fn code(&mut self) -> Code {
        let line = self.says("The code, for one copy: ");
        let (_, code) = line.rsplit_once(' ').expect("words");
        Code::parse(code).expect("a code")
    }

    fn ends(mut self) -> i32 {
        wait(&mut self.running.0)
    }
}

/// The command that sends `source` to the host of `device`, which is ours, too.
fn sending(device: &str, source: &Path, code: Option<&Code>) -> Command {
    let mut command = bellwire();
    command.args(["copy", "--json", "--device", device, "--connect", host(device)]);
    command.arg(source).args(code.map(Code::to_string)).env_remove("BELLWIRE_KEY");
    command
}

fn send(device: &str, source: &Path, code: &Code) -> Output {
    run(&mut sending(device, source, Some(code)))
}

/// A folder to receive in, and a file to send.
fn places(folder: &Folder) -> (PathBuf, PathBuf) {
    let (into, source) = (folder.path().join("into"), folder.path().join("from"));
    fs::create_dir(&into).expect("a folder");
    fs::write(&source, "some data").expect("a file");
    (into, source)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("ours").next().is_none()
}

/// The right code lets one copy in, also when it is typed and not in the command. Then the listener
/// ends, and the code leads nowhere.
#[test]
fn a_code_lets_one_copy_in() {
    let folder = Folder::new("code");
    let (into, source) = places(&folder);
    let device = device(31);
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    let mut command = sending(&device, &source, None);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut sender = Running(command.spawn().expect("it starts"));
    let typed = format!("{}\n", code.to_string().to_lowercase());
    let mut input = sender.0.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, typed.as_bytes()).expect("a pipe");
    assert_eq!((wait(&mut sender.0), listener.ends()), (0, 0));
    assert_eq!(fs::read(into.join("from")).expect("a copy"), b"some data");
    // The listener is gone, and with it the code.
    send(&device, &source, &code).failed("Is `bellwire copy --listen`");
}

/// Wrong codes are counted, and each keeps the next one waiting. Not a byte arrives, and the right
/// code still works.
#[test]
fn wrong_codes_are_counted_and_slowed() {
    let folder = Folder::new("wrong");
    let (into, source) = places(&folder);
    let device = device(32);
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    for (count, pause) in [(1, "0.5 s"), (2, "1 s"), (3, "2 s")] {
        let wrong = Code::new([count; 5]);
        assert_ne!(wrong, code);
        let output = send(&device, &source, &wrong);
        output.failed(&format!("It has counted {count} wrong"));
        assert!(output.stderr.contains("the code is wrong"), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("the next in {pause}")), "{}", output.stderr);
        listener.says(&format!("gave a wrong code, number {count} so far"));
        assert!(is_empty(&into));
    }
    send(&device, &source, &code).done();
    assert_eq!(listener.ends(), 0);
    assert_eq!(fs::read(into.join("from")).expect("a copy"), b"some data");
}

/// While a copy runs its code lets nobody else in. When the copy fails, the code is spent, and
/// another one works.
#[test]
fn a_code_is_good_for_one_sender() {
    let folder = Folder::new("once");
    let (into, source) = places(&folder);
    let device = device(33);
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    let mut first = Stranger::paired(&device, &code);
    first.hello("held", false);
    let mut command = sending(&device, &source, Some(&code));
    let second = std::thread::spawn(move || run(&mut command));
    while !second.is_finished() {
        // Who does not answer for 5 s counts as dead.
        first.function.progress().expect("open");
        std::thread::yield_now();
    }
    second.join().expect("no panic").failed("the code is used");
    // A sender without the key is not heard at the function that takes copies.
    let plain = Device::open(&device).expect("loopback");
    let mut function = plain.open_function(7).expect("nobody has it");
    let queue = function.create_completion_queue(16).expect("room");
    let options = bellwire::QueuePairOptions::new(queue);
    let pair = function.create_queue_pair(&options).expect("room");
    let at = Address::new(plain.node(), RECEIVER, 1);
    let patience = std::time::Duration::from_secs(1);
    assert!(matches!(
        function.connect(pair, at, VERSION, patience),
        Err(bellwire::Error::Unreachable { .. })
    ));
    drop(first);
    let next = listener.code();
    assert_ne!(next, code);
    send(&device, &source, &code).failed("the code is wrong");
    send(&device, &source, &next).done();
    assert_eq!(listener.ends(), 0);
}

/// A sender with the code can still put nothing outside of the destination.
#[test]
fn a_code_opens_the_destination_only() {
    let place = Folder::new("inside");
    let (into, source) = places(&place);
    let device = device(34);
    let mut listener = Listener::start(&device, &into, &[]);
    for (name, is_folder, entry) in
        [("../out", false, None), ("tree", true, Some("../out")), ("tree", true, Some("/tmp/out"))]
    {
        let code = listener.code();
        let mut stranger = Stranger::paired(&device, &code);
        let answer = stranger.hello(name, is_folder);
        let why = match entry {
            None => answer["Failed"]["why"].as_str().expect("refused").to_owned(),
            Some(entry) => stranger.turned_away(&[folder(""), file(entry, 3), begin()]),
        };
        assert!(why.contains("leads elsewhere") || why.contains("is none"), "{why}");
        drop(stranger);
    }
    let code = listener.code();
    send(&device, &source, &code).done();
    assert_eq!(listener.ends(), 0);
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("ours")
            .map(|entry| entry.expect("ours").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(place.path()), ["from", "into"]);
    assert!(into.join("from").is_file() && !Path::new("/tmp/out").exists());
}

/// After `kill -9` of the sender the listener prints another code; after that of the listener the
/// sender says so. Either way the copy goes on from its part.
#[test]
fn a_killed_end_costs_the_code_and_not_the_part() {
    let folder = Folder::new("killed");
    let (into, source) = places(&folder);
    // A hole reads fast, takes no room, and is not copied as one.
    let device = device(35);
    let size = 1_u64 << 30;
    fs::File::create(&source).expect("ours").set_len(size).expect("a hole");
    let arrived = || {
        let children = fs::read_dir(&into).expect("ours").flatten();
        children.filter_map(|child| child.metadata().ok()).map(|about| about.len()).sum::<u64>()
    };
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    let mut sender = Running::start(&mut sending(&device, &source, Some(&code)));
    until("some data", || arrived() > 1 << 20);
    sender.0.kill().expect("ours");
    wait(&mut sender.0);
    assert!(!into.join("from").exists(), "1 GiB was faster than the kill");
    listener.says("That copy is not complete");
    let code = listener.code();
    let before = arrived();
    let sender = std::thread::spawn({
        let (device, source) = (device.clone(), source.clone());
        move || send(&device, &source, &code)
    });
    until("more data", || arrived() > before + (1 << 20));
    listener.running.kill();
    let output = sender.join().expect("no panic");
    output.failed("the copy is not complete");
    assert!(!into.join("from").exists());

    // A short file with the same beginning completes the part.
    let left = arrived();
    fs::OpenOptions::new().write(true).open(&source).expect("ours").set_len(left + 5).expect("it");
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    let object = send(&device, &source, &code).done().json();
    assert_eq!(object["resumed_bytes"], left);
    assert_eq!(listener.ends(), 0);
    assert_eq!(fs::metadata(into.join("from")).expect("a copy").len(), left + 5);
}

/// A full disc, and a source that changes, are told to both sides, and nothing has the final name.
#[test]
fn troubles_are_told_over_a_network() {
    let folder = Folder::new("troubles");
    let (into, source) = places(&folder);
    let device = device(36);
    mount("tmpfs", &into, "tmpfs", MountFlags::empty(), c"size=1m")
        .expect("NOT RUN: a small file system needs root");
    fs::write(&source, vec![7; 3 << 20]).expect("a file");
    let mut listener = Listener::start(&device, &into, &[]);
    let code = listener.code();
    let full = send(&device, &source, &code);
    listener.says("no room left");
    let code = listener.code();
    // Its size is 0, but it has content.
    let changed = send(&device, Path::new("/proc/self/status"), &code);
    let code = listener.code();
    fs::write(&source, "fits").expect("a file");
    let fits = send(&device, &source, &code);
    let ended = listener.ends();
    let names: Vec<_> = fs::read_dir(&into).expect("ours").flatten().collect();
    unmount(&into, UnmountFlags::DETACH).expect("mounted above");
    full.failed("no room left");
    assert_eq!(changed.code, 1);
    assert!(changed.stdout.contains("changed while it was copied"), "{}", changed.stdout);
    assert_eq!((fits.code, ended), (0, 0), "{}", fits.stderr);
    let whole = names.iter().filter(|name| name.file_name() == "from").count();
    let parts =
        names.iter().filter(|name| name.file_name().to_string_lossy().ends_with(".bellwire-part"));
    assert_eq!((whole, whole + parts.count()), (1, names.len()));
}

/// Who answers in the listener's place without the code gets nothing but one guess.
#[test]
fn a_false_listener_gets_nothing() {
    let folder = Folder::new("false");
    let (_, source) = places(&folder);
    let device = device(37);
    let false_one = Device::open(&device).expect("loopback");
    let mut function = false_one.open_function(PAIRING).expect("nobody has it");
    let listener = function.listen(1).expect("a number");
    let mut command = sending(&device, &source, Some(&Code::new([1; 5])));
    let sender = std::thread::spawn(move || run(&mut command));
    let request = function.wait_request(listener, Wait::Block, DEADLINE).expect("a sender");
    let queue = function.create_completion_queue(16).expect("room");
    let options = bellwire::QueuePairOptions::new(queue);
    let pair = function.create_queue_pair(&options).expect("room");
    let post = function.post_receive(pair, vec![0; 1024], 0);
    post.map_err(bellwire::Error::from).expect("room");
    let guess = Pairing::begin(&Code::new([2; 5]), Side::Listener);
    let message = *guess.message();
    function.accept(request, pair, &message).expect("it waits");
    let heard = function.wait(queue, Wait::Block, DEADLINE).expect("its proof");
    let bytes = heard.buffer.expect("a buffer").into_bytes(heard.length);
    let heard: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(heard["Proof"].is_array(), "{heard}");
    let answer = json!({ "Proof": vec![0; 32] }).to_string();
    let post = function.post_send(pair, bellwire::Message::inline(answer.as_bytes()));
    post.map_err(bellwire::Error::from).expect("room");
    while !sender.is_finished() {
        function.progress().expect("open");
        std::thread::yield_now();
    }
    sender.join().expect("no panic").failed("does not know the code");
}

/// A key file takes the place of the code. Another key is not heard, and neither is a code.
#[test]
fn a_key_takes_the_place_of_the_code() {
    let folder = Folder::new("keyed");
    let (into, source) = places(&folder);
    let device = device(38);
    let [key, other] = [1, 2].map(|number| {
        let file = folder.path().join(format!("{number}.key"));
        KeyFile::Shared([number; 32]).create(&file).expect("a key file");
        file.to_str().expect("text").to_owned()
    });
    let mut listener = Listener::start(&device, &into, &["--key", &key]);
    listener.says("Only senders with the key are heard.");
    let with = |key: &str| {
        let mut command = sending(&device, &source, None);
        run(command.args(["--key", key]))
    };
    with(&other).failed("with the same key");
    send(&device, &source, &Code::new([1; 5])).failed("without --key");
    assert!(is_empty(&into));
    with(&key).done();
    assert_eq!(listener.ends(), 0);
}

/// Without a code and a key both sides say loudly what that means.
#[test]
fn plain_copies_are_loud() {
    let folder = Folder::new("plain");
    let (into, source) = places(&folder);
    let device = device(39);
    let mut listener = Listener::start(&device, &into, &["--plain"]);
    listener.says("WARNING: --plain: nothing is encrypted");
    let output = run(sending(&device, &source, None).arg("--plain")).done();
    assert!(output.stderr.contains("WARNING: --plain"), "{}", output.stderr);
    assert_eq!(listener.ends(), 0);
    let both = run(sending(&device, &source, None).args(["--plain", "--key", "a.key"]));
    assert_eq!(both.code, 2, "{}", both.stderr);
}
