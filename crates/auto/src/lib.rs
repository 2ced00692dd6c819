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
#![forbid(unsafe_code)]

mod links;
mod transport;

use bellwire_device::{
    AccessMode, DEFAULT_WEIGHT, DeviceKind, Error, NodeInfo, Result, Settings, Transport,
    TransportVisitor,
};
use bellwire_ethernet::{EthDevice, EthOptions, PORT, UdpDevice, UdpOptions};
use bellwire_shm::{ShmDevice, ShmTransport};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transport::{AutoTransport, Elsewhere};

/// Link counts of all functions of one opening.
#[derive(Default)]
struct Tally {
    near: AtomicUsize,
    far: AtomicUsize,
}

/// One opening of `auto:udp:ADDRESS` or `auto:eth:INTERFACE`.
pub struct AutoDevice {
    network: Network,
    host: ShmDevice,
    job: String,
    tally: Arc<Tally>,
}

enum Network {
    Udp(UdpDevice),
    Eth(EthDevice),
}

/// How to open an [`AutoDevice`].
pub struct AutoOptions {
    network: NetworkOptions,
    /// Who may connect in memory.
    access: AccessMode,
}

enum NetworkOptions {
    Udp(String, UdpOptions),
    Eth(String, EthOptions),
}

impl Network {
    fn info(&self) -> &dyn NodeInfo {
        match self {
            Network::Udp(udp) => udp,
            Network::Eth(eth) => eth,
        }
    }
}

impl DeviceKind for AutoDevice {
    const NAME: &'static str = "auto";
    const FORMS: &'static [&'static str] = &["auto:eth:INTERFACE", "auto:udp:ADDRESS"];
    type Options = AutoOptions;

    fn options(place: &str, settings: &mut Settings) -> Result<AutoOptions> {
        let network = match place.split_once(':') {
            Some(("udp", address)) if !address.is_empty() => {
                NetworkOptions::Udp(address.to_owned(), UdpDevice::options(address, settings)?)
            }
            Some(("eth", interface)) if !interface.is_empty() => {
                NetworkOptions::Eth(interface.to_owned(), EthDevice::options(interface, settings)?)
            }
            _ => {
                let why = "after auto: comes the network, udp:ADDRESS or eth:INTERFACE";
                let name = format!("auto:{place}");
                return Err(Error::BadDeviceName { name, why: why.to_owned() });
            }
        };
        Ok(AutoOptions { network, access: settings.access_mode()? })
    }

    fn open(_: &str, AutoOptions { network, access }: AutoOptions) -> Result<AutoDevice> {
        let (network, job) = match network {
            NetworkOptions::Udp(address, options) => {
                let job = match options.port.filter(|&port| port != PORT) {
                    Some(port) => format!("auto.udp.{port}"),
                    None => "auto.udp".to_owned(),
                };
                (Network::Udp(UdpDevice::open(&address, &options)?), job)
            }
            NetworkOptions::Eth(interface, options) => {
                let network = Network::Eth(EthDevice::open(&interface, &options)?);
                (network, format!("auto.eth.{interface}"))
            }
        };
        let host = ShmDevice::share(&job, access, network.info().node())?;
        Ok(AutoDevice { network, host, job, tally: Arc::default() })
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output> {
        // Opened before the network's function: no peer finds it in the network but not in memory.
        let near = self.host.open_function(function, weight)?;
        let tally = self.tally.clone();
        match &self.network {
            Network::Udp(udp) => {
                let join = Join { near, elsewhere: Box::new(udp.elsewhere()), tally, visitor };
                DeviceKind::open_function(udp, function, DEFAULT_WEIGHT, join)?
            }
            Network::Eth(eth) => {
                let join = Join { near, elsewhere: Box::new(eth.elsewhere()), tally, visitor };
                DeviceKind::open_function(eth, function, DEFAULT_WEIGHT, join)?
            }
        }
    }
}

/// Joins a function in memory and the network's function.
struct Join<V> {
    near: ShmTransport,
    elsewhere: Elsewhere,
    tally: Arc<Tally>,
    visitor: V,
}

impl<V: TransportVisitor> TransportVisitor for Join<V> {
    type Output = Result<V::Output>;

    fn visit<T: Transport + 'static>(self, far: T) -> Result<V::Output> {
        let Join { near, elsewhere, tally, visitor } = self;
        Ok(visitor.visit(AutoTransport::new(near, far, elsewhere, tally)?))
    }
}

impl NodeInfo for AutoDevice {
    fn node(&self) -> u32 {
        self.network.info().node()
    }

    fn describe(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        format!(
            "peers of this host by shared memory (job {}, {} now), others by {} ({} now)",
            self.job,
            count(&self.tally.near),
            self.network.info().describe(),
            count(&self.tally.far)
        )
    }

    fn lookup(&self, host: &str, function: u8, patience: Duration) -> Result<u32> {
        self.network.info().lookup(host, function, patience)
    }
}
