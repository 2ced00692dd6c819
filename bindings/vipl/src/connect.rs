//! Connections (M-03): client and server, and peer to peer.
//!
//! A request goes to the door of the named function. Its private data carries what both sides need
//! to know of each other, including discriminators. A client follows one redirect, and only within
//! the same node.

use crate::abi::{NetAddress, Return, ViAttributes, ViState};
use crate::door::{DOOR, Request, refuse};
use crate::end_point::{EndPoint, NetName, Role, THIS_HOST};
use crate::greeting::{Greeting, Refusal};
use crate::handle::{Handle, Kind, nic_of, vi_of};
use crate::names::{read_address, write_address};
use crate::nic::{State, on_nic};
use crate::pointer::{In, Out, call};
use crate::vi::{Attempt, Question, Side};
use crate::wait::{timeout_of, wait_on_nic};
use bellwire::{Address, ConnectionProgress, Error, Rights};
use std::ffi::{c_ulong, c_void};
use std::time::Duration;

/// How long a client waits before it asks again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

impl State {
    /// Our address, with a discriminator.
    fn own_name(&self, discriminator: &[u8]) -> NetName {
        NetName { host: self.function.address(), discriminator: discriminator.to_vec() }
    }

    fn greeting(
        &mut self,
        slot: u16,
        role: Role,
        from: &[u8],
        to: &[u8],
    ) -> Result<Greeting, Return> {
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        let (attributes, tag) = (vi.attributes, vi.tag);
        let mut rights = Rights::empty();
        rights.set(Rights::REMOTE_WRITE, attributes.enable_rdma_write != 0);
        rights.set(Rights::REMOTE_READ, attributes.enable_rdma_read != 0);
        let directory = if rights.is_empty() {
            None
        } else {
            self.memory.directory_of(&mut self.function, tag)?
        };
        Ok(Greeting {
            role,
            reliability: attributes.reliability_level,
            rights,
            transfer_bytes: attributes.max_transfer_size,
            directory,
            from: from.to_vec(),
            to: to.to_vec(),
        })
    }

    /// Sends the request to `question.at`; if the host is still unknown, notes when to look it up
    /// again.
    fn ask(&mut self, slot: u16, mut question: Question) -> Result<(), Return> {
        if question.at == THIS_HOST {
            match self.door.find_on_host(&question.end_point()) {
                Some(at) => question.at = at,
                None => question.again_at = Some(self.function.now() + ASK_AGAIN),
            }
        }
        let Question { role, own, peer, deadline, at, again_at } = &question;
        let left = deadline.saturating_duration_since(self.function.now());
        let data = self.greeting(slot, *role, &own.discriminator, &peer.discriminator)?.to_bytes();
        let to = Address::new(at.node, at.function, DOOR);
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        if again_at.is_none() {
            let asked = self.function.start_connect(vi.queue_pair, to, &data, left);
            asked.map_err(|error| match error {
                Error::WrongState { .. } => Return::InvalidState,
                Error::Unreachable { .. } => Return::NotReachable,
                _ => Return::ErrorResource,
            })?;
        }
        vi.state = ViState::ConnectPending;
        vi.attempt = Some(Attempt { side: Side::Asks(question), outcome: None });
        Ok(())
    }

    fn begin_to_ask(
        &mut self,
        slot: u16,
        role: Role,
        own: NetName,
        peer: NetName,
        timeout: Duration,
    ) -> Result<(), Return> {
        let deadline = self.function.now() + timeout;
        let at = peer.host;
        self.ask(slot, Question { role, own, peer, deadline, at, again_at: None })
    }

    /// The answer to a VI's request; `None`: not yet.
    fn answer(&mut self, slot: u16, mut question: Question) -> Option<Result<Greeting, Return>> {
        let now = self.function.now();
        if let Some(when) = question.again_at {
            if now >= question.deadline {
                return Some(Err(Return::Timeout));
            }
            question.at = question.peer.host;
            question.again_at = None;
            return if now < when { None } else { self.ask(slot, question).err().map(Err) };
        }
        let queue_pair = self.vis.at(slot)?.queue_pair;
        let reason = match self.function.poll_connection(queue_pair) {
            Ok(ConnectionProgress::Waiting) => return None,
            Ok(ConnectionProgress::Connected(data)) => {
                return Some(Greeting::parse(&data).ok_or(Return::Error));
            }
            Err(Error::Rejected { reason, .. }) => reason,
            Err(Error::Unreachable { .. }) => return Some(Err(Return::Timeout)),
            Err(_) => return Some(Err(Return::Error)),
        };
        match Refusal::parse(&reason) {
            // Do not follow a second redirect: the target has stopped waiting, or a hostile peer
            // builds a loop.
            Refusal::Elsewhere(function)
                if question.at == question.peer.host && function != question.at.function =>
            {
                question.at.function = function;
                self.ask(slot, question).err().map(Err)
            }
            Refusal::Elsewhere(_) | Refusal::NotYet => {
                question.again_at = Some(now + ASK_AGAIN);
                let attempt = self.vis.at(slot)?.attempt.as_mut()?;
                attempt.side = Side::Asks(question);
                None
            }
            Refusal::Rejected | Refusal::Reliability | Refusal::Stranger | Refusal::TooMany => {
                Some(Err(Return::Reject))
            }
        }
    }

    /// Advances a VI's connection.
    pub fn go_on_connecting(&mut self, slot: u16) {
        self.waiters.disturb();
        let Some(vi) = self.vis.at(slot) else { return };
        let Some(Attempt { side, outcome: None }) = &vi.attempt else { return };
        let outcome = match side.clone() {
            Side::Asks(question) => self.answer(slot, question),
            Side::IsAsked { end_point, host, deadline } => {
                let is_there = |node: u32| host == THIS_HOST || node == host.node;
                let outcome = match self.door.next_request(&end_point) {
                    Some(request) if is_there(request.request.peer.node) => {
                        Some(self.accept(slot, request))
                    }
                    Some(request) => {
                        return refuse(&mut self.function, request.request, Refusal::NotYet);
                    }
                    None => (self.function.now() >= deadline).then_some(Err(Return::Timeout)),
                };
                if outcome.is_some() {
                    self.door.stop_awaiting(&mut self.function, &end_point);
                }
                outcome
            }
        };
        if let Some(outcome) = outcome {
            self.settle(slot, outcome);
        }
    }

    /// Ends an attempt: connected, or failed.
    fn settle(&mut self, slot: u16, outcome: Result<Greeting, Return>) {
        self.waiters.news = true;
        let Some(vi) = self.vis.at(slot) else { return };
        let outcome = outcome.map(|greeting| vi.connect_to(&greeting));
        if outcome.is_err() {
            vi.state = ViState::Idle;
        }
        if let Some(attempt) = &mut vi.attempt {
            attempt.outcome = Some(outcome);
        }
    }

    /// Accepts a request for an idle VI. If the VI's attributes do not allow it, the call fails and
    /// another VI may accept the request.
    fn accept(&mut self, slot: u16, request: Request) -> Result<Greeting, Return> {
        let Request { request, greeting } = request;
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        let queue_pair = vi.queue_pair;
        if vi.attributes.reliability_level != greeting.reliability {
            refuse(&mut self.function, request, Refusal::Reliability);
            return Err(Return::InvalidReliabilityLevel);
        }
        let answer = self.greeting(slot, greeting.role, &greeting.to, &greeting.from)?.to_bytes();
        match self.function.accept(request, queue_pair, &answer) {
            Ok(()) => Ok(greeting),
            Err(Error::WrongState { .. }) => Err(Return::InvalidState),
            Err(Error::Unreachable { .. }) => Err(Return::Timeout),
            Err(_) => Err(Return::ErrorResource),
        }
    }

    fn connect_accept(&mut self, request: Handle, vi: Option<Handle>) -> Result<(), Return> {
        let known = self.door.requests.find(request).ok_or(Return::InvalidParameter)?;
        let level = known.greeting.reliability;
        let vi = self.vi(vi)?;
        if vi.state != ViState::Idle {
            return Err(Return::InvalidState);
        }
        if level != vi.attributes.reliability_level {
            return Err(Return::InvalidReliabilityLevel);
        }
        let slot = vi.handle.slot;
        let known = self.door.requests.remove(request.slot).ok_or(Return::InvalidParameter)?;
        let greeting = self.accept(slot, known)?;
        if let Some(vi) = self.vis.at(slot) {
            vi.connect_to(&greeting);
        }
        Ok(())
    }

    fn connect_peer(
        &mut self,
        vi: Option<Handle>,
        own: NetName,
        peer: NetName,
        timeout: Duration,
    ) -> Result<(), Return> {
        let vi = self.vi(vi)?;
        if vi.state != ViState::Idle {
            return Err(Return::InvalidState);
        }
        let slot = vi.handle.slot;
        // The order of the two keys decides which side asks; both sides decide alike.
        match own.key().cmp(&peer.key()) {
            std::cmp::Ordering::Less => self.begin_to_ask(slot, Role::Peer, own, peer, timeout),
            std::cmp::Ordering::Equal => Err(Return::InvalidParameter),
            std::cmp::Ordering::Greater => {
                let end_point = EndPoint::of_peer(&own.discriminator, &peer.discriminator);
                self.door.await_requests(&end_point)?;
                let deadline = self.function.now() + timeout;
                let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
                vi.state = ViState::ConnectPending;
                let side = Side::IsAsked { end_point, host: peer.host, deadline };
                vi.attempt = Some(Attempt { side, outcome: None });
                Ok(())
            }
        }
    }

    /// The outcome of a VI's attempt, once.
    fn outcome(
        &mut self,
        vi: Option<Handle>,
    ) -> Result<Option<Result<ViAttributes, Return>>, Return> {
        let slot = self.vi(vi)?.handle.slot;
        self.go_on_connecting(slot);
        let vi = self.vi(vi)?;
        let attempt = vi.attempt.as_mut().ok_or(Return::InvalidState)?;
        let outcome = attempt.outcome.take();
        if outcome.is_some() {
            vi.attempt = None;
        }
        Ok(outcome)
    }

    /// Abandons a VI's attempt.
    pub fn give_up_connecting(&mut self, slot: u16) {
        let attempt = self.vis.at(slot).and_then(|vi| vi.attempt.take());
        if let Some(Attempt { side: Side::IsAsked { end_point, .. }, outcome: None }) = attempt {
            self.door.stop_awaiting(&mut self.function, &end_point);
        }
    }
}

fn request_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Connection)
}

/// Waits for a client's request.
///
/// # Safety
/// The addresses are null or valid. `remote` has room for a host address and a discriminator. The
/// others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectWait(
    nic: *mut c_void,
    local: In<'_, NetAddress>,
    timeout_ms: c_ulong,
    remote: Out<'_, NetAddress>,
    attributes: Out<'_, ViAttributes>,
    connection: Out<'_, *mut c_void>,
) -> Return {
    call(|| {
        remote.check()?;
        attributes.check()?;
        connection.check()?;
        let (_, discriminator) = read_address(&local)?;
        let nic = nic_of(nic);
        let end_point = EndPoint::of_server(&discriminator);
        on_nic(nic, |state| state.door.await_requests(&end_point))?;
        let found = wait_on_nic(nic, timeout_of(timeout_ms), |state| {
            let Some(request) = state.door.next_request(&end_point) else { return Ok(None) };
            let peer = NetName {
                host: request.request.peer.function_address(),
                discriminator: request.greeting.from.clone(),
            };
            let attributes = request.greeting.attributes();
            let nic = state.handle.nic;
            match state.door.requests.insert(request) {
                Ok((slot, generation)) => {
                    let handle = Handle { kind: Kind::Connection, nic, slot, generation };
                    Ok(Some((peer, attributes, handle)))
                }
                Err(request) => {
                    refuse(&mut state.function, request.request, Refusal::TooMany);
                    Err(Return::ErrorResource)
                }
            }
        });
        let _ = on_nic(nic, |state| {
            state.door.stop_awaiting(&mut state.function, &end_point);
            Ok(())
        });
        let (peer, theirs, handle) = found?;
        write_address(&remote, &peer)?;
        attributes.write(theirs)?;
        connection.write(handle.to_pointer())
    })
}

/// Accepts a request for an idle VI.
#[unsafe(no_mangle)]
pub extern "C" fn VipConnectAccept(connection: *mut c_void, vi: *mut c_void) -> Return {
    call(|| {
        let handle = request_of(connection).ok_or(Return::InvalidParameter)?;
        on_nic(Some(handle), |state| state.connect_accept(handle, vi_of(vi)))
    })
}

/// Refuses a request.
#[unsafe(no_mangle)]
pub extern "C" fn VipConnectReject(connection: *mut c_void) -> Return {
    call(|| {
        let handle = request_of(connection).ok_or(Return::InvalidParameter)?;
        on_nic(Some(handle), |state| {
            state.door.requests.find(handle).ok_or(Return::InvalidParameter)?;
            let known = state.door.requests.remove(handle.slot).ok_or(Return::InvalidParameter)?;
            refuse(&mut state.function, known.request, Refusal::Rejected);
            Ok(())
        })
    })
}

/// Asks a server for a connection and waits for the answer.
///
/// # Safety
/// The addresses are null or valid; `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectRequest(
    vi: *mut c_void,
    local: In<'_, NetAddress>,
    remote: In<'_, NetAddress>,
    timeout_ms: c_ulong,
    attributes: Out<'_, ViAttributes>,
) -> Return {
    call(|| {
        attributes.check()?;
        let ((_, own), (host, discriminator)) = (read_address(&local)?, read_address(&remote)?);
        let peer = NetName { host: host.ok_or(Return::InvalidParameter)?, discriminator };
        let handle = vi_of(vi);
        let timeout = timeout_of(timeout_ms);
        on_nic(handle, |state| {
            let vi = state.vi(handle)?;
            if vi.state != ViState::Idle {
                return Err(Return::InvalidState);
            }
            let slot = vi.handle.slot;
            let own = state.own_name(&own);
            state.begin_to_ask(slot, Role::Client, own, peer, timeout)
        })?;
        wait_for_outcome(handle, &attributes)
    })
}

/// Begins a connection with a peer that also begins one with us.
///
/// # Safety
/// The addresses are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerRequest(
    vi: *mut c_void,
    local: In<'_, NetAddress>,
    remote: In<'_, NetAddress>,
    timeout_ms: c_ulong,
) -> Return {
    call(|| {
        let ((_, own), (host, discriminator)) = (read_address(&local)?, read_address(&remote)?);
        let peer = NetName { host: host.ok_or(Return::InvalidParameter)?, discriminator };
        on_nic(vi_of(vi), |state| {
            let own = state.own_name(&own);
            state.connect_peer(vi_of(vi), own, peer, timeout_of(timeout_ms))
        })
    })
}

/// Whether the connection with a peer has been made.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerDone(
    vi: *mut c_void,
    attributes: Out<'_, ViAttributes>,
) -> Return {
    call(|| {
        attributes.check()?;
        let outcome = on_nic(vi_of(vi), |state| {
            state.drain();
            state.outcome(vi_of(vi))
        })?;
        attributes.write(outcome.ok_or(Return::NotDone)??)
    })
}

/// Waits for the connection with a peer, as long as the request said.
///
/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerWait(
    vi: *mut c_void,
    attributes: Out<'_, ViAttributes>,
) -> Return {
    call(|| {
        attributes.check()?;
        wait_for_outcome(vi_of(vi), &attributes)
    })
}

/// Waits until the connection of a VI is made or fails (the request has a deadline), and writes the
/// attributes of the peer's VI.
fn wait_for_outcome(vi: Option<Handle>, attributes: &Out<'_, ViAttributes>) -> Result<(), Return> {
    let theirs = wait_on_nic(vi, timeout_of(c_ulong::MAX), |state| state.outcome(vi)?.transpose())?;
    attributes.write(theirs)
}
