//! Inputs that send packets of random lengths, with pauses, into channels that have room; outputs
//! that hold beats up, and give places back late or for long not at all.

use bellwire_model::cycle::xbar::{CLASSES, In, Out, PORTS, Shape, Xbar};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A packet that an input offers.
#[derive(Clone, Copy)]
struct Packet {
    channel: u8,
    output: u8,
    class: u8,
    /// Beats that were not taken yet.
    beats: u64,
    begun: bool,
}

/// What the next cycles are like, at one port.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a beat, take a beat.
    offers: u64,
    takes: u64,
    /// Of eight cycles, how many give back a place that is free, by class.
    returns: [u64; CLASSES],
    /// Outputs to which the input sends, from the first on.
    outputs: u64,
    /// Beats of a packet, at most.
    longest: u64,
}

/// A crossbar between its sources and its receivers.
pub struct XbarLoad {
    xbar: Xbar,
    shape: Shape,
    random: Random,
    moods: [Mood; PORTS],
    packets: [Option<Packet>; PORTS],
    /// Places that a receiver has freed and not yet told of.
    freed: [[u64; CLASSES]; PORTS],
}

impl XbarLoad {
    /// An empty crossbar.
    pub fn new(shape: Shape, seed: u64) -> XbarLoad {
        let (outputs, longest) = (shape.ports as u64, shape.beats as u64);
        let mood = Mood { offers: 8, takes: 8, returns: [8; CLASSES], outputs, longest };
        XbarLoad {
            xbar: Xbar::new(shape),
            shape,
            random: Random::new(seed),
            moods: [mood; PORTS],
            packets: [None; PORTS],
            freed: [[0; CLASSES]; PORTS],
        }
    }

    fn change_mood(&mut self) {
        let port = self.random.below(self.shape.ports as u64) as usize;
        let mut rate = || [0, 1, 4, 7, 8, 8][self.random.below(6) as usize];
        let (offers, takes, returns) = (rate(), rate(), [0; CLASSES].map(|_| rate()));
        let outputs = 1 + self.random.below(self.shape.ports as u64);
        let beats = self.shape.beats as u64;
        let longest = [2, 9, 11, beats][self.random.below(4) as usize].min(beats);
        self.moods[port] = Mood { offers, takes, returns, outputs, longest };
    }

    /// The packet that an input offers: the one that it has begun; else one that may be another in
    /// each cycle, so that no channel waits for a full one.
    fn packet(&mut self, port: usize) -> Packet {
        let Mood { outputs, longest, .. } = self.moods[port];
        match self.packets[port] {
            Some(packet) if packet.begun || self.random.below(2) == 0 => packet,
            _ => Packet {
                channel: self.random.below(self.shape.channels as u64) as u8,
                output: self.random.below(outputs) as u8,
                class: self.random.below(self.shape.classes as u64) as u8,
                // The longest ones find out whether there is room for them.
                beats: if self.random.below(8) == 0 {
                    longest
                } else {
                    1 + self.random.below(longest)
                },
                begun: false,
            },
        }
    }
}

impl Load for XbarLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(64) == 0 {
            self.change_mood();
        }
        let mut input = In::default();
        for port in 0..self.shape.ports {
            let mood = self.moods[port];
            if self.random.below(8) < mood.offers {
                let packet = self.packet(port);
                self.packets[port] = Some(packet);
                input.in_valid[port] = true;
                input.in_channel[port] = packet.channel;
                input.in_output[port] = packet.output;
                input.in_class[port] = packet.class;
                input.in_last[port] = packet.beats == 1;
                input.in_data[port] = self.random.word();
            }
            input.out_ready[port] = self.random.below(8) < mood.takes;
            for class in 0..self.shape.classes {
                let freed = &mut self.freed[port][class];
                if *freed > 0 && self.random.below(8) < mood.returns[class] {
                    *freed -= 1;
                    input.credit[port][class] = true;
                }
            }
        }
        let out = self.xbar.cycle(input);
        for port in 0..self.shape.ports {
            if let Some(packet) = &mut self.packets[port]
                && input.in_valid[port]
                && out.in_ready[port][usize::from(packet.channel)]
            {
                packet.beats -= 1;
                packet.begun = true;
                if packet.beats == 0 {
                    self.packets[port] = None;
                }
            }
            if out.out_valid[port] && input.out_ready[port] && out.out_last[port] {
                self.freed[port][usize::from(out.out_class[port])] += 1;
            }
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;
    use bellwire_wire::descriptor::MAX_DESCRIPTOR_BYTES;
    use bellwire_wire::header::HEADER_BYTES;
    use bellwire_wire::span::ByteSpan;
    use bellwire_wire::tail::MAX_TAIL_BYTES;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's ports, channels and places, its longest
    /// GETs, and room for one behind its longest PUTs. Those begin with the last byte of a DW and
    /// have a tail.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let Config { nic, crossbar, .. } = Config::prototype();
        let data = ByteSpan::new(3, nic.put_payload.count() as usize).unwrap();
        let bytes = HEADER_BYTES + data.to_dwords().byte_len() + MAX_TAIL_BYTES;
        let put = nic.beats_of(bytes as u64);
        let get = nic.beats_of((HEADER_BYTES + MAX_DESCRIPTOR_BYTES) as u64);
        let expected = [
            ("Beats", get),
            ("Channels", crossbar.channels as u64 + u64::from(crossbar.get_channel)),
            ("Classes", 2),
            ("Credits", crossbar.receive_packets as u64),
            ("Depth", crossbar.channel_packets as u64),
            ("Ports", crossbar.ports as u64),
            ("Room", (crossbar.channel_packets as u64 - 1) * put + get),
        ];
        assert_first_configuration("xbar", &expected);
        assert_eq!(bytes, 164);
    }
}
