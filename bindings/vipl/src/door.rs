//! The door of a NIC (M-03): the number at which all requests for connections arrive, whatever discriminator they are for; and what is
//! waited for behind it.
//!
//! A request for an end point that nobody waits for here is answered at once: with the function of the node that is marked as waiting for
//! it, or with "not yet", and the client asks again. So a server may wait at any opening of the device in any program of the host, also while
//! the program with the first one does something else: its agent answers.

use crate::abi::Return;
use crate::greeting::{EndPoint, Greeting, Refusal, Role};
use crate::mark::Mark;
use crate::nic::State;
use bellwire::ConnectionRequest;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number that the function of each NIC listens on.
pub const DOOR: u32 = u32::from_be_bytes(*b"VIPL");
/// How long an end point outlives its last waiter: a program that looks with short timeouts misses nothing, and requests of clients that
/// have given up do not pile up.
const LINGER: Duration = Duration::from_millis(50);
/// End points that are waited for at once.
const WAITED: usize = 2048;
/// Requests to one of them that have not been taken.
const WAITING: usize = 64;

/// A request that is what it should be.
pub struct Request {
    pub request: ConnectionRequest,
    pub greeting: Greeting,
}

/// An end point that is waited for, or was just now.
pub struct Waited {
    end_point: EndPoint,
    users: u32,
    unused_since: Option<Instant>,
    requests: VecDeque<Request>,
    _mark: Option<Mark>,
}

impl Waited {
    pub fn is_unused(&self) -> bool {
        self.users == 0
    }
}

impl State {
    /// Lets requests to `end_point` in.
    pub fn await_requests(&mut self, end_point: &EndPoint) -> Result<(), Return> {
        if let Some(known) = self.waited.iter_mut().find(|waited| waited.end_point == *end_point) {
            known.users += 1;
            known.unused_since = None;
            return Ok(());
        }
        if self.waited.len() == WAITED {
            return Err(Return::ErrorResource);
        }
        // On a model each opening is a node.
        let mark = if self.is_virtual { None } else { self.marks.set(end_point) };
        self.waited.push(Waited {
            end_point: end_point.clone(),
            users: 1,
            unused_since: None,
            requests: VecDeque::new(),
            _mark: mark,
        });
        Ok(())
    }

    /// Gives up one use of an end point. A peer's is for one connection, so that nothing may be left in its queue.
    pub fn stop_awaiting(&mut self, end_point: &EndPoint) {
        let now = self.function.now();
        let since = if end_point.role() == Role::Peer { now - 2 * LINGER } else { now };
        if let Some(known) = self.waited.iter_mut().find(|waited| waited.end_point == *end_point) {
            known.users -= 1;
            known.unused_since = known.is_unused().then_some(since);
        }
        self.forget_unused();
    }

    /// The next request to `end_point`.
    pub fn next_request(&mut self, end_point: &EndPoint) -> Option<Request> {
        let known = self.waited.iter_mut().find(|waited| waited.end_point == *end_point)?;
        known.requests.pop_front()
    }

    /// Lets in or refuses whoever is at the door, and says whether there was anybody. Nobody: then no progress was made.
    pub fn answer_the_door(&mut self) -> bool {
        let Ok(Some(request)) = self.function.next_request(self.door) else { return false };
        self.let_in(request);
        true
    }

    fn let_in(&mut self, request: ConnectionRequest) {
        let Some(greeting) = Greeting::parse(&request.private_data) else {
            return self.refuse(request, Refusal::Stranger);
        };
        let end_point = greeting.end_point();
        match self.waited.iter_mut().find(|waited| waited.end_point == end_point) {
            Some(waited) if waited.requests.len() < WAITING => {
                waited.requests.push_back(Request { request, greeting });
                self.news = true;
            }
            Some(_) => self.refuse(request, Refusal::NotYet),
            None => {
                let elsewhere = if self.is_virtual { None } else { self.marks.find(&end_point) };
                self.refuse(request, elsewhere.map_or(Refusal::NotYet, Refusal::Elsewhere));
            }
        }
    }

    /// Refuses a request; a client that is gone needs no answer.
    pub fn refuse(&mut self, request: ConnectionRequest, why: Refusal) {
        let _ = self.function.reject(request, why.to_string().as_bytes());
    }

    /// Forgets end points that nobody has waited for in a while; clients that are left there ask again.
    pub fn forget_unused(&mut self) {
        if !self.waited.iter().any(Waited::is_unused) {
            return;
        }
        let now = self.function.now();
        let is_over = |waited: &mut Waited| {
            waited.unused_since.is_some_and(|since| now.saturating_duration_since(since) > LINGER)
        };
        let over: Vec<Waited> = self.waited.extract_if(.., is_over).collect();
        for Request { request, .. } in over.into_iter().flat_map(|waited| waited.requests) {
            self.refuse(request, Refusal::NotYet);
        }
    }
}
