//! The writing side. It writes beside the destination, and renames once everything is complete and
//! compared.
//!
//! One [`Receiver`] is one copy. It is a state machine that takes messages and writes files; it
//! knows no connection.

use super::beneath::{clear, each_child};
use super::link::CHUNK_BYTES;
use super::message::{Counts, Entry, Hash, Kind, ToReceiver, ToSender, TreeHash};
use super::names::{Budget, Names};
use super::part::Leftovers;
use super::place::{Destination, Place};
use super::turns::ENTRY_BYTES;
use anyhow::{Context, Result, bail, ensure};
use bellwire::MemoryRegion;
use indicatif::ProgressBar;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Chunks in a receiver's memory for one sender.
pub const SLOTS: u32 = 16;

pub struct Received {
    pub place: PathBuf,
    /// Counts as in the sender's [`super::sender::Sent`]; the failures are those that the sender
    /// reported.
    pub counts: Counts,
    pub failures: u64,
    /// Hash of the file, or of the tree.
    pub hash: Hash,
}

pub enum Step {
    /// The copy goes on. The sender made this progress, in bytes.
    Progress(u64),
    Complete(Received),
    /// The sender has nothing to send.
    Nothing,
}

pub struct Receiver {
    /// Memory that the sender puts to.
    pub slots: MemoryRegion,
    place: Place,
    of_stranger: bool,
    pub bar: ProgressBar,
    names: Names,
    tree: TreeHash,
    /// Hash of the file, if the source is a single file.
    alone: Option<Hash>,
    counts: Counts,
    state: State,
}

/// What the receiver expects next.
enum State {
    /// An entry, or the end.
    Entries,
    /// Hashing our part of a file.
    Comparing { file: Incoming, left: u64 },
    /// The sender's decision where to begin with a file. `have`: bytes of our part; `compared`:
    /// bytes that the sender reports as compared.
    Offered { file: Incoming, have: u64, compared: u64 },
    /// The file's data.
    Data(Incoming),
}

/// A file that is being received.
struct Incoming {
    entry: Entry,
    size: u64,
    file: File,
    hasher: blake3::Hasher,
    /// Bytes written and hashed.
    written: u64,
}

impl Receiver {
    /// A copy to `place`; its data is put to `slots`.
    pub fn new(
        place: Place,
        slots: MemoryRegion,
        destination: &Destination,
        budget: &Budget,
        bar: ProgressBar,
    ) -> Receiver {
        Receiver {
            slots,
            place,
            of_stranger: destination.of_strangers,
            bar,
            names: Names::new(budget),
            tree: TreeHash::default(),
            alone: None,
            counts: Counts::default(),
            state: State::Entries,
        }
    }

    /// Handles a message and adds the answers to `answers`. `chunk`: memory for a chunk.
    pub fn hear(
        &mut self,
        message: ToReceiver,
        destination: &mut Destination,
        chunk: &mut [u8],
        answers: &mut Vec<ToSender>,
    ) -> Result<Step> {
        match (std::mem::replace(&mut self.state, State::Entries), message) {
            (State::Entries, ToReceiver::Entry(entry)) => {
                let path = self.place.inside(&entry.path);
                let leftovers = &mut destination.leftovers;
                self.entry(entry, leftovers, answers)
                    .map_err(|error| cannot_write(&path, error))?;
                Ok(Step::Progress(ENTRY_BYTES))
            }
            (State::Entries, ToReceiver::Finish { hash, failures }) => {
                ensure!(self.tree.finish() == hash, "what arrived is not what was sent");
                ensure!(self.names.contains(OsStr::new("")), "nothing arrived");
                let place = self.finish(destination)?;
                let (counts, hash) = (self.counts, self.alone.unwrap_or(hash));
                Ok(Step::Complete(Received { place, counts, failures, hash }))
            }
            (State::Entries, ToReceiver::Cancel) => Ok(Step::Nothing),
            (State::Entries, message) => bail!("the sender said {message:?}"),
            (
                State::Comparing { file, .. } | State::Offered { file, .. } | State::Data(file),
                ToReceiver::Abandon,
            ) => {
                self.abandon(&file.entry)?;
                Ok(Step::Progress(0))
            }
            (State::Offered { file, have, compared }, message) => {
                let path = self.place.inside(&file.entry.path);
                self.begin(file, have, compared, message)
                    .map_err(|error| cannot_write(&path, error))
            }
            (State::Data(file), message) => {
                let path = self.place.inside(&file.entry.path);
                let data = self.data(file, message, &mut destination.leftovers, chunk, answers);
                data.map_err(|error| cannot_write(&path, error))
            }
            // A sender that begins anew need not wait for the comparison.
            (State::Comparing { file, .. }, message @ ToReceiver::Begin { from: 0 }) => {
                let path = self.place.inside(&file.entry.path);
                self.begin(file, 0, 0, message).map_err(|error| cannot_write(&path, error))
            }
            (State::Comparing { .. }, message) => bail!("the sender said {message:?} too early"),
        }
    }

    /// Whether there is work without a message.
    pub fn has_work(&self) -> bool {
        matches!(self.state, State::Comparing { .. })
    }

    /// Does a piece of that work; the sender waits for it.
    pub fn work(&mut self, chunk: &mut [u8], answers: &mut Vec<ToSender>) -> Result<()> {
        let State::Comparing { mut file, left } =
            std::mem::replace(&mut self.state, State::Entries)
        else {
            return Ok(());
        };
        let path = self.place.inside(&file.entry.path);
        let piece = &mut chunk[..left.min(CHUNK_BYTES as u64) as usize];
        let read = file.file.read_exact_at(piece, file.written);
        let read = read.context("cannot read what is there already");
        read.map_err(|error| cannot_write(&path, error))?;
        file.hasher.update(piece);
        file.written += piece.len() as u64;
        let left = left - piece.len() as u64;
        self.state =
            if left == 0 { Self::offer(file, answers) } else { State::Comparing { file, left } };
        Ok(())
    }

    /// Tells the sender which part of the file we have.
    fn offer(file: Incoming, answers: &mut Vec<ToSender>) -> State {
        let (have, hash) = (file.written, *file.hasher.finalize().as_bytes());
        answers.push(ToSender::Have { bytes: have, hash });
        State::Offered { file, have, compared: 0 }
    }

    /// Ends an incomplete copy. Its part stays for the next attempt.
    pub fn leave(self, destination: &mut Destination) -> MemoryRegion {
        if destination.of_strangers {
            destination.leftovers.add(self.place.part);
        } else {
            self.place.part.forget_if_empty();
        }
        self.slots
    }

    fn entry(
        &mut self,
        entry: Entry,
        leftovers: &mut Leftovers,
        answers: &mut Vec<ToSender>,
    ) -> Result<()> {
        self.check(&entry)?;
        let part = &self.place.part;
        match &entry.kind {
            Kind::Folder => {
                with_room(leftovers, || part.make(&entry.path, true))?;
                self.counts.folders += 1;
                self.tree.add(&entry, None);
                self.names.add(&entry.path, Some(entry.mode));
            }
            Kind::Link { target } => {
                with_room(leftovers, || part.make_link(&entry.path, target))?;
                self.counts.links += 1;
                self.tree.add(&entry, None);
                self.names.add(&entry.path, None);
            }
            &Kind::File { size } => {
                let file = with_room(leftovers, || part.make(&entry.path, false))?;
                let there = file.metadata()?.len().min(size);
                let hasher = blake3::Hasher::new();
                let file = Incoming { entry, size, file, hasher, written: 0 };
                self.state = match part.resuming {
                    false => State::Offered { file, have: 0, compared: 0 },
                    true if there == 0 => Self::offer(file, answers),
                    true => State::Comparing { file, left: there },
                };
            }
        }
        Ok(())
    }

    /// Checks a sender's entry: nothing is written outside the destination or through a link.
    fn check(&mut self, entry: &Entry) -> Result<()> {
        let path = Path::new(&entry.path);
        ensure!(entry.leads_inside(), "the name {path:?} leads elsewhere");
        ensure!(!self.names.contains(&entry.path), "it came twice");
        self.names.reserve(entry.path.len())?;
        match path.parent() {
            None => ensure!(
                matches!(entry.kind, Kind::Folder) == self.place.folder,
                "what was announced as a folder is none, or the other way round"
            ),
            Some(parent) => {
                ensure!(self.names.is_folder(parent.as_os_str()), "its folder was not sent")
            }
        }
        if let Kind::File { size } = entry.kind {
            ensure!(i64::try_from(size).is_ok(), "no file can have {size} bytes");
        }
        let most = if self.of_stranger { 0o777 } else { 0o7777 };
        ensure!(entry.mode <= most, "its permissions are {:o}", entry.mode);
        let lone_link = path.as_os_str().is_empty() && matches!(entry.kind, Kind::Link { .. });
        // A lone link would redirect the next copy to the same name.
        ensure!(
            !(self.of_stranger && lone_link),
            "a link alone is not taken from another host: copy what it points to"
        );
        Ok(())
    }

    /// Handles the messages before a file's data.
    fn begin(
        &mut self,
        mut file: Incoming,
        have: u64,
        compared: u64,
        message: ToReceiver,
    ) -> Result<Step> {
        match message {
            ToReceiver::Begin { from: 0 } => {
                file.hasher.reset();
                file.written = 0;
            }
            ToReceiver::Begin { from } if from == have => {}
            // It cannot have compared more than there is.
            ToReceiver::Comparing { bytes } if bytes <= have - compared => {
                self.state = State::Offered { file, have, compared: compared + bytes };
                return Ok(Step::Progress(bytes));
            }
            message => bail!("the sender said {message:?}"),
        }
        file.file.set_len(file.written)?;
        self.counts.resumed_bytes += file.written;
        self.bar.inc(file.written);
        self.state = State::Data(file);
        Ok(Step::Progress(0))
    }

    /// Handles the messages of a file's data.
    fn data(
        &mut self,
        mut file: Incoming,
        message: ToReceiver,
        leftovers: &mut Leftovers,
        chunk: &mut [u8],
        answers: &mut Vec<ToSender>,
    ) -> Result<Step> {
        match message {
            ToReceiver::Chunk { slot, length } => {
                let length = length as usize;
                ensure!(slot < SLOTS && length <= CHUNK_BYTES, "a chunk lies elsewhere");
                let (chunk, at) = (&mut chunk[..length], file.written);
                self.slots.read(slot as usize * CHUNK_BYTES, chunk);
                answers.push(ToSender::Credit { slot });
                file.written += length as u64;
                ensure!(file.written <= file.size, "more data came than was announced");
                file.hasher.update(chunk);
                with_room(leftovers, || file.file.write_all_at(chunk, at))?;
                self.bar.inc(length as u64);
                self.state = State::Data(file);
                Ok(Step::Progress(length as u64))
            }
            ToReceiver::End { hash } => {
                ensure!(
                    file.written == file.size && *file.hasher.finalize().as_bytes() == hash,
                    "what arrived is not what was sent"
                );
                let entry = file.entry;
                file.file.set_permissions(Permissions::from_mode(entry.mode))?;
                self.counts.files += 1;
                self.counts.bytes += file.size;
                self.alone = entry.path.is_empty().then_some(hash);
                self.tree.add(&entry, Some(&hash));
                self.names.add(&entry.path, None);
                Ok(Step::Progress(0))
            }
            message => bail!("the sender said {message:?}"),
        }
    }

    /// The sender cannot read a file to its end. Remove it from a tree; keep a single file for the
    /// next attempt.
    fn abandon(&mut self, entry: &Entry) -> Result<()> {
        if !entry.path.is_empty() {
            self.place.part.remove_file(&entry.path)?;
        }
        Ok(())
    }

    /// Removes leftovers that the source no longer has, sets the folders' permissions, and renames.
    fn finish(&mut self, destination: &mut Destination) -> Result<PathBuf> {
        let (part, folders) = (&self.place.part, self.names.folders());
        if part.resuming {
            for (folder, _) in &folders {
                let pruned = part.folder(folder).and_then(|it| prune(it, folder, &self.names));
                pruned.map_err(|error| cannot_write(&self.place.inside(folder), error.into()))?;
            }
        }
        // Innermost first: the permissions of a parent may forbid writing.
        for (folder, mode) in folders {
            let mode = Permissions::from_mode(mode);
            part.folder(folder).and_then(|it| it.set_permissions(mode)).with_context(|| {
                format!("cannot set the permissions of {}", self.place.inside(folder).display())
            })?;
        }
        // A link alone has taken the place of the part.
        if self.place.folder || self.alone.is_some() {
            part.ensure_in_place()?;
        }
        self.place.give_name(destination)
    }
}

/// The error for a file, folder or link that cannot be written.
fn cannot_write(path: &Path, error: anyhow::Error) -> anyhow::Error {
    let why = reason(&error);
    error.context(format!("cannot write {}{why}", path.display()))
}

/// The cause in words that the user can act on, to follow "cannot write FILE".
fn reason(error: &anyhow::Error) -> &'static str {
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<std::io::Error>()?.kind()));
    match kind {
        Some(ErrorKind::StorageFull) => {
            ", because there is no room left: make some, or choose another place"
        }
        Some(ErrorKind::QuotaExceeded) => ", because your quota there is used up",
        Some(ErrorKind::FileTooLarge) => {
            ", because it is longer than files may become there (see `ulimit -f`)"
        }
        Some(ErrorKind::ReadOnlyFilesystem) => ", because nothing can be written there",
        _ => "",
    }
}

/// Removes everything in the folder at `path` that is not among `names`.
fn prune(folder: File, path: &OsStr, names: &Names) -> std::io::Result<()> {
    let path = Path::new(path);
    each_child(folder, |folder, name| match names.contains(path.join(name).as_os_str()) {
        true => Ok(()),
        false => clear(folder, name),
    })
}

/// Runs `work`. While the disc is full, removes leftovers of strangers and retries.
fn with_room<T>(
    leftovers: &mut Leftovers,
    mut work: impl FnMut() -> std::io::Result<T>,
) -> std::io::Result<T> {
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::StorageFull && leftovers.make_room() => {}
            done => return done,
        }
    }
}
