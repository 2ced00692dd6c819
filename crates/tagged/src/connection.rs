//! Connected endpoints: each has one peer only.
//!
//! An endpoint asks one that listens ([`crate::Endpoint::connect`]). The answer comes from another
//! endpoint of the same program. Either that one accepts and is the peer from then on
//! ([`crate::Endpoint::accept`]), or it rejects ([`crate::Endpoint::reject`]). The request's random
//! number ties the answer to the request; only those two programs know it. (Connections of
//! `bellwire` are between queue pairs, and the function that was asked accepts them. Here each
//! connection has a function of its own.)
//!
//! A connection ends when one side disconnects, after all that it sent before, or when one side is
//! gone. Remaining receives are cancelled when nothing has come for a while. So a program with
//! several connections sees the messages that were sent by them first. While there is a connection,
//! or an answer is due, the peer is probed periodically.

use crate::completion::{ConnectionEvent, ConnectionRequest, Peer, PostError, Sink};
use crate::control::Control;
use crate::head::Kind;
use crate::transport::{Transport, random_bytes};
use bellwire::{Error, FunctionAddress};

/// Maximum length of the private data of a request or an answer, in bytes.
pub const CONNECTION_BYTES: usize = 240;

/// The peers of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerMode {
    Any,
    /// None: not connected yet, or not any more.
    Disconnected,
    /// It has asked, and waits for an answer.
    Connecting {
        to: Peer,
        request: u64,
    },
    /// It has accepted, and the peer has not confirmed yet.
    Accepting(Peer),
    Connected(Peer),
}

impl PeerMode {
    /// Whether this endpoint takes a message of this kind from `peer`.
    #[inline]
    pub(crate) fn admits(self, peer: Peer, kind: Kind) -> bool {
        use Kind::{Accept, Connect, Credit, Disconnect, Probe, Reject};
        self == PeerMode::Any
            || self.connected() == Some(peer)
            || matches!(kind, Accept | Probe | Connect | Credit | Disconnect | Reject)
    }

    fn connected(self) -> Option<Peer> {
        match self {
            PeerMode::Accepting(peer) | PeerMode::Connected(peer) => Some(peer),
            _ => None,
        }
    }
}

/// The connection of an endpoint.
pub(crate) struct Connection {
    mode: PeerMode,
    /// It takes requests.
    pub(crate) listens: bool,
    /// It has ended, and the remaining receives must be cancelled.
    pub(crate) disconnected: bool,
}

// Calls of the program; `Endpoint` documents them.
impl Connection {
    /// Without restriction: the endpoint has any number of peers.
    pub(crate) fn new() -> Connection {
        Connection { mode: PeerMode::Any, listens: false, disconnected: false }
    }

    #[inline(always)]
    pub(crate) fn mode(&self) -> PeerMode {
        self.mode
    }

    pub(crate) fn restrict_to_peer(&mut self) {
        self.mode = PeerMode::Disconnected;
    }

    pub(crate) fn connected(&self) -> Option<Peer> {
        self.mode.connected()
    }

    pub(crate) fn connect(
        &mut self,
        transport: &mut Transport,
        to: FunctionAddress,
        private_data: &[u8],
    ) -> Result<(), PostError> {
        self.check_connectable("connecting", private_data)?;
        let (to, request) = (transport.peers.at(to), u64::from_le_bytes(random_bytes()?));
        self.mode = PeerMode::Connecting { to, request };
        send(transport, to, Kind::Connect, request, private_data);
        Ok(())
    }

    pub(crate) fn accept(
        &mut self,
        transport: &mut Transport,
        request: &ConnectionRequest,
        private_data: &[u8],
    ) -> Result<(), PostError> {
        self.check_connectable("accepting a connection", private_data)?;
        let peer = transport.peers.at(request.from);
        transport.peer(peer).expect(request.incarnation);
        self.mode = PeerMode::Accepting(peer);
        send(transport, peer, Kind::Accept, request.number, private_data);
        Ok(())
    }

    /// Gives up a request. Returns the peer of the connection, which the caller ends.
    pub(crate) fn give_up(&mut self) -> Option<Peer> {
        if let PeerMode::Connecting { .. } = self.mode {
            self.mode = PeerMode::Disconnected;
        }
        self.connected()
    }

    fn check_connectable(&self, call: &'static str, private_data: &[u8]) -> Result<(), PostError> {
        let (state, hint) = match self.mode {
            PeerMode::Disconnected => return check_private_data(private_data),
            PeerMode::Any => ("open to any peer", "restrict it to one peer first"),
            PeerMode::Connecting { .. } => {
                ("connecting", "wait for the answer, or disconnect it first")
            }
            PeerMode::Accepting(_) | PeerMode::Connected(_) => ("connected", "disconnect it first"),
        };
        Err(PostError::Failed(Error::WrongState { call, state, hint }))
    }
}

/// Rejects a request.
pub(crate) fn reject(
    transport: &mut Transport,
    request: &ConnectionRequest,
    private_data: &[u8],
) -> Result<(), PostError> {
    check_private_data(private_data)?;
    let peer = transport.peers.at(request.from);
    send(transport, peer, Kind::Reject, request.number, private_data);
    Ok(())
}

fn send(transport: &mut Transport, to: Peer, kind: Kind, request: u64, private_data: &[u8]) {
    let private_data = private_data.into();
    transport.send_control(to, Control::Handshake { kind, request, private_data });
}

fn check_private_data(private_data: &[u8]) -> Result<(), PostError> {
    if private_data.len() <= CONNECTION_BYTES {
        return Ok(());
    }
    let (length, maximum) = (private_data.len(), CONNECTION_BYTES);
    let what = "the private data of a connection";
    Err(PostError::Failed(Error::TooLong { length, maximum, what }))
}

// Messages of peers.
impl Connection {
    /// The peer whose presence matters even if nothing is sent.
    pub(crate) fn awaited_peer(&self) -> Option<Peer> {
        match self.mode {
            PeerMode::Connecting { to, .. } => Some(to),
            mode => mode.connected(),
        }
    }

    #[cold]
    pub(crate) fn requested(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        request: ConnectionRequest,
        private_data: &[u8],
        sink: &mut impl Sink,
    ) {
        if self.listens {
            sink.connection(ConnectionEvent::Requested(request, private_data));
        } else {
            send(transport, peer, Kind::Reject, request.number, &[]);
        }
    }

    #[cold]
    pub(crate) fn accepted(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        request: u64,
        private_data: &[u8],
        sink: &mut impl Sink,
    ) {
        if !self.is_connecting(request) {
            // We gave up before: the peer must not believe in a connection.
            return transport.send_control(peer, Control::Disconnect);
        }
        self.mode = PeerMode::Connected(peer);
        transport.send_control(peer, Control::Credit);
        sink.connection(ConnectionEvent::Connected(private_data));
    }

    /// The peer is there, so it has received what we sent before.
    #[inline]
    pub(crate) fn confirmed(&mut self, peer: Peer, sink: &mut impl Sink) {
        if self.mode == PeerMode::Accepting(peer) {
            self.mode = PeerMode::Connected(peer);
            sink.connection(ConnectionEvent::Connected(&[]));
        }
    }

    #[cold]
    pub(crate) fn rejected(&mut self, request: u64, private_data: &[u8], sink: &mut impl Sink) {
        if self.is_connecting(request) {
            self.mode = PeerMode::Disconnected;
            sink.connection(ConnectionEvent::Rejected(private_data));
        }
    }

    fn is_connecting(&self, about: u64) -> bool {
        matches!(self.mode, PeerMode::Connecting { request, .. } if request == about)
    }

    /// A peer is gone, and with it the connection.
    pub(crate) fn peer_gone(&mut self, peer: Peer, sink: &mut impl Sink) {
        if self.awaited_peer() != Some(peer) {
            return;
        }
        let before = std::mem::replace(&mut self.mode, PeerMode::Disconnected);
        if let PeerMode::Connected(_) = before {
            self.disconnected = true;
            sink.connection(ConnectionEvent::Disconnected);
        } else {
            sink.connection(ConnectionEvent::Rejected(&[]));
        }
    }
}
