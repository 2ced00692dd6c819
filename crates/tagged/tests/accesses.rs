//! Accesses to peers' memory on the in-process fabric.

mod world;

use bellwire::{Address, Error, Message, QueuePairOptions, Rights, Status};
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use world::{Side, World, packet, pattern, random, span, token};

const KEY: u64 = 0xdead_beef_0000_0001;

fn both() -> Rights {
    Rights::REMOTE_READ | Rights::REMOTE_WRITE
}

/// A request to add to one 64-bit number.
fn sum(fetch: bool) -> AtomicRequest {
    AtomicRequest { op: AtomicOp::Sum, datatype: Datatype::U64, count: 1, fetch }
}

impl World {
    /// The second side exposes these bytes.
    fn expose(&mut self, bytes: &mut [u8], rights: Rights) {
        self.sides[1].endpoint.expose(KEY, span(bytes), rights).unwrap();
    }

    fn target(&mut self, key: u64, offset: u64) -> RemoteAddress {
        RemoteAddress { peer: self.peer(0, 1), key, offset }
    }

    /// Writes from the first side to the second and waits for the end. Returns the outcome.
    fn write(&mut self, offset: u64, bytes: &mut [u8], data: Option<u64>, copied: bool) -> Outcome {
        let target = self.target(KEY, offset);
        self.sides[0].done.clear();
        let body = span(bytes).into();
        let Side { endpoint, done } = &mut self.sides[0];
        let sink = &mut |one| done.push(one);
        endpoint.write(target, &body, data, copied, token(1), sink).unwrap();
        if copied {
            bytes.fill(0xaa);
        }
        self.outcome()
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Outcome {
        let target = self.target(KEY, offset);
        self.sides[0].done.clear();
        let into = span(bytes).into();
        let Side { endpoint, done } = &mut self.sides[0];
        endpoint.read(target, &into, token(1), &mut |one| done.push(one)).unwrap();
        self.outcome()
    }

    /// Adds to a 64-bit number. Returns the outcome, and the previous value.
    fn add(&mut self, offset: u64, operand: u64) -> (Outcome, u64) {
        let target = self.target(KEY, offset);
        self.sides[0].done.clear();
        let (mut operand, mut was) = (operand.to_le_bytes(), [0; 8]);
        let operands = &Spans::from(span(&mut operand));
        let with = Operands { operands, compared: operands };
        let into = Spans::from(span(&mut was));
        self.sides[0].endpoint.atomic(target, sum(true), with, Some(&into), token(1)).unwrap();
        (self.outcome(), u64::from_le_bytes(was))
    }

    fn outcome(&mut self) -> Outcome {
        self.settle();
        let done = self.done(0, 1);
        assert_eq!((done.kind, done.token), (CompletionKind::AccessCompleted, token(1)));
        done.outcome
    }
}

const WRONG_KEY: Outcome = Outcome::Failed(Status::WrongKey);

/// Written bytes arrive and are read back, at all lengths, copied or not, whether memory is reached
/// directly or by packets. The owner is told only on request, and no memory stays registered.
#[test]
fn memory_is_written_and_read() {
    for direct in [true, false] {
        for length in [1, 8, 700, 5000, 300_000] {
            let mut world = World::pair(direct);
            let mut memory = vec![0; length + 20];
            world.expose(&mut memory, both());
            let wanted = pattern(length, 9);
            for copied in [false, true] {
                memory.fill(0);
                let mut bytes = wanted.clone();
                assert_eq!(world.write(10, &mut bytes, None, copied), Outcome::Success);
                assert_eq!(memory[10..10 + length], wanted[..]);
                assert!(memory[..10].iter().chain(&memory[10 + length..]).all(|byte| *byte == 0));
                assert!(world.sides[1].done.is_empty());
            }
            let mut bytes = vec![0; length];
            assert_eq!(world.read(10, &mut bytes), Outcome::Success);
            assert_eq!(bytes, wanted);
            assert_eq!(world.write(0, &mut bytes, Some(u64::MAX), false), Outcome::Success);
            let [told] = world.sides[1].done[..] else { panic!("told once") };
            let heard = (told.kind, told.data, told.length);
            assert_eq!(heard, (CompletionKind::Written, Some(u64::MAX), length));
            assert_eq!(world.fabric.exports(world.sides[0].endpoint.address()), 0, "lent");
            world.sides[1].endpoint.withdraw(KEY);
            assert_eq!(world.fabric.exports(world.sides[1].endpoint.address()), 0, "lent");
        }
    }
}

/// Unknown keys, offsets out of bounds and missing rights are refused, and change nothing. A key
/// that now names other memory is asked for again; one that names none any more is refused.
#[test]
fn what_is_not_allowed_changes_nothing() {
    for direct in [true, false] {
        let mut world = World::pair(direct);
        let (mut memory, mut other) = (vec![1; 64], vec![2; 128]);
        let mut bytes = vec![7; 32];
        assert_eq!(world.write(0, &mut bytes, Some(1), false), WRONG_KEY);
        assert_eq!((world.add(0, 1).0, world.read(0, &mut bytes)), (WRONG_KEY, WRONG_KEY));
        world.expose(&mut memory, both());
        let twice = world.sides[1].endpoint.expose(KEY, span(&mut other), both());
        assert!(matches!(twice, Err(PostError::Failed(_))));
        let outside = Outcome::Failed(Status::OutOfBounds);
        for offset in [33, 64, 65, u64::MAX, u64::MAX - 31] {
            assert_eq!(world.write(offset, &mut bytes, Some(1), false), outside, "{offset}");
            assert_eq!(world.read(offset, &mut bytes), outside, "{offset}");
        }
        assert_eq!(world.add(57, 1).0, outside);
        assert_eq!(world.add(u64::MAX - 6, 1).0, outside);
        assert_eq!(world.read(64, &mut []), Outcome::Success, "nothing, at the end");
        assert_eq!(memory, [1; 64]);
        assert_eq!(world.write(0, &mut bytes, None, false), Outcome::Success);
        // The same key for other, longer memory.
        world.sides[1].endpoint.withdraw(KEY);
        world.expose(&mut other, both());
        assert_eq!(world.write(96, &mut bytes, None, false), Outcome::Success);
        assert_eq!((memory[..32].to_vec(), other[96..].to_vec()), (vec![7; 32], vec![7; 32]));
        let refused = Outcome::Failed(Status::NotPermitted);
        for (rights, writes, reads) in [
            (Rights::REMOTE_READ, refused, Outcome::Success),
            (Rights::REMOTE_WRITE, Outcome::Success, refused),
        ] {
            world.sides[1].endpoint.withdraw(KEY);
            other.fill(2);
            world.expose(&mut other, rights);
            assert_eq!(world.add(0, 1).0, refused, "it needs both");
            assert_eq!(other, [2; 128]);
            assert_eq!(world.read(0, &mut bytes), reads);
            assert_eq!(world.write(0, &mut bytes, None, false), writes);
        }
        world.sides[1].endpoint.withdraw(KEY);
        assert_eq!(world.write(0, &mut bytes, None, true), WRONG_KEY);
        assert!(world.sides[1].done.is_empty(), "the owner's program heard of nothing");
    }
}

/// Several peers and the owner itself change numbers, and each is told the previous value. No
/// addition is lost.
#[test]
fn no_change_is_lost() {
    let options = FabricOptions { busy_every: 3, ..FabricOptions::default() };
    let mut world = World::new(options, 3);
    let mut memory = vec![0; 16];
    world.expose(&mut memory, both());
    let mut one = 1_u64.to_le_bytes();
    let operands = &Spans::from(span(&mut one));
    let with = Operands { operands, compared: operands };
    let mut was = vec![[0_u8; 8]; 300];
    for (at, was) in was.iter_mut().enumerate() {
        let target = RemoteAddress { peer: world.peer(at % 3, 1), key: KEY, offset: 8 };
        let into = Spans::from(span(was));
        let change = |world: &mut World| {
            let endpoint = &mut world.sides[at % 3].endpoint;
            endpoint.atomic(target, sum(true), with, Some(&into), token(at as u64))
        };
        while let Err(PostError::Again) = change(&mut world) {
            world.turn();
        }
    }
    world.settle();
    let mut seen: Vec<u64> = was.into_iter().map(u64::from_le_bytes).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<u64>>());
    assert_eq!(memory[8..], 300_u64.to_le_bytes());
    // A misaligned change is refused.
    assert_eq!(world.add(4, 1).0, Outcome::Failed(Status::Misaligned));
    assert_eq!(memory[..8], [0; 8]);
}

/// Numbers are read, written if they equal what is given, and changed several at a time, each by
/// an operand of its own.
#[test]
fn numbers_are_read_compared_and_changed() {
    let mut world = World::pair(true);
    let bytes_of = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut memory: Vec<u8> = bytes_of(&[1, 2, 3, 4, 5]);
    world.expose(&mut memory, both());
    let mut change = |op, operands: &[u32], compared: &[u32]| {
        let (mut operands, mut compared): (Vec<u8>, Vec<u8>) =
            (bytes_of(operands), bytes_of(compared));
        let mut was = vec![0; 12];
        let into = Spans::from(span(&mut was));
        let [operands, compared] = [&mut operands, &mut compared].map(|it| Spans::from(span(it)));
        let with = Operands { operands: &operands, compared: &compared };
        let request = AtomicRequest { op, datatype: Datatype::U32, count: 3, fetch: true };
        let target = world.target(KEY, 4);
        world.sides[0].done.clear();
        world.sides[0].endpoint.atomic(target, request, with, Some(&into), token(1)).unwrap();
        assert_eq!(world.outcome(), Outcome::Success, "{op:?}");
        was
    };
    let read = change(AtomicOp::Read, &[], &[]);
    assert_eq!(read, bytes_of(&[2, 3, 4]));
    assert_eq!(change(AtomicOp::Sum, &[10, 20, 30], &[]), read);
    assert_eq!(change(AtomicOp::SwapEqual, &[7, 8, 9], &[12, 0, 34]), bytes_of(&[12, 23, 34]));
    assert_eq!(memory, bytes_of(&[1, 7, 23, 9, 5]));
}

/// An access to memory that nobody monitors ends without its owner's program, which hears nothing.
#[test]
fn an_owner_that_does_not_monitor_is_not_asked() {
    let mut world = World::pair(true);
    let mut memory = pattern(5000, 1);
    world.expose(&mut memory, both());
    let mut bytes = vec![0; 5000];
    assert_eq!(world.read(0, &mut bytes), Outcome::Success);
    let from = world.target(KEY, 0);
    let into = span(&mut bytes).into();
    let Side { endpoint, done } = &mut world.sides[0];
    done.clear();
    endpoint.read(from, &into, token(2), &mut |one| done.push(one)).unwrap();
    for _ in 0..1000 {
        endpoint.progress(&mut |one| done.push(one)).unwrap();
    }
    assert_eq!(world.done(0, 2).outcome, Outcome::Success);
    let mut ears = Ears::default();
    let mut one = 1_u64.to_le_bytes();
    let one = Spans::from(span(&mut one));
    let with = Operands { operands: &one, compared: &one };
    world.sides[0].endpoint.atomic(from, sum(false), with, None, token(3)).unwrap();
    for _ in 0..1000 {
        world.sides[1].endpoint.progress(&mut ears).unwrap();
        let Side { endpoint, done } = &mut world.sides[0];
        endpoint.progress(&mut |one| done.push(one)).unwrap();
    }
    assert_eq!(world.done(0, 3).outcome, Outcome::Success);
    assert!(ears.0.is_empty());
}

/// A report of an access counts only from a peer that may access the memory so, and all of it.
#[test]
fn reports_are_believed_within_rights_and_bounds() {
    const ACCESSED: u64 = 7;
    const DATA: u64 = 2 << 8;
    const READ: u64 = 16 << 8;
    for (flags, length, is_told) in [(DATA, 8, 0), (DATA | READ, 65, 0), (DATA | READ, 64, 1)] {
        let mut world = World::pair(true);
        let mut memory = vec![3; 64];
        world.expose(&mut memory, Rights::REMOTE_READ);
        let mut function = world.fabric.device(7).open_function(0).unwrap();
        let queue = function.create_completion_queue(64).unwrap();
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
        let report = packet(&[ACCESSED | flags | 9 << 16, 1, KEY, 5, length]);
        let send = Message::inline(&report).to(Address::new(1, 0, 1)).immediate(0).unsignaled();
        function.post_send(pair, send).unwrap();
        for _ in 0..1000 {
            function.progress().unwrap();
            world.turn();
        }
        assert_eq!(world.sides[1].done.len(), is_told, "{flags:x} {length}");
    }
}

/// Invalid requests are refused at once: too long, bitwise changes of floating-point numbers,
/// operands of another length.
#[test]
fn nonsense_is_refused_at_once() {
    let mut world = World::pair(true);
    let target = world.target(KEY, 0);
    let longest = world.sides[0].endpoint.operand_bytes();
    assert!(longest < OPERAND_BYTES && longest.is_multiple_of(4), "packets are short");
    let mut bytes = vec![0; longest + 4];
    let all = &Spans::from(span(&mut bytes));
    let with = Operands { operands: all, compared: all };
    let request = |op, datatype, count| AtomicRequest { op, datatype, count, fetch: false };
    for request in [
        request(AtomicOp::Sum, Datatype::U32, longest / 4 + 1),
        request(AtomicOp::Sum, Datatype::U64, usize::MAX),
        request(AtomicOp::Xor, Datatype::F64, 1),
        request(AtomicOp::Sum, Datatype::U64, 1),
        request(AtomicOp::Sum, Datatype::U64, 0),
    ] {
        let refused = world.sides[0].endpoint.atomic(target, request, with, None, token(1));
        let is_long = request.count > longest / 4;
        match refused {
            Err(PostError::Failed(Error::TooLong { maximum, .. })) => {
                assert!(is_long && maximum == longest, "{request:?}");
            }
            Err(PostError::Failed(_)) => assert!(!is_long, "{request:?}"),
            other => panic!("{request:?}: {other:?}"),
        }
    }
    assert!(!world.sides[0].endpoint.is_waiting_for_peers());
    // The longest one goes.
    let whole = request(AtomicOp::Sum, Datatype::U32, longest / 4);
    let operands = &Spans::from(span(&mut bytes[..longest]));
    let with = Operands { operands, compared: operands };
    world.sides[0].endpoint.atomic(target, whole, with, None, token(1)).unwrap();
    assert_eq!(world.outcome(), WRONG_KEY);
}

/// When the owner is gone, accesses end with that status, also those that wait for its answers.
#[test]
fn the_end_of_the_owner_ends_accesses() {
    let mut world = World::pair(false);
    let mut memory = vec![0; 64];
    world.expose(&mut memory, both());
    let mut bytes = vec![1; 8];
    assert_eq!(world.write(0, &mut bytes, None, false), Outcome::Success);
    let known = world.target(KEY, 0);
    let unknown = RemoteAddress { key: 5, ..known };
    let spans = Spans::from(span(&mut bytes));
    let Side { endpoint, done } = &mut world.sides[0];
    done.clear();
    let sink = &mut |one| done.push(one);
    endpoint.write(known, &spans, Some(1), false, token(10), sink).unwrap();
    endpoint.read(unknown, &spans, token(11), sink).unwrap();
    let with = Operands { operands: &spans, compared: &spans };
    endpoint.atomic(known, sum(true), with, Some(&spans), token(12)).unwrap();
    world.sides.truncate(1);
    world.settle();
    for context in 10..13 {
        let outcome = world.done(0, context).outcome;
        assert!(matches!(outcome, Outcome::Failed(_)), "{context}: {outcome:?}");
    }
    assert!(!world.sides[0].endpoint.is_waiting_for_peers());
}

/// Random requests and unrequested answers of a hostile peer reach no memory, and end no other
/// peer's accesses.
#[test]
fn hostile_requests_change_nothing() {
    let mut world = World::pair(true);
    let mut memory = vec![3; 64];
    world.expose(&mut memory, Rights::REMOTE_READ);
    let device = world.fabric.device(7);
    let mut function = device.open_function(0).unwrap();
    let queue = function.create_completion_queue(4096).unwrap();
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
    let mut next = random(77);
    for round in 0..4000 {
        let kind = 6 + next() % 4;
        let words = [
            kind | (9 << 16),
            ((next() % 4) << 32) | (next() % 4),
            [KEY, next()][round % 2],
            next() % 128,
            (next() % 20) | (next() % 11) << 8 | (next() % 2) << 16 | (next() % 300) << 32,
            next(),
            next(),
        ];
        let bytes = packet(&words);
        let end = next() as usize % (bytes.len() + 1);
        for side in 0..2 {
            let to = Address::new(side, 0, 1);
            let send = Message::inline(&bytes[..end]).to(to).immediate(0).unsignaled();
            let _ = function.post_send(pair, send);
        }
        if round % 16 == 0 {
            let _ = function.progress();
            world.turn();
        }
    }
    world.settle();
    assert_eq!(memory, [3; 64]);
    let mut bytes = vec![0; 64];
    assert_eq!(world.read(0, &mut bytes), Outcome::Success);
    assert_eq!(bytes, memory);
}

/// What a monitoring owner is told.
#[derive(Default)]
struct Ears(Vec<(u64, MemoryAccess)>, Vec<TaggedCompletion>);

impl Sink for Ears {
    fn completed(&mut self, done: TaggedCompletion) {
        self.1.push(done);
    }

    fn memory_accessed(&mut self, key: u64, access: MemoryAccess) {
        self.0.push((key, access));
    }
}

/// A monitoring owner is told of each write, read and change of a peer before that has ended, and
/// of no refused one. This holds whether memory is reached directly or by packets.
#[test]
fn an_owner_that_monitors_hears_of_every_access() {
    for direct in [true, false] {
        let mut world = World::pair(direct);
        let mut memory = vec![0; 70_000];
        world.expose(&mut memory, both());
        world.sides[1].endpoint.monitor();
        let (mut bytes, mut ears) = (pattern(60_000, 1), Ears::default());
        let target = world.target(KEY, 0);
        let outside = world.target(KEY, 20_000);
        let beyond = world.target(KEY, 69_993);
        let all: Spans = span(&mut bytes).into();
        let mut eight = pattern(8, 2);
        let few: Spans = span(&mut eight).into();
        let none = Spans::of(&[]);
        let with = Operands { operands: &few, compared: &none };
        for step in 0..8 {
            let heard = ears.0.len();
            let Side { endpoint, done } = &mut world.sides[0];
            done.clear();
            let sink = &mut |one| done.push(one);
            match step {
                0 => endpoint.write(target, &few, None, false, token(1), sink),
                1 => endpoint.write(target, &all, Some(5), false, token(1), sink),
                2 => endpoint.read(target, &all, token(1), sink),
                3 => endpoint.atomic(target, sum(false), with, None, token(1)),
                4 => endpoint.atomic(target, sum(true), with, Some(&few), token(1)),
                5 => endpoint.write(target, &none, None, false, token(1), sink),
                6 => endpoint.write(outside, &all, None, false, token(1), sink),
                _ => endpoint.atomic(beyond, sum(false), with, None, token(1)),
            }
            .unwrap();
            for _ in 0..100_000 {
                let Side { endpoint, done } = &mut world.sides[0];
                endpoint.progress(&mut |one| done.push(one)).unwrap();
                if !done.is_empty() {
                    break;
                }
                world.sides[1].endpoint.progress(&mut ears).unwrap();
            }
            let refused = step >= 6;
            assert_eq!(world.done(0, 1).outcome != Outcome::Success, refused, "step {step}");
            let access = match step {
                2 => MemoryAccess::Read,
                4 => MemoryAccess::Exchanged,
                _ => MemoryAccess::Written,
            };
            let expected: &[_] = if refused { &[] } else { &[(KEY, access)] };
            assert_eq!(&ears.0[heard..], expected, "step {step}");
        }
        assert_eq!(ears.1.len(), 1, "of one there was data");
    }
}
