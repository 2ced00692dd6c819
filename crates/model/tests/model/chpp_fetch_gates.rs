//! The cycle blocks of cHPP's doorbells and descriptors with each other: the decoder of stores,
//! FIFOs, their arbiter, windows and the arbiter in front of them, the fetch of descriptors, two
//! blocks that take them apart, and tags, against a completer that fails and forgets.

use std::collections::VecDeque;

use bellwire_model::cycle::bell_decode::{self, BellDecode};
use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::desc_extract::{self, DescExtract};
use bellwire_model::cycle::desc_fetch::{self, DescFetch, Shape};
use bellwire_model::cycle::doorbell_arb::{self, DoorbellArb};
use bellwire_model::cycle::doorbell_fifo::{self, DoorbellFifo, FUNCTIONS};
use bellwire_model::cycle::key_window::{self, KeyWindow};
use bellwire_model::cycle::source_arb::{self, SourceArb};
use bellwire_model::cycle::tag_alloc::{self, TagAlloc};
use bellwire_model::engine::Random;
use bellwire_wire::doorbell::DoorbellRepr;

const SHAPE: Shape = Shape { places: 4, beats: 256, request: 8, tags: 16 };
const EXTRACT: desc_extract::Shape = desc_extract::Shape { places: 2, beats: 32, request: 8 };
const TIMEOUT: u64 = 1000;
/// Pages of a window; that of a function begins behind that of the one before.
const PAGES: u64 = 16;
const PAGE_BYTES: u64 = 4096;

/// A word of host memory.
fn memory(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Comes,
    Fails,
    IsForgotten,
}

/// A read that waits for completions: what has not come.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u8,
    address: u64,
    bytes: u64,
    fate: Fate,
}

/// A descriptor whose doorbell was taken and whose last word has not left.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    function: u8,
    address: u64,
    bytes: u64,
    is_refused: bool,
    asked: u64,
    fails: bool,
    /// Words that have left.
    words: u64,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    /// Stores that are no doorbells.
    stores: u64,
    dropped: u64,
    refused: u64,
    failed: u64,
    whole: u64,
    lost: u64,
    /// By descriptor extract: sources that it asked about, and words that were held back.
    sources: [u64; 2],
    held: [u64; 2],
}

/// The blocks, connected as in gates, and what is known of their descriptors.
struct Path {
    decode: BellDecode,
    fifo: DoorbellFifo,
    arb: DoorbellArb,
    windows: KeyWindow,
    sources: SourceArb,
    /// Those of descriptors from here, and of GETs from elsewhere.
    extracts: [DescExtract; 2],
    fetch: DescFetch,
    alloc: TagAlloc,
    /// The fetch is told which tags are lost.
    is_told: bool,
    random: Random,
    /// By function, doorbells that wait in the FIFOs.
    rung: [VecDeque<u64>; FUNCTIONS],
    /// The function of the doorbell that the arbiter offers.
    offered: Option<u8>,
    /// The next word of a GET from elsewhere, if one comes, and how many the GET still has.
    word: Option<desc_extract::In>,
    words: u64,
    /// What `key_window` must say of the source that was asked about in the cycle before.
    expected: Option<bool>,
    descriptors: VecDeque<Descriptor>,
    reads: Vec<Read>,
    /// The tag of the completion that comes, its bytes, and those that have come.
    piece: Option<(u8, u64, u64)>,
    seen: Seen,
}

impl Path {
    fn new(seed: u64) -> Path {
        let mut windows = KeyWindow::new(FUNCTIONS, 32, 32);
        for host_function in 0..FUNCTIONS as u8 {
            windows.cycle(key_window::In {
                host_valid: true,
                host_window: true,
                host_function,
                host_base: u32::from(host_function) * PAGES as u32,
                host_pages: PAGES as u32,
                ..key_window::In::default()
            });
        }
        Path {
            decode: BellDecode::new(FUNCTIONS, 32),
            fifo: DoorbellFifo::new(FUNCTIONS, 4, 32),
            arb: DoorbellArb::new(FUNCTIONS),
            windows,
            sources: SourceArb::default(),
            extracts: [(); 2].map(|()| DescExtract::new(EXTRACT)),
            fetch: DescFetch::new(SHAPE),
            alloc: TagAlloc::new(SHAPE.tags, TIMEOUT),
            is_told: true,
            random: Random::new(seed),
            rung: Default::default(),
            offered: None,
            word: None,
            words: 0,
            expected: None,
            descriptors: VecDeque::new(),
            reads: Vec::new(),
            piece: None,
            seen: Seen::default(),
        }
    }

    /// The store of a doorbell of a function, mostly of a descriptor in its window. At times it is
    /// no doorbell.
    fn ring(&mut self) -> bell_decode::In {
        let in_function = self.random.below(FUNCTIONS as u64) as u8;
        let longest = [4, 256][self.random.below(2) as usize];
        let beats = 1 + self.random.below(longest);
        let first = u64::from(in_function) * PAGES * PAGE_BYTES;
        let at = match self.random.below(16) {
            0 => self.random.below(FUNCTIONS as u64 * PAGES * 256),
            _ => first / 16 + self.random.below(PAGES * 256 - beats),
        };
        let wrong = if self.random.below(32) == 0 { 1 << self.random.below(64) } else { 0 };
        let in_word = ((16 * beats) << 48 | (16 * at)) ^ wrong;
        let mut store = bell_decode::In {
            store_valid: true,
            store_last: true,
            store_address: u16::from(in_function) << 12,
            store_bytes: 8,
            store_data: [in_word, self.random.word()],
        };
        match self.random.below(32) {
            0 => store.store_address += 8,
            1 => store.store_bytes = 4,
            _ => return store,
        }
        self.seen.stores += 1;
        store
    }

    /// One cycle; functions ring and reads are taken only if it `works`.
    fn cycle(&mut self, works: bool) -> (tag_alloc::Out, desc_fetch::Out) {
        // What `key_window` answers, and whose words may go on.
        let answer = self.windows.clone().cycle(key_window::In::default());
        assert_eq!(self.expected.unwrap_or(false), answer.source_fits, "of the right window");
        let to_ready = [0, 1].map(|each: usize| {
            self.extracts[each].clone().cycle(desc_extract::In::default()).in_ready
        });
        let outside = self.sources.outside(answer.source_fits);
        let word = self.fifo.out().word;

        let tags = self.alloc.out();
        let mut input = desc_fetch::In {
            bell_valid: outside.is_some(),
            bell_function: self.offered.unwrap_or(0),
            bell_word: word,
            bell_outside: outside == Some(true),
            read_ready: tags.tag_valid && self.random.below(4) > 0,
            read_tag: tags.tag,
            lost_valid: tags.lost_valid && self.is_told,
            lost_tag: tags.lost_tag,
            out_ready: self.sources.may_take(false)[0] && to_ready[0],
            ..desc_fetch::In::default()
        };
        self.complete(&mut input);
        let out = self.fetch.cycle(input);
        assert!(!out.mismatched, "nothing lies");
        self.note(&input, &out);

        if works && self.word.is_none() && self.random.below(4) > 0 {
            self.word = Some(self.remote());
        }
        let words = self.extract(&out, answer.source_fits);
        let asked = self.ask(source_arb::In {
            to_ready,
            bell_valid: self.offered.is_some(),
            bell_function: self.offered.unwrap_or(0),
            bell_word: word,
            source_fits: answer.source_fits,
            out_ready: out.bell_ready,
            ..words
        });
        assert_eq!(asked.word_ready[0], input.out_ready);
        assert_eq!((asked.out_valid, asked.out_outside), (input.bell_valid, input.bell_outside));

        let taken = asked.bell_ready;
        let chosen =
            self.arb.cycle(doorbell_arb::In { waits: self.fifo.out().waits, out_ready: taken });
        assert_eq!(chosen.out_valid.then_some(chosen.out_function), self.offered);
        if self.offered.is_none() || taken {
            self.offered = chosen.take.then_some(chosen.take_function);
        }
        let rings = works && self.random.below(16) == 0;
        let store = if rings { self.ring() } else { bell_decode::In::default() };
        let came = self.decode.cycle(store);
        let doorbell = doorbell_fifo::In {
            in_valid: came.bell_valid,
            in_function: came.bell_function,
            in_word: came.bell_word,
            ..doorbell_fifo::In::default()
        };
        let told = self.fifo.cycle(doorbell_fifo::In {
            take: chosen.take,
            take_function: chosen.take_function,
            ..doorbell
        });
        if told.dropped_valid {
            self.rung[usize::from(told.dropped_function)].pop_back();
            self.seen.dropped += 1;
        }
        if doorbell.in_valid {
            self.rung[usize::from(doorbell.in_function)].push_back(doorbell.in_word);
        }
        let alloc = self.alloc.cycle(tag_alloc::In {
            tag_ready: out.read_valid && input.read_ready,
            release_valid: out.free_valid,
            release_tag: out.free_tag,
        });
        (alloc, out)
    }

    /// A word of a GET from elsewhere. What it says about sources counts, and all else is wrong.
    fn remote(&mut self) -> desc_extract::In {
        let random = &mut self.random;
        let is_first = self.words == 0;
        if is_first {
            self.words = 2 + random.below(40);
        }
        self.words -= 1;
        let sources = random.below(16) << 48;
        let address = random.below(FUNCTIONS as u64 * PAGES * PAGE_BYTES);
        desc_extract::In {
            in_valid: true,
            in_last: self.words == 0,
            in_remote: true,
            in_function: (address / (PAGES * PAGE_BYTES)) as u8 ^ u8::from(random.below(8) == 0),
            in_word: if is_first { sources } else { address >> (4 * random.below(4)) },
            ..desc_extract::In::default()
        }
    }

    /// Both descriptor extracts get the words that may go on: one of the fetch, and one of a GET.
    fn extract(&mut self, out: &desc_fetch::Out, source_fits: bool) -> source_arb::In {
        let mut input = source_arb::In::default();
        let local = desc_extract::In {
            in_valid: out.out_valid,
            in_last: out.out_last,
            in_failed: out.out_failed,
            in_refused: out.out_refused,
            in_function: out.out_function,
            in_address: out.out_address,
            in_word: out.out_word,
            ..desc_extract::In::default()
        };
        for (each, word) in [local, self.word.unwrap_or_default()].into_iter().enumerate() {
            input.word_valid[each] = word.in_valid;
            let may_take = self.sources.may_take(input.ask_valid[0])[each];
            let said = self.extracts[each].cycle(desc_extract::In {
                cpus: 1,
                in_valid: word.in_valid && may_take,
                source_fits,
                read_ready: self.random.below(2) == 0,
                move_ready: self.random.below(2) == 0,
                data_ready: self.random.below(2) == 0,
                report_ready: self.random.below(4) == 0,
                ..word
            });
            input.ask_valid[each] = said.source_valid;
            input.ask_function[each] = said.source_function;
            input.ask_address[each] = said.source_address;
            input.ask_length[each] = said.source_length;
            self.seen.sources[each] += u64::from(said.source_valid);
            self.seen.held[each] += u64::from(word.in_valid && said.in_ready && !may_take);
        }
        input
    }

    /// One source is asked about, and notes what must be answered.
    fn ask(&mut self, input: source_arb::In) -> source_arb::Out {
        let out = self.sources.cycle(input);
        if input.word_valid[1] && out.word_ready[1] {
            self.word = None;
        }
        let asks = |each: usize| {
            (input.ask_function[each], input.ask_address[each], input.ask_length[each])
        };
        let bell = (input.bell_function, input.bell_word & ((1 << 40) - 1), input.bell_word >> 48);
        let question = match input.ask_valid {
            [true, is_second] => {
                assert!(!is_second, "one asks in a cycle");
                asks(0)
            }
            [false, true] => asks(1),
            [false, false] => bell,
        };
        let (function, address, length) = question;
        let first = u64::from(function) * PAGES * PAGE_BYTES;
        let end = first + PAGES * PAGE_BYTES;
        let is_inside = address >= first && address + length <= end;
        self.expected = out.source_valid.then_some(is_inside);
        self.windows.cycle(key_window::In {
            source_valid: out.source_valid,
            source_function: out.source_function,
            source_address: out.source_address,
            source_length: out.source_length,
            ..key_window::In::default()
        });
        out
    }

    /// A beat of a completion of one of the oldest reads, so that none waits for long.
    fn complete(&mut self, input: &mut desc_fetch::In) {
        if input.lost_valid {
            self.seen.lost += 1;
            let at = self.reads.iter().position(|read| read.tag == input.lost_tag);
            let lost = self.reads.remove(at.expect("a tag in use is of a read"));
            assert_eq!(lost.fate, Fate::IsForgotten);
        }
        if self.piece.is_none() {
            let count = self.reads.iter().filter(|read| read.fate != Fate::IsForgotten).count();
            let at = self.random.below(count.clamp(1, 4) as u64) as usize;
            let read = self.reads.iter().filter(|read| read.fate != Fate::IsForgotten).nth(at);
            self.piece = read.map(|read| {
                let cut = 64 * (1 + self.random.below(2)) - read.address % 64;
                (read.tag, read.bytes.min(cut), 0)
            });
        }
        let Some((tag, bytes, came)) = self.piece else { return };
        // What is lost does not come any more.
        let Some(at) = self.reads.iter().position(|read| read.tag == tag) else {
            self.piece = None;
            return;
        };
        let read = &mut self.reads[at];
        input.in_valid = true;
        (input.in_tag, input.in_failed) = (tag, read.fate == Fate::Fails);
        (input.in_bytes, input.in_remaining) = (bytes as u16, read.bytes as u16);
        input.in_data = [0, 8].map(|part| memory(read.address + came + part));
        input.in_last = input.in_failed || came + LANES as u64 == bytes;
        self.piece = (!input.in_last).then_some((tag, bytes, came + LANES as u64));
        if input.in_last {
            (read.address, read.bytes) = (read.address + bytes, read.bytes - bytes);
            if input.in_failed || read.bytes == 0 {
                self.reads.remove(at);
            }
        }
    }

    /// What leaves, what is read, and which doorbell is taken.
    fn note(&mut self, input: &desc_fetch::In, out: &desc_fetch::Out) {
        if out.out_valid && input.out_ready {
            let descriptor = self.descriptors.front_mut().expect("a word is of a descriptor");
            let Descriptor { function, address, bytes, is_refused, fails, words, .. } = *descriptor;
            assert_eq!((out.out_function, out.out_address), (function, address));
            assert_eq!((out.out_failed, out.out_refused), (fails, is_refused), "{descriptor:?}");
            assert_eq!(out.out_first, words == 0);
            descriptor.words += 1;
            if !fails && !is_refused {
                assert_eq!(out.out_word, memory(address + 8 * words), "{descriptor:?}");
                assert_eq!(out.out_last, 8 * descriptor.words == bytes, "{descriptor:?}");
            }
            if out.out_last {
                self.seen.refused += u64::from(is_refused);
                self.seen.failed += u64::from(fails);
                self.seen.whole += u64::from(!fails && !is_refused);
                self.descriptors.pop_front();
            }
        }
        if out.read_valid && input.read_ready {
            let due = |it: &&mut Descriptor| !it.is_refused && it.asked < it.bytes;
            let descriptor = self.descriptors.iter_mut().find(due).expect("a read is of one");
            let (address, bytes) = (out.read_address, u64::from(out.read_bytes));
            assert_eq!(address, descriptor.address + descriptor.asked);
            let window = PAGES * PAGE_BYTES;
            let ends = [address, address + bytes - 1].map(|at| at / window);
            assert_eq!(ends, [descriptor.function.into(); 2], "it lies in the window");
            descriptor.asked += bytes;
            let fate = match self.random.below(64) {
                0 => Fate::Fails,
                1 => Fate::IsForgotten,
                _ => Fate::Comes,
            };
            descriptor.fails |= fate != Fate::Comes;
            self.reads.push(Read { tag: input.read_tag, address, bytes, fate });
        }
        if input.bell_valid && out.bell_ready {
            let function = input.bell_function;
            // Doorbells of a function are carried out in their order, and once.
            let rung = self.rung[usize::from(function)].pop_front();
            assert_eq!(rung, Some(input.bell_word));
            let place = DoorbellRepr::parse(input.bell_word).ok().filter(|_| !input.bell_outside);
            self.descriptors.push_back(Descriptor {
                function,
                address: input.bell_word & ((1 << 40) - 1),
                bytes: place.map_or(0, |place| place.length.into()),
                is_refused: place.is_none(),
                asked: 0,
                fails: false,
                words: 0,
            });
        }
    }

    /// Runs it, and then lets all that was begun come to its end.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        for _ in 0..100 * TIMEOUT {
            self.cycle(false);
        }
        let dropped = self.decode.cycle(bell_decode::In::default()).dropped;
        assert_eq!(u64::from(dropped), self.seen.stores, "each other store is dropped and counted");
        let (alloc, _) = self.cycle(false);
        let is_empty = self.descriptors.is_empty() && self.rung.iter().all(VecDeque::is_empty);
        assert!(is_empty && alloc.in_use == 0, "all comes to its end: {:?}", self.descriptors);
    }
}

/// Each doorbell that is not dropped is carried out exactly once, in the order of its function, or
/// refused: its descriptor leaves whole, or as failed if one of its reads fails or never comes. No
/// read lies outside of its function's window, and in the end all tags and places are back. Each
/// question about a source is answered by the window of its function, whoever asks.
// shows: C-30, C-31
#[test]
fn each_doorbell_is_carried_out_once_with_any_completer() {
    for seed in 1..4 {
        let mut path = Path::new(seed);
        path.run(200_000);
        let seen = &path.seen;
        let [first, second] = seen.sources;
        let all = [
            seen.stores,
            seen.dropped,
            seen.refused,
            seen.failed,
            seen.whole,
            seen.lost,
            first,
            second,
        ];
        assert!(all.iter().chain(&seen.held).all(|&count| count > 30), "{seen:?}");
    }
}

/// Canary: a fetch that is not told of lost tags is noticed.
#[test]
#[should_panic(expected = "all comes to its end")]
fn a_fetch_that_is_not_told_waits_for_ever() {
    let mut path = Path::new(1);
    path.is_told = false;
    path.run(20_000);
}
