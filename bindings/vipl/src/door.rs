//! The door of a NIC (M-03): the number at which all connection requests arrive, for every
//! discriminator, and the end points that wait behind it.
//!
//! A request for an end point that does not wait here is answered at once: with the function of the
//! node whose mark says that it waits, or with "not yet", and the client asks again. So a server
//! may wait at any opening of the device, in any program of the host. This also holds while the
//! program of the first opening is busy: its agent answers.

use crate::abi::Return;
use crate::end_point::{EndPoint, Role};
use crate::greeting::{Greeting, Refusal};
use crate::handle::Slab;
use crate::mark::{Mark, Marks};
use bellwire::{ConnectionRequest, Error, Function, FunctionAddress, Listener};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number that the function of each NIC listens on.
pub const DOOR: u32 = u32::from_be_bytes(*b"VIPL");
/// How long an end point outlives its last waiter. A program that waits with short timeouts misses
/// no request, and requests of clients that have given up do not accumulate.
const LINGER: Duration = Duration::from_millis(50);
/// Most end points that wait at once.
const WAITED: usize = 2048;
/// Most requests that wait at one of them.
const WAITING: usize = 64;
/// Most requests that the program has been given and not answered.
const REQUESTS: usize = 256;

/// A request that has been checked.
pub struct Request {
    pub request: ConnectionRequest,
    pub greeting: Greeting,
}

/// An end point that waits for requests, or did within [`LINGER`].
struct Waited {
    end_point: EndPoint,
    users: u32,
    unused_since: Option<Instant>,
    requests: VecDeque<Request>,
    _mark: Option<Mark>,
}

/// The door of a NIC.
pub struct Door {
    listener: Listener,
    /// The end points behind it.
    waited: Vec<Waited>,
    /// They tell the node's other functions of the end points. `None` on a model, where each
    /// opening is a node of its own.
    marks: Option<Marks>,
    /// Requests that the program has been given and not answered.
    pub requests: Slab<Request>,
}

impl Door {
    pub fn new(function: &mut Function, marks: Option<Marks>) -> Result<Door, Error> {
        let (waited, requests) = (Vec::new(), Slab::new(REQUESTS));
        Ok(Door { listener: function.listen(DOOR)?, waited, marks, requests })
    }

    fn find(&mut self, end_point: &EndPoint) -> Option<&mut Waited> {
        self.waited.iter_mut().find(|waited| waited.end_point == *end_point)
    }

    /// Admits requests to `end_point`.
    pub fn await_requests(&mut self, end_point: &EndPoint) -> Result<(), Return> {
        if let Some(known) = self.find(end_point) {
            known.users += 1;
            known.unused_since = None;
            return Ok(());
        }
        if self.waited.len() == WAITED {
            return Err(Return::ErrorResource);
        }
        self.waited.push(Waited {
            end_point: end_point.clone(),
            users: 1,
            unused_since: None,
            requests: VecDeque::new(),
            _mark: self.marks.as_ref().and_then(|marks| marks.set(end_point)),
        });
        Ok(())
    }

    /// Drops one user of an end point. A peer's end point serves one connection, so its queue is
    /// discarded at once.
    pub fn stop_awaiting(&mut self, function: &mut Function, end_point: &EndPoint) {
        let now = function.now();
        let since = if end_point.role() == Role::Peer { now - 2 * LINGER } else { now };
        if let Some(known) = self.find(end_point) {
            known.users -= 1;
            known.unused_since = (known.users == 0).then_some(since);
        }
        self.forget_unused(function);
    }

    /// The next request to `end_point`.
    pub fn next_request(&mut self, end_point: &EndPoint) -> Option<Request> {
        self.find(end_point)?.requests.pop_front()
    }

    /// The first function of this host that waits for requests to `end_point`, except this one.
    pub fn find_on_host(&self, end_point: &EndPoint) -> Option<FunctionAddress> {
        self.marks.as_ref()?.find_on_host(end_point)
    }

    /// Admits or refuses the next request at the door, and says which. `None`: there was none, and
    /// then no progress was made.
    pub fn answer(&mut self, function: &mut Function) -> Option<bool> {
        let request = function.next_request(self.listener).ok()??;
        let Some(greeting) = Greeting::parse(&request.private_data) else {
            refuse(function, request, Refusal::Stranger);
            return Some(false);
        };
        let end_point = greeting.end_point();
        let why = match self.find(&end_point) {
            Some(waited) if waited.requests.len() < WAITING => {
                waited.requests.push_back(Request { request, greeting });
                return Some(true);
            }
            Some(_) => Refusal::NotYet,
            None => {
                let elsewhere = self.marks.as_ref().and_then(|marks| marks.find(&end_point));
                elsewhere.map_or(Refusal::NotYet, Refusal::Elsewhere)
            }
        };
        refuse(function, request, why);
        Some(false)
    }

    /// Whether an end point outlives its last waiter.
    pub fn has_unused(&self) -> bool {
        self.waited.iter().any(|waited| waited.users == 0)
    }

    /// Forgets end points without a waiter for longer than [`LINGER`]. Clients that still wait
    /// there ask again.
    pub fn forget_unused(&mut self, function: &mut Function) {
        if !self.has_unused() {
            return;
        }
        let now = function.now();
        let is_over = |waited: &mut Waited| {
            waited.unused_since.is_some_and(|since| now.saturating_duration_since(since) > LINGER)
        };
        let over: Vec<Waited> = self.waited.extract_if(.., is_over).collect();
        for Request { request, .. } in over.into_iter().flat_map(|waited| waited.requests) {
            refuse(function, request, Refusal::NotYet);
        }
    }
}

/// Refuses a request. A client that is gone needs no answer.
pub fn refuse(function: &mut Function, request: ConnectionRequest, why: Refusal) {
    let _ = function.reject(request, why.to_string().as_bytes());
}
