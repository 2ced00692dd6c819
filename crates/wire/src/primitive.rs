//! The three primitives and their code, the same in packet headers, descriptors and events.
//!
//! In the packet header the code stands in the PKT Type bits, which an ordinary PCIe memory write
//! uses for TD, EP and Attr. Our three codes have TD = 0 and EP = 1, "poisoned". So an ordinary
//! PCIe device discards a stray cHPP packet instead of writing it. An ordinary write that is not
//! poisoned can never pass for a cHPP packet (C-55). The paper leaves the codes open.

use core::fmt;

use crate::WireError;

/// What an operation does (cHPP section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Primitive {
    /// Non-address packet: the receiver chooses where the data goes.
    Nap = 0b0101,
    /// Write to an address that the sender names.
    Put = 0b0110,
    /// Ask the far side for a PUT back; the payload of the packet is the descriptor (C-25).
    Get = 0b0111,
}

impl Primitive {
    /// All primitives, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Nap, Self::Put, Self::Get];

    /// The 4-bit code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The primitive of a code; [`WireError::UnknownCode`] if none has it (C-37 counts and drops
    /// those).
    pub const fn from_code(code: u8) -> Result<Self, WireError> {
        match code {
            0b0101 => Ok(Self::Nap),
            0b0110 => Ok(Self::Put),
            0b0111 => Ok(Self::Get),
            _ => Err(WireError::UnknownCode { field: "packet type", code: code as u64 }),
        }
    }

    /// True if a packet of this type names a target address.
    pub const fn has_address(self) -> bool {
        matches!(self, Self::Put)
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nap => "NAP",
            Self::Put => "PUT",
            Self::Get => "GET",
        })
    }
}
