//! The functions of an interface (SR-IOV: 1 PF and 7 VFs, C-38), each with its window of host
//! memory and its queue pairs. They are isolated (C-39). A function's descriptors, sources and
//! targets must lie in its own window. A packet must carry the key of its target queue pair (QP
//! Magic, C-09).

use super::config::Config;
use super::memory::NODE_SHIFT;

/// Size of a descriptor's place in a window.
pub const DESCRIPTOR_PLACE: u64 = 4096;

/// Size of a NAP slot, and its alignment (C-19).
pub const SLOT_BYTES: u64 = 2048;

/// The memory layout of one function's window. Software chooses it and tells the interface at
/// initialisation (C-15).
///
/// ```text
///   descriptor places | per queue pair: send ring | receive ring | slot list | slots | ... | free
/// ```
#[derive(Clone, Debug)]
pub struct Layout {
    /// First address of the window.
    pub base: u64,
    pub length: u64,
    pub queue_pairs: Vec<QueuePairLayout>,
    /// First address of the memory that is free for programs; a multiple of 4096.
    pub free: u64,
}

/// The addresses of one queue pair's rings.
#[derive(Clone, Debug)]
pub struct QueuePairLayout {
    /// Send-completion ring (C-13).
    pub send_ring: u64,
    /// Receive-completion ring (C-14).
    pub receive_ring: u64,
    /// Ring of slot addresses, 8 bytes each: software writes and the interface reads (C-20).
    pub slot_list: u64,
    /// First NAP slot.
    pub slots: u64,
}

impl Layout {
    /// The layout of `function` of `node`.
    pub fn new(config: &Config, node: usize, function: usize) -> Layout {
        let window = config.host.window.count();
        let base = ((node as u64) << NODE_SHIFT) + function as u64 * window;
        let mut at = base + config.nic.doorbell_depth as u64 * DESCRIPTOR_PLACE;
        let mut place = |bytes: u64| {
            let start = at;
            at = (at + bytes).next_multiple_of(4096);
            start
        };
        let ring = config.host.ring_entries * bellwire_wire::event::EVENT_BYTES as u64;
        let queue_pairs = (0..config.nic.queue_pairs)
            .map(|_| QueuePairLayout {
                send_ring: place(ring),
                receive_ring: place(ring),
                slot_list: place(8 * config.host.slots as u64),
                slots: place(SLOT_BYTES * config.host.slots as u64),
            })
            .collect();
        Layout { base, length: window, queue_pairs, free: at }
    }

    /// Whether a run lies completely in the window.
    pub fn holds(&self, address: u64, length: u64) -> bool {
        let end = self.base + self.length;
        address >= self.base && address <= end && length <= end - address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::key_window::{In, KeyWindow, PAGE_SHIFT};
    use crate::engine::Random;

    /// A run lies in the window if its first byte does and its last one.
    #[test]
    fn runs_lie_in_the_window() {
        let layout = Layout::new(&Config::prototype(), 1, 2);
        let (base, end) = (layout.base, layout.base + layout.length);
        assert!(layout.holds(base, layout.length) && layout.holds(end - 8, 8));
        assert!(!layout.holds(base, layout.length + 1) && !layout.holds(end - 8, 9));
        assert!(!layout.holds(base - 1, 8) && !layout.holds(end + 1, 0));
    }

    /// The block `cycle::key_window` finds the same runs in the windows of all functions, and lets
    /// the same keys through, over random runs around the ends of windows and random keys.
    #[test]
    fn gates_let_the_same_through() {
        let config = Config::prototype();
        let mut random = Random::new(1);
        let (functions, pairs) =
            (config.nic.functions, config.nic.functions * config.nic.queue_pairs);
        let mut gates = KeyWindow::new(functions, pairs, 32);
        let layouts: Vec<Layout> =
            (0..functions).map(|function| Layout::new(&config, 1, function)).collect();
        for (host_function, layout) in (0..).zip(&layouts) {
            let (host_base, host_pages) = (layout.base >> PAGE_SHIFT, layout.length >> PAGE_SHIFT);
            gates.cycle(In {
                host_valid: true,
                host_window: true,
                host_function,
                host_base: host_base as u32,
                host_pages: host_pages as u32,
                ..In::default()
            });
        }
        let keys: Vec<u8> = (0..pairs).map(|_| random.word() as u8).collect();
        for (host_pair, &host_key) in (0..).zip(&keys) {
            let key = In { host_valid: true, host_opens: true, host_pair, ..In::default() };
            gates.cycle(In { host_key, ..key });
        }
        let mut counts = [[0; 2]; 3];
        for _ in 0..100_000 {
            let function = random.below(functions as u64) as usize;
            let layout = &layouts[function];
            // Up to 20 bytes before or behind an end of the window.
            let mut near = || layout.base + random.below(2) * layout.length + random.below(41) - 20;
            let [one, other] = [near(), near()];
            let (address, length) = (one.min(other), one.abs_diff(other));
            let pair = random.below(pairs as u64) as usize;
            let wrong = if random.below(16) == 0 { random.word() as u8 } else { 0 };
            let key = keys[pair] ^ wrong;
            let asked = In {
                packet_valid: true,
                packet_pair: pair as u8,
                packet_key: key,
                target_valid: true,
                target_function: function as u8,
                target_address: address,
                target_length: length,
                ..In::default()
            };
            let both = In { source_valid: true, source_function: function as u8, ..asked };
            gates.cycle(In { source_address: address, source_length: length, ..both });
            let out = gates.cycle(In::default());
            let (holds, is_key) = (layout.holds(address, length), keys[pair] == key);
            assert_eq!((out.packet_fits, out.packet_wrong), (is_key, !is_key));
            assert_eq!((out.target_fits, out.target_wrong), (holds, !holds), "{address}, {length}");
            assert_eq!((out.source_fits, out.source_wrong), (holds, !holds), "{address}, {length}");
            for (count, fits) in counts.iter_mut().zip([is_key, holds, length == 0]) {
                count[usize::from(fits)] += 1;
            }
        }
        assert!(counts.as_flattened().iter().all(|&it| it > 100), "{counts:?}");
    }
}
