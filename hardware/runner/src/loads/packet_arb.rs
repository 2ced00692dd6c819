//! Senders of packets of all sizes, which pause, change their mind and name any channel, and a
//! crossbar whose channels stall, also within a packet.

use bellwire_model::cycle::packet_arb::{CHANNEL_BITS, INPUTS, In, Out, PacketArb};
use bellwire_model::cycle::xbar::CHANNELS;
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The arbiter between senders and a crossbar.
pub struct PacketArbLoad {
    arb: PacketArb,
    random: Random,
    inputs: usize,
    /// Numbers that channels can have.
    numbers: u64,
    /// What senders offer, and the beats that each packet still has.
    offers: In,
    left: [u64; INPUTS],
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a sender offer a beat, and a channel take one.
    offers: [u64; INPUTS],
    takes: [u64; CHANNELS],
    /// Beats of a packet, at most.
    longest: u64,
    /// Of 64 beats that wait, how many are taken back or become others.
    changes: u64,
}

impl PacketArbLoad {
    /// An arbiter without packets.
    pub fn new(inputs: usize, channels: usize, seed: u64) -> PacketArbLoad {
        PacketArbLoad {
            arb: PacketArb::new(inputs, channels),
            random: Random::new(seed),
            inputs,
            numbers: channels.next_power_of_two().max(2) as u64,
            offers: In::default(),
            left: [1; INPUTS],
            mood: Mood { offers: [8; INPUTS], takes: [8; CHANNELS], longest: 1, changes: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            offers: [(); INPUTS].map(|()| one_of(&[0, 1, 4, 8, 8])),
            takes: [(); CHANNELS].map(|()| one_of(&[0, 1, 4, 8, 8])),
            longest: one_of(&[1, 2, 11, 40]),
            changes: one_of(&[0, 0, 1, 16]),
        };
    }

    /// The beat that a sender offers next.
    fn offer(&mut self, at: usize) {
        let random = &mut self.random;
        let offers = &mut self.offers;
        offers.in_valid[at] = random.below(8) < self.mood.offers[at];
        offers.in_last[at] = self.left[at] == 1;
        offers.in_to[at] = random.below(16) as u8;
        offers.in_channel[at] = random.below(self.numbers.min(1 << CHANNEL_BITS)) as u8;
        offers.in_route[at] = random.word() as u8;
        offers.in_data[at] = [random.word(), random.word()];
    }
}

impl Load for PacketArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        for at in 0..self.inputs {
            if !self.offers.in_valid[at] || self.random.below(64) < self.mood.changes {
                self.offer(at);
            }
        }
        let takes = self.mood.takes;
        self.offers.out_ready = takes.map(|rate| self.random.below(8) < rate);
        let input = self.offers;
        let out = self.arb.cycle(input);
        for at in 0..self.inputs {
            if input.in_valid[at] && out.in_ready[at] {
                self.left[at] -= 1;
                if input.in_last[at] {
                    self.left[at] = 1 + self.random.below(self.mood.longest);
                }
                self.offer(at);
            }
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has two senders, and as many channels as the first one
    /// of the crossbar.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let crossbar = Config::prototype().crossbar;
        let channels = crossbar.channels as u64 + u64::from(crossbar.get_channel);
        assert_first_configuration("packet_arb", &[("Channels", channels), ("Inputs", 2)]);
    }
}
