//! `frame_tx`: puts frames around TLPs (S-16), and link packets between them, as
//! `hardware/frame_tx` builds it.

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::llp::Llp;
use bellwire_wire::link::tlp::{LENGTH_BYTE, OVERHEAD_BYTES};

use super::line::{Beat, SYMBOLS, UPPER, bytes_of};
use super::replay_buf::{BEAT_WORDS, SEQUENCE_BITS};

/// The special symbols of a link packet: its first and its last one.
const LINK_PACKET: u16 = 0x81 << UPPER;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a TLP is offered.
        in_valid: bool = 1,
        /// It is the TLP's last one.
        in_last: bool = 1,
        /// The frame's number.
        in_sequence: u16 = SEQUENCE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A link packet is offered.
        dllp_valid: bool = 1,
        /// Its bytes.
        dllp_data: u64 = 64,
        /// The line takes a beat, if one is offered.
        line_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: bool = 1,
        /// The offered link packet is taken.
        dllp_ready: bool = 1,
        /// Symbols are offered.
        line_valid: bool = 1,
        /// Which of them are special; zero if none are offered.
        line_k: u16 = SYMBOLS,
        /// The symbols; zero if none are offered.
        line_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// The framer.
///
/// A beat that enters in cycle `t` is on the line from `t + 1` on. Link packets go first, but never
/// within a frame.
#[derive(Clone, Debug, Default)]
pub struct FrameTx {
    /// The TLP that enters, as far as it has come.
    tlp: Vec<u8>,
    sequence: u16,
    /// Bytes of its last beat.
    last_bytes: usize,
    /// A TLP has begun to enter and has not ended.
    mid: bool,
    /// The end of its frame, if that takes one beat more than the TLP.
    over: Vec<u8>,
    line: Option<Beat>,
}

impl FrameTx {
    /// A framer with an empty line.
    pub fn new() -> FrameTx {
        FrameTx::default()
    }

    /// Whether a link packet is taken in this cycle, if one is offered.
    #[inline]
    pub fn dllp_ready(&self, line_ready: bool) -> bool {
        self.moves(line_ready) && !self.mid
    }

    /// Whether a beat is taken in this cycle, if one is offered.
    #[inline]
    pub fn in_ready(&self, dllp_valid: bool, line_ready: bool) -> bool {
        self.moves(line_ready) && self.over.is_empty() && (self.mid || !dllp_valid)
    }

    fn moves(&self, line_ready: bool) -> bool {
        self.line.is_none() || line_ready
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let moves = self.moves(input.line_ready);
        let line = self.line.unwrap_or_default();
        let out = Out {
            in_ready: self.in_ready(input.dllp_valid, input.line_ready),
            dllp_ready: self.dllp_ready(input.line_ready),
            line_valid: self.line.is_some(),
            line_k: line.k,
            line_data: line.words(),
        };
        if moves {
            self.line = None;
            if !self.over.is_empty() {
                let over = std::mem::take(&mut self.over);
                self.put(&over, false, true);
            } else if input.in_valid && out.in_ready {
                self.enter(input);
            }
            if input.dllp_valid && out.dllp_ready {
                let line = self.line.get_or_insert_default();
                line.bytes[UPPER..].copy_from_slice(&input.dllp_data.to_le_bytes());
                line.k |= LINK_PACKET;
            }
        }
        out
    }

    /// The next beat of a TLP.
    fn enter(&mut self, input: In) {
        let data = bytes_of(input.in_data);
        let is_first = !self.mid;
        if is_first {
            self.tlp.clear();
            self.sequence = input.in_sequence;
            // The replay buffer counts beats, so the TLP's own header says where its last one ends.
            let behind = usize::from(data[LENGTH_BYTE]) * DW_BYTES + OVERHEAD_BYTES - 1;
            self.last_bytes = behind % SYMBOLS + 1;
        }
        let at = self.tlp.len();
        let count = if input.in_last { self.last_bytes } else { SYMBOLS };
        self.tlp.extend(&data[..count]);
        self.mid = !input.in_last;

        let frame = Llp { sequence: self.sequence, tlp: &self.tlp };
        let mut bytes = vec![0; frame.buffer_len()];
        frame.emit(&mut bytes).expect("the buffer has its length and the number 12 bits");
        // The CRC of a TLP that has not ended lies behind what goes now.
        let end = if input.in_last { bytes.len() } else { at + SYMBOLS };
        let (now, over) = bytes[at..end].split_at(SYMBOLS.min(end - at));
        self.put(now, is_first, input.in_last && over.is_empty());
        self.over = over.to_vec();
    }

    /// Puts bytes of a frame on the line.
    fn put(&mut self, bytes: &[u8], is_first: bool, is_last: bool) {
        let line = self.line.insert(Beat::default());
        line.bytes[..bytes.len()].copy_from_slice(bytes);
        line.k = u16::from(is_first) | u16::from(is_last) << (bytes.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_wire::link::dllp::Dllp;
    use bellwire_wire::link::tlp::Tlp;

    fn tlp_of(payload: &[u8]) -> Vec<u8> {
        let tlp = Tlp { channel: 0, requester: 0, tag: 0, address: 7, payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).unwrap();
        bytes
    }

    /// Offers a TLP and a link packet until all is on the line; the beats on the line.
    fn sent(tlp: &[u8], dllp_at: usize, packet: [u8; 8]) -> Vec<Beat> {
        let mut framer = FrameTx::new();
        let beats: Vec<[u8; SYMBOLS]> = tlp
            .chunks(SYMBOLS)
            .map(|chunk| std::array::from_fn(|at| chunk.get(at).copied().unwrap_or(0xee)))
            .collect();
        let (mut at, mut is_told, mut line) = (0, false, Vec::new());
        for cycle in 0..beats.len() + 4 {
            let input = In {
                in_valid: at < beats.len(),
                in_last: at + 1 == beats.len(),
                in_sequence: 0x123,
                in_data: Beat { bytes: *beats.get(at).unwrap_or(&[0; SYMBOLS]), k: 0 }.words(),
                dllp_valid: !is_told && cycle >= dllp_at,
                dllp_data: u64::from_le_bytes(packet),
                line_ready: true,
            };
            let out = framer.cycle(input);
            at += usize::from(input.in_valid && out.in_ready);
            is_told |= input.dllp_valid && out.dllp_ready;
            if out.line_valid {
                line.push(Beat::new(out.line_data, out.line_k));
            }
        }
        line
    }

    /// A TLP of 5, 6, 7 and 8 DW: its frame ends in symbol 11 or 15 of its last beat, or one beat
    /// later in symbol 3 or 7. A link packet that comes meanwhile fills a half that is free, and
    /// otherwise takes a beat behind the frame.
    #[test]
    fn a_frame_takes_whole_beats_and_a_link_packet_fills_them() {
        let packet = Dllp::Ack { sequence: 5 }.emit().unwrap();
        for (payload, ks) in [
            (0, &[1, 1 << 11, 0x8100][..]),
            (4, &[1, 1 << 15, 0x8100]),
            (8, &[1, 0, 0x8108]),
            (12, &[1, 0, 0x8180]),
        ] {
            let tlp = tlp_of(&[0xa5; 12][..payload]);
            let line = sent(&tlp, 1, packet);
            assert_eq!(line.iter().map(|beat| beat.k).collect::<Vec<_>>(), ks);
            let bytes: Vec<u8> = line.iter().flat_map(|beat| beat.bytes).collect();
            let end = tlp.len() + 8;
            assert_eq!(Llp::parse(&bytes[..end]), Ok(Llp { sequence: 0x123, tlp: &tlp }));
            assert_eq!(bytes[bytes.len() - 8..], packet);
            assert!(bytes[end..bytes.len() - 8].iter().all(|&byte| byte == 0));
        }
    }

    /// A link packet that is there when a frame could begin goes first, in the upper half of a beat
    /// of its own.
    #[test]
    fn link_packets_go_first() {
        let packet = Dllp::Nak { sequence: 9 }.emit().unwrap();
        let line = sent(&tlp_of(&[]), 0, packet);
        assert_eq!(line.iter().map(|beat| beat.k).collect::<Vec<_>>(), [0x8100, 1, 1 << 11]);
        assert_eq!((&line[0].bytes[..8], &line[0].bytes[8..]), (&[0; 8][..], &packet[..]));
    }

    /// While the line stalls, nothing is taken and nothing changes.
    #[test]
    fn a_stalled_line_keeps_its_beat() {
        let mut framer = FrameTx::new();
        let input = In { in_valid: true, in_last: true, ..In::default() };
        assert!(framer.cycle(input).in_ready);
        let held = framer.cycle(In { dllp_valid: true, ..input });
        assert!(held.line_valid && !held.in_ready && !held.dllp_ready);
        assert_eq!(framer.cycle(In { dllp_valid: true, ..input }), held);
    }
}
