//! `tlp_wrap`: makes TLPs of cHPP's packets of one class (S-10 to S-13), as `hardware/tlp_wrap`
//! builds it.
//!
//! ```text
//!   packet   beat, beat, ..                       of any length
//!   TLP      header | 1 to 32 beats | check       a beat each; the check is over all before it
//! ```
//!
//! A packet is cut into segments. A segment leaves when all of it has come, without a gap.

use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::segment::{SEGMENT_BYTES, Segment};
use bellwire_wire::link::tlp::{HEADER_BYTES, OVERHEAD_BYTES, Tlp};

use super::data_reorder::LANES;
use super::line::{Beat, SYMBOLS, bytes_of};
use super::replay_buf::BEAT_WORDS;
use super::stream_fifo::StreamFifo;

const LANE_BITS: usize = LANES.ilog2() as usize;
/// Beats of a segment, at most.
pub const SEGMENT_BEATS: usize = SEGMENT_BYTES / SYMBOLS;

const _: () = assert!(SYMBOLS == LANES && SYMBOLS == HEADER_BYTES);

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a packet is offered.
        in_valid: bool = 1,
        /// It is the last of its packet.
        in_last: bool = 1,
        /// The lane of its last byte; counts with the last beat.
        in_to: u8 = LANE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat of a TLP is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: bool = 1,
        /// A packet has left in the cycle before: its place is free.
        credit: bool = 1,
        /// A beat of a TLP is offered.
        out_valid: bool = 1,
        /// It is the last of its TLP.
        out_last: bool = 1,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// A segment that has come whole.
#[derive(Clone, Copy, Debug)]
struct Whole {
    beats: usize,
    says: Segment,
}

/// The maker of TLPs.
#[derive(Clone, Debug)]
pub struct TlpWrap {
    channel: u8,
    beats: StreamFifo<[u64; BEAT_WORDS]>,
    segments: StreamFifo<Whole>,
    /// Beats of the segment that comes, and whether it begins its packet.
    count: usize,
    first: bool,
    /// What has left of a TLP.
    left: Vec<u8>,
    credit: bool,
}

impl TlpWrap {
    /// A maker for this channel, with room for so many beats and segments.
    ///
    /// # Panics
    /// If a segment does not fit: it would never be whole.
    pub fn new(channel: u8, beats: usize, segments: usize) -> TlpWrap {
        assert!(beats >= SEGMENT_BEATS, "at least {SEGMENT_BEATS} beats");
        TlpWrap {
            channel,
            beats: StreamFifo::new(beats),
            segments: StreamFifo::new(segments),
            count: 0,
            first: true,
            left: Vec::new(),
            credit: false,
        }
    }

    /// What stands at the outputs in this cycle whatever enters.
    pub fn out(&self) -> Out {
        let mut out = Out {
            in_ready: self.beats.in_ready() && self.segments.in_ready(),
            credit: self.credit,
            ..Out::default()
        };
        if let Some(segment) = self.segments.offered() {
            let beat = match self.left.len() / SYMBOLS {
                0 => Some(self.header(segment)),
                beats if beats > segment.beats => {
                    out.out_last = true;
                    Some([u64::from(crc32c(&self.left)), 0])
                }
                _ => self.beats.offered().copied(),
            };
            (out.out_valid, out.out_data) = (beat.is_some(), beat.unwrap_or_default());
        }
        out
    }

    /// The header of a segment.
    fn header(&self, segment: &Whole) -> [u64; BEAT_WORDS] {
        let payload = [0; SEGMENT_BYTES];
        let address = segment.says.emit().expect("a lane fits");
        let payload = &payload[..segment.beats * SYMBOLS];
        let tlp = Tlp { channel: self.channel, requester: 0, tag: 0, address, payload };
        let mut bytes = [0; SEGMENT_BYTES + OVERHEAD_BYTES];
        tlp.emit(&mut bytes).expect("a segment fits into a TLP");
        let bytes = *bytes.first_chunk().expect("a header is there");
        Beat { bytes, k: 0 }.words()
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        let (mut beat, mut whole) = (None, None);
        if input.in_valid && out.in_ready {
            beat = Some(input.in_data);
            self.count += 1;
            if input.in_last || self.count == SEGMENT_BEATS {
                let to = if input.in_last { input.in_to } else { 0 };
                let says = Segment { first: self.first, last: input.in_last, to };
                whole = Some(Whole { beats: self.count, says });
                (self.count, self.first) = (0, input.in_last);
            }
        }
        let leaves = out.out_valid && input.out_ready;
        let is_payload = !self.left.is_empty() && !out.out_last;
        self.credit = false;
        if leaves && out.out_last {
            self.credit = self.segments.offered().is_some_and(|segment| segment.says.last);
            self.left.clear();
        } else if leaves {
            self.left.extend(bytes_of(out.out_data));
        }
        self.beats.clock(beat, leaves && is_payload);
        self.segments.clock(whole, leaves && out.out_last);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The TLPs that leave of a packet of this many beats that ends at lane 5, and the credits.
    fn tlps(beats: usize) -> (Vec<Vec<u8>>, usize) {
        let mut wrap = TlpWrap::new(1, 300, 16);
        let (mut tlps, mut tlp, mut credits) = (Vec::new(), Vec::new(), 0);
        for cycle in 0..3 * beats + 40 {
            let input = In {
                in_valid: cycle < beats,
                in_last: cycle + 1 == beats,
                in_to: 5,
                in_data: [cycle as u64, !0],
                out_ready: !cycle.is_multiple_of(3),
            };
            let out = wrap.cycle(input);
            credits += usize::from(out.credit);
            if out.out_valid && input.out_ready {
                tlp.extend(bytes_of(out.out_data));
                if out.out_last {
                    tlps.push(std::mem::take(&mut tlp));
                }
            }
        }
        (tlps, credits)
    }

    /// A packet becomes TLPs that `crates/wire` reads: its beats in their order, and its end.
    // shows: S-12, S-13
    #[test]
    fn a_packet_becomes_tlps() {
        for beats in [1, 2, 31, 32, 33, 64, 65, 100] {
            let (tlps, credits) = tlps(beats);
            assert_eq!((tlps.len(), credits), (beats.div_ceil(32), 1));
            let mut came = 0;
            for (number, bytes) in tlps.iter().enumerate() {
                let tlp = Tlp::parse(&bytes[..bytes.len() - 12]).expect("the check is right");
                let last = number + 1 == tlps.len();
                let to = if last { 5 } else { 0 };
                let says = Segment { first: number == 0, last, to };
                assert_eq!((tlp.channel, Segment::parse(tlp.address)), (1, Ok(says)));
                for beat in tlp.payload.chunks(16) {
                    assert_eq!(beat[..8], (came as u64).to_le_bytes());
                    came += 1;
                }
            }
            assert_eq!(came, beats);
        }
    }

    /// A segment leaves when all of it has come, and without a gap from then on.
    #[test]
    fn a_segment_leaves_without_a_gap() {
        let mut wrap = TlpWrap::new(0, 64, 4);
        let offered: Vec<bool> = (0..20)
            .map(|cycle| {
                let is_beat = [0, 3, 6].contains(&cycle);
                let in_last = cycle == 6;
                let input = In { in_valid: is_beat, in_last, out_ready: true, ..In::default() };
                wrap.cycle(input).out_valid
            })
            .collect();
        let first = offered.iter().position(|&it| it).expect("it leaves");
        assert_eq!(first, 8);
        assert!(offered[8..13].iter().all(|&it| it) && offered[13..].iter().all(|&it| !it));
    }
}
