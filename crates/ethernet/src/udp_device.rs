//! The device `udp:ADDRESS`.

use crate::interface;
use crate::keyed_io::KeyedIo;
use crate::lookup::Lookup;
use crate::pcapng::{Capture, LinkType};
use crate::route::{IpRoute, PORT, SharedNeighbours, is_host};
use crate::transport::{EthernetTransport, unavailable};
use crate::udp::UdpIo;
use bellwire_device::{Error, FunctionAddress, KeySource, NodeInfo};
use bellwire_keys::KeyFile;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How to open a [`UdpDevice`].
#[derive(Clone, Debug, Default)]
pub struct UdpOptions {
    /// Our node number; `None`: the IPv4 address as a number, or the last four bytes of the IPv6
    /// address.
    pub node: Option<u32>,
    /// The port of function 0, with the other functions on the ports after it; `None`: [`PORT`].
    /// All nodes must agree.
    pub port: Option<u16>,
    /// Capture sent and received frames to this file, before they are sealed.
    pub capture: Option<PathBuf>,
    /// Talk only to peers with this key, or whose keys this file lists, and only sealed.
    pub key: Option<KeySource>,
}

/// One opening of `udp:ADDRESS`.
pub struct UdpDevice {
    ip: IpAddr,
    node: u32,
    port: u16,
    mtu: usize,
    known: SharedNeighbours<SocketAddr>,
    capture: Option<Arc<Capture>>,
    key: Option<KeyFile>,
}

/// A function of it.
pub type UdpFunction = EthernetTransport<KeyedIo<UdpIo>, IpRoute>;

impl UdpDevice {
    /// Opens the device at `address`: an IP address of this host, or a name of one.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] if there is no such address, [`Error::DeviceUnavailable`] if it is
    /// not one of this host or the capture cannot be written.
    pub fn open(address: &str, options: &UdpOptions) -> Result<UdpDevice, Error> {
        let name = format!("udp:{address}");
        let ip = own_address(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable => unavailable(
                &name,
                "it is not an address of this host",
                &error,
                "one of those that `ip address show` lists",
            ),
            _ => Error::BadDeviceName { name: name.clone(), why: error.to_string() },
        })?;
        let key = read_key(&name, options.key.as_ref())?;
        let capture = open_capture(&name, options.capture.as_ref(), LinkType::Ip)?;
        let own = match ip {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => u128::from(ip) as u32,
        };
        let node = options.node.unwrap_or(own);
        if ip.is_ipv4() && node != own && is_host(node) {
            let why = format!(
                "node {node} is the number of {}, and peers take it from there only; choose one below 2^24",
                Ipv4Addr::from(node)
            );
            return Err(Error::BadDeviceName { name, why });
        }
        let port = options.port.unwrap_or(PORT);
        let mtu = interface::mtu_of(ip).unwrap_or(1500);
        Ok(UdpDevice { ip, node, port, mtu, known: SharedNeighbours::default(), capture, key })
    }

    /// Returns a test whether a node is known to be on another host: by [`UdpDevice::lookup`], or
    /// because the node said so.
    pub fn elsewhere(&self) -> impl Fn(u32) -> bool + Send + 'static {
        let known = self.known.clone();
        move |node| known.place(node).is_some_and(|place| !is_own(place.ip()))
    }

    /// Opens a function.
    ///
    /// # Errors
    /// [`Error::BadFunction`] if it is open already, here or in another process, or if there is no
    /// port for it.
    pub fn open_function(&self, function: u8) -> Result<UdpFunction, Error> {
        let port = self
            .port
            .checked_add(function.into())
            .ok_or(Error::BadFunction { function, why: "its port would be above 65535" })?;
        let io =
            UdpIo::open(SocketAddr::new(self.ip, port), self.mtu).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::AddrInUse => Error::BadFunction {
                        function,
                        why: "it is open already, or its port is taken",
                    },
                    _ => Error::System { what: "open a UDP socket", cause: error },
                }
            })?;
        let io = KeyedIo::new(io, self.key.as_ref());
        let address = FunctionAddress { node: self.node, function };
        let own = (self.node, self.ip);
        let route = IpRoute { known: self.known.clone(), port: self.port, own };
        EthernetTransport::new(address, io, route, self.capture.clone())
    }
}

impl NodeInfo for UdpDevice {
    fn node(&self) -> u32 {
        self.node
    }

    fn describe(&self) -> String {
        format!(
            "UDP at {}, node {}: ports {}.., MTU {} bytes, sendmmsg and recvmmsg with segmentation by the kernel where it has it{}",
            self.ip,
            self.node,
            self.port,
            self.mtu,
            describe_key(self.key.as_ref())
        )
    }

    fn lookup(&self, name: &str, function: u8, patience: Duration) -> Result<u32, Error> {
        let mut lookup = Lookup::new(name, function, patience);
        let port = self.port.saturating_add(function.into());
        for ip in lookup.addresses() {
            if ip.is_ipv4() != self.ip.is_ipv4() {
                lookup.note(format!("{ip}: not of the same kind as {}", self.ip));
                continue;
            }
            let to = SocketAddr::new(ip, port);
            let io = UdpIo::open(SocketAddr::new(self.ip, 0), 1500)
                .map_err(|cause| Error::System { what: "open a UDP socket", cause })?;
            let io = KeyedIo::new(io, self.key.as_ref());
            if let Some((node, _)) = lookup.ask(io, self.node, 0, to) {
                self.known.lock().found(node, to);
                return Ok(node);
            }
        }
        Err(lookup.failure())
    }
}

/// Whether the address is one of this host.
fn is_own(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok()
}

/// The first address of `text` that is one of ours.
fn own_address(text: &str) -> io::Result<IpAddr> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it means no address");
    for address in (text.trim_matches(['[', ']']), 0).to_socket_addrs()? {
        match std::net::UdpSocket::bind(SocketAddr::new(address.ip(), 0)) {
            Ok(_) if !address.ip().is_unspecified() => return Ok(address.ip()),
            Ok(_) => {
                let why = "peers need one certain address of this host";
                last = io::Error::new(io::ErrorKind::InvalidInput, why);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Opens the requested capture.
pub(crate) fn open_capture(
    device: &str,
    path: Option<&PathBuf>,
    link: LinkType,
) -> Result<Option<Arc<Capture>>, Error> {
    let Some(path) = path else { return Ok(None) };
    match Capture::create(path, link, device) {
        Ok(capture) => Ok(Some(Arc::new(capture))),
        Err(error) => Err(unavailable(
            device,
            &format!("the capture {} cannot be written", path.display()),
            &error,
            "another file after pcap=",
        )),
    }
}

/// Reads the requested key.
pub(crate) fn read_key(device: &str, source: Option<&KeySource>) -> Result<Option<KeyFile>, Error> {
    let read = |source: &KeySource| match source {
        KeySource::File(path) => KeyFile::read(path).map_err(|error| error.to_string()),
        KeySource::Callback(ask) => {
            let text = ask().map_err(|error| format!("the program gives no key: {error}"))?;
            let parsed = KeyFile::parse(&text);
            parsed.map_err(|error| format!("what the program gives is no key: {error}"))
        }
    };
    source.map(read).transpose().map_err(|why| Error::DeviceUnavailable {
        device: device.to_owned(),
        why,
        hint: "a file that `bellwire key new` has made after key= (or in BELLWIRE_KEY)".into(),
    })
}

/// What a device with a key says of itself.
pub(crate) fn describe_key(key: Option<&KeyFile>) -> String {
    match key {
        None => String::new(),
        Some(KeyFile::Shared(_)) => ", sealed under a shared key".into(),
        Some(KeyFile::Private { peers, .. }) => {
            format!(", sealed, for {} listed keys", peers.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str, options: &UdpOptions) -> Error {
        UdpDevice::open(address, options).err().expect("it is refused")
    }

    /// A key that cannot be read refuses the device, and a device tells what kind it has.
    #[test]
    fn keys_are_read_and_told() {
        let missing = KeySource::File("/no/such/key".into());
        for source in [missing, KeySource::text("nonsense")] {
            let refused = read_key("udp:near", Some(&source)).err().expect("it is refused");
            assert!(refused.to_string().contains("key"), "{refused}");
        }
        assert!(read_key("udp:near", None).expect("none is asked for").is_none());
        assert_eq!(describe_key(None), "");
        assert!(describe_key(Some(&KeyFile::Shared([7; 32]))).contains("a shared key"));
    }

    /// A device has one certain address of this host, and the number that belongs to it.
    #[test]
    fn addresses_are_checked() {
        crate::testing::enter_new_namespace()
            .expect("NOT RUN: a network namespace needs root, and ip of iproute2");
        let plain = UdpOptions::default();
        let foreign = refused("203.0.113.9", &plain);
        assert!(matches!(foreign, Error::DeviceUnavailable { .. }), "{foreign}");
        assert!(foreign.to_string().contains("not an address of this host"), "{foreign}");
        for (address, part) in [("0.0.0.0", "one certain address"), ("::", "one certain address")] {
            let said = refused(address, &plain);
            assert!(matches!(said, Error::BadDeviceName { .. }), "{said}");
            assert!(said.to_string().contains(part), "{said}");
        }
        let node = UdpOptions { node: Some(0x0a00_0001), ..UdpOptions::default() };
        assert!(refused("127.0.0.1", &node).to_string().contains("10.0.0.1"));
        let sixth = UdpDevice::open("::1", &node).expect("IPv6 has other numbers");
        assert_eq!(
            (sixth.node, UdpDevice::open("[::1]", &plain).expect("it").node),
            (0x0a00_0001, 1)
        );
        let capture =
            UdpOptions { capture: Some("/no/such/folder/frames".into()), ..plain.clone() };
        assert!(refused("127.0.0.1", &capture).to_string().contains("cannot be written"));

        let device = UdpDevice::open("127.0.0.1", &plain).expect("loopback");
        assert_eq!((device.node, device.port), (0x7f00_0001, PORT));
        let _function = device.open_function(1).expect("it is free");
        let again = device.open_function(1).err();
        assert!(matches!(again, Some(Error::BadFunction { function: 1, .. })), "{again:?}");
        let high = UdpOptions { port: Some(65_530), ..UdpOptions::default() };
        let high = UdpDevice::open("127.0.0.1", &high).expect("loopback");
        assert!(high.open_function(5).is_ok() && high.open_function(6).is_err());
        let elsewhere = device.elsewhere();
        for (node, ip, is_elsewhere) in [(7, [203, 0, 113, 9], true), (8, [127, 0, 0, 5], false)] {
            assert!(!elsewhere(node), "it is not known");
            device.known.lock().found(node, SocketAddr::from((ip, 1)));
            assert_eq!(elsewhere(node), is_elsewhere);
        }
    }
}
