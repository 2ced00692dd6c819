//! Packets of changing lengths that are sound or not, may leave early or not, and mostly have
//! credits, and a network layer that takes beats or does not.

use std::collections::VecDeque;

use bellwire_model::cycle::vc_rx_buf::{In, Out, Room, VcRxBuf};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A buffer between a link and a network layer.
pub struct VcRxBufLoad {
    buffer: VcRxBuf,
    room: Room,
    random: Random,
    packet: Packet,
    /// Data credits of packets in the buffer; those that the far end has left.
    costs: VecDeque<u64>,
    headers: u64,
    data: u64,
    mood: Mood,
}

/// The packet that comes.
#[derive(Clone, Copy)]
struct Packet {
    /// Beats in all, and those that have come.
    beats: u64,
    came: u64,
    empty: u8,
    deliver: bool,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many bring a beat, and how many take one.
    comes: u64,
    leaves: u64,
    /// Of eight packets, how many may leave early, and how many are not sound.
    early: u64,
    wrong: u64,
    /// Of 64 packets, how many come without credits.
    overdrawn: u64,
    /// Beats of a packet, at most.
    longest: u64,
}

impl VcRxBufLoad {
    /// A buffer with its parameters.
    pub fn new(room: Room, again_after: u64, seed: u64) -> VcRxBufLoad {
        VcRxBufLoad {
            buffer: VcRxBuf::new(room, again_after),
            room,
            random: Random::new(seed),
            packet: Packet { beats: 0, came: 0, empty: 0, deliver: false },
            costs: VecDeque::new(),
            headers: room.headers.into(),
            data: room.data.into(),
            mood: Mood { comes: 8, leaves: 8, early: 4, wrong: 1, overdrawn: 0, longest: 4 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let longest = self.room.longest as u64;
        self.mood = Mood {
            comes: [1, 4, 7, 8][random.below(4) as usize],
            leaves: [0, 1, 4, 7, 8, 8][random.below(6) as usize],
            early: [0, 4, 8, 8][random.below(4) as usize],
            wrong: [0, 1, 4, 8][random.below(4) as usize],
            overdrawn: [0, 0, 2, 32][random.below(4) as usize],
            longest: [2, 3, 2 + random.below(longest - 1), longest][random.below(4) as usize],
        };
    }

    /// The next packet.
    fn draw(&mut self) -> Packet {
        let random = &mut self.random;
        let mut packet = Packet {
            beats: 2 + random.below(self.mood.longest - 1),
            came: 0,
            empty: random.below(4) as u8,
            deliver: random.below(8) >= self.mood.wrong,
        };
        if random.below(64) < self.mood.overdrawn {
            // No TLP has one beat.
            packet.beats = 1 + random.below(self.mood.longest);
        } else if self.headers == 0 || cost(packet) > self.data {
            packet.deliver = false;
        }
        packet
    }
}

fn cost(packet: Packet) -> u64 {
    packet.beats - 2 + u64::from(packet.empty != 3)
}

impl Load for VcRxBufLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let mut input = In {
            out_ready: self.random.below(8) < self.mood.leaves,
            update_ready: self.random.below(4) == 0,
            ..In::default()
        };
        if self.random.below(8) < self.mood.comes {
            if self.packet.came == self.packet.beats {
                self.packet = self.draw();
                input.in_early = self.random.below(8) < self.mood.early;
            }
            self.packet.came += 1;
            input.in_valid = true;
            input.in_data = [self.random.word(), self.random.word()];
            if self.packet.came == self.packet.beats {
                (input.in_last, input.in_empty) = (true, self.packet.empty);
                input.in_deliver = self.packet.deliver;
            }
        }
        let out = self.buffer.cycle(input);
        if out.kept {
            let cost = (self.packet.beats + u64::from(self.packet.empty != 3)).saturating_sub(2);
            self.costs.push_back(cost);
            self.headers -= 1;
            self.data -= cost;
        }
        if out.out_valid && input.out_ready && out.out_last && !out.out_bad {
            self.headers += 1;
            self.data += self.costs.pop_front().expect("what leaves was kept");
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::cycle::smp_link::LONGEST;
    use bellwire_model::smp::config::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block is the model's link.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let config = Config::recommended();
        let again = config.update_again_after.ps().div_ceil(config.cycle().ps());
        let (headers, data) = (config.headers.into(), config.data.into());
        let longest = LONGEST as u64;
        let expected =
            [("Headers", headers), ("Data", data), ("Longest", longest), ("AgainAfter", again)];
        assert_first_configuration("vc_rx_buf", &expected);
    }
}
