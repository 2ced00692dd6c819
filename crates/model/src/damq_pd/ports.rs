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
