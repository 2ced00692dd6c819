//! Cross-memory attach, probed by a transfer between two processes.

use super::Check;
use crate::child::Child;
use crate::command::Outcome;
use anyhow::{Context, Result};
use std::io;

const SECRET: u64 = 0x0b5e_55ed_bee5_0042;

/// Has another process read a word of this one. The child reads its parent, which is the harder
/// direction: some systems let a process read only its descendants.
pub fn check() -> Check {
    const NAME: &str = "cross-memory attach";
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let effect = "put and get on memory that programs bring go through packets instead";
    match transfer() {
        Ok(Answer::Read) => Check::good(NAME, "another process read a word of this one"),
        Ok(Answer::Wrong) => Check::limited(
            NAME,
            format!("another process read something else: {effect}"),
            "run both sides in one PID namespace",
        ),
        Ok(Answer::Refused(error)) => {
            let hint = match scope.as_deref().map(str::trim) {
                Some("1") => "sudo sysctl kernel.yama.ptrace_scope=0",
                Some("2" | "3") => {
                    "sudo sysctl kernel.yama.ptrace_scope=0 (3 can be undone by a restart only)"
                }
                _ if error.raw_os_error() == Some(libc::ENOSYS) => {
                    "a kernel with CROSS_MEMORY_ATTACH"
                }
                _ => {
                    "docker run --cap-add SYS_PTRACE, or a seccomp profile that allows process_vm_readv"
                }
            };
            Check::limited(NAME, format!("{error}: {effect}"), hint)
        }
        Err(error) => Check::limited(
            NAME,
            format!("could not be tried: {}", crate::command::sentence(&error)),
            "allow this program to start itself",
        ),
    }
}

enum Answer {
    Read,
    Wrong,
    Refused(io::Error),
}

fn transfer() -> Result<Answer> {
    let word = Box::new(SECRET);
    let address = std::ptr::from_ref(&*word).addr();
    let mut child = Child::start(["read-from-parent", &address.to_string()])?;
    let said = child.line()?;
    let answer = match said.split_once(' ') {
        Some(("read", value)) if value == word.to_string() => Answer::Read,
        Some(("read", _)) => Answer::Wrong,
        Some(("refused", number)) => {
            let number = number.parse().context("the other process answered nonsense")?;
            Answer::Refused(io::Error::from_raw_os_error(number))
        }
        _ => anyhow::bail!("the other process answered {said:?}"),
    };
    Ok(answer)
}

/// The other process of the check
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Reader {
    /// Address of a word in the parent's memory
    address: usize,
}

/// Reads the parent's word and prints it, or the error number.
pub fn read_from_parent(reader: &Reader) -> Result<Outcome> {
    let parent = crate::child::follow_parent()?;
    let mut word = [0_u8; 8];
    let here = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
    let there = libc::iovec { iov_base: reader.address as *mut _, iov_len: word.len() };
    // SAFETY: `here` describes `word`; the kernel checks `there` against the other process's
    // mappings.
    let copied = unsafe { libc::process_vm_readv(parent, &here, 1, &there, 1, 0) };
    if copied == word.len() as isize {
        println!("read {}", u64::from_ne_bytes(word));
    } else {
        let number = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        println!("refused {number}");
    }
    Ok(Outcome::Done)
}
