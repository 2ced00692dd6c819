//! Where nodes are, and who may claim so: devices and the simulator put it around
//! [`reliable::Endpoint`](crate::reliable::Endpoint).
//!
//! - [`Places`] names the places that frames come from and go to, and forgets those that no link
//!   uses.
//! - [`seek`] has the frames by which nodes ask for each other's places. [`Questions`] makes the
//!   nonces: an answer counts only if it was asked for.
//! - [`Nodes`] remembers where each node was last heard; it is one possible [`Book`].
//! - [`Claims`] decides about a node that asks for a link from another place: it must wait until
//!   its old place does not answer.
//!
//! [`Discovery`] joins all of them for one function.

mod book;
mod claims;
mod nodes;
mod places;
mod questions;
pub mod seek;

pub use book::{Book, Owner};
pub use claims::Claims;
pub use nodes::{NODES, Nodes, STATION_NODES};
pub use places::{PLACES, Places};
pub use questions::Questions;

use bellwire_wire::frame::seek::SeekBody;
use seek::{ANYBODY, Said};

use crate::Secret;
use crate::reliable::{PathId, PlaceCheck};

/// What one function knows of places, except for its device's [`Book`].
pub struct Discovery<P> {
    own: u32,
    frame_bytes: u32,
    places: Places<P>,
    questions: Questions,
    claims: Claims<P>,
}

/// What a question or an answer means to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It asks for us: answer with this body, to this function of the asking node.
    Asked(SeekBody, u8),
    /// This node answered our question.
    Answered {
        /// The node.
        node: u32,
        /// Whether this is a further place of the node.
        is_further: bool,
    },
    /// It was not for us, or answers no question of ours.
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

    /// The names of places.
    #[inline]
    pub fn places(&mut self) -> &mut Places<P> {
        &mut self.places
    }

    /// The place of a name, unless it was forgotten.
    #[inline]
    pub fn place(&self, name: PathId) -> Option<P> {
        self.places.place(name)
    }

    /// The question for the place of `node`.
    pub fn question(&self, node: u32, now_ns: u64) -> SeekBody {
        let nonce = self.questions.nonce(node, now_ns);
        SeekBody { from: self.own, to: node, frame_bytes: self.frame_bytes, nonce }
    }

    /// Takes in a frame from `from`. A question proves nothing, so nothing is learnt from it.
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

    /// Whether a node that asks for a link by a path is there. A number made from an address
    /// belongs to that address. A chosen number belongs to the station where it was last heard,
    /// until nothing answers there.
    #[cold]
    pub fn check_place(
        &mut self,
        book: &mut impl Book<P>,
        node: u32,
        path: PathId,
        now_ns: u64,
    ) -> PlaceCheck {
        let Some(place) = self.places.place(path) else { return PlaceCheck::Pending };
        match book.owner(node, place) {
            Owner::This => PlaceCheck::Belongs,
            Owner::Other => PlaceCheck::Elsewhere,
            Owner::Anybody => match book.other_place(node, place) {
                Some(old) => self.claims.judge(node, old, now_ns),
                None => PlaceCheck::Belongs,
            },
        }
    }

    /// The next question to the old place of a claimed node: its destination and its body.
    pub fn poll_question(&mut self, now_ns: u64) -> Option<(P, SeekBody)> {
        let (node, place) = self.claims.poll_question(now_ns)?;
        Some((place, self.question(node, now_ns)))
    }

    /// When to call [`poll_question`](Self::poll_question) again.
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        self.claims.next_deadline()
    }
}
