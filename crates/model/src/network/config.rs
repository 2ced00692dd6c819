//! The parameters of switches and networks.

use serde::{Deserialize, Serialize};

use super::plan::EXAMPLE;
use crate::engine::Policy;
use crate::sensitivity::Parameters;
use crate::units::{Frequency, Span};

/// When a packet may go on to the next router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// As soon as the next beat has room; a blocked packet spans several routers.
    Wormhole,
    /// As soon as its head has arrived, if the next buffer has room for the whole packet (virtual
    /// cut-through).
    CutThrough,
    /// When the whole packet has arrived, if the next buffer has room for it.
    StoreAndForward,
}

/// How a router matches inputs and outputs in each cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Outputs grant and inputs accept round-robin; pointers move only when a grant of the first
    /// round is accepted (McKeown 1999).
    Islip,
    /// Outputs grant and inputs accept at random (Anderson et al. 1993).
    Pim,
    /// Outputs grant by this policy, inputs accept round-robin; pointers always move.
    Policy(Policy),
}

/// Which virtual channel a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Select {
    /// Any free channel. On rings, any of the half that the dateline allows.
    Free,
    /// Destination modulo the number of channels (C-42). With as many as terminals this is virtual
    /// output queueing (C-43).
    Destination,
}

/// The virtual channels of one message class; in cHPP, GET has its own class (C-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The first virtual channel of the class.
    pub first_vc: u8,
    /// Number of channels. Classes may overlap; then one can block another.
    pub vcs: u8,
}

/// Every parameter of a router and its surroundings. All routers of a network are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FabricConfig {
    /// Rate of beats.
    pub clock: Frequency,
    /// Virtual channels per port, 1 to 32.
    pub vcs: u8,
    /// Message classes and their virtual channels; empty means one class with all channels.
    pub classes: Vec<Class>,
    /// Which virtual channel a packet takes.
    pub select: Select,
    /// Beats per input queue (port and virtual channel); 0 is without limit.
    pub buffer_beats: u32,
    /// Beats per terminal and virtual channel; 0 is without limit. The block that takes packets out
    /// frees the room.
    pub sink_beats: u32,
    /// Minimum cycles from a beat's arrival at an input until it crosses the switch (routing, VC
    /// and switch allocation).
    pub pipeline_cycles: u32,
    /// Cycles on a link between routers; at least 1.
    pub link_cycles: u32,
    /// Cycles on the link from and to a terminal; at least 1.
    pub terminal_cycles: u32,
    /// Cycles until a credit is back; at least 1.
    pub credit_cycles: u32,
    /// When a packet may go on.
    pub switching: Switching,
    /// How inputs and outputs are matched.
    pub allocation: Allocation,
    /// Rounds of matching per cycle.
    pub iterations: u8,
    /// Weights of input ports for the weighted policy; ports beyond the list have weight 1.
    pub weights: Vec<u32>,
}

impl Default for FabricConfig {
    fn default() -> FabricConfig {
        FabricConfig {
            clock: Frequency::from_mhz(250),
            vcs: 1,
            classes: Vec::new(),
            select: Select::Free,
            buffer_beats: 16,
            sink_beats: 0,
            pipeline_cycles: 2,
            link_cycles: 1,
            terminal_cycles: 1,
            credit_cycles: 1,
            switching: Switching::Wormhole,
            allocation: Allocation::Islip,
            iterations: 1,
            weights: Vec::new(),
        }
    }
}

impl Parameters for FabricConfig {
    const FILE: &'static str = EXAMPLE;

    fn refusal(&self) -> Option<String> {
        // How many channels a route needs depends on the topology, which refuses too few.
        self.check(1).err().map(|why| why.to_string())
    }

    fn place(&self, path: &str) -> String {
        format!("router.{path}")
    }
}

/// An impossible parameter of a switch or network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{parameter}` {why}")]
pub struct ConfigError {
    /// Its name, as in TOML.
    pub parameter: &'static str,
    /// What is wrong, and what to do.
    pub why: String,
}

/// Refuses a parameter that does not fit.
pub(super) fn demand(
    parameter: &'static str,
    fits: bool,
    why: impl FnOnce() -> String,
) -> Result<(), ConfigError> {
    if fits { Ok(()) } else { Err(ConfigError { parameter, why: why() }) }
}

/// The longest delay: each of its cycles has a slot.
pub const MOST_CYCLES: u32 = 4096;
/// The largest buffer; 0 is a buffer without limit.
pub const MOST_BEATS: u32 = 16_777_216;

impl FabricConfig {
    /// The time of one cycle.
    pub fn cycle(&self) -> Span {
        self.clock.period()
    }

    /// The longest packet, in beats: the smallest buffer that must hold a whole packet.
    pub fn most_packet_beats(&self) -> u32 {
        let room = |beats: u32| if beats == 0 { u32::from(u16::MAX) } else { beats };
        // A terminal frees its room only when it has the whole packet.
        let buffers = if self.switching == Switching::Wormhole { 0 } else { self.buffer_beats };
        room(buffers).min(room(self.sink_beats))
    }

    /// The virtual channels of a class.
    pub(super) fn class(&self, class: usize) -> Class {
        self.classes.get(class).copied().unwrap_or(Class { first_vc: 0, vcs: self.vcs })
    }

    /// Checks the parameters; `dateline_classes` is the number of channel groups that the routes
    /// need.
    pub(super) fn check(&self, dateline_classes: usize) -> Result<(), ConfigError> {
        demand("vcs", (1..=32).contains(&self.vcs), || {
            format!("is {}, but must be 1 to 32", self.vcs)
        })?;
        for (parameter, cycles, least) in [
            ("pipeline_cycles", self.pipeline_cycles, 0),
            ("link_cycles", self.link_cycles, 1),
            ("terminal_cycles", self.terminal_cycles, 1),
            ("credit_cycles", self.credit_cycles, 1),
        ] {
            demand(parameter, (least..=MOST_CYCLES).contains(&cycles), || {
                format!("is {cycles}, but must be {least} to {MOST_CYCLES}")
            })?;
        }
        for (parameter, beats) in
            [("buffer_beats", self.buffer_beats), ("sink_beats", self.sink_beats)]
        {
            demand(parameter, beats <= MOST_BEATS, || {
                format!("is {beats}, but at most {MOST_BEATS}; 0 is without limit")
            })?;
        }
        demand("iterations", self.iterations > 0, || {
            "is 0, but nothing is matched without a round; take 1".to_owned()
        })?;
        for &Class { first_vc, vcs } in &self.classes {
            let fits = vcs > 0 && usize::from(first_vc) + usize::from(vcs) <= self.vcs.into();
            demand("classes", fits, || {
                let all = self.vcs;
                format!("has one of {vcs} channels from {first_vc}, but there are {all} altogether")
            })?;
        }
        let classes = self.classes.len().max(1);
        let fewest = (0..classes).map(|class| usize::from(self.class(class).vcs)).min();
        demand("vcs", fewest >= Some(dateline_classes), || {
            "gives a class fewer than 2 channels, but rings need 2 to be free of deadlock"
                .to_owned()
        })?;
        let is_free = dateline_classes == 1 || self.select == Select::Free;
        demand("select", is_free, || {
            "is \"destination\", but on rings the channel is decided by the dateline; take \"free\""
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cannot be is refused, and the limits themselves are possible.
    #[test]
    fn impossible_routers_are_refused() {
        let class = |first_vc, vcs| vec![Class { first_vc, vcs }];
        let of = |vcs, classes| FabricConfig { vcs, classes, ..FabricConfig::default() };
        assert!(of(2, class(0, 2)).is_valid() && of(3, class(1, 2)).is_valid());
        assert!(!of(2, class(2, 1)).is_valid() && !of(2, class(0, 0)).is_valid());
        assert!(!of(2, class(2, 2)).is_valid() && of(1, class(0, 1)).is_valid());
        assert!(!FabricConfig { iterations: 0, ..FabricConfig::default() }.is_valid());
        let why = of(2, class(0, 0)).refusal().unwrap();
        assert!(why.contains("has one of 0 channels from 0"), "{why}");
        assert_eq!(FabricConfig::default().place("vcs"), "router.vcs");
    }
}
