//! The device `eth:INTERFACE`.

use crate::choice::{self, Choice, Way, Wire};
use crate::eth_io::EthIo;
use crate::interface::Interface;
use crate::link_header::{EVERY_FUNCTION, Mac};
use crate::local::Local;
use crate::lookup::{self, Asked};
use crate::neighbour;
use crate::packet::PacketIo;
use crate::pcapng::{Capture, LinkType};
use crate::route::{Known, MacRoute};
use crate::transport::{EthernetTransport, unavailable};
use crate::udp_device::open_capture;
use crate::xdp::XdpIo;
use bellwire_device::{Error, FunctionAddress};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How to open an [`EthDevice`].
#[derive(Clone, Debug, Default)]
pub struct EthOptions {
    /// The node number to have; `None`: the last four bytes of the interface's address.
    pub node: Option<u32>,
    /// Get frames in and out in this way or not at all; `None`: in the best way that is to be had. AF_XDP has place for one
    /// function of an interface; with it, further functions of the same device go by AF_PACKET.
    pub way: Option<Way>,
    /// A packet socket that was handed in, for one function.
    pub socket: Option<i32>,
    /// Write what is sent and received to this file.
    pub capture: Option<PathBuf>,
}

/// One opening of `eth:INTERFACE`.
pub struct EthDevice {
    name: String,
    interface: Interface,
    node: u32,
    way: Option<Way>,
    known: Known<Mac>,
    capture: Option<Arc<Capture>>,
    socket: Mutex<Option<OwnedFd>>,
    /// Lives as long as the function that has AF_XDP.
    hook: Mutex<Weak<()>>,
    /// What was chosen for the function that was opened last, and why.
    choice: Mutex<Option<Choice>>,
}

/// A function of it, with either way of frames.
pub enum EthFunction {
    /// By AF_PACKET.
    Packet(Box<EthernetTransport<EthIo<PacketIo>, MacRoute>>),
    /// By AF_XDP.
    Xdp(Box<EthernetTransport<EthIo<XdpIo>, MacRoute>>),
}

impl EthDevice {
    /// Opens the device over the interface with this name.
    ///
    /// # Errors
    /// [`Error::DeviceUnavailable`] if there is no such Ethernet interface, it is down, the right to use it is missing, or the
    /// capture cannot be written; with what to do.
    pub fn open(name: &str, options: &EthOptions) -> Result<EthDevice, Error> {
        let device = format!("eth:{name}");
        let interface = Interface::find(name).map_err(|error| {
            let hint = "one of those that `ip link show` lists as link/ether";
            unavailable(&device, "the interface cannot be used", &error, hint)
        })?;
        if !interface.is_up {
            return Err(Error::DeviceUnavailable {
                device,
                why: "the interface is down".into(),
                hint: format!("ip link set {name} up"),
            });
        }
        // SAFETY: the program says that this descriptor is handed over; a wrong number is found out by the first call on it.
        let socket = options.socket.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        if socket.is_none() {
            crate::socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
                .map_err(|error| no_right(&device, "a packet socket cannot be made", &error))?;
        }
        let capture = open_capture(&device, options.capture.as_ref(), LinkType::Ethernet)?;
        Ok(EthDevice {
            name: device,
            node: options.node.unwrap_or(interface.mac.node()),
            interface,
            way: options.way,
            known: Known::new(),
            capture,
            socket: Mutex::new(socket),
            hook: Mutex::default(),
            choice: Mutex::new(None),
        })
    }

    /// Our node number.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// One line: how messages travel here, and since a function was opened, by which way and why.
    pub fn describe(&self) -> String {
        let Interface { name, mac, mtu, .. } = &self.interface;
        let choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let way = match (&*choice, self.way) {
            (Some(choice), _) => choice.to_string(),
            (None, Some(way)) => format!("by {} as was asked for", way.name()),
            (None, None) => "the way of frames is chosen when a function is opened".into(),
        };
        format!("Ethernet at {name} ({mac}), node {}, MTU {mtu} bytes; {way}", self.node)
    }

    /// Tells of a node whether [`EthDevice::lookup`] or the node itself has told that it is at another interface than ours.
    pub fn elsewhere(&self) -> impl Fn(u32) -> bool + Send + 'static {
        let (known, own) = (self.known.clone(), self.interface.mac);
        move |node| known.place(node).is_some_and(|mac| mac != own)
    }

    /// Opens a function.
    ///
    /// # Errors
    /// [`Error::BadFunction`] if it is open already, here or in another process; [`Error::DeviceUnavailable`] if the way that was
    /// asked for is not to be had.
    pub fn open_function(&self, function: u8) -> Result<EthFunction, Error> {
        if function == EVERY_FUNCTION {
            return Err(Error::BadFunction { function, why: "functions of eth are 0 to 254" });
        }
        let interface = &self.interface;
        let local = Local::open(interface.index, function, interface.mtu).map_err(|error| {
            match error.kind() {
                io::ErrorKind::AddrInUse => {
                    Error::BadFunction { function, why: "it is open already, here or elsewhere" }
                }
                _ => Error::System { what: "open a socket for neighbours", source: error },
            }
        })?;
        let handed_in = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Held until the choice is made: two functions cannot both be the first.
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        let (wire, choice) = match handed_in {
            Some(socket) => {
                let wire = PacketIo::with_socket(socket, interface, function).map_err(|error| {
                    let hint = "a socket made by socket(AF_PACKET, SOCK_RAW, 0) after fd=";
                    unavailable(&self.name, "the socket that was handed in", &error, hint)
                })?;
                (Wire::Packet(Box::new(wire)), Choice::handed_in())
            }
            None if self.way == Some(Way::Xdp) && hook.strong_count() > 0 => {
                // What was asked for is this device's already; its other functions take the way that is left.
                let wire = PacketIo::open(interface, function)
                    .map_err(|error| no_right(&self.name, "AF_PACKET is not to be had", &error))?;
                (Wire::Packet(Box::new(wire)), Choice::beside())
            }
            None => choice::open(interface, function, self.way)
                .map_err(|(what, error)| no_right(&self.name, &what, &error))?,
        };
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
        let address = FunctionAddress { node: self.node, function };
        let route = MacRoute { known: self.known.clone(), own: (self.node, interface.mac) };
        let capture = self.capture.clone();
        Ok(match wire {
            Wire::Packet(wire) => {
                let io = EthIo::new(*wire, local, interface);
                EthFunction::Packet(Box::new(EthernetTransport::new(address, io, route, capture)?))
            }
            Wire::Xdp(wire) => {
                *hook = wire.life();
                let io = EthIo::new(*wire, local, interface);
                EthFunction::Xdp(Box::new(EthernetTransport::new(address, io, route, capture)?))
            }
        })
    }

    /// The node number of the station with this Ethernet address, or IP address, or host name, whose `function` answers within
    /// `patience`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with all that was tried.
    pub fn lookup(&self, name: &str, function: u8, patience: Duration) -> Result<u32, Error> {
        let mut asked = Asked::new(name, function, patience);
        let macs = match Mac::parse(name) {
            Some(mac) => vec![mac],
            None => lookup::addresses(name, &mut asked)
                .into_iter()
                .filter_map(|ip| neighbour::find(&self.interface.name, ip, &mut asked))
                .collect(),
        };
        for mac in macs {
            asked.guess = mac.node();
            let io = PacketIo::open(&self.interface, EVERY_FUNCTION)
                .map_err(|error| no_right(&self.name, "a packet socket cannot be made", &error))?;
            if let Some((node, place)) =
                lookup::ask(io, self.node, EVERY_FUNCTION, function, mac, &mut asked)
            {
                self.known.insert(node, place);
                return Ok(node);
            }
        }
        Err(asked.failure())
    }
}

/// An error that mostly means that a right is missing.
fn no_right(device: &str, what: &str, error: &io::Error) -> Error {
    let hint = if error.kind() == io::ErrorKind::PermissionDenied {
        "sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM (cap_net_raw alone is enough for io=packet), or hand in a packet socket with fd=N"
    } else {
        "without io=, so that the device may choose another way"
    };
    unavailable(device, what, error, hint)
}
