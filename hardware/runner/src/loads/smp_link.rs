//! Two ends of a link with a network layer each, and lanes that delay, hit and drop beats, as the
//! model's tests have them. The first end is compared with the gates.

use bellwire_model::cycle::smp_link::{In, Out, Shape};

use crate::bench::Load;

#[allow(dead_code, reason = "the tests of the model look at more")]
#[path = "../../../../crates/model/tests/model/smp_path.rs"]
mod smp_path;

/// The ends, and what is around them.
pub struct SmpLinkLoad(smp_path::Path);

impl SmpLinkLoad {
    /// Ends of this shape.
    pub fn new(shape: Shape, seed: u64) -> SmpLinkLoad {
        SmpLinkLoad(smp_path::Path::new(shape, seed, smp_path::Fault::None))
    }
}

impl Load for SmpLinkLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.0.cycle()
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::smp::config::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block is the model's link.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let config = Config::recommended();
        let cycles = |ps: u64| ps.div_ceil(config.cycle().ps());
        let expected = [
            ("AcknowledgeAfter", cycles(config.acknowledge_after.ps())),
            ("CutThrough", 1),
            ("Data", config.data.into()),
            ("Headers", config.headers.into()),
            ("InitAgainAfter", 34),
            ("Replay", config.beats(config.replay_buffer.count() as usize)),
            ("ReplayAfter", cycles(config.replay_after.ps())),
            ("UpdateAgainAfter", cycles(config.update_again_after.ps())),
        ];
        assert_first_configuration("smp_link", &expected);
    }
}
