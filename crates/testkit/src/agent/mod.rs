//! The agent, and programs without privileges that get their sockets from it.
//!
//! Each test has a network of its own, and a folder /run of its own, so that programs find its
//! agent where they find one on a real host. Making these needs root. A thread of a test becomes
//! another user, and root again to plug in an interface.

pub mod hostile;
pub mod life;

use crate::conformance::child::{Process, ROLE, told};
use crate::conformance::{Fixture, Node, Patience};
use crate::network::{Carrier, assert_frames_by};
use bellwire::{Device, DeviceOptions, Result};
use bellwire_ethernet::agent::server::{Agent, AgentOptions};
use bellwire_ethernet::agent::{PATH, interfaces_of};
use bellwire_ethernet::testing::{enter_new_namespace, ip};
use std::marker::PhantomData;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The user of programs, and the group that the agent serves.
pub const USER: u32 = 65_533;
/// Another user.
pub const OTHER_USER: u32 = 65_530;
/// The group that the agent serves.
pub const GROUP: u32 = 65_532;

/// Role of the agent's process.
const AGENT: &str = "agent";
/// Names the interfaces that it serves, separated by blanks.
const INTERFACES: &str = "BELLWIRE_TEST_INTERFACES";

/// The name at which the agent's process listens when it is about to serve. It belongs to the
/// network of the test.
const READY: &str = "bellwire-test-agent";

/// The main function of a child of these tests.
pub fn play() {
    match told(ROLE).as_str() {
        AGENT => serve(),
        hostile::ROLE => hostile::play(),
        role => life::play(role),
    }
}

/// The agent's main function.
fn serve() {
    let names = told(INTERFACES);
    let options = AgentOptions {
        interfaces: names.split(' ').map(str::to_owned).collect(),
        group: (GROUP, "testers".into()),
        path: None,
        listener: None,
        allow_unrestricted: false,
    };
    let mut agent = Agent::open(options).expect("root, and nft of nftables");
    assert_eq!(agent.unrestricted(), None, "NOT RUN: restricting needs nft of nftables");
    let ready = SocketAddr::from_abstract_name(READY).expect("a short name");
    let _ready = UnixListener::bind_addr(&ready).expect("one agent at a time");
    agent.serve().expect("waiting works");
}

/// A network namespace and an empty folder /run, which this thread enters for good.
pub fn enter() {
    enter_new_namespace().expect("NOT RUN: making a network needs root, and ip of iproute2");
    let mount = |what: &std::ffi::CStr, at: &std::ffi::CStr, kind: &std::ffi::CStr, flags| {
        // SAFETY: strings that live until the call ends.
        let result = unsafe {
            libc::mount(what.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
        };
        assert_eq!(result, 0, "mount: {}", std::io::Error::last_os_error());
    };
    // SAFETY: a system call that changes this thread alone.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    assert_eq!(result, 0, "NOT RUN: a folder /run of its own needs root");
    mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE);
    mount(c"run", c"/run", c"tmpfs", 0);
}

/// Starts an agent for these interfaces, with a plan for its steps, and waits until it is about to
/// serve. What a test changes before that, the agent could meet as it starts.
pub fn start_agent(interfaces: &[&str], plan: Option<&str>) -> Process {
    let names = interfaces.join(" ");
    let mut environment = vec![(ROLE, AGENT), (INTERFACES, &*names)];
    environment.extend(plan.map(|plan| ("BELLWIRE_STEP", plan)));
    let mut agent = Process::start("agent", &environment);
    let mut patience = Patience::new();
    // A planned step may end it at its first answer, so nobody asks it here.
    while !is_ready() {
        assert_eq!(agent.ended(), None, "the agent ended; its words are above");
        std::thread::sleep(std::time::Duration::from_millis(1));
        patience.spend(|| "the agent does not serve".into());
    }
    agent
}

/// Whether the agent's process is about to serve.
fn is_ready() -> bool {
    // The columns of /proc/net/unix end with flags (a listener has 00010000), type, state, number
    // and path.
    let table = std::fs::read_to_string("/proc/thread-self/net/unix").expect("procfs");
    table.lines().any(|line| line.ends_with(READY) && line.contains(" 00010000 "))
}

/// While this exists, the thread is another user and in no group but those given.
pub struct Unprivileged(PhantomData<*const ()>);

impl Unprivileged {
    /// Becomes `user`, in `groups`.
    pub fn new(user: u32, groups: &[u32]) -> Unprivileged {
        // SAFETY: system calls of this thread alone: the C library's would change all threads.
        let done = unsafe {
            libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
                && libc::syscall(libc::SYS_setresuid, -1, user, -1) == 0
        };
        assert!(done, "NOT RUN: becoming another user needs root");
        Unprivileged(PhantomData)
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        // SAFETY: as above; the saved user is still root.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, -1, 0, -1) };
        assert!(result == 0 || std::thread::panicking(), "root again");
    }
}

/// Becomes `user` for good, in the agent's group.
pub fn become_user(user: u32, groups: &[u32]) {
    // SAFETY: system calls on this process alone.
    let done = unsafe {
        libc::setgroups(groups.len(), groups.as_ptr()) == 0
            && libc::setresgid(user, user, user) == 0
            && libc::setresuid(user, user, user) == 0
            // A change of the user clears this signal.
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
    };
    assert!(done, "NOT RUN: becoming another user needs root");
}

/// Most nodes of a fixture.
const NODES: u32 = 40;

/// Nodes on a bridge, whose sockets are an agent's. The thread is a user without privileges.
pub struct ByAgent {
    _agent: Process,
    nodes: AtomicU32,
}

impl ByAgent {
    /// A network with an agent.
    pub fn new() -> ByAgent {
        enter();
        ip("link add bridge type bridge\nlink set bridge up").expect("a bridge");
        let names: Vec<String> = (0..NODES).map(|node| format!("n{node}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let agent = start_agent(&names, None);
        assert!(interfaces_of(Path::new(PATH)).is_ok_and(|served| served == names));
        // SAFETY: as in `Unprivileged`, which the thread stays from now on.
        std::mem::forget(Unprivileged::new(USER, &[GROUP]));
        ByAgent { _agent: agent, nodes: AtomicU32::new(0) }
    }
}

impl Default for ByAgent {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes interface `name` with its other end in the bridge, as root.
fn plug_in(name: &str) {
    // SAFETY: system calls of this thread alone; the saved user is root.
    unsafe { libc::syscall(libc::SYS_setresuid, -1, 0, -1) };
    let made = ip(&format!(
        "link add {name} type veth peer name b{name}\n\
         link set b{name} master bridge\nlink set b{name} up\nlink set {name} up"
    ));
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_setresuid, -1, USER, -1) };
    made.expect("a veth pair");
}

impl Fixture for ByAgent {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        plug_in(&format!("n{node}"));
        Device::open_with(&format!("eth:n{node}"), options)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_opened(&self, device: &Device) {
        let told = device.describe();
        assert!(told.ends_with(&format!("; the agent at {PATH}")), "{told}");
        assert!(told.contains("by AF_PACKET, because the agent gave its socket"), "{told}");
    }

    fn assert_way(&self, node: &Node) {
        assert_frames_by(Carrier::Packet, node);
    }
}
