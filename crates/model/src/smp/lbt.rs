//! The large-block transfer unit: moves large blocks from one node's memory to another's (S-05 to
//! S-07; SMP paper, section 2).
//!
//! Software fills the descriptor registers. The unit cuts the block into packets of the largest
//! payload, sends them, and raises one interrupt when the last has been sent. Sent does not mean
//! arrived: no layer above the link layer acknowledges, and none needs to, because the link loses
//! nothing.

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::network::{Class, NetworkHeader};

use super::lmu::Way;
use super::network::{LONGEST_BLOCK_BYTES, NetworkPacket};

/// Concurrent transfers of one unit: one per interface.
pub const TRANSFERS: usize = 3;

/// The descriptor registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Start address, in bytes.
    pub start: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Target node.
    pub target: u8,
    /// Start address at the target, in bytes.
    pub target_start: u64,
}

/// Why a transfer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A value is not a multiple of 4 bytes, or the length is zero.
    #[error("addresses and length must be multiples of 4 bytes, and the length not 0; round them")]
    Misaligned,
    /// The block exceeds the memory.
    #[error("the block ends beyond the memory of a node; see address and length")]
    OutOfMemory,
    /// The target is this node or does not exist.
    #[error("node {0} is this one or does not exist; choose another")]
    NoTarget(u8),
    /// All sets of registers are in use.
    #[error("{TRANSFERS} transfers are under way; wait for an interrupt")]
    Busy,
}

/// A transfer in progress.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    registers: Registers,
    sent: u64,
    /// The last packet, once handed to the link: link end used, and packet count on that channel.
    last: Option<(Way, u64)>,
}

/// The unit of one node.
#[derive(Debug, Default)]
pub struct Lbt {
    transfers: [Option<Transfer>; TRANSFERS],
    next: usize,
    /// Packets made.
    pub packets: u64,
}

impl Lbt {
    /// Starts a transfer. The returned number identifies its packets and its interrupt.
    ///
    /// # Errors
    /// [`Refused`]; nothing has started then.
    pub fn start(
        &mut self,
        registers: Registers,
        node: u8,
        nodes: u8,
        memory_bytes: u64,
    ) -> Result<u8, Refused> {
        let Registers { start, length, target, target_start } = registers;
        let aligned = |value: u64| value.is_multiple_of(DW_BYTES as u64);
        if ![start, length, target_start].into_iter().all(aligned) || length == 0 {
            return Err(Refused::Misaligned);
        }
        let fits = |start: u64| start.checked_add(length).is_some_and(|end| end <= memory_bytes);
        if !fits(start) || !fits(target_start) {
            return Err(Refused::OutOfMemory);
        }
        if target == node || target >= nodes {
            return Err(Refused::NoTarget(target));
        }
        let free = self.transfers.iter().position(Option::is_none).ok_or(Refused::Busy)?;
        self.transfers[free] = Some(Transfer { registers, sent: 0, last: None });
        Ok(free as u8)
    }

    /// The next packet that `accepts` allows, round-robin over transfers; and whether it is the
    /// transfer's last.
    pub fn next(
        &mut self,
        node: u8,
        memory: &[u8],
        accepts: impl Fn(&NetworkPacket) -> bool,
    ) -> Option<(NetworkPacket, bool)> {
        for step in 0..TRANSFERS {
            let number = (self.next + step) % TRANSFERS;
            let Some(transfer) = self.transfers[number].as_mut() else { continue };
            let Registers { start, length, target, target_start } = transfer.registers;
            let left = length - transfer.sent;
            if left == 0 {
                continue;
            }
            let piece = left.min(LONGEST_BLOCK_BYTES as u64);
            let from = (start + transfer.sent) as usize;
            let header = NetworkHeader {
                class: Class::Block,
                operation: u8::from(piece == left),
                target,
                source: node,
                tag: number as u8,
                address: target_start + transfer.sent,
            };
            let data = memory[from..from + piece as usize].to_vec();
            let packet = NetworkPacket { header, channel: 0, data };
            if accepts(&packet) {
                transfer.sent += piece;
                self.next = number + 1;
                self.packets += 1;
                return Some((packet, piece == left));
            }
        }
        None
    }

    /// Notes that a transfer's last packet was handed to the link, with the packet count of its
    /// channel.
    pub fn last_handed(&mut self, number: u8, way: Way, count: u64) {
        if let Some(transfer) = &mut self.transfers[usize::from(number)] {
            transfer.last = Some((way, count));
        }
    }

    /// The transfers whose last packet has been sent: each raises an interrupt. `sent` returns how
    /// many packets each link has sent.
    pub fn interrupts(&mut self, sent: impl Fn(Way) -> u64) -> Vec<u8> {
        let mut raised = Vec::new();
        for (number, transfer) in self.transfers.iter_mut().enumerate() {
            let last = transfer.and_then(|transfer| transfer.last);
            if last.is_some_and(|(way, count)| sent(way) >= count) {
                *transfer = None;
                raised.push(number as u8);
            }
        }
        raised
    }

    /// Whether no transfer is in progress.
    pub fn is_idle(&self) -> bool {
        self.transfers.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: u64 = LONGEST_BLOCK_BYTES as u64;

    /// Transfers send in turns, and each tells its last packet.
    #[test]
    fn transfers_take_turns() {
        let mut lbt = Lbt::default();
        let registers = Registers { start: 0, length: 2 * LONGEST, target: 1, target_start: 0 };
        let memory = [0; 3 * LONGEST_BLOCK_BYTES];
        for number in 0..2 {
            assert_eq!(lbt.start(registers, 0, 2, 3 * LONGEST), Ok(number));
        }
        let packets = std::iter::from_fn(|| lbt.next(0, &memory, |_| true)).take(5);
        let packets = packets.map(|(packet, is_last)| (packet.header.tag, is_last));
        let turns = [(0, false), (1, false), (0, true), (1, true)];
        assert_eq!(packets.collect::<Vec<_>>(), turns);
    }

    /// A block must lie in the memory of both nodes.
    #[test]
    fn both_ends_must_lie_in_memory() {
        let starts = |start, target_start| {
            let registers = Registers { start, length: 8, target: 1, target_start };
            Lbt::default().start(registers, 0, 2, 64).map(drop)
        };
        assert_eq!(starts(56, 56), Ok(()));
        assert_eq!(starts(60, 0), Err(Refused::OutOfMemory));
        assert_eq!(starts(0, 60), Err(Refused::OutOfMemory));
    }
}
