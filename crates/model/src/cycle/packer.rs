//! `packer`: joins control, destination and data into network packets (C-34; cHPP section 4.1,
//! Fig. 11), as `hardware/packer` builds it.
//!
//! Moves come in the order of their operations, and the bytes for them as one stream. A packet
//! leaves when all of its bytes have come. So it leaves without pauses, and none whose data failed
//! has begun to leave.

use std::collections::VecDeque;

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HEADER_BYTES, HeaderRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::{MAX_TAIL_BYTES, Tail};

use super::data_reorder::{BEAT_WORDS, LANES};
use super::line::{Beat, bytes_of};

const LANE_BITS: usize = LANES.ilog2() as usize;
const ENDPOINT_BITS: usize = Endpoint::BITS as usize;
/// Bits of a count of a move's bytes.
pub const BYTES_BITS: usize = ADDRESS_BITS as usize;
/// Bits of a route, and of the number of an operation. The block does not read them.
pub const ROUTE_BITS: usize = 8;
/// See [`ROUTE_BITS`].
pub const OPERATION_BITS: usize = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A move comes: bytes that lie one behind the other at their destination.
        move_valid: bool = 1,
        /// It is the last of its operation; what follows up to `move_operation` is the same for all
        /// moves of an operation.
        move_last: bool = 1,
        /// The code of its primitive.
        move_primitive: u8 = 4,
        /// The traffic class.
        move_traffic_class: u8 = 3,
        /// The key of the far queue pair.
        move_magic: u8 = 8,
        /// The own queue pair.
        move_source: u16 = ENDPOINT_BITS,
        /// The far one.
        move_destination: u16 = ENDPOINT_BITS,
        /// The last packet asks for an event.
        move_wants_event: bool = 1,
        /// Bytes of the tail behind the last packet's data.
        move_tail_bytes: u8 = 5,
        /// The tail; zeros behind its bytes.
        move_tail: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The way of its packets through the crossbar.
        move_route: u8 = ROUTE_BITS,
        /// The operation.
        move_operation: u8 = OPERATION_BITS,
        /// Destination of the first byte; zero unless it is a PUT.
        move_address: u64 = ADDRESS_BITS as usize,
        /// Bytes of this move.
        move_bytes: u64 = BYTES_BITS,
        /// A beat of data comes.
        in_valid: bool = 1,
        /// It is the last of its operation.
        in_ends: bool = 1,
        /// A read of the operation has failed: the beat has no bytes, and some do not come.
        in_failed: bool = 1,
        /// Lanes of its first and last byte; they count without `in_valid`, too.
        in_from: u8 = LANE_BITS,
        /// See `in_from`.
        in_to: u8 = LANE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat is taken, if one is offered. It says so of the channel that `out_route` names.
        out_ready: bool = 1,
        /// A report is taken, if one is offered.
        sent_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A move is taken.
        move_ready: bool = 1,
        /// The beat of data is taken: its last byte is.
        in_ready: bool = 1,
        /// Free beats of the buffer.
        room: u16 = 16,
        /// Packets in the buffer that have come whole.
        packets: u8 = 8,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is the last of its packet.
        out_last: bool = 1,
        /// The lane of its last byte; zero if none is offered.
        out_to: u8 = LANE_BITS,
        /// The way of its packet; zero if none is offered.
        out_route: u8 = ROUTE_BITS,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// An operation has left: its last packet has, or its data failed.
        sent_valid: bool = 1,
        /// Its data failed.
        sent_failed: bool = 1,
        /// The operation; zero if none is reported.
        sent_operation: u8 = OPERATION_BITS,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Beats of the buffer.
    pub beats: usize,
    /// Packets in it.
    pub packets: usize,
    /// Bytes of a PUT packet, at most.
    pub payload: usize,
    /// Bytes of any other one, at most.
    pub longest: usize,
}

/// The move whose packets are made.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Of the next packet; its span has no bytes yet.
    header: HeaderRepr,
    address: u64,
    bytes: u64,
    is_last: bool,
    wants_event: bool,
    tail: Tail,
    route: u8,
    operation: u8,
}

/// A packet whose data comes.
#[derive(Clone, Debug)]
struct Building {
    /// Header, lead and what has come behind it.
    bytes: Vec<u8>,
    /// Of them, beats in the buffer.
    beats: usize,
    /// Bytes of data that it lacks.
    lacks: usize,
    /// The tail, until it is behind the data.
    tail: Tail,
    /// It is the last one of its move, and of its operation.
    ends_move: bool,
    ends: bool,
}

/// What leaves in its turn: a packet, or the report of an operation whose data failed.
#[derive(Clone, Debug)]
struct Stored {
    bytes: Vec<u8>,
    /// Bytes that have left the buffer.
    left: usize,
    failed: bool,
    /// It ends its operation.
    ends: bool,
    route: u8,
    operation: u8,
}

/// A packer with a buffer for packets.
///
/// The first beat of a packet is offered two cycles after its last byte has come, if all before it
/// has left, and then one in every cycle.
#[derive(Clone, Debug)]
pub struct Packer {
    shape: Shape,
    current: Option<Move>,
    building: Option<Building>,
    /// The lane of the next byte, if a packet has taken a part of the beat that comes.
    lane: Option<usize>,
    /// Data of an operation that failed is still to come, and moves of it.
    drains: bool,
    swallows: bool,
    stored: VecDeque<Stored>,
    /// Beats in the buffer.
    used: usize,
    /// The output's register: fields of `out_`.
    output: Out,
    /// The operation that ends with the beat in it.
    output_ends: Option<u8>,
    /// The report: an operation, and whether its data failed.
    sent: Option<(u8, bool)>,
    /// The last packet of an operation has begun to leave, and its report was not taken yet.
    is_due: bool,
}

impl Packer {
    /// An empty one.
    ///
    /// # Panics
    /// Unless both numbers are powers of two, and the buffer has room for the longest packet.
    pub fn new(shape: Shape) -> Packer {
        let Shape { beats, packets, payload, longest } = shape;
        assert!(beats.is_power_of_two() && packets.is_power_of_two(), "powers of two");
        let most = payload.max(longest);
        // A packet has 1,024 DWs at most, and a PUT begins anywhere in one.
        assert!(
            (1..=4093).contains(&payload) && (1..=4096).contains(&longest),
            "as long as packets"
        );
        // With a lead, a trail and a tail.
        assert!(2 + (most + 6).div_ceil(LANES) <= beats, "the longest packet has room");
        Packer {
            shape,
            current: None,
            building: None,
            lane: None,
            drains: false,
            swallows: false,
            stored: VecDeque::with_capacity(packets),
            used: 0,
            output: Out::default(),
            output_ends: None,
            sent: None,
            is_due: false,
        }
    }

    /// The buffer has room for a beat.
    fn has_room(&self) -> bool {
        self.used < self.shape.beats
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        Out {
            move_ready: self.swallows || (self.current.is_none() && !self.drains),
            in_ready: self.drains || (self.has_room() && self.takes_all(input)),
            room: (self.shape.beats - self.used) as u16,
            packets: self.stored.len() as u8,
            sent_valid: self.sent.is_some(),
            sent_failed: self.sent.is_some_and(|(_, failed)| failed),
            sent_operation: self.sent.map_or(0, |(operation, _)| operation),
            ..self.output
        }
    }

    /// One cycle.
    ///
    /// # Panics
    /// If a move is none that the descriptor extract module makes: its primitive has no such code,
    /// it goes beyond the last address, or is a NAP or a GET with an address or with more bytes
    /// than a packet has.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        let has_room = self.has_room();
        let has_place = self.stored.len() < self.shape.packets;
        self.leave(&input);
        if self.drains {
            self.drains = !(input.in_valid && input.in_ends);
        } else if has_room {
            self.build(&input, has_place);
        }
        if input.move_valid && out.move_ready {
            if self.swallows {
                self.swallows = !input.move_last;
            } else {
                self.current = Some(Move::of(&input));
            }
        }
        out
    }

    /// The output goes on, and so does the report.
    fn leave(&mut self, input: &In) {
        if input.sent_ready && self.sent.take().is_some() {
            self.is_due = false;
        }
        if self.output.out_valid && !input.out_ready {
            return;
        }
        if let Some(operation) = self.output_ends.take() {
            self.sent = Some((operation, false));
        }
        self.output = self.next_beat();
    }

    /// The next beat moves from the buffer to the output.
    fn next_beat(&mut self) -> Out {
        let Some(front) = self.stored.front_mut() else { return Out::default() };
        // There is one place for a report. So the last packet of an operation does not begin while
        // that is taken, and no packet stops on its way.
        if front.left == 0 && front.ends && self.is_due {
            return Out::default();
        }
        self.is_due |= front.ends;
        let Stored { route, operation, failed, ends, .. } = *front;
        if failed {
            self.sent = Some((operation, true));
            self.stored.pop_front();
            return Out::default();
        }
        let lanes = front.left..front.bytes.len().min(front.left + LANES);
        let out_last = lanes.end == front.bytes.len();
        let out_to = lanes.len() as u8 - 1;
        let mut bytes = [0; LANES];
        bytes[..lanes.len()].copy_from_slice(&front.bytes[lanes.clone()]);
        front.left = lanes.end;
        self.used -= 1;
        if out_last {
            self.stored.pop_front();
            self.output_ends = ends.then_some(operation);
        }
        let out_data = Beat { bytes, k: 0 }.words();
        Out { out_valid: true, out_last, out_to, out_route: route, out_data, ..Out::default() }
    }

    /// Bytes of the beat that comes which no packet has taken.
    fn offered(&self, input: &In) -> std::ops::Range<usize> {
        self.lane.unwrap_or(input.in_from.into())..usize::from(input.in_to) + 1
    }

    /// Whether the packet takes the beat that comes to its end, if there is room.
    fn takes_all(&self, input: &In) -> bool {
        let lacks = self.building.as_ref().map_or(0, |packet| packet.lacks);
        lacks > 0 && (input.in_failed || self.offered(input).len() <= lacks)
    }

    /// The packet goes on, by a beat of the buffer at most.
    fn build(&mut self, input: &In, has_place: bool) {
        let Some(mut packet) = self.building.take() else {
            if let Some(current) = self.current.as_mut().filter(|_| has_place) {
                self.building = Some(current.begin(&self.shape));
                self.used += 1;
            }
            return;
        };
        if packet.lacks == 0 {
            packet.bytes.extend_from_slice(packet.tail.as_bytes());
            packet.tail = Tail::EMPTY;
        } else if !input.in_valid {
            self.building = Some(packet);
            return;
        } else if input.in_failed {
            self.fail(&packet, input);
            return;
        } else {
            let offered = self.offered(input);
            let taken = offered.len().min(packet.lacks);
            let lanes = offered.start..offered.start + taken;
            self.lane = (lanes.end < offered.end).then_some(lanes.end);
            packet.bytes.extend_from_slice(&bytes_of(input.in_data)[lanes]);
            packet.lacks -= taken;
            packet.fill_up();
        }
        let behind = packet.bytes.len() - LANES * packet.beats;
        let is_whole = packet.lacks == 0 && packet.tail.is_empty() && behind <= LANES;
        if is_whole || behind >= LANES {
            packet.beats += 1;
            self.used += 1;
        }
        if is_whole {
            self.store(packet);
        } else {
            self.building = Some(packet);
        }
    }

    /// A packet is whole.
    fn store(&mut self, packet: Building) {
        let Building { bytes, ends, ends_move, .. } = packet;
        let Some(Move { route, operation, .. }) = self.current else { return };
        self.stored.push_back(Stored { bytes, left: 0, failed: false, ends, route, operation });
        if ends_move {
            self.current = None;
        }
    }

    /// Data of the packet failed: it is dropped, and so is what is still to come of its operation.
    fn fail(&mut self, packet: &Building, input: &In) {
        let Some(Move { route, operation, is_last, .. }) = self.current.take() else { return };
        self.used -= packet.beats;
        self.drains = !input.in_ends;
        self.swallows = !is_last;
        let bytes = Vec::new();
        self.stored.push_back(Stored {
            bytes,
            left: 0,
            failed: true,
            ends: true,
            route,
            operation,
        });
    }
}

impl Move {
    fn of(input: &In) -> Move {
        let endpoint = |bits: u16| {
            let [cpu, function, queue_pair] = [bits >> 5, bits >> 2 & 7, bits & 3];
            Endpoint::new(cpu as u8, function as u8, queue_pair as u8).expect("it has 9 bits")
        };
        let source = endpoint(input.move_source);
        let tail = &bytes_of(input.move_tail)[..usize::from(input.move_tail_bytes)];
        Move {
            header: HeaderRepr {
                primitive: Primitive::from_code(input.move_primitive).expect("a primitive's code"),
                traffic_class: input.move_traffic_class,
                requester_id: u16::from(source.cpu()) << 8 | u16::from(source.function()),
                magic: input.move_magic,
                source,
                destination: endpoint(input.move_destination),
                wants_event: false,
                span: ByteSpan::new(0, 0).expect("it is empty"),
            },
            address: input.move_address,
            bytes: input.move_bytes,
            is_last: input.move_last,
            wants_event: input.move_wants_event,
            tail: Tail::new(tail).expect("a tail has at most 16 bytes"),
            route: input.move_route,
            operation: input.move_operation,
        }
    }

    /// Begins its next packet.
    fn begin(&mut self, shape: &Shape) -> Building {
        let limit = match self.header.primitive {
            Primitive::Put => shape.payload,
            _ => shape.longest,
        };
        let bytes = self.bytes.min(limit as u64);
        let ends_move = bytes == self.bytes;
        let ends = ends_move && self.is_last;
        let span = ByteSpan::new(self.address, bytes as usize).expect("it ends in the memory");
        let header = HeaderRepr { wants_event: ends && self.wants_event, span, ..self.header };
        let mut packet = Building {
            bytes: vec![0; HEADER_BYTES + span.lead()],
            beats: 1,
            lacks: span.len(),
            tail: if ends { self.tail } else { Tail::EMPTY },
            ends_move,
            ends,
        };
        header.emit(&mut packet.bytes).expect("its address and length are those of a packet");
        packet.fill_up();
        if span.is_empty() {
            // It travels as one DW with no byte enabled.
            packet.bytes.resize(HEADER_BYTES + span.to_dwords().byte_len(), 0);
        }
        self.address += bytes;
        self.bytes -= bytes;
        packet
    }
}

impl Building {
    /// Once the data is there, it ends with a DW.
    fn fill_up(&mut self) {
        if self.lacks == 0 {
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        }
    }
}

const _: () = assert!(HEADER_BYTES == LANES && MAX_TAIL_BYTES == LANES);

#[cfg(test)]
mod tests {
    use bellwire_wire::packet::PacketRepr;

    use super::*;
    use crate::chpp::Config;

    const SMALL: Shape = Shape { beats: 16, packets: 2, payload: 40, longest: 96 };
    const PAPERS: Shape = Shape { beats: 256, packets: 16, payload: 128, longest: 2048 };

    /// A packer whose moves and data come as fast as it takes them.
    struct Bench {
        packer: Packer,
        moves: VecDeque<In>,
        data: VecDeque<In>,
        cycle: u64,
        out_ready: bool,
        sent_ready: bool,
        coming: Vec<u8>,
        /// Cycle of the first and the last beat of each packet, its route and its bytes.
        left: Vec<(u64, u64, u8, Vec<u8>)>,
        began: u64,
        /// Cycle, operation, and whether its data failed.
        sent: Vec<(u64, u8, bool)>,
        /// The cycle in which the last byte of data was taken.
        taken: u64,
    }

    impl Bench {
        fn new(shape: Shape) -> Bench {
            Bench {
                packer: Packer::new(shape),
                moves: VecDeque::new(),
                data: VecDeque::new(),
                cycle: 0,
                out_ready: true,
                sent_ready: true,
                coming: Vec::new(),
                left: Vec::new(),
                began: 0,
                sent: Vec::new(),
                taken: 0,
            }
        }

        /// Data of a read from `lane` on.
        fn read(&mut self, lane: usize, bytes: &[u8], in_ends: bool) {
            let mut lanes = vec![0xee; lane];
            lanes.extend_from_slice(bytes);
            let beats = lanes.len().div_ceil(LANES);
            for (at, beat) in lanes.chunks(LANES).enumerate() {
                let mut all = [0xdd; LANES];
                all[..beat.len()].copy_from_slice(beat);
                self.data.push_back(In {
                    in_ends: in_ends && at + 1 == beats,
                    in_from: if at == 0 { lane as u8 } else { 0 },
                    in_to: beat.len() as u8 - 1,
                    in_data: Beat { bytes: all, k: 0 }.words(),
                    ..In::default()
                });
            }
        }

        fn fails(&mut self, in_ends: bool) {
            self.data.push_back(In { in_failed: true, in_ends, ..In::default() });
        }

        fn run(&mut self, cycles: u64) -> Out {
            let mut last = Out::default();
            for _ in 0..cycles {
                let mut input = self.moves.front().copied().unwrap_or_default();
                let beat = self.data.front().copied().unwrap_or_default();
                input.move_valid = !self.moves.is_empty();
                input.in_valid = !self.data.is_empty();
                (input.in_ends, input.in_failed) = (beat.in_ends, beat.in_failed);
                (input.in_from, input.in_to, input.in_data) =
                    (beat.in_from, beat.in_to, beat.in_data);
                (input.out_ready, input.sent_ready) = (self.out_ready, self.sent_ready);
                let out = self.packer.cycle(input);
                if input.move_valid && out.move_ready {
                    self.moves.pop_front();
                }
                if input.in_valid && out.in_ready {
                    self.data.pop_front();
                    self.taken = self.cycle;
                }
                if out.out_valid && self.out_ready {
                    if self.coming.is_empty() {
                        self.began = self.cycle;
                    }
                    let beat = bytes_of(out.out_data);
                    let used = usize::from(out.out_to) + 1;
                    assert!(beat[used..].iter().all(|byte| *byte == 0));
                    assert!(out.out_last || used == LANES);
                    self.coming.extend_from_slice(&beat[..used]);
                    if out.out_last {
                        let bytes = std::mem::take(&mut self.coming);
                        self.left.push((self.began, self.cycle, out.out_route, bytes));
                    }
                }
                if out.sent_valid && self.sent_ready {
                    self.sent.push((self.cycle, out.sent_operation, out.sent_failed));
                }
                self.cycle += 1;
                last = out;
            }
            last
        }

        /// Packets that have left: header's address, payload, tail, and whether an event is asked
        /// for.
        fn packets(&self) -> Vec<(u64, Vec<u8>, Vec<u8>, bool)> {
            let read = |(_, _, _, bytes): &(u64, u64, u8, Vec<u8>)| {
                let PacketRepr { header, payload, tail } = PacketRepr::parse(bytes).unwrap();
                let tail = tail.as_bytes().to_vec();
                (header.span.address(), payload.to_vec(), tail, header.wants_event)
            };
            self.left.iter().map(read).collect()
        }
    }

    fn put(operation: u8, address: u64, bytes: u64) -> In {
        In {
            move_last: true,
            move_primitive: Primitive::Put.code(),
            // 2.3.1 and 15.7.3.
            move_source: 0x4d,
            move_destination: 0x1ff,
            move_route: 7,
            move_operation: operation,
            move_address: address,
            move_bytes: bytes,
            ..In::default()
        }
    }

    fn numbered(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 + 1) as u8).collect()
    }

    /// The first configuration in gates has the model's PUT packets, the longest NAP, and a buffer
    /// for two of those.
    #[test]
    fn the_papers_shape_is_the_models() {
        let nic = Config::prototype().nic;
        assert_eq!(nic.put_payload.count(), PAPERS.payload as u64);
        assert_eq!(bellwire_wire::header::MAX_NAP_BYTES, PAPERS.longest);
        assert_eq!((PAPERS.beats * LANES, LANE_BITS), (2 * PAPERS.longest, 4));
    }

    /// All fields of a header are those of the move, as `bellwire_wire` reads them.
    #[test]
    fn headers_are_those_of_the_format() {
        for (at, primitive) in [Primitive::Nap, Primitive::Put, Primitive::Get].iter().enumerate() {
            let address = if *primitive == Primitive::Put { (1 << 40) - 5 } else { 0 };
            let mut bench = Bench::new(PAPERS);
            bench.moves.push_back(In {
                move_primitive: primitive.code(),
                move_traffic_class: 5,
                move_magic: 0xa9,
                move_wants_event: at == 1,
                ..put(0, address, 5)
            });
            bench.read(2, &numbered(5), true);
            bench.run(20);
            let (_, _, route, bytes) = &bench.left[0];
            let header = HeaderRepr {
                primitive: *primitive,
                traffic_class: 5,
                requester_id: 0x0203,
                magic: 0xa9,
                source: Endpoint::new(2, 3, 1).unwrap(),
                destination: Endpoint::new(15, 7, 3).unwrap(),
                wants_event: at == 1,
                span: ByteSpan::new(address, 5).unwrap(),
            };
            assert_eq!((HeaderRepr::parse(bytes), *route), (Ok(header), 7));
        }
    }

    /// Bytes from any lane come to any place in a word, in any number, and nothing is beside them.
    #[test]
    fn bytes_come_from_any_lane_to_any_place() {
        for lane in 0..LANES {
            for lead in 0..4 {
                for length in 1..60 {
                    let mut bench = Bench::new(Shape { payload: 64, ..SMALL });
                    bench.moves.push_back(put(1, 0x1000 + lead, length));
                    bench.read(lane, &numbered(length), true);
                    bench.run(20);
                    let packet = (0x1000 + lead, numbered(length), vec![], false);
                    assert_eq!(bench.packets(), [packet], "{length} bytes, {lane} to {lead}");
                }
            }
        }
    }

    /// A move is cut into packets of the setting. Its event and its tail are the last one's. A beat
    /// that has bytes of two packets, or of two moves, is taken in parts.
    #[test]
    fn moves_are_cut_into_packets() {
        let mut bench = Bench::new(SMALL);
        let last = In {
            move_wants_event: true,
            move_tail_bytes: 9,
            move_tail: [!0, 0xff],
            ..put(1, 0x5002, 20)
        };
        let first = In { move_last: false, move_address: 0x1ffd, move_bytes: 83, ..last };
        bench.moves.extend([first, last]);
        let bytes = numbered(103);
        bench.read(5, &bytes[..50], false);
        bench.read(15, &bytes[50..], true);
        bench.run(60);
        let part =
            |address, from: usize, to: usize| (address, bytes[from..to].to_vec(), vec![], false);
        let last = (0x5002, bytes[83..].to_vec(), vec![0xff; 9], true);
        let expected = [part(0x1ffd, 0, 40), part(0x2025, 40, 80), part(0x204d, 80, 83), last];
        assert_eq!(bench.packets(), expected);
        assert_eq!(bench.sent, [(bench.left[3].1 + 1, 1, false)]);
    }

    /// A tail of any length stands behind data of any length.
    #[test]
    fn tails_stand_behind_the_data() {
        for length in 0..40 {
            for tail in 0..=16 {
                let mut bench = Bench::new(SMALL);
                let mut bytes = [0; LANES];
                bytes[..tail].fill(0xa5);
                let move_tail = Beat { bytes, k: 0 }.words();
                let move_tail_bytes = tail as u8;
                bench.moves.push_back(In { move_tail_bytes, move_tail, ..put(1, 0x103, length) });
                if length > 0 {
                    bench.read(3, &numbered(length), true);
                }
                bench.run(20);
                let address = if length == 0 { 0x100 } else { 0x103 };
                let packet = (address, numbered(length), vec![0xa5; tail], false);
                assert_eq!(bench.packets(), [packet], "{length} bytes and a tail of {tail}");
            }
        }
    }

    /// A NAP is one packet, also the longest one, and so is one without bytes.
    #[test]
    fn a_nap_is_one_packet() {
        let mut bench = Bench::new(PAPERS);
        for bytes in [2048, 0, 300] {
            let move_primitive = Primitive::Nap.code();
            bench.moves.push_back(In { move_primitive, ..put(1, 0, bytes) });
        }
        bench.read(0, &numbered(2048), true);
        bench.read(0, &numbered(300), true);
        bench.run(600);
        let packet = |bytes| (0, numbered(bytes), vec![], false);
        assert_eq!(bench.packets(), [packet(2048), packet(0), packet(300)]);
    }

    /// A header takes a cycle, and each beat of data one. A packet leaves from two cycles after its
    /// last byte on, without pauses, and is reported a cycle after its last beat.
    #[test]
    fn a_packet_leaves_when_its_bytes_have_come() {
        let mut bench = Bench::new(PAPERS);
        bench.moves.push_back(put(3, 0x1000, 256));
        bench.read(0, &numbered(128), false);
        // The move is taken in cycle 0, the header is made in 1, and data comes from 2 to 9.
        bench.run(12);
        assert_eq!((bench.taken, bench.left.len()), (9, 0));
        bench.run(20);
        assert_eq!((bench.left[0].0, bench.left[0].1, bench.sent.len()), (11, 19, 0));
        // The second header was made in 10. The next byte comes in cycle 32.
        bench.read(0, &numbered(128), true);
        let out = bench.run(8);
        assert_eq!((bench.taken, out.packets, out.room), (39, 0, 248));
        let out = bench.run(1);
        assert_eq!((out.packets, out.room, out.out_valid), (1, 247, false));
        let out = bench.run(1);
        assert_eq!((out.packets, out.room, out.out_valid), (1, 248, true));
        bench.run(20);
        assert_eq!((bench.left[1].0, bench.left[1].1), (41, 49));
        assert_eq!(bench.sent, [(50, 3, false)]);
    }

    /// What does not fit into the last beat takes a cycle more: bytes of the beat that came last,
    /// or of the tail.
    #[test]
    fn a_beat_more_takes_a_cycle_more() {
        for (lead, tail, late) in
            [(0, 0, 0), (1, 0, 1), (0, 1, 1), (0, 16, 1), (1, 12, 1), (1, 13, 2)]
        {
            let mut bench = Bench::new(PAPERS);
            bench.moves.push_back(In { move_tail_bytes: tail, ..put(0, 0x1000 + lead, 16) });
            bench.read(0, &numbered(16), true);
            bench.run(20);
            assert_eq!((bench.taken, bench.left[0].0), (2, 4 + late), "{lead} and {tail}");
        }
    }

    /// Nothing of a packet leaves whose data failed, and no other one of its operation. The rest of
    /// its data and of its moves is passed over, in any order. It is reported in its turn, and the
    /// next operation is whole.
    #[test]
    fn an_operation_whose_data_failed_is_passed_over() {
        for (is_last, ends) in [(true, true), (false, true), (true, false), (false, false)] {
            let mut bench = Bench::new(PAPERS);
            bench.moves.push_back(put(4, 0x1000, 16));
            bench.moves.push_back(In { move_last: is_last, ..put(5, 0x2000, 200) });
            if !is_last {
                bench.moves.push_back(In { move_last: false, ..put(5, 0x3000, 100) });
                bench.moves.push_back(put(5, 0x4000, 100));
            }
            bench.moves.push_back(put(6, 0x5000, 20));
            bench.read(0, &numbered(16), true);
            bench.read(7, &numbered(150), false);
            bench.fails(ends);
            if !ends {
                bench.read(1, &numbered(17), false);
                bench.fails(false);
                bench.read(1, &numbered(100), true);
            }
            bench.read(3, &numbered(20), true);
            bench.run(100);
            let packet = |address, bytes| (address, numbered(bytes), vec![], false);
            let expected = [packet(0x1000, 16), packet(0x2000, 128), packet(0x5000, 20)];
            assert_eq!(bench.packets(), expected);
            let reports: Vec<_> = bench.sent.iter().map(|it| (it.1, it.2)).collect();
            assert_eq!(reports, [(4, false), (5, true), (6, false)]);
            let out = bench.run(1);
            assert_eq!((out.room, out.packets, out.move_ready), (256, 0, true));
        }
    }

    /// While a report waits, the last packet of the next operation does, and all behind it. The
    /// other packets of that operation leave.
    #[test]
    fn a_report_that_waits_holds_the_next_operation() {
        let mut bench = Bench::new(PAPERS);
        bench.sent_ready = false;
        bench.moves.push_back(put(1, 0x1000, 16));
        bench.moves.push_back(put(2, 0x2000, 256));
        bench.moves.push_back(put(3, 0x3000, 16));
        for bytes in [16, 256, 16] {
            bench.read(0, &numbered(bytes), true);
        }
        let out = bench.run(60);
        assert_eq!((bench.left.len(), out.packets), (2, 2));
        assert!(out.sent_valid && out.sent_operation == 1);
        bench.sent_ready = true;
        bench.run(1);
        bench.sent_ready = false;
        bench.run(20);
        assert_eq!((bench.left[2].0, bench.left[2].1, bench.left.len()), (61, 69, 3));
        bench.sent_ready = true;
        bench.run(20);
        assert_eq!(bench.sent, [(60, 1, false), (81, 2, false), (84, 3, false)]);
    }

    /// The buffer holds as many packets and beats as it has places, and then takes no data.
    #[test]
    fn the_buffer_is_bounded() {
        // Two packets of two beats.
        let mut bench = Bench::new(SMALL);
        bench.out_ready = false;
        for operation in 0..4 {
            bench.moves.push_back(put(operation, 0x1000, 16));
            bench.read(0, &numbered(16), true);
        }
        let out = bench.run(30);
        // One beat stands at the output.
        assert_eq!((out.packets, out.room, bench.data.len()), (2, 13, 2));
        bench.out_ready = true;
        bench.run(30);
        assert_eq!((bench.left.len(), bench.sent.len()), (4, 4));

        // Beats of seven and of seven, and two of the third.
        let mut bench = Bench::new(Shape { packets: 4, ..SMALL });
        bench.out_ready = false;
        for operation in 0..3 {
            let move_primitive = Primitive::Nap.code();
            bench.moves.push_back(In { move_primitive, ..put(operation, 0, 96) });
            bench.read(0, &numbered(96), true);
        }
        let out = bench.run(60);
        assert_eq!((out.packets, out.room, out.in_ready, bench.data.len()), (2, 0, false, 4));
        bench.out_ready = true;
        bench.run(60);
        assert_eq!((bench.left.len(), bench.sent.len()), (3, 3));
    }
}
