//! Packets that arrive: the side of the receiver, and acknowledgements for the sender.

use crate::completion::{Cause, WorkCompletion, WorkOpcode, WorkStatus, work_flag};
use crate::events::{AsyncEvent, EventKind};
use crate::head::{Head, NO_ANSWER, Opcode, Syndrome, VERSION, Written, flag, other_version};
use crate::initiate::MESSAGE_BYTES;
use crate::list::records;
use crate::memory::{Asker, RemoteMemory, Sge};
use crate::queue_pair::{Arrival, KEPT, Kept, QpState, QueuePair, Service, WINDOW, rnr_delay};
use crate::receive_queue::Receive;
use crate::send_queue::{Parts, is_before};
use crate::state::{State, Todo};
use bellwire::{Address, FunctionAddress, Inbox, RemoteKey};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;
use bellwire_ring::steps::step;
use std::time::{Duration, Instant};

/// Bytes of the global route header before a datagram.
const GRH_BYTES: usize = 40;
/// Parts of an offer.
const OFFERED_PARTS: usize = 64;
/// Pause before a peer that does not receive yet is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Peers of other builds that are named on standard error.
const MOST_STRANGERS: usize = 64;

/// A datagram that has come.
pub(crate) struct Arrived<'a> {
    /// Source and destination of its route header: addresses of nodes, or of a group.
    pub(crate) route: (u32, u32),
    /// The sender's queue pair.
    pub(crate) source: u32,
    /// The key that the queue pair must have.
    pub(crate) key: u32,
    pub(crate) immediate: Option<u32>,
    pub(crate) solicited: bool,
    pub(crate) body: View<'a>,
}

impl Inbox for State {
    #[inline]
    fn message(
        &mut self,
        _: bellwire::QueuePair,
        from: Address,
        _: Option<u64>,
        bytes: View<'_>,
    ) -> bool {
        self.packet(from.function_address(), bytes);
        true
    }
}

impl State {
    /// Takes a packet. What is no packet is dropped.
    #[inline]
    pub(crate) fn packet(&mut self, from: FunctionAddress, bytes: View<'_>) {
        self.packets += 1;
        let Some((head, body)) = Head::split(bytes) else { return self.no_packet(from, bytes) };
        step("rdma-arrived");
        match head.opcode {
            Opcode::Send => self.on_send(from, &head, body),
            Opcode::List => self.on_list(from, head, body),
            Opcode::Offer | Opcode::WriteImmediate => self.on_message(from, &head, body),
            Opcode::Datagram => self.on_datagram(from, &head, body),
            Opcode::Resolve => self.todo.push_back(Todo::Resolve(from, head)),
            _ => self.on_answer(from, &head, body),
        }
    }

    /// What is no packet is dropped. A peer of another build is told, by a packet that changes
    /// nothing in any version, and loses its connections.
    #[cold]
    fn no_packet(&mut self, from: FunctionAddress, bytes: View<'_>) {
        let Some((version, number)) = other_version(bytes) else { return };
        if number != NO_ANSWER {
            let head = Head::new(Opcode::Leave, 0, 0);
            self.peers.answer(from, head, Vec::new());
        }
        if self.strangers.len() < MOST_STRANGERS && self.strangers.insert((from, version)) {
            let host = std::net::Ipv4Addr::from(from.node);
            eprintln!(
                "bellwire: the peer at {host} is of another build of Bellwire: its messages have \
                 version {version}, and {VERSION} is known here. Install one build at both sides"
            );
        }
        self.refuse_build(from);
    }

    /// The queue pair that is connected to the sender of a packet.
    #[inline]
    pub(crate) fn is_connected(&self, from: FunctionAddress, head: &Head) -> bool {
        self.qps.get(head.to).is_some_and(|qp| {
            (qp.peer == Some(from) || planted("any-function"))
                && (qp.attributes.peer == head.from || planted("any-queue-pair"))
                && (qp.state().receives() || planted("any-state"))
        })
    }

    fn refuse(&mut self, to: FunctionAddress, head: &Head, syndrome: Syndrome) {
        let mut answer = Head::new(Opcode::Nak, head.from, head.to);
        (answer.psn, answer.syndrome) = (head.psn, Some(syndrome));
        if let Some(qp) = self.qps.get(head.to).filter(|qp| qp.peer == Some(to)) {
            answer.flags = flag::ACKS;
            answer.acked = qp.delivered;
            answer.extra = u64::from(qp.expected);
        }
        self.peers.answer(to, answer, Vec::new());
    }

    // Messages of connections.

    #[inline]
    fn on_send(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) {
        if !self.meets_receive(from, head, body) {
            self.on_message(from, head, body);
        }
    }

    /// The messages of a list, as if each had come alone.
    fn on_list(&mut self, from: FunctionAddress, mut head: Head, list: View<'_>) {
        head.opcode = Opcode::Send;
        let own = head.flags & (flag::ACKS | flag::PATIENT | flag::ASKS);
        for record in records(list) {
            (head.flags, head.word) = (own | record.flags, record.word);
            self.on_send(from, &head, record.body);
            head.psn = head.psn.wrapping_add(1);
        }
    }

    /// The fast path: a message goes straight into a receive of one part. `false`: this path does
    /// not apply; what it acknowledges may have been taken.
    #[inline(always)]
    fn meets_receive(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) -> bool {
        let Some(qp) = self.qps.get_mut(head.to) else { return false };
        if !qp.is_next(from, head) || head.has(flag::INVALIDATE) {
            return false;
        }
        if head.has(flag::ACKS) && qp.sends.awaits(head.acked) {
            self.acknowledged(head.to, head);
        }
        let State { qps, memory, queues, .. } = self;
        let Some(qp) = qps.get_mut(head.to) else { return false };
        let Some(Receive { id, parts: Parts::One(part) }) = qp.receives.front() else {
            return false;
        };
        let (length, queue) = (body.len(), qp.options.receive_queue);
        let filled = Sge { length: length as u32, ..*part };
        let Some(ring) = queues.get_mut(queue.0).filter(|ring| ring.has_room()) else {
            return false;
        };
        if length > part.length as usize {
            return false;
        }
        let Ok(place) = memory.view(qp.options.domain, &filled, true) else { return false };
        place.copy_from(body);
        let done = completion(*id, head.to, head, length as u32, WorkOpcode::Receive);
        qp.receives.drop_front();
        step("rdma-received");
        ring.push(done, head.has(flag::SOLICITED));
        (qp.heard, qp.refused) = (true, None);
        qp.expected = qp.expected.wrapping_add(1);
        qp.delivered = qp.delivered.wrapping_add(1);
        self.owe(head.to, head.has(flag::ASKS));
        true
    }

    #[inline(never)]
    fn on_message(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) {
        if !self.is_connected(from, head) {
            return self.refuse(from, head, Syndrome::NoQueuePair);
        }
        let number = head.to;
        self.acknowledged(number, head);
        let Some(qp) = self.qps.get_mut(number) else { return };
        if head.psn != qp.expected && !planted("any-number") {
            return self.on_wrong_number(from, head);
        }
        if !qp.established {
            qp.established = true;
            if qp.state() == QpState::ReadyToReceive {
                let (kind, object) = (EventKind::CommunicationEstablished, qp.options.object);
                self.events.push(AsyncEvent { kind, object });
            }
        }
        let Some(qp) = self.qps.get_mut(number) else { return };
        let simple = head.opcode == Opcode::Send && !head.has(flag::INVALIDATE);
        if simple
            && qp.arrivals.is_empty()
            && let Some(receive) = self.take_receive(number)
        {
            if let Some(qp) = self.qps.get_mut(number) {
                qp.expected = qp.expected.wrapping_add(1);
                qp.refused = None;
            }
            return match self.fill(number, &receive, head, body) {
                Ok(completion) => self.report(number, completion, head.has(flag::SOLICITED)),
                Err(failure) => self.fail_receive(number, receive.id, head.psn, failure),
            };
        }
        self.keep(from, head, body);
    }

    /// A message that was seen already, or one after a message that was refused.
    #[cold]
    fn on_wrong_number(&mut self, from: FunctionAddress, head: &Head) {
        let Some(qp) = self.qps.get_mut(head.to) else { return };
        if is_before(head.psn, qp.expected) {
            self.acknowledge_now(head.to, false);
        } else if qp.refused.is_none_or(|refused| !is_before(refused, head.psn)) {
            qp.refused = Some(head.psn);
            self.refuse(from, head, Syndrome::Sequence);
        }
    }

    /// Keeps a message that cannot be delivered at once, or refuses it.
    #[cold]
    fn keep(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) {
        let number = head.to;
        let Some(qp) = self.qps.get(number) else { return };
        let has_receive = self.posted_receives(qp) > qp.unmatched();
        // With a receive for each, as many wait as a proper peer sends ahead.
        // The canary's bound is so small that it shows even if the first is fetched quickly.
        let bound = match has_receive {
            _ if planted("keeps-few") => 2,
            true => WINDOW as usize,
            false => KEPT,
        };
        let full = qp.arrivals.len() >= bound && !planted("keeps-all");
        let unreliable = qp.options.service == Service::UnreliableConnection;
        let (code, delivered_now) = (qp.attributes.rnr_timer, qp.arrivals.is_empty());
        if unreliable && !has_receive {
            // UC drops what finds no receive, and its sender does not learn of it.
            let Some(qp) = self.qps.get_mut(number) else { return };
            qp.expected = qp.expected.wrapping_add(1);
            if delivered_now {
                self.delivered(number);
            } else if let Some(qp) = self.qps.get_mut(number) {
                qp.dropped += 1;
            }
            return;
        }
        if full || !(has_receive || head.has(flag::PATIENT)) {
            let Some(qp) = self.qps.get_mut(number) else { return };
            // Each attempt gets an answer; messages behind it get none.
            qp.refused = Some(head.psn);
            let code = if planted("rnr-code") { 0 } else { code };
            return self.refuse(from, head, Syndrome::NotReady(code));
        }
        let kept = match head.opcode {
            Opcode::Send => Kept::Message(*head, body.to_vec()),
            Opcode::WriteImmediate => match self.written(number, head, body) {
                Ok(()) => Kept::WriteImmediate(*head),
                Err(syndrome) => {
                    self.refuse(from, head, syndrome);
                    return self.fail_with_event(number, EventKind::QueuePairAccessError);
                }
            },
            _ => match offered(body, from) {
                Some(keys) => Kept::Offer(*head, keys),
                // No proper peer sends this.
                None => return self.refuse(from, head, Syndrome::InvalidRequest),
            },
        };
        let Some(qp) = self.qps.get_mut(number) else { return };
        qp.expected = qp.expected.wrapping_add(1);
        qp.refused = None;
        qp.arrivals.push_back(Arrival::Unmatched(kept));
        self.todo.push_back(Todo::Arrivals(number));
    }

    /// Checks the place and the length of a write with immediate value, which the receiver's
    /// completion repeats: the peer may write there.
    fn written(&mut self, number: u32, head: &Head, body: View<'_>) -> Result<(), Syndrome> {
        let Some(asker) = self.asker(number) else { return Err(Syndrome::NoQueuePair) };
        let length = head.extra;
        // Where nothing is written, no key is looked at.
        if length == 0 || planted("immediate-unbounded") {
            return Ok(());
        }
        let written = (body.len() == Written::BYTES).then(|| Written::parse(&body.to_vec()));
        let Some(Written { key, address }) = written.flatten() else {
            return Err(Syndrome::InvalidRequest);
        };
        if length > MESSAGE_BYTES {
            return Err(Syndrome::InvalidRequest);
        }
        self.memory.check_write(&asker, (key, address, length)).map_err(|_| Syndrome::Access)
    }

    /// A queue pair with a peer, as one that asks for memory.
    pub(crate) fn asker(&self, number: u32) -> Option<Asker> {
        let qp = self.qps.get(number)?;
        let (domain, allowed) = (qp.options.domain, qp.attributes.access);
        Some(Asker { queue_pair: number, peer: qp.peer?, domain, allowed })
    }

    /// Copies a message into a receive.
    #[inline]
    pub(crate) fn fill(
        &self,
        number: u32,
        receive: &Receive,
        head: &Head,
        body: View<'_>,
    ) -> Result<WorkCompletion, (WorkStatus, Cause)> {
        let qp = self.qps.get(number).ok_or((WorkStatus::Flushed, Cause::Flushed))?;
        let length = body.len();
        if length as u64 > receive.parts.total() && !planted("longer-than-receive") {
            return Err((WorkStatus::LocalLength, Cause::TooLong));
        }
        self.scatter(self.receive_domain(qp), receive, body)?;
        Ok(completion(receive.id, number, head, length as u32, WorkOpcode::Receive))
    }

    /// The domain of a queue pair's receives.
    #[inline]
    pub(crate) fn receive_domain(&self, qp: &QueuePair) -> crate::Domain {
        let shared = qp.options.shared.and_then(|shared| self.shared.get(shared.0));
        shared.map_or(qp.options.domain, |shared| shared.domain)
    }

    #[inline]
    fn scatter(
        &self,
        domain: crate::Domain,
        receive: &Receive,
        mut body: View<'_>,
    ) -> Result<(), (WorkStatus, Cause)> {
        // As with cards, parts that get no bytes need no memory.
        for part in receive.parts.as_slice() {
            let (now, rest) = body.split_at(body.len().min(part.length as usize));
            let filled = Sge { length: now.len() as u32, ..*part };
            self.memory.view(domain, &filled, true).map_err(local)?.copy_from(now);
            body = rest;
            if body.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Writes the completion of a message.
    #[inline]
    pub(crate) fn report(&mut self, number: u32, completion: WorkCompletion, solicited: bool) {
        let Some(qp) = self.qps.get(number) else { return };
        let queue = qp.options.receive_queue;
        step("rdma-received");
        self.complete(queue, completion, solicited);
        self.delivered(number);
    }

    /// A message could not be put into its receive: both sides fail.
    #[cold]
    pub(crate) fn fail_receive(
        &mut self,
        number: u32,
        id: u64,
        psn: u32,
        (status, cause): (WorkStatus, Cause),
    ) {
        let Some(qp) = self.qps.get(number) else { return };
        let (queue, peer) = (qp.options.receive_queue, qp.peer);
        let to = qp.attributes.peer;
        let mut completion = WorkCompletion::new(id, status, WorkOpcode::Receive, number);
        completion.cause = cause;
        self.complete(queue, completion, true);
        if let Some(peer) = peer {
            let syndrome = match status {
                WorkStatus::LocalLength => Syndrome::InvalidRequest,
                WorkStatus::LocalAccess => Syndrome::Access,
                _ => Syndrome::Operation,
            };
            let mut answer = Head::new(Opcode::Nak, to, number);
            (answer.psn, answer.syndrome) = (psn, Some(syndrome));
            self.peers.answer(peer, answer, Vec::new());
        }
        self.fail(number);
    }

    // Datagrams.

    fn on_datagram(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) {
        if head.from >> 16 != u32::from(from.function) && !planted("datagram-source") {
            return;
        }
        let route = (from.node, self.address.node);
        let (source, key, solicited) = (head.from, head.word, head.has(flag::SOLICITED));
        let immediate = head.has(flag::IMMEDIATE).then_some(head.acked);
        let datagram = Arrived { route, source, key, immediate, solicited, body };
        self.deliver_datagram(head.to, &datagram);
    }

    /// Gives a datagram to a queue pair. What nobody waits for is dropped.
    pub(crate) fn deliver_datagram(&mut self, number: u32, datagram: &Arrived<'_>) {
        let Some(qp) = self.qps.get(number) else { return };
        let is_datagrams = qp.options.service == Service::Datagram || planted("datagram-service");
        let receives = qp.state().receives() || planted("datagram-state");
        let has_key = qp.attributes.qkey == datagram.key || planted("datagram-key");
        if !(is_datagrams && receives && has_key) {
            return;
        }
        let (domain, queue) = (self.receive_domain(qp), qp.options.receive_queue);
        let Some(receive) = self.take_receive(number) else { return };
        let (body, (from, to)) = (datagram.body, datagram.route);
        let length = GRH_BYTES + body.len();
        let filled = if length as u64 > receive.parts.total() {
            Err((WorkStatus::LocalLength, Cause::TooLong))
        } else {
            let mut bytes = Vec::with_capacity(length);
            bytes.extend(route_header(from, to, body.len()));
            bytes.resize(length, 0);
            body.read(0, &mut bytes[GRH_BYTES..]);
            self.scatter(domain, &receive, View::of(&bytes))
        };
        let mut done =
            WorkCompletion::new(receive.id, WorkStatus::Success, WorkOpcode::Receive, number);
        match filled {
            Ok(()) => {
                (done.length, done.source) = (length as u32, datagram.source);
                done.flags = work_flag::GRH;
                if let Some(value) = datagram.immediate {
                    done.flags |= work_flag::IMMEDIATE;
                    done.word = value;
                }
                self.complete(queue, done, datagram.solicited);
            }
            Err((status, cause)) => {
                (done.status, done.cause) = (status, cause);
                self.complete(queue, done, true);
                self.fail(number);
            }
        }
    }

    // Answers.

    /// Takes the acknowledgement that a packet carries.
    #[inline]
    fn acknowledged(&mut self, number: u32, head: &Head) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        qp.heard = true;
        if !head.has(flag::ACKS) || qp.sends.unacknowledged == 0 {
            return;
        }
        let before = qp.sends.unacknowledged;
        if is_before(qp.sends.psn, head.acked) && !planted("acks-unsent") {
            // What was not sent cannot have arrived: the two sides count differently.
            if let Some(oldest) = qp.sends.oldest_sent() {
                qp.sends.rewind(oldest);
                self.trouble(number, Cause::Sequence);
            }
            return;
        }
        qp.sends.acknowledge(head.acked);
        if qp.sends.unacknowledged != before {
            (qp.trouble_since, qp.rnr_naks) = (None, 0);
            self.retire(number);
            let waits = |qp: &mut QueuePair| qp.sends.has_waiting() || !qp.leftovers.is_empty();
            if self.qps.get_mut(number).is_some_and(waits) {
                self.list(number);
            }
        }
    }

    fn on_answer(&mut self, from: FunctionAddress, head: &Head, body: View<'_>) {
        let number = head.to;
        if !self.is_connected(from, head) {
            if head.opcode == Opcode::Probe {
                self.refuse(from, head, Syndrome::NoQueuePair);
            }
            return;
        }
        self.acknowledged(number, head);
        match (head.opcode, head.syndrome) {
            (Opcode::Ack, _) => {
                let Some(qp) = self.qps.get_mut(number) else { return };
                qp.sends.promise(head.word);
                // The peer expects what was sent long ago: it was refused, and the refusal is
                // outdated.
                if head.extra == 1 && qp.hold_until.is_none() && qp.sends.sent(head.psn).is_some() {
                    qp.sends.rewind(head.psn);
                    self.list(number);
                }
            }
            (Opcode::Probe, _) => self.acknowledge_now(number, true),
            (Opcode::Leave, _) => {
                let Some(qp) = self.qps.get_mut(number) else { return };
                qp.peer_left = true;
            }
            (Opcode::Nak, Some(syndrome)) => self.on_refusal(number, head, syndrome),
            (Opcode::Resolved, syndrome) => self.on_resolved(number, head, syndrome, body),
            (Opcode::Fatal, syndrome) => {
                let kind = match syndrome {
                    Some(Syndrome::Access) => EventKind::QueuePairAccessError,
                    _ => EventKind::QueuePairRequestError,
                };
                self.fail_with_event(number, kind);
            }
            _ => {}
        }
    }

    /// The peer did not take a message.
    fn on_refusal(&mut self, number: u32, head: &Head, syndrome: Syndrome) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        let reliable = qp.is_reliable();
        let serial = qp.sends.sent(head.psn);
        match syndrome {
            Syndrome::NotReady(code) => {
                let Some(serial) = serial else { return };
                qp.rnr_naks += 1;
                let limit = u32::from(qp.attributes.rnr_retry);
                let limit = limit + u32::from(planted("rnr-once-more"));
                if (limit != 7 || planted("rnr-seven-ends")) && qp.rnr_naks > limit {
                    let status = WorkStatus::NotReadyRetryExceeded;
                    return self.finish(number, serial, status, Cause::NoReceive);
                }
                qp.sends.rewind(head.psn);
                let delay = if planted("rnr-at-once") { Duration::ZERO } else { rnr_delay(code) };
                self.hold(number, Instant::now() + delay);
            }
            Syndrome::NoQueuePair => {
                let Some(serial) = serial else { return };
                if !reliable {
                    return self.finish(number, serial, WorkStatus::Success, Cause::None);
                }
                qp.sends.rewind(head.psn);
                self.trouble(number, Cause::NoQueuePair);
            }
            Syndrome::Sequence => {
                let expected = head.extra as u32;
                if qp.sends.sent(expected).is_some() {
                    qp.sends.rewind(expected);
                    self.list(number);
                } else if let Some(oldest) = qp.sends.oldest_sent() {
                    // The two sides count differently, and will not agree.
                    if !reliable {
                        let next = qp.sends.psn;
                        qp.sends.acknowledge(next);
                        return self.list(number);
                    }
                    qp.sends.rewind(oldest);
                    self.trouble(number, Cause::Sequence);
                }
            }
            Syndrome::InvalidRequest | Syndrome::Operation | Syndrome::Access => {
                let (status, cause) = match syndrome {
                    Syndrome::InvalidRequest => (WorkStatus::RemoteInvalidRequest, Cause::TooLong),
                    Syndrome::Operation => (WorkStatus::RemoteOperation, Cause::PeerFailed),
                    _ => (WorkStatus::RemoteAccess, Cause::WrongKey),
                };
                let Some(serial) = serial else { return };
                // Messages before the refused one arrived.
                qp.sends.acknowledge(head.psn);
                self.finish(number, serial, status, cause);
            }
        }
    }

    /// The peer does not answer as it should. Tries again until the queue pair's patience is over.
    pub(crate) fn trouble(&mut self, number: u32, cause: Cause) {
        let now = Instant::now();
        let Some(qp) = self.qps.get_mut(number) else { return };
        let since = *qp.trouble_since.get_or_insert(now);
        match qp.attributes.patience() {
            Some(patience) if now.saturating_duration_since(since) > patience => {
                self.give_up(number, cause);
            }
            _ => self.hold(number, now + TRY_AGAIN),
        }
    }

    /// The owner's answer about a key.
    fn on_resolved(
        &mut self,
        number: u32,
        head: &Head,
        syndrome: Option<Syndrome>,
        body: View<'_>,
    ) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        if qp.asked != Some(head.word) && !planted("unasked-answer") {
            return;
        }
        qp.asked = None;
        let owner = qp.peer;
        let known = match syndrome {
            None if body.len() == RemoteMemory::BYTES => RemoteMemory::parse(&body.to_vec()),
            _ => None,
        };
        // A peer names its own memory only.
        let is_own = |known: &RemoteMemory| Some(known.key.owner()) == owner;
        let known = known.filter(|known| is_own(known) || planted("foreign-answer"));
        match (known, syndrome) {
            (Some(known), _) => {
                qp.keys.insert(head.word, known);
                qp.trouble_since = None;
                self.list(number);
            }
            (None, Some(Syndrome::NoQueuePair)) => self.trouble(number, Cause::NoQueuePair),
            (None, _) => {
                let (status, cause) = match (syndrome, head.extra) {
                    (Some(Syndrome::Operation), _) => {
                        (WorkStatus::RemoteOperation, Cause::PeerFailed)
                    }
                    (_, 1) => (WorkStatus::RemoteAccess, Cause::NotPermitted),
                    _ => (WorkStatus::RemoteAccess, Cause::WrongKey),
                };
                if let Some(serial) = qp.sends.next_waiting() {
                    self.fail_at_peer(number, serial, status, cause);
                }
            }
        }
    }

    /// A request has failed at the peer, whose queue pair must fail as well.
    pub(crate) fn fail_at_peer(
        &mut self,
        number: u32,
        serial: u32,
        status: WorkStatus,
        cause: Cause,
    ) {
        let Some(qp) = self.qps.get(number) else { return };
        if let Some(peer) = qp.peer.filter(|_| qp.is_reliable()) {
            let mut head = Head::new(Opcode::Fatal, qp.attributes.peer, number);
            head.syndrome = Some(match status {
                WorkStatus::RemoteAccess => Syndrome::Access,
                _ => Syndrome::InvalidRequest,
            });
            self.peers.answer(peer, head, Vec::new());
        }
        self.finish(number, serial, status, cause);
    }
}

/// The completion of a message.
#[inline(always)]
pub(crate) fn completion(
    id: u64,
    number: u32,
    head: &Head,
    length: u32,
    opcode: WorkOpcode,
) -> WorkCompletion {
    let mut done = WorkCompletion::new(id, WorkStatus::Success, opcode, number);
    (done.length, done.source) = (length, head.from);
    if head.has(flag::IMMEDIATE) {
        (done.word, done.flags) = (head.word, work_flag::IMMEDIATE);
    } else if head.has(flag::INVALIDATE) {
        (done.word, done.flags) = (head.word, work_flag::INVALIDATED);
    }
    done
}

/// The status of a local list that cannot be used.
pub(crate) fn local(cause: Cause) -> (WorkStatus, Cause) {
    (WorkStatus::LocalProtection, cause)
}

/// The parts of an offer; `None`: not an offer of this peer.
fn offered(body: View<'_>, from: FunctionAddress) -> Option<Vec<RemoteKey>> {
    let bytes = body.to_vec();
    let (keys, rest) = bytes.as_chunks::<{ RemoteKey::BYTES }>();
    let is_list = rest.is_empty() && !keys.is_empty() || planted("offer-cut");
    let is_short = keys.len() <= OFFERED_PARTS || planted("offer-many");
    if !is_list || !is_short {
        return None;
    }
    let is_own = |key: &RemoteKey| key.owner() == from || planted("offer-foreign");
    keys.iter().map(|key| RemoteKey::from_bytes(key).filter(is_own)).collect()
}

/// The global route header that a datagram over IPv4 has: 20 unused bytes, then an IPv4 header.
fn route_header(from: u32, to: u32, length: usize) -> [u8; GRH_BYTES] {
    let mut header = [0; GRH_BYTES];
    let ip = &mut header[20..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((20 + length) as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&from.to_be_bytes());
    ip[16..20].copy_from_slice(&to.to_be_bytes());
    header
}
