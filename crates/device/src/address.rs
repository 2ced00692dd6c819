//! Addresses: (node, function, queue pair), as in cHPP's connectionless addressing.

use std::fmt;
use std::str::FromStr;

/// One function of one node. A node is one opening of a device: on `shm` a process, on `ethernet`
/// an interface's owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FunctionAddress {
    /// Node number, unique inside one device name (`shm:job`).
    pub node: u32,
    /// Function number: 0 is the physical function, 1.. are virtual functions.
    pub function: u8,
}

/// One queue pair of one function of one node. Ordered by node, function, queue pair.
// Laid out so that no load spans two stores: see `write_in_pieces` in `completion_queue.rs` of the
// API.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct Address {
    /// Node number, unique inside one device name (`shm:job`).
    pub node: u32,
    /// Queue pair number inside the function. Channel `c` is reachable as [`Address::channel`].
    pub queue_pair: u32,
    /// Function number: 0 is the physical function, 1.. are virtual functions.
    pub function: u8,
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |address: &Self| (address.node, address.function, address.queue_pair);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Address {
    /// Queue pair numbers from this one on belong to channels: channel `c` is queue pair
    /// `CHANNEL_BASE + c`.
    pub const CHANNEL_BASE: u32 = 0x8000_0000;

    /// The address of a queue pair.
    pub const fn new(node: u32, function: u8, queue_pair: u32) -> Self {
        Address { node, function, queue_pair }
    }

    /// The member of channel `number` in `function` of `node`.
    pub const fn channel(node: u32, function: u8, number: u16) -> Self {
        Address { node, function, queue_pair: Self::CHANNEL_BASE + number as u32 }
    }

    /// The function that owns the queue pair.
    #[must_use]
    pub const fn function_address(self) -> FunctionAddress {
        FunctionAddress { node: self.node, function: self.function }
    }
}

impl fmt::Display for FunctionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.function)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.queue_pair.checked_sub(Self::CHANNEL_BASE) {
            Some(channel) => write!(f, "{}.{}.c{channel}", self.node, self.function),
            None => write!(f, "{}.{}.{}", self.node, self.function, self.queue_pair),
        }
    }
}

/// A text is not an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not an address: write NODE.FUNCTION.QUEUEPAIR (\"2.0.5\") or NODE.FUNCTION.cCHANNEL (\"2.0.c7\")"
)]
pub struct ParseAddressError(String);

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('.');
            let node = parts.next()?.parse().ok()?;
            let function = parts.next()?.parse().ok()?;
            let last = parts.next()?;
            let address = match last.strip_prefix('c') {
                Some(channel) => Address::channel(node, function, channel.parse().ok()?),
                None => {
                    // Numbers from there on are channels and need the form cCHANNEL.
                    let queue_pair = last.parse().ok().filter(|pair| *pair < Self::CHANNEL_BASE)?;
                    Address::new(node, function, queue_pair)
                }
            };
            parts.next().is_none().then_some(address)
        };
        parse().ok_or_else(|| ParseAddressError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_and_parse_back() {
        for address in [
            Address::new(0, 0, 1),
            Address::new(4_000_000_000, 255, 9),
            Address::channel(3, 1, 65535),
        ] {
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for bad in
            ["", "1", "1.2", "1.2.3.4", "1.256.3", "1.2.c", "1.2.c65536", "1.2.2147483648", "a.b.c"]
        {
            assert!(bad.parse::<Address>().is_err(), "{bad:?} must be refused");
        }
    }
}
