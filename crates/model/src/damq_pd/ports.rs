//! The ports of the descriptor buffer, as `hardware/damq_pd` has them.

use super::buffer::DescriptorBuffer;
use super::word::{PortWord, Way, Word};

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A doorbell comes; a word in the same cycle comes after it.
        bell_valid: bool = 1,
        /// Its port.
        bell_port: u8 = 6,
        /// A word comes.
        word_valid: bool = 1,
        /// Its port.
        word_port: u8 = 6,
        /// It comes by DMA.
        word_way: bool = 1,
        /// It is the last of its descriptor.
        word_last: bool = 1,
        /// Its bits, made by [`spread`].
        word_data: [u64; 4] = 256,
        /// A descriptor may begin to leave.
        ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A descriptor is selected: it begins to leave in the next cycle but one.
        selected: bool = 1,
        /// A word leaves.
        valid: bool = 1,
        /// Its port.
        port: u8 = 6,
        /// It came by DMA.
        way: bool = 1,
        /// It is the last of its descriptor.
        last: bool = 1,
        /// Its bits.
        data: [u64; 4] = 256,
        /// Words in the memory that came by PIO.
        inside_pio: u16 = 16,
        /// Words in the memory that came by DMA.
        inside_dma: u16 = 16,
        /// Free words for PIO.
        free_pio: u16 = 16,
        /// Free words for DMA.
        free_dma: u16 = 16,
        /// A word found no room.
        overflow: bool = 1,
    }
}

/// The 256 bits of a word of which the model keeps 63: each of them depends on those.
#[inline]
pub fn spread(bits: u64) -> [u64; 4] {
    let first = bits | u64::from(bits.count_ones() & 1) << 63;
    [first, !first.rotate_left(17), first.rotate_left(34), !first.rotate_left(51)]
}

impl DescriptorBuffer {
    /// One cycle with all ports. Doorbells come here too, not through [`ring`](Self::ring).
    #[inline]
    pub fn clock(&mut self, input: In) -> Out {
        let [inside_pio, inside_dma] = [Way::Pio, Way::Dma].map(|way| self.inside(way) as u16);
        let [free_pio, free_dma] = [Way::Pio, Way::Dma].map(|way| self.free.free_for(way) as u16);
        let (selected, overflows) = (self.selected, self.overflows);
        if input.bell_valid {
            self.ring(input.bell_port);
        }
        let word = input.word_valid.then(|| PortWord {
            port: input.word_port,
            way: if input.word_way { Way::Dma } else { Way::Pio },
            word: Word::new(input.word_data[0], input.word_last),
        });
        let left = self.cycle(word, input.ready);
        let mut out = Out {
            selected: self.selected > selected,
            inside_pio,
            inside_dma,
            free_pio,
            free_dma,
            overflow: self.overflows > overflows,
            ..Out::default()
        };
        if let Some(PortWord { port, way, word }) = left {
            out.valid = true;
            out.port = port;
            out.way = way == Way::Dma;
            out.last = word.is_last();
            out.data = spread(word.bits());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damq_pd::config::Organisation;

    /// A word at the inputs, with a doorbell before it if `bell`.
    fn word(bits: u64, word_way: bool, bell: bool) -> In {
        In {
            bell_valid: bell,
            bell_port: 1,
            word_valid: true,
            word_port: 1,
            word_way,
            word_last: true,
            word_data: spread(bits),
            ready: true,
        }
    }

    /// The bits that the model does not keep are the parity and the rotations of those that it
    /// does.
    #[test]
    fn a_word_is_spread_over_256_bits() {
        let odd = [1 << 63 | 1, !(0b11 << 16), 0b11 << 33, !(0b11 << 50)];
        assert_eq!(spread(1), odd);
        assert_eq!(spread(3), [3, !(3 << 17), 3 << 34, !(3 << 51)]);
    }

    /// A word is written in the cycle after it comes, selected in the next, and leaves two later.
    /// The counts are those of the registers. A word for which the memory has no room is an
    /// overflow.
    #[test]
    fn the_outputs_follow_a_word() {
        let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 2, 4, 2);
        let rest = Out { free_pio: 4, free_dma: 2, ..Out::default() };
        assert_eq!(buffer.clock(word(7, true, true)), rest);
        let nothing = In { ready: true, ..In::default() };
        assert_eq!(buffer.clock(nothing), rest);
        let inside = Out { inside_dma: 1, free_dma: 1, ..rest };
        assert_eq!(buffer.clock(nothing), Out { selected: true, ..inside });
        assert_eq!(buffer.clock(nothing), inside);
        let left = Out { valid: true, port: 1, way: true, last: true, data: spread(7), ..rest };
        assert_eq!(buffer.clock(nothing), left);

        let waits = |last| In { word_last: last, ready: false, ..word(0, false, false) };
        assert_eq!(buffer.clock(waits(false)), rest);
        for words in 0..4 {
            let full = Out { inside_pio: words, free_pio: 4 - words, ..rest };
            assert_eq!(buffer.clock(waits(false)), full);
        }
        let overflow = Out { inside_pio: 4, free_pio: 0, overflow: true, ..rest };
        assert_eq!(buffer.clock(nothing), overflow);
    }

    /// While a port waits for a DMA descriptor, the ticket behind a PIO descriptor that ends
    /// decides a cycle later. Without one, descriptors follow back to back.
    #[test]
    fn a_ticket_decides_a_cycle_later() {
        let leave = |inputs: &[In]| -> Vec<(usize, u64)> {
            let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 2, 4, 2);
            let nothing = In { ready: true, ..In::default() };
            let inputs = inputs.iter().chain(std::iter::repeat(&nothing));
            let outs = inputs.take(12).map(|&input| buffer.clock(input)).enumerate();
            outs.filter(|(_, out)| out.valid).map(|(cycle, out)| (cycle, out.data[2])).collect()
        };
        let place = |bits: u64| spread(bits)[2];
        let by_pio = [word(1, false, false), word(2, false, false)];
        assert_eq!(leave(&by_pio), [(4, place(1)), (5, place(2))]);
        // The second waits for the DMA descriptor whose doorbell came before it.
        let mixed = [word(1, false, false), word(2, false, true), word(3, true, false)];
        assert_eq!(leave(&mixed), [(4, place(1)), (7, place(3)), (8, place(2))]);
    }
}
