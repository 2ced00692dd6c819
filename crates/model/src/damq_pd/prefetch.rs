//! The prefetcher: reads descriptors from host queues, round-robin among the ports that rang
//! (D-09).

use crate::engine::first_from;

/// Descriptors that ports have rung for and that are not yet requested, and free tags and words.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    rung: Vec<u32>,
    ports: u64,
    next: u32,
    tags: usize,
    landing: usize,
    /// Descriptors requested, by port.
    pub fetched: Vec<u64>,
}

impl Prefetcher {
    /// An idle prefetcher with `tags` reads and `landing` words.
    pub fn new(ports: usize, tags: usize, landing: usize) -> Prefetcher {
        let (rung, fetched) = (vec![0; ports], vec![0; ports]);
        Prefetcher { rung, ports: 0, next: 0, tags, landing, fetched }
    }

    /// Notes a doorbell of `port`.
    pub fn ring(&mut self, port: u8) {
        self.rung[port as usize] += 1;
        self.ports |= 1 << port;
    }

    /// The port that the prefetcher fetches for now, if a tag and room are free. `words` returns
    /// the length of a port's next descriptor; it needs this much room.
    pub fn choose(&mut self, words: impl FnOnce(u8) -> u16) -> Option<u8> {
        if self.ports == 0 || self.tags == 0 {
            return None;
        }
        let port = first_from(self.ports, self.next) as u8;
        // The port whose turn it is waits for room: if short descriptors passed a long one, it
        // would starve.
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

    /// A descriptor has arrived in full: its tag is free.
    pub fn came(&mut self) {
        self.tags += 1;
    }

    /// A word has left the landing.
    #[inline]
    pub fn freed(&mut self) {
        self.landing += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tags are two descriptors, however many ports have rung.
    #[test]
    fn tags_run_out() {
        let mut prefetcher = Prefetcher::new(4, 2, 100);
        (0..4).for_each(|port| prefetcher.ring(port));
        let chosen = [(); 3].map(|()| prefetcher.choose(|_| 1));
        assert_eq!(chosen, [Some(0), Some(1), None]);
    }
}
