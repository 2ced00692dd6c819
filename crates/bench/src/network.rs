//! A separate network for each contender: two namespaces joined by a veth pair. So the sockets,
//! filters and programs of contenders cannot disturb each other.
//!
//! The namespaces have no names. They live while this program holds their descriptors or a process
//! is in them, so nothing is left however the benchmark ends.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// The interface's name, on both sides.
pub const INTERFACE: &str = "wire";

/// Name of the second interface, in networks that have two.
pub const SECOND: &str = "second";

/// Limits an interface to 1 Gbit/s: a token bucket with a queue longer than any window.
const SLOW: &str = "root tbf rate 1gbit burst 64kb limit 4mb";

/// Addresses of the leader's and of the follower's side.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// In a worker's environment: the path of the namespace that its follower must enter.
pub const FAR_NAMESPACE: &str = "BELLWIRE_BENCH_FAR_NAMESPACE";

/// Two namespaces and their connection.
pub struct Network {
    near: OwnedFd,
    far: OwnedFd,
}

impl Network {
    /// Makes a network whose interfaces carry `mtu` bytes: one fast wire, or two slow ones, the
    /// second without addresses.
    ///
    /// # Errors
    /// If this program may not make namespaces, or ip(8) is missing or fails. The error names the
    /// remedy.
    pub fn new(mtu: usize, two_slow: bool) -> Result<Network> {
        let network = Network { near: new_namespace()?, far: new_namespace()? };
        let far = network.far_path();
        let sides = || [&network.near, &network.far].into_iter();
        let interfaces: &[&'static str] =
            if two_slow { &[INTERFACE, SECOND] } else { &[INTERFACE] };
        for name in interfaces {
            let pair = format!("{name} mtu {mtu} type veth peer name {name} mtu {mtu} netns {far}");
            network.run(&network.near, "ip", &format!("link add {pair}"))?;
            for side in sides() {
                network.run(side, "ip", &format!("link set lo up\nlink set {name} up"))?;
                if two_slow {
                    network.run(side, "tc", &format!("qdisc add dev {name} {SLOW}"))?;
                }
            }
        }
        for (side, address) in sides().zip(ADDRESSES) {
            network.run(side, "ip", &format!("addr add {address}/24 dev {INTERFACE}"))?;
        }
        for (side, name) in sides().flat_map(|side| interfaces.iter().map(move |name| (side, name)))
        {
            std::thread::scope(|scope| {
                scope.spawn(|| wait_until_running(side, name)).join().expect("it does not panic")
            })?;
        }
        Ok(network)
    }

    /// Makes `command` run on the leader's side, and passes it the path of the follower's side.
    pub fn hold(&self, command: &mut Command) {
        command.env(FAR_NAMESPACE, self.far_path());
        begin_inside(command, &self.near);
    }

    /// The path by which other processes of this user reach the follower's side.
    fn far_path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.far.as_raw_fd())
    }

    /// Runs commands of ip(8) or tc(8), one a line.
    fn run(&self, namespace: &OwnedFd, program: &str, commands: &str) -> Result<()> {
        let mut command = Command::new(program);
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
        begin_inside(&mut command, namespace);
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{program}`: apt-get install iproute2"))?;
        let mut input = child.stdin.take().context("no input")?;
        input.write_all(format!("{commands}\n").as_bytes())?;
        drop(input);
        let output = child.wait_with_output()?;
        ensure!(
            output.status.success(),
            "`{program} {commands}` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}

/// Puts this process into the follower's namespace, if it was started on a network.
pub fn enter_far_side() -> Result<()> {
    let Some(path) = std::env::var_os(FAR_NAMESPACE) else { return Ok(()) };
    enter(&File::open(&path).context("the follower's network namespace")?.into())
}

/// Puts this thread into a namespace.
fn enter(namespace: &OwnedFd) -> Result<()> {
    // SAFETY: changes only this thread's network.
    let outcome = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    ensure!(outcome == 0, "entering a network namespace: {}", std::io::Error::last_os_error());
    Ok(())
}

/// How long an interface may take to run. The kernel checks new interfaces about once a second, and
/// some programs refuse them until then.
const STARTING: Duration = Duration::from_secs(5);

/// Waits until an interface of a namespace runs; in a thread, because the thread enters the
/// namespace.
fn wait_until_running(namespace: &OwnedFd, name: &str) -> Result<()> {
    enter(namespace)?;
    let asking = UdpSocket::bind(("0.0.0.0", 0)).context("a socket to ask for the interface")?;
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let since = Instant::now();
    loop {
        // SAFETY: the kernel reads and writes one request, which is ours.
        let outcome =
            unsafe { libc::ioctl(asking.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
        ensure!(outcome == 0, "asking for {name}: {}", std::io::Error::last_os_error());
        // SAFETY: the request has filled in the flags.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        if flags & libc::IFF_RUNNING != 0 {
            return Ok(());
        }
        ensure!(since.elapsed() < STARTING, "{name} does not start to run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Makes a namespace in a thread that ends at once, so that this program stays in its own.
fn new_namespace() -> Result<OwnedFd> {
    let maker = std::thread::spawn(|| -> Result<OwnedFd> {
        // SAFETY: changes only this thread's network.
        let outcome = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        ensure!(
            outcome == 0,
            "cannot make a network namespace: {}; run the benchmark as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
            std::io::Error::last_os_error()
        );
        Ok(File::open("/proc/thread-self/ns/net").context("the new network namespace")?.into())
    });
    maker.join().expect("the maker does not panic")
}

fn begin_inside(command: &mut Command, namespace: &OwnedFd) {
    let namespace = namespace.as_raw_fd();
    // SAFETY: the closure runs between fork and exec, while our descriptor is still open, and makes
    // system calls only.
    unsafe {
        command.pre_exec(move || {
            // /sys/class/net shows the namespace in which /sys was mounted, and UCX reads it. So
            // mount it again.
            let outcomes = [
                libc::setns(namespace, libc::CLONE_NEWNET),
                libc::unshare(libc::CLONE_NEWNS),
                mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE),
                mount(c"sysfs", c"/sys", c"sysfs", 0),
            ];
            match outcomes.into_iter().all(|outcome| outcome == 0) {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

fn mount(what: &CStr, place: &CStr, kind: &CStr, flags: libc::c_ulong) -> libc::c_int {
    // SAFETY: the kernel reads three strings that end with a zero byte, and no data.
    unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }
}
