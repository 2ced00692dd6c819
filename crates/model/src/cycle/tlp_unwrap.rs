//! `tlp_unwrap`: makes cHPP's packets of one class of TLPs (S-10 to S-13), as `hardware/tlp_unwrap`
//! builds it.
//!
//! A packet leaves when all of its segments have come and each check is right. A TLP that the link
//! marks bad comes again. One that is wrong otherwise takes its packet with it.

use std::collections::VecDeque;

use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::segment::{SEGMENT_BYTES, Segment};

use super::data_reorder::LANES;
use super::line::{SYMBOLS, bytes_of};
use super::replay_buf::BEAT_WORDS;

const LANE_BITS: usize = LANES.ilog2() as usize;
/// DWs that the beat with the check lacks.
const BEHIND_CHECK: u8 = 3;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a TLP is offered.
        in_valid: bool = 1,
        /// It is the last of its TLP.
        in_last: bool = 1,
        /// With that: the TLP will come again.
        in_bad: bool = 1,
        /// DWs at its end that are empty.
        in_empty: u8 = 2,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat of a packet is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: bool = 1,
        /// A packet, or a part of one, was dropped in the cycle before, and does not come again.
        dropped: bool = 1,
        /// A beat of a packet is offered.
        out_valid: bool = 1,
        /// It is the last of its packet.
        out_last: bool = 1,
        /// The lane of its last byte; zero unless it is the last beat.
        out_to: u8 = LANE_BITS,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// A beat that is kept.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    last: bool,
    to: u8,
    data: [u64; BEAT_WORDS],
}

/// The maker of packets, with room for so many beats.
#[derive(Clone, Debug)]
pub struct TlpUnwrap {
    room: usize,
    /// Beats of whole packets, of the packet that comes, and of its segment that comes.
    whole: VecDeque<Kept>,
    packet: Vec<Kept>,
    segment: Vec<Kept>,
    /// Bytes of the TLP that has begun to come.
    tlp: Vec<u8>,
    /// It is too long for this block, or for what its header says.
    spoilt: bool,
    /// A packet has begun, and all of it was right so far.
    mid: bool,
    dropped: bool,
    out_valid: bool,
}

impl TlpUnwrap {
    /// A maker that has seen nothing.
    pub fn new(room: usize) -> TlpUnwrap {
        TlpUnwrap {
            room,
            whole: VecDeque::new(),
            packet: Vec::new(),
            segment: Vec::new(),
            tlp: Vec::new(),
            spoilt: false,
            mid: false,
            dropped: false,
            out_valid: false,
        }
    }

    /// What stands at the outputs in this cycle whatever enters.
    pub fn out(&self) -> Out {
        // If no packet can leave, what comes is too long.
        let in_ready = self.used() < self.room || self.whole.is_empty() || !self.expects_payload();
        let mut out = Out { in_ready, dropped: self.dropped, ..Out::default() };
        if let Some(kept) = self.whole.front().filter(|_| self.out_valid) {
            (out.out_valid, out.out_last) = (true, kept.last);
            (out.out_to, out.out_data) = (kept.to, kept.data);
        }
        out
    }

    /// Beats that are kept.
    fn used(&self) -> usize {
        self.whole.len() + self.packet.len() + self.segment.len()
    }

    /// Bytes of the payload that the header announces, if they can be a segment.
    fn announced(&self) -> Option<usize> {
        let [_, _, high, low, ..] = *self.tlp.first_chunk::<SYMBOLS>()?;
        let bytes = 4 * (usize::from(high & 3) << 8 | usize::from(low));
        (bytes > 0 && bytes <= SEGMENT_BYTES && bytes.is_multiple_of(SYMBOLS)).then_some(bytes)
    }

    /// The next beat of the TLP is one of its payload.
    fn expects_payload(&self) -> bool {
        !self.spoilt && self.announced().is_some_and(|bytes| self.tlp.len() < SYMBOLS + bytes)
    }

    /// What the header says of the packet.
    fn says(&self) -> Segment {
        let low = self.tlp.get(SYMBOLS - 1).copied().unwrap_or_default();
        Segment::parse(u64::from(low & 0x3f)).expect("these are all bits that are used")
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        let is_full = self.used() == self.room;
        if self.out_valid && input.out_ready {
            self.whole.pop_front();
        }
        self.out_valid = !self.whole.is_empty();
        self.dropped = false;
        if input.in_valid && out.in_ready {
            self.comes(&input, is_full);
        }
        out
    }

    /// A beat of a TLP comes.
    fn comes(&mut self, input: &In, is_full: bool) {
        let is_header = self.tlp.is_empty();
        let is_payload = self.expects_payload();
        // Whether this is the beat with the check, and that is right.
        let is_right = !self.spoilt
            && !is_header
            && !is_payload
            && input.in_empty == BEHIND_CHECK
            && input.in_data[0] as u32 == crc32c(&self.tlp);
        if is_payload && is_full {
            self.spoilt = true;
        } else if is_payload {
            let says = self.says();
            let bytes = self.announced().expect("it has a payload");
            let last = says.last && self.tlp.len() == bytes;
            let to = if last { says.to } else { 0 };
            self.segment.push(Kept { last, to, data: input.in_data });
        }
        if is_header || is_payload {
            self.tlp.extend(bytes_of(input.in_data));
            self.spoilt |= self.announced().is_none();
        } else {
            // Nothing is behind the check.
            self.spoilt |= !input.in_last;
        }
        if input.in_last {
            self.ends(is_right, input.in_bad);
        }
    }

    /// A TLP has come to its end.
    fn ends(&mut self, is_right: bool, is_bad: bool) {
        let says = self.says();
        if is_bad {
            self.segment.clear();
        } else if is_right && says.first != self.mid {
            self.packet.append(&mut self.segment);
            self.mid = !says.last;
            if says.last {
                self.whole.extend(self.packet.drain(..));
            }
        } else {
            self.segment.clear();
            self.packet.clear();
            (self.mid, self.dropped) = (false, true);
        }
        self.tlp.clear();
        self.spoilt = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Beat;
    use super::*;
    use bellwire_wire::link::tlp::Tlp;

    /// A TLP with a segment of these beats.
    fn tlp(first: bool, last: bool, beats: u8) -> Vec<In> {
        let payload: Vec<u8> = (0..beats).flat_map(|beat| [beat; SYMBOLS]).collect();
        let says = Segment { first, last, to: if last { 7 } else { 0 } };
        let address = says.emit().unwrap();
        let tlp = Tlp { channel: 0, requester: 0, tag: 0, address, payload: &payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).unwrap();
        bytes.resize(bytes.len().next_multiple_of(SYMBOLS), 0);
        let count = bytes.len() / SYMBOLS;
        let one = |(at, chunk): (usize, &[u8])| {
            let bytes = *chunk.first_chunk().unwrap();
            let in_last = at + 1 == count;
            let in_empty = if in_last { BEHIND_CHECK } else { 0 };
            let in_data = Beat { bytes, k: 0 }.words();
            In { in_valid: true, in_last, in_empty, in_data, ..In::default() }
        };
        bytes.chunks(SYMBOLS).enumerate().map(one).collect()
    }

    /// Packets that come of TLPs, by beats, and how often something was dropped.
    fn packets(room: usize, tlps: &[Vec<In>]) -> (Vec<Vec<u8>>, usize) {
        let mut unwrap = TlpUnwrap::new(room);
        let mut waits: VecDeque<In> = tlps.iter().flatten().copied().collect();
        let (mut packets, mut packet, mut dropped) = (Vec::new(), Vec::new(), 0);
        for cycle in 0..2_000_u32 {
            let offered = waits.front().copied().unwrap_or_default();
            let out_ready = cycle.is_multiple_of(5);
            let out = unwrap.cycle(In { out_ready, ..offered });
            if offered.in_valid && out.in_ready {
                waits.pop_front();
            }
            dropped += usize::from(out.dropped);
            if out.out_valid && out_ready {
                packet.push(out.out_data[1] as u8);
                assert_eq!(out.out_to, if out.out_last { 7 } else { 0 });
                if out.out_last {
                    packets.push(std::mem::take(&mut packet));
                }
            }
        }
        assert!(waits.is_empty() && packet.is_empty());
        (packets, dropped)
    }

    fn bad(mut tlp: Vec<In>) -> Vec<In> {
        tlp.last_mut().unwrap().in_bad = true;
        tlp
    }

    /// Segments are put together again. One that is marked bad comes again, at any place.
    // shows: S-21
    #[test]
    fn segments_become_packets() {
        let (first, mid, last) = (tlp(true, false, 32), tlp(false, false, 32), tlp(false, true, 3));
        let whole = [&[0; 0][..], &(0..32).collect::<Vec<u8>>(), &(0..32).collect::<Vec<u8>>()];
        let expected = [whole.concat(), vec![0, 1, 2]].concat();
        let sound = [first.clone(), mid.clone(), last.clone(), tlp(true, true, 1)];
        let came = packets(70, &sound);
        assert_eq!(came, (vec![expected.clone(), vec![0]], 0));
        // A bad TLP may end anywhere, and a beat of it be anything.
        let mut short = bad(first[..3].to_vec());
        short[2].in_last = true;
        short[2].in_bad = true;
        let mut turned = bad(mid.clone());
        turned[0].in_data[0] ^= 1 << 24;
        let again = [short, bad(first.clone()), first, turned, mid, bad(last.clone()), last];
        assert_eq!(packets(70, &again), (vec![expected], 0));
    }

    /// A turned bit that the link does not see takes its packet with it, and no other one.
    #[test]
    fn a_wrong_check_drops_its_packet() {
        let next = tlp(true, true, 2);
        for beat in 0..=33 {
            for word in 0..2 {
                let mut first = tlp(true, false, 32);
                if beat == 33 && word == 1 {
                    continue;
                }
                first[beat].in_data[word] ^= 1 << (beat % 30);
                let all = [first, tlp(false, true, 3), next.clone()];
                let (came, dropped) = packets(70, &all);
                assert_eq!(came, [[0, 1]], "beat {beat}");
                assert!(dropped == 2, "{dropped}");
            }
        }
    }

    /// What is longer than the room is dropped, and lets the next one pass.
    #[test]
    fn a_packet_without_room_is_dropped() {
        let all =
            [tlp(true, true, 2), tlp(true, false, 32), tlp(false, true, 9), tlp(true, true, 3)];
        assert_eq!(packets(40, &all), (vec![vec![0, 1], vec![0, 1, 2]], 1));
        let (came, dropped) = packets(41, &all);
        assert_eq!((came.len(), dropped), (3, 0));
    }

    /// A packet that begins inside of another one, and the rest of one that has not begun.
    #[test]
    fn what_does_not_follow_is_dropped() {
        let all =
            [tlp(true, false, 2), tlp(true, true, 2), tlp(false, true, 1), tlp(true, true, 3)];
        assert_eq!(packets(40, &all), (vec![vec![0, 1, 2]], 2));
    }
}
