//! Requests start: the side of the sender.

use crate::adapter::Adapter;
use crate::arrive::local;
use crate::completion::{Cause, WorkStatus};
use crate::head::{Head, Opcode, Written, flag};
use crate::list::{self, LIST_BYTES, Record};
use crate::memory::{Access, RemoteMemory, Sge, offer};
use crate::multicast::{Frame, GROUP_QUEUE_PAIR, Sent};
use crate::queue_pair::{Service, WINDOW};
use crate::request::Operation;
use crate::send_queue::{Parts, Stage};
use crate::state::State;
use bellwire::{
    Atomic, Buffer, Completion, Error, Function, FunctionAddress, Get, LocalChain, Put, RemoteAt,
    RemoteKey, RemoteSlice, Status,
};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;
use bellwire_ring::steps::step;
use std::net::Ipv4Addr;

/// Longest message, write or read in bytes: 2 GiB, as the specification has it.
pub const MESSAGE_BYTES: u64 = 1 << 31;
/// The longest write in bytes that is done at once where the memory of the peer is mapped.
const SHORT_BYTES: usize = 64;
/// Longest datagram in bytes: the path's MTU.
pub const DATAGRAM_BYTES: u64 = 4096;

/// What became of a start.
enum Started {
    /// A message is under way, or the request is finished.
    Yes,
    /// The device executes it, and may have its result already.
    InDevice,
    /// The device has no room now.
    NoRoom,
    /// Something else happens first, and lists the queue pair again.
    Later,
    /// It failed.
    Failed(WorkStatus, Cause),
    /// It failed at the peer, which must know.
    FailedAtPeer(WorkStatus, Cause),
}

/// Context of a descriptor: what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// A packet.
    Packet,
    /// A request, by serial number.
    Work(u32, u32),
    /// A message that is fetched, by its number.
    Fetch(u32, u32),
}

impl Context {
    pub(crate) fn emit(self) -> u64 {
        let join = |kind: u64, number: u32, serial: u32| {
            kind << 56 | u64::from(number) << 32 | u64::from(serial)
        };
        match self {
            Context::Packet => 0,
            Context::Work(number, serial) => join(1, number, serial),
            Context::Fetch(number, psn) => join(2, number, psn),
        }
    }

    pub(crate) fn parse(context: u64) -> Context {
        let (number, serial) = ((context >> 32) as u32 & 0xff_ffff, context as u32);
        match context >> 56 {
            1 => Context::Work(number, serial),
            2 => Context::Fetch(number, serial),
            _ => Context::Packet,
        }
    }
}

impl Adapter {
    /// Starts requests that were posted. While the peer is behind, short messages wait for others
    /// to share a packet with, at most until the next poll.
    #[inline]
    pub fn start(&mut self, number: u32) {
        match self.state.qps.get_mut(number) {
            Some(qp) if qp.coalesces() => self.state.list(number),
            _ => self.start_all(number),
        }
    }

    /// Starts the waiting requests of a queue pair, and retires finished ones.
    pub(crate) fn start_all(&mut self, number: u32) {
        loop {
            let Adapter { function, state, .. } = self;
            let Some(qp) = state.qps.get_mut(number) else { return };
            let Some(serial) = qp.next_request() else { break };
            if qp.sends.follows(serial) && state.send_list(function, number) {
                continue;
            }
            match state.start_one(function, number, serial) {
                Started::Yes => {}
                Started::InDevice => self.take_results(),
                Started::NoRoom => {
                    state.list(number);
                    break;
                }
                Started::Later => break,
                Started::Failed(status, cause) => state.finish(number, serial, status, cause),
                Started::FailedAtPeer(status, cause) => {
                    state.fail_at_peer(number, serial, status, cause);
                }
            }
        }
        let Some(qp) = self.state.qps.get(number) else { return };
        if qp.draining || qp.sends.has_result() {
            self.state.retire(number);
        }
        self.end_offers(number);
    }

    /// Ends the registrations of offers whose requests have retired.
    fn end_offers(&mut self, number: u32) {
        let Some(qp) = self.state.qps.get_mut(number) else { return };
        if !qp.leftovers.is_empty() {
            crate::memory::withdraw(&mut self.function, std::mem::take(&mut qp.leftovers));
        }
    }

    /// Takes the results that the device had at once.
    #[inline]
    pub(crate) fn take_results(&mut self) {
        while let Ok(Some(done)) = self.function.next_completion(self.queue) {
            self.completed(done);
        }
    }

    /// A descriptor of the device has completed.
    pub(crate) fn completed(&mut self, done: Completion) {
        if done.operation == bellwire::Operation::Receive {
            return self.received(done);
        }
        match Context::parse(done.context) {
            // Only marks are signaled.
            Context::Packet if done.status == Status::Success => {
                self.state.marks = self.state.marks.saturating_sub(1);
            }
            // It has no mailbox yet: its program has just opened it. A probe finds out more.
            Context::Packet if done.status == Status::NoSuchQueuePair => {}
            // The peer was forgotten.
            Context::Packet if done.status == Status::Flushed => {}
            Context::Packet => {
                self.state.lose(done.peer.function_address(), cause_of(done.status));
            }
            Context::Work(number, serial) => self.state.executed(number, serial, &done),
            Context::Fetch(number, psn) => self.fetched(number, psn, done.status),
        }
    }
}

impl State {
    #[inline(always)]
    fn start_one(&mut self, function: &mut Function, number: u32, serial: u32) -> Started {
        let Some(qp) = self.qps.get(number) else { return Started::Later };
        let Some(work) = qp.sends.get(serial) else { return Started::Later };
        if work.fence && qp.sends.fetching > 0 {
            return Started::Later;
        }
        let length = work.length();
        if length > MESSAGE_BYTES {
            return Started::Failed(WorkStatus::LocalLength, Cause::TooLong);
        }
        match work.operation {
            Operation::Send { .. } if qp.options.service == Service::Datagram => {
                self.send_datagram(function, number, serial)
            }
            Operation::Send { .. } => self.send_message(function, number, serial),
            Operation::Write { immediate, .. } => match immediate {
                Some(_) if work.written || length == 0 => {
                    self.send_message(function, number, serial)
                }
                None if length == 0 => self.nothing_to_do(number, serial),
                _ => self.access(function, number, serial),
            },
            Operation::Read { .. } if length == 0 => self.nothing_to_do(number, serial),
            Operation::Read { .. } | Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
                self.access(function, number, serial)
            }
            Operation::LocalInvalidate { key } => {
                let domain = qp.options.domain;
                match self.memory.invalidate(function, domain, key) {
                    Ok(()) => self.nothing_to_do(number, serial),
                    Err(cause) => Started::Failed(WorkStatus::WindowBind, cause),
                }
            }
            Operation::BindWindow { window, key, to } => {
                let domain = qp.options.domain;
                match self.memory.bind(function, domain, window, key, &to) {
                    Ok(()) => self.nothing_to_do(number, serial),
                    Err(cause) => Started::Failed(WorkStatus::WindowBind, cause),
                }
            }
        }
    }

    fn nothing_to_do(&mut self, number: u32, serial: u32) -> Started {
        let work = self.qps.get_mut(number).and_then(|qp| qp.sends.get_mut(serial));
        if let Some(work) = work {
            work.stage = Stage::Done(WorkStatus::Success, Cause::None);
        }
        Started::Yes
    }

    /// Sends a message of a connection, or the immediate value of a write.
    #[inline]
    fn send_message(&mut self, function: &mut Function, number: u32, serial: u32) -> Started {
        let State { qps, memory, peers, scratch, body_bytes, .. } = self;
        let Some(qp) = qps.get_mut(number) else { return Started::Later };
        let (domain, patient) = (qp.options.domain, qp.attributes.rnr_retry == 7);
        let (Some(peer), true) = (qp.peer, qp.sends.unacknowledged < WINDOW) else {
            return Started::Later;
        };
        let Some(work) = qp.sends.get(serial) else { return Started::Later };
        let length = work.length();
        let mut head = Head::new(Opcode::Send, qp.attributes.peer, number);
        head.psn = work.psn.unwrap_or(qp.sends.psn);
        head.acked = qp.delivered;
        head.extra = length;
        head.flags = flag::ACKS | if patient { flag::PATIENT } else { 0 };
        if work.solicited {
            head.flags |= flag::SOLICITED;
        }
        let asks = (work.signaled || qp.options.signal_all) && qp.sends.may_ask();
        if asks {
            head.flags |= flag::ASKS;
        }
        let mut is_write = false;
        match work.operation {
            Operation::Send { invalidate: Some(key), .. } => {
                (head.word, head.flags) = (key, head.flags | flag::INVALIDATE);
            }
            Operation::Send { immediate, .. } | Operation::Write { immediate, .. } => {
                is_write = matches!(work.operation, Operation::Write { .. });
                if let Some(value) = immediate {
                    (head.word, head.flags) = (value, head.flags | flag::IMMEDIATE);
                }
            }
            _ => {}
        }
        let mut offered = Vec::new();
        let sent = if is_write {
            head.opcode = Opcode::WriteImmediate;
            let Operation::Write { key, address, .. } = work.operation else {
                return Started::Later;
            };
            peers.send(function, peer, &head, View::of(&Written { key, address }.emit()))
        } else if let Some(length) = work.inline {
            let bytes = qp.sends.inline(serial, length);
            peers.send(function, peer, &head, View::of(bytes))
        } else if length <= *body_bytes as u64 {
            let body = match &work.parts {
                Parts::None => Ok(View::empty()),
                Parts::One(part) => memory.view(domain, part, false),
                Parts::Many(parts) => gather(memory, domain, parts, scratch),
            };
            match body {
                Ok(body) => peers.send(function, peer, &head, body),
                Err(cause) => return failed_list(cause),
            }
        } else {
            offered = match offer(memory, function, domain, work.parts.as_slice()) {
                Ok(offered) => offered,
                Err(cause) => return failed_list(cause),
            };
            head.opcode = Opcode::Offer;
            step("rdma-offers");
            let keys: Vec<u8> =
                offered.iter().flat_map(|region| region.remote_key().to_bytes()).collect();
            peers.send(function, peer, &head, View::of(&keys))
        };
        match sent {
            Ok(()) => {
                qp.owed = 0;
                if qp.sends.psn == head.psn {
                    qp.sends.psn = head.psn.wrapping_add(1);
                }
                qp.sends.sent_message(head.psn, !is_write);
                if asks {
                    qp.sends.asked();
                }
                if let Some(work) = qp.sends.get_mut(serial) {
                    (work.stage, work.psn) = (Stage::Sent, Some(head.psn));
                    // Registrations of an earlier attempt end with the request.
                    if !offered.is_empty() {
                        work.offered.extend(offered);
                    }
                }
                Started::Yes
            }
            Err(error) => {
                crate::memory::withdraw(function, offered);
                refused(&error)
            }
        }
    }

    /// Sends the first waiting requests in one packet, if they are at least two short messages that
    /// may leave now. `false`: nothing has changed.
    fn send_list(&mut self, function: &mut Function, number: u32) -> bool {
        let State { qps, memory, peers, scratch, body_bytes, .. } = self;
        let Some(qp) = qps.get_mut(number) else { return false };
        let (domain, sends) = (qp.options.domain, &qp.sends);
        let Some(peer) = qp.peer.filter(|_| qp.options.service != Service::Datagram) else {
            return false;
        };
        let limit = LIST_BYTES.min(*body_bytes);
        let Some(list) = scratch.get_mut(..limit) else { return false };
        let room = WINDOW.saturating_sub(sends.unacknowledged);
        let (mut count, mut end, mut asks) = (0, 0, qp.options.signal_all);
        for (serial, work) in sends.unstarted() {
            let Operation::Send { immediate, invalidate: None } = work.operation else { break };
            let is_next = work.stage == Stage::Waiting && work.psn.is_none() && !work.fence;
            if !is_next || count == room || work.length() > list::MESSAGE_BYTES as u64 {
                break;
            }
            let body = match (work.inline, &work.parts) {
                (Some(length), _) => View::of(sends.inline(serial, length)),
                (None, Parts::One(part)) => match memory.view(domain, part, false) {
                    Ok(body) => body,
                    Err(_) => break,
                },
                (None, Parts::None) => View::empty(),
                (None, Parts::Many(_)) => break,
            };
            let flags = if work.solicited { flag::SOLICITED } else { 0 };
            let flags = flags | if immediate.is_some() { flag::IMMEDIATE } else { 0 };
            let record = Record { flags, word: immediate.unwrap_or_default(), body };
            let Some(after) = record.emit(list, end) else { break };
            (count, end) = (count + 1, after);
            asks |= work.signaled;
        }
        if count < 2 {
            return false;
        }
        let mut head = Head::new(Opcode::List, qp.attributes.peer, number);
        (head.psn, head.acked, head.flags) = (qp.sends.psn, qp.delivered, flag::ACKS);
        if qp.attributes.rnr_retry == 7 {
            head.flags |= flag::PATIENT;
        }
        let asks = asks && qp.sends.may_ask();
        if asks {
            head.flags |= flag::ASKS;
        }
        if peers.send(function, peer, &head, View::of(&list[..end])).is_err() {
            return false;
        }
        qp.owed = 0;
        qp.sends.sent_next(count);
        if asks {
            qp.sends.asked();
        }
        true
    }

    fn send_datagram(&mut self, function: &mut Function, number: u32, serial: u32) -> Started {
        let State { qps, memory, peers, scratch, multicast, .. } = self;
        let Some(qp) = qps.get_mut(number) else { return Started::Later };
        let (domain, own_key) = (qp.options.domain, qp.attributes.qkey);
        let Some(work) = qp.sends.get(serial) else { return Started::Later };
        let Some(to) = work.to else {
            return Started::Failed(WorkStatus::LocalQueuePairOperation, Cause::NoQueuePair);
        };
        if work.length() > DATAGRAM_BYTES {
            return Started::Failed(WorkStatus::LocalLength, Cause::TooLong);
        }
        let mut head = Head::new(Opcode::Datagram, to.queue_pair, number);
        // The upper bit asks for the sender's own key (10.2.5 of the specification).
        head.word = if to.key >> 31 == 1 { own_key } else { to.key };
        if work.solicited {
            head.flags |= flag::SOLICITED;
        }
        if let Operation::Send { immediate: Some(value), .. } = work.operation {
            (head.acked, head.flags) = (value, head.flags | flag::IMMEDIATE);
        }
        let body = match (work.inline, &work.parts) {
            (Some(length), _) => Ok(View::of(qp.sends.inline(serial, length))),
            (None, Parts::None) => Ok(View::empty()),
            (None, Parts::One(part)) => memory.view(domain, part, false),
            (None, Parts::Many(parts)) => gather(memory, domain, parts, scratch),
        };
        let body = match body {
            Ok(body) => body,
            Err(cause) => return failed_list(cause),
        };
        if multicast.is_group(to.host, to.queue_pair) {
            let immediate = head.has(flag::IMMEDIATE).then_some(head.acked);
            let solicited = work.solicited;
            let frame = Frame { source: number, key: head.word, immediate, solicited };
            let sent = match to.queue_pair {
                GROUP_QUEUE_PAIR => multicast.send(to.host, &frame, body),
                // Receivers drop it (9.6.1.2 of the specification).
                _ => Sent::Yes,
            };
            return match sent {
                Sent::Yes => self.nothing_to_do(number, serial),
                Sent::NoRoom => Started::NoRoom,
                Sent::Unsupported => {
                    Started::Failed(WorkStatus::LocalQueuePairOperation, Cause::Device)
                }
            };
        }
        match peers.send(function, function_at(to.host, to.queue_pair), &head, body) {
            Err(Error::QueueFull { .. }) => Started::NoRoom,
            // A datagram that cannot be sent is lost.
            _ => self.nothing_to_do(number, serial),
        }
    }

    /// Starts a write, a read or an atomic.
    #[inline]
    fn access(&mut self, function: &mut Function, number: u32, serial: u32) -> Started {
        let State { qps, memory, peers, .. } = self;
        let Some(qp) = qps.get_mut(number) else { return Started::Later };
        let Some(peer) = qp.peer else { return Started::Later };
        // The acknowledgement that ends this lists the queue pair again.
        if qp.sends.is_behind() && !planted("write-overtakes") {
            return Started::Later;
        }
        let Some(work) = qp.sends.get(serial) else { return Started::Later };
        let domain = qp.options.domain;
        let (address, key, length, needs) = match work.operation {
            Operation::Write { address, key, .. } => {
                (address, key, work.length(), Access::REMOTE_WRITE)
            }
            Operation::Read { address, key } => (address, key, work.length(), Access::REMOTE_READ),
            Operation::CompareSwap { address, key, .. }
            | Operation::FetchAdd { address, key, .. } => {
                if address % 8 != 0 {
                    let status = WorkStatus::RemoteInvalidRequest;
                    return Started::FailedAtPeer(status, Cause::Misaligned);
                }
                if work.parts.total() != 8 {
                    return Started::Failed(WorkStatus::LocalLength, Cause::TooLong);
                }
                (address, key, 8, Access::REMOTE_ATOMIC)
            }
            _ => return Started::Later,
        };
        let fetches = work.fetches();
        if fetches && qp.sends.fetching >= u32::from(qp.attributes.reads.max(1)) {
            return Started::Later;
        }
        let Some(remote) = qp.keys.get(key) else {
            let mut head = Head::new(Opcode::Resolve, qp.attributes.peer, number);
            head.word = key;
            return match peers.send(function, peer, &head, View::empty()) {
                Ok(()) => {
                    step("rdma-asked");
                    qp.asked = Some(key);
                    Started::Later
                }
                Err(error) => refused(&error),
            };
        };
        let offset = match remote.offset(address, length, needs) {
            Ok(offset) => offset,
            Err(cause) => return Started::FailedAtPeer(WorkStatus::RemoteAccess, cause),
        };
        let RemoteMemory { key: remote, .. } = remote;
        let context = Context::Work(number, serial).emit();
        let slice: RemoteSlice = remote.slice(offset, length);
        let pair = match peers.pair(function, peer) {
            Ok(pair) => pair,
            Err(error) => return refused(&error),
        };
        if length <= SHORT_BYTES as u64
            && let Operation::Write { immediate: None, .. } = work.operation
        {
            let mut bytes = [0; SHORT_BYTES];
            let bytes = &mut bytes[..length as usize];
            let copied = match (work.inline, &work.parts) {
                (Some(length), _) => {
                    bytes.copy_from_slice(qp.sends.inline(serial, length));
                    true
                }
                (None, Parts::One(part)) => match memory.view(domain, part, false) {
                    Ok(view) => {
                        view.read(0, bytes);
                        true
                    }
                    Err(cause) => return failed_list(cause),
                },
                _ => false,
            };
            if copied && function.put_at_once(pair, bytes, &slice) {
                qp.heard = true;
                return self.nothing_to_do(number, serial);
            }
        }
        let posted = match work.operation {
            Operation::Write { .. } if work.inline.is_some() => {
                let bytes = qp.sends.inline(serial, length as u32);
                let put = Put::inline(bytes, slice).context(context);
                function.post_put(pair, put).map_err(|refused| refused.error)
            }
            Operation::Write { .. } => match chain(memory, domain, work.parts.as_slice(), false) {
                Ok(chain) => {
                    let put = Put::new(chain, slice).context(context);
                    function.post_put(pair, put).map_err(|refused| refused.error)
                }
                Err(cause) => return failed_list(cause),
            },
            Operation::Read { .. } => match chain(memory, domain, work.parts.as_slice(), true) {
                Ok(chain) => {
                    let get = Get::new(slice, chain).context(context);
                    function.post_get(pair, get).map_err(|refused| refused.error)
                }
                Err(cause) => return failed_list(cause),
            },
            operation => {
                if let Err(cause) = check(memory, domain, work.parts.as_slice()) {
                    return failed_list(cause);
                }
                let atomic = atomic(operation, remote.at(offset)).context(context);
                function.post_atomic(pair, atomic).map_err(|refused| refused.error)
            }
        };
        if let Err(error) = posted {
            return refused(&error);
        }
        step("rdma-accesses");
        qp.sends.fetching += u32::from(fetches);
        if let Some(work) = qp.sends.get_mut(serial) {
            work.stage = Stage::InDevice;
            qp.writing = matches!(work.operation, Operation::Write { immediate: Some(_), .. });
        }
        Started::InDevice
    }

    /// The device has executed a write, a read or an atomic.
    fn executed(&mut self, number: u32, serial: u32, done: &Completion) {
        let State { qps, memory, .. } = self;
        let Some(qp) = qps.get_mut(number) else { return };
        let domain = qp.options.domain;
        let Some(work) = qp.sends.get_mut(serial) else { return };
        match work.stage {
            Stage::InDevice => {}
            Stage::Ending(status, cause) => {
                work.stage = Stage::Done(status, cause);
                qp.sends.fetching -= u32::from(work.fetches());
                return self.list(number);
            }
            _ => return,
        }
        let (fetches, writes) = (work.fetches(), matches!(work.operation, Operation::Write { .. }));
        let has_immediate = matches!(work.operation, Operation::Write { immediate: Some(_), .. });
        work.stage = Stage::Done(WorkStatus::Success, Cause::None);
        step("rdma-executed");
        let mut result = (done.status == Status::Success).then_some(());
        if result.is_some() && fetches && !matches!(work.operation, Operation::Read { .. }) {
            let before = done.value().to_ne_bytes();
            result = store(memory, domain, work.parts.as_slice(), &before).ok();
        }
        work.written = writes && has_immediate && result.is_some();
        let again = work.written;
        qp.heard = true;
        qp.sends.fetching -= u32::from(fetches);
        if has_immediate {
            qp.writing = false;
        }
        if again {
            qp.sends.again(serial);
        }
        if result.is_none() {
            let (status, cause) = status_of(done.status);
            if cause == Cause::WrongKey && self.ask_anew(number, serial) {
                return;
            }
            match status {
                WorkStatus::RemoteAccess | WorkStatus::RemoteInvalidRequest => {
                    self.fail_at_peer(number, serial, status, cause);
                }
                _ => self.finish(number, serial, status, cause),
            }
            if status == WorkStatus::RetryExceeded {
                self.retire(number);
                self.lose(done.peer.function_address(), cause);
            }
        }
        self.list(number);
    }

    /// The peer's grant has ended: its region was replaced, or its queue pair is gone. Asks once
    /// more, so that the answer says which. `false`: the answer is no better.
    #[cold]
    fn ask_anew(&mut self, number: u32, serial: u32) -> bool {
        let Some(qp) = self.qps.get_mut(number) else { return false };
        let Some(work) = qp.sends.get_mut(serial) else { return false };
        let Some(key) = work.operation.remote_key() else { return false };
        qp.keys.remove(key);
        if std::mem::replace(&mut work.asked_anew, true) || !qp.state().receives() {
            return false;
        }
        qp.sends.again(serial);
        self.list(number);
        true
    }
}

/// The function that a queue pair number names.
pub(crate) fn function_at(host: Ipv4Addr, number: u32) -> FunctionAddress {
    FunctionAddress { node: u32::from(host), function: (number >> 16) as u8 }
}

fn refused(error: &Error) -> Started {
    match error {
        Error::QueueFull { .. } => Started::NoRoom,
        error => {
            tracing::warn!(%error, "a request was refused by the device");
            Started::Failed(WorkStatus::LocalQueuePairOperation, Cause::Device)
        }
    }
}

fn failed_list(cause: Cause) -> Started {
    let (status, cause) = local(cause);
    Started::Failed(status, cause)
}

/// Joins the parts of a short message.
fn gather<'s>(
    memory: &crate::memory::Memory,
    domain: crate::Domain,
    parts: &[Sge],
    scratch: &'s mut [u8],
) -> Result<View<'s>, Cause> {
    let mut at = 0;
    for part in parts {
        let view = memory.view(domain, part, false)?;
        let place = scratch.get_mut(at..at + view.len()).ok_or(Cause::TooLong)?;
        view.read(0, place);
        at += view.len();
    }
    Ok(View::of(&scratch[..at]))
}

/// The buffers of a list.
fn chain(
    memory: &crate::memory::Memory,
    domain: crate::Domain,
    parts: &[Sge],
    writes: bool,
) -> Result<LocalChain, Cause> {
    let slice = |part: &Sge| {
        let (region, offset) = memory.local(domain, part, writes)?;
        Ok(Buffer::from(region.slice(offset, part.length as usize)))
    };
    if let [part] = parts {
        return Ok(slice(part)?.into());
    }
    let parts = parts.iter().filter(|part| part.length > 0);
    Ok(parts.map(slice).collect::<Result<Vec<Buffer>, Cause>>()?.into())
}

/// Checks that a list can be written.
fn check(
    memory: &crate::memory::Memory,
    domain: crate::Domain,
    parts: &[Sge],
) -> Result<(), Cause> {
    parts.iter().try_for_each(|part| memory.view(domain, part, true).map(drop))
}

/// Copies bytes into a list.
fn store(
    memory: &crate::memory::Memory,
    domain: crate::Domain,
    parts: &[Sge],
    bytes: &[u8],
) -> Result<(), Cause> {
    let mut rest = View::of(bytes);
    for part in parts {
        let place = memory.view(domain, part, true)?;
        let (now, later) = rest.split_at(rest.len().min(place.len()));
        place.copy_from(now);
        rest = later;
    }
    Ok(())
}

fn atomic(operation: Operation, at: RemoteAt) -> Atomic {
    match operation {
        Operation::CompareSwap { expected, new, .. } => Atomic::compare_swap(at, expected, new),
        Operation::FetchAdd { operand, .. } => Atomic::fetch_add(at, operand),
        _ => Atomic::fetch_add(at, 0),
    }
}

/// What a device's status means for the program.
pub(crate) fn cause_of(status: Status) -> Cause {
    match status {
        Status::Success => Cause::None,
        Status::PeerGone => Cause::PeerGone,
        Status::Unreachable => Cause::Unreachable,
        Status::NoSuchQueuePair => Cause::NoQueuePair,
        Status::WrongKey => Cause::WrongKey,
        Status::OutOfBounds => Cause::OutOfBounds,
        Status::NotPermitted => Cause::NotPermitted,
        Status::Misaligned => Cause::Misaligned,
        Status::Truncated => Cause::TooLong,
        Status::Flushed => Cause::Flushed,
        _ => Cause::Protocol,
    }
}

fn status_of(status: Status) -> (WorkStatus, Cause) {
    let cause = cause_of(status);
    let status = match cause {
        Cause::WrongKey | Cause::OutOfBounds | Cause::NotPermitted => WorkStatus::RemoteAccess,
        Cause::Misaligned => WorkStatus::RemoteInvalidRequest,
        Cause::Flushed => WorkStatus::Flushed,
        Cause::None => WorkStatus::LocalProtection,
        Cause::Protocol => WorkStatus::RemoteOperation,
        _ => WorkStatus::RetryExceeded,
    };
    (status, cause)
}

/// The keys of an offer as parts of memory.
pub(crate) fn sources(keys: &[RemoteKey]) -> Vec<RemoteSlice> {
    keys.iter().map(|&key| key.into()).collect()
}

/// The buffers of a receive, as many bytes as a message has.
pub(crate) fn destinations(
    memory: &crate::memory::Memory,
    domain: crate::Domain,
    parts: &[Sge],
    length: u64,
) -> Result<LocalChain, Cause> {
    let mut left = length;
    let mut cut = Vec::with_capacity(parts.len());
    for part in parts {
        let now = left.min(u64::from(part.length));
        if now > 0 {
            cut.push(Sge { length: now as u32, ..*part });
        }
        left -= now;
    }
    chain(memory, domain, &cut, true)
}
