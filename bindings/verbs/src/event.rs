//! Events that the program has taken and must acknowledge before the object can end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Events of one object.
#[derive(Default)]
pub struct Acknowledged {
    taken: AtomicU32,
    acknowledged: AtomicU32,
}

/// Pause between two looks.
const PAUSE: Duration = Duration::from_micros(100);

impl Acknowledged {
    /// The program has taken an event.
    pub fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// The program has acknowledged events. Returns their number so far.
    pub fn acknowledge(&self, count: u32) -> u32 {
        // Release pairs with the acquire of `wait`.
        self.acknowledged.fetch_add(count, Ordering::Release).wrapping_add(count)
    }

    /// Waits until all taken events are acknowledged: ibv_destroy_cq(3) and its likes wait so.
    pub fn wait(&self) {
        while self.acknowledged.load(Ordering::Acquire) != self.taken.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
    }
}
