//! The heuristic credit manager of the interface (D-13 to D-15): the policy is [`Rations`] of `bellwire-protocol`, which the shared-memory
//! device uses too; here it is bound to registers that the bus reads.

use bellwire_protocol::Rations;

use super::config::{Config, Organisation, Policy};

/// Grants words of the buffer to ports.
pub struct CreditManager {
    /// One for all ports, or in SAMQ one for each.
    parts: Vec<Rations>,
    /// Granted to a port that waited, and not yet told to its process.
    offers: Vec<u16>,
    /// Grants, by request or by offer.
    pub grants: u64,
    /// Requests that found nothing.
    pub refusals: u64,
}

impl CreditManager {
    /// Nothing is granted.
    pub fn new(config: &Config) -> CreditManager {
        let Config { nic, credits, .. } = config;
        let part = |words, ports| Rations::new(credits.policy.into(), words, credits.least, ports);
        let parts = match nic.organisation {
            // A port's own part has nobody to be shared with, so that it is granted at once.
            Organisation::Samq => (0..nic.ports)
                .map(|_| {
                    let words = (nic.depth / nic.ports) as u16;
                    Rations::new(bellwire_protocol::GrantPolicy::All, words, credits.least, 1)
                })
                .collect(),
            Organisation::DamqPd | Organisation::DamqPf => {
                vec![part(nic.depth as u16, nic.ports as u16)]
            }
        };
        CreditManager { parts, offers: vec![0; nic.ports], grants: 0, refusals: 0 }
    }

    /// A manager of `words` words for `ports` ports that share them, for an interface of another kind.
    pub fn shared(policy: Policy, words: u16, least: u16, ports: usize) -> CreditManager {
        let parts = vec![Rations::new(policy.into(), words, least, ports as u16)];
        CreditManager { parts, offers: vec![0; ports], grants: 0, refusals: 0 }
    }

    /// A process asks by a PIO read: how many words it may write. If none, its port is on the waiting list.
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

    /// Serves a port that waits, if there is enough; its offer is to be told to its process. Call it until it returns `None`.
    #[inline]
    pub fn offer(&mut self, freed: u8) -> Option<u8> {
        let (part, _) = self.place(freed);
        let (lane, words) = self.parts[part].next_grant()?;
        let port = if self.parts.len() == 1 { lane as u8 } else { freed };
        self.offers[port as usize] += words;
        self.grants += 1;
        Some(port)
    }

    /// Takes the offer that is told to a port's process.
    pub fn take_offer(&mut self, port: u8) -> u16 {
        std::mem::take(&mut self.offers[port as usize])
    }

    /// Whether there is an offer that its process does not know of.
    pub fn has_offer(&self, port: u8) -> bool {
        self.offers[port as usize] > 0
    }

    /// Words granted to nobody.
    pub fn free(&self) -> u32 {
        self.parts.iter().map(|part| u32::from(part.free())).sum()
    }

    /// Words that `port` holds: not yet written, or in the buffer.
    pub fn held(&self, port: u8) -> u16 {
        let (part, lane) = self.place(port);
        self.parts[part].held(lane)
    }

    /// Checks that no credit was made or lost.
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
