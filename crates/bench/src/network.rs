//! A separate network for each contender: two namespaces joined by a veth pair. So the sockets,
//! filters and programs of contenders cannot disturb each other.
//!
//! The namespaces have no names. They live while this program holds their descriptors or a process
//! is in them, so nothing is left however the benchmark ends.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bellwire_ethernet::namespace::{Namespace, ip};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

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
    near: Namespace,
    far: Namespace,
}

impl Network {
    /// Makes a network whose interfaces carry `mtu` bytes: one fast wire, or two slow ones, the
    /// second without addresses.
    ///
    /// # Errors
    /// If this program may not make namespaces, or ip(8) is missing or fails. The error names the
    /// remedy.
    pub fn new(mtu: usize, two_slow: bool) -> Result<Network> {
        let new = || Namespace::new().map_err(explained);
        let network = Network { near: new()?, far: new()? };
        let sides = [&network.near, &network.far];
        let interfaces: &[&str] = if two_slow { &[INTERFACE, SECOND] } else { &[INTERFACE] };
        for name in interfaces {
            network.near.wire(name, &network.far, name)?;
        }
        for (side, address) in sides.into_iter().zip(ADDRESSES) {
            side.run(|| -> Result<()> {
                for name in interfaces {
                    ip(&format!("link set {name} mtu {mtu} up"))?;
                    if two_slow {
                        slow_down(name)?;
                    }
                }
                Ok(ip(&format!("addr add {address}/24 dev {INTERFACE}"))?)
            })??;
        }
        for side in sides {
            side.run(|| interfaces.iter().try_for_each(|name| wait_until_running(name)))??;
        }
        Ok(network)
    }

    /// Starts `command` on the leader's side, and passes it the path of the follower's side.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.env(FAR_NAMESPACE, self.far.path());
        // SAFETY: the closure runs between fork and exec, and makes system calls only.
        unsafe {
            command.pre_exec(|| {
                // /sys/class/net shows the namespace in which /sys was mounted, and UCX reads it.
                // So mount it again.
                let outcomes = [
                    libc::unshare(libc::CLONE_NEWNS),
                    mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE),
                    mount(c"sysfs", c"/sys", c"sysfs", 0),
                ];
                match outcomes.into_iter().all(|outcome| outcome == 0) {
                    true => Ok(()),
                    false => Err(io::Error::last_os_error()),
                }
            });
        }
        self.near.run(|| command.spawn())?
    }
}

/// What helps if there are no namespaces.
fn explained(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("cannot start `ip`: apt-get install iproute2"),
        _ => anyhow!(
            "cannot make a network namespace: {error}; run the benchmark as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
        ),
    }
}

/// Limits an interface of this thread's namespace.
fn slow_down(name: &str) -> Result<()> {
    let command = format!("qdisc add dev {name} {SLOW}");
    let output = Command::new("tc").args(command.split(' ')).output();
    let output = output.context("cannot start `tc`: apt-get install iproute2")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`tc {command}` failed: {}", said.trim());
    Ok(())
}

/// Puts this process into the follower's namespace, if it was started on a network.
pub fn enter_far_side() -> Result<()> {
    let Some(path) = std::env::var_os(FAR_NAMESPACE) else { return Ok(()) };
    let namespace = File::open(&path).context("the follower's network namespace")?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("entering a network namespace")
}

/// How long an interface may take to run. The kernel checks new interfaces about once a second, and
/// some programs refuse them until then.
const STARTING: Duration = Duration::from_secs(5);

/// Waits until an interface of this thread's namespace runs.
fn wait_until_running(name: &str) -> Result<()> {
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
        ensure!(outcome == 0, "asking for {name}: {}", io::Error::last_os_error());
        // SAFETY: the request has filled in the flags.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        if flags & libc::IFF_RUNNING != 0 {
            return Ok(());
        }
        ensure!(since.elapsed() < STARTING, "{name} does not start to run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn mount(what: &CStr, place: &CStr, kind: &CStr, flags: libc::c_ulong) -> libc::c_int {
    // SAFETY: the kernel reads three strings that end with a zero byte, and no data.
    unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }
}
