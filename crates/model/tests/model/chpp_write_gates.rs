//! The cycle blocks of cHPP that write to host memory with each other: the upload module, the
//! sender of events, the event rings and the arbiter of writes, with software that reads its rings
//! late, and a ring that is closed.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::event_ring::{self, EventRing};
use bellwire_model::cycle::send_event::{self, PACKERS, SendEvent, Shape};
use bellwire_model::cycle::upload::{self, Upload};
use bellwire_model::cycle::write_arb::{self, WriteArb};
use bellwire_model::engine::Random;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::{EVENT_BYTES, EventRepr, Status, phase};
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

const FUNCTIONS: usize = 4;
const RINGS: usize = 8 * FUNCTIONS;
const ENTRIES: u64 = 3;
const COUNT_BITS: usize = 4;
/// The rings lie one behind the other from this record on.
const BASE: u64 = 0x100;
/// A send ring that software does not open.
const CLOSED: u8 = 3 << 3;
/// PUTs are for places of this size from here on, one behind the other.
const HOME: u64 = 1 << 36;
const PLACE: u64 = 4096;

/// A packet on its way: its payload, and whether it wants an event.
#[derive(Debug)]
struct Put {
    address: u64,
    payload: Vec<u8>,
    wants_event: bool,
}

/// What an own event must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    ring: u8,
    descriptor: u64,
    status: Status,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    sent: u64,
    received: u64,
    dropped: u64,
    full: u64,
}

/// The blocks, connected as in gates, and what is known of their work.
struct Path {
    upload: Upload,
    sender: SendEvent,
    rings: EventRing,
    arb: WriteArb,
    /// Records leave only if the arbiter takes them.
    waits: bool,
    random: Random,
    puts: Vec<Put>,
    beats: VecDeque<upload::In>,
    /// Operations that packers have: place, and status. Those whose events are due, by function.
    open: Vec<(u8, u64)>,
    due: Vec<VecDeque<Sent>>,
    begun: u64,
    /// By ring, records that software has read, and has reported.
    read: [u64; RINGS],
    reported: [u64; RINGS],
    memory: BTreeMap<u64, u8>,
    /// Of the write that leaves: address, bytes, and bytes that have left.
    write: Option<(u64, u64, u64)>,
    seen: Seen,
}

impl Path {
    fn new(seed: u64) -> Path {
        let mut rings = EventRing::new(RINGS, COUNT_BITS);
        for ring in (0..RINGS as u8).filter(|ring| *ring != CLOSED) {
            rings.cycle(event_ring::In {
                host_valid: true,
                host_opens: true,
                host_ring: ring,
                host_base: BASE + ENTRIES * u64::from(ring),
                host_count: ENTRIES as u16,
                ..event_ring::In::default()
            });
        }
        Path {
            upload: Upload::new(128),
            sender: SendEvent::new(Shape { functions: FUNCTIONS, depth: 4, dropped_bits: 32 }),
            rings,
            arb: WriteArb::default(),
            waits: true,
            random: Random::new(seed),
            puts: Vec::new(),
            beats: VecDeque::new(),
            open: Vec::new(),
            due: vec![VecDeque::new(); FUNCTIONS],
            begun: 0,
            read: [0; RINGS],
            reported: [0; RINGS],
            memory: BTreeMap::new(),
            write: None,
            seen: Seen::default(),
        }
    }

    /// A PUT packet for any address in the next place.
    fn put(&mut self) {
        let random = &mut self.random;
        let address = HOME + PLACE * self.puts.len() as u64 + random.below(64);
        let length = 1 + random.below(300) as usize;
        let payload: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let to = Endpoint::new(1, random.below(FUNCTIONS as u64) as u8, random.below(4) as u8);
        let wants_event = random.below(2) == 0;
        let header = HeaderRepr {
            primitive: Primitive::Put,
            traffic_class: 0,
            requester_id: 0,
            magic: 0,
            source: Endpoint::new(2, 0, 0).unwrap(),
            destination: to.unwrap(),
            wants_event,
            span: ByteSpan::new(address, length).unwrap(),
        };
        let packet = PacketRepr { header, payload: &payload, tail: Tail::EMPTY };
        let mut bytes = vec![0; packet.buffer_len()];
        packet.emit(&mut bytes).unwrap();
        let count = bytes.len().div_ceil(LANES);
        for (at, lanes) in bytes.chunks(LANES).enumerate() {
            let mut beat = [0; LANES];
            beat[..lanes.len()].copy_from_slice(lanes);
            self.beats.push_back(upload::In {
                in_last: at + 1 == count,
                in_to: lanes.len() as u8 - 1,
                in_data: [0, 8].map(|from| {
                    u64::from_le_bytes(beat[from..from + 8].try_into().expect("8 bytes"))
                }),
                ..upload::In::default()
            });
        }
        self.puts.push(Put { address, payload, wants_event });
    }

    /// Operations begin and end, and descriptors are refused.
    fn operate(&mut self, works: bool) -> send_event::In {
        let random = &mut self.random;
        let mut input = send_event::In {
            move_valid: works && random.below(4) == 0,
            move_function: random.below(FUNCTIONS as u64) as u8,
            move_pair: random.below(4) as u8,
            move_primitive: Primitive::Put.code(),
            move_descriptor: self.begun,
            report_valid: works && random.below(16) == 0,
            report_function: random.below(FUNCTIONS as u64) as u8,
            report_pair: random.below(4) as u8,
            report_primitive: Primitive::Put.code(),
            report_address: self.begun,
            report_status: Status::BadDescriptor.code(),
            ..send_event::In::default()
        };
        for packer in 0..PACKERS {
            if !self.open.is_empty() && random.below(4) == 0 {
                let at = random.below(self.open.len() as u64) as usize;
                let (place, descriptor) = self.open.swap_remove(at);
                let failed = random.below(8) == 0;
                input.sent_valid[packer] = true;
                (input.sent_place[packer], input.sent_failed[packer]) = (place, failed);
                let mut due = self.due.iter_mut().flatten();
                let sent = due.find(|sent| sent.descriptor == descriptor).expect("it has begun");
                if failed {
                    sent.status = Status::SourceFault;
                }
            }
        }
        input
    }

    /// What the host reports of a ring: at times, that it has read something.
    fn report(&mut self, input: &mut event_ring::In) {
        let ring = self.random.below(RINGS as u64) as usize;
        if self.read[ring] > self.reported[ring] {
            self.reported[ring] = self.read[ring];
            (input.host_valid, input.host_ring) = (true, ring as u8);
            input.host_count = (self.read[ring] % (1 << COUNT_BITS)) as u16;
        }
    }

    /// One cycle; work begins only if it `works`, and software reads more if not.
    fn cycle(&mut self, works: bool) {
        if works && self.beats.is_empty() && self.random.below(8) == 0 {
            self.put();
        }
        let beat = self.beats.front().copied().unwrap_or_default();
        let mut upload = upload::In {
            cpu: 1,
            in_valid: !self.beats.is_empty(),
            packet_fits: true,
            target_fits: true,
            lacks_list: true,
            ..beat
        };
        let mut sender = self.operate(works);
        let mut rings = event_ring::In::default();
        self.report(&mut rings);
        let written = self.rings.clone().cycle(rings);
        let uploaded = self.upload.out();
        let arb = write_arb::In {
            upload_valid: uploaded.out_valid,
            upload_last: uploaded.out_last,
            upload_function: uploaded.out_function,
            upload_address: uploaded.out_address,
            upload_bytes: uploaded.out_bytes,
            upload_data: uploaded.out_data,
            event_valid: written.out_valid,
            event_function: written.out_ring >> 3,
            event_address: written.out_address,
            event_record: written.out_event,
            out_ready: self.random.below(4) > 0,
        };
        let out = self.arb.cycle(arb);
        if out.out_valid && arb.out_ready {
            self.store(&out);
        }
        upload.out_ready = out.upload_ready;

        // What is offered does not depend on what the rings answer.
        let offered = self.upload.clone().cycle(upload);
        sender.upload_valid = offered.event_valid;
        (sender.upload_ring, sender.upload_record) = (offered.event_ring, offered.event_record);
        let sends = self.sender.clone().cycle(sender);
        rings.in_valid = sends.event_valid;
        (rings.in_ring, rings.in_event) = (sends.event_ring, sends.event_record);
        rings.out_ready = out.event_ready || !self.waits;
        let answer = self.rings.cycle(rings);
        assert!(!answer.refused, "software reports what is there");
        sender.event_ready = answer.in_ready;
        (sender.lacks_ring, sender.lacks_place) = (answer.lacks_ring, answer.lacks_place);
        let sends = self.sender.cycle(sender);
        upload.event_ready = sends.upload_ready;
        (upload.lacks_ring, upload.lacks_place) =
            (sends.upload_lacks_ring, sends.upload_lacks_place);
        let uploads = self.upload.cycle(upload);
        assert!(!uploads.mismatched && !uploads.unknown && !uploads.closed && !uploads.refused);

        self.seen.full += u64::from(sends.event_valid && answer.lacks_place);
        if upload.in_valid && uploads.in_ready {
            self.beats.pop_front();
        }
        self.note(&sender, &sends);
        for ring in 0..RINGS {
            if self.random.below(if works { 128 } else { 8 }) == 0 {
                self.software(ring);
            }
        }
    }

    /// Operations that have begun, and events that were dropped.
    fn note(&mut self, input: &send_event::In, out: &send_event::Out) {
        if out.dropped_valid {
            let function = usize::from(out.dropped_function);
            let sent = self.due[function].iter().position(|sent| sent.ring == CLOSED);
            self.due[function].remove(sent.expect("only what is for a closed ring is dropped"));
            self.seen.dropped += 1;
            assert_eq!(u64::from(out.dropped), self.seen.dropped);
        }
        let mut begins = |function: u8, pair: u8, status| {
            let ring = function << 3 | pair << 1;
            let sent = Sent { ring, descriptor: self.begun, status };
            self.due[usize::from(function)].push_back(sent);
            self.begun += 1;
        };
        if input.move_valid && out.move_ready {
            self.open.push((out.move_place, input.move_descriptor));
            begins(input.move_function, input.move_pair, Status::Success);
        } else if input.report_valid && out.report_ready {
            begins(input.report_function, input.report_pair, Status::BadDescriptor);
        }
    }

    /// A beat leaves: it is the next one of its write, and its lanes are stored.
    fn store(&mut self, out: &write_arb::Out) {
        let bytes = u64::from(out.out_bytes);
        let (address, all, left) = self.write.take().unwrap_or((out.out_address, bytes, 0));
        assert_eq!((address, all), (out.out_address, bytes), "a write is whole");
        let at = address + left;
        let count = (all - left).min(LANES as u64 - at % LANES as u64);
        let lanes = out.out_data.map(u64::to_le_bytes);
        let lanes = lanes.as_flattened();
        for step in 0..count {
            let lane = ((at + step) % LANES as u64) as usize;
            self.memory.insert(at + step, lanes[lane]);
        }
        assert_eq!(out.out_last, left + count == all, "a write ends with its last byte");
        self.write = (!out.out_last).then_some((address, all, left + count));
    }

    /// Software looks at the next record of a ring.
    fn software(&mut self, ring: usize) {
        let place = BASE + ENTRIES * ring as u64 + self.read[ring] % ENTRIES;
        let at = place * EVENT_BYTES as u64;
        let byte = |at: u64| self.memory.get(&at).copied().unwrap_or(0);
        let bytes: Vec<u8> = (at..at + EVENT_BYTES as u64).map(byte).collect();
        let is_new = phase(self.read[ring], NonZeroU64::new(ENTRIES).unwrap());
        let Ok(event) = EventRepr::parse(&bytes) else { return };
        if event.phase != is_new {
            return;
        }
        self.read[ring] += 1;
        if ring % 2 == 1 {
            let number = ((event.address - HOME) / PLACE) as usize;
            let put = &mut self.puts[number];
            assert!(std::mem::take(&mut put.wants_event), "one event, if it is wanted");
            assert_eq!((event.address, event.length), (put.address, put.payload.len() as u64));
            let data: Vec<u8> = (put.address..).map(byte).take(put.payload.len()).collect();
            assert_eq!(data, put.payload, "data is there before its event");
            self.seen.received += 1;
            return;
        }
        let due = &mut self.due[ring / 8];
        let next = due.iter().position(|sent| usize::from(sent.ring) == ring);
        let sent = due.remove(next.expect("an event is of an operation")).expect("it is there");
        let found = Sent { ring: ring as u8, descriptor: event.address, status: event.status };
        assert_eq!(found, sent, "events of a ring keep their order");
        self.seen.sent += 1;
    }

    /// Runs it, and then lets all come to its end.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        for _ in 0..8_000 {
            self.cycle(false);
        }
        let is_done = self.due.iter().all(VecDeque::is_empty)
            && self.puts.iter().all(|put| !put.wants_event)
            && self.beats.is_empty();
        assert!(is_done, "all events come: {:?}", self.due);
    }
}

/// Each operation that has begun has one event, in order, or is counted as dropped because its ring
/// is closed. Each PUT that wants one has one, behind all of its data. No ring that is full, and no
/// boundary that stalls, loses a record or cuts a write.
// shows: C-13, C-14, C-16
#[test]
fn events_and_data_come_whole_and_in_order() {
    for seed in 1..4 {
        let mut path = Path::new(seed);
        path.run(20_000);
        let Seen { sent, received, dropped, full } = path.seen;
        assert!([sent, received, dropped, full].iter().all(|&count| count > 30), "{:?}", path.seen);
    }
}

/// Canary: a record that leaves before the arbiter has taken all of it is noticed.
#[test]
#[should_panic(expected = "a write is whole")]
fn records_that_do_not_wait_are_cut() {
    let mut path = Path::new(1);
    path.waits = false;
    path.run(2_000);
}
