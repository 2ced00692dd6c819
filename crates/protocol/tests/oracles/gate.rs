//! What holds for STOP and GO over any traffic.

use bellwire_protocol::{Damq, GatePolicy, Signal};
use proptest::prelude::*;

const QUEUES: u32 = 3;
const CELLS: usize = 16;

/// A queue, and whether to add a message to it or to remove one.
pub fn ops() -> impl Strategy<Value = Vec<(u32, bool)>> {
    prop::collection::vec((0..QUEUES, any::<bool>()), 1..400)
}

/// Signals of a queue alternate. STOP comes only above half of the free cells, GO not above a
/// quarter, and an empty queue is never stopped.
pub fn agree(ops: Vec<(u32, bool)>) -> Result<(), TestCaseError> {
    let mut damq = Damq::<()>::new(CELLS, 16, QUEUES as usize);
    let mut gate = GatePolicy::new(QUEUES as usize);
    let mut last = [Signal::Go; QUEUES as usize];
    for (queue, add) in ops {
        if add {
            let _ = damq.push(queue, (), 1, |_, piece| piece[0] = 0);
        } else {
            damq.discard(queue);
        }
        let (cells, free) = (damq.cells_of(queue), damq.free_cells());
        let signal = gate.observe(queue, cells, free);
        match signal {
            Some(Signal::Stop) => prop_assert!(2 * cells > free),
            Some(Signal::Go) => prop_assert!(4 * cells <= free),
            None => {}
        }
        if let Some(signal) = signal {
            prop_assert_ne!(signal, last[queue as usize], "each signal once");
            last[queue as usize] = signal;
        }
        for queue in 0..QUEUES {
            prop_assert_eq!(gate.is_stopped(queue), last[queue as usize] == Signal::Stop);
            prop_assert!(damq.cells_of(queue) > 0 || !gate.is_stopped(queue));
        }
    }
    Ok(())
}
