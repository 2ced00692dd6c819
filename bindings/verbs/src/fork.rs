//! Fork: registered memory needs no help, because nothing is pinned.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

pub fn init() {
    ASKED.store(true, Ordering::Relaxed);
}

/// `IBV_FORK_DISABLED` or `IBV_FORK_ENABLED`
pub fn is_initialized() -> c_int {
    ASKED.load(Ordering::Relaxed).into()
}
