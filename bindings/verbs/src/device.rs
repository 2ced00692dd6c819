//! Devices: one for each address of this host.

use crate::abi;
use bellwire_rdma::HostDevice;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A device. C has the address of `abi`, and keeps it for as long as the program runs.
#[repr(C)]
pub struct DeviceObject {
    pub abi: abi::Device,
    /// Programs that are linked with a card's own library look at a driver's table here.
    driver: [usize; 16],
    pub index: u32,
    pub own: HostDevice,
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
    fn new((index, own): (u32, HostDevice)) -> DeviceObject {
        let name = &own.name;
        let folder = crate::sysfs::folder();
        let abi = abi::Device {
            ops: [0; 2],
            node_type: CHANNEL_ADAPTER,
            transport_type: TRANSPORT_IB,
            name: fill(name),
            dev_name: fill(&format!("uverbs{index}")),
            dev_path: fill(&format!("{folder}/class/infiniband_verbs/uverbs{index}")),
            ibdev_path: fill(&format!("{folder}/class/infiniband/{name}")),
        };
        DeviceObject { abi, driver: [0; 16], index, own }
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
}

/// All devices of this host.
pub fn devices() -> &'static [DeviceObject] {
    static DEVICES: OnceLock<Vec<DeviceObject>> = OnceLock::new();
    DEVICES.get_or_init(|| (0..).zip(HostDevice::all()).map(DeviceObject::new).collect())
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
