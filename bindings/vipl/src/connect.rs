//! Connections (M-03): client and server, and peer to peer.
//!
//! A discriminator is hashed to the number that a Bellwire function listens on; what both sides need to know of each other goes along
//! as private data, the whole discriminator too, so that two with one hash are not confused.

use crate::abi::{NetAddress, Return, ViAttributes, ViState};
use crate::callback::vi_of;
use crate::directory::Listed;
use crate::greeting::{Greeting, Role};
use crate::handle::{Handle, Kind};
use crate::names::{NetName, read_address, write_address};
use crate::nic::{State, call, nic_of, on_nic, write_to};
use crate::wait::{timeout_of, wait_on_nic};
use bellwire::{
    Address, ConnectionProgress, ConnectionRequest, Error, FunctionAddress, Listener, RemoteKey,
    Rights,
};
use std::collections::HashMap;
use std::ffi::{c_ulong, c_void};
use std::time::{Duration, Instant};

/// How long a listener outlives its last waiter: a program that looks with short timeouts misses nothing, and requests of clients that
/// have given up do not pile up.
const LINGER: Duration = Duration::from_millis(50);

/// The far side of a connection.
pub struct Peer {
    /// What its VI lets us do.
    pub rights: Rights,
    pub directory: Option<RemoteKey>,
    /// What its directory said of memory handles.
    pub listed: HashMap<u32, Option<Listed>>,
}

/// A number that is listened on.
pub struct Listening {
    number: u32,
    listener: Listener,
    pub users: u32,
    unused_since: Option<Instant>,
}

/// A request that was told to the program.
pub struct Request {
    request: ConnectionRequest,
    greeting: Greeting,
}

/// A connection that a VI is making.
pub struct Attempt {
    side: Side,
    outcome: Option<Result<ViAttributes, Return>>,
}

enum Side {
    /// It asked.
    Asks,
    /// It is asked, by exactly this peer.
    IsAsked { number: u32, own: NetName, peer: NetName, deadline: Instant },
}

impl State {
    /// Who we are, with a discriminator.
    fn own_name(&self, discriminator: &[u8]) -> NetName {
        NetName { host: self.function.address(), discriminator: discriminator.to_vec() }
    }

    fn greeting(
        &mut self,
        slot: u16,
        role: Role,
        from: NetName,
        to: NetName,
    ) -> Result<Greeting, Return> {
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        let (attributes, tag) = (vi.attributes, vi.tag);
        let mut rights = Rights::empty();
        rights.set(Rights::REMOTE_WRITE, attributes.enable_rdma_write != 0);
        rights.set(Rights::REMOTE_READ, attributes.enable_rdma_read != 0);
        let directory = if rights.is_empty() { None } else { self.directory_of(tag)? };
        Ok(Greeting {
            role,
            reliability: attributes.reliability_level,
            rights,
            transfer_bytes: attributes.max_transfer_size,
            directory,
            from: from.discriminator,
            to: to.discriminator,
        })
    }

    fn listen(&mut self, number: u32) -> Result<(), Return> {
        let known = self.listening.iter_mut().find(|listening| listening.number == number);
        if let Some(listening) = known {
            listening.users += 1;
            listening.unused_since = None;
            return Ok(());
        }
        let listener = self.function.listen(number).map_err(|_| Return::ErrorResource)?;
        self.listening.push(Listening { number, listener, users: 1, unused_since: None });
        Ok(())
    }

    /// Gives up one use of a number. Peers' numbers are for one connection, so that nothing may be left in their queues.
    fn stop_listening(&mut self, number: u32, role: Role) {
        let now = match role {
            Role::Client => self.function.now(),
            Role::Peer => self.function.now() - 2 * LINGER,
        };
        let known = self.listening.iter_mut().find(|listening| listening.number == number);
        if let Some(listening) = known {
            listening.users -= 1;
            listening.unused_since = (listening.users == 0).then_some(now);
        }
        self.close_unused_listeners();
    }

    pub fn close_unused_listeners(&mut self) {
        if self.listening.is_empty() {
            return;
        }
        let now = self.function.now();
        let State { listening, function, .. } = self;
        listening.retain(|listening| {
            let over = listening
                .unused_since
                .is_some_and(|since| now.saturating_duration_since(since) > LINGER);
            if over {
                let _ = function.stop_listening(listening.listener);
            }
            !over
        });
    }

    /// The next request on `number` that is what it should be; others are refused.
    fn next_request(
        &mut self,
        number: u32,
        wanted: impl Fn(&Greeting, FunctionAddress) -> bool,
    ) -> Option<Request> {
        let known = self.listening.iter().find(|listening| listening.number == number)?;
        let listener = known.listener;
        self.disturb();
        while let Ok(Some(request)) = self.function.poll_request(listener) {
            let from = request.peer.function_address();
            match Greeting::parse(&request.private_data).filter(|greeting| wanted(greeting, from)) {
                Some(greeting) => return Some(Request { request, greeting }),
                None => {
                    let _ = self.function.reject(request, b"no such end point");
                }
            }
        }
        None
    }

    /// Begins to ask for a connection.
    fn ask(
        &mut self,
        slot: u16,
        role: Role,
        own: NetName,
        peer: NetName,
        timeout: Duration,
    ) -> Result<(), Return> {
        let number = match role {
            Role::Client => number_of(role, &[&peer.discriminator]),
            Role::Peer => number_of(role, &[&peer.discriminator, &own.discriminator]),
        };
        let to = Address::new(peer.host.node, peer.host.function, number);
        let data = self.greeting(slot, role, own, peer)?.to_bytes();
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        self.function.start_connect(vi.queue_pair, to, &data, timeout).map_err(
            |error| match error {
                Error::WrongState { .. } => Return::InvalidState,
                Error::Unreachable { .. } => Return::NotReachable,
                _ => Return::ErrorResource,
            },
        )?;
        vi.state = ViState::ConnectPending;
        vi.attempt = Some(Attempt { side: Side::Asks, outcome: None });
        Ok(())
    }

    /// Looks how far a VI's connection is.
    pub fn go_on_connecting(&mut self, slot: u16) {
        self.disturb();
        let Some(vi) = self.vis.at(slot) else { return };
        let queue_pair = vi.queue_pair;
        let Some(Attempt { side, outcome: None }) = &vi.attempt else { return };
        match side {
            Side::Asks => {
                let outcome = match self.function.poll_connection(queue_pair) {
                    Ok(ConnectionProgress::Waiting) => return,
                    Ok(ConnectionProgress::Connected(data)) => {
                        Greeting::parse(&data).ok_or(Return::Error)
                    }
                    Err(Error::Rejected { .. }) => Err(Return::Reject),
                    Err(Error::Unreachable { .. }) => Err(Return::Timeout),
                    Err(_) => Err(Return::Error),
                };
                self.settle(slot, outcome);
            }
            Side::IsAsked { number, own, peer, deadline } => {
                let (number, own, peer, deadline) = (*number, own.clone(), peer.clone(), *deadline);
                let wanted = |greeting: &Greeting, from: FunctionAddress| {
                    greeting.role == Role::Peer
                        && from == peer.host
                        && greeting.from == peer.discriminator
                        && greeting.to == own.discriminator
                };
                let outcome = match self.next_request(number, wanted) {
                    Some(request) => self.accept(slot, Role::Peer, request),
                    None if self.function.now() >= deadline => Err(Return::Timeout),
                    None => return,
                };
                self.stop_listening(number, Role::Peer);
                self.settle(slot, outcome);
            }
        }
    }

    /// A connection has been made, or not.
    fn settle(&mut self, slot: u16, outcome: Result<Greeting, Return>) {
        self.news = true;
        let Some(vi) = self.vis.at(slot) else { return };
        let outcome = outcome.map(|greeting| vi.connect_to(&greeting));
        if outcome.is_err() {
            vi.state = ViState::Idle;
        }
        if let Some(attempt) = &mut vi.attempt {
            attempt.outcome = Some(outcome);
        }
    }

    /// Accepts a request for an idle VI. What its attributes do not allow is refused, and the request may be accepted by another.
    fn accept(&mut self, slot: u16, role: Role, request: Request) -> Result<Greeting, Return> {
        let Request { request, greeting } = request;
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        let queue_pair = vi.queue_pair;
        if vi.attributes.reliability_level != greeting.reliability {
            let _ = self.function.reject(request, b"reliability levels differ");
            return Err(Return::InvalidReliabilityLevel);
        }
        let own = NetName { host: self.function.address(), discriminator: greeting.to.clone() };
        let peer =
            NetName { host: request.peer.function_address(), discriminator: greeting.from.clone() };
        let answer = self.greeting(slot, role, own, peer)?.to_bytes();
        match self.function.accept(request, queue_pair, &answer) {
            Ok(()) => Ok(greeting),
            Err(Error::WrongState { .. }) => Err(Return::InvalidState),
            Err(Error::Unreachable { .. }) => Err(Return::Timeout),
            Err(_) => Err(Return::ErrorResource),
        }
    }

    fn connect_accept(&mut self, request: Handle, vi: Option<Handle>) -> Result<(), Return> {
        let request = self.own(Some(request))?;
        let vi = self.vi(vi)?;
        let (slot, state, level) = (vi.handle.slot, vi.state, vi.attributes.reliability_level);
        let known = self.requests.find(request).ok_or(Return::InvalidParameter)?;
        if state != ViState::Idle {
            return Err(Return::InvalidState);
        }
        if level != known.greeting.reliability {
            return Err(Return::InvalidReliabilityLevel);
        }
        let known = self.requests.remove(request.slot).ok_or(Return::InvalidParameter)?;
        let greeting = self.accept(slot, Role::Client, known)?;
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
        // Both sides come to the same answer who asks whom.
        match own.key().cmp(&peer.key()) {
            std::cmp::Ordering::Less => self.ask(slot, Role::Peer, own, peer, timeout),
            std::cmp::Ordering::Equal => Err(Return::InvalidParameter),
            std::cmp::Ordering::Greater => {
                let number = number_of(Role::Peer, &[&own.discriminator, &peer.discriminator]);
                self.listen(number)?;
                let deadline = self.function.now() + timeout;
                let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
                vi.state = ViState::ConnectPending;
                let side = Side::IsAsked { number, own, peer, deadline };
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

    /// Gives a VI's attempt up.
    pub fn give_up_connecting(&mut self, slot: u16) {
        let attempt = self.vis.at(slot).and_then(|vi| vi.attempt.take());
        if let Some(Attempt { side: Side::IsAsked { number, .. }, outcome: None }) = attempt {
            self.stop_listening(number, Role::Peer);
        }
    }
}

impl crate::vi::Vi {
    fn connect_to(&mut self, greeting: &Greeting) -> ViAttributes {
        let attributes = greeting.attributes();
        self.state = ViState::Connected;
        self.peer = Some(Peer {
            rights: greeting.rights,
            directory: greeting.directory,
            listed: HashMap::new(),
        });
        attributes
    }
}

/// The number that an end point listens on: FNV-1a (Fowler, Noll, Vo) over the role and what names it, in 31 bits.
fn number_of(role: Role, names: &[&[u8]]) -> u32 {
    let mut hash = 0x811c_9dc5_u32 ^ role as u32;
    for name in names {
        let length = (name.len() as u32).to_le_bytes();
        for byte in length.iter().chain(name.iter()) {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
    hash & 0x7fff_ffff
}

fn request_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Connection)
}

/// Waits for a client's request.
///
/// # Safety
/// The addresses are null or whole; `remote` has room for a host address and a discriminator; the others are null or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectWait(
    nic: *mut c_void,
    local: *const NetAddress,
    timeout_ms: c_ulong,
    remote: *mut NetAddress,
    attributes: *mut ViAttributes,
    connection: *mut *mut c_void,
) -> Return {
    call(|| {
        if remote.is_null() || attributes.is_null() || connection.is_null() {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        let (_, discriminator) = unsafe { read_address(local) }?;
        let nic = nic_of(nic);
        let number = number_of(Role::Client, &[&discriminator]);
        on_nic(nic, |state| state.listen(number))?;
        let found = wait_on_nic(nic, timeout_of(timeout_ms), |state| {
            let wanted = |greeting: &Greeting, _| {
                greeting.role == Role::Client && greeting.to == discriminator
            };
            let Some(request) = state.next_request(number, wanted) else { return Ok(None) };
            let peer = NetName {
                host: request.request.peer.function_address(),
                discriminator: request.greeting.from.clone(),
            };
            let attributes = request.greeting.attributes();
            let nic = state.handle.nic;
            match state.requests.insert(request) {
                Ok((slot, generation)) => {
                    let handle = Handle { kind: Kind::Connection, nic, slot, generation };
                    Ok(Some((peer, attributes, handle)))
                }
                Err(request) => {
                    let _ = state.function.reject(request.request, b"too many requests");
                    Err(Return::ErrorResource)
                }
            }
        });
        let _ = on_nic(nic, |state| {
            state.stop_listening(number, Role::Client);
            Ok(())
        });
        let (peer, theirs, handle) = found?;
        // SAFETY: the caller's promise.
        unsafe {
            write_address(remote, &peer)?;
            write_to(attributes, theirs)?;
            write_to(connection, handle.to_pointer())
        }
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
            state.requests.find(handle).ok_or(Return::InvalidParameter)?;
            let known = state.requests.remove(handle.slot).ok_or(Return::InvalidParameter)?;
            // A client that is gone needs no answer.
            let _ = state.function.reject(known.request, b"rejected");
            Ok(())
        })
    })
}

/// Asks a server for a connection and waits for the answer.
///
/// # Safety
/// The addresses are null or whole; `attributes` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectRequest(
    vi: *mut c_void,
    local: *const NetAddress,
    remote: *const NetAddress,
    timeout_ms: c_ulong,
    attributes: *mut ViAttributes,
) -> Return {
    call(|| {
        if attributes.is_null() {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        let ((_, own), (host, discriminator)) =
            unsafe { (read_address(local)?, read_address(remote)?) };
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
            state.ask(slot, Role::Client, own, peer, timeout)
        })?;
        // SAFETY: the caller's promise.
        unsafe { wait_for_outcome(handle, attributes) }
    })
}

/// Begins a connection with a peer that begins one with us.
///
/// # Safety
/// The addresses are null or whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerRequest(
    vi: *mut c_void,
    local: *const NetAddress,
    remote: *const NetAddress,
    timeout_ms: c_ulong,
) -> Return {
    call(|| {
        // SAFETY: the caller's promise.
        let ((_, own), (host, discriminator)) =
            unsafe { (read_address(local)?, read_address(remote)?) };
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
/// `attributes` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerDone(
    vi: *mut c_void,
    attributes: *mut ViAttributes,
) -> Return {
    call(|| {
        if attributes.is_null() {
            return Err(Return::InvalidParameter);
        }
        let outcome = on_nic(vi_of(vi), |state| {
            state.drain();
            state.outcome(vi_of(vi))
        })?;
        // SAFETY: the caller's promise.
        unsafe { write_to(attributes, outcome.ok_or(Return::NotDone)??) }
    })
}

/// Waits for the connection with a peer, as long as the request said.
///
/// # Safety
/// `attributes` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerWait(
    vi: *mut c_void,
    attributes: *mut ViAttributes,
) -> Return {
    call(|| {
        if attributes.is_null() {
            return Err(Return::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        unsafe { wait_for_outcome(vi_of(vi), attributes) }
    })
}

/// Waits until the connection of a VI is made or not, which its request has a deadline for, and tells what the peer's VI is.
///
/// # Safety
/// `attributes` is a place.
unsafe fn wait_for_outcome(
    vi: Option<Handle>,
    attributes: *mut ViAttributes,
) -> Result<(), Return> {
    let theirs = wait_on_nic(vi, timeout_of(c_ulong::MAX), |state| state.outcome(vi)?.transpose())?;
    // SAFETY: the caller's promise.
    unsafe { write_to(attributes, theirs) }
}
