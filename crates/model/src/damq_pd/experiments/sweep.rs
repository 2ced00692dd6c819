//! What the parameters do that the paper gives or leaves open: buffer depth, grant policy, read latency, tags.

use super::rate::rate;
use crate::damq_pd::{Config, Policy};
use crate::experiment::{Report, Role};
use crate::units::Span;

/// Runs the experiment.
///
/// # Errors
/// A sentence, if a run is impossible.
pub fn run() -> Result<Report, String> {
    let paper = Config::paper();
    let mut report =
        Report::new("sweep", "message rate against depth, policy, read latency", "D-14, D-15");
    let mut add = |what: String, config: &Config, ports: usize, formula: Option<f64>| {
        let rate = rate(config, ports)?;
        report
            .value(format!("{what}, {ports} ports"), "M/s", Role::Predicted, rate, formula)
            .explain(
                "The credit request comes right behind the last words, so that the 7 or so words in the pipeline are not free yet when it is answered; \
                 and doublings from 4 words have to reach the whole buffer. In a small buffer that counts.",
            );
        Ok::<f64, String>(rate)
    };
    let mut deepens = true;
    let mut last = 0.0;
    for depth in [64, 128, 256, 512, 1024, 2048, 4096] {
        let mut config = paper.clone();
        config.nic.depth = depth;
        // What one port gets by the formula of a round: all descriptors that fit, 8 ns each, and a read of 600 ns.
        let fit = depth as f64 / 4.0;
        let one = add(format!("depth {depth}"), &config, 1, Some(fit / (fit * 8.0 + 600.0) * 1e3))?;
        add(format!("depth {depth}"), &config, 4, None)?;
        deepens &= one > last;
        last = one;
    }
    for policy in Policy::ALL {
        for least in [4, 16, 64] {
            let mut config = paper.clone();
            (config.credits.policy, config.credits.least) = (policy, least);
            for ports in [1, 2, 4, 16, 64] {
                add(format!("{}, least {least}", policy.name()), &config, ports, None)?;
            }
        }
    }
    for read_ns in [500, 600, 1200, 2400] {
        let mut config = paper.clone();
        config.bus.pio_read = Span::from_ns(read_ns);
        for ports in [1, 2, 16] {
            add(format!("PIO read {read_ns} ns"), &config, ports, None)?;
        }
    }
    for tags in [32, 64, 96] {
        let mut config = paper.clone();
        (config.nic.tags, config.nic.landing) = (tags, tags * 4);
        config.credits.policy = Policy::All;
        add(format!("all, {tags} tags"), &config, 64, None)?;
        config.host.submission = crate::damq_pd::Submission::Dma;
        add(format!("DMA alone, {tags} tags"), &config, 4, None)?;
    }
    report.claim("one port gets more from a deeper buffer, always", deepens);
    report.note(
        "Published stands for the formula g / (8 g + 600 ns) with g = depth / 4 descriptors, which the paper does not print; its one value, 96, is g = 256.",
    );
    Ok(report)
}
