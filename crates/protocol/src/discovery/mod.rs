//! Where nodes are, and who may claim so: devices and the simulator put it around
//! [`reliable::Endpoint`](crate::reliable::Endpoint).
//!
//! - [`Places`] numbers the places that frames come from and go to, and forgets those that no link
//!   uses.
//! - [`seek`] has the frames by which nodes ask for each other's places. An answer counts only with
//!   one of our [`Nonces`].
//! - [`Neighbours`] remembers where each node was last heard; a [`NeighbourTable`] has one.
//! - [`Claims`] decides about a node that asks for a link from another place: it must wait until
//!   its old place does not answer.
//!
//! [`Discovery`] joins all of them for one function.

mod claims;
mod neighbour_table;
mod neighbours;
mod nonces;
mod places;
pub mod seek;

pub use claims::Claims;
pub use neighbour_table::{Binding, NeighbourTable};
pub use neighbours::{NEIGHBOURS, Neighbours, STATION_NEIGHBOURS};
pub use nonces::Nonces;
pub use places::{PLACES, Places};

use bellwire_wire::frame::seek::SeekBody;
use seek::{ANY_NODE, SeekFrame};

use crate::Secret;
use crate::reliable::{PathId, PlaceCheck};

/// What one function knows of places, except for its device's [`NeighbourTable`].
pub struct Discovery<P> {
    own: u32,
    frame_bytes: u32,
    /// The numbers of places.
    pub places: Places<P>,
    nonces: Nonces,
    claims: Claims<P>,
}

/// What a Seek or a Here means to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekOutcome {
    /// It asks for us: answer with this body, to this function of the asking node.
    Asked(SeekBody, u8),
    /// This node answered our Seek.
    Answered {
        /// The node.
        node: u32,
        /// Whether this is a further place of the node.
        is_further: bool,
    },
    /// It was not for us, or answers no Seek of ours.
    Ignored,
}

impl<P: Copy + Ord> Discovery<P> {
    /// For a function of node `own`, which takes frames of up to `frame_bytes` bytes.
    pub fn new(own: u32, frame_bytes: usize, secret: Secret) -> Self {
        Discovery {
            own,
            frame_bytes: frame_bytes as u32,
            places: Places::default(),
            nonces: Nonces::new(secret),
            claims: Claims::default(),
        }
    }

    /// The Seek for the place of `node`.
    pub fn seek(&self, node: u32, now_ns: u64) -> SeekBody {
        let nonce = self.nonces.nonce(node, now_ns);
        SeekBody { from: self.own, to: node, frame_bytes: self.frame_bytes, nonce }
    }

    /// Takes in a frame from `from`. A Seek proves nothing, so nothing is learnt from it.
    pub fn handle(
        &mut self,
        table: &mut impl NeighbourTable<P>,
        from: P,
        (frame, function): (SeekFrame, u8),
        now_ns: u64,
    ) -> SeekOutcome {
        match frame {
            SeekFrame::Seek(body) if body.to == self.own || body.to == ANY_NODE => {
                let (to, frame_bytes) = (body.from, self.frame_bytes);
                SeekOutcome::Asked(SeekBody { from: self.own, to, frame_bytes, ..body }, function)
            }
            SeekFrame::Here(body) if self.nonces.is_answer(body.from, body.nonce, now_ns) => {
                self.claims.answered(body.from, from, now_ns);
                let is_further = table.announced(body.from, from);
                SeekOutcome::Answered { node: body.from, is_further }
            }
            SeekFrame::Seek(_) | SeekFrame::Here(_) => SeekOutcome::Ignored,
        }
    }

    /// Whether a node that asks for a link by a path is there. A number that is bound to an address
    /// belongs to that address. A chosen number belongs to the station where it was last heard,
    /// until nothing answers there.
    #[cold]
    pub fn check_place(
        &mut self,
        table: &mut impl NeighbourTable<P>,
        node: u32,
        path: PathId,
        now_ns: u64,
    ) -> PlaceCheck {
        let Some(place) = self.places.place(path) else { return PlaceCheck::Pending };
        match table.binding(node, place) {
            Binding::Here => PlaceCheck::Belongs,
            Binding::Elsewhere => PlaceCheck::Elsewhere,
            Binding::None => match table.other_place(node, place) {
                Some(old) => self.claims.check(node, old, now_ns),
                None => PlaceCheck::Belongs,
            },
        }
    }

    /// The next Seek to the old place of a claimed node: its destination and its body.
    pub fn poll_seek(&mut self, now_ns: u64) -> Option<(P, SeekBody)> {
        let (node, place) = self.claims.poll_seek(now_ns)?;
        Some((place, self.seek(node, now_ns)))
    }

    /// When to call [`poll_seek`](Self::poll_seek) again.
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        self.claims.next_deadline()
    }
}
