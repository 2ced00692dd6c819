//! Doorbells come and are taken at rates that change, at times mostly those of one function. So
//! FIFOs are at times full and at times empty. Any number of a function comes, and also a FIFO
//! without doorbells is asked for one.

use bellwire_model::cycle::doorbell_fifo::{DoorbellFifo, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// FIFOs between those who ring and an arbiter that chooses at random.
pub struct DoorbellFifoLoad {
    fifo: DoorbellFifo,
    random: Random,
    /// Numbers that functions can have.
    numbers: u64,
    /// Of eight cycles, how many bring a doorbell and take one; of eight of these, how many are
    /// those of one function.
    rates: [u64; 3],
    /// That function.
    busy: u64,
}

impl DoorbellFifoLoad {
    /// FIFOs with their parameters.
    pub fn new(functions: usize, depth: usize, bits: u32, seed: u64) -> DoorbellFifoLoad {
        DoorbellFifoLoad {
            fifo: DoorbellFifo::new(functions, depth, bits),
            random: Random::new(seed),
            numbers: functions.next_power_of_two().max(2) as u64,
            rates: [4; 3],
            busy: 0,
        }
    }
}

impl Load for DoorbellFifoLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9), random.below(9)];
            self.busy = random.below(self.numbers);
        }
        let [in_valid, take] = [self.rates[0], self.rates[1]].map(|rate| random.below(8) < rate);
        let [in_function, take_function] = [(); 2].map(|()| {
            let is_busy = random.below(8) < self.rates[2];
            (if is_busy { self.busy } else { random.below(self.numbers) }) as u8
        });
        let in_word = random.word();
        let input = In { in_valid, in_function, in_word, take, take_function };
        (input, self.fifo.cycle(input))
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block is that of the model.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let (functions, depth) = (nic.functions as u64, nic.doorbell_depth as u64);
        let expected = [("Depth", depth), ("DroppedWidth", 32), ("Functions", functions)];
        assert_first_configuration("doorbell_fifo", &expected);
    }
}
