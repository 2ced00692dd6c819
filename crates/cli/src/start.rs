//! What is settled once, at the start of the program: two signals, and how many files it may have open.

use libc::{SIG_DFL, SIG_IGN, SIGPIPE, SIGXFSZ};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A reader that has seen enough (`bellwire paper rows | head -1`) ends us without a word, as it ends other programs. A file that
/// would become longer than allowed (`ulimit -f`) is an error of the write, which is told, and does not kill us.
///
/// As many files as the system allows: the soft limit, often 1,024, is for programs that use select(2); each pair of perf needs
/// about ten.
pub fn settle() {
    for (signal, action) in [(SIGPIPE, SIG_DFL), (SIGXFSZ, SIG_IGN)] {
        // SAFETY: both actions are the system's own; no code of ours runs in a signal. It fails only for a signal that does not exist.
        unsafe { libc::signal(signal, action) };
    }
    let limits = getrlimit(Resource::Nofile);
    // If it cannot be raised, whoever needs more says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
}
