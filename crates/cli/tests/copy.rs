//! `bellwire copy`: whatever happens meanwhile, the bytes that arrive are those that were sent.

mod support;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use support::{Folder, Running, bellwire, run, unique, wait};

/// Data without repetition.
fn data(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(bytes).collect()
}

fn copy(source: &Path, destination: &Path) -> support::Output {
    run(bellwire().args(["copy", "--json"]).args([source, destination]))
}

fn part(destination: &Path) -> PathBuf {
    let mut name = destination.to_owned().into_os_string();
    name.push(".bellwire-part");
    name.into()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// Files of all critical lengths arrive whole, with their permissions, and with the BLAKE3 hash of
/// their content.
#[test]
fn files_of_every_length_arrive_whole() {
    let folder = Folder::new("lengths");
    let chunk = 256 << 10;
    for bytes in [0, 1, 8191, chunk - 1, chunk, chunk + 1, 40 * chunk + 17] {
        let (source, target) = (folder.path().join("from"), folder.path().join("to"));
        let content = data(bytes, bytes as u64);
        fs::write(&source, &content).expect("a file");
        fs::set_permissions(&source, Permissions::from_mode(0o640)).expect("ours");
        let output = copy(&source, &target);
        assert_eq!(output.code, 0, "{bytes}: {}", output.stderr);
        assert!(fs::read(&target).expect("a file") == content, "{bytes} bytes");
        assert_eq!(mode(&target), 0o640);
        assert!(!part(&target).exists());
        let object = output.json();
        assert_eq!(object["blake3"], blake3::hash(&content).to_hex().as_str());
        assert_eq!((&object["files"], &object["bytes"]), (&1.into(), &bytes.into()));
    }
}

/// A file arrives whole over UDP.
#[test]
fn a_file_arrives_over_udp() {
    let folder = Folder::new("udp");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    let content = data(3 << 20, 8);
    fs::write(&source, &content).expect("a file");
    let (network, host) = (1 + std::process::id() % 120, std::process::id() / 120 % 250);
    let device = format!("udp:127.{network}.{host}.9");
    run(bellwire().args(["copy", "--device", &device]).args([&source, &target])).done();
    assert!(fs::read(&target).expect("a file") == content);
}

/// A tree arrives with its empty files and folders, its links as links, and its permissions,
/// including those of closed folders.
#[test]
fn trees_arrive_as_they_are() {
    let folder = Folder::new("tree");
    let source = folder.path().join("from");
    fs::create_dir_all(source.join("a/deep/er")).expect("folders");
    fs::create_dir(source.join("empty folder")).expect("a folder");
    fs::write(source.join("empty file"), "").expect("a file");
    fs::write(source.join("a/deep/er/file"), data(700_000, 1)).expect("a file");
    for number in 0..300 {
        fs::write(source.join(format!("a/{number}")), data(number * 11, 2)).expect("a file");
    }
    symlink("../elsewhere", source.join("a/link")).expect("a link");
    let odd = std::ffi::OsStr::new("odd \"name\"\n\u{e9}");
    fs::write(source.join(odd), "odd").expect("a file");
    fs::set_permissions(source.join("a/deep"), Permissions::from_mode(0o555)).expect("ours");
    fs::set_permissions(source.join("a/7"), Permissions::from_mode(0o400)).expect("ours");

    let target = folder.path().join("to");
    let object = copy(&source, &target).done().json();
    assert_eq!((&object["files"], &object["links"]), (&303.into(), &1.into()));
    for path in ["empty file", "a/deep/er/file", "a/0", "a/299"].map(Path::new) {
        assert!(fs::read(source.join(path)).ok() == fs::read(target.join(path)).ok(), "{path:?}");
    }
    assert_eq!(fs::read(target.join(odd)).expect("a file"), b"odd");
    assert_eq!(fs::read_link(target.join("a/link")).expect("a link"), Path::new("../elsewhere"));
    assert!(target.join("empty folder").is_dir());
    assert_eq!((mode(&target.join("a/deep")), mode(&target.join("a/7"))), (0o555, 0o400));
    assert!(!part(&target).exists());
    for place in [&source, &target] {
        fs::set_permissions(place.join("a/deep"), Permissions::from_mode(0o755)).expect("ours");
    }
}

/// If DEST is a folder, the copy goes into it under its own name. An existing file is replaced, an
/// existing folder never.
#[test]
fn names_that_exist_are_respected() {
    let folder = Folder::new("names");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "new").expect("a file");
    fs::create_dir_all(at("into/tree")).expect("a folder");
    fs::create_dir(at("tree")).expect("a folder");

    assert_eq!(copy(&at("file"), &at("into")).code, 0);
    assert_eq!(fs::read(at("into/file")).expect("a file"), b"new");
    fs::write(at("into/file"), "old and longer").expect("a file");
    assert_eq!(copy(&at("file"), &at("into")).code, 0);
    assert_eq!(fs::read(at("into/file")).expect("a file"), b"new");

    for (source, target, why) in [
        ("tree", "into", "is a folder"),
        ("tree", "file", "is no folder"),
        ("file", "nowhere/file", "mkdir -p"),
        ("tree", "file/copy", "is none"),
        ("missing", "copy", "No such file"),
    ] {
        let output = copy(&at(source), &at(target));
        assert_eq!(output.code, 1, "{source} to {target}");
        assert!(output.stderr.contains(why), "{source} to {target}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
    for (source, target) in [("into", "into/tree"), ("file", "file"), ("into/tree", "into")] {
        assert_eq!(copy(&at(source), &at(target)).code, 2, "{source} to {target}");
    }
    symlink("file", at("link")).expect("a link");
    assert_eq!(copy(&at("link"), &at("link copy")).code, 0);
    assert_eq!(fs::read_link(at("link copy")).expect("a link"), Path::new("file"));
    assert!(fs::read_dir(folder.path()).expect("ours").all(|entry| {
        !entry.expect("ours").file_name().to_string_lossy().ends_with(".bellwire-part")
    }));
}

/// Unreadable files are reported, the rest is copied, and the exit code is 1.
#[test]
fn what_cannot_be_read_is_reported() {
    let folder = Folder::new("unreadable");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("fine"), "fine").expect("a file");
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket");
    let output = copy(&source, &target);
    assert_eq!(output.code, 1);
    assert_eq!(fs::read(target.join("fine")).expect("a file"), b"fine");
    assert!(!target.join("socket").exists());
    let object = output.json();
    let failures = object["failures"].as_array().expect("an array");
    assert_eq!(failures.len(), 1);
    assert!(failures[0]["why"].as_str().is_some_and(|why| why.contains("socket")));

    // As a single source it leaves nothing.
    let unreadable = Path::new("/proc/self/mem");
    let alone = folder.path().join("memory");
    let output = copy(unreadable, &alone);
    assert_eq!(output.code, 1);
    assert_eq!(output.json()["failures"].as_array().map(Vec::len), Some(1));
    assert!(!alone.exists() && !part(&alone).exists());
}

/// A file that changes while it is read is reported, and does not get the final name; other files
/// are copied.
#[test]
fn a_file_that_changes_is_noticed() {
    let folder = Folder::new("changes");
    // Its size is 0, but it has content.
    let target = folder.path().join("status");
    let output = copy(Path::new("/proc/self/status"), &target);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("changed while it was copied"), "{}", output.stdout);
    assert!(!target.exists());

    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    fs::write(&source, data(8 << 20, 3)).expect("a file");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = OpenOptions::new().append(true).open(&source).expect("ours");
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                log.write_all(b"line\n").expect("ours");
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        });
        // If the writer pauses for a whole copy, that copy is correct; then try again.
        support::until("a copy that notices", || {
            let output = copy(&source, &target);
            if output.code == 0 {
                fs::remove_file(&target).expect("it is there");
                return false;
            }
            assert!(output.stdout.contains("changed while it was copied"), "{}", output.stdout);
            assert!(!target.exists());
            true
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    copy(&source, &target).done();
    assert!(fs::read(&source).expect("a file") == fs::read(&target).expect("a file"));
}

/// On a full disc the copy reports it, and nothing has the final name. The part is reused once
/// there is room.
#[test]
fn no_room_is_told_and_leaves_no_half_file() {
    let folder = Folder::new("room");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    let content = data(48 << 20, 5);
    fs::write(&source, &content).expect("a file");
    // A limit on file length fails a write like a full disc, and needs no privileges.
    let mut command = bellwire();
    command.args(["copy", "--json"]).args([&source, &target]);
    let limit = Rlimit { current: Some(32 << 20), ..getrlimit(Resource::Fsize) };
    // SAFETY: one system call, between fork and exec.
    unsafe { command.pre_exec(move || Ok(setrlimit(Resource::Fsize, limit)?)) };
    let output = run(&mut command);
    output.failed("longer than files may become");
    assert!(output.stderr.contains("goes on from there"), "{}", output.stderr);
    assert!(!target.exists() && part(&target).exists());

    let object = copy(&source, &target).done().json();
    assert!(object["resumed_bytes"].as_u64().is_some_and(|bytes| bytes > 16 << 20));
    assert!(fs::read(&target).expect("a file") == content && !part(&target).exists());
}

/// A full file system is reported.
#[test]
fn a_full_disk_is_told() {
    let folder = Folder::new("full");
    let place = folder.path().join("small");
    fs::create_dir(&place).expect("a folder");
    mount("tmpfs", &place, "tmpfs", MountFlags::empty(), c"size=1m")
        .expect("NOT RUN: a small file system needs root");
    let source = folder.path().join("from");
    fs::write(&source, data(3 << 20, 6)).expect("a file");
    let output = copy(&source, &place.join("to"));
    let files: Vec<_> = fs::read_dir(&place).expect("ours").flatten().collect();
    unmount(&place, UnmountFlags::DETACH).expect("mounted above");
    output.failed("no room left");
    assert!(files.iter().all(|file| file.path().to_string_lossy().ends_with(".bellwire-part")));
}

/// The side to kill.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Victim {
    Sender,
    Receiver,
}

/// Starts a copy of `source`, and kills one side once a part exists. `false` if the copy was
/// faster.
fn kill_midway(source: &Path, target: &Path, victim: Victim) -> bool {
    let device = format!("shm:{}", unique("killed"));
    let mut command = bellwire();
    command.args(["copy", "--device", &device]).args([source, target]);
    let mut sender = Running::start(&mut command);
    let arrived = || bytes_below(&part(target));
    support::until("some data", || arrived() > 5 << 20 || target.exists());
    match victim {
        Victim::Sender => sender.0.kill().expect("ours"),
        Victim::Receiver => {
            let object = run(bellwire().args(["list", "--json"])).json();
            let functions = object["functions"].as_array().expect("an array");
            let receiver = functions
                .iter()
                .find(|function| function["device"] == device && function["pid"] != sender.0.id());
            if let Some(pid) = receiver.and_then(|function| function["pid"].as_u64()) {
                let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        }
    }
    let code = wait(&mut sender.0);
    if target.exists() {
        return false;
    }
    assert_eq!(code, if victim == Victim::Sender { -1 } else { 1 });
    // Wait for the receiver too: otherwise the next attempt finds the part locked.
    support::until("the end of both", || {
        !run(bellwire().args(["list", "--json"])).stdout.contains(&device)
    });
    true
}

fn bytes_below(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let children = fs::read_dir(path).into_iter().flatten().flatten();
            children.map(|child| bytes_below(&child.path())).sum()
        }
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

/// After `kill -9` of either side nothing has the final name. The same command compares the part,
/// resumes from it, and completes the copy.
#[test]
fn a_killed_copy_is_resumed() {
    for victim in [Victim::Sender, Victim::Receiver] {
        let folder = Folder::new("killed");
        let (source, target) = (folder.path().join("from"), folder.path().join("to"));
        let mut mib = 64;
        loop {
            fs::write(&source, data(mib << 20, 4)).expect("a file");
            if kill_midway(&source, &target, victim) {
                break;
            }
            // The copy ended before the kill: use more data.
            fs::remove_file(&target).expect("it is there");
            mib *= 2;
            assert!(mib <= 1024, "the copy cannot be caught");
        }
        let left = fs::metadata(part(&target)).expect("what is left").len();
        assert!(left > 0);
        let object = copy(&source, &target).done().json();
        assert!(object["resumed_bytes"].as_u64() >= Some(left.min(1 << 20)));
        assert!(fs::read(&source).expect("a file") == fs::read(&target).expect("a file"));
        assert!(!part(&target).exists());
    }
}

/// A killed copy of a tree is resumed: files in the part are compared, not sent again. Files that
/// the source has lost are removed.
#[test]
fn a_killed_tree_is_resumed() {
    let folder = Folder::new("killed-tree");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&source).expect("a folder");
    let mut files = 32;
    loop {
        for number in 0..files {
            fs::write(source.join(format!("{number:04}")), data(2 << 20, number)).expect("a file");
        }
        if kill_midway(&source, &target, Victim::Sender) {
            break;
        }
        fs::remove_dir_all(&target).expect("it is there");
        files *= 2;
        assert!(files <= 512, "the copy cannot be caught");
    }
    fs::remove_file(source.join("0000")).expect("it is there");
    let object = copy(&source, &target).done().json();
    assert!(object["resumed_bytes"].as_u64() > Some(0));
    assert!(!target.join("0000").exists());
    for number in 1..files {
        let name = format!("{number:04}");
        assert!(fs::read(source.join(&name)).ok() == fs::read(target.join(&name)).ok(), "{name}");
    }
}

/// The part of an earlier attempt is not trusted: a different beginning is replaced.
#[test]
fn a_wrong_beginning_is_replaced() {
    let folder = Folder::new("wrong");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    let content = data(3 << 20, 5);
    fs::write(&source, &content).expect("a file");
    let mut planted = content[..2 << 20].to_vec();
    planted[1 << 20] ^= 1;
    fs::write(part(&target), &planted).expect("a file");
    assert_eq!(copy(&source, &target).done().json()["resumed_bytes"], 0);
    assert!(fs::read(&target).expect("a file") == content);

    // A correct beginning is kept, and a part that is too long is truncated.
    for length in [1 << 20, content.len(), content.len() + 5] {
        fs::remove_file(&target).expect("it is there");
        let mut planted = content.clone();
        planted.resize(length, 7);
        fs::write(part(&target), planted).expect("a file");
        let object = copy(&source, &target).done().json();
        assert_eq!(object["resumed_bytes"], length.min(content.len()));
        assert!(fs::read(&target).expect("a file") == content);
    }
}

/// Two copies to the same place do not mix: the second is refused while the first runs.
#[test]
fn two_copies_to_one_place_do_not_mix() {
    let folder = Folder::new("two");
    let (source, target) = (folder.path().join("from"), folder.path().join("to"));
    fs::write(&source, "data").expect("a file");
    // Locked in the same way as by a copy.
    let held = File::create(part(&target)).expect("a file");
    held.lock().expect("nobody else has it");
    copy(&source, &target).failed("another copy");
    drop(held);
    assert_eq!(copy(&source, &target).code, 0);
}
