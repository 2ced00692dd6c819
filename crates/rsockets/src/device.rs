//! Open devices, which the sockets of a process share.

use bellwire_rdma::{Access, Context, Domain, HostDevice, Refusal};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// An open device.
pub struct Device {
    pub own: HostDevice,
    pub context: Context,
    pub domain: Domain,
}

/// The devices of this host.
pub struct Devices {
    all: Vec<HostDevice>,
    /// The user has named one, which is for all addresses.
    is_named: bool,
    open: Mutex<Vec<Arc<Device>>>,
}

impl Devices {
    pub fn new() -> Devices {
        let is_named = std::env::var_os("BELLWIRE_DEVICE").is_some_and(|name| !name.is_empty());
        Devices { all: HostDevice::all(), is_named, open: Mutex::default() }
    }

    /// The device of an address of this host, opened at first use. The loopback is on the first
    /// one, as in librdmacm.
    ///
    /// # Errors
    /// `ENODEV`: no device has the address, or it cannot be opened.
    pub fn of(&self, host: Ipv4Addr) -> io::Result<Arc<Device>> {
        let first = self.is_named || host.is_loopback();
        let found = self.all.iter().find(|device| first || device.host == host);
        let own = found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.iter().find(|device| device.own.name == own.name) {
            return Ok(known.clone());
        }
        let context = Context::open(&own.below).map_err(|refusal| {
            crate::log::say(format_args!("{}: {refusal}", own.below));
            io::Error::from_raw_os_error(libc::ENODEV)
        })?;
        let domain = context.lock().create_domain().map_err(as_error)?;
        let device = Arc::new(Device { own: own.clone(), context, domain });
        open.push(device.clone());
        Ok(device)
    }

    /// Lets peers have what was sent, at the end of the program.
    pub fn leave(&self) {
        for device in self.open.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            device.context.leave();
        }
    }
}

impl Device {
    /// Registers memory. Returns its key.
    ///
    /// # Safety
    /// The bytes stay mapped until [`Device::deregister`] has returned `true`.
    pub unsafe fn register(
        &self,
        start: *mut u8,
        length: usize,
        access: Access,
    ) -> io::Result<u32> {
        let mut adapter = self.context.lock();
        // SAFETY: the caller's promise.
        let key = unsafe { adapter.register(self.domain, start, length, start as u64, access) };
        key.map_err(as_error)
    }

    /// Ends a registration. `false`: the device still uses the memory.
    pub fn deregister(&self, key: u32) -> bool {
        /// Turns of progress in which a device lets go of what it copies.
        const TURNS: usize = 1000;
        for _ in 0..TURNS {
            let mut adapter = self.context.lock();
            match adapter.deregister(key) {
                Err(Refusal::UnderWay(_)) => drop(adapter.progress()),
                result => return result.is_ok(),
            }
            drop(adapter);
            std::thread::yield_now();
        }
        false
    }
}

/// A refusal as programs of sockets know errors.
pub fn as_error(refusal: Refusal) -> io::Error {
    crate::log::say(format_args!("{refusal}"));
    io::Error::from_raw_os_error(match refusal {
        Refusal::Invalid(_) => libc::EINVAL,
        Refusal::Full(_) => libc::ENOMEM,
        Refusal::System(error) => error.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EIO,
    })
}
