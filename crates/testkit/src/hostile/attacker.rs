//! The process that attacks.

use super::Attack;
use super::victim::{ATTACKER_NODE, VICTIM_NODE};
use crate::conformance::bytes::Random;
use crate::conformance::child::{DEVICE, told};
use crate::conformance::patience;
use bellwire::{FunctionAddress, Status};
use bellwire_device::{LinkId, PacketFlags, PacketHeader, Sink, Transport, Verdict};
use bellwire_ring::memory::View;
use bellwire_shm::ShmDevice;
use bellwire_shm::testing::{Intruder, Reply};
use std::time::{Duration, Instant};

/// The target: function 0 of the victim.
pub const VICTIM: FunctionAddress = FunctionAddress { node: VICTIM_NODE, function: 0 };
/// The address that the attacker claims to have.
pub const ATTACKER: FunctionAddress = FunctionAddress { node: ATTACKER_NODE, function: 0 };

/// The attacker's main function.
pub fn play(attack: Attack, time: Duration, seed: u64) {
    let device = told(DEVICE);
    let job = device.split_once(':').expect("a device name").1;
    let mut random = Random(seed);
    let until = Instant::now() + time;
    match attack {
        Attack::Pair | Attack::Pool => {
            let mut links = 0;
            while Instant::now() < until {
                let deadline = until.min(Instant::now() + Duration::from_millis(120));
                links += u64::from(scribble(job, attack == Attack::Pool, &mut random, deadline));
            }
            assert!(links > 0, "the attacker never got a link");
        }
        Attack::Socket => super::socket::attack(job, &mut random, until),
        Attack::Packets => packets(job, &mut random, until),
    }
}

/// A proper link. `None`: this attempt failed.
pub fn intrude(job: &str, until: Instant) -> Option<Intruder> {
    let mut intruder = Intruder::connect(job, VICTIM).ok()??;
    super::socket::send(intruder.socket(), &Intruder::hello(ATTACKER), &intruder.descriptors());
    while Instant::now() < until {
        match intruder.read() {
            Reply::Welcome => return Some(intruder),
            Reply::Nothing => std::thread::yield_now(),
            Reply::Other | Reply::Closed => return None,
        }
    }
    None
}

/// Makes a link and writes random words over its memory until it is closed, or until the deadline.
/// Returns whether there was a link.
fn scribble(job: &str, pool: bool, random: &mut Random, until: Instant) -> bool {
    let Some(mut intruder) = intrude(job, until) else { return false };
    let style = random.below(4);
    while Instant::now() < until {
        let mut memory = intruder.own_memory();
        if pool {
            memory.extend(intruder.shared_memory());
        }
        for part in memory {
            for _ in 0..64 {
                write(part, style, random);
            }
        }
        match intruder.read() {
            Reply::Closed => break,
            _ if random.below(4_000) == 0 => break,
            _ => {}
        }
    }
    true
}

/// Writes one word somewhere, in one of several styles.
fn write(part: View<'_>, style: usize, random: &mut Random) {
    let words = part.len() / 8;
    // Control words are at the beginning of a segment.
    let word = match random.below(3) {
        0 => random.below(words.min(64)),
        1 => random.below(words.min(512)),
        _ => random.below(words),
    };
    let at = word * 8;
    let old = || {
        let mut bytes = [0; 8];
        part.read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    };
    random.below(1);
    let value = match style {
        // Any value.
        0 => random.0,
        // A value near the current one.
        1 => old().wrapping_add(random.0 % 5).wrapping_sub(2),
        // One flipped bit.
        2 => old() ^ 1 << (random.0 % 64),
        // Small numbers, and the largest.
        _ => [0, 1, 2, 3, 255, 65_535, u64::MAX, u64::MAX - 1][random.0 as usize % 8],
    };
    part.write(at, &value.to_le_bytes());
}

/// How long a link may refuse all packets before the attacker tries another one.
const REFUSED: Duration = Duration::from_millis(250);

/// A sink that takes everything.
#[derive(Default)]
struct Abyss {
    /// The victim has closed a link.
    is_closed: bool,
}

impl Sink for Abyss {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
        Verdict::Taken
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {
        self.is_closed = true;
    }
}

/// Sends packets that a proper engine would not send, over proper links of the device: until the
/// time has passed and some were sent.
fn packets(job: &str, random: &mut Random, until: Instant) {
    let mut sent = 0u64;
    let last = until + patience::limit();
    let goes_on = |sent| Instant::now() < until || sent <= 100;
    while goes_on(sent) {
        assert!(Instant::now() < last, "only {sent} packets left the attacker");
        let device = ShmDevice::open(job, Default::default(), Some(ATTACKER_NODE));
        let Ok(device) = device else { continue };
        let mut transport = device.open_function(0, 16).expect("a function");
        let link = transport.link(VICTIM, Duration::from_secs(1)).expect("a link");
        let mut abyss = Abyss::default();
        let mut since = Instant::now();
        while goes_on(sent) && !abyss.is_closed && since.elapsed() < REFUSED {
            let (header, payload) = packet(random);
            let limit = transport.limits().packet_bytes;
            let payload = &payload[..payload.len().min(limit)];
            let mut is_refused = false;
            // Earlier packets decide what a random packet means, so some are sent many times.
            for _ in 0..1 + random.below(3) {
                match transport.send(link, header, &[], View::of(payload)) {
                    Ok(_) => {
                        since = Instant::now();
                        sent += 1;
                    }
                    Err(_) => is_refused = true,
                }
            }
            if random.below(8) == 0 || is_refused {
                transport.poll(&mut abyss, 64);
            }
            if random.below(500) == 0 {
                let number = random.below(8) as u32;
                let gate = [bellwire_device::Gate::Open, bellwire_device::Gate::Stopped];
                transport.set_gate(number, gate[random.below(2)]);
            }
        }
    }
}

/// A packet of any kind, sometimes with plausible fields.
fn packet(random: &mut Random) -> (PacketHeader, Vec<u8>) {
    let small = |random: &mut Random| match random.below(4) {
        0 => random.below(10) as u64,
        1 => (1 << 31) + random.below(3) as u64,
        2 => [u64::MAX, 1 << 63, 1 << 40, 4096][random.below(4)],
        _ => {
            random.below(1);
            random.0
        }
    };
    let header = PacketHeader {
        kind: random.below(16) as u8,
        flags: PacketFlags::from_bits_truncate(random.below(8) as u8),
        aux: small(random) as u16,
        length: 0,
        destination: small(random) as u32,
        source: small(random) as u32,
        argument: small(random),
    };
    let mut payload = Vec::new();
    for _ in 0..random.below(9) {
        payload.extend(small(random).to_le_bytes());
    }
    let bytes = [0, 0, 3, 100, 7_000][random.below(5)];
    payload.resize(payload.len() + bytes, 0x5a);
    (header, payload)
}
