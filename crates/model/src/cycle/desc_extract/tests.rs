use bellwire_wire::entry::{Chain, Entries, Entry};
use bellwire_wire::tail::Tail;

use super::*;
use crate::chpp::Config;

const PAPERS: Shape = Shape { places: 2, beats: 256, request: 8 };

const PUT: u8 = Primitive::Put.code();
const GET: u8 = Primitive::Get.code();
const NAP: u8 = Primitive::Nap.code();

/// What is changed before a run.
type Change = fn(&mut Bench);

/// A read: address, bytes, and whether it is the last.
type Read = (u64, u16, bool);

/// Some descriptors, and all that left, with its cycle.
struct Bench {
    extract: DescExtract,
    /// What is ready, and what stands beside the descriptors.
    says: In,
    words: VecDeque<In>,
    /// A source that does not lie in the window.
    outside: Option<u64>,
    answer: bool,
    cycle: u64,
    /// The cycle in which the last word was taken.
    taken: u64,
    reads: Vec<(u64, Read)>,
    moves: Vec<(u64, Out)>,
    data: Vec<(u64, Out)>,
    reports: Vec<(u64, Out)>,
    dropped: Vec<u64>,
    asked: Vec<(u8, u64, u64)>,
}

impl Bench {
    fn new(shape: Shape) -> Bench {
        Bench {
            extract: DescExtract::new(shape),
            says: In {
                cpu: 3,
                cpus: 16,
                in_function: 5,
                in_pair: 2,
                in_peer: 0x123,
                in_address: 0x70,
                read_ready: true,
                move_ready: true,
                data_ready: true,
                report_ready: true,
                ..In::default()
            },
            words: VecDeque::new(),
            outside: None,
            answer: true,
            cycle: 0,
            taken: 0,
            reads: Vec::new(),
            moves: Vec::new(),
            data: Vec::new(),
            reports: Vec::new(),
            dropped: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn words(&mut self, words: &[u64]) {
        let count = words.len();
        for (at, &in_word) in words.iter().enumerate() {
            let in_last = at + 1 == count;
            self.words.push_back(In { in_valid: true, in_last, in_word, ..self.says });
        }
    }

    fn descriptor(&mut self, repr: &DescriptorRepr<'_>) -> Vec<u64> {
        let words = words_of(repr);
        self.words(&words);
        words
    }

    fn run(&mut self, cycles: u64) -> Out {
        let mut last = Out::default();
        for _ in 0..cycles {
            let mut input = self.words.front().copied().unwrap_or(self.says);
            let ready = self.says;
            (input.read_ready, input.move_ready) = (ready.read_ready, ready.move_ready);
            (input.data_ready, input.report_ready) = (ready.data_ready, ready.report_ready);
            input.source_fits = self.answer;
            let out = self.extract.cycle(input);
            if input.in_valid && out.in_ready {
                self.words.pop_front();
                self.taken = self.cycle;
            }
            if out.source_valid {
                self.asked.push((out.source_function, out.source_address, out.source_length));
            }
            // An answer that nobody asked for must not count.
            self.answer = out.source_valid && Some(out.source_address) != self.outside;
            if out.read_valid && ready.read_ready {
                assert_eq!(out.read_function, self.says.in_function);
                let read = (out.read_address, out.read_bytes, out.read_ends);
                self.reads.push((self.cycle, read));
            }
            if out.move_valid && ready.move_ready {
                self.moves.push((self.cycle, out));
            }
            if out.data_valid && ready.data_ready {
                self.data.push((self.cycle, out));
            }
            if out.report_valid && ready.report_ready {
                self.reports.push((self.cycle, out));
            }
            if out.dropped {
                self.dropped.push(self.cycle);
            }
            self.cycle += 1;
            last = out;
        }
        last
    }

    fn reads(&self) -> Vec<Read> {
        self.reads.iter().map(|(_, read)| *read).collect()
    }

    /// Address, bytes, whether it is the last one, and the operation, of each move.
    fn moves(&self) -> Vec<(u64, u64, bool, u8)> {
        let of = |out: &Out| (out.move_address, out.move_bytes, out.move_last, out.move_operation);
        self.moves.iter().map(|(_, out)| of(out)).collect()
    }

    /// The beats of data, the lane of the last byte and the end of each.
    fn data(&self) -> Vec<([u64; BEAT_WORDS], u8, bool)> {
        self.data.iter().map(|(_, out)| (out.data, out.data_to, out.data_ends)).collect()
    }

    fn statuses(&self) -> Vec<u8> {
        self.reports.iter().map(|(_, out)| out.report_status).collect()
    }
}

fn words_of(repr: &DescriptorRepr<'_>) -> Vec<u64> {
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn entries<const N: usize>(list: [(u64, u64); N]) -> [Entry; N] {
    list.map(|(address, length)| Entry { address, length })
}

fn chain<'a>(sources: &'a [Entry], destinations: &'a [Entry]) -> Chain<'a> {
    Chain { sources: sources.into(), destinations: destinations.into() }
}

fn repr(work: Work<'_>) -> DescriptorRepr<'_> {
    DescriptorRepr {
        // 7.2.1
        destination: Endpoint::new(7, 2, 1).unwrap(),
        queue_pair: 1,
        traffic_class: 6,
        magic: 0xa9,
        wants_event: false,
        work,
        tail: Tail::EMPTY,
    }
}

/// The words of a PUT from `from` to `to`, of as many bytes.
fn put(from: u64, to: u64, bytes: u64) -> Vec<u64> {
    let (sources, destinations) = (entries([(from, bytes)]), entries([(to, bytes)]));
    words_of(&repr(Work::Put(chain(&sources, &destinations))))
}

/// The first configuration in gates has descriptors and reads of the event-driven model.
#[test]
fn the_papers_shape_is_the_models() {
    let pcie = Config::prototype().pcie;
    assert_eq!(pcie.read_request.count(), (PAPERS.request * LANES) as u64);
    assert_eq!(bellwire_wire::descriptor::MAX_DESCRIPTOR_BYTES, PAPERS.beats * LANES);
    assert_eq!((ADDRESS_WIDTH, LANE_BITS, CPU_BITS), (40, 4, 4));
}

/// Sizes that gates cannot have are refused, and the least and greatest ones are not.
#[test]
fn sizes_are_bounded() {
    let builds = |places, beats, request| {
        std::panic::catch_unwind(|| DescExtract::new(Shape { places, beats, request })).is_ok()
    };
    assert!(builds(2, 2, 1) && builds(8, 256, 256));
    for (places, beats, request) in
        [(1, 2, 1), (2, 1, 1), (3, 2, 1), (2, 3, 1), (2, 4, 3), (2, 512, 1), (2, 2, 512)]
    {
        assert!(!builds(places, beats, request), "{places}, {beats}, {request}");
    }
}

/// The data of an immediate NAP leaves as beats, with one move, and nothing is read.
#[test]
fn immediate_data_leaves_as_beats() {
    for length in [0, 1, 15, 16, 17, 100, 2048] {
        let bytes: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
        let mut bench = Bench::new(PAPERS);
        let words = bench.descriptor(&repr(Work::NapImmediate(&bytes)));
        bench.run(2 * words.len() as u64 + 10);
        let beats = words[2..].as_chunks().0;
        let expected: Vec<_> = beats
            .iter()
            .enumerate()
            .map(|(at, beat)| {
                let ends = at + 1 == beats.len();
                (*beat, if ends { (length - 1) % 16 } else { 15 } as u8, ends)
            })
            .collect();
        assert_eq!(bench.data(), expected, "{length} bytes");
        assert_eq!(bench.moves(), [(0, length as u64, true, 0)]);
        assert!(bench.data.iter().all(|(_, out)| !out.data_get));
        let (_, out) = bench.moves[0];
        assert_eq!((out.move_primitive, out.move_wants_event), (NAP, true));
        assert_eq!((bench.reads.len(), bench.reports.len()), (0, 0));
    }
}

/// An indirect NAP leaves as reads of its sources and one move. Reads end at multiples of the
/// longest one; entries without bytes are passed over; the last read says so.
#[test]
fn a_nap_from_memory_leaves_as_reads() {
    let sources = entries([(0x1007f, 0), (0x1007f, 0x102), (0x20000, 1), (0x30000, 0)]);
    let mut bench = Bench::new(PAPERS);
    bench.descriptor(&repr(Work::NapIndirect(Entries::from(&sources[..]))));
    bench.run(40);
    let expected = [
        (0x1007f, 1, false),
        (0x10080, 0x80, false),
        (0x10100, 0x80, false),
        (0x10180, 1, false),
        (0x20000, 1, true),
    ];
    assert_eq!(bench.reads(), expected);
    assert_eq!(bench.moves(), [(0, 0x103, true, 0)]);
    let asked = [(5, 0x1007f, 0x102), (5, 0x20000, 1)];
    assert_eq!((bench.asked.as_slice(), bench.data.len()), (&asked[..], 0));
    // Without bytes there is a move all the same.
    bench.descriptor(&repr(Work::NapIndirect(Entries::from(&sources[..1]))));
    bench.run(40);
    assert_eq!(bench.moves()[1..], [(0, 0, true, 1)]);
    assert_eq!(bench.reads.len(), 5);
}

/// A PUT leaves as reads of its sources, and as a move for each destination that has bytes,
/// whatever the entries of both lists are. What a header says stands with each move.
#[test]
fn a_put_leaves_as_reads_and_moves() {
    let sources = entries([(0x100, 100), (0x200, 28)]);
    let destinations =
        entries([(1, 0), (0xff_ffff_ffff, 1), (0x3000, 120), (2, 0), (0x4000, 7), (3, 0)]);
    let mut bench = Bench::new(PAPERS);
    let tail = Tail::new(&[0xa5; 11]).unwrap();
    let work = Work::Put(chain(&sources, &destinations));
    bench.descriptor(&DescriptorRepr { wants_event: true, tail, ..repr(work) });
    bench.run(60);
    assert_eq!(bench.reads(), [(0x100, 100, false), (0x200, 28, true)]);
    let expected = [(0xff_ffff_ffff, 1, false, 0), (0x3000, 120, false, 0), (0x4000, 7, true, 0)];
    assert_eq!(bench.moves(), expected);
    for (_, out) in &bench.moves {
        let says = Out {
            in_ready: true,
            move_valid: true,
            move_primitive: PUT,
            move_traffic_class: 6,
            move_magic: 0xa9,
            // 3.5.1 and 7.2.1.
            move_source: 3 << 5 | 5 << 2 | 1,
            move_destination: 7 << 5 | 2 << 2 | 1,
            move_wants_event: true,
            move_tail_bytes: 11,
            move_tail: [0xa5a5_a5a5_a5a5_a5a5, 0xa5_a5a5],
            move_total: 128,
            move_descriptor: 0x70,
            move_last: out.move_last,
            move_address: out.move_address,
            move_bytes: out.move_bytes,
            ..Out::default()
        };
        let reads = Out {
            read_valid: out.read_valid,
            read_ends: out.read_ends,
            read_address: out.read_address,
            read_bytes: out.read_bytes,
            ..says
        };
        assert_eq!(*out, reads);
    }
    assert_eq!(bench.asked, [(5, 0x100, 100), (5, 0x200, 28)]);
}

/// A PUT without bytes has one move, which brings event and tail, and no read.
#[test]
fn a_put_without_bytes_has_one_move() {
    for lists in [0, 1] {
        let empty = entries([(0x100, 0)]);
        let mut bench = Bench::new(PAPERS);
        let tail = Tail::from(9);
        let work = Work::Put(chain(&empty[..lists], &empty[..lists]));
        bench.descriptor(&DescriptorRepr { tail, ..repr(work) });
        bench.descriptor(&repr(Work::Put(chain(&[], &[]))));
        bench.run(40);
        assert_eq!(bench.moves(), [(0, 0, true, 0), (0, 0, true, 1)]);
        let tails: Vec<_> = bench.moves.iter().map(|(_, out)| out.move_tail).collect();
        assert_eq!(tails, [[9, 0], [0, 0]]);
        assert_eq!((bench.reads.len(), bench.data.len(), bench.asked.len()), (0, 0, 0));
    }
}

/// A GET leaves whole, with its tail, as beats for the packer of GETs. Its sources lie elsewhere,
/// so nobody asks for them.
#[test]
fn a_get_leaves_as_it_is() {
    let (sources, destinations) = (entries([(0x100, 1 << 39)]), entries([(0x200, 1 << 39)]));
    let work = Work::Get { chain: chain(&sources, &destinations), return_magic: 0x5c };
    let mut bench = Bench::new(PAPERS);
    let get = DescriptorRepr { wants_event: true, tail: Tail::from(7), ..repr(work) };
    let words = bench.descriptor(&get);
    bench.run(60);
    let beats: Vec<_> =
        words.as_chunks().0.iter().enumerate().map(|(at, beat)| (*beat, 15, at == 3)).collect();
    assert_eq!(bench.data(), beats);
    assert!(bench.data.iter().all(|(_, out)| out.data_get));
    assert_eq!(bench.moves(), [(0, 64, true, 0)]);
    let (_, out) = bench.moves[0];
    assert_eq!((out.move_primitive, out.move_magic, out.move_remote), (GET, 0xa9, false));
    assert_eq!((out.move_tail_bytes, out.move_tail, out.move_wants_event), (0, [0, 0], false));
    assert_eq!((out.move_total, out.move_source), (64, 3 << 5 | 5 << 2 | 1));
    assert_eq!((bench.reads.len(), bench.asked.len()), (0, 0));
}

/// A GET from elsewhere is answered by a PUT, from the queue pair that it names to the one that
/// sent it, with the key that it brings. Its sources must lie in the window.
#[test]
fn a_get_from_elsewhere_becomes_a_put() {
    let (sources, destinations) = (entries([(0x100, 40)]), entries([(0x200, 40)]));
    let work = Work::Get { chain: chain(&sources, &destinations), return_magic: 0x5c };
    let mut bench = Bench::new(PAPERS);
    bench.says.in_remote = true;
    let tail = Tail::from(7);
    bench.descriptor(&DescriptorRepr { wants_event: true, tail, ..repr(work) });
    bench.run(60);
    assert_eq!(bench.reads(), [(0x100, 40, true)]);
    assert_eq!(bench.moves(), [(0x200, 40, true, 0)]);
    let (_, out) = bench.moves[0];
    assert_eq!((out.move_primitive, out.move_magic, out.move_remote), (PUT, 0x5c, true));
    assert_eq!((out.move_source, out.move_destination), (3 << 5 | 5 << 2 | 2, 0x123));
    assert_eq!((out.move_tail_bytes, out.move_tail, out.move_wants_event), (8, [7, 0], true));
    assert_eq!(bench.asked, [(5, 0x100, 40)]);
}

/// What is wrong with a GET from elsewhere is told nobody: it is dropped and counted.
#[test]
fn a_wrong_get_from_elsewhere_is_dropped() {
    let (sources, destinations) = (entries([(0x100, 40)]), entries([(0x200, 40)]));
    let work = Work::Get { chain: chain(&sources, &destinations), return_magic: 0x5c };
    let right = words_of(&repr(work));
    let mut bench = Bench::new(PAPERS);
    bench.says.in_remote = true;
    // Not a GET; unequal sums; a source outside.
    bench.words(&put(0x100, 0x200, 40));
    bench.words(&[&right[..5], &[41]].concat());
    bench.outside = Some(0x1000);
    bench.words(&[&right[..2], &[0x1000], &right[3..]].concat());
    bench.words(&right);
    bench.run(80);
    assert_eq!(bench.dropped, [7, 14, 21]);
    assert_eq!((bench.reports.len(), bench.moves.len()), (0, 1));
    // A peer that does not exist: it is of processor 9.
    for (cpus, dropped) in [(9, 1), (10, 0)] {
        let mut bench = Bench::new(PAPERS);
        (bench.says.in_remote, bench.says.cpus) = (true, cpus);
        bench.words(&right);
        bench.run(40);
        assert_eq!((bench.dropped.len(), bench.moves.len()), (dropped, 1 - dropped));
    }
}

/// Lists of unequal sums, lengths that overflow, entries behind the last address, parts that an
/// operation does not have, and wrong lengths are refused before anything moves.
#[test]
fn wrong_descriptors_are_refused_whole() {
    let bad = Status::BadDescriptor.code();
    let right = put(0x100, 0x200, 40);
    let with = |at: usize, word: u64| {
        let mut words = right.clone();
        words[at] = word;
        words
    };
    let tailed = |padding: u64| {
        let (sources, destinations) = (entries([(0, 40)]), entries([(0, 40)]));
        let work = Work::Put(chain(&sources, &destinations));
        let mut words = words_of(&DescriptorRepr { tail: Tail::from(7), ..repr(work) });
        words[7] = padding;
        words
    };
    let last = 1 << ADDRESS_BITS;
    let cases = [
        (tailed(0), None),
        (tailed(1), Some(bad)),
        (with(5, 41), Some(Status::UnequalSums.code())),
        (with(0, right[0] & !0xf), Some(bad)),
        (with(0, right[0] | 1 << 19), Some(bad)),
        (with(0, right[0] | 1 << 4), Some(bad)),
        (with(0, right[0] | 1 << 24), Some(bad)),
        (with(0, right[0] + (1 << 48)), Some(bad)),
        (with(1, 1 << 16), Some(bad)),
        (with(1, 1), Some(bad)),
        (with(2, last), Some(bad)),
        (with(2, last - 40), None),
        (with(2, last - 39), Some(bad)),
        (with(2, u64::MAX - 39), Some(bad)),
        (with(3, u64::MAX), Some(bad)),
        (with(3, last | 40), Some(bad)),
        ([&with(2, 0)[..3], &[last], &[0, last]].concat(), Some(bad)),
        ([&right[..], &[0, 0]].concat(), Some(bad)),
        (right[..4].to_vec(), Some(bad)),
        (right[..5].to_vec(), Some(bad)),
        (right[..1].to_vec(), Some(bad)),
    ];
    for (words, status) in cases {
        let mut bench = Bench::new(PAPERS);
        bench.words(&words);
        bench.words(&right);
        bench.run(60);
        assert_eq!(bench.statuses(), status.into_iter().collect::<Vec<_>>(), "{words:x?}");
        assert_eq!(bench.moves.len(), 1 + usize::from(status.is_none()));
        assert_eq!(bench.reads.len(), bench.moves.len());
    }
}

/// A descriptor longer than a place is refused, whatever it says, and the next one is whole.
#[test]
fn longer_than_a_place_is_refused() {
    let shape = Shape { places: 2, beats: 4, request: 8 };
    for (bytes, is_right) in [(48, true), (49, false), (64, false), (2000, false)] {
        let mut bench = Bench::new(shape);
        bench.descriptor(&repr(Work::NapImmediate(&vec![1; bytes])));
        bench.words(&put(0x100, 0x200, 40));
        bench.run(400);
        assert_eq!(bench.statuses().len(), usize::from(!is_right), "{bytes} bytes");
        assert_eq!(bench.data.len(), if is_right { 3 } else { 0 });
        assert_eq!(bench.reads(), [(0x100, 40, true)]);
    }
    // Whether its lists are equal does not matter then.
    let mut bench = Bench::new(shape);
    let four = [Entry { address: 0x100, length: 8 }; 4];
    let mut words = words_of(&repr(Work::Put(chain(&four, &four))));
    words[3] = 9;
    bench.words(&words);
    bench.run(60);
    assert_eq!(bench.statuses(), [Status::BadDescriptor.code()]);
    // Sources behind the last place are not asked for.
    let many = [Entry { address: 0x100, length: 8 }; 6];
    let mut bench = Bench::new(shape);
    bench.descriptor(&repr(Work::NapIndirect(Entries::from(&many[..]))));
    bench.run(40);
    assert_eq!((bench.asked.len(), bench.statuses().len()), (3, 1));
}

/// A report names what is known: all of a header that is right, and else the function only. Each
/// doorbell that was refused and each descriptor of which a read has failed gives one.
#[test]
fn a_report_names_its_descriptor() {
    let own = 3 << 5 | 5 << 2;
    let named = (5, 1, 7 << 5 | 2 << 2 | 1, PUT, 0x70);
    let unnamed = (5, 0, own, NAP, 0x70);
    let right = put(0x100, 0x200, 40);
    let cases: [(Status, _, Change); 7] = [
        (Status::UnequalSums, named, |bench| bench.words[5].in_word = 41),
        (Status::Unreachable, named, |bench| bench.says.cpus = 7),
        (Status::SourceFault, named, |bench| bench.outside = Some(0x100)),
        (Status::BadDescriptor, unnamed, |bench| bench.words[0].in_word = 0),
        (Status::BadDescriptor, unnamed, |bench| {
            bench.words.truncate(1);
            (bench.words[0].in_failed, bench.words[0].in_last) = (true, true);
        }),
        (Status::BadDescriptor, unnamed, |bench| {
            bench.words[5].in_refused = true;
        }),
        // Its lists are unequal, too.
        (Status::BadDescriptor, unnamed, |bench| {
            (bench.words[5].in_word, bench.words[5].in_refused) = (41, true);
        }),
    ];
    for (status, names, change) in cases {
        let mut bench = Bench::new(PAPERS);
        bench.words(&right);
        change(&mut bench);
        bench.run(40);
        let found: Vec<_> = bench
            .reports
            .iter()
            .map(|(_, out)| {
                let (pair, peer) = (out.report_pair, out.report_peer);
                let primitive = out.report_primitive;
                let names = (out.report_function, pair, peer, primitive, out.report_address);
                (out.report_status, names)
            })
            .collect();
        assert_eq!(found, [(status.code(), names)]);
        assert_eq!((bench.reads.len(), bench.moves.len(), bench.dropped.len()), (0, 0, 0));
    }
}

/// An unequal list is told before a tail that is padded wrong, and that before a far end that does
/// not exist, and that before a source outside.
#[test]
fn the_first_reason_is_told() {
    let (sources, destinations) = (entries([(0x100, 40)]), entries([(0x200, 40)]));
    let work = Work::Put(chain(&sources, &destinations));
    let words = words_of(&DescriptorRepr { tail: Tail::from(7), ..repr(work) });
    let mut bench = Bench::new(PAPERS);
    bench.outside = Some(0x100);
    for (cpus, length, padding) in [(7, 41, 1), (7, 40, 1), (7, 40, 0), (8, 40, 0)] {
        bench.says.cpus = cpus;
        bench.words(&[&words[..5], &[length, 7, padding]].concat());
        bench.run(20);
    }
    let reasons =
        [Status::UnequalSums, Status::BadDescriptor, Status::Unreachable, Status::SourceFault];
    assert_eq!(bench.statuses(), reasons.map(Status::code));
}

/// Each source counts, and the answer for the last word of a descriptor does, too. Another
/// descriptor's answer does not.
#[test]
fn any_source_outside_refuses_its_descriptor() {
    let sources = entries([(0x100, 8), (0x200, 8), (0x300, 8)]);
    for outside in [0x100, 0x200, 0x300] {
        let mut bench = Bench::new(PAPERS);
        bench.outside = Some(outside);
        bench.descriptor(&repr(Work::NapIndirect(Entries::from(&sources[..]))));
        bench.words(&put(0x400, 0x500, 8));
        bench.run(60);
        assert_eq!(bench.statuses(), [Status::SourceFault.code()]);
        assert_eq!(bench.reads(), [(0x400, 8, true)]);
        assert_eq!(bench.asked.len(), 4);
    }
}

/// Cycles from the last word: two to a report, four to a move or a beat, five to a read. A move is
/// two later behind a tail. One of each leaves in a cycle, also from entry to entry.
#[test]
fn steps_take_their_cycles() {
    let sources = entries([(0x0, 256), (0x1000, 1), (0x2000, 3)]);
    let destinations = entries([(0x0, 1), (0x1000, 256), (0x2000, 3)]);
    let work = Work::Put(chain(&sources, &destinations));
    let cycles = |out: &[(u64, Out)]| out.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    for (tail, late) in [(Tail::EMPTY, 1), (Tail::from(3), 2)] {
        let mut bench = Bench::new(PAPERS);
        bench.descriptor(&DescriptorRepr { tail, ..repr(work) });
        bench.run(60);
        let last = bench.taken;
        let reads: Vec<_> = bench.reads.iter().map(|(at, _)| at - last).collect();
        assert_eq!(reads, [5, 6, 7, 8]);
        assert_eq!(cycles(&bench.moves), [4, 5, 6].map(|at| last + at + late));
    }
    let mut bench = Bench::new(PAPERS);
    bench.descriptor(&repr(Work::NapImmediate(&[1; 40])));
    bench.run(30);
    assert_eq!(cycles(&bench.data), [4, 5, 6].map(|at| bench.taken + at));
    assert_eq!(cycles(&bench.moves), [bench.taken + 4]);
    let mut bench = Bench::new(PAPERS);
    bench.descriptor(&DescriptorRepr { tail: Tail::from(3), ..repr(Work::NapImmediate(&[])) });
    bench.run(30);
    assert_eq!(cycles(&bench.moves), [bench.taken + 6]);
    bench.words(&[0; 2]);
    bench.run(10);
    assert_eq!(cycles(&bench.reports), [bench.taken + 2]);
    assert_eq!(bench.dropped, []);
}

/// The word behind a last one waits a cycle. Descriptors wait behind as many as there are places,
/// and the next one comes when the oldest has left.
#[test]
fn places_are_bounded() {
    let mut bench = Bench::new(PAPERS);
    for _ in 0..3 {
        bench.words(&put(0x100, 0x200, 8));
    }
    bench.says.move_ready = false;
    // Words of two, and a cycle behind the first.
    bench.run(13);
    assert_eq!(bench.words.len(), 6);
    let out = bench.run(60);
    assert_eq!((bench.words.len(), out.in_ready, bench.reads.len()), (6, false, 1));
    bench.says.move_ready = true;
    bench.run(1);
    let out = bench.run(1);
    assert_eq!((bench.words.len(), out.in_ready), (6, false));
    let out = bench.run(1);
    assert_eq!((bench.words.len(), out.in_ready), (5, true));
    bench.run(60);
    assert_eq!((bench.words.len(), bench.reads.len(), bench.moves.len()), (0, 3, 3));
}

/// Moves leave while reads wait, and reads while moves wait: neither stops the other.
#[test]
fn neither_side_stops_the_other() {
    let sources = entries([(0x0, 8), (0x1000, 8), (0x2000, 8)]);
    let work = Work::Put(chain(&sources, &sources));
    for reads in [false, true] {
        let mut bench = Bench::new(PAPERS);
        (bench.says.read_ready, bench.says.move_ready) = (reads, !reads);
        bench.descriptor(&repr(work));
        bench.descriptor(&repr(work));
        let out = bench.run(80);
        let left = (bench.reads.len(), bench.moves.len());
        assert_eq!(left, if reads { (3, 0) } else { (0, 3) });
        let waits =
            if reads { (out.move_address, out.move_operation) } else { (out.read_address, 0) };
        assert_eq!(waits, (0, 0));
        assert_eq!((out.read_valid, out.move_valid), (!reads, reads));
        (bench.says.read_ready, bench.says.move_ready) = (true, true);
        bench.run(80);
        assert_eq!((bench.reads.len(), bench.moves.len()), (6, 6));
    }
}

/// A beat and a move wait until they are taken, whichever is taken first.
#[test]
fn data_waits_for_its_taker() {
    let mut bench = Bench::new(PAPERS);
    bench.says.data_ready = false;
    bench.descriptor(&repr(Work::NapImmediate(&[7; 32])));
    let out = bench.run(40);
    assert!(out.data_valid && !out.data_ends && bench.moves.len() == 1);
    bench.says.data_ready = true;
    bench.run(1);
    bench.says.data_ready = false;
    let out = bench.run(10);
    assert!(out.data_valid && out.data_ends && bench.data.len() == 1);
    bench.says.data_ready = true;
    bench.run(10);
    assert_eq!(bench.data.len(), 2);
}

/// A report that waits holds the next one that is refused, and what comes behind that. Those that
/// are right before it go on.
#[test]
fn a_report_waits_for_its_taker() {
    let mut bench = Bench::new(PAPERS);
    bench.says.report_ready = false;
    bench.words(&[1, 0]);
    bench.words(&put(0x100, 0x200, 8));
    bench.outside = Some(0x300);
    bench.words(&put(0x300, 0x200, 8));
    bench.words(&put(0x400, 0x200, 8));
    let out = bench.run(60);
    assert_eq!((out.report_valid, out.report_status), (true, Status::BadDescriptor.code()));
    assert_eq!((bench.reads.len(), bench.words.len(), out.in_ready), (1, 6, false));
    bench.says.report_ready = true;
    bench.run(60);
    let reasons = [Status::BadDescriptor, Status::SourceFault];
    assert_eq!(bench.statuses(), reasons.map(Status::code));
    // One behind the other, without a pause.
    assert_eq!(bench.reports[1].0, bench.reports[0].0 + 1);
    assert_eq!(bench.reads(), [(0x100, 8, true), (0x400, 8, true)]);
}

/// Operations are numbered in their order, and behind the highest number comes zero. What is
/// refused has no number.
#[test]
fn operations_are_numbered() {
    let mut bench = Bench::new(PAPERS);
    for at in 0..300 {
        bench.words(&put(at << 12, 0x200, 8));
        bench.words(&[0, 0]);
    }
    bench.run(300 * 12 + 20);
    let numbers: Vec<_> = bench.moves.iter().map(|(_, out)| out.move_operation).collect();
    assert_eq!(numbers, (0..300).map(|at| at as u8).collect::<Vec<_>>());
    assert_eq!(bench.reports.len(), 300);
}
