//! Two interfaces with host memories, software and a network between them, as the model's tests
//! have them. The first one is compared with the gates.

use bellwire_model::cycle::nic_core::{In, Out, Shape};

use crate::bench::Load;

#[allow(dead_code, reason = "the tests of the model look at more")]
#[path = "../../../../crates/model/tests/model/core_path/mod.rs"]
pub(super) mod core_path;

/// The interface, and what is around it.
pub struct NicCoreLoad(core_path::Path);

impl NicCoreLoad {
    /// Interfaces of this shape.
    pub fn new(shape: Shape, seed: u64) -> NicCoreLoad {
        NicCoreLoad(core_path::Path::new(shape, seed, core_path::Fault::None))
    }
}

impl Load for NicCoreLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.0.cycle(true)
    }
}
