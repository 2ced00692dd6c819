//! Connected endpoints: how connections begin and end. The connection itself is in
//! `bellwire-tagged`.

use crate::abi::{EqEntry, Ops, calls, enosys, error, ops, value};
use crate::address::{self, SocketAddress};
use crate::bound::Bound;
use crate::ep::{self, ActiveEndpoint, State};
use crate::errno::Result;
use crate::pointer::Buffer;
use bellwire_tagged::{
    CONNECTION_BYTES, ConnectionEvent, ConnectionRequest, Endpoint, TaggedCompletion,
};
use std::ffi::c_int;
use std::net::SocketAddrV4;

/// fi_cm(3).
pub static CM: Ops<9> =
    ops![enosys, ep::getname, getpeer, connect, enosys, accept, enosys, shutdown];

/// The connection state of an endpoint.
#[derive(Default)]
pub struct Connection {
    /// The request that the endpoint was opened for, until it accepts.
    request: Option<ConnectionRequest>,
    /// The peer's name.
    peer: Option<SocketAddrV4>,
}

impl Connection {
    /// For an endpoint that answers `request`, or that will connect itself if there is none.
    pub fn new(request: Option<ConnectionRequest>) -> Connection {
        let peer = request.map(|request| address::address_of(request.from));
        Connection { request, peer }
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
    pub fn report_connection(&mut self, event: ConnectionEvent<'_>) {
        let Some(eq) = &self.eq else { return };
        let fid = self.endpoint;
        match event {
            ConnectionEvent::Connected(private_data) => {
                eq.report_connection(value::EVENT_CONNECTED, fid, None, private_data);
            }
            ConnectionEvent::Rejected(private_data) => {
                let entry = EqEntry { fid, context: fid.context(), data: 0 };
                eq.report_error(entry, error::ECONNREFUSED, private_data);
            }
            ConnectionEvent::Disconnected => {
                eq.report_connection(value::EVENT_SHUTDOWN, fid, None, &[]);
            }
            // Only passive endpoints listen.
            ConnectionEvent::Requested(..) => {}
        }
    }
}

/// The private data of a request or an answer. `EINVAL`: too long, or missing.
pub fn private_data<'a>(from: Buffer, length: usize) -> Result<&'a [u8]> {
    if length > CONNECTION_BYTES { Err(error::EINVAL) } else { from.elements(length) }
}

calls! {
    ep: &ActiveEndpoint;

    fn connect(to: Option<&SocketAddress>, data: Buffer, length: usize) -> c_int {
        let to = to.and_then(|to| address::read(to)).ok_or(error::EINVAL)?;
        let data = private_data(data, length)?;
        ep.enable()?;
        let mut state = ep.lock();
        if state.endpoint.connected().is_some() {
            return Err(error::EISCONN);
        }
        let asked = state.endpoint.connect(address::function_at(to), data);
        asked.map_err(|refusal| state.refused(refusal))?;
        state.connection.peer = Some(to);
        Ok(())
    }

    fn accept(data: Buffer, length: usize) -> c_int {
        let data = private_data(data, length)?;
        ep.enable()?;
        let mut state = ep.lock();
        let request = state.connection.request.ok_or(error::EOPBADSTATE)?;
        let accepted = state.endpoint.accept(&request, data);
        accepted.map_err(|refusal| state.refused(refusal))?;
        state.connection.request = None;
        Ok(())
    }

    fn shutdown(flags: u64) -> c_int {
        if flags != 0 {
            return Err(error::EBADFLAGS);
        }
        let mut state = ep.lock();
        let State { endpoint, bound, .. } = &mut *state;
        endpoint.connected().ok_or(error::ENOTCONN)?;
        endpoint.disconnect(bound);
        Ok(())
    }

    fn getpeer(into: Buffer, length: Option<&mut usize>) -> c_int {
        let length = length.ok_or(error::EINVAL)?;
        let peer = ep.lock().connection.peer.ok_or(error::ENOTCONN)?;
        address::write(peer, into, length)
    }
}
