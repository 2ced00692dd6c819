//! The Ethernet address of an IP address. The kernel knows its neighbours, and asks for a neighbour
//! when a datagram goes there.

use crate::link_header::Mac;
use crate::lookup::Lookup;
use crate::socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// A datagram to this port only makes the kernel ask: discard (RFC 863).
const DISCARD: u16 = 9;
const PAUSE: Duration = Duration::from_millis(5);

/// The Ethernet address of `ip`, and the index of its interface in `interfaces`. `ip` must be on
/// the same network as one of them.
pub(crate) fn find(interfaces: &[&str], ip: IpAddr, lookup: &mut Lookup) -> Option<(usize, Mac)> {
    let IpAddr::V4(ip) = ip else {
        lookup.note(format!("{ip}: only IPv4 addresses lead to Ethernet addresses"));
        return None;
    };
    let ping = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|ping| ping.send_to(&[], SocketAddr::from((ip, DISCARD))));
    if let Err(error) = ping {
        lookup.note(format!("{ip}: {error}"));
        return None;
    }
    loop {
        let mut why = None;
        for (index, interface) in interfaces.iter().enumerate() {
            match look_up(interface, ip) {
                Ok(mac) => return Some((index, mac)),
                Err(error) => why = Some(error),
            }
        }
        if lookup.left().is_zero() {
            let (all, why) = (interfaces.join(" or "), why.map(|why| format!(" ({why})")));
            lookup.note(format!("{ip}: no neighbour of {all} has it{}", why.unwrap_or_default()));
            return None;
        }
        std::thread::sleep(PAUSE.min(lookup.left()));
    }
}

fn look_up(interface: &str, ip: Ipv4Addr) -> io::Result<Mac> {
    let asking = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: zeros are a valid request.
    let mut request: libc::arpreq = unsafe { std::mem::zeroed() };
    let native = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: both kinds of address have the same size and no padding.
    request.arp_pa = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(native) };
    for (to, from) in request.arp_dev.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads and writes one request, which is ours.
    if unsafe { libc::ioctl(asking.as_raw_fd(), libc::SIOCGARP as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if request.arp_flags & libc::ATF_COM == 0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has not answered"));
    }
    let mut mac = [0; 6];
    for (to, from) in mac.iter_mut().zip(request.arp_ha.sa_data) {
        *to = from as u8;
    }
    Ok(Mac(mac))
}
