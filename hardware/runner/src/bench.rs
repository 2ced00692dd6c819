//! A block of the model under random load: what the gates must do in each cycle.

use bellwire_model::cycle::{Ports, Signal};

/// A model with its workload.
pub trait Load {
    /// The block's inputs.
    type In: Ports;
    /// The block's outputs.
    type Out: Ports;

    /// One cycle: what enters, and what the model's outputs then are.
    fn step(&mut self) -> (Self::In, Self::Out);
}

/// A load without its types, so that one runner drives every block.
pub trait Bench {
    /// One cycle, packed; both slices are zero before.
    fn step(&mut self, input: &mut [u64], output: &mut [u64]);
    /// Signals that enter.
    fn inputs(&self) -> Shape;
    /// Signals that leave.
    fn outputs(&self) -> Shape;
}

/// The signals of one side, and their size.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// From the lowest bit up.
    pub signals: &'static [Signal],
    /// Words of 64 bits in a record.
    pub words: usize,
}

impl<L: Load> Bench for L {
    fn step(&mut self, input: &mut [u64], output: &mut [u64]) {
        let (entered, left) = Load::step(self);
        entered.pack(input);
        left.pack(output);
    }

    fn inputs(&self) -> Shape {
        Shape { signals: L::In::SIGNALS, words: L::In::WORDS }
    }

    fn outputs(&self) -> Shape {
        Shape { signals: L::Out::SIGNALS, words: L::Out::WORDS }
    }
}
