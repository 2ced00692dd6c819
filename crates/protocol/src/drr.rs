//! Deficit round robin: which flow is served next, with weights.
//!
//! Serves cHPP's sharing between functions (C-41; a weight stands for a priority, C-40; Sec. 3.5
//! and 5.5) and DAMQ-PD's turns between virtual ports (D-08, D-09; Sec. 2). The base is Shreedhar
//! and Varghese's (Efficient fair queuing using deficit round robin, SIGCOMM 1995). This form
//! charges *after* service, because the length of a flow's next message is often unknown before. A
//! flow may overdraw its account in its last service of a turn, and pays in the next.

use alloc::boxed::Box;
use alloc::vec;
use core::num::NonZeroU8;

use crate::canary::planted;

/// "No flow".
const NIL: u32 = u32::MAX;

/// Takes turns among the flows that have work. Each turn is worth `quantum_bytes` times the weight
/// of the flow.
///
/// Flows are numbered from 0 and need no set-up: a flow begins idle and with weight 1. Call
/// [`wake`](Self::wake) when a flow gets work, then repeat [`select`](Self::select), serve,
/// [`charge`](Self::charge), and call [`idle`](Self::idle) when it has no more. Compare two flows
/// that always have work by their service, divided by their weights. These differ at no moment by
/// more than one quantum and one charge of each, divided likewise.
///
/// Nothing is allocated after construction. Every operation takes a fixed time if no single charge
/// exceeds the quantum. A flow that was charged `k` quanta at once is passed over about `k /
/// weight` times. With a quantum of 1 and charges of 1 this is plain round robin.
///
/// Methods that take a flow panic if its number is not below the number given to
/// [`new`](Self::new).
pub struct Drr {
    quantum_bytes: u32,
    flows: Box<[Flow]>,
    /// The flow whose turn it is.
    turn: u32,
}

#[derive(Clone, Copy)]
struct Flow {
    /// Bytes that the flow may still send in this turn; below 0, its debt. Only the flow at its
    /// turn is above 0.
    account_bytes: i64,
    weight: NonZeroU8,
    /// Neighbours on the ring of flows with work; `NIL` if the flow is idle.
    before: u32,
    after: u32,
}

const IDLE: Flow = Flow { account_bytes: 0, weight: NonZeroU8::MIN, before: NIL, after: NIL };

impl Drr {
    /// Flows `0..flows`, all idle and of weight 1.
    ///
    /// # Panics
    /// If `quantum_bytes` is 0 or `flows` is `u32::MAX`.
    pub fn new(flows: u32, quantum_bytes: u32) -> Self {
        assert!(quantum_bytes > 0 && flows < NIL, "a turn is worth at least one byte");
        Self { quantum_bytes, flows: vec![IDLE; flows as usize].into(), turn: NIL }
    }

    /// Gives `flow` the weight that counts from its next turn on.
    pub fn weigh(&mut self, flow: u32, weight: NonZeroU8) {
        self.flows[flow as usize].weight = weight;
    }

    /// `flow` has work. It joins the end of the round, unless it is there already.
    #[inline]
    pub fn wake(&mut self, flow: u32) {
        if self.flows[flow as usize].after != NIL {
            return;
        }
        if self.turn == NIL {
            let state = &mut self.flows[flow as usize];
            (state.before, state.after) = (flow, flow);
            self.begin_turn(flow);
        } else {
            let (after, before) = (self.turn, self.flows[self.turn as usize].before);
            self.flows[before as usize].after = flow;
            self.flows[after as usize].before = flow;
            let state = &mut self.flows[flow as usize];
            (state.before, state.after) = (before, after);
        }
    }

    /// `flow` has no more work and leaves the round. It loses the rest of its turn but keeps its
    /// debt.
    #[inline]
    pub fn idle(&mut self, flow: u32) {
        let Flow { before, after, .. } = self.flows[flow as usize];
        if after == NIL {
            return;
        }
        self.flows[before as usize].after = after;
        self.flows[after as usize].before = before;
        let state = &mut self.flows[flow as usize];
        (state.before, state.after) = (NIL, NIL);
        // Debts stay: otherwise a flow could idle after each large message and send the next one
        // for free.
        state.account_bytes = state.account_bytes.min(0);
        if self.turn == flow {
            if after == flow {
                self.turn = NIL;
            } else {
                self.begin_turn(after);
            }
        }
    }

    /// Resets `flow`: idle, of weight 1, without debt. For a number that gets a new owner.
    pub fn remove(&mut self, flow: u32) {
        self.idle(flow);
        self.flows[flow as usize] = IDLE;
    }

    /// The flow to serve next; `None` if all are idle. It stays the same until it is charged or
    /// idle.
    #[inline]
    pub fn select(&mut self) -> Option<u32> {
        if self.turn == NIL {
            return None;
        }
        while self.flows[self.turn as usize].account_bytes <= 0 {
            self.begin_turn(self.flows[self.turn as usize].after);
        }
        Some(self.turn)
    }

    /// `flow` has been served `bytes` bytes; 0 counts as 1.
    ///
    /// `bytes` should include a fixed cost per message. Otherwise a flow of tiny messages is served
    /// many times as often as others.
    #[inline]
    pub fn charge(&mut self, flow: u32, bytes: u32) {
        if !planted("drr-no-charge") {
            self.flows[flow as usize].account_bytes -= bytes.max(1) as i64;
        }
    }

    fn begin_turn(&mut self, flow: u32) {
        self.turn = flow;
        let state = &mut self.flows[flow as usize];
        state.account_bytes += self.quantum_bytes as i64 * state.weight.get() as i64;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// A flow in debt is served again after as many turns as pay for it.
    #[test]
    fn a_debt_is_paid_off() {
        let (ended, end) = channel();
        std::thread::spawn(move || {
            let mut drr = Drr::new(1, 10);
            drr.wake(0);
            drr.charge(0, 1_000);
            assert_eq!((drr.select(), drr.flows[0].account_bytes), (Some(0), 10));
            ended.send(()).expect("the test waits");
        });
        end.recv_timeout(Duration::from_secs(8)).expect("the flow is served");
    }
}
