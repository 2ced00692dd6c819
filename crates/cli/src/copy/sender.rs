//! The reading side.

use super::beneath;
use super::link::{CHUNK_BYTES, Link, hash_prefix};
use super::message::{Counts, Entry, Hash, Kind, ToReceiver, ToSender, TreeHash};
use super::origin::origin;
use super::part::SUFFIX;
use super::receiver::SLOTS;
use super::walk::{Failure, Tree, absolute};
use anyhow::{Context, Result, anyhow, bail, ensure};
use bellwire::RemoteKey;
use indicatif::ProgressBar;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Default)]
pub struct Sent {
    pub counts: Counts,
    /// Entries that could not be read.
    pub failures: Vec<Failure>,
    /// Hash of the file, or of the tree; `None` if nothing arrived.
    pub hash: Option<Hash>,
}

pub struct Source<'a> {
    pub path: &'a Path,
    /// The last part of its name, used if the destination is a folder.
    pub name: OsString,
    pub tree: Tree,
    /// Mask of the permission bits that are sent.
    pub modes: u32,
}

/// Bytes compared between two progress messages: a tenth of a second, or a few seconds of a slow
/// disc.
const TELLING_BYTES: u64 = 16 << 20;

pub struct Sender<'a> {
    link: Link,
    source: &'a Path,
    modes: u32,
    bar: &'a ProgressBar,
    key: RemoteKey,
    /// Free slots of the receiver's memory.
    credits: Vec<u32>,
    resuming: bool,
    tree: TreeHash,
    sent: Sent,
}

/// Sends everything, and waits until the copy has its final name.
pub fn send(mut link: Link, source: Source<'_>, bar: &ProgressBar) -> Result<Sent> {
    let Source { path, name, tree, modes } = source;
    let folder = matches!(tree.entries.first(), Some(Entry { kind: Kind::Folder, .. }));
    let origin = origin(path, &name)?;
    link.say(&ToReceiver::Hello { name, folder, bytes: tree.bytes, origin })?;
    Sender::begin(link, path, modes, bar)?.send(tree).with_context(|| {
        format!(
            "the copy is not complete (what is there stays in a {SUFFIX} beside it, and the same command goes on from there)"
        )
    })
}

impl<'a> Sender<'a> {
    /// Handles the receiver's offer.
    fn begin(
        mut link: Link,
        source: &'a Path,
        modes: u32,
        bar: &'a ProgressBar,
    ) -> Result<Sender<'a>> {
        match hear(&mut link)? {
            ToSender::Ready { key, slots, resuming } => {
                let key = RemoteKey::from_bytes(&key).context("the receiver sent no key")?;
                ensure!(
                    u64::from(slots) * CHUNK_BYTES as u64 == key.length
                        && (1..=SLOTS).contains(&slots),
                    "the receiver's memory has {} bytes for {slots} chunks",
                    key.length
                );
                let credits = (0..slots).collect();
                let (tree, sent) = (TreeHash::default(), Sent::default());
                Ok(Sender { link, source, modes, bar, key, credits, resuming, tree, sent })
            }
            other => bail!("the receiver said {other:?}"),
        }
    }

    fn send(mut self, tree: Tree) -> Result<Sent> {
        self.sent.failures = tree.failures;
        let alone = !matches!(tree.entries.first(), Some(Entry { kind: Kind::Folder, .. }));
        let mut content = None;
        for entry in tree.entries {
            content = self.entry(entry)?;
        }
        if alone && !self.sent.failures.is_empty() {
            self.link.say(&ToReceiver::Cancel)?;
        } else {
            let hash = self.tree.finish();
            let failures = self.sent.failures.len() as u64;
            self.link.say(&ToReceiver::Finish { hash, failures })?;
            // For a single file: the plain hash, as other programs compute it.
            self.sent.hash = if alone { content.or(Some(hash)) } else { Some(hash) };
        }
        self.link.drain()?;
        loop {
            match hear(&mut self.link)? {
                ToSender::Credit { .. } => {}
                ToSender::Finished => return Ok(self.sent),
                other => bail!("the receiver said {other:?}"),
            }
        }
    }

    /// Sends one entry. Returns the hash of its content if it is a file.
    fn entry(&mut self, mut entry: Entry) -> Result<Option<Hash>> {
        // A receiver that gives up says so. Without this check, the sender notices only when it
        // runs out of slots.
        while let Some(message) = self.link.hear_now()? {
            match understood(message)? {
                ToSender::Credit { slot } => self.credited(slot)?,
                other => bail!("the receiver said {other:?}"),
            }
        }
        entry.mode &= self.modes;
        let hash = match &entry.kind {
            Kind::Folder => {
                self.sent.counts.folders += 1;
                self.link.say(&ToReceiver::Entry(entry.clone()))?;
                None
            }
            Kind::Link { .. } => {
                self.sent.counts.links += 1;
                self.link.say(&ToReceiver::Entry(entry.clone()))?;
                None
            }
            Kind::File { size } => {
                let path = entry.path.clone();
                let announced = *size;
                match open(self.source, &entry.path) {
                    Ok((file, metadata)) => {
                        let kind = Kind::File { size: metadata.size() };
                        let entry = Entry { path, mode: metadata.mode() & self.modes, kind };
                        let Some(hash) = self.file(&entry, file, &metadata)? else {
                            return Ok(None);
                        };
                        self.tree.add(&entry, Some(&hash));
                        return Ok(Some(hash));
                    }
                    Err(error) => {
                        self.bar.inc(announced);
                        self.fail(&entry, crate::command::sentence(&error));
                        return Ok(None);
                    }
                }
            }
        };
        self.tree.add(&entry, None);
        Ok(hash)
    }

    /// Sends a file. `None` if it could not be read, which is already reported; an error means the
    /// connection or the receiver.
    fn file(&mut self, entry: &Entry, mut file: File, before: &Metadata) -> Result<Option<Hash>> {
        self.link.say(&ToReceiver::Entry(entry.clone()))?;
        let mut hasher = blake3::Hasher::new();
        let from = match self.resume(&mut file, &mut hasher, before.size())? {
            Ok(from) => from,
            Err(why) => return self.abandon(entry, why),
        };
        self.link.say(&ToReceiver::Begin { from })?;
        self.sent.counts.resumed_bytes += from;
        self.bar.inc(from);

        let mut at = from;
        while at < before.size() {
            let length = (before.size() - at).min(CHUNK_BYTES as u64) as usize;
            let mut buffer = self.link.buffer()?;
            buffer.resize(length, 0);
            if let Err(error) = file.read_exact(&mut buffer) {
                self.link.give_back(buffer);
                let why = match error.kind() {
                    ErrorKind::UnexpectedEof => CHANGED.to_owned(),
                    _ => error.to_string(),
                };
                return self.abandon(entry, why);
            }
            hasher.update(&buffer);
            let slot = self.credit()?;
            let to = self.key.slice(u64::from(slot) * CHUNK_BYTES as u64, length as u64);
            self.link.put(buffer, to)?;
            self.link.say(&ToReceiver::Chunk { slot, length: length as u32 })?;
            at += length as u64;
            self.bar.inc(length as u64);
        }
        match changed(&mut file, before) {
            Ok(false) => {}
            Ok(true) => return self.abandon(entry, CHANGED.to_owned()),
            Err(error) => return self.abandon(entry, error.to_string()),
        }
        let hash = *hasher.finalize().as_bytes();
        self.link.say(&ToReceiver::End { hash })?;
        self.sent.counts.files += 1;
        self.sent.counts.bytes += before.size();
        Ok(Some(hash))
    }

    /// Finds where to resume: at the end of the receiver's part if our file begins with it. The
    /// inner error is the file's.
    fn resume(
        &mut self,
        file: &mut File,
        hasher: &mut blake3::Hasher,
        size: u64,
    ) -> Result<Result<u64, String>> {
        if !self.resuming {
            return Ok(Ok(0));
        }
        let (bytes, theirs) = loop {
            match hear(&mut self.link)? {
                ToSender::Credit { slot } => self.credited(slot)?,
                ToSender::Have { bytes, hash } => break (bytes, hash),
                other => bail!("the receiver said {other:?}"),
            }
        };
        if bytes == 0 || bytes > size {
            return Ok(Ok(0));
        }
        // An error of the connection is not an error of the file.
        let (link, mut untold, mut broken) = (&mut self.link, 0, None);
        let mut tell = |done: u64| {
            untold += done;
            if untold < TELLING_BYTES {
                return Ok(());
            }
            let said = link.say(&ToReceiver::Comparing { bytes: std::mem::take(&mut untold) });
            said.map_err(|error| {
                broken = Some(error);
                anyhow!("the receiving side is gone")
            })
        };
        let mut compare = |file: &mut File, hasher: &mut blake3::Hasher| {
            let same = hash_prefix(file, hasher, bytes, &mut tell)? == theirs;
            if !same {
                file.seek(SeekFrom::Start(0))?;
                hasher.reset();
            }
            anyhow::Ok(if same { bytes } else { 0 })
        };
        let compared = compare(file, hasher).map_err(|error| crate::command::sentence(&error));
        match broken {
            Some(error) => Err(error),
            None => Ok(compared),
        }
    }

    /// A slot is free again.
    fn credited(&mut self, slot: u32) -> Result<()> {
        let is_new =
            u64::from(slot) < self.key.length / CHUNK_BYTES as u64 && !self.credits.contains(&slot);
        ensure!(is_new, "the receiver gave slot {slot} back, which it had not to give");
        self.credits.push(slot);
        Ok(())
    }

    /// Waits for a free slot.
    fn credit(&mut self) -> Result<u32> {
        loop {
            if let Some(slot) = self.credits.pop() {
                return Ok(slot);
            }
            match hear(&mut self.link)? {
                ToSender::Credit { slot } => self.credited(slot)?,
                other => bail!("the receiver said {other:?}"),
            }
        }
    }

    fn abandon(&mut self, entry: &Entry, why: String) -> Result<Option<Hash>> {
        self.link.say(&ToReceiver::Abandon)?;
        self.fail(entry, why);
        Ok(None)
    }

    fn fail(&mut self, entry: &Entry, why: String) {
        self.sent.failures.push(Failure { path: absolute(self.source, &entry.path), why });
    }
}

const CHANGED: &str = "it changed while it was copied: copy it again when nobody writes to it";

/// Opens the file at `path` below `source` for reading. A link that somebody has put in the place
/// of the file, or of a folder on the way to it, is not followed.
fn open(source: &Path, path: &OsStr) -> Result<(File, Metadata)> {
    // A named pipe in the file's place must not block us.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = if path.is_empty() {
        File::from(openat(CWD, source, flags, Mode::empty())?)
    } else {
        let top = openat(CWD, source, beneath::WAY, Mode::empty())?;
        beneath::open(top.as_fd(), Path::new(path), flags)?
    };
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "it is no longer a file");
    Ok((file, metadata))
}

/// Whether a file has grown past its former end, or has another modification time.
fn changed(file: &mut File, before: &Metadata) -> std::io::Result<bool> {
    let more = file.read(&mut [0])? > 0;
    let after = file.metadata()?;
    let times = |metadata: &Metadata| (metadata.mtime(), metadata.mtime_nsec());
    Ok(more || after.size() != before.size() || times(&after) != times(before))
}

/// The receiver's next message; an error if it has given up.
fn hear(link: &mut Link) -> Result<ToSender> {
    understood(link.hear().context("the receiving side is gone")?)
}

fn understood(message: ToSender) -> Result<ToSender> {
    match message {
        ToSender::Failed { why } => bail!("{why}"),
        message => Ok(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A link that is swapped in after the listing, for a file or for a folder on the way to it, is
    /// not followed, whichever way the kernel offers.
    #[test]
    fn links_swapped_meanwhile_are_not_followed() {
        let place = std::env::temp_dir().join(format!("bellwire-swap-{}", std::process::id()));
        let (source, secret) = (place.join("from"), place.join("secret"));
        fs::create_dir_all(source.join("a/b")).expect("folders");
        fs::create_dir_all(secret.join("b")).expect("folders");
        fs::write(source.join("a/b/file"), "ours").expect("a file");
        fs::write(secret.join("b/file"), "not for you").expect("a file");
        let both = |path: &str| {
            let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let top = openat(CWD, &source, folder, Mode::empty()).expect("a folder");
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
            let by_hand = beneath::step_by_step(top.as_fd(), Path::new(path), flags);
            let opened = open(&source, OsStr::new(path)).is_ok();
            assert_eq!(opened, by_hand.is_ok(), "{path}");
            opened
        };
        assert!(both("a/b/file"));
        assert!(!both("a/b/../../../secret/b/none"));
        let swap = |old: &str, target: &Path| {
            let old = source.join(old);
            fs::rename(&old, place.join("away")).expect("ours");
            symlink(target, &old).expect("a link");
            let followed = both("a/b/file");
            fs::remove_file(&old).expect("ours");
            fs::rename(place.join("away"), &old).expect("ours");
            followed
        };
        assert!(!swap("a", &secret), "a folder above it");
        assert!(!swap("a/b", &secret.join("b")), "its folder");
        assert!(!swap("a/b/file", &secret.join("b/file")), "the file");
        assert!(both("a/b/file"));
        let alone = place.join("alone");
        symlink(secret.join("b/file"), &alone).expect("a link");
        assert!(open(&alone, OsStr::new("")).is_err());
        fs::remove_dir_all(&place).expect("ours");
    }
}
