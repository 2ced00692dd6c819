//! Two interfaces over a link with hosts that speak TLPs, host memories and software, as the
//! model's tests have them. The first one is compared with the gates.

use std::cell::Cell;
use std::rc::Rc;

use bellwire_model::cycle::chpp_link_nic::{In, Out, Shape};

use super::chpp_nic::nic_path;
use super::nic_core::core_path::{self, Fault, Path};
use crate::bench::Load;

#[allow(dead_code, reason = "the tests of the model look at more")]
#[path = "../../../../crates/model/tests/model/link_nic_path.rs"]
mod link_nic_path;

/// The interface, and what is around it.
pub struct ChppLinkNicLoad {
    path: Path,
    first: Rc<Cell<link_nic_path::Seen>>,
}

impl ChppLinkNicLoad {
    /// Interfaces of this shape.
    pub fn new(shape: Shape, seed: u64) -> ChppLinkNicLoad {
        let wires = link_nic_path::Wires::Hit;
        let (path, [first, _]) = link_nic_path::linked(shape, seed, wires, Fault::None);
        ChppLinkNicLoad { path, first }
    }
}

impl Load for ChppLinkNicLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.path.cycle(true);
        let link_nic_path::Seen { enters, leaves, .. } = self.first.get();
        (enters, leaves)
    }
}
