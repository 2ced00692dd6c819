//! Connected endpoints: each has one peer only.
//!
//! An endpoint asks one that listens ([`Endpoint::connect`]). The answer comes from another
//! endpoint of the same program. Either that one accepts and is the peer from then on
//! ([`Endpoint::accept`]), or it rejects ([`Endpoint::reject`]). The request's random number ties
//! the answer to the request; only those two programs know it. (Connections of `bellwire` are
//! between queue pairs, and the function that was asked accepts them. Here each connection has a
//! function of its own.)
//!
//! A connection ends when one side says so, after all that it sent before, or when one side is
//! gone. Remaining receives are cancelled when nothing has come for a while. So a program with
//! several connections sees the messages that were sent by them first. While there is a connection,
//! or an answer is due, the peer is asked periodically whether it is there.

use crate::control::Control;
use crate::endpoint::{Endpoint, draw};
use crate::head::{Head, Kind};
use crate::{Peer, Refusal, Sink};
use bellwire::{Error, FunctionAddress, Status};

/// Maximum length of the program's words with a request or an answer, in bytes.
pub const CONNECTION_BYTES: usize = 240;

/// A request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The endpoint that asks.
    pub from: FunctionAddress,
    number: u64,
    incarnation: u16,
}

/// Events of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent<'a> {
    /// A request, with its words.
    Asked(Request, &'a [u8]),
    /// There is a connection: our request was accepted, with these words, or the requester has
    /// confirmed our acceptance.
    Connected(&'a [u8]),
    /// Our request was rejected, with these words. Without words, perhaps nobody listens there, or
    /// nobody is there. Or the requester gave up before we accepted.
    Refused(&'a [u8]),
    /// The peer has ended the connection, or is gone.
    Ended,
}

/// The peers of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Anybody,
    /// None: not connected yet, or not any more.
    Nobody,
    /// It has asked, and waits for an answer.
    Asking {
        to: Peer,
        number: u64,
    },
    /// It has accepted, and the peer has not confirmed yet.
    Accepting(Peer),
    Only(Peer),
}

impl Company {
    /// Whether this endpoint takes a message of this kind from `peer`.
    #[inline]
    pub(crate) fn admits(self, peer: Peer, kind: Kind) -> bool {
        use Kind::{Accept, Ask, Connect, Credit, Disconnect, Reject};
        self == Company::Anybody
            || self.connected() == Some(peer)
            || matches!(kind, Accept | Ask | Connect | Credit | Disconnect | Reject)
    }

    fn connected(self) -> Option<Peer> {
        match self {
            Company::Accepting(peer) | Company::Only(peer) => Some(peer),
            _ => None,
        }
    }
}

// Calls of the program.
impl Endpoint {
    /// From now on it has no peers, unless it is connected.
    pub fn seclude(&mut self) {
        self.company = Company::Nobody;
    }

    /// From now on it reports requests for connections.
    pub fn listen(&mut self) {
        self.listens = true;
    }

    /// The peer of its connection.
    pub fn connected(&self) -> Option<Peer> {
        self.company.connected()
    }

    /// Asks the endpoint that listens at `to` for a connection. The result is
    /// [`ConnectionEvent::Connected`] or [`ConnectionEvent::Refused`].
    ///
    /// # Errors
    /// [`Refusal::Failed`] if it is not [secluded](Endpoint::seclude), is connected or asking
    /// already, or says more than [`CONNECTION_BYTES`].
    pub fn connect(&mut self, to: FunctionAddress, says: &[u8]) -> Result<(), Refusal> {
        self.check_connectable("connecting", says)?;
        let (to, number) = (self.peers.at(to), u64::from_le_bytes(draw()?));
        self.company = Company::Asking { to, number };
        self.tell(to, Control::Connect { number, says: says.into() });
        Ok(())
    }

    /// Accepts a request that came to another endpoint of this program. From now on this endpoint
    /// is connected with the requester. [`ConnectionEvent::Connected`] is reported when the
    /// requester has heard of it.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn accept(&mut self, request: &Request, says: &[u8]) -> Result<(), Refusal> {
        self.check_connectable("accepting a connection", says)?;
        let peer = self.peers.at(request.from);
        self.peers[peer].expect(request.incarnation);
        self.company = Company::Accepting(peer);
        self.tell(peer, Control::Accept { number: request.number, says: says.into() });
        Ok(())
    }

    /// Rejects a request, which may have come to another endpoint of this program.
    ///
    /// # Errors
    /// [`Refusal::Failed`] if it says more than [`CONNECTION_BYTES`].
    pub fn reject(&mut self, request: &Request, says: &[u8]) -> Result<(), Refusal> {
        check_words(says)?;
        let peer = self.peers.at(request.from);
        self.tell(peer, Control::Reject { number: request.number, says: says.into() });
        Ok(())
    }

    /// Ends a connection, or the wait for one. Unfinished operations fail. The peer is told after
    /// all packets that have left for it; pieces that still wait for room are dropped. This side
    /// also gets [`ConnectionEvent::Ended`].
    pub fn disconnect(&mut self, sink: &mut impl Sink) {
        match self.company {
            Company::Accepting(peer) | Company::Only(peer) => {
                self.peer_gone(peer, Status::Flushed, sink);
                self.tell(peer, Control::Disconnect);
            }
            Company::Asking { .. } => self.company = Company::Nobody,
            Company::Anybody | Company::Nobody => {}
        }
    }

    fn check_connectable(&self, call: &'static str, says: &[u8]) -> Result<(), Refusal> {
        let (state, hint) = match self.company {
            Company::Nobody => return check_words(says),
            Company::Anybody => ("for anybody", "seclude it first"),
            Company::Asking { .. } => ("asking", "wait for the answer, or disconnect it first"),
            Company::Accepting(_) | Company::Only(_) => ("connected", "disconnect it first"),
        };
        Err(Refusal::Failed(Error::WrongState { call, state, hint }))
    }
}

fn check_words(says: &[u8]) -> Result<(), Refusal> {
    if says.len() <= CONNECTION_BYTES {
        return Ok(());
    }
    let (length, maximum) = (says.len(), CONNECTION_BYTES);
    let what = "the words beside a connection";
    Err(Refusal::Failed(Error::TooLong { length, maximum, what }))
}

// Messages of peers.
impl Endpoint {
    /// The peer whose presence matters even if nothing is sent.
    pub(crate) fn companion(&self) -> Option<Peer> {
        match self.company {
            Company::Asking { to, .. } => Some(to),
            Company::Accepting(peer) | Company::Only(peer) => Some(peer),
            Company::Anybody | Company::Nobody => None,
        }
    }

    #[cold]
    pub(crate) fn asked_for_connection(
        &mut self,
        peer: Peer,
        head: Head,
        number: u64,
        says: &[u8],
        sink: &mut impl Sink,
    ) {
        if self.listens {
            let (from, incarnation) = (self.address_of(peer), head.incarnation);
            sink.connection(ConnectionEvent::Asked(Request { from, number, incarnation }, says));
        } else {
            self.tell(peer, Control::Reject { number, says: Box::default() });
        }
    }

    #[cold]
    pub(crate) fn accepted(&mut self, peer: Peer, number: u64, says: &[u8], sink: &mut impl Sink) {
        if !self.is_asking(number) {
            // We gave up before: the peer must not believe in a connection.
            return self.tell(peer, Control::Disconnect);
        }
        self.company = Company::Only(peer);
        self.tell_credit(peer);
        sink.connection(ConnectionEvent::Connected(says));
    }

    /// The peer is there, so it has heard what we said before.
    #[inline]
    pub(crate) fn confirmed(&mut self, peer: Peer, sink: &mut impl Sink) {
        if self.company == Company::Accepting(peer) {
            self.company = Company::Only(peer);
            sink.connection(ConnectionEvent::Connected(&[]));
        }
    }

    #[cold]
    pub(crate) fn rejected(&mut self, number: u64, says: &[u8], sink: &mut impl Sink) {
        if self.is_asking(number) {
            self.company = Company::Nobody;
            sink.connection(ConnectionEvent::Refused(says));
        }
    }

    fn is_asking(&self, about: u64) -> bool {
        matches!(self.company, Company::Asking { number, .. } if number == about)
    }

    #[cold]
    pub(crate) fn disconnected(&mut self, peer: Peer, sink: &mut impl Sink) {
        if self.connected() == Some(peer) {
            self.peer_gone(peer, Status::PeerGone, sink);
        }
    }

    /// A peer is gone, and with it the connection.
    pub(crate) fn connection_lost(&mut self, peer: Peer, sink: &mut impl Sink) {
        if self.companion() != Some(peer) {
            return;
        }
        let before = std::mem::replace(&mut self.company, Company::Nobody);
        if let Company::Only(_) = before {
            self.parted = true;
            sink.connection(ConnectionEvent::Ended);
        } else {
            sink.connection(ConnectionEvent::Refused(&[]));
        }
    }
}
