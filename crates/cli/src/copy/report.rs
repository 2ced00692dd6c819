//! What is told at the end of a copy.

use super::message::{Counts, Hash};
use super::walk::{self, Failure};
use crate::command::{print_json, printable};
use crate::units;
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What `--json` prints. What one side does not know is left out.
#[derive(Default, Serialize)]
pub struct Report {
    #[serde(serialize_with = "walk::as_text", skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
    /// Under its last name.
    #[serde(serialize_with = "walk::as_text", skip_serializing_if = "Option::is_none")]
    pub destination: Option<PathBuf>,
    /// That it was copied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// That it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    pub device: String,
    #[serde(flatten)]
    pub counts: Counts,
    pub seconds: f64,
    /// Of what was copied now.
    pub bytes_per_s: f64,
    /// Of the file, or of the tree; nothing if nothing was copied.
    pub blake3: Option<String>,
    /// What the sender could not copy.
    pub failures: Vec<Failure>,
    /// How many of these the other side has told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_of_sender: Option<u64>,
}

impl Report {
    /// Of a copy over `device`.
    pub fn of(device: &str) -> Report {
        Report { device: device.to_owned(), ..Report::default() }
    }

    /// With what was copied, and how long it took.
    pub fn measured(self, counts: Counts, hash: Option<Hash>, took: Duration) -> Report {
        let seconds = took.as_secs_f64();
        Report {
            counts,
            seconds,
            bytes_per_s: counts.bytes.saturating_sub(counts.resumed_bytes) as f64
                / seconds.max(1e-9),
            blake3: hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string()),
            ..self
        }
    }

    /// Prints it.
    pub fn tell(&self, json: bool) -> Result<()> {
        if json {
            return print_json(self);
        }
        let Counts { files, folders, links, bytes, resumed_bytes } = self.counts;
        if let Some(hash) = &self.blake3 {
            let verb = if self.source.is_some() { "Copied" } else { "Received" };
            println!(
                "{verb} {}, {}, in {} ({}){}.",
                counted(&[(files, "file"), (folders, "folder"), (links, "link")]),
                units::bytes(bytes),
                units::time(self.seconds * 1e9),
                units::bandwidth(self.bytes_per_s),
                self.place()
            );
            if resumed_bytes > 0 {
                println!("{} of it were there already.", units::bytes(resumed_bytes));
            }
            println!("Every byte was compared: BLAKE3 {hash}");
        }
        for Failure { path, why } in &self.failures {
            let told = format!("not copied: {}: {why}", path.display());
            eprintln!("bellwire: {}", printable(&told));
        }
        if let Some(failures @ 1..) = self.failures_of_sender {
            eprintln!("bellwire: {failures} were not copied: the sender says which, and why");
        }
        Ok(())
    }

    /// Where it is, if the user may not know.
    fn place(&self) -> String {
        match (&self.source, &self.destination) {
            (None, Some(place)) => printable(&format!(": it is {}", place.display())),
            _ => String::new(),
        }
    }
}

/// `2 files, 1 folder`: what there is of each.
fn counted(counts: &[(u64, &str)]) -> String {
    let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    });
    words.collect::<Vec<_>>().join(", ")
}
