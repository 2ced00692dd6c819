//! The receiving side that the user starts, for senders on other hosts or in other terminals.

use super::door::{Door, greeting, open_sealed, warn_of_plain};
use super::link::{ACQUAINTANCE, AGAIN, RECEIVER};
use super::pairing::{Porch, Wrong};
use super::place::Destination;
use super::progress_bar;
use super::reception::{Ended, Reception};
use super::report::Report;
use super::turns::{ALONE, Rules};
use crate::command::{Outcome, printable, sentence};
use crate::host::Elsewhere;
use anyhow::Result;
use bellwire::Device;
use bellwire_keys::Code;
use indicatif::MultiProgress;
use std::path::Path;
use std::time::{Duration, Instant};

/// With no senders there is nothing to check.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Serves senders until one copy is complete and no sender is served or waits.
pub fn listen(destination: &Path, name: &str, door: &Door, json: bool) -> Result<Outcome> {
    if *door == Door::Code {
        return listen_for_code(destination, name, json);
    }
    let found = Destination::of_strangers(destination)?;
    let device = door.open(name)?;
    let bars = MultiProgress::new();
    let drawn = bars.clone();
    let bar = move || Ok(drawn.add(progress_bar(0)?));
    let function = device.open_function(RECEIVER)?;
    let mut reception =
        Reception::open(function, Rules::of_listener(), found, greeting(None), bar)?;
    announce(destination, &device, name, door, json);
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

/// Serves a sender that proves a code, until one copy is complete. A copy that fails costs its
/// code.
fn listen_for_code(destination: &Path, name: &str, json: bool) -> Result<Outcome> {
    Destination::of_strangers(destination)?;
    let plain = Door::Code.open(name)?;
    let mut porch = Porch::open(&plain)?;
    announce(destination, &plain, name, &Door::Code, json);
    loop {
        let mut random = [0; 5];
        bellwire_device::fill_random(&mut random)?;
        let code = Code::new(random);
        tell(&format!("The code, for one copy: {code}"), json);
        let guest = porch.wait_for(&code, |Wrong { node, count, pause }| {
            let pause_s = pause.as_secs_f64();
            eprintln!(
                "bellwire: node {node} gave a wrong code, number {count} so far; the next is taken in {pause_s} s"
            );
        })?;
        let sealed = open_sealed(name, &guest.key)?;
        let function = sealed.open_function(RECEIVER)?;
        let bar = || progress_bar(0);
        let found = Destination::of_strangers(destination)?;
        let mut reception =
            Reception::open(function, ALONE, found, greeting(Some(&guest.key)), bar)?;
        porch.welcome(&guest)?;
        if let Some(outcome) = serve(&mut reception, &mut porch, name, json)? {
            return Ok(outcome);
        }
        tell("That copy is not complete. Its sender needs another code to go on.", json);
    }
}

/// Serves the sender that knows the key, and nobody else. `None` if its copy is not complete.
fn serve(
    reception: &mut Reception,
    porch: &mut Porch,
    name: &str,
    json: bool,
) -> Result<Option<Outcome>> {
    let started = Instant::now();
    let (mut outcome, mut has_come) = (None, false);
    loop {
        for ended in reception.round(AGAIN)? {
            outcome = tell_of(ended, name, json)?;
            has_come = true;
            reception.close();
        }
        porch.turn_away()?;
        let is_idle = reception.is_idle();
        has_come |= !is_idle;
        if is_idle && (has_come || started.elapsed() > ACQUAINTANCE) {
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
fn announce(destination: &Path, device: &Device, name: &str, door: &Door, json: bool) {
    let Elsewhere { place, device: other, us } = Elsewhere::of(device, name);
    let own = format!("node {} of {}", device.node(), device.name());
    tell(&format!("Listening as {own} for a copy to {}. {place}:", destination.display()), json);
    let (code, option) = (if *door == Door::Code { " CODE" } else { "" }, door.option());
    tell(&format!("  bellwire copy SRC --connect {us}{code} --device {other}{option}"), json);
    let who = match door {
        Door::Kernel => "Whoever reaches this device can send.",
        Door::Key(_) => "Only senders with the key are heard.",
        Door::Code => "Only the sender with the code is heard.",
        Door::Open => {
            warn_of_plain();
            "Whoever reaches this device can send."
        }
    };
    tell(&format!("{who} Ctrl-C ends this."), json);
}

/// With `--json`, standard output carries only the report.
fn tell(line: &str, json: bool) {
    if json { eprintln!("{line}") } else { println!("{line}") }
}
