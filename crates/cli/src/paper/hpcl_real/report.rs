//! The measurements beside the paper's values and the model's. Only ratios are compared, because
//! this machine is not the paper's.

use super::Carrier;
use super::rounds::{Finding, Findings, SIZES, WAYS, Way};
use crate::units;
use anyhow::{Result, anyhow};
use bellwire_model::experiment::of_each_seed;
use bellwire_model::hpcl::Config;
use bellwire_model::hpcl::config::Receive;
use bellwire_model::hpcl::experiments::measure::{bandwidth, round_trip};
use bellwire_model::hpcl::experiments::{LARGE, PUBLISHED, SMALL};
use bellwire_model::hpcl::process::Over;
use bellwire_model::published::Published;
use bellwire_model::stats::over_seeds;
use bellwire_model::units::Span;
use serde::Serialize;
use std::fmt;

/// A ratio, from three sources.
#[derive(Clone, Debug, Serialize)]
struct Ratio {
    /// What is compared.
    what: &'static str,
    measured: f64,
    /// In the model of the paper's cluster.
    model: f64,
    /// In the model, if NICs raise interrupts at once, as the interfaces of this measurement do.
    model_interrupts_at_once: f64,
    /// In the paper, if it gives one.
    paper: Option<f64>,
    /// The paper's statement where it gives no number.
    paper_says: Option<&'static str>,
    /// Whether the model's value is an input: a parameter was set for it.
    is_input: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    carrier: Carrier,
    /// The device's description of itself.
    device: String,
    /// Processors of both sides; none: the system chose.
    cpus: Vec<usize>,
    findings: Vec<Finding>,
    ratios: Vec<Ratio>,
    notes: Vec<&'static str>,
}

impl Report {
    /// Puts the model's and the paper's values beside the measurements.
    pub fn new(carrier: Carrier, found: Findings) -> Result<Report> {
        let models = [Config::paper(), at_once(Config::paper())].map(|config| Model::of(&config));
        let [held_back, at_once] = models;
        let (held_back, at_once) = (held_back?, at_once?);
        let (small, large) = (SMALL as usize, LARGE as usize);
        let published = Published::read(PUBLISHED, "fig7").map_err(|error| anyhow!(error))?;
        let of = |program, over: (Way, usize), under: (Way, usize)| -> Result<f64> {
            let [over, under] = [over, under].map(|(way, bytes)| found.median(program, way, bytes));
            Ok(over? / under?)
        };
        use Way::{Asleep, Polling, Tcp};
        let ratio = |what, measured, model: fn(&Model) -> f64| Ratio {
            what,
            measured,
            model: model(&held_back),
            model_interrupts_at_once: model(&at_once),
            paper: None,
            paper_says: None,
            is_input: false,
        };
        let ratios = vec![
            Ratio {
                paper: published.value("TCP/IP over HPCL, 128 B", "1").map(|of| of.value),
                is_input: true,
                ..ratio(
                    "round trip of 128 B, TCP over Bellwire",
                    of("pingpong", (Tcp, small), (Polling, small))?,
                    |model| model.tcp_us / model.hpcl_us,
                )
            },
            Ratio {
                paper_says: Some("higher without reaping"),
                ..ratio(
                    "round trip of 128 B, asleep over polling",
                    of("pingpong", (Asleep, small), (Polling, small))?,
                    |model| model.interrupts_us / model.hpcl_us,
                )
            },
            Ratio {
                paper_says: Some("below 1"),
                ..ratio(
                    "bandwidth at 128 B, Bellwire over TCP",
                    of("burst", (Polling, small), (Tcp, small))?,
                    |model| model.hpcl_small / model.tcp_small,
                )
            },
            ratio(
                "bandwidth at 1196 B, Bellwire over TCP",
                of("burst", (Polling, large), (Tcp, large))?,
                |model| model.hpcl_large / model.tcp_large,
            ),
            Ratio {
                paper_says: Some("rises steadily"),
                ..ratio(
                    "bandwidth of Bellwire, 1196 B over 128 B",
                    of("burst", (Polling, large), (Polling, small))?,
                    |model| model.hpcl_large / model.hpcl_small,
                )
            },
        ];
        let mut notes = vec![
            "The devices run the production setting of the state machine: small messages share frames, so that Bellwire need not fall behind TCP at 128 B \
             as HPCL does.",
            "Nothing holds interrupts back here, and a wire is a copy by the kernel, not a line of 1 Gbit/s with a switch.",
            "TCP blocks, as the paper's netperf does.",
        ];
        if found.cpus.is_empty() {
            notes.push("There is one processor: who polls keeps it from the other side, and times are the scheduler's.");
        }
        let Findings { device, cpus, all } = found;
        Ok(Report { carrier, device, cpus, findings: all, ratios, notes })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The HPCL paper's programs on real devices: {}\n", self.device)?;
        for (program, title) in [
            ("pingpong", "pingpong, round trip in us (median; least to most of the rounds)"),
            ("burst", "burst, bytes of messages in a second"),
        ] {
            writeln!(f, "{title}")?;
            write!(f, "  {:<8}", "message")?;
            WAYS.iter().try_for_each(|way| write!(f, " {:>32}", way.name()))?;
            writeln!(f)?;
            for bytes in SIZES {
                write!(f, "  {:<8}", format!("{bytes} B"))?;
                let of = |one: &&Finding| one.program == program && one.bytes == bytes;
                for Finding { median, least, most, .. } in self.findings.iter().filter(of) {
                    let text = match program {
                        "pingpong" => format!("{median:.2} ({least:.2} to {most:.2})"),
                        _ => format!(
                            "{} ({} to {})",
                            units::bandwidth(*median),
                            units::bandwidth(*least),
                            units::bandwidth(*most)
                        ),
                    };
                    write!(f, " {text:>32}")?;
                }
                writeln!(f)?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "  {:<42} {:>9} {:>9} {:>9} {:>9}",
            "ratio", "measured", "model", "at once", "paper"
        )?;
        for ratio in &self.ratios {
            let paper = match (ratio.paper, ratio.paper_says) {
                (Some(value), _) => format!("{value:.2}"),
                (None, Some(says)) => says.to_owned(),
                (None, None) => "-".to_owned(),
            };
            let mark = if ratio.is_input { "  (model: an input)" } else { "" };
            writeln!(
                f,
                "  {:<42} {:>9.2} {:>9.2} {:>9.2} {paper:>9}{mark}",
                ratio.what, ratio.measured, ratio.model, ratio.model_interrupts_at_once
            )?;
        }
        writeln!(
            f,
            "  model: of the paper's cluster; at once: the same with interrupts that nothing holds back"
        )?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

/// The model's results for one setting, as means over seeds: round trips of 128 B in microseconds,
/// bandwidths in bytes a second.
struct Model {
    hpcl_us: f64,
    interrupts_us: f64,
    tcp_us: f64,
    hpcl_small: f64,
    hpcl_large: f64,
    tcp_small: f64,
    tcp_large: f64,
}

impl Model {
    fn of(config: &Config) -> Result<Model> {
        let mean = |draws: Result<Vec<f64>, String>| -> Result<f64> {
            Ok(over_seeds(&draws.map_err(|error| anyhow!(error))?).mean)
        };
        let us = |config: &Config, over| {
            mean(of_each_seed(|seed| Ok(round_trip(config, over, SMALL, seed)?.us)))
        };
        let carried = |over, bytes| {
            mean(of_each_seed(|seed| Ok(bandwidth(config, over, bytes, seed)?.bytes_per_second)))
        };
        let mut asleep = config.clone();
        asleep.hpcl.receive = Receive::Interrupt;
        Ok(Model {
            hpcl_us: us(config, Over::Hpcl)?,
            interrupts_us: us(&asleep, Over::Hpcl)?,
            tcp_us: us(config, Over::Tcp)?,
            hpcl_small: carried(Over::Hpcl, SMALL)?,
            hpcl_large: carried(Over::Hpcl, LARGE)?,
            tcp_small: carried(Over::Tcp, SMALL)?,
            tcp_large: carried(Over::Tcp, LARGE)?,
        })
    }
}

/// The same configuration without interrupt moderation.
fn at_once(mut config: Config) -> Config {
    config.nic.interrupt_gap = Span::ZERO;
    config
}
