//! The devices of this host: one for each of its addresses.

use std::ffi::{CStr, c_int};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::ptr::null_mut;

/// A device, as programs see it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostDevice {
    /// `bellwire0` and so on.
    pub name: String,
    /// The name of the device below.
    pub below: String,
    /// Its address.
    pub host: Ipv4Addr,
    /// The interface that has the address.
    pub interface: Option<Interface>,
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number, from 1.
    pub index: u32,
}

impl HostDevice {
    /// All devices: that of `BELLWIRE_DEVICE` alone if it is set, otherwise one for each IPv4
    /// address, the loopback last.
    pub fn all() -> Vec<HostDevice> {
        match std::env::var("BELLWIRE_DEVICE") {
            Ok(below) if !below.is_empty() => return vec![HostDevice::named(&below)],
            _ => {}
        }
        let device = |(index, (host, interface))| HostDevice {
            name: format!("bellwire{index}"),
            below: format!("auto:udp:{host}"),
            host,
            interface: Some(interface),
        };
        (0u32..).zip(addresses()).map(device).collect()
    }

    /// The only device, which is `below`.
    pub fn named(below: &str) -> HostDevice {
        let addresses = addresses();
        let first = addresses.first().map(|(host, _)| *host);
        let host = address_in(below).or(first).unwrap_or(Ipv4Addr::LOCALHOST);
        let interface = addresses.into_iter().find(|(address, _)| *address == host);
        let interface = interface.map(|(_, interface)| interface);
        HostDevice { name: "bellwire0".to_owned(), below: below.to_owned(), host, interface }
    }

    /// The globally unique number: the address in an EUI-64 of local administration.
    pub fn guid(&self) -> u64 {
        let [a, b, c, d] = self.host.octets();
        u64::from_be_bytes([0x02, b'b', b'w', 0xff, a, b, c, d])
    }

    /// Whether it carries multicast groups.
    pub fn has_multicast(&self) -> bool {
        crate::multicast::is_carrier(&self.below)
    }

    /// The only entry of the table of GIDs of a `udp` device: the address, IPv4-mapped.
    pub fn gid(&self) -> [u8; 16] {
        self.host.to_ipv6_mapped().octets()
    }

    /// What the files below `/sys/class/infiniband/NAME` would say, by their names there.
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let words = |bytes: &[u8]| {
            let words =
                bytes.chunks(2).map(|pair| pair.iter().map(|b| format!("{b:02x}")).collect());
            words.collect::<Vec<String>>().join(":")
        };
        let guid = words(&self.guid().to_be_bytes());
        let net = self.interface.as_ref().map(|interface| interface.name.clone());
        let mut all = vec![
            ("node_type", "1: CA".to_owned()),
            ("node_desc", self.below.clone()),
            ("fw_ver", env!("CARGO_PKG_VERSION").to_owned()),
            ("node_guid", guid.clone()),
            ("sys_image_guid", guid),
            ("ports/1/state", "4: ACTIVE".to_owned()),
            ("ports/1/phys_state", "5: LinkUp".to_owned()),
            ("ports/1/link_layer", "Ethernet".to_owned()),
            ("ports/1/lid", "0x0".to_owned()),
            ("ports/1/gids/0", words(&self.gid())),
            ("ports/1/gid_attrs/types/0", "RoCE v2".to_owned()),
            ("ports/1/pkeys/0", "0xffff".to_owned()),
        ];
        all.extend(net.map(|net| ("ports/1/gid_attrs/ndevs/0", net)));
        all
    }

    /// Writes what stands for `/sys/class/infiniband` into `folder/class`: the files of
    /// [`HostDevice::attributes`], and a folder with the interface. What stands for
    /// `/dev/infiniband` goes into `folder/dev`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let number = self.name.trim_start_matches("bellwire");
        std::fs::create_dir_all(folder.join("dev"))?;
        // Programs look whether it is a device, and leave the rest to the library.
        symlink("/dev/null", folder.join(format!("dev/uverbs{number}")))?;
        let folder = folder.join("class").join(&self.name);
        for (file, text) in self.attributes() {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap_or(&folder))?;
            std::fs::write(file, text + "\n")?;
        }
        match &self.interface {
            Some(interface) => {
                std::fs::create_dir_all(folder.join("device/net").join(&interface.name))
            }
            None => Ok(()),
        }
    }
}

/// The address of the device `name`, if the name says it.
fn address_in(name: &str) -> Option<Ipv4Addr> {
    let bare = name.split('?').next().unwrap_or(name);
    bare.rsplit(':').next()?.parse().ok()
}

/// IPv4 addresses of interfaces that are up; the loopback last.
fn addresses() -> Vec<(Ipv4Addr, Interface)> {
    let mut first = null_mut();
    // SAFETY: getifaddrs(3) writes `first`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return vec![(Ipv4Addr::LOCALHOST, Interface { name: "lo".to_owned(), index: 1 })];
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: the pointers of the list are null or valid until freeifaddrs(3).
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: `ifa_addr` is null, or an address with a family.
        let family = unsafe { entry.ifa_addr.as_ref() }.map(|address| i32::from(address.sa_family));
        let flags = entry.ifa_flags as c_int;
        if family != Some(libc::AF_INET) || flags & libc::IFF_UP == 0 {
            continue;
        }
        // SAFETY: an address of this family is a `sockaddr_in`; `ifa_name` is a string.
        let (address, name, index) = unsafe {
            let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
            let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
            (address, name, libc::if_nametoindex(entry.ifa_name))
        };
        let host = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
        found.push((flags & libc::IFF_LOOPBACK != 0, host, Interface { name, index }));
    }
    // SAFETY: `first` is the list, which is no longer used.
    unsafe { libc::freeifaddrs(first) };
    found.sort_by_key(|(is_loopback, ..)| *is_loopback);
    found.dedup_by_key(|(_, host, _)| *host);
    found.into_iter().map(|(_, host, interface)| (host, interface)).collect()
}
