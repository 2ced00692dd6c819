//! Addresses: `struct sockaddr_in` with the node as internet address and the function as port.
//!
//! Function `f` of a node is port 49664 + `f`, which over UDP is its real port. Programs that
//! cannot exchange addresses may ask for ports of their own. Such a port means the function with
//! the number port modulo 255.

use crate::abi::error;
use crate::errno::Result;
use crate::pointer::{Buffer, write_bytes};
use bellwire::FunctionAddress;
use bellwire_tagged::Endpoint;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Port of function 0.
pub const FIRST_PORT: u16 = 49_664;
/// Functions of a node.
pub const FUNCTIONS: u16 = 255;
/// Bytes of an address.
pub const BYTES: usize = size_of::<libc::sockaddr_in>();

/// A `struct sockaddr_in`, which programs need not align.
pub type SocketAddress = [u8; BYTES];

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

/// Reads an address. `None`: it is too short, or of another family.
pub fn read(raw: &[u8]) -> Option<SocketAddrV4> {
    let (&[f0, f1, p0, p1, a, b, c, d], _) = raw.first_chunk::<BYTES>()?.split_first_chunk()?;
    let family = u16::from_ne_bytes([f0, f1]);
    let address = SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([p0, p1]));
    (i32::from(family) == libc::AF_INET).then_some(address)
}

/// An address in the form of the interface.
pub fn raw(address: SocketAddrV4) -> SocketAddress {
    let mut raw = [0; BYTES];
    raw[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    raw[2..4].copy_from_slice(&address.port().to_be_bytes());
    raw[4..8].copy_from_slice(&address.ip().octets());
    raw
}

/// Writes an address to a buffer of `length` bytes, truncated if necessary, and its full length to
/// `length`. Null has no room. `ETOOSMALL`: it was truncated.
pub fn write(address: SocketAddrV4, into: Buffer, length: &mut usize) -> Result {
    let room = into.room((*length).min(BYTES)).unwrap_or_default();
    *length = BYTES;
    if write_bytes(room, &raw(address)) < BYTES { Err(error::ETOOSMALL) } else { Ok(()) }
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
        let into = Buffer::of_bytes(&mut bytes);
        assert_eq!(write(address, into, &mut length), Ok(()));
        assert_eq!(read(&bytes), Some(address));
        length = 3;
        assert_eq!(write(address, into, &mut length), Err(error::ETOOSMALL));
        assert_eq!((length, read(&bytes[1..])), (BYTES, None));
    }
}
