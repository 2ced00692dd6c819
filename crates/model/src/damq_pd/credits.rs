//! The heuristic credit manager of the interface (D-13 to D-15). The policy is [`Rations`] of
//! `bellwire-protocol`, which the shared-memory device uses too. This file ties it to registers
//! that the bus reads.

use bellwire_protocol::canary::planted;
use bellwire_protocol::{GrantPolicy, Rations};

use super::config::{Config, Organisation};

/// Grants words of the buffer to ports.
pub struct CreditManager {
    /// One for all ports; in SAMQ one per port.
    parts: Vec<Rations>,
    /// Words granted to each waiting port that its process does not know of yet. Take them to tell
    /// it.
    pub(super) offers: Vec<u16>,
    /// Grants, by request and by offer.
    pub grants: u64,
    /// Requests that got no words.
    pub refusals: u64,
}

impl CreditManager {
    /// A manager without grants.
    pub fn new(config: &Config) -> CreditManager {
        let Config { nic, credits, .. } = config;
        let parts = match nic.organisation {
            // Nobody shares a port's own part, so all of it is granted at once.
            Organisation::Samq => {
                let words = (nic.depth / nic.ports) as u16;
                let part = |_| Rations::new(GrantPolicy::All, words, credits.least, 1);
                (0..nic.ports).map(part).collect()
            }
            Organisation::DamqPd | Organisation::DamqPf => {
                // Canary: credits are made for the paper's depth, unless the buffer is smaller.
                let most = if planted("damq-pd-depth-ignored") { 1024 } else { u16::MAX };
                let (words, least) = ((nic.depth as u16).min(most), credits.least);
                return CreditManager::shared(credits.policy, words, least, nic.ports);
            }
        };
        CreditManager { parts, offers: vec![0; nic.ports], grants: 0, refusals: 0 }
    }

    /// A manager whose `ports` ports share `words` words, for an interface of another kind.
    pub fn shared(policy: GrantPolicy, words: u16, least: u16, ports: usize) -> CreditManager {
        let parts = vec![Rations::new(policy, words, least, ports as u16)];
        CreditManager { parts, offers: vec![0; ports], grants: 0, refusals: 0 }
    }

    /// A credit request by PIO read: returns the words that the process may write. If none, the
    /// port joins the waiting list.
    pub fn request(&mut self, port: u8) -> u16 {
        let offer = std::mem::take(&mut self.offers[port as usize]);
        if offer > 0 {
            return offer;
        }
        let (part, lane) = self.place(port);
        match self.parts[part].want(lane) {
            Some(words) => {
                self.grants += 1;
                words
            }
            None => {
                self.refusals += 1;
                0
            }
        }
    }

    /// A word of `port` has left the buffer.
    #[inline]
    pub fn freed(&mut self, port: u8) {
        let (part, lane) = self.place(port);
        self.parts[part].give_back(lane, 1);
    }

    /// Grants words to a waiting port if there are enough, and returns the port. Its process must
    /// be told the offer. Call it until it returns `None`.
    #[inline]
    pub fn offer(&mut self, freed: u8) -> Option<u8> {
        let (part, _) = self.place(freed);
        let (lane, words) = self.parts[part].next_grant()?;
        let port = if self.parts.len() == 1 { lane as u8 } else { freed };
        self.offers[port as usize] += words;
        self.grants += 1;
        Some(port)
    }

    /// Words that are granted to no port.
    pub fn free(&self) -> u32 {
        self.parts.iter().map(|part| u32::from(part.free())).sum()
    }

    /// Words that `port` holds: granted but not yet written, or in the buffer.
    pub fn held(&self, port: u8) -> u16 {
        let (part, lane) = self.place(port);
        self.parts[part].held(lane)
    }

    /// Checks that credits are conserved.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        self.parts.iter().try_for_each(Rations::check)
    }

    #[inline]
    fn place(&self, port: u8) -> (usize, u16) {
        if self.parts.len() == 1 { (0, u16::from(port)) } else { (usize::from(port), 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first port gets all 8 words. The second is refused, also when it asks again, until half
    /// of them have left the buffer.
    #[test]
    fn grants_and_refusals_are_counted() {
        let mut manager = CreditManager::shared(GrantPolicy::All, 8, 4, 2);
        assert_eq!((manager.request(0), manager.request(1), manager.request(1)), (8, 0, 0));
        assert_eq!((manager.grants, manager.refusals, manager.free()), (1, 2, 0));
        for _ in 0..3 {
            manager.freed(0);
            assert_eq!(manager.offer(0), None);
        }
        manager.freed(0);
        assert_eq!((manager.offer(0), manager.offer(0)), (Some(1), None));
        assert_eq!((manager.grants, manager.held(0), manager.held(1)), (2, 4, 4));
        assert_eq!((manager.request(1), manager.grants, manager.refusals), (4, 2, 2));
    }
}
