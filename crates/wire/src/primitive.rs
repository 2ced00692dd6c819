//! The three primitives and their code, the same in packet headers, descriptors and events.
//!
//! In the packet header the code stands in the PKT Type bits, which an ordinary PCIe memory write
//! uses for TD, EP and Attr. Our three codes have TD = 0 and EP = 1, "poisoned". So an ordinary
//! PCIe device discards a stray cHPP packet instead of writing it. An ordinary write that is not
//! poisoned can never pass for a cHPP packet (C-55). The paper leaves the codes open.

use core::fmt;

use crate::error::codes;

codes! {
    /// What an operation does (cHPP section 3.4).
    Primitive, "packet type";

    /// Non-address packet: the receiver chooses where the data goes.
    Nap = 0b0101,
    /// Write to an address that the sender names.
    Put = 0b0110,
    /// Ask the far side for a PUT back; the payload of the packet is the descriptor (C-25).
    Get = 0b0111,
}

impl Primitive {
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
