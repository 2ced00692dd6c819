//! Where a copy is made, and where it ends up.

use super::receiver::Terms;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{Access, CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What the name of an unfinished copy ends with.
pub const SUFFIX: &str = ".bellwire-part";

/// A destination.
pub struct Place {
    /// The name that it will have.
    last: PathBuf,
    /// The name that it has until then.
    part: PathBuf,
    /// Whether it is a folder.
    pub folder: bool,
    /// Whether an earlier attempt left something.
    pub resuming: bool,
    /// Whether what has the name is replaced.
    may_replace: bool,
    /// The unfinished copy, locked; the lock ends with us, however we end. There is none for a link.
    _lock: Option<File>,
}

impl Place {
    /// Finds out where a file, link or folder called `name` goes on these terms: into the destination, if that is a folder.
    pub fn find(terms: &Terms<'_>, name: &OsStr, folder: bool) -> Result<Place> {
        let is_plain = Path::new(name).file_name() == Some(name);
        ensure!(is_plain, "the name {name:?} is none for a file or folder");
        let last = target(terms.destination, name);
        let shown = last.display();
        // The user has named what is replaced; the sender has not to.
        let may_replace = !terms.is_stranger || last == terms.destination;
        match fs::symlink_metadata(&last) {
            Ok(metadata) if metadata.is_dir() => {
                bail!("{shown} exists and is a folder: remove it, or choose another name")
            }
            Ok(_) if folder => bail!("{shown} exists and is no folder: choose another name"),
            Ok(_) if !may_replace => {
                bail!("{shown} exists already: listen with it as DEST to have it replaced")
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                bail!("{shown}: what should be a folder is none")
            }
            // A file is replaced when the copy is complete.
            _ => {}
        }
        let Some(file_name) = last.file_name() else { bail!("{shown} is no name for a copy") };
        let parent = existing_parent(&last)?;
        let mut part_name = file_name.to_owned();
        part_name.push(SUFFIX);
        let part = parent.join(part_name);
        let resuming = Self::check_remains(&part, folder)?;
        let lock = lock(&part, folder)?;
        Ok(Place { last, part, folder, resuming, may_replace, _lock: Some(lock) })
    }

    /// Whether something is left of an earlier attempt; an error if that is in the way.
    fn check_remains(part: &Path, folder: bool) -> Result<bool> {
        match fs::symlink_metadata(part) {
            // A link has no beginning that could be kept.
            Ok(metadata) if metadata.is_symlink() => {
                fs::remove_file(part).context(format!("cannot remove {}", part.display()))?;
                Ok(false)
            }
            Ok(metadata) if metadata.is_dir() == folder => Ok(true),
            Ok(_) => bail!("{} is left of another copy: remove it first", part.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context(format!("cannot look at {}", part.display())),
        }
    }

    /// The path of an entry in the unfinished copy.
    pub fn inside(&self, path: &OsStr) -> PathBuf {
        if path.is_empty() { self.part.clone() } else { self.part.join(path) }
    }

    /// Removes an unfinished file with nothing in it.
    pub fn forget_if_empty(&self) -> Result<()> {
        match fs::symlink_metadata(&self.part) {
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
                Ok(fs::remove_file(&self.part)?)
            }
            _ => Ok(()),
        }
    }

    /// The name that the copy has at the end.
    pub fn into_name(self) -> PathBuf {
        self.last
    }

    /// Gives the complete copy its name, at once, in place of what had it if that may be replaced.
    pub fn give_name(&self) -> Result<()> {
        let told = || format!("cannot give the copy its name {}", self.last.display());
        if !self.may_replace {
            let (part, last, flag) = (&self.part, &self.last, RenameFlags::NOREPLACE);
            match rustix::fs::renameat_with(CWD, part, CWD, last, flag) {
                Ok(()) => return Ok(()),
                // The file system cannot do both at once; that nothing had the name was seen at the beginning.
                Err(Errno::INVAL | Errno::NOSYS) => {}
                Err(error) => return Err(error).with_context(told),
            }
        }
        fs::rename(&self.part, &self.last).with_context(told)
    }
}

/// The folder that `last` is to be in.
fn existing_parent(last: &Path) -> Result<&Path> {
    let parent = match last.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    ensure!(parent.is_dir(), "there is no folder {0}: mkdir -p {0}", parent.display());
    Ok(parent)
}

/// Finds out before anything comes whether something can be copied to `destination`.
pub fn check(destination: &Path) -> Result<()> {
    let folder = if destination.is_dir() { destination } else { existing_parent(destination)? };
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

/// The name that a copy of something called `name` has at the end.
pub fn target(destination: &Path, name: &OsStr) -> PathBuf {
    if destination.is_dir() { destination.join(name) } else { destination.to_owned() }
}

/// Makes the unfinished copy if it is not there, and locks it.
fn lock(part: &Path, folder: bool) -> Result<File> {
    let open = || {
        if folder {
            match fs::create_dir(part) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => return File::open(part),
            }
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        options.open(part)
    };
    let file = open().with_context(|| format!("cannot make {}", part.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // A file system without locks is no reason to copy nothing.
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            bail!("another copy to the same place is running ({})", part.display())
        }
        Err(error) => Err(error).context(format!("cannot lock {}", part.display())),
    }
}

/// The last part of a path's name, whatever it ends with.
pub fn name_of(path: &Path) -> Result<OsString> {
    if let Some(name) = path.file_name() {
        return Ok(name.to_owned());
    }
    let real = fs::canonicalize(path).with_context(|| format!("cannot copy {}", path.display()))?;
    real.file_name().map(OsStr::to_owned).context("the root of everything has no name to copy to")
}
