//! Arrivals that need the function: fetches, invalidations, and answers about keys.

use crate::adapter::Adapter;
use crate::arrive::{completion, local};
use crate::completion::{Cause, WorkCompletion, WorkOpcode, WorkStatus};
use crate::head::{Head, Opcode, Syndrome, flag};
use crate::initiate::{Context, destinations, sources};
use crate::queue_pair::{Arrival, Kept};
use crate::receive_queue::Receive;
use crate::state::{State, Todo};
use bellwire::{Error, Function, FunctionAddress, Get, RemoteKey, Status};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;
use bellwire_ring::steps::step;

/// What became of a match.
enum Match {
    /// The arrival has its receive.
    Arrival(Arrival),
    /// The device has no room; the receive was not used.
    NoRoom(Kept, Receive),
    /// The receive cannot be used.
    Failed(u64, u32, (WorkStatus, Cause)),
}

impl Adapter {
    /// Does what waited for the poll to return.
    pub(crate) fn do_todo(&mut self) -> usize {
        let count = self.state.todo.len();
        for _ in 0..count {
            match self.state.todo.pop_front() {
                Some(Todo::Arrivals(number)) => self.match_arrivals(number),
                Some(Todo::Resolve(peer, head)) => self.resolve(peer, &head),
                Some(Todo::Forget(peer)) => {
                    self.state.peers.forget(&mut self.function, peer);
                    self.take_results();
                }
                Some(Todo::Overrun(queue)) => self.state.overrun(queue),
                Some(Todo::Revoke(number, keys)) => {
                    self.state.memory.revoke(&mut self.function, number, &keys);
                }
                None => break,
            }
        }
        count
    }

    /// Gives receives to the arrivals of a queue pair, in order, and reports complete ones.
    pub(crate) fn match_arrivals(&mut self, number: u32) {
        let Adapter { function, state, .. } = self;
        let mut place = 0;
        loop {
            let Some(qp) = state.qps.get_mut(number) else { return };
            if !qp.state().receives() {
                return;
            }
            match qp.arrivals.get(place) {
                None => break,
                Some(Arrival::Unmatched(_)) => {}
                Some(_) => {
                    place += 1;
                    continue;
                }
            }
            let Some(receive) = state.take_receive(number) else { break };
            let Some(qp) = state.qps.get_mut(number) else { return };
            let Some(slot) = qp.arrivals.get_mut(place) else { return };
            // Any arrival stands in for the one that is being matched.
            let Arrival::Unmatched(kept) = std::mem::replace(slot, nothing(number)) else { return };
            match state.match_one(function, number, kept, receive) {
                Match::Arrival(arrival) => {
                    if let Some(qp) = state.qps.get_mut(number)
                        && let Some(slot) = qp.arrivals.get_mut(place)
                    {
                        *slot = arrival;
                    }
                    place += 1;
                }
                Match::NoRoom(kept, receive) => {
                    let Some(qp) = state.qps.get_mut(number) else { return };
                    if let Some(slot) = qp.arrivals.get_mut(place) {
                        *slot = Arrival::Unmatched(kept);
                    }
                    state.give_back(number, receive);
                    state.todo.push_back(Todo::Arrivals(number));
                    break;
                }
                Match::Failed(id, psn, failure) => {
                    if let Some(qp) = state.qps.get_mut(number) {
                        qp.arrivals.remove(place);
                    }
                    return state.fail_receive(number, id, psn, failure);
                }
            }
        }
        self.take_results();
        self.report_arrivals(number);
    }

    /// Reports the oldest arrivals that are complete.
    fn report_arrivals(&mut self, number: u32) {
        let state = &mut self.state;
        while let Some(qp) = state.qps.get_mut(number) {
            match qp.arrivals.front() {
                Some(&Arrival::Done { completion, solicited }) if qp.state().receives() => {
                    qp.arrivals.pop_front();
                    state.report(number, completion, solicited);
                }
                _ => break,
            }
        }
        if let Some(qp) = state.qps.get_mut(number)
            && qp.arrivals.is_empty()
            && qp.dropped > 0
        {
            for _ in 0..std::mem::take(&mut qp.dropped) {
                state.delivered(number);
            }
        }
    }

    /// A fetch has ended.
    pub(crate) fn fetched(&mut self, number: u32, psn: u32, status: Status) {
        let Adapter { function, state, .. } = self;
        let Some(qp) = state.qps.get_mut(number) else { return };
        let is_it = |arrival: &Arrival| matches!(arrival, Arrival::Fetching { psn: own, .. } if *own == psn);
        let Some(place) = qp.arrivals.iter().position(is_it) else { return };
        let Arrival::Fetching { completion, solicited, inverse, .. } = qp.arrivals[place] else {
            return;
        };
        qp.arrivals[place] = Arrival::Done { completion, solicited };
        if !qp.state().receives() {
            // The queue pair has failed meanwhile.
            return state.flush_receives(number);
        }
        if matches!(status, Status::PeerGone | Status::Unreachable) {
            // All receives are flushed, and this one with them.
            return state.fail(number);
        }
        step("rdma-fetched");
        if status != Status::Success {
            // The failure reports this receive itself, and flushes the others.
            qp.arrivals.remove(place);
            let cause = crate::initiate::cause_of(status);
            let failure = (WorkStatus::RemoteOperation, cause);
            return state.fail_receive(number, completion.id, psn, failure);
        }
        if let Some(key) = inverse {
            let domain = qp.options.domain;
            if let Err(cause) = state.memory.invalidate(function, domain, key) {
                if let Some(qp) = state.qps.get_mut(number) {
                    qp.arrivals.remove(place);
                }
                let failure = (WorkStatus::LocalAccess, cause);
                return state.fail_receive(number, completion.id, psn, failure);
            }
        }
        self.report_arrivals(number);
    }

    /// Answers a peer that asks for the memory of a key.
    fn resolve(&mut self, peer: FunctionAddress, head: &Head) {
        let Adapter { function, state, .. } = self;
        let mut answer = Head::new(Opcode::Resolved, head.from, head.to);
        answer.word = head.word;
        let asker = state.asker(head.to).filter(|_| state.is_connected(peer, head));
        let known = match asker {
            None => Err(Syndrome::NoQueuePair),
            Some(asker) => state.memory.grant(function, &asker, head.word).map_err(|cause| {
                answer.extra = u64::from(cause == Cause::NotPermitted);
                match cause {
                    Cause::Device => Syndrome::Operation,
                    _ => Syndrome::Access,
                }
            }),
        };
        let body = match known {
            Ok(known) => {
                if let Some(qp) = state.qps.get_mut(head.to)
                    && !qp.granted.contains(&head.word)
                {
                    qp.granted.push(head.word);
                }
                step("rdma-granted");
                known.emit()
            }
            Err(syndrome) => {
                answer.syndrome = Some(syndrome);
                Vec::new()
            }
        };
        state.peers.answer(peer, answer, body);
    }
}

impl State {
    fn match_one(
        &mut self,
        function: &mut Function,
        number: u32,
        kept: Kept,
        receive: Receive,
    ) -> Match {
        let (Kept::Message(head, _) | Kept::Offer(head, _) | Kept::WriteImmediate(head)) = &kept;
        let head = *head;
        let failed = |failure| Match::Failed(receive.id, head.psn, failure);
        let solicited = head.has(flag::SOLICITED);
        let done = match &kept {
            Kept::Message(_, bytes) => match self.fill(number, &receive, &head, View::of(bytes)) {
                Ok(completion) => completion,
                Err(failure) => return failed(failure),
            },
            Kept::WriteImmediate(_) => {
                let opcode = WorkOpcode::ReceiveWriteImmediate;
                completion(receive.id, number, &head, head.extra as u32, opcode)
            }
            Kept::Offer(_, keys) => {
                return match self.fetch(function, number, &head, keys, &receive) {
                    Ok(Some(arrival)) => Match::Arrival(arrival),
                    Ok(None) => Match::NoRoom(kept, receive),
                    Err(failure) => failed(failure),
                };
            }
        };
        if head.has(flag::INVALIDATE) {
            let domain = self.qps.get(number).map(|qp| qp.options.domain);
            let ended = domain.map(|domain| self.memory.invalidate(function, domain, head.word));
            if let Some(Err(cause)) = ended {
                return failed((WorkStatus::LocalAccess, cause));
            }
        }
        Match::Arrival(Arrival::Done { completion: done, solicited })
    }

    /// Fetches an offered message into its receive. `None`: the device has no room.
    fn fetch(
        &mut self,
        function: &mut Function,
        number: u32,
        head: &Head,
        keys: &[RemoteKey],
        receive: &Receive,
    ) -> Result<Option<Arrival>, (WorkStatus, Cause)> {
        let gone = (WorkStatus::Flushed, Cause::Flushed);
        let qp = self.qps.get(number).ok_or(gone)?;
        let peer = qp.peer.ok_or(gone)?;
        let length = keys.iter().try_fold(0u64, |sum, key| {
            let wrapped = planted("offer-wraps").then_some(sum.wrapping_add(key.length));
            wrapped.or(sum.checked_add(key.length))
        });
        let fits = |length: &u64| *length <= receive.parts.total() || planted("offer-longer");
        let length = length.filter(fits);
        let length = length.ok_or((WorkStatus::LocalLength, Cause::TooLong))?;
        let (domain, parts) = (self.receive_domain(qp), receive.parts.as_slice());
        let places = destinations(&self.memory, domain, parts, length).map_err(local)?;
        let pair = match self.peers.fetch_pair(function, peer) {
            Ok(pair) => pair,
            Err(_) => return Err((WorkStatus::LocalQueuePairOperation, Cause::Device)),
        };
        let context = Context::Fetch(number, head.psn).emit();
        step("rdma-fetches");
        let get = Get::new(sources(keys), places).context(context);
        match function.post_get(pair, get).map_err(|refused| refused.error) {
            Ok(()) => {}
            Err(Error::QueueFull { .. }) => return Ok(None),
            Err(_) => return Err((WorkStatus::LocalQueuePairOperation, Cause::Device)),
        }
        Ok(Some(Arrival::Fetching {
            psn: head.psn,
            completion: completion(receive.id, number, head, length as u32, WorkOpcode::Receive),
            solicited: head.has(flag::SOLICITED),
            inverse: head.has(flag::INVALIDATE).then_some(head.word),
        }))
    }

    /// Puts back a receive that was not used.
    fn give_back(&mut self, number: u32, receive: Receive) {
        let Some(qp) = self.qps.get_mut(number) else { return };
        match qp.options.shared.and_then(|shared| self.shared.get_mut(shared.0)) {
            Some(shared) => shared.queue.unpop(receive),
            None => qp.receives.unpop(receive),
        }
    }
}

fn nothing(number: u32) -> Arrival {
    let completion = WorkCompletion::new(0, WorkStatus::Flushed, WorkOpcode::Receive, number);
    Arrival::Fetching { psn: u32::MAX, completion, solicited: false, inverse: None }
}
