//! The device `auto:NETWORK`: `udp` or `eth` for peers on other hosts, and shared memory for peers
//! on this one.
//!
//! Addresses are the network's. A function listens on both transports under the same address: first
//! in a job of this host, then in the network. The job is `auto.udp` (`auto.udp.PORT`, unless it is
//! the default port) or `auto.eth.INTERFACE`. So each `auto` function of this host (with the same
//! access) that is in the network is in the job too. A peer looks in the job first.
//!
//! | file | what |
//! |---|---|
//! | `transport.rs` | one transport made of two |
//! | `links.rs` | maps its links to theirs |

mod links;
mod transport;

use crate::backend::{DeviceBackend, opened};
use crate::device::DeviceOptions;
use crate::engine::DynTransport;
use crate::{Error, FunctionOptions, Result};
use bellwire_device::{Station, Transport};
use bellwire_ethernet::{EthDevice, EthFunction, PORT, UdpDevice};
use bellwire_shm::{ShmDevice, ShmTransport};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transport::AutoTransport;

/// The settings that this device knows: those of its network, and who may connect in memory.
pub(crate) fn settings(name: &str) -> Vec<&'static str> {
    let network =
        if name.starts_with("eth:") { crate::eth::SETTINGS } else { crate::udp::SETTINGS };
    network.iter().copied().chain(["mode", "group"]).collect()
}

/// Opens the network `name`, `udp:ADDRESS` or `eth:INTERFACE`, and joins the job of its functions
/// on this host.
pub(crate) fn open(name: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    Ok(opened(Auto::open(name, options)?, options, Auto::open_function))
}

/// Link counts of all functions of one opening.
#[derive(Default)]
struct Tally {
    near: AtomicUsize,
    far: AtomicUsize,
}

struct Auto {
    network: Network,
    host: ShmDevice,
    job: String,
    tally: Arc<Tally>,
}

enum Network {
    Udp(UdpDevice),
    Eth(EthDevice),
}

impl Network {
    fn station(&self) -> &dyn Station {
        match self {
            Network::Udp(udp) => udp,
            Network::Eth(eth) => eth,
        }
    }
}

impl Auto {
    fn open(name: &str, options: &DeviceOptions) -> Result<Auto> {
        let (network, job) = match name.split_once(':') {
            Some(("udp", address)) if !address.is_empty() => {
                let network = Network::Udp(crate::udp::station(address, options)?);
                match options.port.filter(|&port| port != PORT) {
                    Some(port) => (network, format!("auto.udp.{port}")),
                    None => (network, "auto.udp".to_owned()),
                }
            }
            Some(("eth", interface)) if !interface.is_empty() => {
                let network = Network::Eth(crate::eth::station(interface, options)?);
                (network, format!("auto.eth.{interface}"))
            }
            _ => {
                let why = "after auto: comes the network, udp:ADDRESS or eth:INTERFACE";
                return Err(Error::BadDeviceName { name: format!("auto:{name}"), why: why.into() });
            }
        };
        let node = network.station().node();
        let host = ShmDevice::share(&job, crate::shm::access_of(options), node)?;
        Ok(Auto { network, host, job, tally: Arc::default() })
    }

    fn open_function(
        &self,
        function: u8,
        options: &FunctionOptions,
    ) -> Result<Box<dyn DynTransport>> {
        // Opened before the network's function: no peer finds it in the network but not in memory.
        let near = self.host.open_function(function, options.weight)?;
        match &self.network {
            Network::Udp(udp) => self.join(near, udp.open_function(function)?, udp.elsewhere()),
            Network::Eth(eth) => match eth.open_function(function)? {
                EthFunction::Packet(far) => self.join(near, *far, eth.elsewhere()),
                EthFunction::Xdp(far) => self.join(near, *far, eth.elsewhere()),
                EthFunction::MultiInterface(far) => self.join(near, *far, eth.elsewhere()),
            },
        }
    }

    /// Joins the two transports.
    fn join(
        &self,
        near: ShmTransport,
        far: impl Transport + 'static,
        elsewhere: impl Fn(u32) -> bool + Send + 'static,
    ) -> Result<Box<dyn DynTransport>> {
        let joined = AutoTransport::new(near, far, Box::new(elsewhere), self.tally.clone())?;
        Ok(Box::new(joined))
    }
}

impl Station for Auto {
    fn node(&self) -> u32 {
        self.network.station().node()
    }

    fn describe(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        format!(
            "peers of this host by shared memory (job {}, {} now), others by {} ({} now)",
            self.job,
            count(&self.tally.near),
            self.network.station().describe(),
            count(&self.tally.far)
        )
    }

    fn lookup(&self, host: &str, function: u8, patience: Duration) -> Result<u32> {
        self.network.station().lookup(host, function, patience)
    }
}
