//! A host that completes reads in pieces, stores into the window and beside it, reads it, and at
//! times lies in any bit of a header or about lengths; and whoever takes requests late.

use bellwire_model::cycle::pcie_rx::{In, Out, PcieRx};
use bellwire_model::engine::Random;
use bellwire_wire::pcie::tlp::{Completion, Header, Request};

use crate::bench::Load;

/// Numbers of bus and device, and the window's place: the same for a while.
#[derive(Clone, Copy)]
struct Place {
    device: u16,
    base: u64,
}

/// A read that waits for completions: what has not come.
#[derive(Clone, Copy)]
struct Read {
    tag: u8,
    address: u64,
    bytes: u64,
}

/// The receiver behind a host.
pub struct PcieRxLoad {
    receive: PcieRx,
    random: Random,
    /// Numbers that tags can have; of the first ones, those that a read has had.
    tags: u64,
    used: u64,
    reads: Vec<Read>,
    place: Place,
    /// The TLP that comes: its bytes, from the next beat on.
    tlp: Vec<u8>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a beat, a read that leaves, and a request that is taken.
    rates: [u64; 3],
    /// Of eight TLPs, how many are completions, and stores; the others are of all kinds.
    kinds: [u64; 2],
    /// Of 64 TLPs, how many have another bit, and another length.
    wrong: u64,
}

impl PcieRxLoad {
    /// A receiver without reads.
    pub fn new(tags: usize, dropped_bits: u32, seed: u64) -> PcieRxLoad {
        PcieRxLoad {
            receive: PcieRx::new(tags, dropped_bits),
            random: Random::new(seed),
            tags: tags.next_power_of_two().max(2) as u64,
            used: 0,
            reads: Vec::new(),
            place: Place { device: 0, base: 0 },
            tlp: Vec::new(),
            mood: Mood { rates: [8; 3], kinds: [4, 2], wrong: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [(); 3].map(|()| one_of(&[1, 4, 8, 8])),
            kinds: [one_of(&[0, 4, 8]), one_of(&[0, 4, 8])],
            wrong: one_of(&[0, 0, 4, 32]),
        };
        if random.below(4) == 0 {
            let high = if random.below(2) == 0 { 0 } else { random.below(1 << 32) };
            self.place = Place {
                device: random.below(1 << 13) as u16,
                base: high << 16 | random.below(1 << 16),
            };
        }
    }

    /// A piece of a read that waits; without one, or at times, something about any tag.
    fn complete(&mut self) -> Header {
        let random = &mut self.random;
        let requester = self.place.device << 3 | random.below(8) as u16;
        let mut says = Completion {
            is_poisoned: random.below(16) == 0,
            class: random.below(8) as u8,
            attributes: random.below(8) as u8,
            completer: random.below(1 << 16) as u16,
            status: 0,
            byte_count: 1 + random.below(4096) as u16,
            requester,
            tag: random.below(self.tags) as u8,
            lower: random.below(128) as u8,
            dwords: random.below(20) as u16,
        };
        let count = self.reads.len() as u64;
        if count > 0 && random.below(16) > 0 {
            let at = random.below(count) as usize;
            let read = &mut self.reads[at];
            let longest = if random.below(8) == 0 { 64 } else { 3 };
            let cut = 64 * (1 + random.below(longest)) - read.address % 64;
            let bytes = read.bytes.min(cut);
            says.tag = read.tag;
            says.lower = (read.address % 128) as u8;
            says.byte_count = read.bytes as u16;
            says.dwords = (read.address % 4 + bytes).div_ceil(4) as u16;
            (read.address, read.bytes) = (read.address + bytes, read.bytes - bytes);
            if read.bytes == 0 {
                self.reads.swap_remove(at);
            }
        }
        if random.below(16) == 0 {
            says.status = random.below(8) as u8;
            says.dwords *= random.below(8) as u16 / 7;
        }
        Header::Completion(says)
    }

    /// A store or a read of the host, mostly of the window.
    fn request(&mut self, is_write: bool) -> Header {
        let random = &mut self.random;
        let page = match random.below(8) {
            0 => random.below(1 << 48),
            _ => self.place.base,
        };
        let whole = random.below(2) == 0;
        let mut enables = || if whole { 15 } else { random.below(16) as u8 };
        let (first, last) = (enables(), enables());
        let dwords = if random.below(2) == 0 { 2 } else { 1 + random.below(20) as u16 };
        Header::Request(Request {
            is_write,
            is_poisoned: random.below(16) == 0,
            class: random.below(8) as u8,
            attributes: random.below(8) as u8,
            requester: random.below(1 << 16) as u16,
            tag: random.below(1 << 8) as u8,
            address: page << 16 | random.below(1 << 14) << 2,
            dwords: if random.below(3) == 0 { 1 } else { dwords },
            first,
            last,
        })
    }

    /// The next TLP.
    fn begin(&mut self) {
        let kind = self.random.below(8);
        let [completions, stores] = self.mood.kinds;
        let header = if kind < completions {
            self.complete()
        } else if kind < completions.max(stores) || self.random.below(2) == 0 {
            self.request(true)
        } else {
            self.request(false)
        };
        let mut bytes = vec![0; header.buffer_len()];
        header.emit(&mut bytes).expect("all numbers fit");
        let random = &mut self.random;
        if random.below(64) < self.mood.wrong {
            // Another type, of those that there are, or any other bit.
            match random.below(3) {
                0 => bytes[0] = random.below(256) as u8,
                1 => {
                    bytes[0] = [0x02, 0x42, 0x04, 0x44, 0x4c, 0x30, 0x74][random.below(7) as usize]
                }
                _ => bytes[random.below(12) as usize] ^= 1 << random.below(8),
            }
            bytes.resize(if bytes[0] & 0x20 != 0 { 16 } else { 12 }, 0);
        }
        let length = usize::from(bytes[2] & 3) << 8 | usize::from(bytes[3]);
        let payload = if bytes[0] & 0x40 == 0 { 0 } else { (length + 1023) % 1024 + 1 };
        let mut dwords = bytes.len() / 4 + payload;
        if random.below(64) < self.mood.wrong {
            dwords = (dwords + random.below(11) as usize).saturating_sub(5).max(1);
        }
        let header = bytes.len();
        bytes.resize(4 * dwords, 0);
        for byte in bytes.iter_mut().skip(header) {
            *byte = random.below(256) as u8;
        }
        self.tlp = bytes;
    }

    /// The beat that is offered.
    fn offer(&mut self, input: &mut In) {
        if self.tlp.is_empty() {
            self.begin();
        }
        let count = self.tlp.len().min(16);
        let mut bytes = [self.random.word() as u8; 16];
        bytes[..count].copy_from_slice(&self.tlp[..count]);
        input.in_valid = true;
        input.in_last = self.tlp.len() == count;
        input.in_empty = ((16 - count) / 4) as u8;
        let (words, _) = bytes.as_chunks();
        input.in_data = [0, 1].map(|word: usize| u64::from_le_bytes(words[word]));
    }

    /// A read leaves for the host.
    fn read(&mut self, input: &mut In) {
        let random = &mut self.random;
        let tag = if self.used < self.tags { self.used } else { random.below(self.tags) } as u8;
        self.used += 1;
        let address = random.below(1 << 12);
        let bytes = match random.below(16) {
            0 => 4096,
            1 => 1 + random.below(4096),
            _ => 1 + random.below(300),
        };
        self.reads.retain(|read| read.tag != tag);
        self.reads.push(Read { tag, address, bytes });
        input.read_valid = true;
        input.read_tag = tag;
        input.read_end = ((address + bytes) % 128) as u8;
    }
}

impl Load for PcieRxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 && self.tlp.is_empty() {
            self.change_mood();
        }
        let [comes, reads, takes] = self.mood.rates;
        let Place { device, base } = self.place;
        let mut input = In { device, base, ..In::default() };
        // Where the read of a tag ends is known once there was one.
        if self.used < self.tags {
            self.read(&mut input);
            return (input, self.receive.cycle(input));
        }
        if self.random.below(8) < comes {
            self.offer(&mut input);
        }
        if self.random.below(64) < reads {
            self.read(&mut input);
        }
        input.request_ready = self.random.below(8) < takes;
        let out = self.receive.cycle(input);
        if out.in_ready && input.in_valid {
            self.tlp.drain(..self.tlp.len().min(16));
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's tags.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let tags = Config::prototype().nic.tags as u64;
        assert_first_configuration("pcie_rx", &[("DroppedWidth", 32), ("Tags", tags)]);
    }
}
