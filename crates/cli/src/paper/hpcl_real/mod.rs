//! `bellwire paper hpcl-ethernet --real`: the HPCL paper's pingpong and burst on the real devices,
//! beside TCP. The results stand beside the paper's values and the model's.
//!
//! | module | what |
//! |---|---|
//! | `place` | where both sides run: two network namespaces joined by a wire, or loopback |
//! | `side` | the programs, over a Bellwire device and over TCP |
//! | `rounds` | the order of the measurements |
//! | `report` | ratios, beside those of the paper and of the model |

mod place;
mod report;
mod rounds;
mod side;

use crate::command::{Outcome, print_json};
use anyhow::Result;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// Ethernet frames, in two network namespaces that the command makes (root)
    Eth,
    /// UDP over loopback, without any privilege
    Udp,
}

/// Measures and prints the results.
pub fn run(carrier: Carrier, json: bool) -> Result<Outcome> {
    let place = place::Place::new(carrier)?;
    let findings = rounds::measure(&place)?;
    let report = report::Report::new(carrier, findings)?;
    match json {
        true => print_json(&report)?,
        false => println!("{report}"),
    }
    Ok(Outcome::Done)
}
