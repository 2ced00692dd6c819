//! Devices: one for each address of this host.

use crate::abi;
use std::ffi::{CStr, c_char, c_int};
use std::net::Ipv4Addr;
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A device. C has the address of `abi`, and keeps it for as long as the program runs.
#[repr(C)]
pub struct DeviceObject {
    pub abi: abi::Device,
    /// Programs that are linked with a card's own library look at a driver's table here.
    driver: [usize; 16],
    /// The name of the device below.
    pub bellwire: String,
    pub host: Ipv4Addr,
    pub index: u32,
    /// The interface with that address, or 0.
    pub interface: u32,
}

/// `IBV_NODE_CA`
const CHANNEL_ADAPTER: u32 = 1;
/// `IBV_TRANSPORT_IB`
const TRANSPORT_IB: u32 = 0;

fn fill<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0; N];
    for (place, byte) in bytes[..N - 1].iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    bytes
}

impl DeviceObject {
    fn new(index: u32, bellwire: String, host: Ipv4Addr, interface: u32) -> DeviceObject {
        let name = format!("bellwire{index}");
        let folder = crate::sysfs::folder();
        let abi = abi::Device {
            ops: [0; 2],
            node_type: CHANNEL_ADAPTER,
            transport_type: TRANSPORT_IB,
            name: fill(&name),
            dev_name: fill(&format!("uverbs{index}")),
            dev_path: fill(&format!("{folder}/class/infiniband_verbs/uverbs{index}")),
            ibdev_path: fill(&format!("{folder}/class/infiniband/{name}")),
        };
        DeviceObject { abi, driver: [0; 16], bellwire, host, index, interface }
    }

    /// The object that C calls `device`.
    pub fn of(device: &'static abi::Device) -> &'static DeviceObject {
        // SAFETY: all devices are made by `devices`, inside of their objects, which live for ever.
        unsafe { &*std::ptr::from_ref(device).cast() }
    }

    /// The name.
    pub fn name(&self) -> &CStr {
        debug_assert_eq!(self.driver, [0; 16]);
        // SAFETY: `fill` ends the text with a zero.
        unsafe { CStr::from_ptr(self.abi.name.as_ptr()) }
    }

    /// The globally unique number: the address in an EUI-64 of local administration.
    pub fn guid(&self) -> u64 {
        let [a, b, c, d] = self.host.octets();
        u64::from_be_bytes([0x02, b'b', b'w', 0xff, a, b, c, d])
    }

    /// The only entry of the table of GIDs: the address, IPv4-mapped.
    pub fn gid(&self) -> [u8; 16] {
        self.host.to_ipv6_mapped().octets()
    }
}

/// The address of the device `name`, if the name says it.
fn address_in(name: &str) -> Option<Ipv4Addr> {
    let bare = name.split('?').next().unwrap_or(name);
    bare.rsplit(':').next()?.parse().ok()
}

/// All devices: that of `BELLWIRE_DEVICE` alone if it is set, otherwise one for each address, the
/// loopback last.
pub fn devices() -> &'static [DeviceObject] {
    static DEVICES: OnceLock<Vec<DeviceObject>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let addresses = addresses();
        if let Ok(name) = std::env::var("BELLWIRE_DEVICE")
            && !name.is_empty()
        {
            let first = addresses.first().copied();
            let host = address_in(&name).or(first.map(|(host, _)| host));
            let host = host.unwrap_or(Ipv4Addr::LOCALHOST);
            let interface = addresses.iter().find(|(address, _)| *address == host);
            let interface = interface.map_or(0, |(_, interface)| *interface);
            return vec![DeviceObject::new(0, name, host, interface)];
        }
        let make = |(index, (host, interface)): (u32, (Ipv4Addr, u32))| {
            DeviceObject::new(index, format!("auto:udp:{host}"), host, interface)
        };
        (0..).zip(addresses).map(make).collect()
    })
}

/// IPv4 addresses of interfaces that are up, with the interface's index; the loopback last.
fn addresses() -> Vec<(Ipv4Addr, u32)> {
    let mut first = null_mut();
    // SAFETY: getifaddrs(3) writes `first`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return vec![(Ipv4Addr::LOCALHOST, 1)];
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
        let (address, interface) = unsafe {
            let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
            (address, libc::if_nametoindex(entry.ifa_name))
        };
        let host = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
        found.push((flags & libc::IFF_LOOPBACK != 0, host, interface));
    }
    // SAFETY: `first` is the list, which is no longer used.
    unsafe { libc::freeifaddrs(first) };
    found.sort_by_key(|(is_loopback, ..)| *is_loopback);
    found.dedup_by_key(|(_, host, _)| *host);
    found.into_iter().map(|(_, host, interface)| (host, interface)).collect()
}

/// A list of all devices that ends with null, for C to free by [`free_list`].
pub fn list(count: Option<&mut c_int>) -> *mut *const abi::Device {
    let devices = devices();
    // SAFETY: malloc(3) takes any size.
    let list: *mut *const abi::Device =
        unsafe { libc::malloc((devices.len() + 1) * size_of::<usize>()) }.cast();
    if list.is_null() {
        crate::errno::set(libc::ENOMEM);
        return list;
    }
    let entries = devices.iter().map(|device| &raw const device.abi);
    for (index, entry) in entries.chain([std::ptr::null()]).enumerate() {
        // SAFETY: the list has a place for each device and one more.
        unsafe { list.add(index).write(entry) };
    }
    if let Some(count) = count {
        *count = devices.len() as c_int;
    }
    list
}

/// Frees a list of [`list`].
pub fn free_list(list: *mut *const abi::Device) {
    // SAFETY: C gives back what malloc(3) made.
    unsafe { libc::free(list.cast()) };
}

/// Contexts that are open, so that a device is not opened twice at the same time by two threads.
pub fn open_one_at_a_time<R>(open: impl FnOnce() -> R) -> R {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    open()
}
