//! The door of a NIC (M-03): the number at which all connection requests arrive, for every
//! discriminator, and the end points that wait behind it.
//!
//! A request for an end point that does not wait here is answered at once: with the function of the
//! node whose mark says that it waits, or with "not yet", and the client asks again. So a server
//! may wait at any opening of the device, in any program of the host. This also holds while the
//! program of the first opening is busy: its agent answers.

use crate::abi::Return;
use crate::end_point::{EndPoint, Role};
use crate::greeting::{Greeting, PostError};
use crate::mark::Mark;
use crate::nic::State;
use bellwire::ConnectionRequest;
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

/// A request that has been checked.
pub struct Request {
    pub request: ConnectionRequest,
    pub greeting: Greeting,
}

/// An end point that waits for requests, or did within [`LINGER`].
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
    /// Admits requests to `end_point`.
    pub fn await_requests(&mut self, end_point: &EndPoint) -> Result<(), Return> {
        if let Some(known) = self.waited.iter_mut().find(|waited| waited.end_point == *end_point) {
            known.users += 1;
            known.unused_since = None;
            return Ok(());
        }
        if self.waited.len() == WAITED {
            return Err(Return::ErrorResource);
        }
        // On a model each opening is a node of its own.
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

    /// Drops one user of an end point. A peer's end point serves one connection, so its queue is
    /// discarded at once.
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

    /// Admits or refuses the next request at the door; `false` if there was none, and then no
    /// progress was made.
    pub fn answer_the_door(&mut self) -> bool {
        let Ok(Some(request)) = self.function.next_request(self.door) else { return false };
        self.let_in(request);
        true
    }

    fn let_in(&mut self, request: ConnectionRequest) {
        let Some(greeting) = Greeting::parse(&request.private_data) else {
            return self.refuse(request, PostError::Stranger);
        };
        let end_point = greeting.end_point();
        match self.waited.iter_mut().find(|waited| waited.end_point == end_point) {
            Some(waited) if waited.requests.len() < WAITING => {
                waited.requests.push_back(Request { request, greeting });
                self.news = true;
            }
            Some(_) => self.refuse(request, PostError::NotYet),
            None => {
                let elsewhere = if self.is_virtual { None } else { self.marks.find(&end_point) };
                self.refuse(request, elsewhere.map_or(PostError::NotYet, PostError::Elsewhere));
            }
        }
    }

    /// Refuses a request. A client that is gone needs no answer.
    pub fn refuse(&mut self, request: ConnectionRequest, why: PostError) {
        let _ = self.function.reject(request, why.to_string().as_bytes());
    }

    /// Forgets end points without a waiter for longer than [`LINGER`]. Clients that still wait
    /// there ask again.
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
            self.refuse(request, PostError::NotYet);
        }
    }
}
