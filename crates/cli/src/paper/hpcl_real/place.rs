//! Where both sides run.

use super::Carrier;
use anyhow::{Context, Result, anyhow};
use bellwire_ethernet::namespace::{Namespace, ip};
use std::io;
use std::net::Ipv4Addr;

/// Name of the interface on either side.
const WIRE: &str = "wire";

/// A place for both sides.
pub struct Place {
    carrier: Carrier,
    /// Two namespaces; `None` means loopback.
    namespaces: Option<[Namespace; 2]>,
}

impl Place {
    /// Makes a place.
    ///
    /// # Errors
    /// The missing prerequisite, and the remedy.
    pub fn new(carrier: Carrier) -> Result<Place> {
        let namespaces = match carrier {
            Carrier::Udp => None,
            Carrier::Eth => Some(joined().map_err(explained)?),
        };
        Ok(Place { carrier, namespaces })
    }

    /// Runs `what` on a side; descriptors that it opens stay there.
    pub fn run<T>(&self, side: usize, what: impl FnOnce() -> Result<T>) -> Result<T> {
        match &self.namespaces {
            None => what(),
            Some(both) => both[side].run(what).context("entering the network namespace")?,
        }
    }

    pub fn device(&self, side: usize) -> String {
        match self.carrier {
            Carrier::Eth => format!("eth:{WIRE}"),
            Carrier::Udp => format!("udp:{}", self.address(side)),
        }
    }

    pub fn address(&self, side: usize) -> Ipv4Addr {
        let last = side as u8 + 1;
        match self.carrier {
            Carrier::Eth => Ipv4Addr::new(10, 77, 0, last),
            Carrier::Udp => Ipv4Addr::new(127, 0, 0, last),
        }
    }
}

/// Two namespaces, joined by a veth pair with addresses.
fn joined() -> io::Result<[Namespace; 2]> {
    let both = [Namespace::new()?, Namespace::new()?];
    both[0].wire(WIRE, &both[1], WIRE)?;
    for (number, side) in (1..).zip(&both) {
        side.run(|| ip(&format!("addr add 10.77.0.{number}/24 dev {WIRE}\nlink set {WIRE} up")))??;
    }
    Ok(both)
}

fn explained(error: io::Error) -> anyhow::Error {
    let what = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run it as root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW), or take --real udp, which needs no privilege"
        }
        io::ErrorKind::NotFound => "install iproute2, or take --real udp, which does not need it",
        _ => "see that this kernel has network namespaces and veth, or take --real udp",
    };
    anyhow!("two network namespaces cannot be made: {error}; {what}")
}
