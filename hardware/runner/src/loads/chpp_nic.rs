//! Two interfaces back to back with hosts that speak TLPs, host memories and software, as the
//! model's tests have them. The first one is compared with the gates.

use std::cell::Cell;
use std::rc::Rc;

use bellwire_model::cycle::chpp_nic::{In, Out};
use bellwire_model::cycle::nic_core::Shape;

use super::nic_core::core_path::{self, Fault, Path};
use crate::bench::Load;

#[path = "../../../../crates/model/tests/model/nic_path.rs"]
pub(super) mod nic_path;

/// The interface, and what is around it.
pub struct ChppNicLoad {
    path: Path,
    first: Rc<Cell<nic_path::Seen>>,
}

impl ChppNicLoad {
    /// Interfaces of this shape.
    pub fn new(shape: Shape, seed: u64) -> ChppNicLoad {
        let (path, [first, _]) = nic_path::back_to_back(shape, seed, Fault::None);
        ChppNicLoad { path, first }
    }
}

impl Load for ChppNicLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.path.cycle(true);
        let nic_path::Seen { enters, leaves, .. } = self.first.get();
        (enters, leaves)
    }
}
