//! Rows on disk while a sweep runs.
//!
//! A journal is a file of lines, each a JSON object: first the sweep, then a row for each point
//! that ended. A line is written in one call. Whoever is killed leaves whole lines and perhaps a
//! piece of one. The next run drops the piece, and repeats no point that has a line.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{Row, Sweep};

/// No line of ours is as long.
const LONGEST_LINE: u64 = 1 << 20;

/// An open journal.
pub struct Journal {
    file: File,
    path: PathBuf,
    rows: BTreeMap<u64, Row>,
    points: Range<u64>,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The identity of the sweep.
    bellwire_sweep: String,
    /// The version that runs it.
    version: String,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot write {}: {error}{}", path.display(), goes_on(*kept))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
        /// The rows that it has.
        kept: usize,
    },
    /// It is another file.
    #[error("{} is no journal of a sweep; move it away, or give the results another name", .0.display())]
    NotAJournal(PathBuf),
    /// It belongs to another sweep.
    #[error("{} is the journal of another sweep; finish that one with its own file, or remove the journal, or give the results another name", .0.display())]
    OtherSweep(PathBuf),
    /// It was begun by another version, whose points may have other results.
    #[error("{} was begun by version {found}, and this is {}; finish it with that version, or remove the journal", path.display(), crate::VERSION)]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version that began it.
        found: String,
    },
    /// Another process writes it.
    #[error("{} is in use: the same sweep runs already", .0.display())]
    InUse(PathBuf),
}

/// What is left after an error, if anything is.
fn goes_on(kept: usize) -> String {
    match kept {
        0 => String::new(),
        _ => format!(
            "; the {kept} points that ended are kept, so the same command goes on from there"
        ),
    }
}

impl Journal {
    /// The journal beside a file of results.
    pub fn beside(results: &Path) -> PathBuf {
        let mut name = results.as_os_str().to_owned();
        name.push(".journal");
        name.into()
    }

    /// Opens the journal of these points of a sweep, or begins one.
    ///
    /// # Errors
    /// If it belongs to something else, or to somebody else, or cannot be read or written.
    pub fn open(path: &Path, sweep: &Sweep, points: Range<u64>) -> Result<Journal, JournalError> {
        let failed = |error| JournalError::Io { path: path.to_owned(), error, kept: 0 };
        let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = opened.map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            match io::Error::from(error) {
                busy if busy.kind() == io::ErrorKind::WouldBlock => {
                    JournalError::InUse(path.to_owned())
                }
                error => failed(error),
            }
        })?;
        let mut journal = Journal { file, path: path.to_owned(), rows: BTreeMap::new(), points };
        journal.read(sweep)?;
        Ok(journal)
    }

    /// Reads what is there, drops a piece of a line at the end, and writes the first line.
    fn read(&mut self, sweep: &Sweep) -> Result<(), JournalError> {
        let mut whole = 0;
        let mut reader = BufReader::new(&self.file);
        let mut line = Vec::new();
        let mut has_head = false;
        loop {
            line.clear();
            match (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(bytes) if bytes as u64 == LONGEST_LINE => {
                    return Err(JournalError::NotAJournal(self.path.clone()));
                }
                Ok(_) if line.last() != Some(&b'\n') => {
                    // Ours begins so, however short it is.
                    let ours = b"{\"bellwire_sweep\":";
                    let begins = line.iter().zip(ours).all(|(found, ours)| found == ours);
                    if !has_head && !begins {
                        return Err(JournalError::NotAJournal(self.path.clone()));
                    }
                    break;
                }
                Ok(bytes) => whole += bytes as u64,
                Err(error) => return Err(self.failed(error)),
            }
            if !has_head {
                self.check(&line, sweep)?;
                has_head = true;
                continue;
            }
            let row: Row = serde_json::from_slice(&line)
                .map_err(|_| JournalError::NotAJournal(self.path.clone()))?;
            self.rows.insert(row.point, row);
        }
        self.file.set_len(whole).map_err(|error| self.failed(error))?;
        self.file.seek(SeekFrom::End(0)).map_err(|error| self.failed(error))?;
        if !has_head {
            let version = crate::VERSION.to_owned();
            self.write(&Head { bellwire_sweep: sweep.identity().to_owned(), version })?;
        }
        Ok(())
    }

    fn check(&self, line: &[u8], sweep: &Sweep) -> Result<(), JournalError> {
        let path = || self.path.clone();
        let head = serde_json::from_slice(line);
        let Head { bellwire_sweep, version } =
            head.map_err(|_| JournalError::NotAJournal(path()))?;
        if version != crate::VERSION {
            return Err(JournalError::OtherVersion { path: path(), found: version });
        }
        if bellwire_sweep != sweep.identity() {
            return Err(JournalError::OtherSweep(path()));
        }
        Ok(())
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, row: Row) -> Result<(), JournalError> {
        self.write(&row)?;
        self.rows.insert(row.point, row);
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let mut text = serde_json::to_vec(line).map_err(|error| self.failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Io { path: self.path.clone(), error, kept: self.rows.len() }
    }

    /// The points without a row.
    pub fn missing(&self) -> Vec<u64> {
        self.points.clone().filter(|point| !self.rows.contains_key(point)).collect()
    }

    /// The rows, by the number of their point.
    pub fn rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.rows.range(self.points.clone()).map(|(_, row)| row)
    }

    /// Removes the file, once the results are elsewhere.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}
