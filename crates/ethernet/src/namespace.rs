//! Network namespaces: separate hosts within one host, for tests and measurements. They have no
//! names and vanish with their last user, so nothing is left behind however a program ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// A network namespace. It vanishes when this is dropped and the last thread, process and socket in
/// it are gone.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace, with loopback up. This thread stays where it is.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; `NotFound` if iproute2 is not installed; what `ip`
    /// says.
    pub fn new() -> io::Result<Namespace> {
        let here = current()?;
        unshare()?;
        let _back = Return(here);
        ip("link set lo up")?;
        Ok(Namespace(current()?))
    }

    /// Runs `what` in it. Sockets and processes that are created there stay there.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN; nothing was run then.
    pub fn run<T>(&self, what: impl FnOnce() -> T) -> io::Result<T> {
        let here = current()?;
        enter(&self.0)?;
        let _back = Return(here);
        Ok(what())
    }

    /// The path by which other processes of this user reach it, as long as this exists.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Creates a veth pair between interface `name` here and interface `far_name` there.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn wire(&self, name: &str, far: &Namespace, far_name: &str) -> io::Result<()> {
        let there = far.path();
        self.run(|| ip(&format!("link add {name} type veth peer name {far_name} netns {there}")))?
    }
}

/// Returns this thread to its previous namespace, also if it panics.
struct Return(File);

impl Drop for Return {
    fn drop(&mut self) {
        let result = enter(&self.0);
        assert!(result.is_ok() || std::thread::panicking(), "cannot come back: {result:?}");
    }
}

/// Moves this thread, and threads and processes that it starts later, to a new network namespace
/// with loopback up.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; what `ip` says.
pub fn enter_new_namespace() -> io::Result<()> {
    unshare()?;
    ip("link set lo up")
}

/// Runs commands of ip(8), one per line, in this thread's namespace.
///
/// # Errors
/// `NotFound` if iproute2 is not installed; else what it said.
pub fn ip(commands: &str) -> io::Result<()> {
    /// Three times in many runs, on busy machines, ip succeeded and its interfaces were not there.
    /// The cause is not known. The last command prints, so that a run that did nothing is noticed.
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let mut child = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let text = format!("{commands}\nlink show dev lo\n");
        child.stdin.take().expect("piped").write_all(text.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("ip -batch of {commands:?}: {said}")));
        }
        if !output.stdout.is_empty() {
            return Ok(());
        }
        // The test harness holds back what macros print in a test that passes.
        writeln!(io::stderr(), "ip -batch of {commands:?} did nothing, and is run again")?;
    }
    Err(io::Error::other(format!("ip -batch of {commands:?} did nothing {TRIES} times")))
}

/// This thread's namespace.
fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

fn unshare() -> io::Result<()> {
    // SAFETY: a system call that changes this thread's network alone.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a system call that changes this thread's network alone; the descriptor is open.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> std::path::PathBuf {
        std::fs::read_link("/proc/thread-self/ns/net").expect("it is always there")
    }

    /// Takes all rights from this thread.
    fn without_rights() {
        // Version 3 of the structures (capset(2)): this thread, with two empty sets.
        let header = [0x2008_0522_u32, 0];
        let none = [0u32; 6];
        // SAFETY: the kernel reads both, which are ours, and changes this thread alone.
        let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
        assert_eq!(result, 0);
    }

    /// A thread is elsewhere only while it runs something there. Without rights it stays here, and
    /// is told.
    #[test]
    fn a_thread_comes_back() {
        let before = here();
        let other = Namespace::new().expect("NOT RUN: a namespace needs root, and ip of iproute2");
        assert_eq!(here(), before);
        let there = other.run(here).expect("rights");
        assert_ne!(there, before);
        assert_eq!(
            (here(), std::fs::read_link(other.path()).expect("a path")),
            (before.clone(), there)
        );
        let loopback = other.run(|| ip("link show up lo")).expect("rights");
        loopback.expect("it is up");
        assert!(ip("link show no-such-one").unwrap_err().to_string().contains("no-such-one"));
        let powerless = std::thread::spawn(move || {
            without_rights();
            let denied = io::ErrorKind::PermissionDenied;
            assert_eq!(Namespace::new().expect_err("no right").kind(), denied);
            assert_eq!(other.run(here).expect_err("no right").kind(), denied);
            assert_eq!(enter_new_namespace().expect_err("no right").kind(), denied);
            assert_eq!(here(), before);
        });
        powerless.join().expect("no panic");
    }
}
