//! Address handles.

use crate::abi::{self, AhAttr, Grh, Wc};
use crate::pd::Pd;
use bellwire_rdma::Refusal;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The group that a GID names.
pub fn group_of(gid: &[u8; 16]) -> Option<Ipv4Addr> {
    Ipv6Addr::from(*gid).to_ipv4_mapped().filter(Ipv4Addr::is_multicast)
}

/// An address handle.
#[repr(C)]
pub struct Ah {
    abi: abi::Ah,
    pub host: Ipv4Addr,
}

/// The host of a path: a GID that is an IPv4 address.
pub fn host_of(attr: &AhAttr) -> Option<Ipv4Addr> {
    let gid = Ipv6Addr::from(attr.grh.dgid);
    (attr.is_global != 0).then(|| gid.to_ipv4_mapped()).flatten()
}

impl Ah {
    pub fn new(pd: &Pd, attr: &AhAttr) -> Result<Ah, Refusal> {
        let host = host_of(attr).filter(|_| attr.port_num == 1 && attr.grh.sgid_index == 0);
        let why = "an address handle needs port 1, GID index 0 and an IPv4-mapped GID";
        let host = host.ok_or(Refusal::Invalid(why))?;
        Ok(Ah { abi: abi::Ah { context: pd.abi_context(), pd, handle: 0 }, host })
    }
}

/// The path back to the sender of a datagram.
pub fn path_back(wc: &Wc, grh: Option<&Grh>) -> Option<AhAttr> {
    /// `IBV_WC_GRH`
    const HAS_GRH: u32 = 1;
    let grh = grh.filter(|_| wc.wc_flags & HAS_GRH != 0)?;
    // The route header over IPv4: 20 unused bytes, then an IPv4 header. Its source lies in bytes 32
    // to 36 of the whole, and `dgid` begins at 24.
    let source: [u8; 4] = grh.dgid[8..12].try_into().ok()?;
    let mut attr = AhAttr { is_global: 1, port_num: 1, ..AhAttr::default() };
    attr.grh.dgid = Ipv4Addr::from(source).to_ipv6_mapped().octets();
    attr.grh.hop_limit = 64;
    Some(attr)
}
