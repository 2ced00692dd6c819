//! Connected endpoints: how connections begin and end. The connection itself is in
//! `bellwire-tagged`.

use crate::abi::{Ops, error, not_offered, ops, value};
use crate::address;
use crate::bound::Bound;
use crate::ep::{self, Ep, State};
use crate::object::given;
use bellwire_tagged::{
    CONNECTION_BYTES, ConnectionEvent, ConnectionRequest, Endpoint, TaggedCompletion,
};
use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::ptr::null_mut;

/// The connection operations of an endpoint.
pub static CM: Ops<9> = ops![
    not_offered,
    ep::name,
    peer,
    connect,
    not_offered,
    accept,
    not_offered,
    shutdown,
    not_offered,
];

/// The connection state of an endpoint.
#[derive(Default)]
pub struct Line {
    /// The request that the endpoint was opened for, until it accepts.
    request: Option<ConnectionRequest>,
    /// The peer's name.
    peer: Option<SocketAddrV4>,
}

impl Line {
    /// For an endpoint that answers `request`, or that will connect itself if there is none.
    pub fn new(request: Option<ConnectionRequest>) -> Line {
        let peer = request.map(|request| address::address_of(request.from));
        Line { request, peer }
    }

    /// Ends the connection of an endpoint that is being closed: a waiting or connected peer is
    /// told.
    pub fn end(&mut self, endpoint: &mut Endpoint) {
        if let Some(request) = self.request.take() {
            // Without room for the answer the peer notices by itself.
            let _ = endpoint.reject(&request, &[]);
        }
        endpoint.disconnect(&mut |_: TaggedCompletion| {});
    }
}

impl Bound {
    /// Reports a connection event to the event queue.
    #[cold]
    pub fn tell_connection(&mut self, event: ConnectionEvent<'_>) {
        // SAFETY: bound objects are closed after the endpoint.
        let Some(eq) = (unsafe { self.eq.as_ref() }) else { return };
        match event {
            ConnectionEvent::Connected(says) => {
                eq.tell_connection(value::EVENT_CONNECTED, self.fid, null_mut(), says);
            }
            ConnectionEvent::Rejected(says) => {
                eq.tell_refused(self.fid, error::ECONNREFUSED, says);
            }
            ConnectionEvent::Disconnected => {
                eq.tell_connection(value::EVENT_SHUTDOWN, self.fid, null_mut(), &[]);
            }
            // Only passive endpoints listen.
            ConnectionEvent::Requested(..) => {}
        }
    }
}

/// The private data of a request or an answer; `None`: too long, or missing.
///
/// # Safety
/// `from` has `length` bytes, or is null.
pub unsafe fn words<'a>(from: *const c_void, length: usize) -> Option<&'a [u8]> {
    match length {
        0 => Some(&[]),
        _ if from.is_null() => None,
        // SAFETY: the caller's promise.
        1..=CONNECTION_BYTES => Some(unsafe { std::slice::from_raw_parts(from.cast(), length) }),
        _ => None,
    }
}

unsafe extern "C" fn connect(
    ep: *mut Ep,
    to: *const c_void,
    says: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let (Some(to), Some(says)) = (address::read(to), words(says, length)) else {
            return -error::EINVAL;
        };
        let enabled = ep::enable(ep);
        if enabled != 0 {
            return enabled;
        }
        let mut state = (*ep).hold();
        if state.endpoint.connected().is_some() {
            return -error::EISCONN;
        }
        match state.endpoint.connect(address::function_at(to), says) {
            Ok(()) => {
                state.line.peer = Some(to);
                0
            }
            Err(refusal) => state.refused(refusal) as c_int,
        }
    }
}

unsafe extern "C" fn accept(ep: *mut Ep, says: *const c_void, length: usize) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(says) = words(says, length) else { return -error::EINVAL };
        let enabled = ep::enable(ep);
        if enabled != 0 {
            return enabled;
        }
        let mut state = (*ep).hold();
        let State { endpoint, line, .. } = &mut *state;
        let Some(request) = line.request else { return -error::EOPBADSTATE };
        match endpoint.accept(&request, says) {
            Ok(()) => {
                line.request = None;
                0
            }
            Err(refusal) => state.refused(refusal) as c_int,
        }
    }
}

unsafe extern "C" fn shutdown(ep: *mut Ep, flags: u64) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let State { endpoint, bound, .. } = &mut *state;
        if endpoint.connected().is_none() {
            return -error::ENOTCONN;
        }
        endpoint.disconnect(bound);
    }
    0
}

unsafe extern "C" fn peer(ep: *mut Ep, into: *mut c_void, length: *mut usize) -> c_int {
    given!(length);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        match (*ep).hold().line.peer {
            None => -error::ENOTCONN,
            Some(peer) if address::write(peer, into, length) => 0,
            Some(_) => -error::ETOOSMALL,
        }
    }
}
