//! `bellwire copy --listen`: a peer that connects can put files into the destination, and nothing
//! else.

mod support;

use bellwire::{Device, Error, Put, Wait};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use support::attacks;
use support::copying::{Listener, Stranger, begin, chunk, entry, file, folder, link};
use support::{DEADLINE, Folder, bellwire, run, swaps, unique};

/// The command that sends `source` to node 0.
fn sending(device: &str, source: &Path) -> Command {
    let mut command = bellwire();
    command.args(["copy", "--device", device, "--connect", "0"]).arg(source);
    command
}

/// Names that lead outside, links to write through, owner's rights, absurd sizes and lies are
/// refused with a reason. They change nothing outside the destination, and the next sender is
/// served.
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
    // Peers that send nonsense, die, or put where they may not.
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

    // Another version is not served.
    match Stranger::connect(&device, b"bellwire copy 2").map(|_| ()) {
        Err(Error::Rejected { reason, .. }) => assert_eq!(reason, "this is bellwire copy 3"),
        other => panic!("{other:?}"),
    }

    let honest = place.path().join("honest");
    fs::write(&honest, "honest").expect("a file");
    run(&mut sending(&device, &honest)).done();
    let (code, reports, complaints) = listener.end();
    assert_eq!((code, reports.len()), (0, 1), "{complaints:?}");
    let report = &reports[0];
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

/// The listener's exit code also shows that the sender could not read a file.
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
    run(&mut sending(&device, &source)).failed("a socket is no file");
    let (code, reports, _) = listener.end();
    assert_eq!(code, 1);
    assert_eq!(reports[0]["failures_of_sender"], 1);
    assert_eq!(fs::read(target.join("fine")).expect("a file"), b"fine");
    assert_eq!(fs::read_link(target.join("link")).expect("a link"), Path::new("fine"));

    // A single file that cannot be read does not end the listener: it waits for the next sender.
    let listener = Listener::start(&device, &place.path().join("memory"));
    assert_eq!(run(&mut sending(&device, Path::new("/proc/self/mem"))).code, 1);
    assert_eq!(run(&mut sending(&device, &source.join("fine"))).code, 0);
    let (code, _, complaints) = listener.end();
    assert_eq!(code, 0, "{complaints:?}");
    assert_eq!(fs::read(place.path().join("memory")).expect("a file"), b"fine");
}

/// No peer, a peer of another version, an impossible destination: each is reported with a remedy.
#[test]
fn what_keeps_two_sides_apart_is_told() {
    let place = Folder::new("apart");
    let source = place.path().join("from");
    fs::write(&source, "data").expect("a file");
    let device = format!("shm:{}", unique("apart"));

    let nowhere = place.path().join("no/where");
    run(bellwire().args(["copy", "--device", &device, "--listen"]).arg(nowhere)).failed("mkdir -p");

    run(&mut sending(&device, &source)).failed("nobody listens");
    run(bellwire().args(["copy", "--device", &device, "--connect", "7"]).arg(&source))
        .failed("`bellwire copy --listen` running on 7");

    let theirs = Device::open(&device).expect("a job");
    for (reason, told) in [
        (&b"this is bellwire copy 9"[..], "the same version of Bellwire on both sides"),
        (b"this is another program", "something else listens"),
        (b"\x1b[2J", "?[2J"),
    ] {
        let mut function = theirs.open_function(1).expect("a function");
        let listener = function.listen(1).expect("a number");
        let mut command = sending(&device, &source);
        let sender = std::thread::spawn(move || run(&mut command));
        let request = function.wait_request(listener, Wait::Block, DEADLINE).expect("a sender");
        function.reject(request, reason).expect("it waits");
        while !sender.is_finished() {
            function.progress().expect("open");
            std::thread::yield_now();
        }
        let output = sender.join().expect("no panic");
        output.failed(told);
        assert!(!output.stderr.contains('\x1b'), "{}", output.stderr);
    }
}

/// Another user of this host swaps a link in for the part, or for a folder in it, at each moment of
/// a copy. It is not followed, and a copy that lost its place is not called complete.
#[test]
fn links_swapped_meanwhile_are_not_followed() {
    swaps::swapped_links(None).expect("nothing outside changes");
}

/// Senders that take all places and are silent, or send one byte now and then, lose their places to
/// an honest sender. A sender with progress keeps its place.
#[test]
fn silent_senders_lose_their_turn() {
    attacks::silent_senders(None, DEADLINE).expect("an honest sender is served");
}

/// Strangers' parts under a name, abandoned or in use, block no one. An honest sender resumes its
/// own part.
#[test]
fn leftovers_are_in_nobodys_way() {
    attacks::leftovers(None).expect("honest senders are served");
}

/// If strangers' leftovers fill the disc, they are removed.
#[test]
fn leftovers_do_not_keep_the_disc_full() {
    attacks::full_of_leftovers(None).expect("an honest sender is served");
}

/// A sender whose copy failed gets the reason, even with data still in flight.
#[test]
fn a_sender_hears_why_its_copy_failed() {
    attacks::puts_of_a_failed_copy(None).expect("puts succeed");
}

/// Two simultaneous senders both succeed, over shared memory and over a network on which they share
/// a node. The listener reports both, and ends when both are done.
#[test]
fn two_copies_at_a_time_both_succeed() {
    let place = Folder::new("both");
    let (into, sources) = (place.path().join("into"), ["a", "b"].map(|n| place.path().join(n)));
    let (network, host) = (1 + std::process::id() % 120, std::process::id() / 120 % 250);
    let address = format!("127.{network}.{host}.13");
    for (device, at) in
        [(format!("shm:{}", unique("both")), "0"), (format!("udp:{address}"), &address)]
    {
        let mut mib = 64;
        loop {
            fs::create_dir(&into).expect("a folder");
            sources.iter().for_each(|file| fs::write(file, vec![3; mib << 20]).expect("a file"));
            let listener = Listener::start(&device, &into);
            let senders = sources.clone().map(|source| {
                let mut command = bellwire();
                command.args(["copy", "--device", &device]).arg(source);
                command.args(["--connect", at]);
                command.args(device.starts_with("udp:").then_some("--plain"));
                std::thread::spawn(move || run(&mut command))
            });
            let [first, second] = senders.map(|sender| sender.join().expect("no panic"));
            let (code, reports, complaints) = listener.end();
            let failed = if first.code == 0 { second } else { first };
            if failed.code == 0 {
                assert_eq!((code, reports.len()), (0, 2), "{complaints:?}");
                break;
            }
            // The second sender came too late: use more data.
            let late = [
                "takes no more",
                "no answer",
                "no process answered",
                "nobody listens",
                "is it running",
            ];
            assert!(late.iter().any(|why| failed.stderr.contains(why)), "{}", failed.stderr);
            fs::remove_dir_all(&into).expect("ours");
            mib *= 2;
            assert!(mib <= 1024, "the two cannot be made to meet");
        }
        for name in ["a", "b"] {
            let same = fs::read(into.join(name)).expect("a copy") == vec![3; mib << 20];
            assert!(same, "{device}: {name}");
        }
        fs::remove_dir_all(&into).expect("ours");
    }
}

/// Of two senders with the same name, the first to complete gets it. Nothing is replaced, even if
/// the listener was given the name.
#[test]
fn the_first_to_be_complete_has_the_name() {
    let place = Folder::new("same");
    let (into, named) = (place.path().join("into"), place.path().join("named"));
    fs::create_dir(&into).expect("a folder");
    fs::write(&named, "old").expect("a file");
    for (destination, last) in [(&into, into.join("same")), (&named, named.clone())] {
        let device = format!("shm:{}", unique("same"));
        let listener = Listener::start(&device, destination);
        let mut senders = [(); 2].map(|()| Stranger::accepted(&device));
        for sender in &mut senders {
            // Even with one origin they have separate parts.
            sender.begin_file("same", false, 5).expect("a place");
        }
        assert_eq!(senders[1].end_file(b"right"), "Finished");
        let late = senders[0].end_file(b"wrong");
        assert!(late.to_string().contains("cannot give the copy its name"), "{late}");
        drop(senders);
        let (code, reports, complaints) = listener.end();
        assert_eq!((code, reports.len()), (0, 1), "{complaints:?}");
        assert_eq!(fs::read(last).expect("a file"), b"right");
    }
}
