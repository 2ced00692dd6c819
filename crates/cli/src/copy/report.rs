//! The report at the end of a copy.

use super::message::{Counts, Hash};
use super::walk::{self, Failure};
use crate::command::{print_json, printable};
use crate::units;
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The object that `--json` prints. Fields that one side does not know are absent.
#[derive(Default, Serialize)]
pub struct Report {
    #[serde(serialize_with = "walk::as_text", skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
    /// The copy's final path.
    #[serde(serialize_with = "walk::as_text", skip_serializing_if = "Option::is_none")]
    pub destination: Option<PathBuf>,
    /// The host that it was copied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The node that it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    pub device: String,
    #[serde(flatten)]
    pub counts: Counts,
    pub seconds: f64,
    /// Rate of the bytes copied in this run.
    pub bytes_per_s: f64,
    /// Hash of the file, or of the tree; absent if nothing was copied.
    pub blake3: Option<String>,
    /// Failures on the sender's side.
    pub failures: Vec<Failure>,
    /// How many failures the other side reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_of_sender: Option<u64>,
}

impl Report {
    /// An empty report of a copy over `device`.
    pub fn of(device: &str) -> Report {
        Report { device: device.to_owned(), ..Report::default() }
    }

    /// Adds counts, hash and duration.
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

    /// The place of the copy, if the user may not know it.
    fn place(&self) -> String {
        match (&self.source, &self.destination) {
            (None, Some(place)) => printable(&format!(": it is {}", place.display())),
            _ => String::new(),
        }
    }
}

/// Counts as text: `2 files, 1 folder`.
fn counted(counts: &[(u64, &str)]) -> String {
    let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    });
    words.collect::<Vec<_>>().join(", ")
}
