//! Where a copy is made, and its final name.

use super::message::Hash;
use super::part::{Leftovers, Part, SUFFIX};
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::Access;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The destination of copies, and its terms.
pub struct Destination {
    /// The new name, or a folder to put copies into.
    pub path: PathBuf,
    /// Whether senders are strangers, perhaps on other hosts. From strangers we accept only files
    /// and folders, at places where nothing is. Nothing they send may run with our rights when
    /// others start it.
    pub of_strangers: bool,
    /// Unfinished copies of strangers.
    pub leftovers: Leftovers,
    /// Whether a copy has taken the exact name that the user gave; the next copy must not replace
    /// it.
    given: bool,
}

impl Destination {
    /// For the copy of a user of this host.
    pub fn of_user(path: &Path) -> Destination {
        let (path, leftovers) = (path.to_owned(), Leftovers::none());
        Destination { path, of_strangers: false, leftovers, given: false }
    }

    /// For copies of strangers. Fails if nothing can be copied there.
    pub fn of_strangers(path: &Path) -> Result<Destination> {
        let folder = if path.is_dir() { path } else { existing_parent(path)? };
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        let leftovers = Leftovers::find(folder);
        Ok(Destination { path: path.to_owned(), of_strangers: true, leftovers, given: false })
    }

    /// Whether the file at `last` may be replaced. A user named it as the destination; a stranger
    /// may replace only that name, once.
    fn may_replace(&self, last: &Path) -> bool {
        !self.of_strangers || (last == self.path && !self.given)
    }
}

/// What a sender announces.
pub struct Announced<'a> {
    /// The last part of the source's name.
    pub name: &'a OsStr,
    /// Whether the source is a folder.
    pub folder: bool,
    pub origin: &'a Hash,
}

/// Where one copy goes.
pub struct Place {
    /// Its final name.
    last: PathBuf,
    /// The unfinished copy.
    pub part: Part,
    /// Whether it is a folder.
    pub folder: bool,
}

impl Place {
    /// Finds the place of an announced copy: inside the destination if that is a folder.
    pub fn find(destination: &Destination, announced: &Announced<'_>) -> Result<Place> {
        let Announced { name, folder, origin } = *announced;
        let is_plain = Path::new(name).file_name() == Some(name);
        ensure!(is_plain, "the name {name:?} is none for a file or folder");
        let last = target(&destination.path, name);
        let shown = last.display();
        match fs::symlink_metadata(&last) {
            Ok(metadata) if metadata.is_dir() => {
                bail!("{shown} exists and is a folder: remove it, or choose another name")
            }
            Ok(_) if folder => bail!("{shown} exists and is no folder: choose another name"),
            Ok(_) if !destination.may_replace(&last) => {
                bail!("{shown} exists already: listen with it as DEST to have it replaced")
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                bail!("{shown}: what should be a folder is none")
            }
            // An existing file is replaced when the copy is complete.
            _ => {}
        }
        let Some(file_name) = last.file_name() else { bail!("{shown} is no name for a copy") };
        let parent = existing_parent(&last)?;
        let part = if destination.of_strangers {
            // The name could be taken for another sender's unfinished copy.
            let is_part = file_name.as_bytes().ends_with(SUFFIX.as_bytes());
            ensure!(!is_part, "names that end with {SUFFIX} are those of unfinished copies");
            Part::of_stranger(parent, file_name, folder, origin)?
        } else {
            Part::of_user(parent, file_name, folder)?
        };
        Ok(Place { last, part, folder })
    }

    /// The path of an entry in the unfinished copy, for messages.
    pub fn inside(&self, path: &OsStr) -> PathBuf {
        let part = &self.part.path;
        if path.is_empty() { part.clone() } else { part.join(path) }
    }

    /// Renames the complete copy to its final name atomically, replacing an existing file if
    /// allowed. Returns the name.
    pub fn give_name(&self, destination: &mut Destination) -> Result<PathBuf> {
        let last = &self.last;
        let told = || format!("cannot give the copy its name {}", last.display());
        let name = last.file_name().unwrap_or_default();
        self.part.rename(name, destination.may_replace(last)).with_context(told)?;
        destination.given |= *last == destination.path;
        Ok(last.clone())
    }
}

fn existing_parent(last: &Path) -> Result<&Path> {
    let parent = match last.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    ensure!(parent.is_dir(), "there is no folder {0}: mkdir -p {0}", parent.display());
    Ok(parent)
}

/// The final path of a copy of something called `name`.
pub fn target(destination: &Path, name: &OsStr) -> PathBuf {
    if destination.is_dir() { destination.join(name) } else { destination.to_owned() }
}

/// The last part of a path, whatever the path ends with.
pub fn name_of(path: &Path) -> Result<OsString> {
    if let Some(name) = path.file_name() {
        return Ok(name.to_owned());
    }
    let real = fs::canonicalize(path).with_context(|| format!("cannot copy {}", path.display()))?;
    real.file_name().map(OsStr::to_owned).context("the root of everything has no name to copy to")
}
