//! Opening a device by name.

use crate::backend::DeviceBackend;
use crate::fork::ForkGuard;
use crate::{Error, Function, FunctionOptions, Result, VirtualTime};
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A device that this process has opened: one node among those of the same name. Clones share one
/// opening.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

/// What the functions of one opening share.
pub(crate) struct Shared {
    fork: ForkGuard,
    name: String,
    backend: ManuallyDrop<Box<dyn DeviceBackend>>,
    claims: Mutex<Claims>,
}

/// Owned function and channel numbers of this node.
#[derive(Default)]
struct Claims {
    functions: HashSet<u8>,
    channels: HashSet<u16>,
}

/// Who may take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessMode {
    /// Processes of the same user (as a file of mode 0600).
    #[default]
    Owner,
    /// Processes of the same user or of this group (mode 0660).
    Group(u32),
    /// Every process of this host (mode 0666).
    Everyone,
}

/// How to open a device. The name can say the same:
/// `shm:job?node=3&functions=16&mode=0660&group=100`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// The node number; `None`: the lowest free one.
    pub node: Option<u32>,
    /// Functions that can be opened: 1 physical and the others virtual (C-38). At least 1.
    pub functions: u8,
    /// Who may take part.
    pub mode: AccessMode,
    /// `udp`: function 0 listens on this port and the others on the ports after it. All nodes must
    /// agree. `None`: on 49664.
    pub port: Option<u16>,
    /// `eth`: the socket family for frames, without fallback; `None`: the best available one.
    pub io: Option<FrameWay>,
    /// `eth`: a packet socket that a privileged process has handed in, for the one function of this
    /// process.
    pub fd: Option<i32>,
    /// `eth` and `udp`: write all frames to this file, which Wireshark reads.
    pub pcap: Option<PathBuf>,
    /// `model`: the file of the machine's parameters, as `bellwire model parameters` prints it;
    /// `None`: the paper's prototype.
    pub config: Option<PathBuf>,
    /// `model`: the seed of all random choices; `None`: 1.
    pub seed: Option<u64>,
    /// `model`: virtual time begins when this number of threads drive functions; `None`: with the
    /// first.
    pub programs: Option<usize>,
}

/// The way of `eth` frames in and out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameWay {
    /// AF_XDP: straight from the link layer into the program's memory.
    Xdp,
    /// AF_PACKET: by way of any driver, jumbo frames included.
    Packet,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        DeviceOptions {
            node: None,
            functions: 8,
            mode: AccessMode::Owner,
            port: None,
            io: None,
            fd: None,
            pcap: None,
            config: None,
            seed: None,
            programs: None,
        }
    }
}

impl DeviceOptions {
    /// The settings that differ from their defaults. `functions` is left out: every device has it.
    fn given(&self) -> Vec<&'static str> {
        [
            ("node", self.node.is_some()),
            ("mode", self.mode != AccessMode::Owner),
            ("port", self.port.is_some()),
            ("io", self.io.is_some()),
            ("fd", self.fd.is_some()),
            ("pcap", self.pcap.is_some()),
            ("config", self.config.is_some()),
            ("seed", self.seed.is_some()),
            ("programs", self.programs.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
        .collect()
    }
}

/// A kind of device, by what its name begins with.
struct Kind {
    name: &'static str,
    open: fn(&str, &DeviceOptions) -> Result<Box<dyn DeviceBackend>>,
    /// What to say if nothing follows the colon.
    missing: &'static str,
    /// The settings that it knows, of a device with this rest of the name.
    settings: fn(&str) -> Vec<&'static str>,
}

/// All kinds. A new device is one line more.
const KINDS: [Kind; 5] = [
    Kind {
        name: "shm",
        open: crate::shm::open,
        missing: "the job's name is missing after the colon",
        settings: |_| crate::shm::SETTINGS.to_vec(),
    },
    Kind {
        name: "eth",
        open: crate::eth::open,
        missing: "the interface's name is missing",
        settings: |_| crate::eth::SETTINGS.to_vec(),
    },
    Kind {
        name: "udp",
        open: crate::udp::open,
        missing: "an IP address of this host is missing",
        settings: |_| crate::udp::SETTINGS.to_vec(),
    },
    Kind {
        name: "model",
        open: crate::model::open,
        missing: "the machine is missing: model:chpp",
        settings: |_| crate::model::SETTINGS.to_vec(),
    },
    Kind {
        name: "auto",
        open: crate::auto::open,
        missing: "the network is missing: auto:udp:ADDRESS or auto:eth:INTERFACE",
        settings: crate::auto::settings,
    },
];

/// The kind of a device, and the rest of its name.
fn kind_of(name: &str) -> Result<(&'static Kind, &str)> {
    let (kind, place) = name
        .split_once(':')
        .ok_or_else(|| bad_name(name, "there is no colon between kind and name"))?;
    let known = KINDS.iter().find(|known| known.name == kind);
    Ok((known.ok_or_else(|| bad_name(name, "this kind of device is not known"))?, place))
}

/// Refuses settings that a device would not heed.
fn check_known(name: &str, given: &[&str]) -> Result<()> {
    let (kind, place) = kind_of(name)?;
    let known = (kind.settings)(place);
    match given.iter().find(|given| !known.contains(given)) {
        None => Ok(()),
        Some(given) => {
            let kind = kind.name;
            let known = known.join(", ");
            Err(bad_name(name, &format!("{kind} has no setting \"{given}\"; it has {known}")))
        }
    }
}

impl Device {
    /// Opens the device `name`, for instance `shm:job`, or with options
    /// `shm:job?node=3&functions=16&mode=0660&group=100`.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`], or an error that names why the device cannot be used here.
    pub fn open(name: &str) -> Result<Device> {
        let (bare, options, given) = parse(name)?;
        check_known(bare, &given)?;
        Self::open_with(bare, &options)
    }

    /// Opens the device `name` (without `?options`) with `options`.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open_with(name: &str, options: &DeviceOptions) -> Result<Device> {
        if options.functions == 0 {
            return Err(Error::OutOfRange {
                parameter: "functions",
                value: 0,
                range: "1 to 255: function 0 always exists",
            });
        }
        let (kind, place) = kind_of(name)?;
        if place.is_empty() {
            return Err(bad_name(name, kind.missing));
        }
        check_known(name, &options.given())?;
        Self::from_backend(name, (kind.open)(place, options)?)
    }

    /// Checks the settings in a name without opening anything. For the fuzzers.
    #[doc(hidden)]
    pub fn check_settings(name: &str) -> Result<()> {
        parse(name).map(|_| ())
    }

    /// A device of the caller's own `backend`, for tests.
    #[doc(hidden)]
    pub fn from_backend(name: &str, backend: Box<dyn DeviceBackend>) -> Result<Device> {
        let (fork, claims) = (ForkGuard::new()?, Mutex::default());
        let (name, backend) = (name.to_owned(), ManuallyDrop::new(backend));
        Ok(Device { shared: Arc::new(Shared { fork, name, backend, claims }) })
    }

    /// The name that it was opened by, without options.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Our node number.
    pub fn node(&self) -> u32 {
        self.shared.backend.station().node()
    }

    /// One line: what carries the messages, and how.
    pub fn describe(&self) -> String {
        self.shared.backend.station().describe()
    }

    /// The virtual time, on devices that simulate time.
    pub fn virtual_time(&self) -> Option<VirtualTime> {
        self.shared.backend.station().virtual_time()
    }

    /// The number of the node at `host`: a host name or an IP address, on `eth` also an Ethernet
    /// address. Its `function` must be open there. It is asked until it answers, at most for
    /// `timeout`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with the attempts listed, or [`Error::BadDeviceName`] on devices
    /// whose nodes have no such names.
    pub fn lookup(&self, host: &str, function: u8, timeout: Duration) -> Result<u32> {
        self.shared.fork.check()?;
        self.shared.backend.station().lookup(host, function, timeout)
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
        self.shared.fork.check()?;
        options.check()?;
        if function >= self.shared.backend.functions() {
            let why = "the device was opened with fewer functions";
            return Err(Error::BadFunction { function, why });
        }
        let claim = Claim::function(&self.shared, function)?;
        let port = self.shared.backend.open_function(function, options)?;
        Function::new(port, options, claim)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name()).field("node", &self.node()).finish()
    }
}

/// Ownership of a function or channel number. Dropping it frees the number.
pub struct Claim {
    shared: Arc<Shared>,
    what: Claimed,
}

enum Claimed {
    Function(u8),
    Channel(u16),
}

impl Claim {
    fn function(shared: &Arc<Shared>, function: u8) -> Result<Claim> {
        if !shared.claims().functions.insert(function) {
            return Err(Error::BadFunction { function, why: "it is open already" });
        }
        Ok(Claim { shared: shared.clone(), what: Claimed::Function(function) })
    }

    /// The name of the claimed device.
    pub(crate) fn device_name(&self) -> &str {
        &self.shared.name
    }

    /// Channel `channel` of the same node as this claim (H-22: one owner per node).
    pub(crate) fn channel(&self, channel: u16) -> Result<Claim> {
        if !self.shared.claims().channels.insert(channel) {
            return Err(Error::ChannelTaken { channel });
        }
        Ok(Claim { shared: self.shared.clone(), what: Claimed::Channel(channel) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = self.shared.claims();
        match self.what {
            Claimed::Function(function) => claims.functions.remove(&function),
            Claimed::Channel(channel) => claims.channels.remove(&channel),
        };
    }
}

impl Shared {
    /// A panic elsewhere cannot leave a set of numbers half changed, so a poisoned lock is usable.
    fn claims(&self) -> std::sync::MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    /// In a forked child nothing happens: the parent owns everything.
    fn drop(&mut self) {
        if self.fork.is_same_process() {
            // SAFETY: nothing uses the backend after its owner is dropped.
            unsafe { ManuallyDrop::drop(&mut self.backend) }
        }
    }
}

/// Cuts `shm:job?node=3&mode=0660` into the bare name and the options.
fn parse(name: &str) -> Result<(&str, DeviceOptions, Vec<&str>)> {
    let mut options = DeviceOptions::default();
    let mut given = Vec::new();
    let Some((bare, settings)) = name.split_once('?') else { return Ok((name, options, given)) };
    let (mut mode, mut group) = (0o600, None);
    for setting in settings.split('&') {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(bad_name(name, &format!("\"{setting}\" is not KEY=VALUE")));
        };
        let bad = |known: &str| bad_name(name, &format!("{key}={value}: {known}"));
        given.push(key);
        match key {
            "node" => {
                options.node = Some(value.parse().map_err(|_| bad("a node is a number from 0"))?)
            }
            "functions" => {
                options.functions = value.parse().map_err(|_| bad("functions are 1 to 255"))?
            }
            "mode" => {
                mode = u32::from_str_radix(value, 8)
                    .ok()
                    .filter(|mode| [0o600, 0o660, 0o666].contains(mode))
                    .ok_or_else(|| bad("a mode is 0600, 0660 or 0666"))?
            }
            "group" => {
                group = Some(value.parse().map_err(|_| bad("a group is a numeric group id"))?)
            }
            "port" => options.port = Some(value.parse().map_err(|_| bad("ports are 0 to 65535"))?),
            "io" => {
                options.io = Some(match value {
                    "xdp" => FrameWay::Xdp,
                    "packet" => FrameWay::Packet,
                    _ => return Err(bad("frames go by xdp or packet")),
                })
            }
            "fd" => options.fd = Some(value.parse().map_err(|_| bad("a descriptor is a number"))?),
            "pcap" => options.pcap = Some(PathBuf::from(value)),
            "config" => options.config = Some(PathBuf::from(value)),
            "seed" => options.seed = Some(value.parse().map_err(|_| bad("seeds are numbers"))?),
            "programs" => {
                let programs =
                    value.parse().map_err(|_| bad("programs are a number of threads"))?;
                options.programs = Some(programs)
            }
            _ => {
                return Err(bad(
                    "the settings are node, functions, mode, group, port, io, fd and pcap, and of model also config, seed and programs",
                ));
            }
        }
    }
    options.mode = match (mode, group) {
        (0o600, None) => AccessMode::Owner,
        (0o660, Some(group)) => AccessMode::Group(group),
        (0o666, None) => AccessMode::Everyone,
        (0o660, None) => return Err(bad_name(name, "mode=0660 needs group=GID")),
        _ => return Err(bad_name(name, "group=GID goes with mode=0660 only")),
    };
    Ok((bare, options, given))
}

fn bad_name(name: &str, why: &str) -> Error {
    Error::BadDeviceName { name: name.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_settings_are_understood_or_refused_with_a_reason() {
        let (bare, options, _) = parse("shm:job?node=3&functions=16&mode=0660&group=100").unwrap();
        assert_eq!(bare, "shm:job");
        assert_eq!((options.node, options.functions), (Some(3), 16));
        assert_eq!(options.mode, AccessMode::Group(100));
        assert_eq!(parse("shm:job").unwrap().1.mode, AccessMode::Owner);
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
            assert!(matches!(parse(bad), Err(Error::BadDeviceName { .. })), "{bad}");
        }
        for bad in ["", "shm", "shm:", "ether:x"] {
            let error = Device::open(bad).unwrap_err();
            assert!(error.to_string().contains("names no device"), "{bad}: {error}");
        }
        let none = DeviceOptions { functions: 0, ..DeviceOptions::default() };
        assert!(matches!(Device::open_with("shm:job", &none), Err(Error::OutOfRange { .. })));
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
        let options = DeviceOptions { mode: AccessMode::Everyone, ..DeviceOptions::default() };
        let told = Device::open_with("udp:127.0.0.1", &options).expect_err("a mode").to_string();
        assert!(told.contains("udp has no setting \"mode\""), "{told}");
    }
}
