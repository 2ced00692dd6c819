//! Packets of changing lengths on both channels, some of which are not what their headers say, and
//! credits and room that come and go.

use bellwire_model::cycle::send_vc::{In, Out, SendVc};
use bellwire_model::engine::Random;

use crate::bench::Load;

const CHANNELS: usize = 2;

/// A sender's channels, the network layer above and the replay buffer below.
pub struct SendVcLoad {
    send: SendVc,
    random: Random,
    /// The packet that enters, by channel: its remaining beats, and whether the next one is its
    /// first.
    entering: [(u64, bool); CHANNELS],
    room: u64,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a beat, and in how many a channel has credits.
    enters: [u64; CHANNELS],
    allowed: [u64; CHANNELS],
    /// Of eight cycles, in how many beats of the replay buffer become free, and how many at most.
    frees: u64,
    freed: u64,
    /// DWs of payload, at most.
    longest: u64,
    /// Of 64 packets, how many are not what their headers say.
    wrong: u64,
}

impl SendVcLoad {
    /// Queues of this depth.
    pub fn new(depth: usize, seed: u64) -> SendVcLoad {
        let mood =
            Mood { enters: [8; 2], allowed: [8; 2], frees: 8, freed: 8, longest: 16, wrong: 0 };
        SendVcLoad {
            send: SendVc::new(depth),
            random: Random::new(seed),
            entering: [(0, true); CHANNELS],
            room: 128,
            mood,
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut often = || [0, 1, 4, 7, 8, 8][random.below(6) as usize];
        let (enters, allowed) = ([often(), often()], [often(), often()]);
        self.mood = Mood {
            enters,
            allowed,
            frees: [1, 4, 8, 8][random.below(4) as usize],
            freed: [1, 8][random.below(2) as usize],
            longest: [0, 4, 16, 128][random.below(4) as usize],
            wrong: [0, 0, 4, 32][random.below(4) as usize],
        };
    }

    /// The next beat of a channel's packet, or the first one of another.
    fn offer(&mut self, input: &mut In, channel: usize) {
        let random = &mut self.random;
        let is_wrong = random.below(64) < self.mood.wrong;
        let (beats, is_first) = &mut self.entering[channel];
        let mut data = [random.word(), random.word()];
        if *is_first {
            let payload = random.below(self.mood.longest + 1);
            // Type, channel, attributes and length.
            let header = 0x60 | (channel as u64) << 12 | 0x80 << 16 | payload << 24;
            data[0] = data[0] & !0xffff_ffff | header;
            *beats = payload / 4 + 2;
            if is_wrong {
                match random.below(3) {
                    0 => data[0] ^= 1 << random.below(16),
                    1 => data[0] ^= random.below(1 << 16) << 16,
                    _ => *beats = 1 + random.below(40),
                }
            }
        }
        input.in_valid[channel] = true;
        input.in_last[channel] = *beats == 1;
        input.in_data[channel] = data;
    }
}

impl Load for SendVcLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let mood = self.mood;
        // What does not count in a cycle is as it wants.
        let noise = self.random.word();
        let mut input = In {
            in_last: [noise & 1 != 0, noise & 2 != 0],
            in_data: [[noise, noise.rotate_left(9)]; CHANNELS],
            ..In::default()
        };
        for channel in 0..CHANNELS {
            if self.random.below(8) < mood.enters[channel] {
                self.offer(&mut input, channel);
            }
            input.allowed[channel] = self.random.below(8) < mood.allowed[channel];
        }
        input.room = self.room as u16;
        let out = self.send.cycle(input);
        for channel in 0..CHANNELS {
            if input.in_valid[channel] && out.in_ready[channel] {
                // What is refused is offered anew, as another one.
                let last = input.in_last[channel];
                let (beats, is_first) = &mut self.entering[channel];
                (*beats, *is_first) = (*beats - 1, last);
            }
        }
        // A header of a wrong length asks for more room than the buffer has.
        let limit = if mood.wrong > 0 { 300 } else { 128 };
        self.room = self.room.saturating_sub(u64::from(out.out_valid));
        if self.random.below(8) < mood.frees && self.room < limit {
            self.room += 1 + self.random.below(mood.freed);
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::cycle::smp_link::LONGEST;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has a queue of the longest packet.
    #[test]
    fn the_first_configuration_has_room_for_a_packet() {
        assert_first_configuration("send_vc", &[("Depth", LONGEST as u64)]);
    }
}
