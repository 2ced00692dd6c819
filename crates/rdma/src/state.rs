//! What an adapter knows, apart from its function: the objects of the program, and lists of what is
//! to be done for them.

use crate::completion::{Cause, WorkCompletion, WorkOpcode, WorkStatus};
use crate::completion_queue::{CqId, WorkQueue};
use crate::events::{AsyncEvent, EventKind, EventQueue};
use crate::head::Head;
use crate::memory::Memory;
use crate::multicast::Multicast;
use crate::peers::Peers;
use crate::queue_pair::{Arrival, QpState, QueuePair, Service};
use crate::receive_queue::{Receive, SharedReceives};
use crate::send_queue::Stage;
use crate::slab::Slab;
use bellwire::FunctionAddress;
use bellwire_ring::canary::planted;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Queue pairs by number. The upper 8 bits of a number are the function, the lower 16 a place.
pub(crate) struct QueuePairs {
    function: u8,
    /// For each place the index in `table` plus one, or 0.
    places: Vec<u32>,
    table: Slab<Box<QueuePair>>,
    /// Where the next free place is looked for, so that numbers are used again late.
    cursor: u16,
}

/// The lowest place: queue pairs 0 and 1 are special in the specification.
const FIRST_PLACE: u16 = 2;

impl QueuePairs {
    pub(crate) fn new(function: u8, limit: usize, cursor: u16) -> QueuePairs {
        QueuePairs { function, places: vec![0; 1 << 16], table: Slab::new(limit), cursor }
    }

    /// Adds the queue pair that `make` makes of its number. `None`: the table is full.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> QueuePair) -> Option<u32> {
        let place = (0..=u16::MAX).find_map(|step| {
            let place = self.cursor.wrapping_add(step);
            (place >= FIRST_PLACE && self.places[usize::from(place)] == 0).then_some(place)
        })?;
        let number = u32::from(self.function) << 16 | u32::from(place);
        let index = self.table.insert(Box::new(make(number)))?;
        self.places[usize::from(place)] = index + 1;
        self.cursor = place.wrapping_add(1);
        Some(number)
    }

    fn index(&self, number: u32) -> Option<u32> {
        let place = self.places[(number & 0xffff) as usize];
        (number >> 16 == u32::from(self.function)).then(|| place.checked_sub(1)).flatten()
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&QueuePair> {
        self.table.get(self.index(number)?).map(|qp| &**qp)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut QueuePair> {
        let index = self.index(number)?;
        self.table.get_mut(index).map(|qp| &mut **qp)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<QueuePair>> {
        let index = self.index(number)?;
        self.places[(number & 0xffff) as usize] = 0;
        self.table.remove(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuePair> {
        self.table.iter().map(|(_, qp)| &**qp)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.iter().map(|qp| qp.number).collect()
    }
}

/// What needs the function, and so waits until its poll has returned.
pub(crate) enum Todo {
    /// Arrivals of a queue pair.
    Arrivals(u32),
    /// A peer asks for the memory of a key.
    Resolve(FunctionAddress, Head),
    /// The completion queue has lost a completion, so its queue pairs fail.
    Overrun(CqId),
    /// A peer is gone.
    Forget(FunctionAddress),
    /// What a queue pair was granted by keys ends with its connection.
    Revoke(u32, Vec<u32>),
}

pub(crate) struct State {
    pub(crate) address: FunctionAddress,
    /// Peers of other builds, with their versions.
    pub(crate) strangers: HashSet<(FunctionAddress, u8)>,
    /// The longest body of a packet, in bytes.
    pub(crate) body_bytes: usize,
    /// Objects of each protection domain, apart from memory.
    pub(crate) domains: Slab<usize>,
    pub(crate) queues: Slab<WorkQueue>,
    pub(crate) shared: Slab<SharedReceives>,
    pub(crate) qps: QueuePairs,
    pub(crate) memory: Memory,
    pub(crate) peers: Peers,
    pub(crate) multicast: Multicast,
    pub(crate) events: Arc<EventQueue<AsyncEvent>>,
    pub(crate) todo: VecDeque<Todo>,
    /// Queue pairs whose requests may start.
    pub(crate) ready: VecDeque<u32>,
    /// Queue pairs that owe an acknowledgement.
    pub(crate) owing: Vec<u32>,
    /// Queue pairs that wait for a time.
    pub(crate) held: Vec<u32>,
    /// Packets that were taken.
    pub(crate) packets: usize,
    /// Marks that peers have not acknowledged ([`crate::peers::Peers::mark`]).
    pub(crate) marks: usize,
    pub(crate) last_tick: Instant,
    pub(crate) ticks: u32,
    /// A short message of several parts is gathered here.
    pub(crate) scratch: Box<[u8]>,
}

impl State {
    /// Lists a queue pair whose requests may start.
    #[inline]
    pub(crate) fn list(&mut self, number: u32) {
        if let Some(qp) = self.qps.get_mut(number)
            && !std::mem::replace(&mut qp.listed, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Holds the requests of a queue pair until a time.
    pub(crate) fn hold(&mut self, number: u32, until: Instant) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        if qp.hold_until.replace(until).is_none() {
            self.held.push(number);
        }
    }

    /// Writes a completion, and reports a queue that overflows.
    #[inline]
    pub(crate) fn complete(&mut self, queue: CqId, completion: WorkCompletion, solicited: bool) {
        let Some(ring) = self.queues.get_mut(queue.0) else { return };
        if !ring.push(completion, solicited) {
            let object = ring.object;
            tracing::error!("a completion queue has overflowed: it is not polled, or too short");
            self.events.push(AsyncEvent { kind: EventKind::CompletionQueueError, object });
            self.todo.push_back(Todo::Overrun(queue));
        }
    }

    /// The next receive of a queue pair.
    #[inline]
    pub(crate) fn take_receive(&mut self, number: u32) -> Option<Receive> {
        let qp = self.qps.get_mut(number)?;
        let Some(shared) = qp.options.shared else { return qp.receives.pop() };
        let shared = self.shared.get_mut(shared.0)?;
        let (receive, crossed) = shared.take();
        if crossed {
            let (kind, object) = (EventKind::SharedReceiveLimit, shared.object);
            self.events.push(AsyncEvent { kind, object });
        }
        receive
    }

    /// Receives that a queue pair may take.
    pub(crate) fn posted_receives(&self, qp: &QueuePair) -> usize {
        match qp.options.shared {
            None => qp.receives.len(),
            Some(shared) => self.shared.get(shared.0).map_or(0, |shared| shared.queue.len()),
        }
    }

    /// Writes the completions of requests that have retired. The first error fails the queue pair.
    pub(crate) fn retire(&mut self, number: u32) {
        loop {
            let Some(qp) = self.qps.get_mut(number) else { return };
            if !qp.options.signal_all {
                qp.sends.drop_silent();
            }
            let Some(done) = qp.sends.retire(&mut qp.leftovers) else { break };
            let queue = qp.options.send_queue;
            let is_wanted = done.signaled || qp.options.signal_all;
            if qp.silent || (done.status == WorkStatus::Success && !is_wanted) {
                continue;
            }
            let mut completion = WorkCompletion::new(done.id, done.status, done.opcode, number);
            (completion.cause, completion.length) = (done.cause, done.length);
            self.complete(queue, completion, false);
            if done.status != WorkStatus::Success {
                self.fail_sends(number);
            }
        }
        let Some(qp) = self.qps.get_mut(number) else { return };
        if qp.state() == QpState::SendDrained
            && qp.draining
            && (qp.sends.is_idle() || planted("drained-early"))
        {
            qp.draining = false;
            let (kind, object) = (EventKind::SendQueueDrained, qp.options.object);
            if qp.attributes.drained_event {
                self.events.push(AsyncEvent { kind, object });
            }
        }
    }

    /// Sets the result of a request. The requests behind it do not start after an error.
    pub(crate) fn finish(&mut self, number: u32, serial: u32, status: WorkStatus, cause: Cause) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        let is_silent = qp.options.service == Service::UnreliableConnection
            && !matches!(
                status,
                WorkStatus::LocalLength
                    | WorkStatus::LocalProtection
                    | WorkStatus::LocalAccess
                    | WorkStatus::LocalQueuePairOperation
                    | WorkStatus::WindowBind
            );
        let (status, cause) =
            if is_silent { (WorkStatus::Success, Cause::None) } else { (status, cause) };
        qp.stopped |= status != WorkStatus::Success;
        if let Some(work) = qp.sends.get_mut(serial) {
            let was_sent = work.stage == Stage::Sent;
            work.stage = work.stage.ended(status, cause);
            qp.sends.unacknowledged -= u32::from(was_sent);
        }
        self.list(number);
    }

    /// The peer does not answer, so the oldest request fails.
    pub(crate) fn give_up(&mut self, number: u32, cause: Cause) {
        let Some(qp) = self.qps.get(number) else { return };
        let oldest = qp.sends.oldest_unfinished();
        if let Some(peer) = qp.peer
            && matches!(cause, Cause::PeerGone | Cause::Unreachable)
            // What other queue pairs have sent would be lost.
            && (planted("forgets-for-all")
                || !self.qps.iter().any(|other| other.number != number && other.hears(peer)))
        {
            self.todo.push_back(Todo::Forget(peer));
        }
        if let Some(serial) = oldest {
            self.finish(number, serial, WorkStatus::RetryExceeded, cause);
        }
    }

    /// A request has failed. RC fails with it. The send queue alone stops for UC and UD, whose
    /// peer knows nothing of it (10.3.1 of the specification).
    fn fail_sends(&mut self, number: u32) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        qp.end_sends(true);
        match qp.state() {
            QpState::ReadyToSend if !qp.is_reliable() => {
                qp.attributes.state = QpState::SendError;
            }
            QpState::SendError => {}
            _ => self.fail(number),
        }
    }

    /// Moves a queue pair to the error state: everything that is posted completes as flushed.
    pub(crate) fn fail(&mut self, number: u32) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        if matches!(qp.state(), QpState::Reset) {
            return;
        }
        let is_first = qp.state() != QpState::Error;
        qp.attributes.state = QpState::Error;
        qp.end_sends(false);
        let granted = std::mem::take(&mut qp.granted);
        if !granted.is_empty() {
            self.todo.push_back(Todo::Revoke(number, granted));
        }
        qp.tells_last |= is_first && qp.options.shared.is_some();
        self.flush_receives(number);
        self.list(number);
    }

    /// Completes the receives of a failed queue pair as flushed, once the device writes into none
    /// of them.
    pub(crate) fn flush_receives(&mut self, number: u32) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        if qp.is_fetching() && !planted("flushed-early") {
            return;
        }
        let (queue, object) = (qp.options.receive_queue, qp.options.object);
        let matched = qp.arrivals.drain(..).filter_map(|arrival| match arrival {
            Arrival::Fetching { completion, .. } | Arrival::Done { completion, .. } => {
                Some(completion.id)
            }
            Arrival::Unmatched(_) => None,
        });
        let mut ids: Vec<u64> = matched.collect();
        while let Some(receive) = qp.receives.pop() {
            ids.push(receive.id);
        }
        if qp.silent {
            ids.clear();
        }
        let is_last = std::mem::take(&mut qp.tells_last);
        for id in ids {
            let opcode = WorkOpcode::Receive;
            let mut completion = WorkCompletion::new(id, WorkStatus::Flushed, opcode, number);
            completion.cause = Cause::Flushed;
            self.complete(queue, completion, false);
        }
        if is_last {
            self.events.push(AsyncEvent { kind: EventKind::LastReceiveReached, object });
        }
    }

    /// Completions were lost: the queue pairs of the completion queue fail (11.6.3.2 of the
    /// specification).
    pub(crate) fn overrun(&mut self, queue: CqId) {
        let uses = |qp: &&QueuePair| {
            let options = &qp.options;
            options.send_queue == queue || options.receive_queue == queue
        };
        let numbers: Vec<u32> = self.qps.iter().filter(uses).map(|qp| qp.number).collect();
        for number in numbers {
            self.fail_with_event(number, EventKind::QueuePairFatal);
        }
    }

    /// The queue pair fails for a reason that the program learns by an event.
    pub(crate) fn fail_with_event(&mut self, number: u32, kind: EventKind) {
        let Some(qp) = self.qps.get(number) else { return };
        let object = qp.options.object;
        if !matches!(qp.state(), QpState::Error | QpState::Reset) {
            self.events.push(AsyncEvent { kind, object });
        }
        self.fail(number);
    }

    /// The process at this address is of another build: no queue pair can be connected with it.
    pub(crate) fn refuse_build(&mut self, peer: FunctionAddress) {
        for number in self.qps.numbers() {
            let Some(qp) = self.qps.get(number) else { continue };
            let is_connected = qp.peer == Some(peer) && qp.state().receives();
            if !is_connected || qp.options.service == Service::Datagram {
                continue;
            }
            if let Some(serial) = qp.sends.oldest_unfinished() {
                self.finish(number, serial, WorkStatus::RemoteOperation, Cause::OtherBuild);
                self.retire(number);
            }
            self.fail(number);
        }
    }

    /// A process at this address is gone: all queue pairs that are connected with it lose it.
    pub(crate) fn lose(&mut self, peer: FunctionAddress, cause: Cause) {
        let ticks = self.ticks;
        self.todo.push_back(Todo::Forget(peer));
        for number in self.qps.numbers() {
            let Some(qp) = self.qps.get_mut(number) else { continue };
            let is_connected = qp.peer == Some(peer) && qp.state().receives();
            if !is_connected || qp.options.service == Service::Datagram {
                continue;
            }
            if qp.is_of_earlier_process(ticks) {
                // What was sent to that process is sent to the new one.
                qp.asked = None;
                if let Some(oldest) = qp.sends.oldest_sent() {
                    qp.sends.rewind(oldest);
                    self.trouble(number, cause);
                }
                self.list(number);
                continue;
            }
            // A card learns nothing of a peer that has ended in order, and tries again for a while.
            if let Some(oldest) =
                qp.sends.oldest_sent().filter(|_| qp.is_reliable() && qp.peer_left)
            {
                qp.sends.rewind(oldest);
                self.trouble(number, cause);
                self.retire(number);
            } else if let Some(serial) = qp.sends.oldest_unfinished() {
                let status = match cause {
                    Cause::Protocol => WorkStatus::RemoteOperation,
                    _ => WorkStatus::RetryExceeded,
                };
                self.finish(number, serial, status, cause);
                // Silent services go on with the next one.
                let Some(qp) = self.qps.get_mut(number) else { continue };
                if !qp.is_reliable() {
                    let next = qp.sends.psn;
                    qp.sends.acknowledge(next);
                }
                self.retire(number);
            } else if qp.is_reliable() && !qp.peer_left {
                self.fail(number);
            }
        }
    }
}
