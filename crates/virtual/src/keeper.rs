//! Advances virtual time for programs that wait outside of the device, on the descriptors of armed
//! functions, while no other program is in a call.

use crate::seat::Waits;
use crate::world::{FAR, State, World};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval between two looks, in real time.
const LOOK: Duration = Duration::from_micros(500);

/// Starts the keeper's thread, which looks while functions are armed.
pub(crate) fn keep(world: &Arc<World>, state: &mut State) {
    if state.has_keeper {
        return;
    }
    let world = Arc::downgrade(world);
    let keeper = std::thread::Builder::new().name("bellwire-keeper".to_owned());
    // Without the thread, waiting programs depend on the calls of others: no worse than a silent
    // peer on another device.
    state.has_keeper = keeper.spawn(move || while look(&world) {}).is_ok();
}

/// One look. `false`: no function is armed any more.
fn look(world: &Weak<World>) -> bool {
    std::thread::sleep(LOOK);
    let Some(world) = world.upgrade() else { return false };
    let mut state = world.lock();
    let armed =
        |place: &usize| state.seats[*place].as_ref().is_some_and(|seat| seat.waits == Waits::Armed);
    if !state.waiting.iter().any(armed) {
        state.has_keeper = false;
        return false;
    }
    state.turns.dismiss_absent(None);
    if state.turns.first().is_none() {
        state.run_out(FAR);
        if state.gets_stuck(FAR) {
            state.wake();
        }
    }
    state.turns.notify_first();
    true
}
