//! Who may send: what a listener asks of senders, and what a sender shows.

use super::link::{HELLO, open_device};
use crate::command::WrongUsage;
use anyhow::Result;
use bellwire::{Device, KeySource};
use bellwire_device::{KEY_VARIABLE, names_key};
use bellwire_keys::{Key, KeyFile};
use std::path::{Path, PathBuf};

/// What keeps strangers out.
#[derive(Clone, PartialEq, Debug)]
pub enum Door {
    /// The kernel tells which user a process belongs to.
    Kernel,
    /// A key: the file, or `None` if the device's name or the environment has it.
    Key(Option<PathBuf>),
    /// A code of one use, from which a key for one copy follows.
    Code,
    /// Nothing, as the user wants it.
    Open,
}

impl Door {
    /// The door of the device `name`, with these options of the command.
    pub fn find(name: &str, key: Option<&Path>, plain: bool) -> Result<Door> {
        let bare = name.split('?').next().unwrap_or(name);
        let named = names_key(name);
        let is_local = ["shm:", "model:"].iter().any(|kind| bare.starts_with(kind));
        if is_local {
            return match key.is_some() || plain {
                true => Err(WrongUsage::error(format!(
                    "{bare} reaches this host only, where the kernel knows who a process belongs to: leave out --key and --plain"
                ))),
                false => Ok(Door::Kernel),
            };
        }
        let has_key = named || key.is_some() || std::env::var_os(KEY_VARIABLE).is_some();
        match (has_key, plain) {
            (true, true) => Err(WrongUsage::error(
                "--plain contradicts the key (of --key, the device's name, or BELLWIRE_KEY): leave one of them out",
            )),
            (true, false) if named && key.is_some() => Err(WrongUsage::error(
                "the device's name has a key, and so has --key: leave one of them out",
            )),
            (true, false) => Ok(Door::Key(key.map(Path::to_owned))),
            (false, true) => Ok(Door::Open),
            (false, false) => Ok(Door::Code),
        }
    }

    /// Opens the device for everything but the exchange of a code.
    pub fn open(&self, name: &str) -> Result<Device> {
        let key = match self {
            Door::Key(Some(file)) => Some(KeySource::File(file.clone())),
            Door::Key(None) | Door::Kernel | Door::Code | Door::Open => None,
        };
        open_device(name, key)
    }

    /// What a sender has to add to its command.
    pub fn option(&self) -> &'static str {
        match self {
            Door::Key(Some(_)) => " --key ITS-KEY",
            Door::Open => " --plain",
            Door::Key(None) | Door::Kernel | Door::Code => "",
        }
    }

    /// The command that should run at the other side.
    pub fn listener(&self) -> &'static str {
        match self {
            Door::Kernel => "`bellwire copy --listen`",
            Door::Key(_) => "`bellwire copy --listen` with the same key",
            Door::Code => "`bellwire copy --listen` without --key and --plain",
            Door::Open => "`bellwire copy --listen --plain`",
        }
    }
}

/// The device `name` under a key that two sides have agreed on.
pub fn open_sealed(name: &str, key: &Key) -> Result<Device> {
    open_device(name, Some(KeySource::text(KeyFile::Shared(*key).print())))
}

/// The greeting of a sender with this key. `auto` seals what goes by its network only, so a process
/// of this host has to show the key, too.
pub fn greeting(key: Option<&Key>) -> Vec<u8> {
    let proof = key.map(|key| blake3::derive_key("bellwire copy 3: greeting after a code", key));
    [HELLO, proof.as_ref().map_or(&[][..], |proof| proof)].concat()
}

/// Says loudly what a copy without a key means.
pub fn warn_of_plain() {
    eprintln!(
        "bellwire: WARNING: --plain: nothing is encrypted. Whoever reaches the listener can send to it, and whoever sees the traffic can read and alter the copy."
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network asks for a key or a code, unless the user wants it open. A key is never left out.
    #[test]
    fn networks_are_closed() {
        let key = Some(Path::new("a.key"));
        fn door(name: &str, key: Option<&Path>, plain: bool) -> Option<Door> {
            Door::find(name, key, plain).ok()
        }
        for network in ["udp:10.0.0.1", "eth:eth0", "auto:udp:10.0.0.1", "strange:it"] {
            assert_eq!(door(network, None, false), Some(Door::Code));
            assert_eq!(door(network, None, true), Some(Door::Open));
            assert_eq!(door(network, key, false), Some(Door::Key(Some("a.key".into()))));
            assert_eq!(door(network, key, true), None);
            let named = format!("{network}?port=7&key=b.key");
            assert_eq!(door(&named, None, false), Some(Door::Key(None)));
            assert_eq!(door(&named, None, true), None);
            assert_eq!(door(&named, key, false), None);
        }
        assert_eq!(door("shm:job?node=1", None, false), Some(Door::Kernel));
        assert_eq!(door("shm:job", key, false), None);
        assert_eq!(door("shm:job", None, true), None);
    }
}
