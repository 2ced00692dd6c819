//! The send queue of a queue pair: requests start and retire in order.

use crate::completion::{Cause, WorkOpcode, WorkStatus};
use crate::memory::Sge;
use crate::places::Places;
use crate::request::{Bytes, Datagram, Operation, SendRequest};
use bellwire::MemoryRegion;
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

/// Where a request stands.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Not started, or to be started again.
    #[default]
    Waiting,
    /// A message waits for its acknowledgement.
    Sent,
    /// The device executes it.
    InDevice,
    /// The result is known, and the device still uses the request's memory.
    Ending(WorkStatus, Cause),
    /// The result is known.
    Done(WorkStatus, Cause),
}

impl Stage {
    /// The stage of a request that has this result.
    pub(crate) fn ended(self, status: WorkStatus, cause: Cause) -> Stage {
        let is_used = self.is_in_device() && !planted("flushed-early");
        if is_used { Stage::Ending(status, cause) } else { Stage::Done(status, cause) }
    }

    /// Whether the device may read or write the request's memory.
    pub(crate) fn is_in_device(self) -> bool {
        matches!(self, Stage::InDevice | Stage::Ending(..))
    }

    /// The result, if it is known.
    fn result(self) -> Option<WorkStatus> {
        match self {
            Stage::Ending(status, _) | Stage::Done(status, _) => Some(status),
            _ => None,
        }
    }
}

/// The parts of a list. Most lists have one.
#[derive(Clone, Default, Debug)]
pub(crate) enum Parts {
    #[default]
    None,
    One(Sge),
    Many(Box<[Sge]>),
}

impl Parts {
    #[inline(always)]
    pub(crate) fn of(parts: &[Sge]) -> Parts {
        match parts {
            [] => Parts::None,
            [one] => Parts::One(one.copied()),
            many => Parts::Many(many.into()),
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Sge] {
        match self {
            Parts::None => &[],
            Parts::One(one) => std::slice::from_ref(one),
            Parts::Many(many) => many,
        }
    }

    /// Bytes in all.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.as_slice().iter().map(|part| u64::from(part.length)).sum()
    }
}

/// A request in the queue.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) operation: Operation,
    pub(crate) parts: Parts,
    /// Bytes in the queue's own memory.
    pub(crate) inline: Option<u32>,
    pub(crate) signaled: bool,
    pub(crate) solicited: bool,
    pub(crate) fence: bool,
    pub(crate) to: Option<Datagram>,
    pub(crate) stage: Stage,
    /// Its message number, once it has one.
    pub(crate) psn: Option<u32>,
    /// The bytes of an RDMA write with immediate value are in place.
    pub(crate) written: bool,
    /// The peer was asked for the key anew, because it no longer knew the earlier answer.
    pub(crate) asked_anew: bool,
    /// Registrations for the peer that fetches the message.
    pub(crate) offered: Vec<MemoryRegion>,
}

impl Work {
    /// Bytes.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.inline.map_or_else(|| self.parts.total(), u64::from)
    }

    pub(crate) fn opcode(&self) -> WorkOpcode {
        match self.operation {
            Operation::Send { .. } => WorkOpcode::Send,
            Operation::Write { .. } => WorkOpcode::Write,
            Operation::Read { .. } => WorkOpcode::Read,
            Operation::CompareSwap { .. } => WorkOpcode::CompareSwap,
            Operation::FetchAdd { .. } => WorkOpcode::FetchAdd,
            Operation::LocalInvalidate { .. } => WorkOpcode::LocalInvalidate,
            Operation::BindWindow { .. } => WorkOpcode::BindWindow,
        }
    }

    /// Whether it was started once. Such requests end also in the drained state.
    pub(crate) fn has_started(&self) -> bool {
        self.stage != Stage::Waiting || self.psn.is_some() || self.written
    }

    /// Whether it brings bytes from the peer. Later fenced requests wait for it.
    pub(crate) fn fetches(&self) -> bool {
        matches!(
            self.operation,
            Operation::Read { .. } | Operation::CompareSwap { .. } | Operation::FetchAdd { .. }
        )
    }
}

/// Messages after which the next signaled one asks for an acknowledgement.
const ASK_EVERY: u32 = 32;

/// What is left of a request when its result is known.
pub(crate) struct Retired {
    pub(crate) id: u64,
    pub(crate) status: WorkStatus,
    pub(crate) cause: Cause,
    pub(crate) signaled: bool,
    pub(crate) opcode: WorkOpcode,
    /// Bytes that came from the peer.
    pub(crate) length: u32,
}

/// Requests that have not retired, oldest first.
pub(crate) struct SendQueue {
    work: Places<Work>,
    /// The serial number of the front. Serials count requests and wrap.
    front: u32,
    /// Place of the first request that may be waiting.
    next: usize,
    depth: usize,
    /// Memory for inline bytes: a slot for each request in the queue.
    inline: Box<[u8]>,
    inline_bytes: usize,
    /// Reads and atomics that the device executes.
    pub(crate) fetching: u32,
    /// Messages that wait for their acknowledgement.
    pub(crate) unacknowledged: u32,
    /// The number of the next message.
    pub(crate) psn: u32,
    /// What the peer acknowledged last.
    acked: u32,
    /// The first message behind the last one that asked for an acknowledgement.
    asked: u32,
    /// The last message that must be in its receive before a write, a read or an atomic starts.
    barrier: Option<u32>,
    /// Messages before this one find a receive, as the peer has promised.
    promised: u32,
}

impl SendQueue {
    pub(crate) fn new(depth: usize, inline_bytes: usize) -> SendQueue {
        SendQueue {
            work: Places::new(depth.min(256)),
            front: 0,
            next: 0,
            depth,
            inline: vec![0; depth * inline_bytes].into(),
            inline_bytes,
            fetching: 0,
            unacknowledged: 0,
            psn: 0,
            acked: 0,
            asked: 0,
            barrier: None,
            promised: 0,
        }
    }

    /// Sets the number of the first message.
    pub(crate) fn begin(&mut self, psn: u32) {
        (self.psn, self.acked, self.asked) = (psn, psn, psn);
        (self.promised, self.barrier) = (psn, None);
    }

    /// Whether a message may ask for an acknowledgement: it is far behind the last that did.
    #[inline]
    pub(crate) fn may_ask(&self) -> bool {
        self.psn.wrapping_sub(self.asked) >= ASK_EVERY
    }

    /// The last message that was sent asks for an acknowledgement.
    #[inline]
    pub(crate) fn asked(&mut self) {
        self.asked = self.psn;
    }

    /// The peer has receives for the messages before `psn`.
    pub(crate) fn promise(&mut self, psn: u32) {
        if is_before(self.promised, psn) {
            self.promised = psn;
        }
    }

    /// A message was sent. What follows it must not be executed before its bytes are in place, if
    /// it has some, or before it has a receive. [`SendQueue::is_behind`] says so.
    pub(crate) fn sent_message(&mut self, psn: u32, places_bytes: bool) {
        self.unacknowledged += 1;
        let is_promised = is_before(psn, self.promised) || planted("promise-assumed");
        if places_bytes || !is_promised {
            self.barrier = Some(psn);
        }
    }

    /// The first `count` waiting requests were sent as messages with the next numbers.
    pub(crate) fn sent_next(&mut self, count: u32) {
        let first = self.next;
        for work in self.work.since_mut(first).take(count as usize) {
            (work.stage, work.psn) = (Stage::Sent, Some(self.psn));
            self.psn = self.psn.wrapping_add(1);
        }
        (self.next, self.barrier) = (first + count as usize, Some(self.psn.wrapping_sub(1)));
        self.unacknowledged += count;
    }

    /// Whether a write, a read or an atomic must wait for a message before it.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.barrier.is_some()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.work.len() >= self.depth
    }

    /// The most bytes of an inline request.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.inline_bytes
    }

    /// The slot of a serial number.
    fn slot(&self, serial: u32) -> usize {
        serial as usize % self.depth * self.inline_bytes
    }

    /// Adds a request. The caller has checked the room, and the length of inline bytes.
    #[inline(always)]
    pub(crate) fn push(&mut self, request: &SendRequest<'_>) {
        let serial = self.front.wrapping_add(self.work.len() as u32);
        let at = self.slot(serial);
        let work = self.work.add();
        (work.id, work.operation) = (request.id, request.operation);
        match request.bytes {
            Bytes::Listed(parts) => (work.parts, work.inline) = (Parts::of(parts), None),
            Bytes::Inline(bytes) => {
                View::of_mut(&mut self.inline[at..at + bytes.len()]).write(0, bytes);
                (work.parts, work.inline) = (Parts::None, Some(bytes.len() as u32));
            }
        }
        (work.signaled, work.solicited) = (request.signaled, request.solicited);
        (work.fence, work.to) = (request.fence, request.to);
        (work.stage, work.psn) = (Stage::Waiting, None);
        (work.written, work.asked_anew) = (false, false);
        debug_assert!(work.offered.is_empty());
    }

    /// The first waiting request, by serial number.
    #[inline]
    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        while let Some(work) = self.work.get(self.next) {
            if work.stage == Stage::Waiting {
                return Some(self.front.wrapping_add(self.next as u32));
            }
            self.next += 1;
        }
        None
    }

    #[inline]
    pub(crate) fn get(&self, serial: u32) -> Option<&Work> {
        self.work.get(serial.wrapping_sub(self.front) as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, serial: u32) -> Option<&mut Work> {
        self.work.get_mut(serial.wrapping_sub(self.front) as usize)
    }

    /// The inline bytes of a request.
    #[inline]
    pub(crate) fn inline(&self, serial: u32, length: u32) -> &[u8] {
        let at = self.slot(serial);
        &self.inline[at..at + length as usize]
    }

    /// Whether the oldest request has its result.
    #[inline]
    pub(crate) fn has_result(&self) -> bool {
        self.work.get(0).is_some_and(|work| matches!(work.stage, Stage::Done(..)))
    }

    /// Drops the oldest requests that have succeeded, and whose completions nobody wants.
    #[inline]
    pub(crate) fn drop_silent(&mut self) {
        let is_silent = |work: &Work| {
            work.stage == Stage::Done(WorkStatus::Success, Cause::None)
                && !work.signaled
                && work.offered.is_empty()
                && !matches!(work.parts, Parts::Many(_))
        };
        while self.work.get(0).is_some_and(is_silent) {
            self.drop_front();
        }
    }

    #[inline(always)]
    fn drop_front(&mut self) {
        self.work.drop_front();
        self.front = self.front.wrapping_add(1);
        self.next = self.next.saturating_sub(1);
    }

    /// Takes the oldest request out if its result is known. What it had registered goes to
    /// `leftovers`.
    #[inline]
    pub(crate) fn retire(&mut self, leftovers: &mut Vec<MemoryRegion>) -> Option<Retired> {
        // Read in place: a request has several lines.
        let work = self.work.get_mut(0)?;
        let Stage::Done(status, cause) = work.stage else { return None };
        let length = match work.operation {
            Operation::Read { .. } => work.parts.total() as u32,
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 8,
            _ => 0,
        };
        let (id, signaled, opcode) = (work.id, work.signaled, work.opcode());
        if !work.offered.is_empty() {
            leftovers.append(&mut work.offered);
        }
        if let Parts::Many(_) = work.parts {
            work.parts = Parts::None;
        }
        self.drop_front();
        Some(Retired { id, status, cause, signaled, opcode, length })
    }

    /// Requests that wait to be started, at most.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.work.len().saturating_sub(self.next)
    }

    /// Whether the last request is a message that fits into a list.
    #[inline]
    pub(crate) fn ends_with_short_message(&self) -> bool {
        let last = self.work.len().checked_sub(1).and_then(|place| self.work.get(place));
        last.is_some_and(|work| {
            matches!(work.operation, Operation::Send { invalidate: None, .. })
                && work.stage == Stage::Waiting
                && work.length() <= crate::list::MESSAGE_BYTES as u64
        })
    }

    /// Whether a request follows `serial`.
    #[inline]
    pub(crate) fn follows(&self, serial: u32) -> bool {
        serial.wrapping_sub(self.front) as usize + 1 < self.work.len()
    }

    /// Whether requests wait to be started.
    #[inline]
    pub(crate) fn has_waiting(&mut self) -> bool {
        self.next_waiting().is_some()
    }

    /// The requests from the first waiting one on.
    #[inline]
    pub(crate) fn unstarted(&self) -> impl Iterator<Item = (u32, &Work)> {
        let first = self.front.wrapping_add(self.next as u32);
        let numbers = (0..).map(move |place| first.wrapping_add(place));
        numbers.zip(self.work.since(self.next))
    }

    /// Whether an acknowledgement of the messages before `acked` says anything new.
    #[inline]
    pub(crate) fn awaits(&self, acked: u32) -> bool {
        self.unacknowledged > 0 && acked != self.acked
    }

    /// Messages before `acked` are in their receives.
    pub(crate) fn acknowledge(&mut self, acked: u32) {
        if self.unacknowledged == 0 {
            return;
        }
        self.acked = acked;
        if self.barrier.is_some_and(|psn| is_before(psn, acked)) {
            self.barrier = None;
        }
        for work in self.work.since_mut(0) {
            let Some(psn) = work.psn else { continue };
            if is_before(psn, acked) {
                if work.stage == Stage::Sent {
                    work.stage = Stage::Done(WorkStatus::Success, Cause::None);
                    self.unacknowledged -= 1;
                }
            } else {
                break;
            }
        }
    }

    /// The serial number of the message `psn`, if it waits for its acknowledgement.
    pub(crate) fn sent(&self, psn: u32) -> Option<u32> {
        let place = self
            .work
            .since(0)
            .position(|work| work.psn == Some(psn) && work.stage == Stage::Sent)?;
        Some(self.front.wrapping_add(place as u32))
    }

    /// The oldest message that waits for its acknowledgement.
    pub(crate) fn oldest_sent(&self) -> Option<u32> {
        self.work.since(0).find(|work| work.stage == Stage::Sent).and_then(|work| work.psn)
    }

    /// Messages from `psn` on are to be sent again.
    pub(crate) fn rewind(&mut self, psn: u32) {
        for (place, work) in self.work.since_mut(0).enumerate() {
            if work.stage == Stage::Sent && work.psn.is_some_and(|own| !is_before(own, psn)) {
                work.stage = Stage::Waiting;
                self.unacknowledged -= 1;
                self.next = self.next.min(place);
            }
        }
    }

    /// The oldest request without a result.
    pub(crate) fn oldest_unfinished(&self) -> Option<u32> {
        let place = self.work.since(0).position(|work| work.stage.result().is_none())?;
        Some(self.front.wrapping_add(place as u32))
    }

    /// Whether the device may read or write memory of a request.
    pub(crate) fn is_in_device(&self) -> bool {
        self.work.since(0).any(|work| work.stage.is_in_device())
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.work.since(0).any(|work| work.has_started() && !matches!(work.stage, Stage::Done(..)))
    }

    /// A request is to be started once more.
    pub(crate) fn again(&mut self, serial: u32) {
        let place = serial.wrapping_sub(self.front) as usize;
        if let Some(work) = self.work.get_mut(place) {
            work.stage = Stage::Waiting;
            self.next = self.next.min(place);
        }
    }

    /// Ends all requests from the first one without a good result on, from the oldest on if one
    /// before has failed. Behind a failure nothing succeeds, also what was executed already. What
    /// the device still executes retires after that.
    pub(crate) fn flush(&mut self, mut has_failed: bool) {
        for work in self.work.since_mut(0) {
            if has_failed || work.stage.result().is_none() {
                work.stage = work.stage.ended(WorkStatus::Flushed, Cause::Flushed);
            }
            has_failed = work.stage.result() != Some(WorkStatus::Success);
        }
        (self.unacknowledged, self.barrier) = (0, None);
    }

    /// Drops all requests. Returns their registrations.
    pub(crate) fn clear(&mut self) -> Vec<MemoryRegion> {
        self.front = self.front.wrapping_add(self.work.len() as u32);
        self.next = 0;
        (self.unacknowledged, self.barrier) = (0, None);
        let offered = self.work.since_mut(0).flat_map(|work| std::mem::take(&mut work.offered));
        let offered = offered.collect();
        self.work = Places::new(1);
        offered
    }
}

/// Whether message number `a` comes before `b`; the numbers wrap.
#[inline]
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64) -> SendRequest<'static> {
        let operation = Operation::Send { immediate: None, invalidate: None };
        let bytes = Bytes::Inline(b"abc");
        let (signaled, solicited, fence, to) = (true, false, false, None);
        SendRequest { id, operation, bytes, signaled, solicited, fence, to }
    }

    /// Requests retire in order although results come in any order, across the wrap of numbers. A
    /// rewound message starts again.
    #[test]
    fn requests_retire_in_order() {
        let mut queue = SendQueue::new(4, 8);
        queue.front = u32::MAX - 1;
        queue.psn = u32::MAX;
        let first = queue.psn;
        for id in 0..4 {
            queue.push(&request(id));
            let serial = queue.next_waiting().unwrap();
            assert_eq!(queue.inline(serial, 3), b"abc");
            let psn = queue.psn;
            let work = queue.get_mut(serial).unwrap();
            (work.psn, work.stage) = (Some(psn), Stage::Sent);
            queue.psn = psn.wrapping_add(1);
            queue.unacknowledged += 1;
        }
        assert!(queue.is_full() && queue.next_waiting().is_none());
        queue.rewind(first.wrapping_add(2));
        assert_eq!(queue.next_waiting(), Some(0));
        assert!(queue.retire(&mut Vec::new()).is_none());
        queue.acknowledge(first.wrapping_add(2));
        assert_eq!(queue.retire(&mut Vec::new()).unwrap().id, 0);
        assert_eq!(queue.retire(&mut Vec::new()).unwrap().id, 1);
        assert!(queue.retire(&mut Vec::new()).is_none());
        assert_eq!((queue.next_waiting(), queue.unacknowledged), (Some(0), 0));
        queue.flush(false);
        assert_eq!(queue.retire(&mut Vec::new()).unwrap().status, WorkStatus::Flushed);
        assert_eq!(queue.retire(&mut Vec::new()).unwrap().id, 3);
        assert_eq!(queue.work.len(), 0);
    }

    /// What was executed behind a failure is flushed with the rest; what was before it succeeds.
    /// What the device still executes is held.
    #[test]
    fn nothing_succeeds_behind_a_failure() {
        let good = Stage::Done(WorkStatus::Success, Cause::None);
        for (has_failed, stages, successes) in [
            (false, [good, Stage::InDevice, good], 1),
            (false, [good, Stage::Done(WorkStatus::RemoteAccess, Cause::WrongKey), good], 1),
            (false, [good, good, good], 3),
            (true, [good, Stage::Waiting, good], 0),
        ] {
            let mut queue = SendQueue::new(4, 8);
            for (id, stage) in (0..).zip(stages) {
                queue.push(&request(id));
                queue.get_mut(id as u32).unwrap().stage = stage;
            }
            queue.flush(has_failed);
            let mut held = 0;
            for serial in 0..3 {
                let work = queue.get_mut(serial).unwrap();
                if let Stage::Ending(status, cause) = work.stage {
                    work.stage = Stage::Done(status, cause);
                    held += 1;
                }
            }
            assert_eq!(held, stages.iter().filter(|stage| stage.is_in_device()).count());
            let statuses: Vec<WorkStatus> = std::iter::from_fn(|| queue.retire(&mut Vec::new()))
                .map(|done| done.status)
                .collect();
            let good = |status: &&WorkStatus| **status == WorkStatus::Success;
            assert_eq!(statuses.len(), 3);
            assert_eq!(statuses.iter().take_while(good).count(), successes, "{stages:?}");
            assert_eq!(statuses.iter().filter(good).count(), successes, "{stages:?}");
        }
    }
}
