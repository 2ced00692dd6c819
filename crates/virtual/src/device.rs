//! The device `model:chpp`, and the machines of this process by name.

use crate::machine::{Machine, event_driven};
use crate::nic::Nic;
use crate::transport::VirtualTransport;
use crate::world::World;
use bellwire_device::{
    DeviceKind, Error, FunctionAddress, NodeInfo, Settings, TransportVisitor, VirtualTime,
    refuse_weight,
};
use bellwire_model::chpp::Config;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The open machines of this process. Openings find each other by the name, as on the other
/// devices.
static WORLDS: Mutex<BTreeMap<String, Known>> = Mutex::new(BTreeMap::new());

/// A machine, and the options of its first opening.
struct Known {
    world: Weak<World>,
    config: Config,
    seed: u64,
    programs: usize,
}

/// How to open a [`VirtualDevice`]. The first opening makes the machine. Later ones may omit its
/// options, but must not contradict them.
#[derive(Clone, Debug, Default)]
pub struct VirtualOptions {
    /// The node number; `None`: the lowest free one.
    pub node: Option<u32>,
    /// The machine's parameters, a file like `chpp.toml`; `None`: the paper's prototype.
    pub config: Option<PathBuf>,
    /// The seed of the machine's random choices; `None`: 1.
    pub seed: Option<u64>,
    /// Virtual time begins when this number of threads drive functions; `None`: with the first.
    pub programs: Option<usize>,
}

/// One opening: a node on one of the modelled hosts.
pub struct VirtualDevice {
    world: Arc<World>,
    name: String,
    /// The interface, in words.
    what: &'static str,
    node: u32,
    host: usize,
    hosts: usize,
    seed: u64,
}

/// A machine of this configuration with this seed, or why there is none, and what would help.
pub type Made = Result<Box<dyn Machine>, (String, String)>;

impl VirtualDevice {
    /// Opens `machine`: `chpp`, or `chpp:NAME` for one of several.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] for other machines. [`Error::DeviceUnavailable`] if the
    /// configuration cannot be read or differs from that of the open machine, or if the node number
    /// is in use.
    pub fn open(machine: &str, options: &VirtualOptions) -> Result<VirtualDevice, Error> {
        let what = "the cHPP interface, simulated in virtual time inside this process";
        VirtualDevice::over(("model", what), machine, options, |config, seed| {
            let machine = event_driven(config, seed);
            let machine =
                machine.map_err(|error| (error.to_string(), "other values".to_owned()))?;
            Ok(Box::new(machine))
        })
    }

    /// Opens `machine` of another kind of device, which has a name and says what it is. The first
    /// opening makes the machine.
    ///
    /// # Errors
    /// Those of [`VirtualDevice::open`], and [`Error::DeviceUnavailable`] if the machine cannot be
    /// made.
    pub fn over(
        (kind, what): (&str, &'static str),
        machine: &str,
        options: &VirtualOptions,
        make: impl FnOnce(&Config, u64) -> Made,
    ) -> Result<VirtualDevice, Error> {
        let name = format!("{kind}:{machine}");
        if machine != "chpp" && machine.strip_prefix("chpp:").is_none_or(str::is_empty) {
            let why = format!(
                "the only machine that is modelled as a device is chpp: write {kind}:chpp, or {kind}:chpp:NAME for one of several"
            );
            return Err(Error::BadDeviceName { name, why });
        }
        let unavailable = |why: String, hint: &str| Error::DeviceUnavailable {
            device: name.clone(),
            why,
            hint: hint.to_owned(),
        };
        let config = options.config.as_ref().map(|path| {
            let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
            let config = text.and_then(|text| Config::parse(&text).map_err(|e| e.to_string()));
            let hint = "a file with those parameters that differ from the ones that `bellwire model parameters` prints";
            config.map_err(|why| unavailable(format!("{}: {why}", path.display()), hint))
        });
        let config = config.transpose()?;
        let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        let open = worlds.get(&name).and_then(|known| Some((known.world.upgrade()?, known)));
        let (world, seed) = match open {
            Some((world, known)) => {
                let hint = format!("the same for all nodes, or another name after {kind}:chpp:");
                let differs =
                    |what: &str| unavailable(format!("it is open with another {what}"), &hint);
                if config.is_some_and(|config| config != known.config) {
                    return Err(differs("configuration"));
                }
                if options.seed.is_some_and(|seed| seed != known.seed) {
                    return Err(differs("seed"));
                }
                if options.programs.is_some_and(|programs| programs != known.programs) {
                    return Err(differs("number of programs"));
                }
                (world, known.seed)
            }
            None => {
                let config = config.unwrap_or_else(Config::prototype);
                let (seed, programs) = (options.seed.unwrap_or(1), options.programs.unwrap_or(0));
                let machine = make(&config, seed);
                let machine = machine.map_err(|(why, hint)| unavailable(why, &hint))?;
                let nic = Nic::new(&config, machine);
                let world = Arc::new(World::new(nic, seed, programs));
                worlds.retain(|_, known| known.world.strong_count() > 0);
                let known = Known { world: Arc::downgrade(&world), config, seed, programs };
                worlds.insert(name.clone(), known);
                (world, seed)
            }
        };
        drop(worlds);
        let mut state = world.lock();
        let Some(node) = state.claim_node(options.node) else {
            let why = format!("node {} is open already", options.node.unwrap_or(0));
            return Err(unavailable(why, "another number, or none"));
        };
        let hosts = state.nic.config.nodes();
        drop(state);
        Ok(VirtualDevice { world, name, what, node, host: node as usize % hosts, hosts, seed })
    }

    /// Opens a function.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the node's host has no free queue pair.
    pub fn open_function(&self, function: u8) -> Result<VirtualTransport, Error> {
        let address = FunctionAddress { node: self.node, function };
        VirtualTransport::open(self.world.clone(), self.host, address)
    }
}

impl Drop for VirtualDevice {
    fn drop(&mut self) {
        self.world.lock().nodes.remove(&self.node);
    }
}

impl NodeInfo for VirtualDevice {
    fn node(&self) -> u32 {
        self.node
    }

    fn describe(&self) -> String {
        format!(
            "{}: {}: node {} on host {} of {}, seed {}",
            self.name, self.what, self.node, self.host, self.hosts, self.seed
        )
    }

    fn virtual_time(&self) -> Option<VirtualTime> {
        let state = self.world.lock();
        let machine = &state.nic.machine;
        Some(VirtualTime {
            now_ps: machine.now().ps(),
            events: machine.events(),
            packets: state.nic.packets,
            trace_hash: machine.trace_hash(),
        })
    }
}

impl DeviceKind for VirtualDevice {
    const NAME: &'static str = "model";
    const FORMS: &'static [&'static str] = &["model:chpp"];
    type Options = VirtualOptions;

    fn options(_: &str, settings: &mut Settings) -> Result<VirtualOptions, Error> {
        Ok(VirtualOptions {
            node: settings.node()?,
            config: settings.take("config", "a configuration is a file")?,
            seed: settings.take("seed", "seeds are numbers")?,
            programs: settings.take("programs", "programs are a number of threads")?,
        })
    }

    fn open(machine: &str, options: VirtualOptions) -> Result<Self, Error> {
        VirtualDevice::open(machine, &options)
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output, Error> {
        refuse_weight(
            weight,
            "16, the default, on model, where nic.arbitration of the configuration says how functions share; shm has weights",
        )?;
        Ok(visitor.visit(self.open_function(function)?))
    }
}
