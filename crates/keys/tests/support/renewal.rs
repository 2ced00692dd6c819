//! Two functions with a key that send to each other all the time, over a network that loses and
//! delays frames, while their sessions end one after the other.

use bellwire_keys::{Keys, Limits, Sessions};
use bellwire_wire::frame::header::{FrameKind, MAGIC};
use bellwire_wire::frame::keyed::{KEYED_HEADER_BYTES, SEALED_OVERHEAD_BYTES};

use super::Chance;

/// Bytes of a frame before it is sealed.
const BYTES: usize = 60;

/// A frame on its way.
struct Late {
    at_ns: u64,
    to: usize,
    bytes: Vec<u8>,
    /// It was given to be sealed, and did not come out of a handshake.
    carries: bool,
}

/// Each side seals a frame every `step_ns`, until each has sealed `count` of them. Of handshake
/// frames one in four is lost; every other frame comes up to 20 steps later, in any order.
/// Returns how many sessions began. The error says which frame had to wait or was lost.
pub fn run(limits: Limits, step_ns: u64, count: u64) -> Result<u64, String> {
    let mut chance = Chance(5);
    let mut sides: [Sessions<u8>; 2] = [1, 2].map(|side| {
        let mut entropy = Chance(side);
        let fill = Box::new(move |bytes: &mut [u8]| bytes.fill_with(|| entropy.next() as u8));
        Sessions::new(Keys::shared(&[7; 32]), limits, side == 1, fill)
    });
    let mut now_ns = 1 << 33;
    let mut wire: Vec<Late> = Vec::new();
    let mut sealed = [0; 2];
    while sealed.iter().any(|&of| of < count) {
        now_ns += step_ns;
        for from in 0..2 {
            let to = 1 - from;
            let mut buffer = vec![0; KEYED_HEADER_BYTES];
            buffer.extend_from_slice(&[MAGIC, FrameKind::Data as u8, to as u8, from as u8]);
            buffer.resize(BYTES + SEALED_OVERHEAD_BYTES, 0);
            match sides[from].seal(to as u8, &mut buffer, BYTES, &[], now_ns) {
                Some(length) => {
                    sealed[from] += 1;
                    buffer.truncate(length);
                    let at_ns = now_ns + chance.below(20 * step_ns);
                    wire.push(Late { at_ns, to, bytes: buffer, carries: true });
                }
                None if sealed[from] == 0 => {}
                None => return Err(format!("{from} waits after {} frames", sealed[from])),
            }
        }
        let due: Vec<Late> = wire.extract_if(.., |frame| frame.at_ns <= now_ns).collect();
        for Late { to, bytes, carries, .. } in due {
            let opened = sides[to].open(1 - to as u8, &bytes, now_ns).is_some();
            if carries && !opened {
                return Err(format!("a frame to {to} is lost after {} of its own", sealed[to]));
            }
        }
        for side in &mut sides {
            while let Some((to, bytes)) = side.poll_transmit() {
                if chance.below(4) > 0 {
                    let at_ns = now_ns + chance.below(20 * step_ns);
                    wire.push(Late { at_ns, to: to as usize, bytes, carries: false });
                }
            }
        }
    }
    Ok(sides.iter().map(|side| side.counters().sessions_asked).sum())
}

/// Sessions that end by the count of their frames, and by time.
pub fn cases() -> [(Limits, u64); 2] {
    let never = u64::MAX / 2;
    let by_count = Limits {
        renew_ns: never,
        end_ns: never,
        renew_frames: 1_000,
        end_frames: 10_000,
        silence_ns: never,
    };
    let by_time = Limits {
        renew_ns: 1_000_000_000,
        end_ns: 3_000_000_000,
        renew_frames: never,
        end_frames: never,
        silence_ns: never,
    };
    [(by_count, 100_000), (by_time, 1_000_000)]
}
