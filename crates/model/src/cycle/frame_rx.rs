//! `frame_rx`: takes frames off TLPs, checks them (S-16), and tells link packets apart, as
//! `hardware/frame_rx` builds it.

use std::collections::VecDeque;

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::llp::{Llp, SEQUENCES, STP};

use super::line::{Beat, SYMBOLS, UPPER};
use super::replay_buf::{BEAT_WORDS, SEQUENCE_BITS};

/// Bytes of a frame before the TLP.
const BEFORE: usize = 3;
/// Bytes behind it.
const BEHIND: usize = 5;
/// The special symbols of the upper half if it is a link packet.
const LINK_PACKET: u16 = 0x81;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// Symbols have come.
        line_valid: bool = 1,
        /// Which of them are special.
        line_k: u16 = SYMBOLS,
        /// The symbols.
        line_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A beat of a TLP passes.
        out_valid: bool = 1,
        /// It is the last one of its frame.
        out_last: bool = 1,
        /// DWs at its end that are empty; they are zero.
        out_empty: u8 = 2,
        /// The beat; zero if none passes.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A frame has come: its last beat passes.
        frame_valid: bool = 1,
        /// Its CRC or a symbol is wrong.
        frame_damaged: bool = 1,
        /// The number of the frame whose beat passes, and zero if none does. If the frame is
        /// damaged, this may be, too.
        frame_sequence: u16 = SEQUENCE_BITS,
        /// A link packet has come, unchecked.
        dllp_valid: bool = 1,
        /// Its bytes; zero if none has come.
        dllp_data: u64 = 64,
    }
}

/// A beat that passes.
#[derive(Clone, Copy, Debug)]
struct Passing {
    data: [u8; SYMBOLS],
    empty: usize,
    sequence: u16,
    /// With the last beat, whether the frame is damaged.
    damaged: Option<bool>,
}

/// The receiver of frames.
///
/// It does not wait for a frame to be whole: the verdict comes with the last beat (cut-through). A
/// beat passes one cycle after the symbols that complete it; what one beat of the line leaves over
/// passes in the cycle behind that.
#[derive(Clone, Debug)]
pub struct FrameRx {
    /// The frame that comes, in whole beats.
    frame: Option<Vec<u8>>,
    passing: VecDeque<Passing>,
    max_beats: usize,
}

impl FrameRx {
    /// A receiver of frames of up to `max_beats` beats.
    ///
    /// # Panics
    /// If that is less than 2.
    pub fn new(max_beats: usize) -> FrameRx {
        assert!(max_beats >= 2, "a frame has two beats at least");
        FrameRx { frame: None, passing: VecDeque::new(), max_beats }
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();
        if let Some(beat) = self.passing.pop_front() {
            out.out_valid = true;
            out.out_last = beat.damaged.is_some();
            out.out_empty = beat.empty as u8;
            out.out_data = Beat { bytes: beat.data, k: 0 }.words();
            out.frame_valid = out.out_last;
            out.frame_damaged = beat.damaged == Some(true);
            out.frame_sequence = beat.sequence;
        }
        if input.line_valid {
            let beat = Beat::new(input.line_data, input.line_k);
            if beat.k >> UPPER == LINK_PACKET {
                out.dllp_valid = true;
                out.dllp_data = input.line_data[1];
            }
            if let Some(frame) = self.frame.take() {
                self.frame = self.go_on(frame, beat);
            }
            // What begins and ends in one beat is no frame.
            if beat.k == 1 && beat.bytes[0] == STP {
                self.frame = Some(beat.bytes.to_vec());
            }
        }
        out
    }

    /// The next beat of a frame; the frame, if it has not ended.
    fn go_on(&mut self, mut frame: Vec<u8>, beat: Beat) -> Option<Vec<u8>> {
        let passed = frame.len() - SYMBOLS;
        let sequence = u16::from_be_bytes([frame[1], frame[2]]) % SEQUENCES;
        let end = end_of(beat.k);
        frame.extend(&beat.bytes[..end.unwrap_or(SYMBOLS)]);
        let goes_on = beat.k == 0 && frame.len() < self.max_beats * SYMBOLS;
        let (tlp, damaged) = match end {
            Some(_) => (&frame[BEFORE..frame.len() - BEHIND], Some(Llp::parse(&frame).is_err())),
            // A symbol that does not belong there, or no end in sight.
            None => (&frame[BEFORE..][..passed + SYMBOLS], (!goes_on).then_some(true)),
        };
        let mut rest = tlp[passed..].chunks(SYMBOLS).peekable();
        while let Some(bytes) = rest.next() {
            let mut data = [0; SYMBOLS];
            data[..bytes.len()].copy_from_slice(bytes);
            let empty = (SYMBOLS - bytes.len()) / DW_BYTES;
            let damaged = damaged.filter(|_| rest.peek().is_none());
            self.passing.push_back(Passing { data, empty, sequence, damaged });
        }
        goes_on.then_some(frame)
    }
}

/// Where a frame ends in a beat with these special symbols: behind a whole DW. Behind that may be a
/// link packet.
fn end_of(k: u16) -> Option<usize> {
    let (lower, upper) = (k % (1 << UPPER), k >> UPPER);
    let end = |k: u16| (1..=2).map(|dw| dw * DW_BYTES).find(|end| k == 1 << (end - 1));
    if lower == 0 { end(upper).map(|end| UPPER + end) } else { end(lower) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Random;

    /// The beats of a frame.
    fn beats_of(sequence: u16, tlp: &[u8]) -> Vec<Beat> {
        let frame = Llp { sequence, tlp };
        let mut bytes = vec![0; frame.buffer_len()];
        frame.emit(&mut bytes).unwrap();
        let last = bytes.len() - 1;
        let one = |(at, chunk): (usize, &[u8])| {
            let mut beat = Beat { k: u16::from(at == 0), ..Beat::default() };
            beat.bytes[..chunk.len()].copy_from_slice(chunk);
            beat.k |= if at == last / SYMBOLS { 1 << (last % SYMBOLS) } else { 0 };
            beat
        };
        bytes.chunks(SYMBOLS).enumerate().map(one).collect()
    }

    /// All that comes out of beats, and of idle cycles behind them.
    fn received(beats: &[Beat]) -> Vec<Out> {
        let mut receiver = FrameRx::new(34);
        let idle = [Beat::default(); 3];
        let one = |beat: &Beat| {
            receiver.cycle(In { line_valid: true, line_k: beat.k, line_data: beat.words() })
        };
        beats.iter().chain(&idle).map(one).collect()
    }

    /// The verdicts: the number, and whether the frame is damaged.
    fn verdicts(beats: &[Beat]) -> Vec<(u16, bool)> {
        let outs = received(beats);
        let ended = outs.iter().filter(|out| out.frame_valid);
        ended.map(|out| (out.frame_sequence, out.frame_damaged)).collect()
    }

    /// A TLP of each length comes out as it went in. Each beat passes one cycle after the symbols
    /// that complete it. The next frame follows without a gap.
    #[test]
    fn tlps_come_out_as_they_went_in() {
        let tlp: Vec<u8> = (0..=255).cycle().take(532).collect();
        for dws in 3..=133 {
            let tlp = &tlp[..dws * DW_BYTES];
            let beats = beats_of(7, tlp);
            let outs = received(&[beats.clone(), beats].concat());
            let passed: Vec<&Out> = outs.iter().filter(|out| out.out_valid).collect();
            assert_eq!(passed.len(), 2 * dws.div_ceil(4));
            let bytes: Vec<u8> =
                passed.iter().flat_map(|out| Beat::new(out.out_data, 0).bytes).collect();
            for half in bytes.chunks(bytes.len() / 2) {
                assert_eq!(half[..tlp.len()], *tlp);
                assert!(half[tlp.len()..].iter().all(|&byte| byte == 0));
            }
            let last = passed.last().unwrap();
            assert_eq!(usize::from(last.out_empty), (4 - dws % 4) % 4);
            assert_eq!(
                (last.frame_valid, last.frame_damaged, last.frame_sequence),
                (true, false, 7)
            );
            assert!(!outs[1].out_valid && outs[2].out_valid);
        }
    }

    /// Every flipped bit of frames of each shape is refused, be it in a symbol or in the mark of a
    /// special one; only in the half behind the end it does no harm. If STP is hit there is no
    /// frame at all. So is every burst of up to 32 bits, drawn at random.
    #[test]
    fn no_flipped_bit_and_no_burst_passes() {
        let mut random = Random::new(1);
        for dws in 5..=12 {
            let tlp: Vec<u8> = (0..dws * DW_BYTES).map(|_| random.word() as u8).collect();
            let sound = beats_of(0xabc, &tlp);
            assert_eq!(verdicts(&sound), [(0xabc, false)]);
            let bits = 8 * (tlp.len() + 8);
            let flipped = |from: usize, pattern: u32| {
                let mut beats = sound.clone();
                for bit in (0..32).filter(|bit| pattern >> bit & 1 == 1 && from + bit < bits) {
                    let at = from + bit;
                    beats[at / 128].bytes[at % 128 / 8] ^= 1 << (at % 8);
                }
                beats
            };
            let is_refused = |beats: &[Beat]| verdicts(beats).iter().all(|&(_, damaged)| damaged);
            for bit in 0..bits {
                assert!(is_refused(&flipped(bit, 1)), "{dws} DW, bit {bit}");
                for _ in 0..32 {
                    let pattern = random.word() as u32 | 1;
                    assert!(is_refused(&flipped(bit, pattern)), "{dws} DW, {pattern:x} at {bit}");
                }
            }
            for symbol in 0..bits / 8 {
                let mut beats = sound.clone();
                beats[symbol / SYMBOLS].k ^= 1 << (symbol % SYMBOLS);
                assert!(is_refused(&beats), "{dws} DW, mark {symbol}");
            }
        }
    }

    /// A frame that another one cuts off is damaged, and the other one is sound. So is a frame that
    /// is longer than any may be.
    #[test]
    fn a_frame_without_an_end_is_damaged() {
        let (one, other) = (beats_of(1, &[5; 60]), beats_of(2, &[6; 20]));
        assert_eq!(verdicts(&[&one[..3], &other[..]].concat()), [(1, true), (2, false)]);
        let long = [&one[..3], &[Beat::default(); 40], &other[..]].concat();
        assert_eq!(verdicts(&long), [(1, true), (2, false)]);
        let passed = received(&long).iter().filter(|out| out.out_valid).count();
        assert_eq!(passed, 33 + 2);
    }

    /// A link packet comes out in its cycle: behind a frame, alone, and also out of a frame that it
    /// damages.
    #[test]
    fn link_packets_come_out() {
        let packet = Beat::new([0, 0x1122_3344_5566_7788], 0x8100);
        let mut beats = beats_of(3, &[7; 28]);
        let end = beats.last_mut().unwrap();
        end.bytes[UPPER..].copy_from_slice(&packet.bytes[UPPER..]);
        end.k |= packet.k;
        let beats = [&beats[..], &[packet], &beats[..1], &[packet]].concat();
        let outs = received(&beats);
        let came: Vec<usize> = (0..outs.len()).filter(|&at| outs[at].dllp_valid).collect();
        assert_eq!(came, [2, 3, 5]);
        assert!(came.iter().all(|&at| outs[at].dllp_data == 0x1122_3344_5566_7788));
        assert_eq!(verdicts(&beats), [(3, false), (3, true)]);
    }
}
