//! Packets before a stall: the quantity of Figs. 6 and 7.

use crate::smp::bench::{Lengths, Machine};
use crate::smp::config::Config;
use crate::smp::transport::Stall;
use crate::units::{Span, Time};

/// Packets of a channel above which the paper speaks of sending for ever: it means this by bars
/// above 64 in its Fig. 6. A run above it may still have an end.
pub const FOR_EVER: u64 = 64;

/// How much each channel could send before the link stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Packets that the network layer handed over before the first stall, on the channel with
    /// fewer. `None` if the run ended without a stall.
    pub packets: Option<u64>,
    /// The resource that was missing then.
    pub lacks: Option<Stall>,
}

impl RunLength {
    /// Whether the paper would count this as sending for ever.
    pub fn is_for_ever(self) -> bool {
        self.packets.is_none_or(|packets| packets > FOR_EVER)
    }

    /// The cause of the stall, for a table.
    pub fn ending(self) -> &'static str {
        match self.lacks {
            _ if self.is_for_ever() => "more than 64",
            Some(Stall::Headers) => "headers",
            Some(Stall::Data) => "data",
            Some(Stall::Replay) => "replay buffer",
            None => "more than 64",
        }
    }

    /// The number for a table, capped above [`FOR_EVER`].
    pub fn capped(self) -> f64 {
        self.packets.unwrap_or(u64::MAX).min(FOR_EVER + 1) as f64
    }
}

/// Sends 256 packets of one length on each channel in one direction, as [`run_lengths`] does.
///
/// # Errors
/// As [`run_lengths`].
pub fn run_length(config: &Config, length_dw: usize) -> Result<RunLength, String> {
    run_lengths(config, Lengths::Fixed(length_dw), 4 * FOR_EVER)
}

/// Sends up to `packets` packets on each channel in one direction, as fast as the link takes them,
/// and counts those before the first stall.
///
/// # Errors
/// A sentence, if packets are lost.
pub fn run_lengths(config: &Config, lengths: Lengths, packets: u64) -> Result<RunLength, String> {
    run_lengths_of(config, lengths, packets, 1)
}

/// The same with a seed for what is drawn: errors of bits, and lengths of a mix.
///
/// # Errors
/// As [`run_lengths`].
pub fn run_lengths_of(
    config: &Config,
    lengths: Lengths,
    packets: u64,
    seed: u64,
) -> Result<RunLength, String> {
    config.check().map_err(|error| error.to_string())?;
    let mut running = Machine::new(config, seed);
    for channel in 0..config.channels {
        running.stimulate(0, channel, lengths, packets);
    }
    running.run(Time::ZERO + Span::from_ns(1_000_000_000));
    if running.model.mismatches > 0 || running.missing() > 0 {
        return Err(format!("{lengths:?}: packets were lost"));
    }
    let Some(stall) = running.model.link.end(0).first_stall else {
        return Ok(RunLength { packets: None, lacks: None });
    };
    let handed = &stall.handed[..usize::from(config.channels)];
    let packets = handed.iter().copied().min();
    Ok(RunLength { packets, lacks: stall.lacks.into_iter().flatten().next() })
}
