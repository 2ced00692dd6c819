//! Network addresses, and the name service.
//!
//! A host address is Bellwire's (node, function) in six bytes. A name is one that `Device::lookup`
//! resolves, or `NODE.FUNCTION` on every device. One host may have several end points of the
//! device: each process on `shm`, functions on other devices. The index argument of the call
//! selects one. On `shm` the host also has an address of its own, which means the process that
//! waits.

use crate::abi::{NetAddress, Return};
use crate::end_point::{DISCRIMINATOR_BYTES, NetName, THIS_HOST};
use crate::handle::nic_of;
use crate::nic::{ADDRESS_BYTES, State, call_on, on_nic};
use crate::pointer::{In, Out, Text, call};
use bellwire::FunctionAddress;
use std::ffi::{c_char, c_ulong, c_void};
use std::mem::offset_of;
use std::time::Duration;

/// How long to wait for a host's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Splits an address into host (`None` if it has none) and discriminator.
/// [`Return::InvalidParameter`] for null and for lengths that no address of this NIC has.
pub fn read_address(
    address: &In<'_, NetAddress>,
) -> Result<(Option<FunctionAddress>, Vec<u8>), Return> {
    address.check()?;
    let address = address.as_ptr();
    // SAFETY: not null, so it is an address, with as many bytes as its lengths say. Programs make
    // such addresses in byte arrays, so they may be unaligned.
    let (host_bytes, discriminator_bytes) = unsafe {
        (
            (&raw const (*address).host_address_len).read_unaligned(),
            (&raw const (*address).discriminator_len).read_unaligned(),
        )
    };
    let (host_bytes, discriminator_bytes) = (host_bytes as usize, discriminator_bytes as usize);
    if ![0, ADDRESS_BYTES].contains(&host_bytes) || discriminator_bytes > DISCRIMINATOR_BYTES {
        return Err(Return::InvalidParameter);
    }
    let mut bytes = vec![0; host_bytes + discriminator_bytes];
    // SAFETY: the program promises that these bytes follow.
    unsafe {
        let from = address.cast::<u8>().add(offset_of!(NetAddress, host_address));
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
    }
    let discriminator = bytes.split_off(host_bytes);
    let host = match <[u8; ADDRESS_BYTES]>::try_from(bytes) {
        Ok([a, b, c, d, function, 0]) => {
            Some(FunctionAddress { node: u32::from_be_bytes([a, b, c, d]), function })
        }
        Ok(_) => return Err(Return::InvalidParameter),
        Err(_) => None,
    };
    Ok((host, discriminator))
}

/// Writes an address to a place that has room for it.
pub fn write_address(address: &Out<'_, NetAddress>, name: &NetName) -> Result<(), Return> {
    address.check()?;
    let address = address.as_ptr();
    let mut bytes = Vec::from(name.host.node.to_be_bytes());
    bytes.extend([name.host.function, 0]);
    bytes.extend(&name.discriminator);
    // SAFETY: not null, so it has room for a host address and the discriminator.
    unsafe {
        (&raw mut (*address).host_address_len).write_unaligned(ADDRESS_BYTES as u16);
        (&raw mut (*address).discriminator_len).write_unaligned(name.discriminator.len() as u16);
        let to = address.cast::<u8>().add(offset_of!(NetAddress, host_address));
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    }
    Ok(())
}

impl State {
    fn names(&self) -> Result<(), Return> {
        if self.names_known { Ok(()) } else { Err(Return::ErrorNameService) }
    }
}

/// `NODE.FUNCTION`, or `NODE` for its first function.
fn parse_numbers(name: &str) -> Option<FunctionAddress> {
    let (node, function) = name.split_once('.').unwrap_or((name, "0"));
    Some(FunctionAddress { node: node.parse().ok()?, function: function.parse().ok()? })
}

/// Whether `name` means this host.
fn is_here(name: &str) -> bool {
    let own = rustix::system::uname();
    let own = own.nodename().to_string_lossy();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    name.is_empty() || name == "localhost" || short(name) == short(&own)
}

fn find(device: &bellwire::Device, name: &str, index: c_ulong) -> Result<FunctionAddress, Return> {
    if let Some(address) = parse_numbers(name) {
        return Ok(address);
    }
    let kind = device.name().split(':').next().unwrap_or_default();
    if ["shm", "model"].contains(&kind) {
        // All nodes are on this host.
        let node = u32::try_from(index).map_err(|_| Return::ErrorNameService)?;
        return match is_here(name) {
            true if kind == "shm" && node == 0 => Ok(THIS_HOST),
            true => Ok(FunctionAddress { node, function: 0 }),
            false => Err(Return::ErrorNameService),
        };
    }
    let function = u8::try_from(index).map_err(|_| Return::ErrorNameService)?;
    let node = device.lookup(name, function, PATIENCE).map_err(|error| {
        tracing::warn!(name, %error, "VipNSGetHostByName");
        Return::ErrorNameService
    })?;
    Ok(FunctionAddress { node, function })
}

/// Starts the name service of a NIC.
#[unsafe(no_mangle)]
pub extern "C" fn VipNSInit(nic: *mut c_void, _info: *mut c_void) -> Return {
    call_on(nic_of(nic), |state| {
        state.names_known = true;
        Ok(())
    })
}

/// Stops it.
#[unsafe(no_mangle)]
pub extern "C" fn VipNSShutdown(nic: *mut c_void) -> Return {
    call_on(nic_of(nic), |state| {
        state.names()?;
        state.names_known = false;
        Ok(())
    })
}

/// The address of a host.
///
/// # Safety
/// `name` is null or ends with a zero; `address` is null or has room for a host address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByName(
    nic: *mut c_void,
    name: Text<'_>,
    address: Out<'_, NetAddress>,
    index: c_ulong,
) -> Return {
    call(|| {
        address.check()?;
        name.check()?;
        let name = name.to_text();
        // Resolve without the lock: it may take seconds.
        let device = on_nic(nic_of(nic), |state| {
            state.names()?;
            Ok(state.device.clone())
        })?;
        let host = find(&device, &name, index)?;
        write_address(&address, &NetName { host, discriminator: Vec::new() })
    })
}

/// The name of an address, `NODE.FUNCTION`.
///
/// # Safety
/// `address` is null or valid; `length` is null or says how many bytes `name` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByAddr(
    nic: *mut c_void,
    address: In<'_, NetAddress>,
    name: Out<'_, c_char>,
    length: Out<'_, c_ulong>,
) -> Return {
    call(|| {
        name.check()?;
        length.check()?;
        on_nic(nic_of(nic), |state| state.names())?;
        let host = read_address(&address)?.0.ok_or(Return::InvalidParameter)?;
        let text = if host == THIS_HOST { "localhost".to_owned() } else { host.to_string() };
        // SAFETY: not null, so the program promises that it says the room of `name`.
        let room = unsafe { length.as_ptr().read_unaligned() };
        let needed = text.len() + 1;
        length.write(needed as c_ulong)?;
        if (room as usize) < needed {
            return Err(Return::ErrorResource);
        }
        let name = name.as_ptr();
        // SAFETY: there is room for the text and its zero.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast::<u8>(), text.len());
            name.add(text.len()).write(0);
        }
        Ok(())
    })
}
