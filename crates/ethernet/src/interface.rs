//! What the kernel knows of a network interface.

use crate::link_header::Mac;
use crate::socket;
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;

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
    /// Whether it is switched on and its line is up.
    pub is_up: bool,
    /// Queues that receive.
    pub queues: u32,
}

impl Interface {
    /// The interface called `name`.
    ///
    /// # Errors
    /// What the kernel says: there is none of this name, or it is no Ethernet (`InvalidInput`).
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
        let ask = |request| -> io::Result<libc::ifreq> {
            // SAFETY: zeros are a valid request.
            let mut answer: libc::ifreq = unsafe { std::mem::zeroed() };
            for (to, from) in answer.ifr_name.iter_mut().zip(text.as_bytes()) {
                *to = *from as libc::c_char;
            }
            // SAFETY: the kernel reads and writes one request, which is ours.
            let result = unsafe { libc::ioctl(asking.as_raw_fd(), request, &raw mut answer) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
        };
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
        let up = libc::IFF_UP | libc::IFF_RUNNING;
        Ok(Interface {
            name: name.to_owned(),
            index,
            mac: Mac(mac),
            mtu: mtu.max(0) as usize,
            is_up: flags & up == up,
            queues: queues(asking.as_raw_fd(), &text).unwrap_or(1),
        })
    }
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

/// Receive queues, if the driver tells.
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

    #[test]
    fn what_is_no_ethernet_is_refused_with_a_reason() {
        assert!(Interface::find("lo").unwrap_err().to_string().contains("not an Ethernet"));
        for name in ["", "no-such-one", "a-name-that-is-too-long-for-linux", "a\0b"] {
            Interface::find(name).unwrap_err();
        }
    }
}
