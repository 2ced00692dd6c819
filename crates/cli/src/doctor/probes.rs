//! Kernel features, each tested by using it.

use super::Check;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::MembarrierCommand;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

const SECCOMP: &str =
    "allow the call in the container's seccomp profile (docker run --security-opt seccomp=FILE)";

/// Memory without a name, whose pages are reserved at creation.
pub fn memfd() -> Check {
    const NAME: &str = "memfd";
    match memfd_of(1 << 20) {
        Ok(_) => Check::good(NAME, "1 MiB of shared memory was made and reserved"),
        Err(Errno::NOSYS | Errno::PERM) => Check::missing(NAME, "memfd_create is refused", SECCOMP),
        Err(error) => Check::missing(
            NAME,
            format!("1 MiB of shared memory: {error}"),
            "raise the container's memory limit (docker run --memory 1g)",
        ),
    }
}

fn memfd_of(bytes: u64) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("bellwire doctor", flags)?;
    rustix::fs::ftruncate(&fd, bytes)?;
    rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes)?;
    Ok(fd)
}

/// Seals: they stop a peer from truncating memory, and from writing to read-only memory.
pub fn seals() -> Check {
    const NAME: &str = "memory seals";
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    let sealed = memfd_of(4096).and_then(|fd| {
        rustix::fs::fcntl_add_seals(&fd, seals)?;
        // A seal that has no effect counts as missing.
        Ok(rustix::fs::ftruncate(&fd, 0) == Err(Errno::PERM))
    });
    match sealed {
        Ok(true) => Check::good(NAME, "shared memory cannot be cut short by a peer"),
        Ok(false) => Check::missing(NAME, "seals can be set, but do not hold", "a newer kernel"),
        Err(error) => Check::missing(NAME, error.to_string(), "Linux 5.1 or newer"),
    }
}

/// Sockets without files, through which processes find each other.
pub fn abstract_sockets() -> Check {
    const NAME: &str = "abstract sockets";
    let name = format!("bellwire.doctor/{}", std::process::id());
    let meet = || {
        let address = SocketAddr::from_abstract_name(&name)?;
        let listener = UnixListener::bind_addr(&address)?;
        let connection = UnixStream::connect_addr(&address)?;
        listener.accept()?;
        Ok(rustix::net::sockopt::socket_peercred(&connection)?.pid)
    };
    let met: std::io::Result<Pid> = meet();
    match met {
        Ok(pid) if pid == rustix::process::getpid() => {
            Check::good(NAME, "connected, and the kernel says who the peer is")
        }
        Ok(pid) => Check::missing(
            NAME,
            format!("the kernel says that process {} answered", pid.as_raw_nonzero()),
            "run both sides in one PID namespace",
        ),
        Err(error) => Check::missing(NAME, error.to_string(), SECCOMP),
    }
}

/// A descriptor that becomes readable when a process ends.
pub fn pidfd() -> Check {
    const NAME: &str = "pidfd";
    match rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()) {
        Ok(_) => Check::good(NAME, "the death of a peer can be watched"),
        Err(error) => Check::limited(
            NAME,
            format!("{error}: the death of a peer is noticed by its socket only"),
            "Linux 5.3 or newer",
        ),
    }
}

/// Fences on demand, which cost the sender nothing per message.
pub fn membarrier() -> Check {
    const NAME: &str = "membarrier";
    let registered = rustix::thread::membarrier(MembarrierCommand::RegisterGlobalExpedited)
        .and_then(|()| rustix::thread::membarrier(MembarrierCommand::GlobalExpedited));
    match registered {
        Ok(()) => Check::good(NAME, "senders need no fence"),
        Err(error) => Check::limited(
            NAME,
            format!("{error}: every message costs a fence (some 10 ns)"),
            "Linux 4.16 or newer, and a seccomp profile that allows membarrier",
        ),
    }
}

/// The files that `bellwire list` and `bellwire stat` read.
pub fn proc() -> Check {
    const NAME: &str = "/proc";
    let sockets = std::fs::read_to_string("/proc/net/unix");
    let own = std::fs::read_dir("/proc/self/fd");
    if let Some(error) = sockets.as_ref().err().or(own.as_ref().err()) {
        let found = format!("{error}: `bellwire list` and `bellwire stat` do not work");
        return Check::limited(NAME, found, "mount -t proc proc /proc");
    }
    let seen = crate::list::processes().len();
    let own_user = rustix::process::geteuid();
    if own_user.is_root() {
        Check::good(NAME, format!("{seen} processes are visible, those of all users"))
    } else {
        Check::good(NAME, format!("{seen} processes are visible; `stat` reads your own only"))
    }
}
