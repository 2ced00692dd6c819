//! `membarrier`: makes every processor that runs a registered partner execute a full fence.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// Registers this process once. Returns whether it is registered and can issue barriers.
pub fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
            && membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    })
}

/// Issues the barrier. Call it only after [`available`] returned true; it cannot fail then.
pub fn issue() {
    if let Err(error) = membarrier(MembarrierCommand::GlobalExpedited) {
        panic!("membarrier worked when the device was opened and now fails: {error}");
    }
}
