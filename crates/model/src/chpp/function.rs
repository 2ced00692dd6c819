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

    /// A run lies in the window if its first byte does and its last one.
    #[test]
    fn runs_lie_in_the_window() {
        let layout = Layout::new(&Config::prototype(), 1, 2);
        let (base, end) = (layout.base, layout.base + layout.length);
        assert!(layout.holds(base, layout.length) && layout.holds(end - 8, 8));
        assert!(!layout.holds(base, layout.length + 1) && !layout.holds(end - 8, 9));
        assert!(!layout.holds(base - 1, 8) && !layout.holds(end + 1, 0));
    }
}
