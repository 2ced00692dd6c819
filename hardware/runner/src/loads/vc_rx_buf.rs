//! Packets of changing lengths that are sound or not, may leave early or not, and mostly have
//! credits, and a network layer that takes beats or does not. Some packets find no place.

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
    early: bool,
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
    /// Packets take as many places as they can, and nothing leaves.
    fills: bool,
}

impl VcRxBufLoad {
    /// A buffer with its parameters.
    pub fn new(room: Room, again_after: u64, seed: u64) -> VcRxBufLoad {
        VcRxBufLoad {
            buffer: VcRxBuf::new(room, again_after),
            room,
            random: Random::new(seed),
            packet: Packet { beats: 0, came: 0, empty: 0, early: false, deliver: false },
            costs: VecDeque::new(),
            headers: room.headers.into(),
            data: room.data.into(),
            mood: Mood {
                comes: 8,
                leaves: 8,
                early: 4,
                wrong: 1,
                overdrawn: 0,
                longest: 4,
                fills: false,
            },
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
            fills: random.below(4) == 0,
        };
        if self.mood.fills {
            (self.mood.comes, self.mood.leaves) = (8, 0);
        }
    }

    /// A packet that takes as many places as it can. The last one takes all credits, and what comes
    /// then has none, and finds no place. In front of all may be a long bad one.
    fn fill(&mut self) -> Packet {
        if self.headers == u64::from(self.room.headers) && self.random.below(2) == 0 {
            let beats = self.room.longest as u64;
            return Packet { beats, came: 0, empty: 0, early: true, deliver: false };
        }
        let most = self.data.min(self.room.longest as u64 - 2);
        let (beats, early) = match self.headers {
            0 => (1 + self.random.below(3 * self.room.longest as u64), false),
            1 => (most + 2, true),
            _ => (2 + self.random.below(most + 1), true),
        };
        Packet { beats, came: 0, empty: 3, early, deliver: true }
    }

    /// The next packet.
    fn draw(&mut self) -> Packet {
        if self.mood.fills {
            return self.fill();
        }
        let random = &mut self.random;
        let mut packet = Packet {
            beats: 2 + random.below(self.mood.longest - 1),
            came: 0,
            empty: random.below(4) as u8,
            early: random.below(8) < self.mood.early,
            deliver: random.below(8) >= self.mood.wrong,
        };
        if random.below(64) < self.mood.overdrawn {
            // No TLP has one beat. What is too long cannot leave early: it may find no place.
            packet.beats = 1 + random.below(4 * self.mood.longest);
            packet.early &= packet.beats <= self.room.longest as u64;
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
        // What does not count in a cycle is as it wants.
        let noise = self.random.word();
        let mut input = In {
            in_valid: self.random.below(8) < self.mood.comes,
            in_last: noise & 1 != 0,
            in_empty: (noise >> 1 & 3) as u8,
            in_data: [self.random.word(), self.random.word()],
            in_early: noise & 8 != 0,
            in_deliver: noise & 16 != 0,
            out_ready: self.random.below(8) < self.mood.leaves,
            update_ready: self.random.below(4) == 0,
        };
        if input.in_valid {
            if self.packet.came == self.packet.beats {
                self.packet = self.draw();
            }
            if self.packet.came == 0 {
                input.in_early = self.packet.early;
            }
            self.packet.came += 1;
            input.in_last = self.packet.came == self.packet.beats;
            if input.in_last {
                (input.in_empty, input.in_deliver) = (self.packet.empty, self.packet.deliver);
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
            [("AgainAfter", again), ("Data", data), ("Headers", headers), ("Longest", longest)];
        assert_first_configuration("vc_rx_buf", &expected);
    }
}
