//! The ledger: which worlds ran, with which code, and their results. It only grows.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// One line of the ledger: consecutive seeds without a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the simulator.
    pub version: String,
    /// Commit of the code, followed by "+" if files were changed; empty if unknown.
    pub commit: String,
    /// First seed.
    pub seed: u64,
    /// Worlds, one for each seed from the first on.
    pub worlds: u64,
    /// Frames that functions sent in all of them.
    pub frames: u64,
    /// Packets that programs took and the oracle compared.
    pub packets: u64,
    /// Trace hash of all worlds, in hexadecimal.
    pub hash: String,
}

impl Entry {
    /// Appends the entry as one line of JSON to the file `path`, which is created if it is missing.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn append(&self, path: &Path) -> std::io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
    }

    /// Reads all entries of a ledger.
    ///
    /// # Errors
    /// The number of the first line that is no entry.
    pub fn parse_all(text: &str) -> Result<Vec<Entry>, usize> {
        text.lines()
            .enumerate()
            .map(|(index, line)| serde_json::from_str(line).map_err(|_| index + 1))
            .collect()
    }
}
