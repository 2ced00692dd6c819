//! The origin of a copy, for a receiver that keeps the parts of different senders apart.

use super::message::Hash;
use anyhow::Result;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of the machine: systemd's machine number, which only its users know, or else the host
/// name.
const MACHINE: [&str; 3] =
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];

/// A hash of this machine, this user, and the place of `source`, called `name`. It does not depend
/// on the content, so the same command resumes its part. Others cannot compute it without knowing
/// all three.
pub fn origin(source: &Path, name: &OsStr) -> Result<Hash> {
    let machine = MACHINE.iter().find_map(|path| fs::read(path).ok()).unwrap_or_default();
    let parent = source.parent().filter(|parent| !parent.as_os_str().is_empty());
    // A link is copied as a link, so the last part of the path is not resolved.
    let folder = parent.unwrap_or(Path::new(".")).canonicalize()?;
    let user = rustix::process::getuid().as_raw().to_le_bytes();
    let mut hasher = blake3::Hasher::new_derive_key("bellwire copy: origin");
    for part in [&machine[..], &user, folder.as_os_str().as_bytes(), name.as_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The origin is the same however the place is written, and differs for another place.
    #[test]
    fn the_origin_is_that_of_the_place() {
        let of = |source: &str, name: &str| {
            origin(Path::new(source), OsStr::new(name)).expect("a place")
        };
        assert_eq!(of("/usr/lib", "lib"), of("/usr/../usr/lib", "lib"));
        assert_ne!(of("/usr/lib", "lib"), of("/usr/lib", "bin"));
        assert_ne!(of("/usr/lib", "lib"), of("/etc/lib", "lib"));
    }
}
