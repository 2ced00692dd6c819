//! Where nodes are, and who may say so: what devices put around [`reliable::Endpoint`](crate::reliable::Endpoint), and the simulator, too.
//!
//! - [`Places`] names the places that frames come from and go to, and forgets those that no link uses.
//! - [`seek`] is how nodes ask for each other's places, and [`Questions`] makes the nonces by which an answer counts only if it was asked for.
//! - [`Nodes`] remembers where each node was last heard, as one [`Book`] of several.
//! - [`Claims`] decides about a node that asks for a link from another place than that: it waits until the old place has been asked and
//!   does not answer.
//!
//! [`Discovery`] is all of them together, for one function.

mod book;
mod claims;
mod nodes;
mod places;
mod questions;
pub mod seek;

pub use book::{Book, Owner};
pub use claims::Claims;
pub use nodes::{NODES, Nodes};
pub use places::{PLACES, Places};
pub use questions::Questions;

use bellwire_wire::frame::seek::SeekBody;
use seek::{ANYBODY, Said};

use crate::Secret;
use crate::reliable::{PathId, Standing};

/// What one function knows of places, but for its device's [`Book`].
pub struct Discovery<P> {
    own: u32,
    frame_bytes: u32,
    places: Places<P>,
    questions: Questions,
    claims: Claims<P>,
}

/// What became of a question or an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It is asked for us: say this, to this function of who asked.
    Asked(SeekBody, u8),
    /// This node answered our question.
    Answered {
        /// Which.
        node: u32,
        /// It is a further place of the node.
        is_further: bool,
    },
    /// It was not for us, or nobody asked for it.
    Nothing,
}

impl<P: Copy + Ord> Discovery<P> {
    /// For a function of node `own`, which takes frames of up to `frame_bytes` bytes.
    pub fn new(own: u32, frame_bytes: usize, secret: Secret) -> Self {
        Discovery {
            own,
            frame_bytes: frame_bytes as u32,
            places: Places::new(),
            questions: Questions::new(secret),
            claims: Claims::new(),
        }
    }

    /// Names of places.
    #[inline]
    pub fn places(&mut self) -> &mut Places<P> {
        &mut self.places
    }

    /// The place of a name, unless it was forgotten.
    #[inline]
    pub fn place(&self, name: PathId) -> Option<P> {
        self.places.place(name)
    }

    /// What to ask, for the place of `node`.
    pub fn question(&self, node: u32, now_ns: u64) -> SeekBody {
        let nonce = self.questions.nonce(node, now_ns);
        SeekBody { from: self.own, to: node, frame_bytes: self.frame_bytes, nonce }
    }

    /// Takes in what somebody at `from` said. Who asks has proved nothing, so nothing is learnt from that.
    pub fn hear(
        &mut self,
        book: &mut impl Book<P>,
        from: P,
        (said, function): (Said, u8),
        now_ns: u64,
    ) -> Heard {
        match said {
            Said::Where(body) if body.to == self.own || body.to == ANYBODY => {
                let (to, frame_bytes) = (body.from, self.frame_bytes);
                Heard::Asked(SeekBody { from: self.own, to, frame_bytes, ..body }, function)
            }
            Said::Here(body) if self.questions.is_answer(body.from, body.nonce, now_ns) => {
                self.claims.answered(body.from, from, now_ns);
                let is_further = book.told(body.from, from);
                Heard::Answered { node: body.from, is_further }
            }
            Said::Where(_) | Said::Here(_) => Heard::Nothing,
        }
    }

    /// Whether a node that asks for a link by a path is there: a number that is made from an address belongs to that address, a chosen
    /// one to the station where it was last heard, until nobody answers there.
    #[cold]
    pub fn standing(
        &mut self,
        book: &mut impl Book<P>,
        node: u32,
        path: PathId,
        now_ns: u64,
    ) -> Standing {
        let Some(place) = self.places.place(path) else { return Standing::Doubtful };
        match book.owner(node, place) {
            Owner::This => Standing::Belongs,
            Owner::Other => Standing::Elsewhere,
            Owner::Anybody => match book.other_place(node, place) {
                Some(old) => self.claims.judge(node, old, now_ns),
                None => Standing::Belongs,
            },
        }
    }

    /// The next question to the old place of a node that somebody says is elsewhere: where to, and what.
    pub fn poll_question(&mut self, now_ns: u64) -> Option<(P, SeekBody)> {
        let (node, place) = self.claims.poll_question(now_ns)?;
        Some((place, self.question(node, now_ns)))
    }

    /// When [`poll_question`](Self::poll_question) wants to be called again.
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        self.claims.next_deadline()
    }
}
