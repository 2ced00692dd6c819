//! Connected endpoints: who speaks with one peer only, and how the two find each other.
//!
//! An endpoint asks one that listens ([`Endpoint::connect`]), and the answer comes from somebody else of the same program: from the endpoint that is its
//! peer from then on ([`Endpoint::accept`]), or from whoever turns it down ([`Endpoint::reject`]). What tells that the answer belongs to the request is the
//! request's number, which is drawn, and which only those two have heard. (The connections of `bellwire` are between queue pairs, and are accepted by the
//! function that was asked; here each connection has a function of its own.)
//!
//! A connection ends when one of the two says so, after all that it sent before, or is gone. Receives that are left are cancelled when nothing else has come for a while, so that
//! whoever has several connections hears of what was sent by them first. While there is a connection, and while an answer is due, the peer is asked
//! now and then whether it is there.

use crate::control::Control;
use crate::endpoint::{Endpoint, draw};
use crate::head::{Head, Kind};
use crate::{Peer, Refusal, Sink};
use bellwire::{Error, FunctionAddress, Status};

/// Longest word of the program beside a request or an answer, in bytes.
pub const CONNECTION_BYTES: usize = 240;

/// Somebody wants a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Who.
    pub from: FunctionAddress,
    number: u64,
    incarnation: u16,
}

/// What happens to connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent<'a> {
    /// Somebody wants one, and says this.
    Asked(Request, &'a [u8]),
    /// There is a connection: our request was accepted, with these words, or whoever asked has heard that we accepted.
    Connected(&'a [u8]),
    /// Our request was turned down, with these words; without words perhaps because nobody listens there, or nobody is there. Or whoever asked gave up before
    /// we accepted.
    Refused(&'a [u8]),
    /// The peer has ended the connection, or is gone.
    Ended,
}

/// Whom an endpoint speaks with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Anybody,
    /// With nobody: not yet, or not any more.
    Nobody,
    /// It has asked, and waits for an answer.
    Asking {
        to: Peer,
        number: u64,
    },
    /// It has accepted, and the peer has not said yet that it knows.
    Accepting(Peer),
    Only(Peer),
}

impl Company {
    /// Whether something of this kind from `peer` is for this endpoint.
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

// What programs do.
impl Endpoint {
    /// It speaks with nobody from now on, unless it is connected.
    pub fn seclude(&mut self) {
        self.company = Company::Nobody;
    }

    /// It tells of requests for connections from now on.
    pub fn listen(&mut self) {
        self.listens = true;
    }

    /// Whom it is connected with.
    pub fn connected(&self) -> Option<Peer> {
        self.company.connected()
    }

    /// Asks whoever listens at `to` for a connection. What becomes of it is told as [`ConnectionEvent::Connected`] or [`ConnectionEvent::Refused`].
    ///
    /// # Errors
    /// [`Refusal::Failed`] if it is not [secluded](Endpoint::seclude), connected or asking already, or says more than [`CONNECTION_BYTES`].
    pub fn connect(&mut self, to: FunctionAddress, says: &[u8]) -> Result<(), Refusal> {
        self.check_connectable("connecting", says)?;
        let (to, number) = (self.peers.at(to), u64::from_le_bytes(draw()?));
        self.company = Company::Asking { to, number };
        self.tell(to, Control::Connect { number, says: says.into() });
        Ok(())
    }

    /// Grants a request, which came to another endpoint of this program: from now on this one is connected with whoever asked, of which
    /// [`ConnectionEvent::Connected`] is told when the other one has heard of it.
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

    /// Turns a request down, which may have come to another endpoint of this program.
    ///
    /// # Errors
    /// [`Refusal::Failed`] if it says more than [`CONNECTION_BYTES`].
    pub fn reject(&mut self, request: &Request, says: &[u8]) -> Result<(), Refusal> {
        check_words(says)?;
        let peer = self.peers.at(request.from);
        self.tell(peer, Control::Reject { number: request.number, says: says.into() });
        Ok(())
    }

    /// Ends a connection, or the waiting for one. What has not finished fails, and the peer is told, after all that has left for it: the end of a message
    /// that is still waiting for room goes no more.
    /// [`ConnectionEvent::Ended`] is told here, too.
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

// What peers say.
impl Endpoint {
    /// Whose being there matters even if nothing is sent.
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

    /// The peer is there, and so it has heard what we said before.
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
