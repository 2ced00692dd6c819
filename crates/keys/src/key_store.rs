//! Key files on disk. Nobody but their owner may read them.

use crate::key_file::{KeyFile, KeyFileError};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// More than the longest key file has.
const FILE_BYTES: u64 = 1 << 20;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// The file cannot be read or written.
    #[error("the key file {path} cannot be {what}: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        cause: io::Error,
    },
    /// Others may read the file.
    #[error("others can read the key file {path} (mode {mode:04o}): chmod 600 {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is no key file.
    #[error("{path} is no key file: {why}")]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: KeyFileError,
    },
}

impl KeyFile {
    /// Reads a key file that only its owner can read.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn read(path: &Path) -> Result<KeyFile, KeyStoreError> {
        let failed = |cause| KeyStoreError::File { path: path.to_owned(), what: "read", cause };
        // A pipe without a writer would block the opening for ever.
        let nonblocking = 0o4000;
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
        let file = file.map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
        }
        let mode = about.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyStoreError::Open { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        KeyFile::parse(&text).map_err(|why| KeyStoreError::Text { path: path.to_owned(), why })
    }

    /// Writes a new key file, which only its owner can read.
    ///
    /// # Errors
    /// [`KeyStoreError::File`], also if the file exists: a key that is overwritten is lost.
    pub fn create(&self, path: &Path) -> Result<(), KeyStoreError> {
        let failed = |cause| KeyStoreError::File { path: path.to_owned(), what: "made", cause };
        write_new(path, &self.print()).map_err(failed)
    }

    /// Replaces the key file, which [`KeyFile::read`] has read, as a whole.
    ///
    /// # Errors
    /// [`KeyStoreError::File`]; the file is as before then.
    pub fn replace(&self, path: &Path) -> Result<(), KeyStoreError> {
        let failed = |cause| KeyStoreError::File { path: path.to_owned(), what: "changed", cause };
        // The file itself, if the path is a symbolic link to it.
        let target = path.canonicalize().map_err(failed)?;
        let before = target.metadata().map_err(failed)?;
        let mut name = target.clone().into_os_string();
        name.push(format!(".{}.new", std::process::id()));
        let beside = PathBuf::from(name);
        let written = write_new(&beside, &self.print())
            .and_then(|()| {
                std::os::unix::fs::chown(&beside, Some(before.uid()), Some(before.gid()))
            })
            .and_then(|()| std::fs::rename(&beside, &target));
        written.map_err(|cause| {
            let _ = std::fs::remove_file(&beside);
            failed(cause)
        })
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new file is for its owner only, is not overwritten, and is refused once others can read
    /// it.
    #[test]
    fn files_are_private() {
        let folder = std::env::temp_dir().join(format!("bellwire-keys-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("key");
        let file = KeyFile::Private { key: [3; 32], peers: Vec::new() };
        file.create(&path).expect("it is written");
        assert_eq!(path.metadata().expect("it").permissions().mode() & 0o777, 0o600);
        assert!(KeyFile::read(&path).expect("it") == file);
        assert!(matches!(file.create(&path), Err(KeyStoreError::File { .. })));
        let peers = vec![(crate::public_of(&[4; 32]), "far".to_owned())];
        let file = KeyFile::Private { key: [3; 32], peers };
        file.replace(&path).expect("it is replaced");
        assert!(KeyFile::read(&path).expect("it") == file);
        assert_eq!(std::fs::read_dir(&folder).expect("it").count(), 1, "nothing is left beside it");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it");
            let told = KeyFile::read(&path).err().expect("it is refused").to_string();
            assert!(told.contains("chmod 600"), "{told}");
        }
        assert!(KeyFile::read(&folder).is_err());
        assert!(KeyFile::read(&folder.join("none")).is_err());
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }
}
