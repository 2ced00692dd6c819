//! The device `auto:NETWORK`: `udp` or `eth` for peers on other hosts, and shared memory for peers on this one.
//!
//! Addresses are the network's. A function of it listens in both places under the same address: first in the job
//! `auto.udp` (`auto.udp.PORT`, unless it is the usual one) or `auto.eth.INTERFACE` of this host, then in the network. So whoever is in the network as a function of this
//! device and runs on this host (with the same access) is in the job too, and who wants to reach it looks there first.
//!
//! | file | what |
//! |---|---|
//! | `transport.rs` | one transport made of two |
//! | `links.rs` | which link of it is which link of theirs |

mod links;
mod transport;

use crate::backend::{DeviceBackend, opened};
use crate::device::DeviceOptions;
use crate::engine::Port;
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

/// Opens the network that `name` means, `udp:ADDRESS` or `eth:INTERFACE`, and joins the job of all who have it on this host.
pub(crate) fn open(name: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    Ok(opened(Auto::open(name, options)?, options, Auto::open_function))
}

/// What the functions of one opening count together.
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

    fn open_function(&self, function: u8, options: &FunctionOptions) -> Result<Box<dyn Port>> {
        // Here before it is in the network, so that nobody finds it there and not here.
        let near = self.host.open_function(function, options.weight)?;
        match &self.network {
            Network::Udp(udp) => self.join(near, udp.open_function(function)?, udp.elsewhere()),
            Network::Eth(eth) => match eth.open_function(function)? {
                EthFunction::Packet(far) => self.join(near, *far, eth.elsewhere()),
                EthFunction::Xdp(far) => self.join(near, *far, eth.elsewhere()),
                EthFunction::Several(far) => self.join(near, *far, eth.elsewhere()),
            },
        }
    }

    /// Both in one.
    fn join(
        &self,
        near: ShmTransport,
        far: impl Transport + 'static,
        elsewhere: impl Fn(u32) -> bool + Send + 'static,
    ) -> Result<Box<dyn Port>> {
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
