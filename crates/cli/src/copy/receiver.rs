//! The side that writes: beside the destination first, and under its name only when everything is there and compared.

use super::link::{ACQUAINTANCE, CHUNK_BYTES, Link, SLOTS, hash_prefix};
use super::message::{Counts, Entry, Hash, Kind, ToReceiver, ToSender, TreeHash};
use super::names::{Budget, Names};
use super::place::{Place, SUFFIX};
use anyhow::{Context, Result, bail, ensure};
use bellwire::MemoryRegion;
use indicatif::ProgressBar;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// On what terms a sender is served.
pub struct Terms<'a> {
    /// The new name, or a folder to put it into.
    pub destination: &'a Path,
    /// Whether somebody else started it, on another host perhaps. Of such a one we take files and folders only, in places where
    /// there is nothing, and nothing that runs with our rights when somebody else starts it.
    pub is_stranger: bool,
    /// Shows what has come.
    pub bar: &'a ProgressBar,
}

/// What was received.
#[derive(Default)]
pub struct Received {
    /// Under its last name.
    pub place: PathBuf,
    /// What came, as the sender's [`super::sender::Sent`] counts it; the failures are those that the sender told of.
    pub counts: Counts,
    pub failures: u64,
    /// Of the file, or of the tree.
    pub hash: Hash,
}

/// Serves one sender to its end. `None` if it had nothing to send after all. What goes wrong is told to the sender.
pub fn serve(link: &mut Link, terms: &Terms<'_>) -> Result<Option<Received>> {
    let received = receive(link, terms);
    match &received {
        Ok(_) => {
            link.say(&ToSender::Finished)?;
            link.drain()?;
        }
        // If it is gone, it does not want to know.
        Err(error) => {
            let _ = link.say(&ToSender::Failed { why: crate::command::sentence(error) });
        }
    }
    // It has heard that when it goes.
    link.wait_for_end();
    received
}

fn receive(link: &mut Link, terms: &Terms<'_>) -> Result<Option<Received>> {
    let ToReceiver::Hello { name, folder, bytes } = link.hear_within(ACQUAINTANCE)? else {
        bail!("no greeting")
    };
    let place = Place::find(terms, &name, folder)?;
    terms.bar.set_length(bytes);
    let slots = link.allocate_slots()?;
    let key = slots.remote_key().to_bytes().to_vec();
    link.say(&ToSender::Ready { key, slots: SLOTS, resuming: place.resuming })?;
    Receiver {
        link,
        slots,
        place,
        terms,
        names: Names::new(&Budget::new()),
        tree: TreeHash::default(),
        alone: None,
        counts: Counts::default(),
        chunk: vec![0; CHUNK_BYTES],
    }
    .run()
}

/// The connection ended before the copy did.
#[derive(Debug)]
struct SenderGone;

impl std::fmt::Display for SenderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the sender is gone, or talks nonsense (what came stays in a {SUFFIX} beside DEST, and the same copy goes on from there)"
        )
    }
}

struct Receiver<'a> {
    link: &'a mut Link,
    /// Where the sender puts.
    slots: MemoryRegion,
    place: Place,
    terms: &'a Terms<'a>,
    names: Names,
    tree: TreeHash,
    /// Of the file, if it is one alone.
    alone: Option<Hash>,
    counts: Counts,
    /// A chunk is copied here once, and then hashed and written.
    chunk: Vec<u8>,
}

impl Receiver<'_> {
    fn run(mut self) -> Result<Option<Received>> {
        loop {
            match self.link.hear().context(SenderGone)? {
                ToReceiver::Entry(entry) => {
                    let path = self.place.inside(&entry.path);
                    self.entry(entry).map_err(|error| {
                        if error.is::<SenderGone>() {
                            return error;
                        }
                        let why = reason(&error);
                        error.context(format!("cannot write {}{why}", path.display()))
                    })?;
                }
                ToReceiver::Finish { hash, failures } => {
                    ensure!(self.tree.finish() == hash, "what arrived is not what was sent");
                    ensure!(self.names.contains(OsStr::new("")), "nothing arrived");
                    self.finish()?;
                    let (place, hash) = (self.place.into_name(), self.alone.unwrap_or(hash));
                    return Ok(Some(Received { place, counts: self.counts, failures, hash }));
                }
                ToReceiver::Cancel => {
                    self.place.forget_if_empty()?;
                    return Ok(None);
                }
                other => bail!("the sender said {other:?}"),
            }
        }
    }

    fn entry(&mut self, entry: Entry) -> Result<()> {
        self.check(&entry)?;
        let path = self.place.inside(&entry.path);
        match &entry.kind {
            Kind::Folder => {
                make_folder(&path)?;
                self.counts.folders += 1;
                self.tree.add(&entry, None);
            }
            Kind::Link { target } => {
                clear(&path)?;
                std::os::unix::fs::symlink(target, &path)?;
                self.counts.links += 1;
                self.tree.add(&entry, None);
            }
            Kind::File { size } => {
                let file = self.place.open_file(&path)?;
                match self.file(file, *size)? {
                    Some((file, hash)) => {
                        file.set_permissions(Permissions::from_mode(entry.mode))?;
                        self.counts.files += 1;
                        self.counts.bytes += size;
                        self.alone = entry.path.is_empty().then_some(hash);
                        self.tree.add(&entry, Some(&hash));
                    }
                    // In a tree it must not be there at the end; alone, it is where the next attempt begins.
                    None if entry.path.is_empty() => return Ok(()),
                    None => {
                        fs::remove_file(&path)?;
                        return Ok(());
                    }
                }
            }
        }
        let mode = matches!(entry.kind, Kind::Folder).then_some(entry.mode);
        self.names.add(&entry.path, mode);
        Ok(())
    }

    /// Whatever a sender says, nothing is written but inside the destination, and nothing through a link.
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
        let most = if self.terms.is_stranger { 0o777 } else { 0o7777 };
        ensure!(entry.mode <= most, "its permissions are {:o}", entry.mode);
        let lone_link = path.as_os_str().is_empty() && matches!(entry.kind, Kind::Link { .. });
        // It would lead the next copy to the same name elsewhere.
        ensure!(
            !(self.terms.is_stranger && lone_link),
            "a link alone is not taken from another host: copy what it points to"
        );
        Ok(())
    }

    /// Takes a file's data; `None` if the sender abandoned it.
    fn file(&mut self, mut file: File, size: u64) -> Result<Option<(File, Hash)>> {
        let mut hasher = blake3::Hasher::new();
        let mut have = 0;
        if self.place.resuming {
            have = file.metadata()?.len().min(size);
            let hash = hash_prefix(&mut file, &mut hasher, have)?;
            self.link.say(&ToSender::Have { bytes: have, hash })?;
        }
        match self.link.hear().context(SenderGone)? {
            ToReceiver::Begin { from } if from == have => {}
            ToReceiver::Begin { from: 0 } => {
                hasher.reset();
                have = 0;
            }
            ToReceiver::Abandon => return Ok(None),
            other => bail!("the sender said {other:?}"),
        }
        file.set_len(have)?;
        file.seek(SeekFrom::Start(have))?;
        let mut written = have;
        self.counts.resumed_bytes += have;
        self.terms.bar.inc(have);
        loop {
            match self.link.hear().context(SenderGone)? {
                ToReceiver::Chunk { slot, length } => {
                    let length = length as usize;
                    ensure!(slot < SLOTS && length <= CHUNK_BYTES, "a chunk lies elsewhere");
                    let chunk = &mut self.chunk[..length];
                    self.slots.read(slot as usize * CHUNK_BYTES, chunk);
                    self.link.say(&ToSender::Credit { slot })?;
                    written += length as u64;
                    ensure!(written <= size, "more data came than was announced");
                    hasher.update(chunk);
                    file.write_all(chunk)?;
                    self.terms.bar.inc(length as u64);
                }
                ToReceiver::End { hash } => {
                    ensure!(
                        written == size && *hasher.finalize().as_bytes() == hash,
                        "what arrived is not what was sent"
                    );
                    return Ok(Some((file, hash)));
                }
                ToReceiver::Abandon => return Ok(None),
                other => bail!("the sender said {other:?}"),
            }
        }
    }

    /// Removes what an earlier attempt left and the source does not have any more, sets the folders' permissions, and renames.
    fn finish(&mut self) -> Result<()> {
        let folders = self.names.folders();
        if self.place.resuming {
            for (folder, _) in &folders {
                prune(&self.place.inside(folder), Path::new(folder), &self.names)?;
            }
        }
        // Innermost first: a folder may be closed for writing.
        for (folder, mode) in folders {
            let path = self.place.inside(folder);
            fs::set_permissions(&path, Permissions::from_mode(mode))
                .with_context(|| format!("cannot set the permissions of {}", path.display()))?;
        }
        self.place.give_name()
    }
}

/// What the user can do something about, in words that can follow "cannot write FILE".
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

/// Makes a folder that we can write to, or finds it.
fn make_folder(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        _ => {
            clear(path)?;
            fs::create_dir(path)?;
        }
    }
    Ok(fs::set_permissions(path, Permissions::from_mode(0o700))?)
}

/// Removes whatever has the name.
pub fn clear(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(fs::remove_dir_all(path)?),
        Ok(_) => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a folder that is not among `names`.
fn prune(place: &Path, folder: &Path, names: &Names) -> Result<()> {
    for child in fs::read_dir(place)? {
        let child = child?;
        if !names.contains(folder.join(child.file_name()).as_os_str()) {
            clear(&child.path())?;
        }
    }
    Ok(())
}

impl Place {
    /// Opens a file for what comes: what is there of it is kept if an earlier attempt may have left it.
    fn open_file(&self, path: &Path) -> Result<File> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                fs::set_permissions(path, Permissions::from_mode(0o600))?;
            }
            Ok(_) => clear(path)?,
            Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        Ok(options.open(path)?)
    }
}
