//! Files and folders below a folder that is held by its descriptor.
//!
//! Who may write there can put a link into the place of anything, at any time. Nothing here follows
//! one, and no path leads out. A file with a second name counts as a link: that name may lie
//! elsewhere.

use super::canary::planted;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat, openat2,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

const KEPT: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// To open a folder on the way to something.
pub const WAY: OFlags = KEPT.union(OFlags::DIRECTORY).union(OFlags::PATH);
/// To open a folder that is read or changed.
pub const FOLDER: OFlags = KEPT.union(OFlags::DIRECTORY);
/// To open a file. A named pipe in its place blocks nobody.
const FILE: OFlags = KEPT.union(OFlags::RDWR).union(OFlags::NONBLOCK);

/// Opens `path` below `top`, or `top` again if the path is empty.
pub fn open(top: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<File> {
    let shown = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    if planted("links are followed") {
        let follows = flags.difference(OFlags::NOFOLLOW);
        return Ok(openat(top, shown, follows, Mode::empty())?.into());
    }
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let opened = match openat2(top, shown, flags, Mode::empty(), inside) {
        // A kernel before 5.6, or a container that forbids the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(top, path, flags),
        opened => opened,
    };
    match opened {
        Err(Errno::LOOP | Errno::NOTDIR) => Err(swapped()),
        opened => Ok(opened?.into()),
    }
}

/// Opens `path` below `top` folder by folder.
pub fn step_by_step(
    top: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let mut parts = path.components().peekable();
    let first = if parts.peek().is_some() { WAY } else { flags };
    let mut at = openat(top, c".", first, Mode::empty())?;
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(Errno::XDEV) };
        let flags = if parts.peek().is_some() { WAY } else { flags };
        at = openat(&at, name, flags, Mode::empty())?;
    }
    Ok(at)
}

/// Opens a folder, or a file to read and write, that only we may use from then on. Keeps what an
/// earlier attempt left, and makes what is not there.
pub fn make(at: BorrowedFd<'_>, name: &OsStr, folder: bool) -> io::Result<File> {
    let file = match open_left(at, name)? {
        Some(file) if file.metadata()?.is_dir() == folder => file,
        Some(_) => {
            clear(at, name)?;
            create(at, name, folder)?
        }
        None => create(at, name, folder)?,
    };
    make_private(&file, folder)?;
    Ok(file)
}

/// Makes a folder or a file where nothing is.
pub fn create(at: BorrowedFd<'_>, name: &OsStr, folder: bool) -> io::Result<File> {
    let made = if folder {
        mkdirat(at, name, Mode::RWXU)?;
        openat(at, name, FOLDER, Mode::empty())?
    } else {
        openat(at, name, FILE | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR)?
    };
    Ok(made.into())
}

/// Opens a folder, or a file to read and write, that an earlier attempt left. Removes anything else
/// that has its name. `None` if nothing is there.
pub fn open_left(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<File>> {
    let Some(found) = status(at, name)? else { return Ok(None) };
    if !is_ours(&found) {
        clear(at, name)?;
        return Ok(None);
    }
    let flags = if is_folder(&found) { FOLDER } else { FILE };
    let file: File = match openat(at, name, flags, Mode::empty()) {
        // The earlier attempt had set its final permissions.
        Err(Errno::ACCESS) => {
            allow(at, name)?;
            openat(at, name, flags, Mode::empty())?.into()
        }
        // Another copy has just ended.
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?.into(),
    };
    if is_ours(&fstat(&file)?) { Ok(Some(file)) } else { Err(swapped()) }
}

/// Lets only us use a file or folder.
pub fn make_private(file: &File, folder: bool) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(if folder { 0o700 } else { 0o600 }))
}

/// Removes the file, folder or link that has this name, if there is one.
pub fn clear(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match unlinkat(at, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {
            let folder = openat(at, name, FOLDER, Mode::empty())?;
            each_child(folder.into(), clear)?;
            Ok(unlinkat(at, name, AtFlags::REMOVEDIR)?)
        }
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Calls `act` with the folder and the name of each thing in it.
pub fn each_child(
    folder: File,
    mut act: impl FnMut(BorrowedFd<'_>, &OsStr) -> io::Result<()>,
) -> io::Result<()> {
    let mut children = Dir::new(folder)?;
    while let Some(child) = children.read() {
        let child = child?;
        let name = OsStr::from_bytes(child.file_name().to_bytes());
        if name != "." && name != ".." {
            act(children.fd()?, name)?;
        }
    }
    Ok(())
}

/// What has this name; `None` if nothing has.
pub fn status(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Gives us the right to open a file or folder.
fn allow(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let pinned = openat(at, name, KEPT | OFlags::PATH, Mode::empty())?;
    if !is_ours(&fstat(&pinned)?) {
        return Err(swapped());
    }
    // A descriptor of this kind takes no fchmod.
    let path = format!("/proc/self/fd/{}", pinned.as_raw_fd());
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Whether it is a folder or a file as we make them.
fn is_ours(stat: &Stat) -> bool {
    is_folder(stat) || FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink <= 1
}

fn swapped() -> io::Error {
    io::Error::other("something else was put into its place, or into that of a folder above it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, symlink};

    /// Whatever has the name of a file or folder is not followed: a link to either, a second name
    /// of a file, a pipe. To remove it leaves alone what it led to.
    #[test]
    fn what_has_the_name_is_not_followed() {
        let place = std::env::temp_dir().join(format!("bellwire-beneath-{}", std::process::id()));
        let (inside, outside) = (place.join("inside"), place.join("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let precious = outside.join("precious");
        fs::write(&precious, "precious").expect("a file");
        fs::set_permissions(&precious, Permissions::from_mode(0o640)).expect("ours");
        fs::set_permissions(&outside, Permissions::from_mode(0o751)).expect("ours");
        let (at, name) = (File::open(&inside).expect("ours"), OsStr::new("name"));
        type Put<'a> = &'a dyn Fn(&Path);
        let put: [(&str, Put<'_>); 5] = [
            ("a link to a file", &|path| symlink(&precious, path).expect("a link")),
            ("a link to a folder", &|path| symlink(&outside, path).expect("a link")),
            ("a link to nothing", &|path| symlink(outside.join("new"), path).expect("a link")),
            ("a second name", &|path| fs::hard_link(&precious, path).expect("a name")),
            ("a pipe", &|path| {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0)
                    .expect("a pipe");
            }),
        ];
        for (what, put) in put {
            for folder in [false, true] {
                put(&inside.join(name));
                assert!(open_left(at.as_fd(), name).expect(what).is_none(), "{what}");
                put(&inside.join(name));
                let made = make(at.as_fd(), name, folder).expect(what);
                let metadata = made.metadata().expect("open");
                assert_eq!(metadata.is_dir(), folder, "{what}");
                assert_eq!(metadata.mode() & 0o777, if folder { 0o700 } else { 0o600 }, "{what}");
                // Within a folder that is removed, too.
                if folder {
                    put(&inside.join("name/within"));
                }
                clear(at.as_fd(), name).expect(what);
                assert_eq!(fs::read_dir(&inside).expect("ours").count(), 0, "{what}");
                assert_eq!(fs::read(&precious).expect("still there"), b"precious", "{what}");
                let modes = [&precious, &outside]
                    .map(|path| fs::metadata(path).expect("still there").mode() & 0o777);
                assert_eq!(modes, [0o640, 0o751], "{what}");
                assert_eq!(fs::read_dir(&outside).expect("ours").count(), 1, "{what}");
            }
        }
        fs::remove_dir_all(&place).expect("ours");
    }

    /// What an earlier attempt left is kept, also if its permissions allow nothing.
    #[test]
    fn what_is_left_is_kept() {
        let place = std::env::temp_dir().join(format!("bellwire-left-{}", std::process::id()));
        fs::create_dir_all(place.join("folder/inside")).expect("folders");
        fs::write(place.join("file"), "data").expect("a file");
        let at = File::open(&place).expect("ours");
        for (name, folder) in [("folder", true), ("file", false)] {
            fs::set_permissions(place.join(name), Permissions::from_mode(0o000)).expect("ours");
            allow(at.as_fd(), OsStr::new(name)).expect("ours");
            make(at.as_fd(), OsStr::new(name), folder).expect("ours");
        }
        assert!(place.join("folder/inside").exists());
        assert_eq!(fs::read(place.join("file")).expect("ours"), b"data");
        // The other kind takes its place.
        for (name, folder) in [("folder", false), ("file", true)] {
            let made = make(at.as_fd(), OsStr::new(name), folder).expect("ours");
            assert_eq!(made.metadata().expect("open").is_dir(), folder);
        }
        fs::remove_dir_all(&place).expect("ours");
    }
}
