//! A hostile station: it sends any frames from addresses of its own, and reads only what is sent to
//! these.

use crate::network::{WIRE, socket::PacketSocket};
use bellwire_wire::frame::{ETHERTYPE, MAX_FRAME_BYTES};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Made-up addresses below this number keep their sockets, and so hear answers.
pub const HEARD: u32 = 16;
/// Ports of made-up addresses with the same IP.
const PORTS: u32 = 8_192;
/// Its port at its own address. The port of functions stays free for a real one.
const OWN_PORT: u16 = 29_000;
const ETHERNET_BYTES: usize = 14;

/// Where a frame comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum From {
    /// The address of the hostile place.
    Own,
    /// On Ethernet: an address from which the peer's node number follows, too.
    Twin,
    /// One of many made-up addresses.
    MadeUp(u32),
}

/// The station.
pub struct Station {
    wire: Wire,
    frame: Vec<u8>,
}

enum Wire {
    Loopback { own: Ipv4Addr, victim: SocketAddr, sockets: BTreeMap<From, UdpSocket> },
    Ethernet { socket: PacketSocket, own: [u8; 6], victim: [u8; 6], twin: [u8; 6] },
}

impl Station {
    pub(super) fn on_loopback(own: Ipv4Addr, victim: SocketAddr) -> Station {
        let wire = Wire::Loopback { own, victim, sockets: BTreeMap::new() };
        Station { wire, frame: vec![0; MAX_FRAME_BYTES] }
    }

    /// On this thread's host, by its own address, the victim's and the peer's.
    pub(super) fn on_wire([own, victim, mut twin]: [[u8; 6]; 3]) -> Station {
        twin[1] ^= 0xff;
        let wire = Wire::Ethernet { socket: PacketSocket::open(WIRE), own, victim, twin };
        Station { wire, frame: vec![0; MAX_FRAME_BYTES] }
    }

    /// Sends bytes to the victim. The network may lose them.
    pub fn send(&mut self, from: From, bytes: &[u8]) {
        match &mut self.wire {
            Wire::Loopback { own, victim, sockets } => {
                let socket = match sockets.remove(&from) {
                    Some(socket) => Some(socket),
                    None => bind(from, *own),
                };
                let Some(socket) = socket else { return };
                // A refusal of an earlier datagram may be told now.
                let _ = socket.send_to(bytes, *victim);
                if !matches!(from, From::MadeUp(HEARD..)) {
                    sockets.insert(from, socket);
                }
            }
            Wire::Ethernet { victim, .. } => {
                let to = *victim;
                self.emit(to, from, bytes);
            }
        }
    }

    /// Sends bytes to all stations of an Ethernet; to the victim where there is no broadcast.
    pub fn broadcast(&mut self, from: From, bytes: &[u8]) {
        match self.wire {
            Wire::Loopback { .. } => self.send(from, bytes),
            Wire::Ethernet { .. } => self.emit([0xff; 6], from, bytes),
        }
    }

    /// The next frame that the victim has sent to one of the station's addresses, and that address.
    pub fn hear(&mut self) -> Option<(From, Vec<u8>)> {
        let Station { wire, frame } = self;
        match wire {
            Wire::Loopback { victim, sockets, .. } => sockets.iter().find_map(|(at, socket)| {
                let (length, source) = socket.recv_from(frame).ok()?;
                (source == *victim).then(|| (*at, frame[..length].to_vec()))
            }),
            Wire::Ethernet { socket, own, victim, twin } => {
                while let Some(length) = socket.receive(frame) {
                    let Some((head, frame)) = frame[..length].split_at_checked(ETHERNET_BYTES)
                    else {
                        continue;
                    };
                    let is_for_us = head[6..12] == *victim && head[12..] == ETHERTYPE.to_be_bytes();
                    let at = at(&head[..6], own, twin).filter(|_| is_for_us);
                    if let Some(at) = at {
                        return Some((at, frame.to_vec()));
                    }
                }
                None
            }
        }
    }

    fn emit(&mut self, to: [u8; 6], from: From, bytes: &[u8]) {
        let Wire::Ethernet { socket, own, twin, .. } = &self.wire else { return };
        let source = match from {
            From::Own => *own,
            From::Twin => *twin,
            From::MadeUp(number) => made_up(number),
        };
        let mut frame = Vec::with_capacity(ETHERNET_BYTES + bytes.len());
        frame.extend(to);
        frame.extend(source);
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.extend(bytes);
        // A full queue loses it, as a wire may.
        socket.send(&frame);
    }
}

/// A socket at one of the station's addresses on loopback. `None`: somebody else has that port.
fn bind(from: From, own: Ipv4Addr) -> Option<UdpSocket> {
    let [a, b, c, d] = own.octets();
    let address = match from {
        From::Own | From::Twin => (own, OWN_PORT),
        From::MadeUp(number) => {
            let ip = Ipv4Addr::new(a, b, c, d + 10 + (number / PORTS) as u8);
            (ip, 20_000 + (number % PORTS) as u16)
        }
    };
    let socket = UdpSocket::bind(address).ok()?;
    socket.set_nonblocking(true).expect("an option");
    Some(socket)
}

fn made_up(number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [0x02, 0x66, a, b, c, d]
}

/// Which address of the station this is.
fn at(mac: &[u8], own: &[u8; 6], twin: &[u8; 6]) -> Option<From> {
    match *mac {
        _ if mac == own => Some(From::Own),
        _ if mac == twin => Some(From::Twin),
        [0x02, 0x66, a, b, c, d] => Some(From::MadeUp(u32::from_be_bytes([a, b, c, d]))),
        _ => None,
    }
}
