//! The effect of parameters that the paper gives or leaves open: buffer depth, grant policy, read
//! latency, tags.

use bellwire_protocol::GrantPolicy;

use super::rate::rates;
use crate::damq_pd::{Config, POLICIES, Submission};
use crate::experiment::{Axis, Report};
use crate::stats::Estimate;
use crate::units::Span;

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let paper = Config::paper();
    let mut add = |what: String, config: &Config, ports: usize, formula: Option<f64>| {
        let rates = rates(config, ports)?;
        let value = report.drawn(format!("{what}, {ports} ports"), "M/s", &rates);
        let rate = value.estimate();
        if let Some(formula) = formula {
            value.beside(formula).explain_within(
                12.0,
                "The credit request comes right behind the last words, so that the 7 or so words in the pipeline are not free yet when it is answered; \
                 and doublings from 4 words have to reach the whole buffer. In a small buffer that counts.",
            );
        }
        Ok::<Estimate, String>(rate)
    };
    let mut deepens = true;
    // One port has nobody to meet, so that no draw decides its rate.
    let mut last = 0.0;
    let (mut by_depth, mut by_policy, mut by_latency) = (Vec::new(), Vec::new(), Vec::new());
    for depth in [64, 128, 256, 512, 1024, 2048, 4096] {
        let mut config = paper.clone();
        config.nic.depth = depth;
        // The rate of one port by the formula of a credit round: all descriptors that fit, 8 ns
        // each, and a read of 600 ns.
        let fit = depth as f64 / 4.0;
        let one = add(format!("depth {depth}"), &config, 1, Some(fit / (fit * 8.0 + 600.0) * 1e3))?;
        let four = add(format!("depth {depth}"), &config, 4, None)?;
        by_depth.push((depth as f64, one, four));
        deepens &= one.is_above(last);
        last = one.mean;
    }
    for (name, policy) in POLICIES {
        for least in [4, 16, 64] {
            let mut config = paper.clone();
            (config.credits.policy, config.credits.least) = (policy, least);
            let what = format!("{name}, least {least}");
            let mut points = Vec::new();
            for ports in [1, 2, 4, 16, 64] {
                points.push((ports as f64, add(what.clone(), &config, ports, None)?));
            }
            by_policy.push((what, points));
        }
    }
    for read_ns in [500, 600, 1200, 2400] {
        let mut config = paper.clone();
        config.bus.pio_read = Span::from_ns(read_ns);
        for ports in [1, 2, 16] {
            let rate = add(format!("PIO read {read_ns} ns"), &config, ports, None)?;
            by_latency.push((ports, (read_ns as f64, rate)));
        }
    }
    for tags in [32, 64, 96] {
        let mut config = paper.clone();
        (config.nic.tags, config.nic.landing) = (tags, tags * 4);
        config.credits.policy = GrantPolicy::All;
        add(format!("all, {tags} tags"), &config, 64, None)?;
        config.host.submission = Submission::Dma;
        add(format!("DMA alone, {tags} tags"), &config, 4, None)?;
    }
    let y = Axis::linear("message rate", "M/s");
    let figure = report.figure(
        "Message rate by depth of the buffer",
        Axis::logarithmic("depth", "words"),
        y,
    );
    figure.drawn("1 port", by_depth.iter().map(|(x, one, _)| (*x, *one)));
    figure.drawn("4 ports", by_depth.iter().map(|(x, _, four)| (*x, *four)));
    let ports = Axis::logarithmic("virtual ports", "");
    let figure = report.figure("Message rate by grant policy", ports, y);
    for (what, points) in by_policy {
        figure.drawn(what, points);
    }
    let latency = Axis::linear("a PIO read takes", "ns");
    let figure = report.figure("Message rate by what a request for credits takes", latency, y);
    for ports in [1, 2, 16] {
        let points = by_latency.iter().filter(|of| of.0 == ports).map(|of| of.1);
        figure.drawn(format!("{ports} ports"), points);
    }
    report.claim(
        "one port gets more from each doubling of the buffer, from 64 to 4096 words",
        deepens,
    );
    Ok(())
}
