//! The unfinished copy beside its final name: its name, its owner, and the parts of earlier
//! attempts.
//!
//! A copy that the user of this host began is made as `NAME.bellwire-part`. Strangers can send
//! under any name, so their parts carry a mark of their origin:
//! `NAME.0123456789abcdef.bellwire-part`. A sender resumes its own part and never meets the parts
//! of others.

use super::beneath;
use super::canary::planted;
use super::message::Hash;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, fstat, openat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Suffix of the name of an unfinished copy.
pub const SUFFIX: &str = ".bellwire-part";

/// Longest name on Linux file systems, in bytes.
const NAME_BYTES: usize = 255;

/// Hexadecimal digits of the mark.
const MARK_DIGITS: usize = 16;

/// Most simultaneous senders of one origin and name.
const TWINS: u8 = 16;

/// An unfinished copy. Descriptors lead to it, because its path may lead elsewhere at any time.
pub struct Part {
    /// For messages.
    pub path: PathBuf,
    /// Whether an earlier attempt left a part.
    pub resuming: bool,
    /// The folder that it is in, and its name there.
    parent: File,
    name: OsString,
    /// The folder or file itself. Its lock ends with this process, however that ends.
    own: File,
}

impl Part {
    /// The part of a copy that the user of this host began.
    pub fn of_user(parent: &Path, name: &OsStr, folder: bool) -> Result<Part> {
        let mut part = name.to_owned();
        part.push(SUFFIX);
        let path = parent.join(part);
        match Self::claim(&path, folder)? {
            Some(part) => Ok(part),
            None => bail!("another copy to the same place is running ({})", path.display()),
        }
    }

    /// The part of a stranger's copy. Two simultaneous copies of one stranger and name have two
    /// parts.
    pub fn of_stranger(parent: &Path, name: &OsStr, folder: bool, origin: &Hash) -> Result<Part> {
        if planted("one part for all") {
            return Self::of_user(parent, name, folder);
        }
        for twin in 0..TWINS {
            if let Some(part) =
                Self::claim(&parent.join(marked(name, folder, origin, twin)), folder)?
            {
                return Ok(part);
            }
        }
        bail!("{TWINS} copies of {name:?} are running")
    }

    /// Creates the part, or takes over an existing one. `None` if another copy holds it.
    fn claim(path: &Path, folder: bool) -> Result<Option<Part>> {
        let told = || format!("cannot make {}", path.display());
        let (parent, name) = parent_of(path).with_context(told)?;
        let at = parent.as_fd();
        // Each round that does not return has removed something, or met a copy that just ended.
        for _ in 0..100 {
            let (own, resuming) = match beneath::open_left(at, name).with_context(told)? {
                Some(own) => (own, true),
                None => match beneath::create(at, name, folder) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    created => (created.with_context(told)?, false),
                },
            };
            match rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive) {
                // A file system without locks (perhaps only of folders) must not prevent the copy.
                Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => {
                    return Err(error).context(format!("cannot lock {}", path.display()));
                }
            }
            // The former holder may have finished meanwhile: then the path names another file, or
            // none.
            if !has_name(&own, &parent, name).with_context(told)? {
                continue;
            }
            if own.metadata().with_context(told)?.is_dir() != folder {
                // It cannot be resumed.
                beneath::clear(at, name)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
                continue;
            }
            beneath::make_private(&own, folder).with_context(told)?;
            let (path, name) = (path.to_owned(), name.to_owned());
            return Ok(Some(Part { path, resuming, parent, name, own }));
        }
        bail!("{} changes all the time", path.display())
    }

    /// Opens the folder or the file at `path` in the copy, and makes it if it is not there. Only we
    /// may use it from then on.
    pub fn make(&self, path: &OsStr, folder: bool) -> io::Result<File> {
        if path.is_empty() {
            return self.own.try_clone();
        }
        let (at, name) = self.locate(path)?;
        beneath::make(at.as_fd(), name, folder)
    }

    /// Makes the link at `path` in the copy.
    pub fn make_link(&self, path: &OsStr, target: &OsStr) -> io::Result<()> {
        let (at, name) = self.locate(path)?;
        beneath::clear(at.as_fd(), name)?;
        Ok(symlinkat(target, &at, name)?)
    }

    /// Removes the file at `path` in the copy.
    pub fn remove_file(&self, path: &OsStr) -> io::Result<()> {
        let (at, name) = self.locate(path)?;
        Ok(unlinkat(&at, name, AtFlags::empty())?)
    }

    /// Opens the folder at `path` in the copy.
    pub fn folder(&self, path: &OsStr) -> io::Result<File> {
        beneath::open(self.own.as_fd(), Path::new(path), beneath::FOLDER)
    }

    /// The folder of what is at `path` in the copy, and its name there.
    fn locate<'a>(&'a self, path: &'a OsStr) -> io::Result<(File, &'a OsStr)> {
        let path = Path::new(path);
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => {
                Ok((beneath::open(self.own.as_fd(), folder, beneath::WAY)?, name))
            }
            _ => Ok((self.parent.try_clone()?, self.name.as_os_str())),
        }
    }

    /// Fails if something else has the name of the part.
    pub fn ensure_in_place(&self) -> Result<()> {
        let has_name = has_name(&self.own, &self.parent, &self.name)?;
        ensure!(has_name, "something else was put into the place of {}", self.path.display());
        Ok(())
    }

    /// Gives the complete copy its final name in the same folder. Unless `replacing`, nothing may
    /// have that name.
    pub fn rename(&self, to: &OsStr, replacing: bool) -> io::Result<()> {
        let (parent, from) = (&self.parent, self.name.as_os_str());
        if replacing {
            return Ok(renameat(parent, from, parent, to)?);
        }
        match renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
            // The file system cannot check and rename in one step.
            Err(Errno::INVAL | Errno::NOSYS) => match beneath::status(parent.as_fd(), to)? {
                None => Ok(renameat(parent, from, parent, to)?),
                Some(_) => Err(ErrorKind::AlreadyExists.into()),
            },
            renamed => Ok(renamed?),
        }
    }

    /// Removes the part if it is empty. If that fails, the next attempt tries again.
    pub fn forget_if_empty(&self) {
        let flags = match self.own.metadata() {
            // A folder that is not empty stays.
            Ok(metadata) if metadata.is_dir() => AtFlags::REMOVEDIR,
            Ok(metadata) if metadata.len() == 0 => AtFlags::empty(),
            _ => return,
        };
        let _ = unlinkat(&self.parent, self.name.as_os_str(), flags);
    }
}

/// The folder that `path` is in, and its name there. The user chose that folder, so links lead to
/// it.
fn parent_of(path: &Path) -> io::Result<(File, &OsStr)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    Ok((parent.into(), path.file_name().unwrap_or_default()))
}

/// Whether this file or folder has this name.
fn has_name(own: &File, parent: &File, name: &OsStr) -> io::Result<bool> {
    let (own, named) = (fstat(own)?, beneath::status(parent.as_fd(), name)?);
    Ok(named.is_some_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)))
}

/// The name of a stranger's part. A long name is truncated; the mark covers the whole name.
fn marked(name: &OsStr, folder: bool, origin: &Hash, twin: u8) -> OsString {
    let mut hasher = blake3::Hasher::new_keyed(origin);
    hasher.update(&[folder.into(), twin]).update(name.as_bytes());
    let mark = hasher.finalize().to_hex();
    let room = NAME_BYTES - SUFFIX.len() - MARK_DIGITS - 1;
    let mut marked = name.as_bytes()[..name.len().min(room)].to_owned();
    marked.push(b'.');
    marked.extend_from_slice(&mark.as_bytes()[..MARK_DIGITS]);
    marked.extend_from_slice(SUFFIX.as_bytes());
    OsString::from_vec(marked)
}

/// Whether this name is, or could be, that of a stranger's part.
fn is_marked(name: &OsStr) -> bool {
    let Some(rest) = name.as_bytes().strip_suffix(SUFFIX.as_bytes()) else { return false };
    let Some(start) = rest.len().checked_sub(MARK_DIGITS + 1) else { return false };
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    rest[start] == b'.' && rest[start + 1..].iter().all(is_digit)
}

/// Strangers' unfinished copies in a folder. Their number is bounded, and they are removed when the
/// disc is full.
pub struct Leftovers(Vec<PathBuf>);

impl Leftovers {
    /// Most parts kept. Beyond that, the smallest are removed: a large part took long to send,
    /// and costs a hostile sender as much time.
    pub const MOST: usize = 16;

    pub fn find(folder: &Path) -> Leftovers {
        let children = fs::read_dir(folder).into_iter().flatten().flatten();
        let parts = children.filter(|child| is_marked(&child.file_name()));
        let mut found = Leftovers(parts.map(|child| child.path()).collect());
        found.bound();
        found
    }

    pub fn none() -> Leftovers {
        Leftovers(Vec::new())
    }

    /// Adds the part of a copy that did not complete.
    pub fn add(&mut self, part: Part) {
        part.forget_if_empty();
        let path = part.path.clone();
        drop(part);
        if fs::symlink_metadata(&path).is_ok() && !self.0.contains(&path) {
            self.0.push(path);
        }
        self.bound();
    }

    /// Removes the smallest unused part. `false` if there is none.
    pub fn make_room(&mut self) -> bool {
        if planted("leftovers stay") {
            return false;
        }
        self.0.retain(|path| fs::symlink_metadata(path).is_ok());
        self.0.sort_by_cached_key(|path| size(path, &mut 10_000));
        let position = self.0.iter().position(|path| remove_unused(path));
        position.map(|position| self.0.remove(position)).is_some()
    }

    fn bound(&mut self) {
        if self.0.len() > Self::MOST {
            self.0.retain(|path| fs::symlink_metadata(path).is_ok());
        }
        while self.0.len() > Self::MOST && self.make_room() {}
    }
}

/// Removes a part unless a copy holds it.
fn remove_unused(path: &Path) -> bool {
    let Ok((parent, name)) = parent_of(path) else { return false };
    let Ok(Some(file)) = beneath::open_left(parent.as_fd(), name) else { return false };
    let is_free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_free && beneath::clear(parent.as_fd(), name).is_ok()
}

/// Bytes on the disc of the first `most` entries.
fn size(path: &Path, most: &mut u32) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for child in fs::read_dir(path).into_iter().flatten().flatten() {
            if *most == 0 {
                break;
            }
            *most -= 1;
            bytes += size(&child.path(), most);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when this is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("bellwire-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }

        fn names(&self) -> Vec<OsString> {
            fs::read_dir(&self.0)
                .expect("ours")
                .map(|child| child.expect("ours").file_name())
                .collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The mark depends on origin, name, kind and twin. The name fits the limit and is recognized.
    #[test]
    fn parts_of_strangers_have_names_of_their_own() {
        let (long, longer) = (OsString::from("x".repeat(254)), OsString::from("x".repeat(255)));
        let mut names = Vec::new();
        for (name, folder, origin, twin) in [
            (OsStr::new("a"), false, 1, 0),
            (OsStr::new("b"), false, 1, 0),
            (OsStr::new("a"), true, 1, 0),
            (OsStr::new("a"), false, 2, 0),
            (OsStr::new("a"), false, 1, 1),
            (&long, false, 1, 0),
            (&longer, false, 1, 0),
        ] {
            let part = marked(name, folder, &[origin; 32], twin);
            assert!(part.len() <= NAME_BYTES && is_marked(&part), "{part:?}");
            assert!(!names.contains(&part), "{part:?}");
            names.push(part);
        }
        for name in ["a.bellwire-part", ".bellwire-part", "a.0123456789abcdeg.bellwire-part", "a"] {
            assert!(!is_marked(OsStr::new(name)), "{name}");
        }
    }

    /// One origin that asks twice for the same name gets two parts. Each is resumed later,
    /// regardless of others' parts under the name.
    #[test]
    fn a_part_is_resumed_by_its_origin() {
        let folder = Folder::new("part-origin");
        let (name, own) = (OsStr::new("name"), [1; 32]);
        for (kind, origin) in [(true, [2; 32]), (false, [2; 32]), (true, own)] {
            let part = Part::of_stranger(&folder.0, name, kind, &origin).expect("room");
            assert!(!part.resuming);
        }
        let part = Part::of_stranger(&folder.0, name, false, &own).expect("room");
        let twin = Part::of_stranger(&folder.0, name, false, &own).expect("room");
        assert!(!part.resuming && !twin.resuming && part.path != twin.path);
        fs::write(&part.path, "data").expect("ours");
        let path = part.path.clone();
        drop(part);
        let part = Part::of_stranger(&folder.0, name, false, &own).expect("room");
        assert!(part.resuming && part.path == path);
        assert_eq!(fs::read(&path).expect("ours"), b"data");
    }

    /// A part of the other kind, or a link, does not block a user's copy, unless a copy holds it.
    #[test]
    fn what_cannot_be_resumed_gives_way() {
        let folder = Folder::new("part-kind");
        let (name, path) = (OsStr::new("name"), folder.0.join("name.bellwire-part"));
        let file = Part::of_user(&folder.0, name, false).expect("room");
        assert!(Part::of_user(&folder.0, name, true).is_err(), "it is used");
        drop(file);
        let part = Part::of_user(&folder.0, name, true).expect("room");
        assert!(!part.resuming && path.is_dir());
        fs::write(path.join("inside"), "").expect("ours");
        drop(part);
        assert!(Part::of_user(&folder.0, name, true).expect("room").resuming);
        assert!(!Part::of_user(&folder.0, name, false).expect("room").resuming);
        fs::remove_file(&path).expect("a file");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(!Part::of_user(&folder.0, name, false).expect("room").resuming);
        assert!(!folder.0.join("elsewhere").exists());
    }

    /// Leftovers are bounded. The largest stay, and so does one in use; empty ones are removed.
    #[test]
    fn leftovers_are_bounded() {
        let folder = Folder::new("part-bound");
        let own = Part::of_stranger(&folder.0, OsStr::new("large"), false, &[1; 32]).expect("room");
        fs::write(&own.path, vec![1; 1 << 20]).expect("ours");
        let mut left = Leftovers::none();
        left.add(own);
        let used = Part::of_stranger(&folder.0, OsStr::new("used"), true, &[1; 32]).expect("room");
        for number in 0..40 {
            let part =
                Part::of_stranger(&folder.0, OsStr::new("x"), number % 2 == 0, &[number; 32]);
            let part = part.expect("room");
            match number % 4 {
                0 => fs::write(part.path.join("inside"), "data").expect("ours"),
                1 => fs::write(&part.path, "data").expect("ours"),
                _ => {}
            }
            left.add(part);
        }
        let names = folder.names();
        assert_eq!(names.len(), Leftovers::MOST + 1, "{names:?}");
        let is_there =
            |start: &str| names.iter().any(|name| name.as_bytes().starts_with(start.as_bytes()));
        assert!(is_there("large.") && is_there("used."), "{names:?}");
        // Parts of an earlier process count too; parts of the user's own copies do not.
        fs::write(folder.0.join("a.bellwire-part"), "data").expect("ours");
        let mut found = Leftovers::find(&folder.0);
        while found.make_room() {}
        drop(used);
        let mut names = folder.names();
        names.sort();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names[0] == "a.bellwire-part" && names[1].as_bytes().starts_with(b"used."));
    }
}
