//! The settings in a device's name: `shm:job?node=3&mode=0660&group=100`.

use crate::{Error, KeySource, Result};
use std::path::PathBuf;
use std::str::FromStr;

/// Settings that a device takes one after the other. Those that it has taken are those that it
/// knows, so there is no list beside its parser.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The device's name, for errors.
    name: String,
    given: Vec<(String, String)>,
    /// A key that is no text in the device's name.
    key: Option<KeySource>,
    known: Vec<&'static str>,
}

/// The environment variable with the key file of network devices whose name has none.
pub const KEY_VARIABLE: &str = "BELLWIRE_KEY";

/// Whether the name of a device has the setting `key`.
pub fn names_key(name: &str) -> bool {
    let (_, settings) = name.split_once('?').unwrap_or((name, ""));
    settings.split('&').any(|setting| setting.starts_with("key="))
}

/// Who may take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessMode {
    /// Processes of the same user (as a file of mode 0600), and root.
    #[default]
    Owner,
    /// Processes of the same user or of this group (mode 0660).
    Group(u32),
    /// Every process of this host (mode 0666).
    Everyone,
}

impl Settings {
    /// No settings, of the device `name`.
    pub fn new(name: &str) -> Settings {
        Settings { name: name.to_owned(), given: Vec::new(), key: None, known: Vec::new() }
    }

    /// Adds `KEY=VALUE&KEY=VALUE`.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] for anything else.
    pub fn parse(&mut self, text: &str) -> Result<()> {
        for setting in text.split('&') {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(self.bad(format!("\"{setting}\" is not KEY=VALUE")));
            };
            self.set(key, value);
        }
        Ok(())
    }

    /// Adds a setting. It overrides earlier ones with this key.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.given.push((key.to_owned(), value.into()));
    }

    /// Adds a source of keys. A `key=FILE` overrides it.
    pub fn set_key(&mut self, key: KeySource) {
        self.key = Some(key);
    }

    /// Takes `key`, for a device that can seal what it sends.
    ///
    /// # Errors
    /// As [`Settings::take`].
    pub fn key(&mut self) -> Result<Option<KeySource>> {
        let named = self.take::<PathBuf>("key", "a key is a file that `bellwire key new` has made");
        let given = self.key.take();
        Ok(named?.map(KeySource::File).or(given))
    }

    /// Takes setting `key`; `None` if it is not given. `values` says what values it has.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] with `values` if the value is none of them.
    pub fn take<T: FromStr>(&mut self, key: &'static str, values: &str) -> Result<Option<T>> {
        self.take_by(key, values, |text| text.parse().ok())
    }

    /// As [`Settings::take`], for values that `parse` understands.
    ///
    /// # Errors
    /// As [`Settings::take`].
    pub fn take_by<T>(
        &mut self,
        key: &'static str,
        values: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        self.known.push(key);
        let mut last = None;
        for (_, value) in self.given.extract_if(.., |(given, _)| given == key) {
            last = Some(value);
        }
        let Some(value) = last else { return Ok(None) };
        let bad = || self.bad(format!("{key}={value}: {values}"));
        parse(&value).ok_or_else(bad).map(Some)
    }

    /// Takes `node`, which every device has.
    ///
    /// # Errors
    /// As [`Settings::take`].
    pub fn node(&mut self) -> Result<Option<u32>> {
        self.take("node", "a node is a number from 0")
    }

    /// Takes `mode` and `group`, for a device that other users can reach.
    ///
    /// # Errors
    /// As [`Settings::take`], and [`Error::BadDeviceName`] if the two do not go together.
    pub fn access_mode(&mut self) -> Result<AccessMode> {
        let octal = |text: &str| u32::from_str_radix(text, 8).ok();
        let mode = self.take_by("mode", "a mode is 0600, 0660 or 0666", |text| {
            octal(text).filter(|mode| [0o600, 0o660, 0o666].contains(mode))
        })?;
        match (mode.unwrap_or(0o600), self.take("group", "a group is a numeric group id")?) {
            (0o600, None) => Ok(AccessMode::Owner),
            (0o660, Some(group)) => Ok(AccessMode::Group(group)),
            (0o666, None) => Ok(AccessMode::Everyone),
            (0o660, None) => Err(self.bad("mode=0660 needs group=GID".to_owned())),
            _ => Err(self.bad("group=GID goes with mode=0660 only".to_owned())),
        }
    }

    /// Refuses settings that nobody has taken. `kind`: the device's kind.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] with the settings that the device has.
    pub fn finish(self, kind: &str) -> Result<()> {
        let named = self.given.first().map(|(key, _)| key.as_str());
        // A program that gives a key must not get a device that does without.
        let Some(key) = named.or(self.key.as_ref().map(|_| "key")) else { return Ok(()) };
        let known = self.known.join(", ");
        Err(self.bad(format!("{kind} has no setting \"{key}\"; it has {known}")))
    }

    fn bad(&self, why: String) -> Error {
        Error::BadDeviceName { name: self.name.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        let mut settings = Settings::new("shm:job");
        settings.parse(text).expect("settings");
        settings
    }

    /// The last value of a setting counts, and what nobody takes is refused by name.
    #[test]
    fn settings_are_taken_or_refused() {
        let mut some = settings("node=3&port=7&node=4");
        assert_eq!(some.node().unwrap(), Some(4));
        assert_eq!(some.take::<u16>("fd", "a number").unwrap(), None);
        let told = some.clone().finish("shm").unwrap_err().to_string();
        assert!(told.contains("shm has no setting \"port\"; it has node, fd"), "{told}");
        let told = some.take::<bool>("port", "true or false").unwrap_err().to_string();
        assert!(told.contains("port=7: true or false"), "{told}");
        assert!(some.finish("shm").is_ok());
        assert!(Settings::new("shm:job").parse("node").is_err());
    }

    /// Only a setting of this name is a key.
    #[test]
    fn keys_in_names_are_found() {
        for name in ["udp:h?key=f", "udp:h?node=1&key=f", "auto:eth:x?key="] {
            assert!(names_key(name), "{name}");
        }
        for name in ["udp:key=f", "udp:h?node=1", "udp:h?monkey=f", "udp:h?key", ""] {
            assert!(!names_key(name), "{name}");
        }
    }

    /// A file that the name gives overrides a source of keys, and a device without keys refuses
    /// either.
    #[test]
    fn keys_are_taken_or_refused() {
        let with_source = |text: &str| {
            let mut settings = settings(text);
            settings.set_key(KeySource::text("shared"));
            settings
        };
        let mut some = with_source("key=/a");
        assert!(matches!(some.key().unwrap(), Some(KeySource::File(path)) if path == *"/a"));
        some.finish("udp").expect("both are taken");
        let mut some = with_source("node=1");
        let told = some.clone().finish("shm").unwrap_err().to_string();
        assert!(told.contains("no setting"), "{told}");
        let Some(KeySource::Callback(ask)) = some.key().unwrap() else { panic!("no source") };
        assert_eq!(ask().unwrap(), "shared");
        assert_eq!(some.node().unwrap(), Some(1));
        let mut known = with_source("node=1");
        known.node().unwrap();
        let told = known.finish("shm").unwrap_err().to_string();
        assert!(told.contains("shm has no setting \"key\"; it has node"), "{told}");
    }

    /// A mode and a group go together.
    #[test]
    fn modes_are_understood() {
        let mode = |text: &str| settings(text).access_mode();
        assert_eq!(mode("node=1").unwrap(), AccessMode::Owner);
        assert_eq!(mode("mode=0660&group=100").unwrap(), AccessMode::Group(100));
        assert_eq!(mode("mode=0666").unwrap(), AccessMode::Everyone);
        for bad in ["mode=0777", "mode=0660", "group=5", "mode=0666&group=5", "mode=0660&group=x"] {
            assert!(mode(bad).is_err(), "{bad}");
        }
    }
}
