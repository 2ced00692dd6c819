//! Four interfaces that a crossbar joins, with hosts that speak TLPs, host memories and software,
//! as the model's tests have them.

use bellwire_model::cycle::chpp_quad::{In, Out, Shape};

use super::chpp_nic::nic_path::{QuadSeen, four};
use super::nic_core::core_path::{Fault, Path};
use crate::bench::Load;

/// The interfaces, and what is around them.
pub struct ChppQuadLoad {
    path: Path,
    seen: QuadSeen,
}

impl ChppQuadLoad {
    /// Interfaces of this shape.
    pub fn new(shape: Shape, seed: u64) -> ChppQuadLoad {
        let (path, seen) = four(shape, seed, Fault::None);
        ChppQuadLoad { path, seen }
    }
}

impl Load for ChppQuadLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.path.cycle(true);
        self.seen.last()
    }
}
