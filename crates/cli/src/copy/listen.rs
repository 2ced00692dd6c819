//! The receiving side that the user starts, for a sender on another host or in another terminal.

use super::link::Link;
use super::receiver::{Received, Terms, serve};
use super::report::Report;
use super::{place, progress_bar};
use crate::command::{Outcome, complain};
use crate::host::Elsewhere;
use anyhow::{Error, Result};
use bellwire::Device;
use std::path::Path;
use std::time::Instant;

/// Serves one sender after the other until something has been received whole.
pub fn listen(destination: &Path, name: &str, json: bool) -> Result<Outcome> {
    place::check(destination)?;
    let device = Device::open(name)?;
    let mut link = Link::listen(&device)?;
    announce(destination, &device, name, json);
    loop {
        match receive(&mut link, destination, name) {
            Ok(Some(report)) => {
                report.tell(json)?;
                return Ok(Outcome::done_if(report.failures_of_sender == Some(0)));
            }
            Ok(None) => complain(&Error::msg("the sender had nothing to copy")),
            Err(error) => complain(&error),
        }
        // Its number is free again before it is opened anew.
        drop(link);
        link = Link::listen(&device)?;
        tell("Listening again.", json);
    }
}

fn receive(link: &mut Link, destination: &Path, name: &str) -> Result<Option<Report>> {
    link.accept(None)?;
    let (start, node) = (Instant::now(), link.peer_node());
    let bar = progress_bar(0)?;
    let served = serve(link, &Terms { destination, is_stranger: true, bar: &bar });
    bar.finish_and_clear();
    let Some(Received { place, counts, failures, hash }) = served? else { return Ok(None) };
    Ok(Some(Report {
        destination: Some(place),
        node,
        failures_of_sender: Some(failures),
        ..Report::of(name).measured(counts, Some(hash), start.elapsed())
    }))
}

/// Says where we listen, and what to do on the other side.
fn announce(destination: &Path, device: &Device, name: &str, json: bool) {
    let Elsewhere { place, device: other, us } = Elsewhere::of(device, name);
    let own = format!("node {} of {}", device.node(), device.name());
    tell(&format!("Listening as {own} for a copy to {}. {place}:", destination.display()), json);
    tell(&format!("  bellwire copy SRC --connect {us} --device {other}"), json);
    tell("Whoever reaches this device can send. Ctrl-C ends this.", json);
}

/// Standard output is for the report alone if that is for a program.
fn tell(line: &str, json: bool) {
    if json { eprintln!("{line}") } else { println!("{line}") }
}
