//! What two signals do to this program; settled once, at its start.

use libc::{SIG_DFL, SIG_IGN, SIGPIPE, SIGXFSZ};

/// A reader that has seen enough (`bellwire paper rows | head -1`) ends us without a word, as it ends other programs. A file that
/// would become longer than allowed (`ulimit -f`) is an error of the write, which is told, and does not kill us.
pub fn settle() {
    for (signal, action) in [(SIGPIPE, SIG_DFL), (SIGXFSZ, SIG_IGN)] {
        // SAFETY: both actions are the system's own; no code of ours runs in a signal. It fails only for a signal that does not exist.
        unsafe { libc::signal(signal, action) };
    }
}
