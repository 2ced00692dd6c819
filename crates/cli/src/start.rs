//! Settings made once, at the start of the program: two signals, and the limit of open files.

use libc::{SIG_DFL, SIG_IGN, SIGPIPE, SIGXFSZ};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// SIGPIPE: a reader that closes the pipe early (`bellwire paper rows | head -1`) ends us silently,
/// like other programs. SIGXFSZ: a file past its size limit (`ulimit -f`) gives a write error,
/// which is reported, and does not kill us.
///
/// Open files: as many as the system allows. The soft limit, often 1,024, is for programs that use
/// select(2); each pair of perf needs about ten.
pub fn settle() {
    for (signal, action) in [(SIGPIPE, SIG_DFL), (SIGXFSZ, SIG_IGN)] {
        // SAFETY: both actions are the system's own; no code of ours runs in a signal. Only an
        // invalid signal could fail.
        unsafe { libc::signal(signal, action) };
    }
    let limits = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, code that needs more files reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
}
