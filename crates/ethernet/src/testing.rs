//! Networks of one's own for tests and measurements: namespaces that nobody else sees and that vanish with their last user.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Puts this thread, and the threads and processes that it starts from now on, into a new network namespace, with loopback up.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; what `ip` says.
pub fn enter_new_namespace() -> io::Result<()> {
    // SAFETY: a system call that changes this thread's network alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    ip("link set lo up")
}

/// Runs commands of ip(8), one per line, in this thread's namespace.
///
/// # Errors
/// `NotFound` if iproute2 is not installed; else what it said.
pub fn ip(commands: &str) -> io::Result<()> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().expect("piped").write_all(format!("{commands}\n").as_bytes())?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("ip -batch of {commands:?}: {said}")))
}

/// The number of this thread, by which `ip link set X netns NUMBER` finds its namespace.
pub fn thread_number() -> i32 {
    // SAFETY: a system call that only answers.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Keeps this thread on one processor, so that two threads that spin do not share one.
pub fn stay_on(processor: usize) {
    // SAFETY: an empty set is all zeros; the calls only read and write it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &raw const set);
    }
}
