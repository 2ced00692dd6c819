//! The receiving side that the user starts, for senders on other hosts or in other terminals.

use super::link::{RECEIVER, open_device};
use super::place::Destination;
use super::progress_bar;
use super::reception::{Ended, Reception};
use super::report::Report;
use super::turns::Rules;
use crate::command::{Outcome, printable, sentence};
use crate::host::Elsewhere;
use anyhow::Result;
use bellwire::Device;
use indicatif::MultiProgress;
use std::path::Path;
use std::time::Duration;

/// With no senders there is nothing to check.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Serves senders until one copy is complete and no sender is served or waits.
pub fn listen(destination: &Path, name: &str, json: bool) -> Result<Outcome> {
    let found = Destination::of_strangers(destination)?;
    let device = open_device(name)?;
    let bars = MultiProgress::new();
    let drawn = bars.clone();
    let bar = move || Ok(drawn.add(progress_bar(0)?));
    let function = device.open_function(RECEIVER)?;
    let mut reception = Reception::open(function, Rules::of_listener(), found, bar)?;
    announce(destination, &device, name, json);
    let mut outcome = None;
    loop {
        for ended in reception.round(PATIENCE)? {
            // Text and progress bars would mix.
            let Some(copied) = bars.suspend(|| tell_of(ended, name, json))? else { continue };
            outcome = Some(if outcome == Some(Outcome::Failed) { Outcome::Failed } else { copied });
            reception.close();
        }
        if let Some(outcome) = outcome
            && reception.is_idle()
        {
            return Ok(outcome);
        }
    }
}

/// Reports how a copy ended. `None` if it is not complete.
fn tell_of(ended: Ended, name: &str, json: bool) -> Result<Option<Outcome>> {
    let Ended { node, took, outcome } = ended;
    let complain = |what: &str| eprintln!("bellwire: node {node}: {}", printable(what));
    match outcome {
        Ok(Some(received)) => {
            let report = Report {
                destination: Some(received.place),
                node: Some(node),
                failures_of_sender: Some(received.failures),
                ..Report::of(name).measured(received.counts, Some(received.hash), took)
            };
            report.tell(json)?;
            return Ok(Some(Outcome::done_if(received.failures == 0)));
        }
        Ok(None) => complain("the sender had nothing to copy"),
        Err(error) => complain(&sentence(&error)),
    }
    Ok(None)
}

/// Prints where we listen, and the command for the other side.
fn announce(destination: &Path, device: &Device, name: &str, json: bool) {
    let Elsewhere { place, device: other, us } = Elsewhere::of(device, name);
    let own = format!("node {} of {}", device.node(), device.name());
    tell(&format!("Listening as {own} for a copy to {}. {place}:", destination.display()), json);
    tell(&format!("  bellwire copy SRC --connect {us} --device {other}"), json);
    tell("Whoever reaches this device can send. Ctrl-C ends this.", json);
}

/// With `--json`, standard output carries only the report.
fn tell(line: &str, json: bool) {
    if json { eprintln!("{line}") } else { println!("{line}") }
}
