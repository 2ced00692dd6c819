//! The device `rtl:chpp`.

use crate::library::{Gates, Library};
use bellwire_device::{DeviceKind, Error, NodeInfo, Settings, TransportVisitor, VirtualTime};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::clocked::Machine;
use bellwire_model::cycle::nic_core::Shape;
use bellwire_virtual::{Made, VirtualDevice, VirtualOptions};
use std::path::{Path, PathBuf};

/// The file of the gates, in the folder of the program unless a setting names another one.
const FILE: &str = "libbellwire_rtl.so";

/// How to open an [`RtlDevice`].
#[derive(Clone, Debug, Default)]
pub struct RtlOptions {
    /// Node, configuration, seed and programs, as for `model:chpp`. The configuration says how many
    /// hosts there are, and what they and their buses are like. Gates have the prototype's sizes.
    pub machine: VirtualOptions,
    /// The gates as a library; `None`: `libbellwire_rtl.so` in the folder of the program.
    pub library: Option<PathBuf>,
}

/// One opening of `rtl:chpp`: a node on a host whose interface is in gates.
pub struct RtlDevice(VirtualDevice);

/// Loads the gates, and puts a host in front of each of them. `library` is the file of gates;
/// `None`: `libbellwire_rtl.so` in the folder of the program.
///
/// # Errors
/// Why there are none, and what would help.
pub fn machine(
    config: &Config,
    seed: u64,
    library: Option<&Path>,
) -> Result<Machine<Gates>, (String, String)> {
    let known = Config::prototype();
    if config.links.is_some() || config.link != known.link {
        let why = "gates have a switch between them, and this configuration has links";
        return Err((why.to_owned(), "no [links]".to_owned()));
    }
    if config.nic != known.nic {
        let why = "[nic] of the configuration differs from the prototype, whose sizes gates have";
        return Err((why.to_owned(), "no values in [nic]".to_owned()));
    }
    let path = match library {
        Some(path) => path.to_owned(),
        None => {
            let program = std::env::current_exe();
            let program = program.map_err(|error| (error.to_string(), built("PATH")))?;
            program.with_file_name(FILE)
        }
    };
    let hint = built(&path.display().to_string());
    let library = Library::load(&path)
        .map_err(|why| (format!("the gates cannot be loaded: {why}"), hint.clone()))?;
    let gates = (0..config.nodes()).map(|_| library.interface()).collect::<Option<Vec<_>>>();
    let gates = gates.ok_or_else(|| ("there is no memory for gates".to_owned(), hint))?;
    Ok(Machine::new(config, seed, gates, Shape::PROTOTYPE.packets))
}

/// How the library comes about.
fn built(path: &str) -> String {
    format!("`make rtl` builds the gates; the setting library={path} names the file")
}

impl RtlDevice {
    /// Opens the machine `name`: `chpp`, or `chpp:NAME` for one of several.
    ///
    /// # Errors
    /// Those of [`VirtualDevice::open`], and [`Error::DeviceUnavailable`] if the gates cannot be
    /// loaded or the configuration does not fit them.
    pub fn open(name: &str, options: &RtlOptions) -> Result<RtlDevice, Error> {
        let what = "the cHPP interface in gates, simulated in virtual time inside this process";
        let library = options.library.as_deref();
        let make =
            |config: &Config, seed| -> Made { Ok(Box::new(machine(config, seed, library)?)) };
        let device = VirtualDevice::over(("rtl", what), name, &options.machine, make);
        device.map(RtlDevice)
    }
}

impl NodeInfo for RtlDevice {
    fn node(&self) -> u32 {
        self.0.node()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn virtual_time(&self) -> Option<VirtualTime> {
        self.0.virtual_time()
    }
}

impl DeviceKind for RtlDevice {
    const NAME: &'static str = "rtl";
    const FORMS: &'static [&'static str] = &["rtl:chpp"];
    type Options = RtlOptions;

    fn options(machine: &str, settings: &mut Settings) -> Result<RtlOptions, Error> {
        let library = settings.take("library", "the gates are a file")?;
        Ok(RtlOptions { machine: VirtualDevice::options(machine, settings)?, library })
    }

    fn open(machine: &str, options: RtlOptions) -> Result<Self, Error> {
        RtlDevice::open(machine, &options)
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output, Error> {
        DeviceKind::open_function(&self.0, function, weight, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why a device with these options cannot be used.
    fn refused(options: &RtlOptions) -> String {
        match RtlDevice::open("chpp:refused", options) {
            Err(Error::DeviceUnavailable { device, why, .. }) if device == "rtl:chpp:refused" => {
                why
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it opens"),
        }
    }

    /// Without gates, with a file that is no library, or with one that has no gates, the error says
    /// so, and how they are built.
    #[test]
    fn what_are_no_gates_is_refused() {
        let library = |path: &str| RtlOptions { library: Some(path.into()), ..Default::default() };
        for path in ["no-such-file", "/dev/null"] {
            let why = refused(&library(path));
            assert!(why.contains("the gates cannot be loaded") && why.contains(path), "{why}");
        }
        // A program is no library, either.
        let why = refused(&library("/proc/self/exe"));
        assert!(why.contains("the gates cannot be loaded"), "{why}");
        let missing = RtlDevice::open("chpp", &RtlOptions::default()).map(|_| ()).unwrap_err();
        assert!(missing.to_string().contains("make rtl"), "{missing}");
    }

    /// A configuration that gates cannot have is refused before they are loaded.
    #[test]
    fn other_sizes_are_refused() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("bellwire-rtl-{}.toml", std::process::id()));
        for (text, says) in [("[nic]\ntags = 16\n", "[nic]"), ("link = \"smp\"\n", "links")] {
            std::fs::write(&path, text).expect("a file for the test");
            let machine = VirtualOptions { config: Some(path.clone()), ..Default::default() };
            let why = refused(&RtlOptions { machine, library: None });
            assert!(why.contains(says), "{why}");
        }
        std::fs::remove_file(&path).expect("it is there");
    }

    /// Other machines are no names of this device.
    #[test]
    fn only_chpp_is_a_machine() {
        let other = RtlDevice::open("myvia", &RtlOptions::default()).map(|_| ()).unwrap_err();
        assert!(matches!(&other, Error::BadDeviceName { .. }), "{other}");
        assert!(other.to_string().contains("rtl:chpp"), "{other}");
    }
}
