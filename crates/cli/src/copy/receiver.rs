//! The side that writes: beside the destination first, and under its name only when everything is there and compared.

use super::link::{CHUNK_BYTES, Link, SLOTS, hash_prefix};
use super::message::{Entry, Hash, Kind, ToReceiver, ToSender, TreeHash};
use super::place::Place;
use anyhow::{Context, Result, bail, ensure};
use bellwire::MemoryRegion;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Serves one sender to its end. What goes wrong is told to the sender.
pub fn serve(mut link: Link, destination: &Path) -> Result<()> {
    match receive(&mut link, destination) {
        Ok(()) => Ok(()),
        Err(error) => {
            link.say(&ToSender::Failed { why: crate::command::sentence(&error) })?;
            // It listens when it has finished talking, and then it goes.
            while link.hear::<ToReceiver>().is_ok() {}
            Err(error)
        }
    }
}

fn receive(link: &mut Link, destination: &Path) -> Result<()> {
    let ToReceiver::Hello { name, folder } = link.hear()? else { bail!("no greeting") };
    let place = Place::find(destination, &name, folder)?;
    let slots = link.allocate_slots()?;
    let key = slots.remote_key().to_bytes().to_vec();
    link.say(&ToSender::Ready { key, slots: SLOTS, resuming: place.resuming })?;
    Receiver {
        link,
        slots,
        place,
        folders: Vec::new(),
        known: HashMap::new(),
        tree: TreeHash::default(),
        chunk: vec![0; CHUNK_BYTES],
    }
    .run()
}

struct Receiver<'a> {
    link: &'a mut Link,
    /// Where the sender puts.
    slots: MemoryRegion,
    place: Place,
    /// Folders that are there, with the permissions that they will have.
    folders: Vec<(PathBuf, u32)>,
    /// Every path that came, and whether it is a folder.
    known: HashMap<OsString, bool>,
    tree: TreeHash,
    /// A chunk is copied here once, and then hashed and written.
    chunk: Vec<u8>,
}

impl Receiver<'_> {
    fn run(mut self) -> Result<()> {
        loop {
            match self.link.hear()? {
                ToReceiver::Entry(entry) => {
                    let path = self.place.inside(&entry.path);
                    self.entry(entry).map_err(|error| {
                        let why = reason(&error);
                        error.context(format!("cannot write {}{why}", path.display()))
                    })?;
                }
                ToReceiver::Finish { hash } => {
                    ensure!(self.tree.finish() == hash, "what arrived is not what was sent");
                    self.finish()?;
                    break;
                }
                ToReceiver::Cancel => {
                    self.place.forget_if_empty()?;
                    break;
                }
                other => bail!("the sender said {other:?}"),
            }
        }
        self.link.say(&ToSender::Finished)?;
        self.link.drain()
    }

    fn entry(&mut self, entry: Entry) -> Result<()> {
        self.check(&entry)?;
        let path = self.place.inside(&entry.path);
        match &entry.kind {
            Kind::Folder => {
                make_folder(&path)?;
                self.folders.push((entry.path.clone().into(), entry.mode));
                self.tree.add(&entry, None);
            }
            Kind::Link { target } => {
                clear(&path)?;
                std::os::unix::fs::symlink(target, &path)?;
                self.tree.add(&entry, None);
            }
            Kind::File { size } => {
                let file = self.place.open_file(&path)?;
                match self.file(file, *size)? {
                    Some((file, hash)) => {
                        file.set_permissions(Permissions::from_mode(entry.mode))?;
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
        self.known.insert(entry.path, matches!(entry.kind, Kind::Folder));
        Ok(())
    }

    /// Whatever a sender says, nothing is written but inside the destination, and nothing through a link.
    fn check(&self, entry: &Entry) -> Result<()> {
        let path = Path::new(&entry.path);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(plain, "the name {path:?} leads elsewhere");
        ensure!(!self.known.contains_key(&entry.path), "it came twice");
        match path.parent() {
            None => ensure!(
                matches!(entry.kind, Kind::Folder) == self.place.folder,
                "what was announced as a folder is none, or the other way round"
            ),
            Some(parent) => ensure!(
                self.known.get(parent.as_os_str()) == Some(&true),
                "its folder was not sent"
            ),
        }
        ensure!(entry.mode <= 0o7777, "its permissions are {:o}", entry.mode);
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
        match self.link.hear()? {
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
        loop {
            match self.link.hear()? {
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
        if self.place.resuming {
            for (folder, _) in &self.folders {
                prune(&self.place.inside(folder.as_os_str()), folder, &self.known)?;
            }
        }
        // Innermost first: a folder may be closed for writing.
        for (folder, mode) in self.folders.iter().rev() {
            let path = self.place.inside(folder.as_os_str());
            fs::set_permissions(&path, Permissions::from_mode(*mode))
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

/// Removes everything in a folder that is not `known`.
fn prune(place: &Path, folder: &Path, known: &HashMap<OsString, bool>) -> Result<()> {
    for child in fs::read_dir(place)? {
        let child = child?;
        if !known.contains_key(folder.join(child.file_name()).as_os_str()) {
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
