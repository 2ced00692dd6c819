//! Frames of changing lengths, a line that stalls, and a far side whose ACKs and NAKs come late,
//! again, for frames that were never sent, or not at all.

use bellwire_model::cycle::replay_buf::{In, Out, ReplayBuf, SEQUENCE_BITS};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// Beats of the longest frame of the SMP link: 128 DW of payload and 5 DW around it.
const LONGEST: u64 = 34;

/// A replay buffer between a transport layer and a line.
pub struct ReplayBufLoad {
    buffer: ReplayBuf,
    depth: u64,
    random: Random,
    /// Remaining beats of the frame that enters.
    entering: u64,
    room: u64,
    /// Frames that have been sent, and those of them for which an acknowledgement was made.
    sent: u64,
    acknowledged: u64,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a beat and how many take one.
    enters: u64,
    leaves: u64,
    /// Of 64 cycles, how many bring an ACK or NAK.
    acks: u64,
    /// Of eight of these, how many are NAKs.
    naks: u64,
    /// Beats of a frame, at most.
    longest: u64,
    /// A frame begins only if all of it has room.
    asks: bool,
}

impl ReplayBufLoad {
    /// A buffer with its parameters.
    pub fn new(depth: usize, replay_after: u64, seed: u64) -> ReplayBufLoad {
        ReplayBufLoad {
            buffer: ReplayBuf::new(depth, replay_after),
            depth: depth as u64,
            random: Random::new(seed),
            entering: 0,
            room: depth as u64,
            sent: 0,
            acknowledged: 0,
            mood: Mood { enters: 8, leaves: 8, acks: 8, naks: 1, longest: 2, asks: true },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let longest = LONGEST.min(self.depth);
        self.mood = Mood {
            enters: [1, 4, 7, 8][random.below(4) as usize],
            leaves: [0, 1, 4, 7, 8, 8][random.below(6) as usize],
            acks: [0, 1, 4, 16, 64][random.below(5) as usize],
            naks: [0, 1, 4][random.below(3) as usize],
            longest: [1, 2, 1 + random.below(longest), longest][random.below(4) as usize],
            asks: random.below(2) == 0,
        };
    }

    /// The next beat of a frame, or the first of another one.
    fn offer(&mut self, input: &mut In) {
        if self.entering == 0 {
            let beats = 1 + self.random.below(self.mood.longest);
            if self.mood.asks && beats > self.room {
                return;
            }
            self.entering = beats;
        }
        input.in_valid = true;
        input.in_last = self.entering == 1;
        input.in_data = [self.random.word(), self.random.word()];
    }

    /// What the far side says: mostly the truth.
    fn acknowledge(&mut self, input: &mut In) {
        let random = &mut self.random;
        let open = self.sent - self.acknowledged;
        let number = match random.below(16) {
            0 => random.word(),
            1 => self.sent + random.below(2),
            2 | 3 => self.sent.wrapping_sub(1 + random.below(2 * self.depth)),
            _ => (self.acknowledged + random.below(open + 1)).wrapping_sub(1),
        };
        input.ack_valid = true;
        input.ack_nak = random.below(8) < self.mood.naks;
        input.ack_sequence = (number % (1 << SEQUENCE_BITS)) as u16;
    }
}

impl Load for ReplayBufLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let mut input = In { out_ready: self.random.below(8) < self.mood.leaves, ..In::default() };
        if self.random.below(8) < self.mood.enters {
            self.offer(&mut input);
        }
        if self.random.below(64) < self.mood.acks {
            self.acknowledge(&mut input);
        }
        let out = self.buffer.cycle(input);
        if input.ack_valid && out.ack_ready {
            let behind = u64::from(input.ack_sequence) + 1;
            let count = behind.wrapping_sub(self.acknowledged) % (1 << SEQUENCE_BITS);
            // More were never sent, or are late.
            if count <= self.sent - self.acknowledged {
                self.acknowledged += count;
            }
        }
        self.entering -= u64::from(input.in_valid && out.in_ready);
        self.room = out.room.into();
        if out.out_valid && input.out_ready && out.out_last && !out.out_again {
            self.sent += 1;
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::smp::config::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block is the model's link.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let config = Config::recommended();
        let depth = config.beats(config.replay_buffer.count() as usize);
        let after = config.replay_after.ps().div_ceil(config.cycle().ps());
        let expected = [("Depth", depth), ("ReplayAfter", after)];
        assert_first_configuration("replay_buf", &expected);
    }
}
