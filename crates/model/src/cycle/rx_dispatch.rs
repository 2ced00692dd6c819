//! `rx_dispatch`: takes packets from the crossbar, and passes whole ones on by their type (C-25,
//! C-27, C-37; cHPP section 4.2, Fig. 12), as `hardware/rx_dispatch` builds it.
//!
//! PUTs and NAPs go to the upload module, and GETs to the engine that takes descriptors apart. Each
//! class has a buffer of its own, so neither waits for the other.

use std::collections::VecDeque;

use bellwire_wire::descriptor::BEAT_BYTES;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::MAX_LENGTH_DW;
use bellwire_wire::tail::MAX_TAIL_BYTES;

use super::data_reorder::{BEAT_WORDS, LANES};
use super::key_window::{KEY_BITS, PAIR_BITS};
use super::line::bytes_of;

const LANE_BITS: usize = LANES.ilog2() as usize;
/// Bits of the number of a queue pair among those of all processors.
const END_BITS: usize = Endpoint::BITS as usize;
/// Bits of the number of a processor.
const CPU_BITS: usize = END_BITS - PAIR_BITS;
/// Classes of packets.
const CLASSES: usize = 2;
/// The class of PUTs and NAPs.
pub const DATA: usize = 0;
/// The class of GETs.
pub const GET: usize = 1;
/// Bytes of a DW.
const DWORD: i32 = 4;
/// DWs of a beat.
const BEAT_DWORDS: usize = LANES / DWORD as usize;
/// Beats of the payload of the longest GET, and of the longest packet of the other class.
const MOST_GET_BEATS: usize = MAX_LENGTH_DW as usize / BEAT_DWORDS;
const MOST_DATA_BEATS: usize = MOST_GET_BEATS + 2;

const _: () = assert!(BEAT_BYTES == LANES && MAX_TAIL_BYTES == LANES);

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor, which packets must name.
        cpu: u8 = CPU_BITS,
        /// A beat of a packet comes.
        in_valid: bool = 1,
        /// The class of its place; counts with the first beat of a packet.
        in_class: u8 = 1,
        /// It is the last of its packet.
        in_last: bool = 1,
        /// The lane of its last byte; counts with `in_last`.
        in_to: u8 = LANE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The GET of the cycle before carries the key of its queue pair.
        packet_fits: bool = 1,
        /// A beat of a PUT or a NAP is taken, if one is offered.
        out_ready: bool = 1,
        /// A word of a GET is taken, if one is offered.
        get_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat of a packet is taken.
        in_ready: bool = 1,
        /// By class: a place is free again.
        credit: [bool; CLASSES] = CLASSES,
        /// A GET asks whether its key fits.
        packet_valid: bool = 1,
        /// Its queue pair; zero if none asks.
        packet_pair: u8 = PAIR_BITS,
        /// Its key; zero if none asks.
        packet_key: u8 = KEY_BITS,
        /// A beat of a PUT or a NAP is offered.
        out_valid: bool = 1,
        /// It is the last of its packet.
        out_last: bool = 1,
        /// The lane of its last byte; zero unless it is the last beat.
        out_to: u8 = LANE_BITS,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A word of the descriptor of a GET is offered.
        get_valid: bool = 1,
        /// It is the last of its descriptor.
        get_last: bool = 1,
        /// The word; zero if none is offered, as the next two.
        get_word: u64 = 64,
        /// The queue pair that sent the GET.
        get_source: u16 = END_BITS,
        /// The own queue pair that it reads from.
        get_pair: u8 = PAIR_BITS,
        /// A packet was dropped in the cycle before: it is no PUT, NAP or GET, or has a wrong form.
        unknown: bool = 1,
        /// It was dropped: its type is not one of its class.
        misrouted: bool = 1,
        /// It was dropped: it is longer than a place.
        oversized: bool = 1,
        /// It was dropped: a GET with a wrong key, or for another processor.
        refused: bool = 1,
        /// It was dropped: it is longer than its header says, or was broken off.
        mismatched: bool = 1,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Packets of each class that the crossbar may send without hearing of a free place.
    pub packets: usize,
    /// Places for GETs behind these.
    pub gets: usize,
    /// Beats of a PUT or a NAP, at most: the header and a tail are among them.
    pub data_beats: usize,
    /// Beats of the descriptor of a GET, at most.
    pub get_beats: usize,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Unknown,
    Misrouted,
    Oversized,
    Refused,
    Mismatched,
}

/// A beat that is kept.
#[derive(Clone, Copy, Debug)]
struct Beat {
    last: bool,
    to: u8,
    data: [u64; BEAT_WORDS],
    /// Sender and target of its packet.
    source: u16,
    pair: u8,
}

/// What a cycle does to a buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// A packet takes a place.
    begins: bool,
    /// A beat of it is stored.
    stores: Option<Beat>,
    /// It has come whole.
    keeps: bool,
    /// It is dropped.
    drops: bool,
}

/// The packets of a class.
#[derive(Clone, Debug, Default)]
struct Buffer {
    /// Places behind those that the crossbar knows of.
    behind: usize,
    /// Beats of the packet that comes.
    coming: Option<Vec<Beat>>,
    /// Beats of whole packets, but for the one at the output.
    kept: VecDeque<Beat>,
    output: Option<Beat>,
    /// Packets in the buffer, with the one that comes.
    packets: usize,
    /// Places that the crossbar takes for taken.
    held: usize,
}

impl Buffer {
    /// A place is free that the crossbar takes for taken. The packet that comes has one in front.
    fn credit(&self) -> bool {
        let in_front = self.packets.saturating_sub(self.behind);
        self.held > in_front.max(usize::from(self.coming.is_some()))
    }

    /// The clock edge that ends a cycle, in which the beat at the output leaves or not.
    fn clock(&mut self, step: Step, leaves: bool) {
        self.held -= usize::from(self.credit());
        if leaves {
            self.packets -= usize::from(self.output.take().is_some_and(|beat| beat.last));
        }
        // What is stored in this cycle is read in the next one.
        self.output = self.output.or_else(|| self.kept.pop_front());
        if step.begins {
            self.coming = Some(Vec::new());
            self.held += 1;
            self.packets += 1;
        }
        if let Some(coming) = &mut self.coming {
            coming.extend(step.stores);
        }
        if step.keeps {
            self.kept.extend(self.coming.take().into_iter().flatten());
        }
        if step.drops {
            self.coming = None;
            self.packets -= 1;
        }
    }
}

/// The packet that comes.
#[derive(Clone, Copy, Debug)]
enum Coming {
    /// None.
    None,
    /// One that is right so far.
    Right {
        class: usize,
        source: u16,
        pair: u8,
        /// DWs of payload that have not come; below zero, those of the tail that have.
        left: i32,
        /// The answer about its key comes in this cycle.
        asks: bool,
    },
    /// The rest of one that was dropped.
    Dropped,
}

/// The dispatch module.
///
/// A packet is passed on when it has come whole and is right. Its first beat stands at the output
/// two cycles after its last one has come, and one follows in every cycle.
#[derive(Clone, Debug)]
pub struct RxDispatch {
    shape: Shape,
    coming: Coming,
    buffers: [Buffer; CLASSES],
    /// The second word of the beat at the output is the next one.
    upper: bool,
    told: Option<Told>,
}

impl RxDispatch {
    /// An empty one.
    ///
    /// # Panics
    /// Unless there are 1 to 16 places of each kind, packets of the data class have 3 to 258 beats,
    /// and descriptors of GETs 1 to 256.
    pub fn new(shape: Shape) -> RxDispatch {
        let Shape { packets, gets, data_beats, get_beats } = shape;
        assert!((1..=16).contains(&packets) && (1..=16).contains(&gets), "1 to 16 places");
        assert!((3..=MOST_DATA_BEATS).contains(&data_beats), "3 to {MOST_DATA_BEATS} beats");
        assert!((1..=MOST_GET_BEATS).contains(&get_beats), "1 to {MOST_GET_BEATS} beats");
        let mut buffers = [(); CLASSES].map(|()| Buffer::default());
        buffers[GET].behind = gets;
        RxDispatch { shape, coming: Coming::None, buffers, upper: false, told: None }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = self.out();
        let is_first = matches!(self.coming, Coming::None);
        out.in_ready =
            !is_first || self.buffers[usize::from(input.in_class)].held < self.shape.packets;
        self.told = None;
        let mut steps = [Step::default(); CLASSES];
        if let Coming::Right { class, asks, .. } = &mut self.coming
            && std::mem::take(asks)
            && !input.packet_fits
        {
            // The key is looked at before anything of a GET is passed on (C-09).
            steps[*class].drops = true;
            self.drops(Told::Refused);
        }
        if input.in_valid && out.in_ready {
            match self.coming {
                Coming::None => self.begin(&input, &mut out, &mut steps),
                Coming::Right { class, .. } => self.go_on(&input, &mut steps[class]),
                Coming::Dropped => {}
            }
            if input.in_last {
                self.coming = Coming::None;
            }
        }
        let takes_word = out.get_valid && input.get_ready;
        let [data, gets] = &mut self.buffers;
        data.clock(steps[DATA], input.out_ready);
        gets.clock(steps[GET], takes_word && self.upper);
        self.upper ^= takes_word;
        out
    }

    /// What stands at the outputs in this cycle whatever enters.
    pub fn out(&self) -> Out {
        let is_told = |told| self.told == Some(told);
        let mut out = Out {
            credit: self.buffers.each_ref().map(Buffer::credit),
            unknown: is_told(Told::Unknown),
            misrouted: is_told(Told::Misrouted),
            oversized: is_told(Told::Oversized),
            refused: is_told(Told::Refused),
            mismatched: is_told(Told::Mismatched),
            ..Out::default()
        };
        if let Some(beat) = self.buffers[DATA].output {
            (out.out_valid, out.out_last, out.out_data) = (true, beat.last, beat.data);
            out.out_to = if beat.last { beat.to } else { 0 };
        }
        if let Some(beat) = self.buffers[GET].output {
            (out.get_valid, out.get_last) = (true, beat.last && self.upper);
            out.get_word = beat.data[usize::from(self.upper)];
            (out.get_source, out.get_pair) = (beat.source, beat.pair);
        }
        out
    }

    /// The packet that comes is dropped.
    fn drops(&mut self, told: Told) {
        self.told = Some(told);
        self.coming = Coming::Dropped;
    }

    /// A header comes, whose packet takes a place. What is told is the first of what is wrong.
    fn begin(&mut self, input: &In, out: &mut Out, steps: &mut [Step; CLASSES]) {
        let class = usize::from(input.in_class);
        let step = &mut steps[class];
        step.begins = true;
        let header = match self.check(input, class) {
            Ok(header) => header,
            Err(told) => {
                step.drops = true;
                return self.drops(told);
            }
        };
        let HeaderRepr { source, destination, magic, span, .. } = header;
        let pair = destination.function() << 2 | destination.queue_pair();
        let asks = class == GET;
        if asks {
            (out.packet_valid, out.packet_pair, out.packet_key) = (true, pair, magic);
        }
        let source = source.to_bits();
        // Of a GET only the payload is kept.
        step.stores = (class == DATA).then_some(Beat {
            last: false,
            to: 0,
            data: input.in_data,
            source,
            pair,
        });
        let left = span.to_dwords().length_dw.into();
        self.coming = Coming::Right { class, source, pair, left, asks };
    }

    /// The header, if its packet can be.
    fn check(&self, input: &In, class: usize) -> Result<HeaderRepr, Told> {
        if input.in_last {
            // Every packet has a DW behind its header.
            return Err(Told::Mismatched);
        }
        let header = HeaderRepr::parse(&bytes_of(input.in_data)).map_err(|_| Told::Unknown)?;
        let is_get = header.primitive == Primitive::Get;
        let bytes = header.span.len();
        if is_get && (bytes == 0 || !bytes.is_multiple_of(BEAT_BYTES)) {
            // A descriptor has whole beats.
            return Err(Told::Unknown);
        }
        if is_get != (class == GET) {
            return Err(Told::Misrouted);
        }
        let Shape { data_beats, get_beats, .. } = self.shape;
        let most = if is_get { get_beats } else { data_beats - 2 };
        if usize::from(header.span.to_dwords().length_dw) > BEAT_DWORDS * most {
            return Err(Told::Oversized);
        }
        // The upload module looks at the others.
        if is_get && header.destination.cpu() != input.cpu {
            return Err(Told::Refused);
        }
        Ok(header)
    }

    /// A beat comes behind a header that is right.
    fn go_on(&mut self, input: &In, step: &mut Step) {
        let Coming::Right { class, source, pair, left, .. } = &mut self.coming else { return };
        let lacks = DWORD * *left;
        let fill = if input.in_last { i32::from(input.in_to) + 1 } else { LANES as i32 };
        let is_short = input.in_last && fill < lacks;
        let is_long = if input.in_last { fill > lacks + MAX_TAIL_BYTES as i32 } else { lacks <= 0 };
        if is_short || is_long {
            step.drops = true;
            return self.drops(Told::Mismatched);
        }
        step.stores = (*class == DATA || lacks > 0).then_some(Beat {
            last: if *class == DATA { input.in_last } else { lacks <= LANES as i32 },
            to: input.in_to,
            data: input.in_data,
            source: *source,
            pair: *pair,
        });
        step.keeps = input.in_last;
        *left -= BEAT_DWORDS as i32;
    }
}

#[cfg(test)]
mod tests;
