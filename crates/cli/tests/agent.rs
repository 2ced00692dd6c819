//! `bellwire agent`, started as systemd starts it, and what the doctor says of it. Each test has
//! a network and a folder /run of its own, which needs root and iproute2. Without them it fails and
//! says that it did not run.

mod support;

use bellwire_ethernet::agent::{PATH, interfaces_of};
use bellwire_ethernet::testing::{enter_new_namespace, ip};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{bellwire, run};

const GROUP: u32 = 65_532;
const USER: u32 = 65_533;

/// A process that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a test in a thread that has a network and a folder /run of its own.
fn apart(test: fn()) {
    let thread = std::thread::spawn(move || {
        enter_new_namespace()
            .and_then(|()| {
                ip("link add near type veth peer name far\n\
                           link set near up\nlink set far up")
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let none = std::ptr::null();
        let mount = |kind: &std::ffi::CStr, at: &std::ffi::CStr, flags| {
            // SAFETY: strings that live until the call ends.
            unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, none) == 0 }
        };
        // SAFETY: a system call that changes this thread alone.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNS) == 0 }
            && mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)
            && mount(c"tmpfs", c"/run", 0)
            // It shows the interfaces of the namespace in which it is mounted.
            && mount(c"sysfs", c"/sys", 0);
        assert!(done, "NOT RUN: a folder /run of its own needs root");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The agent listens at a socket that it was given, as by systemd, and says so. It is found there.
#[test]
fn the_socket_of_systemd_is_taken() {
    apart(|| {
        std::fs::create_dir("/run/bellwire").expect("an empty folder");
        let flags = rustix::net::SocketFlags::CLOEXEC;
        let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
        let socket: OwnedFd =
            rustix::net::socket_with(family, kind, flags, None).expect("a socket");
        let address = rustix::net::SocketAddrUnix::new(PATH).expect("a short path");
        rustix::net::bind(&socket, &address).expect("an empty folder");
        rustix::net::listen(&socket, 8).expect("it is bound");
        let program = bellwire().get_program().to_owned();
        let mut command = Command::new("sh");
        let started = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
        command.args(["-c", started]).arg(program);
        command.args(["agent", "--iface", "near", "--allow-group", &GROUP.to_string(), "--json"]);
        command.stdin(Stdio::from(socket)).stdout(Stdio::piped());
        let mut agent = Killed(command.spawn().expect("sh"));
        let mut output = BufReader::new(agent.0.stdout.take().expect("piped"));
        let mut said = String::new();
        while !said.ends_with("}\n") {
            assert_ne!(output.read_line(&mut said).expect("text"), 0, "{said}");
        }
        let ready: serde_json::Value = serde_json::from_str(&said).expect("an object");
        assert_eq!(ready["listens"], "the socket of systemd", "{ready}");
        assert_eq!(ready["interfaces"][0], "near", "{ready}");
        assert_eq!(interfaces_of(Path::new(PATH)).expect("it answers"), ["near"]);
    });
}

/// The doctor of a program without privileges tells how to start an agent, and finds one that runs.
/// A second agent at its place is refused.
#[test]
fn the_doctor_finds_it() {
    apart(|| {
        let none = doctor();
        assert_eq!(none["usable"], false, "{none}");
        let hint = none["hint"].as_str().expect("advice");
        assert!(hint.contains("bellwire agent") && hint.contains("docs/agent.md"), "{none}");
        let options = ["agent", "--iface", "near", "--allow-group", &GROUP.to_string()];
        let mut agent = bellwire();
        agent.args(options).stdout(Stdio::piped());
        let mut agent = Killed(agent.spawn().expect("the command"));
        let mut said = String::new();
        let mut output = BufReader::new(agent.0.stdout.take().expect("piped"));
        output.read_line(&mut said).expect("text");
        assert_eq!(said, format!("agent: near for the group {GROUP}, at {PATH}\n"));
        let found = doctor();
        assert_eq!(found["why"], format!("eth:near (the agent at {PATH})"), "{found}");
        let second = run(bellwire().args(options));
        assert_eq!(second.code, 1);
        assert!(second.stderr.contains("another agent listens there"), "{}", second.stderr);
        let group = run(bellwire().args(["agent", "--iface", "near", "--allow-group", "no-such"]));
        assert!(group.stderr.contains("groupadd --system no-such"), "{}", group.stderr);
    });
}

/// Without nft no program gets a socket. The agent says so when it starts, and a program is told
/// why and what to do. Whoever starts it with --allow-unrestricted is warned.
#[test]
fn without_nft_it_gives_nothing() {
    apart(|| {
        let start = |more: &[&str]| {
            let mut agent = bellwire();
            agent.args(["agent", "--iface", "near", "--allow-group", &GROUP.to_string()]);
            // A folder without nft.
            agent.args(more).env("PATH", "/run").stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut agent = Killed(agent.spawn().expect("the command"));
            let mut output = BufReader::new(agent.0.stdout.take().expect("piped"));
            let mut warnings = BufReader::new(agent.0.stderr.take().expect("piped"));
            let (mut said, mut warned) = (String::new(), String::new());
            while said.lines().count() < 2 {
                assert_ne!(output.read_line(&mut said).expect("text"), 0, "{said}");
            }
            warnings.read_line(&mut warned).expect("text");
            assert!(said.contains("apt-get install nftables"), "{said}");
            (agent, said, warned)
        };
        let (agent, said, warned) = start(&[]);
        assert!(said.contains("no program gets a socket"), "{said}");
        assert!(warned.contains("no program gets a socket: nft"), "{warned}");
        let refused = doctor();
        assert_eq!(refused["usable"], false, "{refused}");
        let why = refused["why"].as_str().expect("a reason");
        assert!(why.contains("while it cannot restrict what programs send: nft"), "{refused}");
        let hint = refused["hint"].as_str().expect("advice");
        assert!(hint.contains("apt-get install nftables"), "{refused}");
        drop(agent);
        let (_agent, said, warned) = start(&["--allow-unrestricted"]);
        assert!(said.contains("programs can send any frame"), "{said}");
        assert!(warned.contains("warning") && warned.contains("any frame: nft"), "{warned}");
        assert_eq!(doctor()["why"], format!("eth:near (the agent at {PATH})"));
    });
}

/// What the doctor says of `eth` as a member of the group.
fn doctor() -> serde_json::Value {
    // The user may not see the folder that the program is in.
    let program = std::fs::File::open(bellwire().get_program()).expect("it was built");
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(["doctor", "--json"]).stdout(Stdio::piped());
    let fd = program.as_raw_fd();
    // SAFETY: system calls of the new process between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let done = libc::fcntl(fd, libc::F_SETFD, 0) == 0
                && libc::setgroups(1, &GROUP) == 0
                && libc::setresgid(USER, USER, USER) == 0
                && libc::setresuid(USER, USER, USER) == 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    let mut child = Killed(command.spawn().expect("the command"));
    let mut text = String::new();
    child.0.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    let report: serde_json::Value = serde_json::from_str(&text).expect("an object");
    let devices = report["devices"].as_array().expect("an array");
    devices.iter().find(|device| device["device"] == "eth").expect("all devices").clone()
}
