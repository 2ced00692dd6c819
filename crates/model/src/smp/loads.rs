//! The load of the link, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::bench::{Lengths, Machine};
use super::config::Config;
use crate::engine::Ended;
use crate::trial::{Load, Measured, Quantity, Trial, high, low, within};
use crate::units::{Span, Time};

/// The loads.
pub const LOADS: [Trial; 1] = [Trial::of::<Packets>()];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packets {
    length_dw: u64,
    packets: u64,
    both_ways: bool,
}

impl Default for Packets {
    fn default() -> Packets {
        Packets { length_dw: 32, packets: 400, both_ways: false }
    }
}

impl Load for Packets {
    type System = Config;
    const NAME: &'static str = "packets";
    const TITLE: &'static str = "packets of one length, back to back on each channel";
    const QUANTITIES: &'static [Quantity] = &[
        low("delay_ns", "mean time from the first flit sent to the last flit received"),
        high("bandwidth_Gbps", "network packets received in one direction"),
        high("payload_ratio", "network packets over packets of the transport layer, in bytes"),
        high("packets_before_stall", "packets of a channel before the first stall; all, if none"),
    ];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(Config::recommended())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        within("length_dw", self.length_dw, 1, 128)?;
        within("packets", self.packets, 1, 1_000_000)?;
        let mut running = Machine::new(system, seed);
        let lengths = Lengths::Fixed(self.length_dw as usize);
        for end in 0..=u8::from(self.both_ways) {
            for channel in 0..system.channels {
                running.stimulate(end, channel, lengths, self.packets);
            }
        }
        let ended = running.run(Time::ZERO + Span::from_ns(1_000_000_000));
        let bench = &running.model;
        if ended != Ended::Quiet || bench.mismatches > 0 || running.missing() > 0 {
            return Err(format!(
                "of the packets, {} did not come and {} came damaged",
                running.missing(),
                bench.mismatches
            ));
        }
        let (near, far) = (bench.link.end(0), bench.link.end(1));
        let useful = bench.useful_bytes[1] as f64;
        let before_stall = near.first_stall.as_ref().and_then(|stall| {
            let handed = &stall.handed[..usize::from(system.channels)];
            handed.iter().copied().min()
        });
        let figures = vec![
            far.receive.delays.mean() / 1e3,
            useful * 8e3 / bench.last_arrival.ps() as f64,
            useful / near.counters.tlp_bytes as f64,
            before_stall.unwrap_or(self.packets) as f64,
        ];
        Ok(Measured { figures, trace_hash: running.trace_hash() })
    }
}
