//! The cycle blocks of the link put on the line what the link that goes by events puts there.

use super::*;

use crate::cycle::frame_tx::{self, FrameTx};
use crate::cycle::line::{Beat, SYMBOLS, UPPER};
use crate::engine::Random;
use crate::smp::bench::{Lengths, Machine};

/// What an end sends: the bytes of a frame, or of a link packet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Frame(Vec<u8>),
    Packet([u8; DLLP_BYTES]),
}

/// All that end 0 sends, in the order of the line. The lanes towards it are bad, so that it sends
/// NAKs. Some of its frames are damaged once they are noted, so that it sends them again.
fn sent_by_events(seed: u64, random: &mut Random) -> Vec<Item> {
    let mut running = Machine::new(&Config::recommended(), seed);
    let chances = [Chance::new(2e-5); MAX_LANES];
    running.model.link.disturb(0, chances, &mut running.schedule);
    for (end, channel) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        running.stimulate(end, channel, Lengths::Random, 150);
    }
    let mut items = Vec::new();
    let counted = |running: &Machine| {
        let counters = running.model.link.end(0).counters;
        (counters.frames, counters.link_packets)
    };
    loop {
        let before = counted(&running);
        if !running.step(Time::NEVER) {
            break;
        }
        let (now, far) = (counted(&running), &mut running.model.link.ends[1]);
        match (now.0 - before.0, now.1 - before.1) {
            (0, 0) => {}
            (1, 0) => {
                let bytes = &mut far.frames.back_mut().unwrap().bytes;
                items.push(Item::Frame(bytes.clone()));
                bytes[10] ^= u8::from(random.below(30) == 0);
            }
            (0, 1) => items.push(Item::Packet(far.link_packets.back().unwrap().1)),
            more => panic!("{more:?} at once"),
        }
    }
    assert_eq!((running.missing(), running.model.mismatches), (0, 0));
    assert!(running.model.link.end(0).counters.repeated > 10);
    items
}

/// What the framer puts on the line if it gets these TLPs and link packets in this order.
fn sent_by_cycles(items: &[Item], random: &mut Random) -> Vec<Beat> {
    let mut framer = FrameTx::new();
    let mut line = Vec::new();
    let mut cycle = |input: frame_tx::In| {
        let line_ready = random.below(8) > 0;
        let out = framer.cycle(frame_tx::In { line_ready, ..input });
        if out.line_valid && line_ready {
            line.push(Beat::new(out.line_data, out.line_k));
        }
        out
    };
    for item in items {
        match item {
            Item::Packet(bytes) => {
                let dllp_data = u64::from_le_bytes(*bytes);
                let input = frame_tx::In { dllp_valid: true, dllp_data, ..Default::default() };
                while !cycle(input).dllp_ready {}
            }
            Item::Frame(bytes) => {
                let Llp { sequence, tlp } = Llp::parse(bytes).unwrap();
                let count = tlp.len().div_ceil(SYMBOLS);
                for (at, beat) in tlp.chunks(SYMBOLS).enumerate() {
                    // The bytes behind the TLP do not count.
                    let bytes = std::array::from_fn(|at| beat.get(at).copied().unwrap_or(0xee));
                    let input = frame_tx::In {
                        in_valid: true,
                        in_last: at + 1 == count,
                        in_sequence: sequence,
                        in_data: Beat { bytes, k: 0 }.words(),
                        ..Default::default()
                    };
                    while !cycle(input).in_ready {}
                }
            }
        }
    }
    for _ in 0..64 {
        cycle(frame_tx::In::default());
    }
    line
}

/// The frames and link packets on a line, from one special symbol to the next. Between them it is
/// idle.
fn items_of(line: &[Beat]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for (at, beat) in line.iter().enumerate() {
        for symbol in 0..SYMBOLS {
            let (byte, is_special) = (beat.bytes[symbol], beat.k >> symbol & 1 == 1);
            match &mut open {
                None if is_special => {
                    assert!(symbol == 0 || symbol == UPPER, "beat {at} begins at {symbol}");
                    open = Some(vec![byte]);
                }
                None => assert_eq!(byte, 0, "beat {at}"),
                Some(bytes) => {
                    bytes.push(byte);
                    if is_special {
                        let bytes = open.take().unwrap();
                        items.push(match bytes[0] {
                            FIRST_SYMBOL => Item::Frame(bytes),
                            _ => Item::Packet(bytes.try_into().unwrap()),
                        });
                    }
                }
            }
        }
    }
    assert_eq!(open, None);
    items
}

/// Frames of all lengths in both channels, new ones and repeated ones, ACKs, NAKs and updates: the
/// framer puts the very bytes on the line, in the same order, though the line stalls.
// shows: S-16
#[test]
fn the_line_has_the_bytes_of_the_link_that_goes_by_events() {
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let items = sent_by_events(seed, &mut random);
        let line = sent_by_cycles(&items, &mut random);
        let found = items_of(&line);
        let differs = items.iter().zip(&found).position(|(one, other)| one != other);
        assert_eq!((differs, found.len()), (None, items.len()));
        let packets = items.iter().filter(|item| matches!(item, Item::Packet(_))).count();
        assert!(packets > 100 && items.len() - packets > 300, "{packets} of {}", items.len());
    }
}
