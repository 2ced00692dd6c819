//! `bellwire copy` between hosts that are network namespaces: what arrives is what was sent, even
//! if a side is killed meanwhile.
//!
//! As in `network.rs` the tests make their networks themselves, which needs root and iproute2.
//! Without them each test fails and says that it did not run.

use bellwire_testkit::conformance::Patience;
use bellwire_testkit::conformance::bytes::pattern;
use bellwire_testkit::network::command::{Running, bellwire};
use bellwire_testkit::network::{Carrier, Network, ip_of};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

/// The carriers of a copy. AF_XDP carries frames, too, but the tests of `eth` show it.
const CARRIERS: [Carrier; 2] = [Carrier::Packet, Carrier::Udp];

/// A folder that is removed with its contents when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bellwire-copy-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The receiving side on host 1.
fn listen(network: &Network, destination: &Path) -> Running {
    let mut command = bellwire();
    command.args(["copy", "--device", &network.device(1), "--plain", "--listen"]).arg(destination);
    network.hosts[1].run(|| Running::listener(&mut command))
}

/// The command of the sending side on host 0.
fn connect(network: &Network, source: &Path) -> std::process::Command {
    let mut command = bellwire();
    command.args(["copy", "--json", "--device", &network.device(0), "--plain", "--connect"]);
    command.arg(ip_of(1).to_string()).arg(source);
    command
}

/// Sends to the listener.
fn send(network: &Network, source: &Path) -> Output {
    let mut command = connect(network, source);
    network.hosts[0].run(|| command.output()).expect("it starts")
}

#[track_caller]
fn assert_succeeded(output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// The exit code of a listener, once it has ended.
fn end_of(mut listener: Running) -> Option<i32> {
    let mut patience = Patience::new();
    loop {
        if let Some(status) = listener.0.try_wait().expect("a child") {
            return status.code();
        }
        patience.spend(|| "the listener does not end".into());
    }
}

/// Bytes of the one unfinished copy in `folder`, if there is one. Its name depends on its source.
fn unfinished(folder: &Path) -> Option<u64> {
    let children = fs::read_dir(folder).expect("ours").map(|child| child.expect("ours"));
    let is_part = |child: &fs::DirEntry| child.path().extension() == Some("bellwire-part".as_ref());
    let mut parts = children.filter(is_part);
    let part = parts.next()?;
    assert!(parts.next().is_none(), "there are two");
    // It may have been renamed meanwhile.
    Some(part.metadata().map_or(0, |metadata| metadata.len()))
}

/// Waits until more than `bytes` are in the unfinished copy in `folder`, or `done` is there.
fn wait_for_data(folder: &Path, bytes: u64, done: &Path) {
    let mut patience = Patience::new();
    while unfinished(folder).is_none_or(|there| there < bytes) && !done.exists() {
        patience.spend(|| format!("nothing comes to {}", folder.display()));
    }
}

/// A copy with both its processes on one host goes over the host's interface.
#[test]
fn a_copy_on_one_host_goes_over_its_interface() {
    for carrier in CARRIERS {
        let (folder, network) = (Folder::new(), Network::pair(carrier));
        let (source, copy) = (folder.at("from"), folder.at("to"));
        fs::write(&source, pattern(3, 3 << 20)).expect("room for it");
        let mut command = bellwire();
        command.args(["copy", "--device", &network.device(0)]).args([&source, &copy]);
        let output = network.hosts[0].run(|| command.output()).expect("it starts");
        assert_succeeded(&output);
        assert!(fs::read(&copy).expect("a copy") == fs::read(&source).expect("ours"));
    }
}

/// A file and a tree go from host to host, and both sides exit with 0 when everything has arrived.
#[test]
fn files_and_trees_go_from_host_to_host() {
    for carrier in CARRIERS {
        let (folder, network) = (Folder::new(), Network::pair(carrier));
        let (file, tree, into) = (folder.at("file"), folder.at("tree"), folder.at("into"));
        fs::write(&file, pattern(1, 5_000_001)).expect("room for it");
        fs::create_dir_all(tree.join("deep/er")).expect("folders");
        fs::create_dir(&into).expect("a folder");
        for number in 0..50 {
            let bytes = pattern(number, number as usize * 3_001);
            fs::write(tree.join(format!("deep/{number}")), bytes).expect("room for it");
        }
        symlink("../elsewhere", tree.join("link")).expect("a link");
        let program = tree.join("deep/7");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("ours");

        for source in [&file, &tree] {
            let listener = listen(&network, &into);
            assert_succeeded(&send(&network, source));
            assert_eq!(end_of(listener), Some(0));
        }
        assert!(fs::read(into.join("file")).expect("a copy") == fs::read(&file).expect("ours"));
        for number in 0..50 {
            let name = format!("deep/{number}");
            let read = |from: &Path| fs::read(from.join(&name)).expect("a file");
            assert!(read(&into.join("tree")) == read(&tree), "{carrier:?}: {name}");
        }
        assert!(into.join("tree/deep/er").is_dir());
        assert_eq!(
            fs::read_link(into.join("tree/link")).expect("a link"),
            Path::new("../elsewhere")
        );
        let mode = fs::metadata(into.join("tree/deep/7")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "no rights of its owner go to another host");
    }
}

/// Which side is killed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Victim {
    Sender,
    Listener,
}

/// After `kill -9` of either side half-way, nothing has the final name. A dead sender does not end
/// the listener, and a sender without a listener reports it. The same command again resumes the
/// copy.
#[test]
fn a_killed_copy_between_hosts_is_resumed() {
    for (carrier, victim) in
        CARRIERS.into_iter().flat_map(|c| [(c, Victim::Sender), (c, Victim::Listener)])
    {
        let (folder, network) = (Folder::new(), Network::pair(carrier));
        let (source, into, done) = (folder.at("big"), folder.at("into"), folder.at("into/big"));
        fs::create_dir(&into).expect("a folder");
        let mut mib = 64;
        let listener = loop {
            fs::write(&source, pattern(mib, (mib as usize) << 20)).expect("room for it");
            let listener = listen(&network, &into);
            let mut command = connect(&network, &source);
            let mut sender = Running(network.hosts[0].run(|| command.spawn()).expect("it starts"));
            wait_for_data(&into, 4 << 20, &done);
            let listener = match victim {
                Victim::Sender => {
                    sender.kill();
                    Some(listener)
                }
                Victim::Listener => {
                    listener.kill();
                    let code = sender.0.wait().expect("a child").code();
                    assert!(code == Some(1) || done.exists(), "{code:?}");
                    None
                }
            };
            if !done.exists() {
                break listener;
            }
            // The copy finished before the kill: try with more data.
            drop(listener);
            fs::remove_file(&done).expect("it is there");
            mib *= 2;
            assert!(mib <= 1024, "the copy cannot be caught");
        };
        assert!(unfinished(&into).is_some(), "{carrier:?}, {victim:?}");
        let listener = listener.unwrap_or_else(|| listen(&network, &into));
        let output = send(&network, &source);
        assert_succeeded(&output);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!told.contains("\"resumed_bytes\": 0,"), "{carrier:?}, {victim:?}: {told}");
        assert_eq!(end_of(listener), Some(0));
        assert!(fs::read(&done).expect("a copy") == fs::read(&source).expect("ours"));
        assert!(unfinished(&into).is_none());
    }
}
