//! Addresses: `struct sockaddr_in` with the node as internet address and the function as port.
//!
//! Function `f` of a node is port 49664 + `f`, which over UDP is its real port. Programs that
//! cannot exchange addresses may ask for ports of their own. Such a port means the function with
//! the number port modulo 255.

use bellwire::FunctionAddress;
use bellwire_tagged::Endpoint;
use std::ffi::c_void;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Port of function 0.
pub const FIRST_PORT: u16 = 49_664;
/// Functions of a node.
pub const FUNCTIONS: u16 = 255;
/// Bytes of an address.
pub const BYTES: usize = size_of::<libc::sockaddr_in>();

/// The function that a port means.
pub fn function_of(port: u16) -> u8 {
    match port.checked_sub(FIRST_PORT) {
        Some(function) if function < FUNCTIONS => function as u8,
        _ => (port % FUNCTIONS) as u8,
    }
}

/// The function at an address.
pub fn function_at(address: SocketAddrV4) -> FunctionAddress {
    FunctionAddress { node: (*address.ip()).into(), function: function_of(address.port()) }
}

/// The address of a function.
pub fn address_of(function: FunctionAddress) -> SocketAddrV4 {
    let port = FIRST_PORT + u16::from(function.function);
    SocketAddrV4::new(Ipv4Addr::from(function.node), port)
}

/// The name of an endpoint whose program asked for `wanted`.
pub fn name_of(endpoint: &Endpoint, wanted: Option<SocketAddrV4>) -> SocketAddrV4 {
    let own = address_of(endpoint.address());
    wanted.map_or(own, |wanted| SocketAddrV4::new(*own.ip(), wanted.port()))
}

/// Reads an address that a program gives.
///
/// # Safety
/// `address` is null or points to [`BYTES`] bytes.
pub unsafe fn read(address: *const c_void) -> Option<SocketAddrV4> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; it need not be aligned.
    let raw = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    (i32::from(raw.sin_family) == libc::AF_INET).then(|| {
        SocketAddrV4::new(u32::from_be(raw.sin_addr.s_addr).into(), u16::from_be(raw.sin_port))
    })
}

/// An address in the form of the interface.
pub fn raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

/// Writes an address to a buffer of `length` bytes, truncated if necessary, and its full length to
/// `length`. `false`: it was truncated.
///
/// # Safety
/// `length` is readable and writable, and `into` has as many bytes, or is null.
pub unsafe fn write(address: SocketAddrV4, into: *mut c_void, length: *mut usize) -> bool {
    let raw = raw(address);
    // SAFETY: the caller's promise.
    unsafe {
        let room = if into.is_null() { 0 } else { *length };
        let kept = room.min(BYTES);
        std::ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), into.cast::<u8>(), kept);
        *length = BYTES;
        kept == BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every function has a port that leads back to it, and any port leads to a function.
    #[test]
    fn ports_and_functions_fit() {
        for function in 0..FUNCTIONS as u8 {
            let at = FunctionAddress { node: 0x0a00_0001, function };
            assert_eq!(function_at(address_of(at)), at);
        }
        assert!((0..=u16::MAX).all(|port| u16::from(function_of(port)) < FUNCTIONS));
        let mut bytes = [0_u8; BYTES];
        let mut length = BYTES;
        let address = "10.1.2.3:9228".parse().unwrap();
        // SAFETY: the buffer is as long as it says.
        unsafe {
            assert!(write(address, bytes.as_mut_ptr().cast(), &mut length));
            assert_eq!(read(bytes.as_ptr().cast()), Some(address));
            length = 3;
            assert!(!write(address, bytes.as_mut_ptr().cast(), &mut length));
            assert_eq!((length, read(std::ptr::null())), (BYTES, None));
        }
    }
}
