//! The device of an address, which all identifiers of a process share.

use super::Errno;
use crate::abi::Context;
use crate::calls;
use crate::device::{DeviceObject, devices};
use crate::pd::Pd;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open device and its domain, by their addresses. They stay until the program ends, as
/// rdma_get_devices(3) promises.
struct Open {
    device: usize,
    context: usize,
    /// 0: not yet.
    domain: usize,
}

static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of an address of this host. The loopback is on the first one, as the kernel has it:
/// programs expect a device of an interface there. A device that the user has named is for all
/// addresses.
fn of(host: Ipv4Addr) -> Option<&'static DeviceObject> {
    let all = devices();
    let is_named = std::env::var_os("BELLWIRE_DEVICE").is_some_and(|name| !name.is_empty());
    if is_named || host.is_loopback() {
        return all.first();
    }
    all.iter().find(|device| device.own.host == host)
}

/// The context of a device, opened at first use.
fn context_of(device: &'static DeviceObject) -> Result<&'static Context, Errno> {
    let address = std::ptr::from_ref(device) as usize;
    let mut open = open();
    let known = open.iter().find(|it| it.device == address).map(|it| it.context);
    let context = match known {
        Some(context) => context,
        None => {
            let context = calls::ibv_open_device(&device.abi) as usize;
            if context == 0 {
                return Err(libc::ENODEV);
            }
            open.push(Open { device: address, context, domain: 0 });
            context
        }
    };
    // SAFETY: it is never closed.
    Ok(unsafe { &*(context as *const Context) })
}

/// The context of the device of an address.
pub fn context(host: Ipv4Addr) -> Result<&'static Context, Errno> {
    context_of(of(host).ok_or(libc::ENODEV)?)
}

/// The contexts of all devices that can be opened.
pub fn contexts() -> Vec<&'static Context> {
    devices().iter().filter_map(|device| context_of(device).ok()).collect()
}

/// The domain of a context for programs that bring none.
pub fn domain(context: &Context) -> Result<*const Pd, Errno> {
    let address = std::ptr::from_ref(context) as usize;
    let mut open = open();
    let known = open.iter_mut().find(|it| it.context == address).ok_or(libc::EINVAL)?;
    if known.domain == 0 {
        known.domain = calls::ibv_alloc_pd(context) as usize;
    }
    if known.domain == 0 { Err(libc::ENOMEM) } else { Ok(known.domain as *const Pd) }
}
