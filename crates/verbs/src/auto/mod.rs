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

use crate::device::{DeviceBackend, DeviceOptions};
use crate::engine::Port;
use crate::{Error, FunctionOptions, Result};
use bellwire_device::Transport;
use bellwire_ethernet::{EthFunction, PORT};
use bellwire_shm::{ShmDevice, ShmTransport};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transport::AutoTransport;

/// What the functions of one opening count together.
#[derive(Default)]
pub(crate) struct Tally {
    near: AtomicUsize,
    far: AtomicUsize,
}

pub(crate) struct Auto {
    network: Network,
    host: ShmDevice,
    job: String,
    tally: Arc<Tally>,
}

enum Network {
    Udp(crate::udp::Udp),
    Eth(crate::eth::Eth),
}

impl Auto {
    /// Opens the network that `name` means, `udp:ADDRESS` or `eth:INTERFACE`, and joins the job of all who have it on this host.
    pub(crate) fn open(name: &str, options: &DeviceOptions) -> Result<Auto> {
        let (network, job) = match name.split_once(':') {
            Some(("udp", address)) if !address.is_empty() => {
                let network = Network::Udp(crate::udp::Udp::open(address, options)?);
                match options.port.filter(|&port| port != PORT) {
                    Some(port) => (network, format!("auto.udp.{port}")),
                    None => (network, "auto.udp".to_owned()),
                }
            }
            Some(("eth", interface)) if !interface.is_empty() => {
                let network = crate::eth::Eth::open(interface, options)?;
                (Network::Eth(network), format!("auto.eth.{interface}"))
            }
            _ => {
                let why = "after auto: comes the network, udp:ADDRESS or eth:INTERFACE";
                return Err(Error::BadDeviceName { name: format!("auto:{name}"), why: why.into() });
            }
        };
        let node = match &network {
            Network::Udp(udp) => udp.node(),
            Network::Eth(eth) => eth.node(),
        };
        let host = ShmDevice::share(&job, crate::shm::access_of(options), node)?;
        Ok(Auto { network, host, job, tally: Arc::default() })
    }

    fn backend(&self) -> &dyn DeviceBackend {
        match &self.network {
            Network::Udp(udp) => udp,
            Network::Eth(eth) => eth,
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

impl DeviceBackend for Auto {
    fn node(&self) -> u32 {
        self.backend().node()
    }

    fn functions(&self) -> u8 {
        self.backend().functions()
    }

    fn describe(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        format!(
            "peers of this host by shared memory (job {}, {} now), others by {} ({} now)",
            self.job,
            count(&self.tally.near),
            self.backend().describe(),
            count(&self.tally.far)
        )
    }

    fn lookup(&self, host: &str, function: u8, timeout: Duration) -> Result<u32> {
        self.backend().lookup(host, function, timeout)
    }

    fn open_function(&self, function: u8, options: &FunctionOptions) -> Result<Box<dyn Port>> {
        // Here before it is in the network, so that nobody finds it there and not here.
        let near = self.host.open_function(function, options.weight)?;
        match &self.network {
            Network::Udp(udp) => {
                self.join(near, udp.device.open_function(function)?, udp.device.elsewhere())
            }
            Network::Eth(eth) => match eth.device.open_function(function)? {
                EthFunction::Packet(far) => self.join(near, *far, eth.device.elsewhere()),
                EthFunction::Xdp(far) => self.join(near, *far, eth.device.elsewhere()),
                EthFunction::Several(far) => self.join(near, *far, eth.device.elsewhere()),
            },
        }
    }
}
