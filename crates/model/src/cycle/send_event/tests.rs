use bellwire_wire::event::{EVENT_BYTES, EventRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

use super::*;

const SHAPE: Shape = Shape { functions: 4, depth: 4, dropped_bits: 2 };
const PUT: u8 = Primitive::Put.code();
const NAP: u8 = Primitive::Nap.code();

/// A sender before rings that have room.
struct Driven {
    sender: SendEvent,
    says: In,
}

impl Driven {
    fn new() -> Driven {
        let says = In { event_ready: true, ..In::default() };
        Driven { sender: SendEvent::new(SHAPE), says }
    }

    fn cycle(&mut self) -> Out {
        self.sender.cycle(self.says)
    }

    /// An operation begins; its place.
    fn begins(&mut self, function: u8, descriptor: u64) -> u8 {
        let says = In {
            move_valid: true,
            move_function: function,
            move_descriptor: descriptor,
            move_primitive: PUT,
            event_ready: false,
            ..self.says
        };
        let out = self.sender.cycle(says);
        assert!(out.move_ready, "function {function} has a place");
        out.move_place
    }

    /// A packer says that this place is done.
    fn done(&mut self, packer: usize, place: u8, failed: bool) {
        let mut says = In { event_ready: false, ..self.says };
        says.sent_valid[packer] = true;
        (says.sent_failed[packer], says.sent_place[packer]) = (failed, place);
        self.sender.cycle(says);
    }

    fn room(&mut self, function: usize) -> u8 {
        self.sender.cycle(In { event_ready: false, ..self.says }).room[function]
    }

    /// Functions and descriptors of the events that enter in so many cycles.
    fn events(&mut self, cycles: usize) -> Vec<(u8, u64)> {
        let outs = (0..cycles).map(|_| self.cycle()).filter(|out| out.event_valid);
        outs.map(|out| (out.event_ring >> 3, address(&out))).collect()
    }
}

fn address(out: &Out) -> u64 {
    out.event_record[2] & ((1 << ADDRESS_BITS) - 1)
}

/// What software reads of a record.
fn read(out: &Out) -> EventRepr {
    let bytes: Vec<u8> = out.event_record.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(bytes.len(), EVENT_BYTES);
    EventRepr::parse(&bytes).expect("a record of the format")
}

/// There is a place for each operation that the packers can have, and a bit above it.
#[test]
fn places_are_numbers_of_operations() {
    assert_eq!((PLACE_BITS, OPERATION_BITS), (7, 8));
    SendEvent::new(Shape { functions: 8, depth: 16, dropped_bits: 32 });
}

/// An operation that begins in cycle 0 and is done in 1 is offered from 3 on, in the send ring of
/// its queue pair, and stays until it enters. Then its place is free.
// shows: C-13
#[test]
fn an_operation_that_is_done_has_an_event() {
    let mut driven = Driven::new();
    let tail = Tail::new(&[0xa5; 11]).unwrap();
    let mut padded = [0; 16];
    padded[..11].copy_from_slice(tail.as_bytes());
    let says = In {
        move_valid: true,
        move_function: 2,
        move_pair: 3,
        move_peer: 0x1ff,
        move_primitive: NAP,
        move_tail_bytes: 11,
        move_tail: std::array::from_fn(|word| {
            u64::from_le_bytes(padded[8 * word..8 * word + 8].try_into().unwrap())
        }),
        move_total: (1 << BYTES_BITS) - 1,
        move_descriptor: (1 << ADDRESS_BITS) - 1,
        ..In::default()
    };
    let out = driven.sender.cycle(says);
    assert_eq!((out.move_ready, out.move_place, out.room[2]), (true, 8, 4));
    driven.done(0, 8, false);
    driven.says.event_ready = false;
    let out = driven.cycle();
    assert_eq!((out.event_valid, out.room[2]), (false, 3));
    for _ in 0..3 {
        let out = driven.cycle();
        assert_eq!((out.event_valid, out.event_ring, out.room[2]), (true, 2 << 3 | 3 << 1, 3));
        let expected = EventRepr {
            phase: false,
            primitive: Primitive::Nap,
            status: Status::Success,
            queue_pair: 3,
            peer: Endpoint::new(15, 7, 3).unwrap(),
            address: (1 << ADDRESS_BITS) - 1,
            length: (1 << BYTES_BITS) - 1,
            tail,
        };
        assert_eq!(read(&out), expected);
    }
    driven.says.event_ready = true;
    assert!(driven.cycle().event_valid);
    let out = driven.cycle();
    assert_eq!((out.event_valid, out.event_record, out.room[2]), (false, [0; EVENT_WORDS], 4));
}

/// An operation whose data failed says so, and not how far it came. The rest of its record stays.
#[test]
fn data_that_failed_is_a_source_fault() {
    for packer in 0..PACKERS {
        let mut driven = Driven::new();
        driven.says.move_pair = 2;
        driven.says.move_total = (1 << BYTES_BITS) - 1;
        driven.says.move_peer = 0x155;
        let place = driven.begins(1, 0x1240);
        driven.done(packer, place, true);
        driven.cycle();
        let event = read(&driven.cycle());
        assert_eq!((event.status, event.length), (Status::SourceFault, 0));
        assert_eq!((event.address, event.primitive), (0x1240, Primitive::Put));
        assert_eq!((event.queue_pair, event.peer.to_bits()), (2, 0x155));
    }
}

/// A descriptor that is refused is done at once.
#[test]
fn a_refused_descriptor_has_an_event() {
    let mut driven = Driven::new();
    let says = In {
        report_valid: true,
        report_status: Status::UnequalSums.code(),
        report_function: 3,
        report_pair: 1,
        report_peer: 0x0aa,
        report_primitive: PUT,
        report_address: 0xff_ffff_fff8,
        event_ready: true,
        ..In::default()
    };
    let out = driven.sender.cycle(says);
    assert!(out.report_ready && !out.event_valid);
    assert!(!driven.cycle().event_valid);
    let out = driven.cycle();
    assert_eq!((out.event_valid, out.event_ring), (true, 3 << 3 | 1 << 1));
    let expected = EventRepr {
        phase: false,
        primitive: Primitive::Put,
        status: Status::UnequalSums,
        queue_pair: 1,
        peer: Endpoint::new(5, 2, 2).unwrap(),
        address: 0xff_ffff_fff8,
        length: 0,
        tail: Tail::EMPTY,
    };
    assert_eq!(read(&out), expected);
    assert!(!driven.cycle().event_valid);
}

/// Events of a function keep the order in which its operations began, whichever packer is done
/// first, and refused descriptors stand among them.
#[test]
fn events_of_a_function_keep_their_order() {
    let mut driven = Driven::new();
    let places = [0x10, 0x20, 0x30].map(|descriptor| driven.begins(0, descriptor));
    assert_eq!(places, [0, 1, 2]);
    driven.says.report_address = 0x40;
    let report = In { report_valid: true, event_ready: false, ..driven.says };
    assert!(driven.sender.cycle(report).report_ready);
    driven.done(0, places[2], false);
    driven.done(1, places[1], false);
    assert_eq!(driven.events(6), []);
    driven.done(0, places[0], false);
    assert_eq!(driven.events(9), [(0, 0x10), (0, 0x20), (0, 0x30), (0, 0x40)]);
    // The same place again, behind all.
    let places = [0x50, 0x60].map(|descriptor| driven.begins(0, descriptor));
    assert_eq!(places, [0, 1]);
    driven.done(0, places[1], true);
    driven.done(0, places[0], false);
    assert_eq!(driven.events(6), [(0, 0x50), (0, 0x60)]);
}

/// Both packers may report in one cycle. What one says of a free place counts for nothing, also
/// when an operation begins there later.
#[test]
fn only_what_was_begun_is_done() {
    let mut driven = Driven::new();
    for place in 0..16 {
        driven.done(0, place, false);
    }
    let places = [driven.begins(0, 0x10), driven.begins(1, 0x20), driven.begins(1, 0x30)];
    assert_eq!(places, [0, 4, 5]);
    for place in [1, 6, 7, 8] {
        driven.done(1, place, false);
    }
    assert_eq!(driven.events(6), []);
    let both = In {
        sent_valid: [true; PACKERS],
        sent_place: [4, 0],
        sent_failed: [false, true],
        ..driven.says
    };
    driven.sender.cycle(both);
    assert_eq!(driven.events(8), [(0, 0x10), (1, 0x20)]);
    // The last packer counts if both name one place.
    driven.sender.cycle(In { sent_place: [5, 5], ..both });
    driven.cycle();
    assert_eq!(read(&driven.cycle()).status, Status::SourceFault);
}

/// A function has as many places as it has, and holds only itself up. An operation goes before a
/// descriptor that was refused, and one that has no place does not.
#[test]
fn a_function_that_is_full_waits_alone() {
    let mut driven = Driven::new();
    for descriptor in 0..4 {
        driven.begins(1, descriptor);
    }
    let both = In {
        move_valid: true,
        move_function: 1,
        report_valid: true,
        report_function: 1,
        event_ready: false,
        ..driven.says
    };
    let ready = |out: Out| (out.move_ready, out.report_ready);
    assert_eq!(ready(driven.sender.cycle(both)), (false, false));
    assert_eq!(ready(driven.sender.cycle(In { report_function: 0, ..both })), (false, true));
    assert_eq!(ready(driven.sender.cycle(In { move_function: 0, ..both })), (true, false));
    assert_eq!(
        ready(driven.sender.cycle(In { move_function: 0, report_function: 2, ..both })),
        (true, false)
    );
    let idle = In { move_valid: false, move_function: 0, report_function: 2, ..both };
    assert_eq!(ready(driven.sender.cycle(idle)), (true, true));
    assert_eq!([0, 1, 2, 3].map(|function| driven.room(function)), [1, 0, 3, 4]);
}

/// Functions take turns, from the one behind the last served on, one in two cycles. After reset,
/// function 0 goes first.
// shows: C-41
#[test]
fn functions_take_turns() {
    let mut driven = Driven::new();
    for descriptor in 0..3 {
        for function in [3, 1, 0] {
            let place = driven.begins(function, descriptor);
            driven.done(0, place, false);
        }
    }
    // Function 3 was offered when it alone was done.
    driven.says.event_ready = true;
    let turns = [(3, 0), (0, 0), (1, 0), (3, 1), (0, 1), (1, 1), (3, 2), (0, 2), (1, 2)];
    let events = driven.events(17);
    assert_eq!(events, turns);
    assert_eq!(driven.events(4), []);
}

/// One whose ring is full lets others go, in the next cycle but one, and comes again in its turn.
/// Nothing is lost.
// shows: C-16
#[test]
fn a_full_ring_lets_others_go() {
    let mut driven = Driven::new();
    for function in [0, 2] {
        for descriptor in [0x10, 0x20] {
            let place = driven.begins(function, descriptor);
            driven.done(0, place, false);
        }
    }
    let full = In { event_ready: false, lacks_place: true, ..driven.says };
    let mut seen = Vec::new();
    for _ in 0..40 {
        // Function 0's ring is full.
        let is_first = driven.sender.offered == Some(0);
        let says = if is_first { full } else { driven.says };
        let out = driven.sender.cycle(says);
        if out.event_valid {
            seen.push((out.event_ring >> 3, address(&out)));
        }
    }
    assert_eq!(seen[..5], [(0, 0x10), (2, 0x10), (0, 0x10), (2, 0x20), (0, 0x10)]);
    assert!(seen[4..].iter().all(|&it| it == (0, 0x10)));
    assert_eq!(seen.len(), 20);
    assert_eq!(driven.room(0), 2);
    driven.cycle();
    assert_eq!(driven.events(6), [(0, 0x20)], "the first one has entered before");
}

/// An event for a closed ring is dropped, told and counted, and those behind it go on. The count
/// begins anew behind its highest number.
#[test]
fn an_event_for_a_closed_ring_is_counted() {
    let mut driven = Driven::new();
    for count in 0..6 {
        let place = driven.begins(3, 0x10);
        driven.done(0, place, false);
        let closed = In { event_ready: false, lacks_ring: true, ..driven.says };
        assert!(!driven.sender.cycle(closed).event_valid);
        let out = driven.sender.cycle(closed);
        assert!(out.event_valid && !out.dropped_valid);
        assert_eq!(out.dropped, count % 4);
        let out = driven.sender.cycle(closed);
        assert_eq!((out.dropped_valid, out.dropped_function), (true, 3));
        assert_eq!((out.dropped, out.room[3]), ((count + 1) % 4, 4));
        let out = driven.sender.cycle(closed);
        assert_eq!((out.dropped_valid, out.dropped_function), (false, 0));
    }
}

/// Events of the upload module go by whenever none of this block is offered, and hear of their
/// ring. While one is, its ring seems full, and never closed.
#[test]
fn uploads_go_by() {
    let mut driven = Driven::new();
    let upload =
        In { upload_valid: true, upload_ring: 0x2b, upload_record: [1, 2, 3, 4], ..driven.says };
    let out = driven.sender.cycle(upload);
    assert_eq!((out.event_valid, out.event_ring, out.event_record), (true, 0x2b, [1, 2, 3, 4]));
    let hears = |out: Out| (out.upload_ready, out.upload_lacks_ring, out.upload_lacks_place);
    assert_eq!(hears(out), (true, false, false));
    for (ring, place) in [(false, true), (true, false), (false, false)] {
        let says = In { event_ready: false, lacks_ring: ring, lacks_place: place, ..upload };
        assert_eq!(hears(driven.sender.cycle(says)), (false, ring, place));
        let asks = In { upload_valid: false, ..says };
        let out = driven.sender.cycle(asks);
        assert_eq!((hears(out), out.event_ring), ((false, ring, place), 0x2b));
        assert_eq!((out.event_valid, out.event_record), (false, [0; EVENT_WORDS]));
    }
    let place = driven.begins(0, 0x10);
    driven.done(0, place, false);
    assert!(!driven.cycle().event_valid);
    let wait = In { event_ready: false, ..upload };
    for says in [wait, In { lacks_ring: true, ..wait }] {
        let out = driven.sender.cycle(says);
        assert_eq!((hears(out), out.event_ring, address(&out)), ((false, false, true), 0, 0x10));
    }
}

/// Own events and those of the upload module take turns if both wait. One of the upload module that
/// cannot enter loses its turn; an own one goes by if there is none.
#[test]
fn events_and_uploads_take_turns() {
    let mut driven = Driven::new();
    for descriptor in 0..4 {
        let place = driven.begins(0, descriptor);
        driven.done(0, place, false);
    }
    let upload = In { upload_valid: true, upload_ring: 1, ..driven.says };
    let busy = In { event_ready: false, ..upload };
    let ring = |out: Out| out.event_ring;
    // An own one is offered, and enters. Then it is the other's turn, however long that takes.
    assert_eq!(ring(driven.sender.cycle(busy)), 0);
    assert_eq!(ring(driven.sender.cycle(upload)), 0);
    assert_eq!([(); 5].map(|()| ring(driven.sender.cycle(busy))), [1; 5]);
    assert_eq!(ring(driven.sender.cycle(upload)), 1);
    assert_eq!(ring(driven.sender.cycle(upload)), 0);
    // One that lacks something has had its turn.
    assert_eq!([(); 2].map(|()| ring(driven.sender.cycle(busy))), [1; 2]);
    assert_eq!(ring(driven.sender.cycle(In { lacks_place: true, ..busy })), 1);
    assert_eq!(ring(driven.sender.cycle(upload)), 0);
    assert_eq!([(); 2].map(|()| ring(driven.sender.cycle(busy))), [1; 2]);
    assert_eq!(ring(driven.sender.cycle(In { lacks_ring: true, ..busy })), 1);
    // Without one, the own event goes, though it is the other's turn; who only asks has none.
    assert_eq!(ring(driven.sender.cycle(upload)), 0);
    driven.cycle();
    let place = driven.begins(0, 9);
    driven.done(0, place, false);
    driven.cycle();
    let asks = In { upload_valid: false, ..busy };
    assert_eq!(ring(driven.sender.cycle(asks)), 0);
    assert_eq!(ring(driven.sender.cycle(upload)), 1);
    assert_eq!(ring(driven.sender.cycle(upload)), 0);
    assert_eq!(driven.room(0), 4);
}
