//! The lives of agents and programs: limits, refusals, and ends at every step.

use super::{GROUP, OTHER_USER, USER, Unprivileged, become_user, enter, start_agent};
use crate::conformance::child::{Process, ROLE, is_stopped};
use crate::conformance::{Fixture, Node, Patience, Stage, patience};
use crate::crash::{Passage, steps_in};
use crate::network::traffic::Traffic;
use bellwire::{Device, DeviceOptions, Error, Result};
use bellwire_ethernet::agent::{PATH, SOCKETS_OF_USER};
use bellwire_ethernet::testing::{AskedAgent, ip};
use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Role of a program that opens a function, and keeps it.
const KEEPER: &str = "keeper";

/// The name of its process once it has the function.
const KEEPING: &CStr = c"keeping";

/// The main function of a program.
pub(super) fn play(role: &str) {
    assert_eq!(role, KEEPER);
    become_user(USER, &[GROUP]);
    let device = Device::open("eth:near").expect("the agent serves it");
    let mut patience = Patience::new();
    // The test may have closed the function just now; see `freed`.
    let _function = loop {
        match device.open_function(1) {
            Err(Error::BadFunction { .. }) => patience.spend(|| "it is not free".into()),
            opened => break opened.expect("the agent gives it"),
        }
    };
    rustix::thread::set_name(KEEPING).expect("a name");
    loop {
        std::thread::park();
    }
}

/// Interfaces `near` and `far` of a wire.
fn wire() {
    enter();
    ip("link add near type veth peer name far\nlink set near up\nlink set far up")
        .expect("a veth pair");
}

fn asked() -> AskedAgent {
    AskedAgent(PATH.into())
}

/// Asks for a function of `near` until it is free. A process that another test starts holds copies
/// of all descriptors until it executes its program.
pub(super) fn freed(function: u8) -> OwnedFd {
    let begin = Instant::now();
    loop {
        match asked().packet_socket("near", function) {
            Ok(socket) => return socket,
            Err(error) => assert!(begin.elapsed() < patience::limit(), "{function}: {error}"),
        }
    }
}

fn program() -> Unprivileged {
    Unprivileged::new(USER, &[GROUP])
}

/// What the error of an opening says.
#[track_caller]
fn told<T>(result: Result<T>) -> String {
    result.map(drop).expect_err("it is refused").to_string()
}

/// Nothing is opened that the two ends of a wire do not have already.
struct Ends;

impl Fixture for Ends {
    fn open(&self, _: &DeviceOptions) -> Result<Device> {
        unreachable!("both nodes are there")
    }
}

/// Function 0 at both ends.
fn both_ends() -> Stage<'static> {
    let nodes = ["eth:near", "eth:far"]
        .map(|name| Node::of(Device::open(name).expect("served"), 0, &Default::default()));
    Stage::with(&Ends, nodes)
}

/// Programs go on when the agent is killed. What they have is not given again by its successor, and
/// is free as soon as they have closed it.
pub fn programs_outlive_the_agent() {
    wire();
    let agent = start_agent(&["near", "far"], None);
    let user = program();
    let mut stage = both_ends();
    Traffic::both_ways(20).finish(&mut stage);
    drop(user);
    agent.signal(libc::SIGKILL);
    drop(agent);
    let user = program();
    Traffic::both_ways(20).finish(&mut stage);
    let missing = told(Device::open("eth:near?agent=/run/bellwire/agent.sock"));
    assert!(
        missing.contains("no agent answers") && missing.contains("bellwire agent"),
        "{missing}"
    );
    drop(user);
    let _agent = start_agent(&["near", "far"], None);
    let _user = program();
    Traffic::both_ways(20).finish(&mut stage);
    // The one that asks honestly is refused by the function's name, another one by the agent.
    let device = Device::open("eth:near").expect("served");
    assert!(matches!(device.open_function(0), Err(Error::BadFunction { function: 0, .. })));
    let twice = asked().packet_socket("near", 0);
    assert!(matches!(twice, Err(Error::BadFunction { .. })), "{twice:?}");
    drop(device.open_function(1).expect("another function is free"));
    drop(stage);
    drop(freed(0));
    Traffic::both_ways(20).finish(&mut both_ends());
}

/// The place of a killed program is free at once.
pub fn a_killed_programs_place_is_free() {
    wire();
    let _agent = start_agent(&["near"], None);
    for _ in 0..3 {
        let keeper = Process::start("agent", &[(ROLE, KEEPER)]);
        let _user = program();
        until_it_keeps(&keeper);
        let device = Device::open("eth:near").expect("served");
        assert!(matches!(device.open_function(1), Err(Error::BadFunction { .. })));
        keeper.signal(libc::SIGKILL);
        drop(keeper);
        drop(device.open_function(1).expect("free"));
    }
}

/// Each refusal says what to do.
pub fn refusals_help() {
    wire();
    let missing = {
        let _user = program();
        told(Device::open("eth:near"))
    };
    assert!(missing.contains("setcap") && missing.contains("bellwire agent"), "{missing}");
    let _agent = start_agent(&["near"], None);
    // Whoever has the right asks nobody.
    let direct = Device::open("eth:near").expect("root").describe();
    assert!(!direct.contains("agent"), "{direct}");
    let file = std::fs::metadata(PATH).expect("it is there");
    assert_eq!((file.gid(), file.permissions().mode() & 0o777), (GROUP, 0o660));
    {
        let _user = Unprivileged::new(OTHER_USER, &[]);
        let stranger = told(Device::open("eth:near"));
        let help = format!("sudo usermod -aG {GROUP} $USER");
        assert!(stranger.contains("is not one") && stranger.contains(&help), "{stranger}");
    }
    {
        // The file's mode lets everybody in, and the agent does not.
        std::fs::set_permissions(PATH, PermissionsExt::from_mode(0o666)).expect("root");
        let _user = Unprivileged::new(OTHER_USER, &[]);
        let stranger = told(Device::open("eth:near"));
        assert!(stranger.contains("usermod -aG testers"), "{stranger}");
    }
    let _user = program();
    let other = told(Device::open("eth:far"));
    assert!(other.contains("serves near, and not far"), "{other}");
    let both = told(Device::open("eth:near+far"));
    assert!(both.contains("serves near, and not far"), "{both}");
    let xdp = told(Device::open("eth:near?io=xdp"));
    assert!(xdp.contains("io=packet"), "{xdp}");
    let nowhere = told(Device::open("eth:near?agent=/run/nowhere"));
    assert!(nowhere.contains("no agent answers"), "{nowhere}");
}

/// While the agent cannot restrict what programs send, none gets a socket. Each is told why, and
/// gets one as soon as it can.
pub fn nothing_is_given_unrestricted() {
    wire();
    let _agent = start_agent(&["near"], None);
    // nft takes no rule for an interface of this name.
    ip("link add quote\" type veth peer name other").expect("a veth pair");
    {
        let _user = program();
        for refused in [told(Device::open("eth:near")), told(asked().packet_socket("near", 1))] {
            assert!(refused.contains("cannot restrict what programs send"), "{refused}");
            assert!(refused.contains("apt-get install nftables"), "{refused}");
        }
    }
    ip("link del quote\"").expect("the pair above");
    let _user = program();
    let device = Device::open("eth:near").expect("served again");
    drop(device.open_function(1).expect("nobody has it"));
}

/// A user gets as many sockets as the limit says, another user then still gets some, and a closed
/// one makes room.
pub fn limits_hold() {
    wire();
    let _agent = start_agent(&["near"], None);
    let get = |function: usize| asked().packet_socket("near", function as u8);
    let mut held: Vec<OwnedFd> = Vec::new();
    {
        let _user = program();
        held.extend((0..SOCKETS_OF_USER).map(|function| get(function).expect("below the limit")));
        let limit = told(get(SOCKETS_OF_USER));
        let expected = format!("gives a user {SOCKETS_OF_USER} sockets");
        assert!(limit.contains(&expected), "{limit}");
    }
    {
        let _other = Unprivileged::new(OTHER_USER, &[GROUP]);
        drop(get(SOCKETS_OF_USER).expect("another user"));
    }
    let _user = program();
    held.pop();
    drop(freed(SOCKETS_OF_USER as u8));
}

/// A connection to the agent that has sent this.
fn say(bytes: &[u8], fds: &[OwnedFd]) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    // An agent that does not answer fails the test, and does not stop it.
    let limit = Some(crate::conformance::patience::limit());
    rustix::net::sockopt::set_socket_timeout(&socket, Timeout::Recv, limit).ok()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(PATH).expect("a short path")).ok()?;
    if bytes.is_empty() {
        return Some(socket);
    }
    if fds.is_empty() {
        rustix::net::send(&socket, bytes, SendFlags::NOSIGNAL).ok()?;
        return Some(socket);
    }
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&fds)));
    let parts = [std::io::IoSlice::new(bytes)];
    rustix::net::sendmsg(&socket, &parts, &mut ancillary, SendFlags::NOSIGNAL).ok()?;
    Some(socket)
}

/// What the agent says to it; `None` if it closes the connection without a word.
fn heard(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut room = vec![0; 2048];
    let (length, _) =
        rustix::net::recv(socket, &mut room[..], rustix::net::RecvFlags::empty()).ok()?;
    room.truncate(length);
    (length > 0).then_some(room)
}

/// Descriptors and memory of a process.
fn footprint(process: i32) -> (usize, u64) {
    let fds = std::fs::read_dir(format!("/proc/{process}/fd")).expect("root").count();
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("root");
    let pages: u64 = statm.split(' ').nth(1).expect("pages").parse().expect("a number");
    (fds, pages * 4096)
}

/// Garbage, half requests, descriptors, floods, silence and answers that nobody reads leave the
/// agent as it was, and others are served meanwhile.
pub fn hostile_programs() {
    wire();
    let agent = start_agent(&["near"], None);
    let index = bellwire_ethernet::interface::Interface::find("near").expect("it").index;
    let request = AskedAgent::request("near", index, 7);
    // Whoever gets an answer knows that it has started, and nft has ended.
    drop(asked().packet_socket("near", 9).expect("it serves"));
    let before = footprint(agent.id());
    let user = program();
    let served = || drop(freed(9));
    // Half requests and wrong bytes get no answer.
    for length in 1..request.len() {
        assert_eq!(heard(&say(&request[..length], &[]).expect("it listens")), None, "{length}");
    }
    for length in [33, 100, 4096] {
        let bytes = vec![0xab; length];
        assert_eq!(heard(&say(&bytes, &[]).expect("it listens")), None, "{length}");
    }
    // Another version is told ours.
    let mut other = request.clone();
    other[4] = 99;
    let told = heard(&say(&other, &[]).expect("it listens")).expect("an answer");
    assert_eq!((told[8], told[12]), (7, 1), "refused, version 1");
    // Descriptors of any kind end the conversation, and are closed.
    let (end, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let file = || -> OwnedFd { std::fs::File::open("/dev/null").expect("it is there").into() };
    for fds in [vec![file()], vec![end.into(), file()], (0..8).map(|_| file()).collect()] {
        assert_eq!(heard(&say(&request, &fds).expect("it listens")), None, "{} fds", fds.len());
    }
    served();
    // Another number of the interface is another namespace's.
    let wrong = AskedAgent::request("near", index + 1, 7);
    assert_eq!(heard(&say(&wrong, &[]).expect("it listens")).expect("an answer")[8], 4);
    // Nobody reads the answers, and a socket lies in one of them.
    let unread: Vec<_> = (0..200).filter_map(|_| say(&request, &[])).collect();
    served();
    let taken = asked().packet_socket("near", 7);
    assert!(matches!(taken, Err(Error::BadFunction { .. })), "{taken:?}");
    drop(unread);
    drop(freed(7));
    // Silence: each user has a few places, and only for a second.
    let silent: Vec<_> = (0..100).filter_map(|_| say(&[], &[])).collect();
    served();
    {
        drop(user);
        let _other = Unprivileged::new(OTHER_USER, &[GROUP]);
        served();
    }
    let since = Instant::now();
    for socket in &silent {
        assert_eq!(heard(socket), None);
    }
    assert!(since.elapsed() < Duration::from_secs(30), "silence ends");
    // A flood of requests, from several threads.
    let user = program();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..300u32 {
                    let bytes = [&request[..], &number.to_ne_bytes()].concat();
                    drop(say(&bytes[..32 + number as usize % 5], &[]));
                }
            });
        }
        (0..20).for_each(|_| served());
    });
    drop(user);
    let mut patience = Patience::new();
    // Before, the agent may still have held what it had just passed on.
    while footprint(agent.id()).0 > before.0 {
        patience.spend(|| format!("descriptors stay: {before:?} {:?}", footprint(agent.id())));
        std::thread::sleep(Duration::from_millis(5));
    }
    let after = footprint(agent.id());
    assert!(after.1 < before.1 + (4 << 20), "memory: {before:?}, then {after:?}");
}

/// An agent that is killed or stopped at any step, and a program that is: the others go on, and the
/// next one works.
pub fn at_every_step(stop: bool) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ethernet/src/agent");
    let steps = steps_in(&sources);
    assert!(steps.len() >= 5, "{steps:?}");
    for step in &steps {
        wire();
        // The first question is which interfaces are served. Its answer passes one step less.
        let count = if step == "agent-told" { 1 } else { 2 };
        let passage = Passage { step: step.clone(), count, stop };
        if ["agent-ask", "agent-told"].contains(&step.as_str()) {
            a_program_ends_there(&passage);
        } else {
            an_agent_ends_there(&passage);
        }
    }
}

/// The agent ends or stops while it answers.
fn an_agent_ends_there(passage: &Passage) {
    let mut agent = start_agent(&["near", "far"], Some(&passage.to_string()));
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let _user = program();
            // The device asks which interfaces are served, and the function for its socket.
            let device = Device::open("eth:near").expect("the first passage");
            Node::of(device, 0, &Default::default())
        });
        let mut patience = Patience::new();
        while agent.ended().is_none() && !is_stopped(agent.id()) {
            patience.spend(|| format!("{passage} is not reached"));
            std::thread::sleep(Duration::from_millis(1));
        }
        if passage.stop {
            std::thread::sleep(Duration::from_millis(60));
            agent.signal(libc::SIGCONT);
        } else {
            // The program waits for the next agent.
            agent = start_agent(&["near", "far"], None);
        }
        let near = opening.join().expect("the next one answers");
        let _user = program();
        let far = Device::open("eth:far").expect("served");
        let far = Node::of(far, 0, &Default::default());
        let mut stage = Stage::with(&Ends, [near, far]);
        stage.case = passage.to_string();
        Traffic::both_ways(5).finish(&mut stage);
    });
}

/// A program ends or stops while it asks.
fn a_program_ends_there(passage: &Passage) {
    let _agent = start_agent(&["near"], None);
    let plan = passage.to_string();
    let environment = [(ROLE, KEEPER), ("BELLWIRE_STEP", &*plan)];
    let mut keeper = Process::start("agent", &environment);
    let _user = program();
    let mut patience = Patience::new();
    while keeper.ended().is_none() && !is_stopped(keeper.id()) {
        patience.spend(|| format!("{passage} is not reached"));
        std::thread::sleep(Duration::from_millis(1));
    }
    let device = Device::open("eth:near").expect("the agent waits for nobody");
    drop(device.open_function(2).expect("another function"));
    if passage.stop {
        keeper.signal(libc::SIGCONT);
        until_it_keeps(&keeper);
        assert_eq!(keeper.ended(), None, "it goes on");
    } else {
        drop(device.open_function(1).expect("its place is free"));
    }
}

/// Waits until a program has function 1. Whoever asked for the function instead would have it for a
/// moment, just when the program wants it.
fn until_it_keeps(keeper: &Process) {
    let name = format!("/proc/{}/comm", keeper.id());
    let mut patience = Patience::new();
    while std::fs::read(&name).expect("it runs").trim_ascii() != KEEPING.to_bytes() {
        patience.spend(|| "the program has no function".into());
        std::thread::sleep(Duration::from_millis(5));
    }
}
