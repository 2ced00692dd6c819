//! Networks of one's own for tests: namespaces that nobody else sees and that vanish with their last user. And a door for the fuzzers
//! to what is private here.

use crate::link_header::{self, Mac};
use crate::seek;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Gives bytes to what looks at frames of strangers before the protocol does: the Ethernet header, and questions and answers about the
/// places of nodes, whose check value is made right in a copy. What is understood must be understood again when it is written.
pub fn parse_strangers(bytes: &[u8]) {
    if let Some((to, from, payload)) = link_header::parse(bytes) {
        let mut frame = bytes.to_vec();
        link_header::emit(&mut frame, to, from);
        assert_eq!(frame, bytes);
        assert_eq!(Mac::parse(&to.to_string()), Some(to));
        assert_eq!(payload.len() + link_header::LINK_HEADER_BYTES, bytes.len());
    }
    let mut sealed = bytes.to_vec();
    if let Some(frame) = sealed.get_mut(..seek::FRAME_BYTES) {
        bellwire_wire::frame::check::seal(frame).expect("room for the check value");
    }
    for bytes in [bytes, &sealed] {
        if let Some((said, from)) = seek::parse(bytes) {
            let mut frame = [0; seek::FRAME_BYTES];
            seek::emit(said, from, bytes[2], &mut frame);
            assert_eq!(seek::parse(&frame), Some((said, from)));
        }
    }
}

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
