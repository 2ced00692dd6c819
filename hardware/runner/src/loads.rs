//! Random loads of all blocks.

mod cdc_fifo_gray;
mod damq_pd;
mod stream_fifo;

use anyhow::{Result, bail};

use crate::bench::Bench;

/// The load of a block with the bench's parameters.
///
/// # Errors
/// If there is none for this block.
pub fn load(block: &str, parameters: &[(String, u64)], seed: u64) -> Result<Box<dyn Bench>> {
    let number = |wanted: &str| {
        let found = parameters.iter().find(|(name, _)| name == wanted);
        found.map_or(0, |(_, value)| *value) as usize
    };
    Ok(match block {
        "damq_pd" => {
            let [ports, depth, landing] = ["Ports", "Depth", "Landing"].map(number);
            Box::new(damq_pd::DamqLoad::new(ports, depth, landing, seed))
        }
        "cdc_fifo_gray" => Box::new(cdc_fifo_gray::CdcFifoGrayLoad::new(number("Depth"), seed)),
        "stream_fifo" => Box::new(stream_fifo::StreamFifoLoad::new(number("Depth"), seed)),
        _ => bail!("no load for {block} in hardware/runner/src/loads.rs"),
    })
}
