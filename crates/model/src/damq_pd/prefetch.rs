//! The prefetcher: reads descriptors from host queues, round-robin among the ports that rang (D-09).

use crate::engine::first_from;

/// Which ports have rung for descriptors that were not asked for, and what is under way.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    rung: Vec<u32>,
    ports: u64,
    next: u32,
    tags: usize,
    landing: usize,
    /// Descriptors asked for, by port.
    pub fetched: Vec<u64>,
}

impl Prefetcher {
    /// An idle prefetcher with `tags` reads and `landing` words.
    pub fn new(ports: usize, tags: usize, landing: usize) -> Prefetcher {
        let (rung, fetched) = (vec![0; ports], vec![0; ports]);
        Prefetcher { rung, ports: 0, next: 0, tags, landing, fetched }
    }

    /// A doorbell of `port` has come.
    pub fn ring(&mut self, port: u8) {
        self.rung[port as usize] += 1;
        self.ports |= 1 << port;
    }

    /// Whose descriptor is asked for now, if there is a tag; `words` says how long a port's next one is, and so how many words of the landing it
    /// needs.
    pub fn choose(&mut self, words: impl FnOnce(u8) -> u16) -> Option<u8> {
        if self.ports == 0 || self.tags == 0 {
            return None;
        }
        let port = first_from(self.ports, self.next) as u8;
        // The port whose turn it is waits for room, or a long descriptor would be passed over by short ones for ever.
        let words = usize::from(words(port));
        self.landing = self.landing.checked_sub(words)?;
        self.tags -= 1;
        self.next = (u32::from(port) + 1) & 63;
        self.fetched[port as usize] += 1;
        let rung = &mut self.rung[port as usize];
        *rung -= 1;
        if *rung == 0 {
            self.ports &= !(1 << port);
        }
        Some(port)
    }

    /// A descriptor has come in full: its tag is free.
    pub fn came(&mut self) {
        self.tags += 1;
    }

    /// A word has left the landing.
    #[inline]
    pub fn freed(&mut self) {
        self.landing += 1;
    }
}
