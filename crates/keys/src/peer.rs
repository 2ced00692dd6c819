//! One peer: the function at a place, and its sessions.
//!
//! ```text
//!   Hello comes, Reply goes            the peer seals a frame with it
//!   ------------------------> next ------------------------------------+
//!                                                                      v
//!   Hello goes, Reply comes -----------------------------------> current ---> earlier ---> (none)
//! ```
//! Frames are sealed with `current`, and opened with all. So both sides change at different times,
//! and frames on their way are not lost. If both sides ask at once, two sessions begin, and each
//! side may seal with another one. If that happens twice, frames of three earlier ones are on their
//! way.

use bellwire_protocol::canary::planted;

use crate::handshake::Handshake;
use crate::session::Session;

/// Pauses between repetitions of a request, in ns: the first, and the longest.
const AGAIN_NS: [u64; 2] = [2_000_000, 320_000_000];
/// A request that is not answered for this time, in ns, is given up: the next one begins anew.
const REQUEST_NS: u64 = 3_000_000_000;

/// A peer.
pub(crate) struct Peer<P> {
    pub place: P,
    pub function: u8,
    pub current: Option<Session>,
    /// The sessions before the current one, the latest first.
    pub earlier: [Option<Session>; 3],
    /// The peer asked for it, and has not shown that it has the keys.
    pub next: Option<Next>,
    pub request: Option<Request>,
    /// The newest short frame that waits for the first session.
    pub held: Vec<u8>,
    pub used_ns: u64,
}

/// An unconfirmed session.
pub(crate) struct Next {
    pub session: Session,
    /// The Reply, in case it is lost.
    pub reply: Vec<u8>,
}

/// A request for a session.
pub(crate) struct Request {
    pub index: u64,
    /// The Knock or the Hello, to be repeated.
    pub frame: Vec<u8>,
    pub nonce: u64,
    /// Once a cookie came: that cookie, and the handshake.
    pub hello: Option<(u64, Handshake)>,
    give_up_ns: u64,
    again_ns: u64,
    pause_ns: u64,
}

/// Which session of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Current,
    Earlier,
    Next,
}

impl<P> Peer<P> {
    pub fn new(place: P, function: u8, now_ns: u64) -> Peer<P> {
        Peer {
            place,
            function,
            current: None,
            earlier: [const { None }; 3],
            next: None,
            request: None,
            held: Vec::new(),
            used_ns: now_ns,
        }
    }

    /// The session with this index.
    #[inline]
    pub fn session(&mut self, index: u64) -> Option<(Which, &mut Session)> {
        if let Some(session) = self.current.as_mut().filter(|session| session.index == index) {
            return Some((Which::Current, session));
        }
        for session in self.earlier.iter_mut().flatten() {
            if session.index == index {
                return Some((Which::Earlier, session));
            }
        }
        let next = self.next.as_mut().map(|next| &mut next.session);
        next.filter(|session| session.index == index).map(|session| (Which::Next, session))
    }

    /// The current session and the earlier ones.
    fn begun(&self) -> impl Iterator<Item = &Session> {
        self.current.iter().chain(self.earlier.iter().flatten())
    }

    /// Whether a session or request of ours has this index.
    pub fn has(&self, index: u64) -> bool {
        let next = self.next.as_ref().map(|next| &next.session);
        self.begun().chain(next).any(|session| session.index == index)
            || self.request.as_ref().is_some_and(|request| request.index == index)
    }

    /// Whether a session began with this Hello.
    pub fn began_with(&self, hello: u64) -> bool {
        self.begun().any(|other| other.hello == hello)
    }

    /// From now on frames are sealed with `session`.
    pub fn change_to(&mut self, session: Session) {
        self.earlier.rotate_right(1);
        self.earlier[0] = self.current.replace(session);
        if planted("keys-no-earlier") {
            self.earlier[0] = None;
        }
        if planted("keys-two-earlier") {
            self.earlier[2] = None;
        }
    }

    /// The peer has shown that it has the keys of the next session.
    #[cold]
    pub fn confirm(&mut self) {
        if let Some(next) = self.next.take() {
            self.change_to(next.session);
        }
    }

    /// Forgets sessions and requests whose time is over. Whether anything is left.
    pub fn sweep(&mut self, now_ns: u64) -> bool {
        let is_over = |session: &mut Session| session.is_over(now_ns);
        self.current.take_if(is_over);
        for session in &mut self.earlier {
            session.take_if(is_over);
        }
        self.next.take_if(|next| next.session.is_over(now_ns));
        self.request.take_if(|request| request.is_over(now_ns));
        if self.current.is_some() {
            self.held = Vec::new();
        }
        let has_session = self.begun().next().is_some() || self.next.is_some();
        has_session || self.request.is_some()
    }
}

impl Request {
    pub fn new(index: u64, nonce: u64, frame: Vec<u8>, now_ns: u64) -> Request {
        Request {
            index,
            frame,
            nonce,
            hello: None,
            give_up_ns: now_ns + REQUEST_NS,
            again_ns: now_ns + AGAIN_NS[0],
            pause_ns: AGAIN_NS[0],
        }
    }

    /// Whether it is given up.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.give_up_ns
    }

    /// Whether to send it again now.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        if now_ns < self.again_ns {
            return false;
        }
        self.pause_ns = (2 * self.pause_ns).min(AGAIN_NS[1]);
        self.again_ns = now_ns + self.pause_ns;
        true
    }

    /// The cookie came: from now on the Hello is sent.
    pub fn goes_on(&mut self, cookie: u64, handshake: Handshake, hello: Vec<u8>, now_ns: u64) {
        self.hello = Some((cookie, handshake));
        self.frame = hello;
        (self.pause_ns, self.again_ns) = (AGAIN_NS[0], now_ns + AGAIN_NS[0]);
    }
}
