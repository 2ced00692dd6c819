//! Two ends of a link with their lanes and a network layer each, as the model's tests have them:
//! lanes have skew, hit symbols, and die for a while. The first end is compared with the gates.

use bellwire_model::cycle::smp_port::{In, Out, Shape};

use crate::bench::Load;

#[allow(dead_code, reason = "the tests of the model look at more")]
#[path = "../../../../crates/model/tests/model/port_path.rs"]
mod port_path;

/// The ends, and what is around them.
pub struct SmpPortLoad(port_path::PortPath);

impl SmpPortLoad {
    /// Ends of this shape.
    pub fn new(shape: Shape, seed: u64) -> SmpPortLoad {
        SmpPortLoad(port_path::PortPath::new(shape, seed, port_path::Fault::None))
    }
}

impl Load for SmpPortLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.0.cycle()
    }
}
