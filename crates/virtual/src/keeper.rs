//! Advances virtual time for programs that wait outside of the device, on the descriptors of armed
//! functions, while no other program is in a call.

use bellwire_ring::signals;
use std::time::Duration;

/// Interval between two steps, in real time.
const INTERVAL: Duration = Duration::from_micros(500);

/// Starts a thread that runs `step` until it returns `false`. Returns whether it has started.
pub(crate) fn start(mut step: impl FnMut() -> bool + Send + 'static) -> bool {
    let keeper = std::thread::Builder::new().name("bellwire-keeper".to_owned());
    let run = move || {
        std::thread::sleep(INTERVAL);
        while step() {
            std::thread::sleep(INTERVAL);
        }
    };
    signals::spawn(keeper, run).is_ok()
}
