//! The agent and its programs as threads, which become other users. Each test has a network of its
//! own.

use super::channel::{self, Peer, Received};
use super::client::{AgentClient, Trouble, interfaces_of};
use super::message::{ANSWER_BYTES, Answer, Heard, REQUEST_BYTES, Refused, Request, VERSION, Want};
use super::owners::{self, Owner};
use super::server::{Agent, AgentOptions};
use super::{PATH, SOCKETS_OF_USER};
use crate::eth_device::{EthDevice, EthOptions};
use crate::interface::Interface;
use crate::link_header::EVERY_FUNCTION;
use crate::socket;
use crate::testing::{enter_new_namespace, ip};
use bellwire_device::NodeInfo;
use rustix::io::FdFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel as results};
use std::thread;
use std::time::{Duration, Instant};

const USER: u32 = 65_533;
const OTHER_USER: u32 = 65_530;
/// The group that agents serve. No table of a host names it.
const GROUP: u32 = 65_532;

/// Runs a test in a network of its own with a folder of its own, and fails if it does not end.
fn apart(seconds: u64, test: impl FnOnce(&Path) + Send + 'static) {
    let (told, ends) = results();
    let running = thread::spawn(move || {
        enter_new_namespace()
            .and_then(|()| ip("link add n0 type veth peer name n1\nlink set n0 up"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        // SAFETY: a query without side effects.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        let folder = std::env::temp_dir().join(format!("agent-{thread}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        test(&folder);
        std::fs::remove_dir_all(folder).expect("the folder was made here");
        let _ = told.send(());
    });
    // The channel is also closed by a test that fails.
    let ended = ends.recv_timeout(Duration::from_secs(seconds));
    assert_ne!(ended, Err(RecvTimeoutError::Timeout), "it does not end");
    running.join().expect("the test passes");
}

/// Does something as another user, in these groups beside that of root.
fn as_user<T: Send>(user: u32, groups: &[u32], act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            // SAFETY: system calls of this thread alone: the C library's would change all threads.
            let done = unsafe {
                libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
                    && libc::syscall(libc::SYS_setresuid, user, user, user) == 0
            };
            assert!(done, "NOT RUN: becoming another user needs root");
            act()
        });
        acting.join().expect("no panic")
    })
}

fn options(path: &Path) -> AgentOptions {
    AgentOptions {
        interfaces: vec!["n0".into(), "n1".into()],
        group: (GROUP, "testers".into()),
        path: Some(path.to_owned()),
        listener: None,
        allow_unrestricted: false,
    }
}

/// An agent that serves both interfaces, and how to ask it.
fn start(folder: &Path) -> AgentClient {
    let path = folder.join("agent.sock");
    let mut agent = Agent::open(options(&path)).expect("root, and nft of nftables");
    assert_eq!(agent.unrestricted(), None, "NOT RUN: restricting needs nft of nftables");
    thread::spawn(move || agent.serve());
    AgentClient { path }
}

fn found(name: &str) -> Interface {
    Interface::find(name).expect("it was just made")
}

/// What a program is told.
fn told<T: std::fmt::Debug>(result: Result<T, Trouble>) -> String {
    result.expect_err("trouble").into_error("eth", 3).to_string()
}

fn waits_for(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(6);
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A member of the group is told the interfaces, and gets the socket of a function that nobody
/// has. Others are refused, each for its reason.
#[test]
fn members_get_sockets() {
    apart(8, |folder| {
        let client = start(folder);
        let [n0, n1] = ["n0", "n1"].map(found);
        as_user(USER, &[GROUP], || {
            assert_eq!(client.interfaces().expect("a member"), ["n0", "n1"]);
            assert_eq!(interfaces_of(&client.path).expect("a member"), ["n0", "n1"]);
            client.serves(["n1", "n0"].into_iter()).expect("both");
            let said = told(client.serves(["n0", "n2"].into_iter()));
            assert!(said.contains("serves n0 n1, and not n2"), "{said}");
        });
        let given =
            as_user(USER, &[7, GROUP], || client.packet_socket(&n0, 3)).expect("it is free");
        let owner = Owner { index: n0.index, function: 3, user: USER };
        assert_eq!(owners::all().expect("root"), [owner]);
        let option = |name| socket::query(given.as_fd(), libc::SOL_SOCKET, name, 0u32);
        assert_eq!(option(libc::SO_LOCK_FILTER).expect("the kernel tells"), 1);
        let mark = 0xb300_0000 | n0.index;
        assert_eq!(option(libc::SO_MARK).expect("the kernel tells"), mark);
        as_user(OTHER_USER, &[GROUP], || {
            let again = client.ask_for_packet(&n0, 3);
            assert!(matches!(again, Err(Trouble::InUse)), "{again:?}");
            client.ask_for_packet(&n1, 3).expect("the same function of another interface");
            client.ask_for_packet(&n0, 4).expect("another function");
            let all = [0, 1].map(|_| client.ask_for_packet(&n0, EVERY_FUNCTION));
            assert!(all.iter().all(Result::is_ok), "frames for all are for everybody: {all:?}");
        });
        drop(given);
        client.packet_socket(&n0, 3).expect("root may ask, and it is free");
        // The file says who may connect, and the agent says so again.
        let outside = || as_user(OTHER_USER, &[7], || told(client.interfaces()));
        assert!(outside().contains("members of the group 65532, "), "{}", outside());
        chown(&client.path, None, Some(1)).expect("root");
        assert!(outside().contains("members of the group daemon, "), "{}", outside());
        std::fs::set_permissions(&client.path, std::fs::Permissions::from_mode(0o666))
            .expect("ours");
        assert!(outside().contains("members of the group testers, "), "{}", outside());
        // A program in another network namespace sees another number.
        let elsewhere = Interface { index: n0.index + 1, ..found("n0") };
        let said = told(client.ask_for_packet(&elsewhere, 5));
        assert!(said.contains("is in another network namespace"), "{said}");
    });
}

/// A device asks the agent if the process may not make sockets, and says so.
#[test]
fn devices_without_privileges_ask() {
    apart(8, |folder| {
        let client = start(folder);
        as_user(USER, &[GROUP], || {
            let options = EthOptions { agent: Some(client.path.clone()), ..EthOptions::default() };
            let device = EthDevice::open("n0", &options).expect("a member");
            let function = device.open_function(3).expect("it is free");
            let said = device.describe();
            assert!(said.contains("by AF_PACKET, because the agent gave its socket"), "{said}");
            assert!(said.ends_with(&format!("; the agent at {}", client.path.display())), "{said}");
            let again = device.open_function(3).err().expect("it is open").to_string();
            assert!(again.contains("it is open already"), "{again}");
            drop(function);
            let missing = EthOptions { agent: Some(folder.join("none")), ..EthOptions::default() };
            let missing = EthDevice::open("n0", &missing).err().expect("no agent").to_string();
            assert!(missing.contains("no agent answers"), "{missing}");
        });
    });
}

/// A user has a limit, another user has its own, and root has none.
#[test]
fn users_have_limits() {
    apart(8, |folder| {
        let client = start(folder);
        let n0 = found("n0");
        let ask = || client.ask_for_packet(&n0, EVERY_FUNCTION);
        let held = as_user(USER, &[GROUP], || {
            let held: Vec<_> = (0..SOCKETS_OF_USER).map(|_| ask().expect("within")).collect();
            let said = told(ask());
            assert!(said.contains(&format!("gives a user {SOCKETS_OF_USER} sockets")), "{said}");
            held
        });
        as_user(OTHER_USER, &[GROUP], ask).expect("its own limit");
        let of_root: Vec<_> = (0..=SOCKETS_OF_USER).map(|_| ask().expect("no limit")).collect();
        drop((held, of_root));
        // A process that is just being started still has copies of the descriptors.
        waits_for("closed sockets do not count", || as_user(USER, &[GROUP], ask).is_ok());
    });
}

/// A program is in all groups that the kernel lists, however many these are.
#[test]
fn all_groups_are_seen() {
    apart(8, |folder| {
        let listener = channel::bind(&folder.join("groups")).expect("a new name");
        rustix::net::listen(&listener, 8).expect("it is bound");
        std::fs::set_permissions(folder.join("groups"), std::fs::Permissions::from_mode(0o666))
            .expect("ours");
        for count in [0, 1, 63, 64, 65, 200] {
            let groups: Vec<u32> = (1000..1000 + count).collect();
            let asking = as_user(USER, &groups, || channel::connect(&folder.join("groups")));
            let connection = channel::accept(&listener).expect("it waits");
            let peer = Peer::of(&connection).expect("the kernel knows");
            let expected: Vec<u32> = groups.into_iter().chain([0]).collect();
            assert_eq!(peer, Peer { user: USER, groups: expected });
            drop(asking);
        }
    });
}

/// A record arrives with its descriptor. More descriptors than fit, a record that is too long and
/// an end are told as an end. No call waits, and no descriptor is inherited.
#[test]
fn records_carry_a_descriptor() {
    apart(8, |folder| {
        let path = folder.join("channel");
        let listener = channel::bind(&path).expect("a new name");
        rustix::net::listen(&listener, 8).expect("it is bound");
        let nobody = channel::accept(&listener).expect_err("nobody connects");
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
        let near = channel::connect(&path).expect("it listens");
        let far = channel::accept(&listener).expect("it waits");
        let is_private = |fd: &OwnedFd| {
            rustix::io::fcntl_getfd(fd).is_ok_and(|flags| flags.contains(FdFlags::CLOEXEC))
        };
        assert!([&listener, &near, &far].into_iter().all(is_private));
        let receive = || channel::receive::<8>(&far);
        assert!(matches!(receive(), Received::Nothing));
        for fd in [None, Some(listener.as_fd())] {
            channel::send(&near, &[7; 8], fd).expect("room");
            let Received::Record(bytes, fds) = receive() else { panic!("a record was sent") };
            assert_eq!((bytes, fds.len()), (vec![7; 8], usize::from(fd.is_some())));
            assert!(fds.iter().all(is_private));
        }
        channel::send(&near, &[7; 9], None).expect("room");
        assert!(matches!(receive(), Received::Closed), "nine bytes");
        let many = [near.as_fd(); 16];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&many)));
        let bytes = [io::IoSlice::new(&[1])];
        rustix::net::sendmsg(&near, &bytes, &mut ancillary, rustix::net::SendFlags::empty())
            .expect("room");
        assert!(matches!(receive(), Received::Closed), "sixteen descriptors");
        // Until there is no room, which is told at once.
        let full =
            std::iter::repeat_with(|| channel::send(&near, &[0; 8], None)).find_map(Result::err);
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
        drop(near);
        while matches!(receive(), Received::Record(..)) {}
        assert!(matches!(receive(), Received::Closed), "the other end");
    });
}

/// A name that is too long is cut, and one that fills its field is none.
#[test]
fn names_have_an_end() {
    let interface = |name: &str| Request {
        want: Want::Interfaces,
        function: 1,
        index: 2,
        interface: name.into(),
    };
    let cut = interface("sixteen and more").to_bytes();
    assert_eq!(Heard::parse(&cut), Heard::Request(interface("sixteen and mor")));
    let mut full = cut;
    full[REQUEST_BYTES - 1] = b'e';
    assert_eq!(Heard::parse(&full), Heard::Garbage);
}

/// Connections that say nothing: a user has eight, and all users have 64. One more closes the
/// oldest of its user, or of the user who has the most. Each is closed in a second.
#[test]
fn silent_connections_are_few_and_short() {
    apart(60, |folder| {
        let client = start(folder);
        let silent = |user: u32, count: usize| -> Vec<OwnedFd> {
            let connect = |_| channel::connect(&client.path).expect("it listens");
            as_user(2000 + user, &[GROUP], || (0..count).map(connect).collect())
        };
        let is_closed = |it: &OwnedFd| matches!(channel::receive::<8>(it), Received::Closed);
        // Whether the ends come in less than the second after which all end anyway.
        let attempt = |users: u32, closed: &dyn Fn(&[OwnedFd]) -> Option<bool>| {
            let begin = Instant::now();
            let all: Vec<OwnedFd> = (0..users).flat_map(|user| silent(user, 8)).collect();
            let last = silent(if users == 1 { 0 } else { users }, 1);
            loop {
                let is_right = closed(&all).map(|is_right| is_right && !is_closed(&last[0]));
                if begin.elapsed() > Duration::from_millis(900) {
                    return false;
                }
                if let Some(is_right) = is_right {
                    assert!(is_right);
                    return true;
                }
            }
        };
        let one = |all: &[OwnedFd]| {
            let ended: Vec<bool> = all.iter().map(is_closed).collect();
            let count = ended.iter().filter(|&&it| it).count();
            // The oldest of a user.
            (count > 0).then(|| count == 1 && ended.iter().step_by(8).any(|&it| it))
        };
        let deadline = Instant::now() + Duration::from_secs(50);
        for users in [1, 8] {
            while !attempt(users, &one) {
                assert!(Instant::now() < deadline, "none of {} is closed", users * 8 + 1);
                // What is left of the attempt ends.
                thread::sleep(Duration::from_millis(1_100));
            }
            thread::sleep(Duration::from_millis(100));
        }
        let [first, second] = [(); 2].map(|()| silent(0, 1).remove(0));
        client.interfaces().expect("others are answered meanwhile");
        waits_for("silence ends", || is_closed(&first));
        waits_for("silence ends", || is_closed(&second));
    });
}

/// A request of another version is told ours. Garbage, and a request with a descriptor, get no
/// answer.
#[test]
fn only_requests_are_answered() {
    apart(8, |folder| {
        let client = start(folder);
        let interface = "n0".to_owned();
        let request =
            Request { want: Want::Packet, function: 9, index: found("n0").index, interface };
        let answered = |bytes: &[u8], with_fd: bool| {
            let asking = channel::connect(&client.path).expect("it listens");
            channel::send(&asking, bytes, with_fd.then_some(asking.as_fd())).expect("room");
            let heard = || channel::receive::<ANSWER_BYTES>(&asking);
            loop {
                match heard() {
                    Received::Nothing => thread::sleep(Duration::from_millis(1)),
                    Received::Record(bytes, _) => return Answer::parse(&bytes),
                    Received::Closed => return None,
                }
            }
        };
        let mut other = request.to_bytes();
        other[4] += 1;
        let refused = Answer::Refused(Refused::Version, VERSION, String::new());
        assert_eq!(answered(&other, false), Some(refused));
        assert_eq!(answered(&request.to_bytes(), true), None, "with a descriptor");
        assert_eq!(answered(&request.to_bytes()[1..], false), None, "garbage");
        assert_eq!(answered(&request.to_bytes(), false), Some(Answer::Granted));
    });
}

/// An agent makes its folder, lets its group connect, takes the place of one that has ended, and
/// leaves that of one that lives.
#[test]
fn one_agent_listens_at_a_path() {
    apart(8, |folder| {
        let path = folder.join("new/agent.sock");
        let agent = Agent::open(options(&path)).expect("root, and nft of nftables");
        let file = std::fs::metadata(&path).expect("it listens");
        assert_eq!((file.mode() & 0o777, file.gid()), (0o660, GROUP));
        let second = Agent::open(options(&path)).err().expect("one listens");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(second.to_string().contains("another agent listens there"), "{second}");
        drop(agent);
        assert!(path.exists(), "a killed agent leaves its file, too");
        drop(Agent::open(options(&path)).expect("its place is free"));
        std::fs::write(folder.join("file"), "").expect("a file");
        let within = Agent::open(options(&folder.join("file/agent.sock"))).err();
        let within = within.expect("a file has no files").to_string();
        assert!(!within.contains("another agent"), "{within}");
        assert!(PATH.ends_with("agent.sock"));
    });
}

/// The rules name each interface, also one that comes later. They are made again when somebody has
/// removed them.
#[test]
fn rules_follow_the_interfaces() {
    apart(20, |folder| {
        let client = start(folder);
        let rules = || {
            let listed = std::process::Command::new("nft").args(["list", "ruleset"]).output();
            String::from_utf8_lossy(&listed.expect("NOT RUN: nft of nftables").stdout).into_owned()
        };
        assert!(["lo", "n0", "n1"].iter().all(|name| rules().contains(name)), "{}", rules());
        ip("link add late type veth peer name later").expect("an interface");
        waits_for("a rule for the interface that came late", || rules().contains("late"));
        ip("link del late").expect("an interface");
        waits_for("no rule for one that has gone", || !rules().contains("late"));
        let flushed = std::process::Command::new("nft").args(["flush", "ruleset"]).status();
        assert!(flushed.expect("it has run before").success());
        waits_for("rules again", || {
            client.interfaces().expect("root may ask");
            rules().contains("n0")
        });
    });
}

/// While nft cannot have a rule, no program gets anything, and each is told why and what to do. An
/// agent that was told so gives sockets all the same, and says that nothing restricts them.
#[test]
fn nothing_is_given_unrestricted() {
    apart(8, |folder| {
        let client = start(folder);
        let n0 = found("n0");
        let quote = "link add quote\" type veth peer name other";
        ip(quote).expect("an interface");
        for user in [USER, 0] {
            as_user(user, &[GROUP], || {
                for said in [told(client.interfaces()), told(client.ask_for_packet(&n0, 3))] {
                    assert!(said.contains("cannot restrict what programs send"), "{said}");
                    assert!(said.contains("has a name that nft cannot read"), "{said}");
                    assert!(said.contains("apt-get install nftables"), "{said}");
                }
            });
        }
        assert!(owners::all().expect("root").is_empty(), "a socket was given");
        ip("link del quote\"").expect("an interface");
        as_user(USER, &[GROUP], || client.ask_for_packet(&n0, 4)).expect("restricted again");
        ip(quote).expect("an interface");
        let path = folder.join("open.sock");
        let mut open =
            Agent::open(AgentOptions { allow_unrestricted: true, ..options(&path) }).expect("root");
        let why = open.unrestricted().expect("it says why not");
        assert!(why.contains("has a name that nft cannot read"), "{why}");
        thread::spawn(move || open.serve());
        let open = AgentClient { path };
        as_user(USER, &[GROUP], || open.ask_for_packet(&n0, 3)).expect("it was told so");
    });
}

/// What an agent of a test does with a request.
enum Does {
    Closes,
    Answers(Answer, Option<OwnedFd>),
    Babbles,
    Nothing,
}

/// The next connection, which may be still to come.
fn next(listener: &OwnedFd) -> OwnedFd {
    let deadline = Instant::now() + Duration::from_secs(6);
    loop {
        match channel::accept(listener) {
            Ok(connection) => return connection,
            Err(error) => assert!(Instant::now() < deadline, "a program asks: {error}"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// An agent that does these things with one request each, and then ends.
fn pretend(path: &Path, plan: Vec<Does>) -> thread::JoinHandle<()> {
    let listener = channel::bind(path).expect("a new name");
    rustix::net::listen(&listener, 8).expect("it is bound");
    let path = path.to_owned();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for does in plan {
            let connection = next(&listener);
            let heard = || channel::receive::<REQUEST_BYTES>(&connection);
            waits_for("a request", || !matches!(heard(), Received::Nothing));
            let (bytes, fd) = match does {
                Does::Closes => continue,
                Does::Nothing => {
                    silent.push(connection);
                    continue;
                }
                Does::Babbles => (b"no answer".to_vec(), None),
                Does::Answers(answer, fd) => (answer.to_bytes(), fd),
            };
            channel::send(&connection, &bytes, fd.as_ref().map(AsFd::as_fd)).expect("room");
        }
        drop(listener);
        std::fs::remove_file(path).expect("it was bound here");
        if !silent.is_empty() {
            thread::sleep(Duration::from_secs(10));
        }
    })
}

/// A program asks again while an agent is restarted, and not where there is none.
#[test]
fn restarts_are_waited_for() {
    apart(8, |folder| {
        let client = AgentClient { path: folder.join("agent.sock") };
        let missing = client.interfaces();
        assert!(matches!(missing, Err(Trouble::Missing(_))), "{missing:?}");
        assert!(told(missing).contains("bellwire agent --iface IFACE"));
        std::fs::write(&client.path, "").expect("a file");
        let nobody = client.interfaces();
        assert!(matches!(nobody, Err(Trouble::Missing(_))), "nobody listens: {nobody:?}");
        std::fs::remove_file(&client.path).expect("it was made here");
        let (path, answer) = (client.path.clone(), Answer::Interfaces("n7 n8".into()));
        let first = pretend(&path, vec![Does::Closes, Does::Closes]);
        let second = thread::spawn(move || {
            first.join().expect("two programs asked");
            thread::sleep(Duration::from_millis(50));
            pretend(&path, vec![Does::Answers(answer, None)]).join().expect("one asked");
        });
        assert_eq!(client.interfaces().expect("the second answers"), ["n7", "n8"]);
        second.join().expect("both agents were asked");
        let ends = pretend(&client.path, (0..51).map(|_| Does::Closes).collect());
        let said = told(client.interfaces());
        assert!(said.contains("ends before it answers"), "{said}");
        assert!(said.contains("systemctl restart bellwire-agent"), "{said}");
        // On a busy machine the program's patience ends before the agent's plan.
        drop(ends);
        let long = AgentClient { path: folder.join("x".repeat(200)) };
        let said = told(long.interfaces());
        assert!(said.contains("cannot be asked"), "{said}");
    });
}

/// An answer that does not fit the question, a socket of another kind and one of another network
/// namespace are refused.
#[test]
fn answers_must_fit() {
    apart(8, |folder| {
        let client = AgentClient { path: folder.join("agent.sock") };
        let n0 = found("n0");
        let packet = || socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).expect("root");
        let elsewhere = thread::spawn(move || {
            enter_new_namespace().expect("root");
            packet()
        });
        let elsewhere = elsewhere.join().expect("a socket");
        let other = |family, kind| Some(socket::open(family, kind, 0).expect("a socket"));
        for (does, says) in [
            (Does::Babbles, "gives no proper answer"),
            (Does::Answers(Answer::Interfaces("n0".into()), None), "gives no proper answer"),
            (Does::Answers(Answer::Granted, None), "gives no proper answer"),
            (
                Does::Answers(Answer::Granted, other(libc::AF_INET, libc::SOCK_DGRAM)),
                "gives no proper answer",
            ),
            (
                Does::Answers(Answer::Granted, other(libc::AF_PACKET, libc::SOCK_DGRAM)),
                "gives no proper answer",
            ),
            (Does::Answers(Answer::Granted, Some(elsewhere)), "in another network namespace"),
        ] {
            let agent = pretend(&client.path, vec![does]);
            let said = told(client.ask_for_packet(&n0, 3));
            assert!(said.contains(says), "{says}: {said}");
            agent.join().expect("it was asked");
        }
        let agent = pretend(&client.path, vec![Does::Answers(Answer::Granted, None)]);
        assert!(told(client.interfaces()).contains("gives no proper answer"));
        agent.join().expect("it was asked");
        // A name's last owner is ending: its socket is free soon.
        let in_use = || Does::Answers(Answer::Refused(Refused::InUse, 0, String::new()), None);
        let plan = vec![in_use(), in_use(), Does::Answers(Answer::Granted, Some(packet()))];
        let agent = pretend(&client.path, plan);
        client.packet_socket(&n0, 3).expect("in the end");
        agent.join().expect("it was asked three times");
    });
}

/// A program waits while too many others do.
#[test]
fn a_full_queue_is_waited_for() {
    apart(8, |folder| {
        let client = AgentClient { path: folder.join("agent.sock") };
        let listener = channel::bind(&client.path).expect("a new name");
        rustix::net::listen(&listener, 0).expect("it is bound");
        let mut waiting = Vec::new();
        let full = loop {
            match channel::connect(&client.path) {
                Ok(connection) => waiting.push(connection),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let asking = thread::spawn(move || client.interfaces());
        thread::sleep(Duration::from_millis(50));
        waiting.iter().for_each(|_| drop(next(&listener)));
        let connection = next(&listener);
        waits_for("a request", || {
            !matches!(channel::receive::<REQUEST_BYTES>(&connection), Received::Nothing)
        });
        let answer = Answer::Interfaces("n0".into()).to_bytes();
        channel::send(&connection, &answer, None).expect("room");
        assert_eq!(asking.join().expect("no panic").expect("an answer"), ["n0"]);
    });
}

/// A program does not wait for ever: for an agent that is silent, and for a function whose owner
/// stays.
#[test]
fn waiting_has_an_end() {
    apart(30, |folder| {
        let silent = AgentClient { path: folder.join("silent.sock") };
        pretend(&silent.path, vec![Does::Nothing]);
        let asking = thread::spawn(move || silent.interfaces());
        let client = start(folder);
        let n0 = found("n0");
        let _owned = client.packet_socket(&n0, 3).expect("it is free");
        let refused = client.packet_socket(&n0, 3);
        assert!(matches!(refused, Err(Trouble::InUse)), "{refused:?}");
        let said = told(asking.join().expect("no panic"));
        assert!(said.contains("does not answer"), "{said}");
    });
}
