//! What a socket of datagrams knows of the addresses that it sends to.

use crate::datagram::frame::Hello;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// The most addresses; the one that was used least recently is forgotten.
const MOST: usize = 1024;
/// A way that is older is asked for again, each time this long after the last question.
const FRESH: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(250);
/// A way that is older is forgotten: the process at the address may be another one.
const KNOWN: Duration = Duration::from_secs(3);

/// An address that the program sends to.
struct Peer {
    /// The address of this host from which a packet goes there.
    source: Ipv4Addr,
    way: Option<Hello>,
    heard: Duration,
    asked: Option<Duration>,
    used: Duration,
}

/// How a datagram goes to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// From queue pair to queue pair; `asks`: the way is to be asked for again.
    Direct { way: Hello, asks: bool },
    /// With a question.
    Ask,
}

/// The addresses that it sends to. The time is counted from any start.
#[derive(Default)]
pub struct Peers {
    all: HashMap<SocketAddrV4, Peer>,
}

impl Peers {
    /// The address of this host for packets to `to`, if that is known.
    pub fn source(&self, to: SocketAddrV4) -> Option<Ipv4Addr> {
        self.all.get(&to).map(|peer| peer.source)
    }

    /// A new address.
    pub fn add(&mut self, to: SocketAddrV4, source: Ipv4Addr, now: Duration) {
        if self.all.len() >= MOST
            && let Some(oldest) =
                self.all.iter().min_by_key(|(_, peer)| peer.used).map(|(&address, _)| address)
        {
            self.all.remove(&oldest);
        }
        let peer = Peer { source, way: None, heard: now, asked: None, used: now };
        self.all.insert(to, peer);
    }

    /// How a datagram goes there.
    pub fn how(&mut self, to: SocketAddrV4, now: Duration) -> How {
        let Some(peer) = self.all.get_mut(&to) else { return How::Ask };
        peer.used = now;
        let age = now.saturating_sub(peer.heard);
        let Some(way) = peer.way.filter(|_| age <= KNOWN) else {
            peer.way = None;
            return How::Ask;
        };
        let is_due = peer.asked.is_none_or(|asked| now.saturating_sub(asked) >= AGAIN);
        let asks = age > FRESH && is_due;
        if asks {
            peer.asked = Some(now);
        }
        How::Direct { way, asks }
    }

    /// An address has told the way.
    pub fn heard(&mut self, from: SocketAddrV4, way: Hello, now: Duration) {
        if let Some(peer) = self.all.get_mut(&from) {
            (peer.way, peer.heard) = (Some(way), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::frame::Seal;

    /// A way is asked for again while it is used, and forgotten without an answer.
    #[test]
    fn a_way_is_kept_fresh() {
        let to = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let ms = Duration::from_millis;
        let mut peers = Peers::default();
        assert_eq!(peers.how(to(1), ms(0)), How::Ask);
        peers.add(to(1), Ipv4Addr::LOCALHOST, ms(0));
        assert_eq!(peers.how(to(1), ms(0)), How::Ask);
        let seal = Seal { token: 1, from: to(9) };
        let way = Hello { nonce: 0, seal, host: Ipv4Addr::LOCALHOST, queue_pair: 2, key: 3 };
        peers.heard(to(1), way, ms(10));
        let direct = |asks| How::Direct { way, asks };
        assert_eq!(peers.how(to(1), ms(1010)), direct(false));
        assert_eq!(peers.how(to(1), ms(1011)), direct(true));
        assert_eq!(peers.how(to(1), ms(1260)), direct(false), "it was just asked");
        assert_eq!(peers.how(to(1), ms(1261)), direct(true));
        peers.heard(to(1), way, ms(1300));
        assert_eq!(peers.how(to(1), ms(1310)), direct(false));
        assert_eq!(peers.how(to(1), ms(4301)), How::Ask, "without an answer it is forgotten");
        assert_eq!(peers.how(to(1), ms(4302)), How::Ask);
        peers.heard(to(2), way, ms(5000));
        assert_eq!(peers.how(to(2), ms(5000)), How::Ask, "nobody has sent there");
    }

    /// The addresses are bounded: the least recently used one gives way.
    #[test]
    fn old_addresses_give_way() {
        let to = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut peers = Peers::default();
        for port in 0..MOST as u16 {
            peers.add(to(port), Ipv4Addr::LOCALHOST, Duration::from_millis(port.into()));
        }
        peers.how(to(0), Duration::from_secs(60));
        peers.add(to(5000), Ipv4Addr::LOCALHOST, Duration::from_secs(61));
        assert_eq!(peers.all.len(), MOST);
        assert!(peers.source(to(0)).is_some() && peers.source(to(5000)).is_some());
        assert!(peers.source(to(1)).is_none());
    }
}
