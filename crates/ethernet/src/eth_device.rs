//! The device `eth:INTERFACE`, or `eth:ONE+ANOTHER` for several interfaces that carry the same
//! channels (H-29).

use crate::agent::{self, AgentClient, Trouble};
use crate::choice::{self, Choice, IoKind, Wire};
use crate::eth_io::EthIo;
use crate::interface::Interface;
use crate::keyed_io::KeyedIo;
use crate::link_header::{EVERY_FUNCTION, Mac};
use crate::local::Local;
use crate::lookup::Lookup;
use crate::multi_interface::{INTERFACES, InterfaceIo, MultiInterfaceIo};
use crate::neighbour;
use crate::packet::PacketIo;
use crate::pcapng::{Capture, LinkType};
use crate::route::{HopRoute, MacRoute, SharedNeighbours};
use crate::transport::{EthernetTransport, unavailable};
use crate::udp_device::{describe_key, open_capture, read_key};
use crate::xdp::XdpIo;
use bellwire_device::{Error, FunctionAddress, KeySource, NodeInfo};
use bellwire_keys::KeyFile;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How to open an [`EthDevice`].
#[derive(Clone, Debug, Default)]
pub struct EthOptions {
    /// Our node number; `None`: the last four bytes of the interface's address.
    pub node: Option<u32>,
    /// The only socket family to use; `None`: the best one that is available. One function of an
    /// interface can have AF_XDP; further functions of the same device then use AF_PACKET.
    pub io: Option<IoKind>,
    /// A packet socket that the caller hands over, for one function.
    pub socket: Option<i32>,
    /// Where the agent listens that gives packet sockets; `None`: [`agent::PATH`], and only if this
    /// process may not make any.
    pub agent: Option<PathBuf>,
    /// Capture sent and received frames to this file, before they are sealed.
    pub capture: Option<PathBuf>,
    /// Talk only to peers with this key, or whose keys this file lists, and only sealed.
    pub key: Option<KeySource>,
}

/// One opening of `eth:INTERFACE`.
pub struct EthDevice {
    name: String,
    ports: Vec<Port>,
    node: u32,
    io: Option<IoKind>,
    capture: Option<Arc<Capture>>,
    key: Option<KeyFile>,
    socket: Mutex<Option<OwnedFd>>,
    /// Gives this process its packet sockets.
    agent: Option<AgentClient>,
}

/// One interface of a device.
struct Port {
    interface: Interface,
    known: SharedNeighbours<Mac>,
    /// Lives as long as the function that has AF_XDP.
    hook: Mutex<Weak<()>>,
    /// What was chosen for the function that was opened last, and why.
    choice: Mutex<Option<Choice>>,
}

/// A function of the device, by its frame I/O.
pub enum EthFunction {
    /// By AF_PACKET.
    Packet(Box<EthernetTransport<KeyedIo<EthIo<PacketIo>>, MacRoute>>),
    /// By AF_XDP.
    Xdp(Box<EthernetTransport<KeyedIo<EthIo<XdpIo>>, MacRoute>>),
    /// Over several interfaces.
    MultiInterface(Box<EthernetTransport<KeyedIo<MultiInterfaceIo>, HopRoute>>),
}

impl EthDevice {
    /// Opens the device over the interface with this name, or over several, with `+` between their
    /// names. The first one's address gives the node its number.
    ///
    /// # Errors
    /// [`Error::DeviceUnavailable`], with what to do: there is no such Ethernet interface, it is
    /// down, a privilege is missing, or the capture cannot be written. [`Error::BadDeviceName`] if
    /// one interface is named twice, or there are more than [`INTERFACES`].
    pub fn open(name: &str, options: &EthOptions) -> Result<EthDevice, Error> {
        let device = format!("eth:{name}");
        let bad = |why: String| Error::BadDeviceName { name: device.clone(), why };
        let names: Vec<&str> = name.split('+').collect();
        if names.len() > INTERFACES {
            return Err(bad(format!("{INTERFACES} interfaces at most")));
        }
        if (1..names.len()).any(|number| names[..number].contains(&names[number])) {
            return Err(bad("an interface is named twice".into()));
        }
        if names.len() > 1 && options.socket.is_some() {
            return Err(bad("a socket that is handed in is for one interface".into()));
        }
        let ports = names
            .into_iter()
            .map(|name| Port::find(&device, name))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the program hands this descriptor over. If the number is wrong, the first call on
        // it fails.
        let socket = options.socket.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let agent = if socket.is_some() {
            None
        } else {
            let names = ports.iter().map(|port| &*port.interface.name);
            agent_for(&device, options.agent.as_ref(), names)?
        };
        if agent.is_some() && options.io == Some(IoKind::Xdp) {
            let hint = "io=packet, or the rights for AF_XDP: docs/network.md";
            let error = io::Error::from(io::ErrorKind::Unsupported);
            return Err(unavailable(&device, "the agent gives no AF_XDP", &error, hint));
        }
        let key = read_key(&device, options.key.as_ref())?;
        let capture = open_capture(&device, options.capture.as_ref(), LinkType::Ethernet)?;
        Ok(EthDevice {
            name: device,
            node: options.node.unwrap_or(ports[0].interface.mac.node()),
            ports,
            io: options.io,
            capture,
            key,
            socket: Mutex::new(socket),
            agent,
        })
    }

    /// Returns a test whether a node is known to be at another interface than ours: by
    /// [`EthDevice::lookup`], or because the node said so.
    pub fn elsewhere(&self) -> impl Fn(u32) -> bool + Send + 'static {
        let ports = self.ports.iter().map(|port| (port.known.clone(), port.interface.mac));
        let ports: Vec<_> = ports.collect();
        move |node| {
            let place =
                |(known, own): &(SharedNeighbours<Mac>, Mac)| Some((known.place(node)?, *own));
            ports.iter().filter_map(place).any(|(mac, own)| mac != own)
        }
    }

    /// Opens a function.
    ///
    /// # Errors
    /// [`Error::BadFunction`] if it is open already, here or in another process;
    /// [`Error::DeviceUnavailable`] if the requested socket family is not available.
    pub fn open_function(&self, function: u8) -> Result<EthFunction, Error> {
        if function == EVERY_FUNCTION {
            return Err(Error::BadFunction { function, why: "functions of eth are 0 to 254" });
        }
        let mut opened = self.ports.iter().map(|port| self.open_port(port, function));
        let address = FunctionAddress { node: self.node, function };
        let capture = self.capture.clone();
        if self.ports.len() > 1 {
            let opened = opened.collect::<Result<Vec<_>, _>>()?.into_iter().zip(&self.ports);
            let opened =
                opened.map(|((wire, local), port)| InterfaceIo::new(wire, local, &port.interface));
            let route = HopRoute {
                known: self.ports.iter().map(|port| port.known.clone()).collect(),
                own: (self.node, self.ports.iter().map(|port| port.interface.mac).collect()),
            };
            let io = KeyedIo::new(MultiInterfaceIo::new(opened.collect()), self.key.as_ref());
            let transport = EthernetTransport::new(address, io, route, capture)?;
            return Ok(EthFunction::MultiInterface(Box::new(transport)));
        }
        let (wire, local) = opened.next().expect("a device has an interface")?;
        let Port { interface, known, .. } = &self.ports[0];
        let route = MacRoute { known: known.clone(), own: (self.node, interface.mac) };
        Ok(match wire {
            Wire::Packet(wire) => {
                let io = KeyedIo::new(EthIo::new(*wire, local, interface), self.key.as_ref());
                EthFunction::Packet(Box::new(EthernetTransport::new(address, io, route, capture)?))
            }
            Wire::Xdp(wire) => {
                let io = KeyedIo::new(EthIo::new(*wire, local, interface), self.key.as_ref());
                EthFunction::Xdp(Box::new(EthernetTransport::new(address, io, route, capture)?))
            }
        })
    }

    /// Opens a function of one interface, by the requested socket family or by the best one.
    fn open_port(&self, port: &Port, function: u8) -> Result<(Wire, Local), Error> {
        let interface = &port.interface;
        let local = Local::open(interface.index, function, interface.mtu).map_err(|error| {
            match error.kind() {
                io::ErrorKind::AddrInUse => {
                    Error::BadFunction { function, why: "it is open already, here or elsewhere" }
                }
                _ => Error::System { what: "open a socket for neighbours", cause: error },
            }
        })?;
        let handed_in = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Held until the choice is made, so that two functions cannot both be the first.
        let mut hook = port.hook.lock().unwrap_or_else(PoisonError::into_inner);
        let (wire, choice) = match handed_in {
            Some(socket) => {
                let wire = PacketIo::with_socket(socket, interface, function).map_err(|error| {
                    let hint = "a socket made by socket(AF_PACKET, SOCK_RAW, 0) after fd=";
                    unavailable(&self.name, "the socket that was handed in", &error, hint)
                })?;
                (Wire::Packet(Box::new(wire)), Choice::handed_in())
            }
            None if self.agent.is_some() => {
                let wire = self.packet(interface, function)?;
                (Wire::Packet(Box::new(wire)), Choice::by_agent())
            }
            None if self.io == Some(IoKind::Xdp) && hook.strong_count() > 0 => {
                // This device has the requested AF_XDP already; its other functions use AF_PACKET.
                (Wire::Packet(Box::new(self.packet(interface, function)?)), Choice::beside())
            }
            None => choice::open(interface, function, self.io)
                .map_err(|(what, error)| no_right(&self.name, &what, &error))?,
        };
        if let Wire::Xdp(wire) = &wire {
            *hook = wire.life();
        }
        *port.choice.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
        Ok((wire, local))
    }

    /// AF_PACKET of a function, by our own right or by the agent's.
    fn packet(&self, interface: &Interface, function: u8) -> Result<PacketIo, Error> {
        let refused = |error| no_right(&self.name, "AF_PACKET is not available", &error);
        let Some(agent) = &self.agent else {
            return PacketIo::open(interface, function).map_err(refused);
        };
        let socket = agent
            .packet_socket(interface, function)
            .map_err(|trouble| trouble.into_error(&self.name, function))?;
        PacketIo::over(socket, interface).map_err(refused)
    }
}

/// The agent of a device of these interfaces: the one at `path`, or the usual one if this process
/// may not make packet sockets. `None`: it may.
fn agent_for<'n>(
    device: &str,
    path: Option<&PathBuf>,
    names: impl Iterator<Item = &'n str>,
) -> Result<Option<AgentClient>, Error> {
    let client = |path: PathBuf| {
        let client = AgentClient { path };
        client.serves(names).map(|()| Some(client))
    };
    if let Some(path) = path {
        return client(path.clone()).map_err(|trouble| trouble.into_error(device, 0));
    }
    let Err(error) = crate::socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0) else {
        return Ok(None);
    };
    client(agent::PATH.into()).map_err(|trouble| match trouble {
        Trouble::Missing(_) => no_right(device, "a packet socket cannot be made", &error),
        other => other.into_error(device, 0),
    })
}

impl NodeInfo for EthDevice {
    fn node(&self) -> u32 {
        self.node
    }

    fn describe(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(|port| port.describe(self.io)).collect();
        let agent = self.agent.as_ref();
        let agent =
            agent.map_or(String::new(), |it| format!("; the agent at {}", it.path.display()));
        let key = describe_key(self.key.as_ref());
        format!("Ethernet{key}, node {}: {}{agent}", self.node, ports.join(" + "))
    }

    fn lookup(&self, name: &str, function: u8, patience: Duration) -> Result<u32, Error> {
        let mut lookup = Lookup::new(name, function, patience);
        let names: Vec<&str> = self.ports.iter().map(|port| &*port.interface.name).collect();
        // An Ethernet address does not tell the interface.
        let stations: Vec<(usize, Mac)> = match Mac::parse(name) {
            Some(mac) => (0..self.ports.len()).map(|port| (port, mac)).collect(),
            None => lookup
                .addresses()
                .into_iter()
                .filter_map(|ip| neighbour::find(&names, ip, &mut lookup))
                .collect(),
        };
        for (port, mac) in &stations {
            let Port { interface, known, .. } = &self.ports[*port];
            lookup.guess = mac.node();
            lookup.share(stations.len() as u32);
            let io = KeyedIo::new(self.packet(interface, EVERY_FUNCTION)?, self.key.as_ref());
            if let Some((node, place)) = lookup.ask(io, self.node, EVERY_FUNCTION, *mac) {
                known.lock().found(node, place);
                return Ok(node);
            }
        }
        Err(lookup.failure())
    }
}

impl Port {
    /// The interface with this name.
    fn find(device: &str, name: &str) -> Result<Port, Error> {
        let interface = Interface::find(name).map_err(|error| {
            let what = format!("the interface {name} cannot be used");
            let hint = "one of those that `ip link show` lists as link/ether";
            unavailable(device, &what, &error, hint)
        })?;
        if !interface.is_up {
            return Err(Error::DeviceUnavailable {
                device: device.to_owned(),
                why: format!("the interface {name} is down"),
                hint: format!("ip link set {name} up"),
            });
        }
        Ok(Port {
            interface,
            known: SharedNeighbours::default(),
            hook: Mutex::default(),
            choice: Mutex::new(None),
        })
    }

    fn describe(&self, asked: Option<IoKind>) -> String {
        let Interface { name, mac, mtu, .. } = &self.interface;
        let choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let io = match (&*choice, asked) {
            (Some(choice), _) => choice.to_string(),
            (None, Some(io)) => format!("by {} as was asked for", io.name()),
            (None, None) => "AF_XDP or AF_PACKET is chosen when a function is opened".into(),
        };
        format!("{name} ({mac}), MTU {mtu} bytes, {io}")
    }
}

/// An error whose usual cause is a missing privilege.
pub(crate) fn no_right(device: &str, what: &str, error: &io::Error) -> Error {
    let hint = if error.kind() == io::ErrorKind::PermissionDenied {
        "sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM (cap_net_raw alone is enough for io=packet), or let `bellwire agent` give it sockets (docs/agent.md)"
    } else {
        "without io=, so that the device may choose another"
    };
    unavailable(device, what, error, hint)
}
