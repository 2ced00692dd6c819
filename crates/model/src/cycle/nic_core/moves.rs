//! Moves that wait for the packer. With these, reads of the next operations are under way while the
//! data of one comes. In gates it is a `stream_fifo`.

use crate::cycle::packer;
use crate::cycle::stream_fifo::StreamFifo;

/// What enters in a cycle.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct In {
    /// A move, as the packer gets it; without `move_valid` there is none.
    pub(super) offered: packer::In,
    /// The move that is offered to the packer is taken.
    pub(super) out_ready: bool,
}

/// What stands at the outputs in a cycle.
#[derive(Clone, Copy, Default)]
pub(super) struct Out {
    /// A move is taken, if one is offered.
    pub(super) in_ready: bool,
    /// The move that is offered to the packer; without `move_valid` there is none.
    pub(super) first: packer::In,
}

/// Moves that wait.
#[derive(Clone, Debug)]
pub(super) struct Moves(StreamFifo<packer::In>);

impl Moves {
    /// Room for so many.
    pub(super) fn new(depth: usize) -> Moves {
        Moves(StreamFifo::new(depth))
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    pub(super) fn out(&self) -> Out {
        Out { in_ready: self.0.in_ready(), first: self.0.offered().copied().unwrap_or_default() }
    }

    /// One cycle.
    pub(super) fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        let word = Some(input.offered).filter(|offered| offered.move_valid);
        self.0.clock(word, input.out_ready);
        out
    }
}
