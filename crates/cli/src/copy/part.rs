//! The unfinished copy beside its final name: its name, its owner, and the parts of earlier
//! attempts.
//!
//! A copy that the user of this host began is made as `NAME.bellwire-part`. Strangers can send
//! under any name, so their parts carry a mark of their origin:
//! `NAME.0123456789abcdef.bellwire-part`. A sender resumes its own part and never meets the parts
//! of others.

use super::canary::planted;
use super::message::Hash;
use super::receiver::clear;
use anyhow::{Context, Result, bail};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Suffix of the name of an unfinished copy.
pub const SUFFIX: &str = ".bellwire-part";

/// Longest name on Linux file systems, in bytes.
const NAME_BYTES: usize = 255;

/// Hexadecimal digits of the mark.
const MARK_DIGITS: usize = 16;

/// Most simultaneous senders of one origin and name.
const TWINS: u8 = 16;

/// An unfinished copy.
pub struct Part {
    pub path: PathBuf,
    /// Whether an earlier attempt left a part.
    pub resuming: bool,
    /// The lock ends with this process, however it ends.
    _lock: File,
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
        // Each round that does not return has removed something, or met a copy that just ended.
        for _ in 0..100 {
            let (file, resuming) = match open(path).with_context(told)? {
                Some(file) => (file, true),
                None => match create(path, folder) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    created => (created.with_context(told)?, false),
                },
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // A file system without locks (perhaps only of folders) must not prevent the copy.
                Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => {
                    return Err(error).context(format!("cannot lock {}", path.display()));
                }
            }
            let locked = file.metadata().with_context(told)?;
            // The former holder may have finished meanwhile: then the path names another file, or
            // none.
            let named = fs::symlink_metadata(path);
            if !named.is_ok_and(|named| named.ino() == locked.ino() && named.dev() == locked.dev())
            {
                continue;
            }
            if locked.is_dir() != folder {
                // It cannot be resumed.
                clear(path).with_context(|| format!("cannot remove {}", path.display()))?;
                continue;
            }
            return Ok(Some(Part { path: path.to_owned(), resuming, _lock: file }));
        }
        bail!("{} changes all the time", path.display())
    }

    /// Removes the part if it is empty.
    pub fn forget_if_empty(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
                fs::remove_file(&self.path)
            }
            // A folder that is not empty stays.
            Ok(metadata) if metadata.is_dir() => {
                let _ = fs::remove_dir(&self.path);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Opens an existing part. Anything but a file or folder is removed.
fn open(path: &Path) -> io::Result<Option<File>> {
    let folder = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() || metadata.is_file() => metadata.is_dir(),
        Ok(_) => {
            fs::remove_file(path)?;
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut options = OpenOptions::new();
    options.read(true).write(!folder).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.open(path) {
        // The copy was killed after it set its final permissions.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let mode = if folder { 0o700 } else { 0o600 };
            fs::set_permissions(path, Permissions::from_mode(mode))?;
            options.open(path).map(Some)
        }
        opened => opened.map(Some),
    }
}

fn create(path: &Path, folder: bool) -> io::Result<File> {
    if folder {
        fs::DirBuilder::new().mode(0o700).create(path)?;
        return File::open(path);
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
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
        // If it cannot be examined, it counts as not empty.
        let _ = part.forget_if_empty();
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
    let Ok(Some(file)) = open(path) else { return false };
    let is_free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_free && clear(path).is_ok()
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
