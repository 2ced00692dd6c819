//! What the kernel knows of a network interface.

use crate::link_header::Mac;
use crate::socket;
use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A network interface of this network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its address.
    pub mac: Mac,
    /// Longest payload of an Ethernet frame, in bytes.
    pub mtu: usize,
    /// Whether it is administratively up. The kernel detects the carrier later.
    pub is_up: bool,
    /// Receive queues.
    pub queues: u32,
}

impl Interface {
    /// The interface called `name`.
    ///
    /// # Errors
    /// What the kernel says: no interface has this name, or it is not an Ethernet interface
    /// (`InvalidInput`).
    pub fn find(name: &str) -> io::Result<Interface> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        let text = CString::new(name).map_err(|_| invalid("a name has no zero byte"))?;
        if text.as_bytes_with_nul().len() > libc::IFNAMSIZ {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        // SAFETY: the name ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let asking = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let ask = |what| request(asking.as_raw_fd(), &text, what);
        // SAFETY: this request fills in the hardware address.
        let hardware = unsafe { ask(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            return Err(invalid("it is not an Ethernet interface"));
        }
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(hardware.sa_data) {
            *to = from as u8;
        }
        // SAFETY: this request fills in the MTU.
        let mtu = unsafe { ask(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu };
        // SAFETY: this request fills in the flags.
        let flags = i32::from(unsafe { ask(libc::SIOCGIFFLAGS)?.ifr_ifru.ifru_flags });
        Ok(Interface {
            name: name.to_owned(),
            index,
            mac: Mac(mac),
            mtu: mtu.max(0) as usize,
            is_up: flags & libc::IFF_UP != 0,
            queues: queues(asking.as_raw_fd(), &text).unwrap_or(1),
        })
    }
}

/// The MTU of the interface with this address, in bytes.
pub(crate) fn mtu_of(ip: IpAddr) -> Option<usize> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call writes a list, which is freed below.
    if unsafe { libc::getifaddrs(&mut list) } < 0 {
        return None;
    }
    let mut found = None;
    let mut next = list;
    while let Some(entry) = NonNull::new(next) {
        // SAFETY: entries of the list are valid until it is freed.
        let entry = unsafe { entry.as_ref() };
        next = entry.ifa_next;
        // SAFETY: an address of the list has the length that its family says.
        let address = unsafe { native_ip(entry.ifa_addr) };
        // Every address of 127.0.0.0/8 belongs to loopback, whose entry names only the first.
        let loopback = ip.is_loopback() && address.is_some_and(|address| address.is_loopback());
        if address == Some(ip) || loopback {
            // SAFETY: a name of the list ends with a zero byte.
            found = Some(unsafe { CStr::from_ptr(entry.ifa_name) }.to_owned());
            break;
        }
    }
    // SAFETY: the list that the call above made; nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    let asking = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    let answer = request(asking.as_raw_fd(), &found?, libc::SIOCGIFMTU).ok()?;
    // SAFETY: this request fills in the MTU.
    usize::try_from(unsafe { answer.ifr_ifru.ifru_mtu }).ok()
}

/// The IP address at `address`, if it is one.
///
/// # Safety
/// `address` is null, or points to an address as long as its family says.
unsafe fn native_ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: as above; the kernel's lists are aligned for every family.
            let native = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(u32::from_be(native.sin_addr.s_addr).into()))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let native = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(native.sin6_addr.s6_addr.into()))
        }
        _ => None,
    }
}

/// Makes one request to the kernel about the interface called `name`.
fn request(asking: i32, name: &CStr, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    // SAFETY: zeros are a valid request.
    let mut answer: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in answer.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the kernel reads and writes one request, which is ours.
    let result = unsafe { libc::ioctl(asking, what, &raw mut answer) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// As `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

const ETHTOOL_GCHANNELS: u32 = 0x3c;
const SIOCETHTOOL: u64 = 0x8946;

/// Number of receive queues, if the driver tells.
fn queues(asking: i32, name: &CString) -> Option<u32> {
    let mut channels = Channels {
        command: ETHTOOL_GCHANNELS,
        most: [0; 4],
        receive: 0,
        transmit: 0,
        other: 0,
        combined: 0,
    };
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: the kernel reads and writes the request and the channels that it points to.
    let result = unsafe { libc::ioctl(asking, SIOCETHTOOL as _, &raw mut request) };
    (result >= 0).then(|| channels.receive + channels.combined).filter(|&queues| queues > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{enter_new_namespace, ip};

    #[test]
    fn what_is_no_ethernet_is_refused_with_a_reason() {
        assert!(Interface::find("lo").unwrap_err().to_string().contains("not an Ethernet"));
        for name in ["", "no-such-one", "a-name-that-is-too-long-for-linux", "a\0b"] {
            Interface::find(name).unwrap_err();
        }
    }

    /// What was set is what is found: also by the longest name, and with several queues.
    #[test]
    fn interfaces_are_found_as_they_are() {
        enter_new_namespace()
            .and_then(|()| {
                ip("link add fifteen-letters address 02:00:00:00:00:07 mtu 1234 numrxqueues 3 \
                    type veth peer name far numrxqueues 1\nlink set far up\n\
                    address add 10.1.0.1/24 dev far\naddress add fd00::5/64 dev far nodad")
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let found = Interface::find("fifteen-letters").expect("it was just made");
        let Interface { name, index, mac, mtu, is_up, queues } = found;
        assert_eq!((&name[..], mac, mtu), ("fifteen-letters", Mac([2, 0, 0, 0, 0, 7]), 1234));
        assert_eq!((is_up, queues), (false, 3));
        let far = Interface::find("far").expect("it was just made");
        assert_eq!((far.is_up, far.queues, far.mtu), (true, 1, 1500));
        assert_ne!(far.index, index);
        ip("link set lo mtu 2000\nlink set far mtu 1400").expect("as small as that");
        for (address, mtu) in [
            ("10.1.0.1", Some(1400)),
            ("fd00::5", Some(1400)),
            ("127.0.0.1", Some(2000)),
            ("127.9.9.9", Some(2000)),
            ("::1", Some(2000)),
            ("10.1.0.2", None),
            ("fd00::6", None),
        ] {
            assert_eq!(mtu_of(address.parse().expect("an address")), mtu, "{address}");
        }
    }
}
