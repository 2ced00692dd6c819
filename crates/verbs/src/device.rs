//! Opening a device by name.

use crate::claims::Number;
use crate::devices::{DeviceBackend, KINDS, Kind, Opening};
use crate::{AccessMode, Error, Function, FunctionOptions, Result, VirtualTime};
use bellwire_device::{KeySource, Settings};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// A device that this process has opened: one node among those of the same name. Clones share one
/// opening.
#[derive(Clone)]
pub struct Device {
    opening: Arc<Opening>,
}

/// How to open a device. The name can say the same, and overrides it:
/// `shm:job?node=3&functions=16&mode=0660&group=100`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct DeviceOptions {
    settings: Vec<(String, String)>,
    key: Option<KeySource>,
}

impl DeviceOptions {
    /// The node number; otherwise the lowest free one, or the one of the device's address.
    pub fn node(self, node: u32) -> Self {
        self.setting("node", node)
    }

    /// Functions that can be opened: 1 physical and the others virtual (C-38). At least 1; 8 by
    /// default.
    pub fn functions(self, functions: u8) -> Self {
        self.setting("functions", functions)
    }

    /// Who may take part, on devices that other users could reach.
    pub fn mode(self, mode: AccessMode) -> Self {
        match mode {
            AccessMode::Owner => self.setting("mode", "0600"),
            AccessMode::Group(group) => self.setting("mode", "0660").setting("group", group),
            AccessMode::Everyone => self.setting("mode", "0666"),
        }
    }

    /// Any setting, for instance `("port", 7000)` for `?port=7000` in the name of a `udp` device.
    /// The opening refuses one that the device does not have, and says which it has.
    /// docs/network.md and docs/model-chpp.md explain them.
    pub fn setting(mut self, key: &str, value: impl Display) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Seals all that an `eth`, `udp` or `auto` device sends by its network, and talks only to
    /// peers with the key: from a file, from memory, or by a callback. Other devices refuse it.
    /// docs/keys.md explains the kinds of keys.
    pub fn key(mut self, key: KeySource) -> Self {
        self.key = Some(key);
        self
    }

    /// The requested node. For tests that choose an address for it.
    #[doc(hidden)]
    pub fn node_asked(&self) -> Option<u32> {
        let asked = self.settings.iter().rev().find(|(key, _)| key == "node");
        asked.and_then(|(_, node)| node.parse().ok())
    }

    /// The bare name, and all settings.
    fn settings<'a>(&self, name: &'a str) -> Result<(&'a str, Settings)> {
        let mut settings = Settings::new(name);
        for (key, value) in &self.settings {
            settings.set(key, value);
        }
        if let Some(key) = &self.key {
            settings.set_key(key.clone());
        }
        let Some((bare, own)) = name.split_once('?') else { return Ok((name, settings)) };
        settings.parse(own)?;
        Ok((bare, settings))
    }
}

impl Device {
    /// Opens the device `name`, for instance `shm:job`, or with options
    /// `shm:job?node=3&functions=16&mode=0660&group=100`.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`], or an error that names why the device cannot be used here.
    pub fn open(name: &str) -> Result<Device> {
        Self::open_with(name, &DeviceOptions::default())
    }

    /// Opens the device `name` with `options`. Settings in the name override them.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open_with(name: &str, options: &DeviceOptions) -> Result<Device> {
        let (bare, settings) = options.settings(name)?;
        let (kind, place) = Kind::find(bare)?;
        Self::from_backend(bare, (kind.open)(place, settings)?)
    }

    /// The kinds of devices that can be opened, and the forms of their names: `udp` and
    /// `udp:ADDRESS`.
    pub fn kinds() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        KINDS.iter().map(|kind| (kind.name, kind.forms))
    }

    /// Checks a name and its settings without opening anything. For `bellwire run` and the fuzzers.
    #[doc(hidden)]
    pub fn check_settings(name: &str) -> Result<()> {
        let (bare, settings) = DeviceOptions::default().settings(name)?;
        let (kind, place) = Kind::find(bare)?;
        (kind.check)(place, settings)
    }

    /// A device of the caller's own `backend`, for tests.
    #[doc(hidden)]
    pub fn from_backend(name: &str, backend: Box<dyn DeviceBackend>) -> Result<Device> {
        Ok(Device { opening: Arc::new(Opening::new(name, backend)?) })
    }

    /// The name that it was opened by, without options.
    pub fn name(&self) -> &str {
        &self.opening.name
    }

    /// Our node number.
    pub fn node(&self) -> u32 {
        self.opening.backend.info().node()
    }

    /// One line: what carries the messages, and how.
    pub fn describe(&self) -> String {
        self.opening.backend.info().describe()
    }

    /// The virtual time, on devices that simulate time.
    pub fn virtual_time(&self) -> Option<VirtualTime> {
        self.opening.backend.info().virtual_time()
    }

    /// The number of the node at `host`: a host name or an IP address, on `eth` also an Ethernet
    /// address. Its `function` must be open there. It is asked until it answers, at most for
    /// `timeout`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with the attempts listed, or [`Error::BadDeviceName`] on devices
    /// whose nodes have no such names.
    pub fn lookup(&self, host: &str, function: u8, timeout: Duration) -> Result<u32> {
        self.opening.fork.check()?;
        self.opening.backend.info().lookup(host, function, timeout)
    }

    /// Opens function `function` with default options. A function can be open only once at a time.
    ///
    /// # Errors
    /// [`Error::BadFunction`] if there is no such function or it is open. [`Error::Forked`] in a
    /// child of the process that opened the device. Otherwise an error that names the missing
    /// resource (memory, descriptors).
    pub fn open_function(&self, function: u8) -> Result<Function> {
        self.open_function_with(function, &FunctionOptions::default())
    }

    /// Opens function `function` with `options`.
    ///
    /// # Errors
    /// As [`Device::open_function`], and [`Error::OutOfRange`] for an option outside its range.
    pub fn open_function_with(&self, function: u8, options: &FunctionOptions) -> Result<Function> {
        self.opening.fork.check()?;
        options.check()?;
        if function >= self.opening.backend.functions() {
            let why = "the device was opened with fewer functions";
            return Err(Error::BadFunction { function, why });
        }
        let claim = self.opening.claims.claim(Number::Function(function));
        let claim = claim.ok_or(Error::BadFunction { function, why: "it is open already" })?;
        let transport = self.opening.backend.open_function(function, options.weight)?;
        Function::new(transport, options, claim, self.opening.clone())
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name()).field("node", &self.node()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind tells the forms of its names, and these begin with the kind.
    #[test]
    fn kinds_tell_their_names() {
        let kinds: Vec<_> = Device::kinds().collect();
        assert!(kinds.iter().any(|(name, _)| *name == "shm"), "{kinds:?}");
        for (name, forms) in kinds {
            let is_its = |form: &&str| form.split(':').next() == Some(name);
            assert!(!forms.is_empty() && forms.iter().all(is_its), "{name}: {forms:?}");
        }
    }

    #[test]
    fn names_with_settings_are_understood_or_refused_with_a_reason() {
        let good = "shm:job?node=3&functions=16&mode=0660&group=100";
        assert!(Device::check_settings(good).is_ok());
        for bad in [
            "shm:job?",
            "shm:job?node",
            "shm:job?node=-1",
            "shm:job?functions=256",
            "shm:job?mode=0777",
            "shm:job?mode=0660",
            "shm:job?group=5",
            "shm:job?colour=red",
        ] {
            assert!(
                matches!(Device::check_settings(bad), Err(Error::BadDeviceName { .. })),
                "{bad}"
            );
        }
        for bad in ["", "shm", "shm:", "ether:x"] {
            let error = Device::open(bad).unwrap_err();
            assert!(error.to_string().contains("names no device"), "{bad}: {error}");
        }
        let none = DeviceOptions::default().functions(0);
        assert!(matches!(Device::open_with("shm:job", &none), Err(Error::OutOfRange { .. })));
    }

    /// Settings in the name override the options.
    #[test]
    fn names_override_options() {
        let options = DeviceOptions::default().node(1).setting("port", 5);
        let (bare, mut settings) = options.settings("udp:x?node=2").unwrap();
        assert_eq!((bare, settings.node().unwrap()), ("udp:x", Some(2)));
        assert_eq!(settings.take("port", "").unwrap(), Some(5));
    }

    /// A device refuses a setting that it does not have, in the name and in the options, and says
    /// which it has.
    #[test]
    fn settings_of_other_devices_are_refused() {
        for (name, setting) in [
            ("udp:127.0.0.1?mode=0600", "mode"),
            ("shm:job?port=3", "port"),
            ("eth:lo?seed=1", "seed"),
            ("model:chpp?pcap=x", "pcap"),
            ("auto:udp:127.0.0.1?io=xdp", "io"),
            ("auto:eth:lo?port=1", "port"),
        ] {
            let told = Device::open(name).expect_err(name).to_string();
            let wanted = format!("has no setting \"{setting}\"; it has node");
            assert!(told.contains(&wanted), "{name}: {told}");
        }
        let options = DeviceOptions::default().mode(AccessMode::Everyone);
        let told = Device::open_with("udp:127.0.0.1", &options).expect_err("a mode").to_string();
        assert!(told.contains("udp has no setting \"mode\""), "{told}");
    }

    /// The node that is asked for last counts.
    #[test]
    fn options_tell_the_node() {
        assert_eq!(DeviceOptions::default().setting("port", 4).node_asked(), None);
        let options = DeviceOptions::default().node(1).node(7).setting("port", 4);
        assert_eq!(options.node_asked(), Some(7));
    }

    /// A device says what it is.
    #[test]
    fn a_device_says_what_it_is() {
        let name = format!("shm:says-{}", std::process::id());
        let device = Device::open(&format!("{name}?node=5&functions=3")).unwrap();
        assert_eq!((device.name(), device.node()), (&name[..], 5));
        assert!(device.describe().len() > 10, "{}", device.describe());
        assert_eq!(format!("{device:?}"), format!("Device {{ name: {name:?}, node: 5 }}"));
        assert!(device.virtual_time().is_none());
        assert!(device.open_function(2).is_ok() && device.open_function(3).is_err());
    }

    /// A key is asked for beside all other settings, and `shm` has none.
    #[test]
    fn a_key_is_one_of_the_options() {
        let options = DeviceOptions::default().node(3).key(KeySource::text("secret"));
        assert_eq!(options.node_asked(), Some(3));
        let refused = Device::open_with("shm:sealed", &options);
        assert!(refused.is_err(), "{refused:?}");
    }

    /// A device that is dropped lets go of its node.
    #[test]
    fn a_dropped_device_is_closed() {
        let name = format!("shm:dropped-{}?node=5", std::process::id());
        for _ in 0..2 {
            let device = Device::open(&name).expect("the node is free");
            Device::open(&name).expect_err("it is taken");
            drop(device);
        }
    }
}
