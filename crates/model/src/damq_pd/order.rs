//! Which of a port's two lists is next: order across changes between PIO and DMA (D-19).
//!
//! The paper does not say how. A process's stores, words of descriptors and doorbells alike, reach
//! the interface in order. So each word that comes by PIO gets a *ticket*: the number of doorbells
//! that its port has rung before. The head of the PIO list is next if all DMA descriptors before
//! its ticket have left; otherwise the DMA list is. That is the order of submission, however often
//! a process changes, and no list has to drain first. The cost is a small memory beside the address
//! queue, and two counters per port.

use super::EVERY_PORT;
use super::word::Way;

/// Tickets by address, and counters per port. The counters wrap.
#[derive(Clone, Debug)]
pub struct Order {
    tickets: Box<[u32]>,
    ports: Box<[Port; EVERY_PORT]>,
}

// 16 bytes, so that indexing is a shift.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Port {
    rung: u32,
    left: u32,
    /// Ticket of the head of the PIO list.
    head: u32,
}

impl Order {
    /// The state for `depth` words.
    pub fn new(depth: usize) -> Order {
        Order { tickets: vec![0; depth].into(), ports: Box::new([Port::default(); EVERY_PORT]) }
    }

    /// Notes a doorbell for one more DMA descriptor.
    #[inline]
    pub fn rung(&mut self, port: u8) {
        let rung = &mut self.ports[port as usize].rung;
        *rung = rung.wrapping_add(1);
    }

    /// The ticket of a word of the port that comes now.
    #[inline]
    pub fn ticket(&self, port: u8) -> u32 {
        self.ports[port as usize].rung
    }

    /// Stores the ticket of a PIO word at `address`; `first` says that it is the head of its list.
    #[inline]
    pub fn came(&mut self, port: u8, address: u16, ticket: u32, first: bool) {
        self.tickets[address as usize] = ticket;
        if first {
            self.ports[port as usize].head = ticket;
        }
    }

    /// The word at `address` is now the head of the PIO list.
    #[inline]
    pub fn heads(&mut self, port: u8, address: u16) {
        self.ports[port as usize].head = self.tickets[address as usize];
    }

    /// Whether all DMA descriptors that the port has rung for have left: then every ticket may go.
    #[inline]
    pub fn settled(&self, port: u8) -> bool {
        let Port { rung, left, .. } = self.ports[port as usize];
        rung == left
    }

    /// A DMA descriptor of the port has left.
    #[inline]
    pub fn left(&mut self, port: u8) {
        let left = &mut self.ports[port as usize].left;
        *left = left.wrapping_add(1);
    }

    /// The list whose turn it is; `pio` says whether the PIO list has words.
    #[inline]
    pub fn turn(&self, port: u8, pio: bool) -> Way {
        let Port { left, head, .. } = self.ports[port as usize];
        let all_before_left = left.wrapping_sub(head) as i32 >= 0;
        if pio && all_before_left { Way::Pio } else { Way::Dma }
    }
}
