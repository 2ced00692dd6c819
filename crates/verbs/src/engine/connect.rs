//! Connections (VIA, M-03): a request and an answer, each one control message with private data.

use super::Core;
use super::outbox::Reply;
use super::payload::{REJECT_BUSY, REJECT_BY_PROGRAM, REJECT_NOBODY};
use super::queue_pair::QueuePairContext;
use super::receive::Packet;
use super::routing::Route;
use super::work::{Attempt, Posted, Work};
use crate::{ConnectionProgress, ConnectionRequest, Listener};
use bellwire_device::{
    Address, Error, FunctionAddress, Kind, LinkId, PacketHeader, QueuePair, Result, SendError,
    Transport, Verdict,
};
use bellwire_ring::memory::View;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most requests that wait at one listener. The peer of a further one asks again later.
const REQUESTS: usize = 64;
/// Delay before a request is sent again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// A listener, and the requests that wait for its answer.
pub(crate) struct Listening {
    number: u32,
    generation: u32,
    pub(crate) requests: VecDeque<ConnectionRequest>,
}

/// A queue pair's request for a connection.
pub(crate) struct ConnectAttempt {
    pub(crate) to: Address,
    private_data: Box<[u8]>,
    request: u64,
    link: Option<LinkId>,
    started: Instant,
    timeout: Duration,
    ask_again: Again,
    tried: &'static str,
    outcome: Option<Answer>,
}

/// The answer to an accepted request.
pub(crate) struct Acceptance {
    header: PacketHeader,
    private_data: Box<[u8]>,
}

/// Whether to send the request again.
#[derive(Clone, Copy)]
enum Again {
    /// No: an answer is due.
    No,
    /// After [`ASK_AGAIN`], counted from the next look at the clock.
    Later,
    At(Instant),
}

enum Answer {
    Accepted(Vec<u8>),
    Rejected(Vec<u8>),
    Nobody,
}

impl ConnectAttempt {
    /// The request's link is gone: the request must be sent again.
    pub(crate) fn lose(&mut self, link: LinkId) {
        if self.link == Some(link) && self.outcome.is_none() {
            self.link = None;
            self.ask_again = Again::Later;
            self.tried = "no process answered at that node and function";
        }
    }
}

// The requesting side.
impl Core {
    /// Asks for a connection.
    pub(crate) fn start_connect(
        &mut self,
        transport: &mut dyn Transport,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<()> {
        self.check_connectable("connecting", queue_pair, private_data)?;
        let link = match self.links.to(to.function_address()) {
            Some(link) => link,
            None => self.open_link(transport, to.function_address(), timeout)?,
        };
        let slot = queue_pair.slot;
        self.requests += 1;
        self.queue_pairs[slot].connect_attempt = Some(Box::new(ConnectAttempt {
            to,
            private_data: private_data.into(),
            request: self.requests,
            link: Some(link),
            started: transport.now(),
            timeout,
            ask_again: Again::No,
            tried: "a request was sent, and no answer came",
            outcome: None,
        }));
        self.queue_pairs[slot].routing.set(Route::Connecting);
        self.connecting.push(slot);
        self.deferred = true;
        self.ask(slot, link);
        Ok(())
    }

    /// The checks for both ends of a new connection.
    fn check_connectable(
        &self,
        call: &'static str,
        queue_pair: QueuePair,
        private_data: &[u8],
    ) -> Result<()> {
        self.check_private_data(private_data)?;
        let qp = self.queue_pairs.of(queue_pair)?;
        let (state, hint) = match qp.routing.route {
            _ if qp.channel.is_some() => ("a channel", "create an ordinary queue pair"),
            Route::Connected { .. } => ("connected", "disconnect it first"),
            Route::Connecting => ("connecting", "wait for the answer, or disconnect it first"),
            _ if qp.posted_sends > 0 => ("busy", "wait until what is posted has finished"),
            Route::Unconnected | Route::Disconnected { .. } => return Ok(()),
        };
        Err(Error::WrongState { call, state, hint })
    }

    fn check_private_data(&self, private_data: &[u8]) -> Result<()> {
        let (length, maximum) = (private_data.len(), self.limits.private_data_bytes);
        let too_long = || Error::TooLong { length, maximum, what: "private data" };
        if length <= maximum { Ok(()) } else { Err(too_long()) }
    }

    fn ask(&mut self, slot: u32, link: LinkId) {
        let qp = &self.queue_pairs[slot];
        let Some(attempt) = &qp.connect_attempt else { return };
        let (listener, number) = (attempt.to.queue_pair, qp.handle.number);
        let header = PacketHeader::new(Kind::Connect, listener, number, attempt.request);
        let request = Reply::with_private_data(header, &attempt.private_data);
        self.reply(link, request);
    }

    /// Repeats requests that are due, and ends those that have timed out.
    pub(super) fn check_connecting<T: Transport>(&mut self, transport: &mut T) {
        let now = transport.now();
        for slot in self.connecting.clone() {
            let Some(qp) = self.queue_pairs.at_mut(slot) else { continue };
            let Some(attempt) = &mut qp.connect_attempt else { continue };
            if attempt.outcome.is_some() {
                continue;
            }
            let left = attempt.timeout.saturating_sub(now - attempt.started);
            if left.is_zero() {
                attempt.outcome = Some(Answer::Nobody);
                qp.routing.set(Route::Unconnected);
                continue;
            }
            if let Again::Later = attempt.ask_again {
                attempt.ask_again = Again::At(now + ASK_AGAIN);
            }
            if matches!(attempt.ask_again, Again::At(when) if when <= now) {
                let (link, to) = (attempt.link, attempt.to.function_address());
                attempt.ask_again = Again::No;
                let link = match link.or_else(|| self.links.to(to)) {
                    Some(link) => Some(link),
                    None => self.open_link(transport, to, left).ok(),
                };
                if let Some(attempt) = &mut self.queue_pairs[slot].connect_attempt {
                    attempt.link = link;
                    attempt.ask_again = if link.is_none() { Again::Later } else { Again::No };
                }
                if let Some(link) = link {
                    self.ask(slot, link);
                }
            }
        }
        let waits = |qp: &QueuePairContext| {
            qp.connect_attempt.as_ref().is_some_and(|attempt| attempt.outcome.is_none())
        };
        self.connecting.retain(|&slot| self.queue_pairs.at(slot).is_some_and(waits));
    }

    /// The progress of a connection.
    pub(crate) fn connection(&mut self, queue_pair: QueuePair) -> Result<ConnectionProgress> {
        let qp = self.queue_pairs.of_mut(queue_pair)?;
        let none = Error::WrongState {
            call: "asking for a connection's outcome",
            state: "not connecting",
            hint: "call start_connect first; the outcome is told once",
        };
        let attempt = qp.connect_attempt.as_mut().ok_or(none)?;
        let Some(answer) = attempt.outcome.take() else { return Ok(ConnectionProgress::Waiting) };
        let (peer, timeout, tried) = (attempt.to, attempt.timeout, attempt.tried);
        qp.connect_attempt = None;
        match answer {
            Answer::Accepted(private_data) => Ok(ConnectionProgress::Connected(private_data)),
            Answer::Rejected(private_data) => Err(Error::Rejected {
                peer,
                reason: String::from_utf8_lossy(&private_data).into_owned(),
            }),
            Answer::Nobody => Err(Error::Unreachable {
                peer,
                waited_ms: timeout.as_millis() as u64,
                tried: tried.to_owned(),
            }),
        }
    }

    pub(super) fn cancel_attempt(&mut self, slot: u32) {
        self.queue_pairs[slot].connect_attempt = None;
        self.connecting.retain(|&listed| listed != slot);
    }

    /// The slot of the queue pair that a peer answers.
    fn asked(&mut self, from: FunctionAddress, header: &PacketHeader) -> Option<u32> {
        let slot = self.slot_of(header.destination)?;
        let attempt = self.queue_pairs[slot].connect_attempt.as_ref()?;
        (attempt.request == header.argument
            && attempt.to.function_address() == from
            && attempt.outcome.is_none())
        .then_some(slot)
    }

    /// A peer accepts.
    pub(super) fn on_accept(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, from, header, payload } = *packet;
        let Some(private_data) = self.private_data(payload) else { return self.violation() };
        let Some(slot) = self.asked(from, &header) else {
            // We have given up: tell the peer that there is no connection.
            let refusal = PacketHeader::new(Kind::Disconnect, header.source, header.destination, 0);
            return self.answer(link, Ok(Reply::new(refusal, &[])));
        };
        let qp = &mut self.queue_pairs[slot];
        qp.routing.set(Route::Connected { link, peer: packet.source() });
        if let Some(attempt) = &mut qp.connect_attempt {
            attempt.outcome = Some(Answer::Accepted(private_data));
        }
        Verdict::Taken
    }

    /// A peer refuses, or it has no listener yet.
    pub(super) fn on_reject(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { from, header, payload, .. } = *packet;
        let Some(private_data) = self.private_data(payload) else { return self.violation() };
        let Some(slot) = self.asked(from, &header) else { return Verdict::Taken };
        let qp = &mut self.queue_pairs[slot];
        let Some(attempt) = &mut qp.connect_attempt else { return Verdict::Taken };
        match header.aux {
            REJECT_BY_PROGRAM => {
                attempt.outcome = Some(Answer::Rejected(private_data));
                qp.routing.set(Route::Unconnected);
            }
            reason => {
                attempt.ask_again = Again::Later;
                attempt.tried = match reason {
                    REJECT_NOBODY => "its process answered, but nobody listened on that number",
                    _ => "its process answered, but too many requests waited there",
                };
            }
        }
        Verdict::Taken
    }

    fn private_data(&self, payload: View<'_>) -> Option<Vec<u8>> {
        (payload.len() <= self.limits.private_data_bytes).then(|| payload.to_vec())
    }
}

// The listening side.
impl Core {
    /// Takes requests on `number`.
    pub(crate) fn listen(&mut self, number: u32) -> Result<Listener> {
        if number >= Address::CHANNEL_BASE {
            let (value, range) = (number as u64, "below 2,147,483,648");
            return Err(Error::OutOfRange { parameter: "number to listen on", value, range });
        }
        if self.listening.iter().any(|listening| listening.number == number) {
            return Err(Error::InUse { object: "this number", user: "another listener" });
        }
        if self.listening.len() == self.limits.listeners {
            let limit = self.limits.listeners as u64;
            let hint = "Listen on fewer: one can take requests for many queue pairs";
            return Err(Error::Exhausted { what: "listeners", limit, hint });
        }
        let generation = crate::table::next_generation();
        self.listening.push(Listening { number, generation, requests: VecDeque::new() });
        Ok(Listener { number, generation })
    }

    fn listening(&mut self, listener: Listener) -> Result<&mut Listening> {
        let known = |listening: &&mut Listening| listening.generation == listener.generation;
        self.listening.iter_mut().find(known).ok_or(Error::WrongState {
            call: "taking requests",
            state: "not listening",
            hint: "this listener was stopped, or belongs to another function",
        })
    }

    /// Stops listening. Waiting requests get the answer of a number without a listener.
    pub(crate) fn stop_listening(&mut self, listener: Listener) -> Result<()> {
        let requests = std::mem::take(&mut self.listening(listener)?.requests);
        self.listening.retain(|listening| listening.generation != listener.generation);
        for request in requests {
            self.refuse(&request, listener.number, REJECT_NOBODY, &[]);
        }
        Ok(())
    }

    /// The oldest request.
    pub(crate) fn next_request(&mut self, listener: Listener) -> Result<Option<ConnectionRequest>> {
        Ok(self.listening(listener)?.requests.pop_front())
    }

    /// Accepts a request and connects `queue_pair`.
    pub(crate) fn accept_connection(
        &mut self,
        request: ConnectionRequest,
        queue_pair: QueuePair,
        private_data: &[u8],
    ) -> Result<()> {
        self.check_connectable("accepting", queue_pair, private_data)?;
        self.check_asker(&request)?;
        let (link, peer) = (LinkId(request.link), request.peer);
        self.queue_pairs[queue_pair.slot].routing.set(Route::Connected { link, peer });
        let header =
            PacketHeader::new(Kind::Accept, peer.queue_pair, queue_pair.number, request.operation);
        let work = Work::Accept(Acceptance { header, private_data: private_data.into() });
        let posted = Posted { link, to: peer, context: 0, signaled: false, work };
        self.enqueue(queue_pair.slot, posted);
        Ok(())
    }

    /// Sends an acceptance, if the link takes it.
    pub(super) fn attempt_acceptance<T: Transport>(
        &mut self,
        transport: &mut T,
        posted: Posted,
    ) -> Attempt {
        let Work::Accept(acceptance) = &posted.work else { unreachable!("the caller looked") };
        let body = View::of(&acceptance.private_data);
        match transport.send(posted.link, acceptance.header, &[], body) {
            // A link that is down ends the connection with the next poll.
            Ok(_) | Err(SendError::Down(_)) => Attempt::Started,
            Err(SendError::Busy) => Attempt::Blocked(posted),
        }
    }

    /// Refuses a request.
    pub(crate) fn reject_connection(
        &mut self,
        request: ConnectionRequest,
        private_data: &[u8],
    ) -> Result<()> {
        self.check_private_data(private_data)?;
        self.check_asker(&request)?;
        self.refuse(&request, 0, REJECT_BY_PROGRAM, private_data);
        Ok(())
    }

    fn check_asker(&self, request: &ConnectionRequest) -> Result<()> {
        let link = self.links.find(LinkId(request.link));
        if link.is_some_and(|link| link.generation == request.link_generation) {
            return Ok(());
        }
        let tried = "the process that asked is gone, or asked another function".to_owned();
        Err(Error::Unreachable { peer: request.peer, waited_ms: 0, tried })
    }

    fn refuse(&mut self, request: &ConnectionRequest, number: u32, reason: u16, bytes: &[u8]) {
        let mut header =
            PacketHeader::new(Kind::Reject, request.peer.queue_pair, number, request.operation);
        header.aux = reason;
        self.reply(LinkId(request.link), Reply::with_private_data(header, bytes));
    }

    /// A peer requests a connection.
    pub(super) fn on_connect(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let Some(private_data) = self.private_data(payload) else { return self.violation() };
        let link_generation = self.links.find(link).map_or(0, |link| link.generation);
        let request = ConnectionRequest {
            peer: packet.source(),
            private_data,
            link: link.0,
            link_generation,
            operation: header.argument,
        };
        let listening =
            self.listening.iter_mut().find(|listening| listening.number == header.destination);
        let reason = match listening {
            Some(listening) if listening.requests.len() < REQUESTS => {
                listening.requests.push_back(request);
                return Verdict::Taken;
            }
            Some(_) => REJECT_BUSY,
            None => REJECT_NOBODY,
        };
        self.counters.connections_refused += 1;
        let mut header =
            PacketHeader::new(Kind::Reject, header.source, header.destination, header.argument);
        header.aux = reason;
        self.answer(link, Ok(Reply::new(header, &[])))
    }
}
