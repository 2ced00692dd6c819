//! Operations of a few functions or of all, packers that are done in any order and at times name
//! any place, descriptors that are refused, an upload module with events of its own, and rings that
//! are full, closed or busy at rates that change.

use bellwire_model::cycle::event_ring::EVENT_WORDS;
use bellwire_model::cycle::packer::BYTES_BITS;
use bellwire_model::cycle::send_event::{In, PACKERS, SendEvent, Shape};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A sender between packers and rings.
pub struct SendEventLoad {
    sender: SendEvent,
    random: Random,
    functions: u64,
    places: u64,
    /// What stands at the inputs until it is taken.
    asks: In,
    /// Places of operations that are not done.
    open: Vec<u8>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many bring an operation, one that is done, a refused descriptor, and an
    /// event of the upload module.
    moves: u64,
    sent: u64,
    reports: u64,
    uploads: u64,
    /// Of eight cycles, in how many a ring is ready, full, and closed.
    ready: u64,
    full: u64,
    closed: u64,
    /// Functions that are busy: those with the lowest numbers.
    busy: u64,
    /// Of 64 cycles, how many name any place, or change what is asked for.
    wrong: u64,
}

impl SendEventLoad {
    /// A sender without operations.
    pub fn new(shape: Shape, seed: u64) -> SendEventLoad {
        let functions = shape.functions as u64;
        SendEventLoad {
            sender: SendEvent::new(shape),
            random: Random::new(seed),
            functions,
            places: functions * shape.depth as u64,
            asks: In::default(),
            open: Vec::new(),
            mood: Mood {
                moves: 8,
                sent: 8,
                reports: 1,
                uploads: 4,
                ready: 8,
                full: 0,
                closed: 0,
                busy: functions,
                wrong: 0,
            },
        }
    }

    fn change_mood(&mut self) {
        let functions = self.functions;
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            moves: one_of(&[0, 1, 4, 8, 8]),
            sent: one_of(&[0, 1, 4, 8, 8]),
            reports: one_of(&[0, 1, 8]),
            uploads: one_of(&[0, 1, 4, 8]),
            ready: one_of(&[0, 2, 4, 8, 8]),
            full: one_of(&[0, 0, 1, 4, 8]),
            closed: one_of(&[0, 0, 0, 1, 8]),
            busy: one_of(&[1, 2, functions, functions]),
            wrong: one_of(&[0, 0, 1, 16]),
        };
    }

    /// Operations, reports and events that begin to wait.
    fn ask(&mut self) {
        let Mood { moves, reports, uploads, busy, wrong, .. } = self.mood;
        let random = &mut self.random;
        let changes = random.below(64) < wrong;
        let asks = &mut self.asks;
        if (!asks.move_valid && random.below(8) < moves) || changes {
            asks.move_valid = !changes || random.below(2) == 0;
            asks.move_function = random.below(busy) as u8;
            asks.move_pair = random.below(4) as u8;
            asks.move_peer = random.below(1 << 9) as u16;
            asks.move_primitive = random.below(16) as u8;
            asks.move_tail_bytes = random.below(32) as u8;
            asks.move_tail = [(); 2].map(|()| random.word());
            asks.move_total = random.below(1 << BYTES_BITS);
            asks.move_descriptor = random.below(1 << 40);
        }
        if (!asks.report_valid && random.below(8) < reports) || changes {
            asks.report_valid = !changes || random.below(2) == 0;
            asks.report_status = random.below(8) as u8;
            asks.report_function = random.below(busy) as u8;
            asks.report_pair = random.below(4) as u8;
            asks.report_peer = random.below(1 << 9) as u16;
            asks.report_primitive = random.below(16) as u8;
            asks.report_address = random.below(1 << 40);
        }
        if (!asks.upload_valid && random.below(8) < uploads) || changes {
            asks.upload_valid = !changes || random.below(2) == 0;
            asks.upload_ring = random.below(8 * self.functions) as u8;
            asks.upload_record = [(); EVENT_WORDS].map(|()| random.word());
            // The ring gives the phase.
            asks.upload_record[EVENT_WORDS - 1] >>= 1;
        }
    }

    /// What packers report: mostly a place that waits.
    fn send(&mut self, input: &mut In) {
        let random = &mut self.random;
        for packer in 0..PACKERS {
            input.sent_failed[packer] = random.below(8) == 0;
            let count = self.open.len() as u64;
            if random.below(64) < self.mood.wrong {
                input.sent_valid[packer] = true;
                input.sent_place[packer] = random.below(self.places) as u8;
            } else if count > 0 && random.below(8) < self.mood.sent {
                // The oldest ones are done first, mostly.
                let among = 1 + random.below(4);
                let at = random.below(count.min(among));
                input.sent_valid[packer] = true;
                input.sent_place[packer] = self.open.remove(at as usize);
            }
        }
    }
}

impl Load for SendEventLoad {
    type In = In;
    type Out = bellwire_model::cycle::send_event::Out;

    fn step(&mut self) -> (Self::In, Self::Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        self.ask();
        let mut input = self.asks;
        self.send(&mut input);
        let Mood { ready, full, closed, .. } = self.mood;
        let mut of_eight = |rate| self.random.below(8) < rate;
        (input.lacks_place, input.lacks_ring) = (of_eight(full), of_eight(closed));
        let lacks = input.lacks_place || input.lacks_ring;
        // Seldom both: the block does not mind.
        input.event_ready = of_eight(ready) && (!lacks || of_eight(1));
        let out = self.sender.cycle(input);
        if input.move_valid && out.move_ready {
            self.asks.move_valid = false;
            self.open.push(out.move_place);
        }
        self.asks.report_valid &= !out.report_ready;
        self.asks.upload_valid &= !(out.upload_ready || out.upload_lacks_ring);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's functions.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let functions = Config::prototype().nic.functions as u64;
        let expected = [("Depth", 16), ("DroppedWidth", 32), ("Functions", functions)];
        assert_first_configuration("send_event", &expected);
    }
}
