//! The PCIe boundary of cHPP between its neighbours and a host that speaks raw TLPs: reads of
//! descriptors and of data, writes of data and of events, doorbells, and the host's own reads. The
//! host cuts completions at multiples of 64 bytes, has those of different reads overtake each
//! other, fails, lies and forgets.

use std::collections::VecDeque;

use bellwire_model::cycle::bell_decode::{self, BellDecode};
use bellwire_model::cycle::completer::{self, Completer, REGISTERS};
use bellwire_model::cycle::data_reorder::{self, DataReorder, LANES};
use bellwire_model::cycle::desc_fetch::{self, DescFetch, Shape};
use bellwire_model::cycle::line::{Beat, bytes_of};
use bellwire_model::cycle::pcie_rx::{self, PcieRx};
use bellwire_model::cycle::pcie_tx::{self, PcieTx};
use bellwire_model::cycle::read_arb::{self, ReadArb};
use bellwire_model::cycle::tag_alloc::{self, TagAlloc};
use bellwire_model::cycle::write_arb::{self, WriteArb};
use bellwire_model::engine::Random;
use bellwire_wire::pcie::tlp::{Completion, Header, Request, SUCCESS, UNSUPPORTED};
use bellwire_wire::span::DwordSpan;

const TAGS: usize = 8;
const SHAPE: Shape = Shape { places: 2, beats: 64, request: 8, tags: TAGS };
const TIMEOUT: u64 = 2_000;
const DESCRIPTORS: usize = 0;
const DATA: usize = 1;
const REQUESTERS: usize = 2;
const FUNCTIONS: u64 = 8;
/// Bytes of a read and of a write, at most.
const MOST: u64 = 128;
const DEVICE: u16 = 0x1d3;
/// The window lies above 4 GiB.
const BASE: u64 = 0x38_7f21;

/// A byte of host memory.
fn byte(address: u64) -> u8 {
    ((address / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * (address % 8))) as u8
}

/// Addresses below and above 4 GiB, a multiple of 4096 each.
fn page(random: &mut Random) -> u64 {
    let high = if random.below(2) == 0 { 0 } else { 0x12_0000_0000 };
    high + 0x1000 * random.below(1 << 20)
}

fn tlp(header: Header, payload: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes).expect("all numbers fit");
    bytes.extend(payload);
    assert_eq!(bytes.len(), header.buffer_len() + 4 * header.payload_dw());
    bytes
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Comes,
    /// It is refused, or its last piece is poisoned.
    Fails,
    /// A piece lies about where it begins, is poisoned, or too short. So it is dropped.
    Lies,
    IsForgotten,
}

/// A read that waits for completions: what has not come.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u8,
    requester: u16,
    address: u64,
    bytes: u64,
    fate: Fate,
}

/// A request of the host that waits for its answer, and the answer's status.
#[derive(Clone, Copy, Debug)]
struct Asked {
    tag: u8,
    status: u8,
    lower: u8,
    count: u16,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    whole: [u64; REQUESTERS],
    failed: [u64; REQUESTERS],
    lost: u64,
    writes: u64,
    answers: u64,
    refusals: u64,
    dropped: u64,
}

/// The host.
struct Host {
    random: Random,
    reads: Vec<Read>,
    asked: Vec<Asked>,
    /// The TLP that comes from the interface, and the one that leaves: from the next beat on.
    comes: Vec<u8>,
    leaves: Vec<u8>,
    /// Doorbells that were stored: function and word.
    bells: VecDeque<(u8, u64)>,
    /// TLPs that the interface must drop.
    junk: u64,
}

impl Host {
    /// The next TLP, if there is something to say; a doorbell only if it `rings`.
    fn begin(&mut self, works: bool, rings: bool) {
        let random = &mut self.random;
        self.leaves = match random.below(if works { 32 } else { 8 }) {
            0..16 => self.complete(),
            16 if rings => self.ring(),
            17..20 => self.ask(),
            20 => {
                self.junk += 1;
                // A message that wants no answer, and a completion of another interface.
                let message = [0x34, 0, 0, 0, 0, 0, 0, 0x7e, 0, 0, 0, 0, 0, 0, 0, 0];
                let stray = [0x4a, 0, 0, 1, 0, 0, 0, 4, 0x12, 0x34, 1, 0, 1, 2, 3, 4];
                if random.below(2) == 0 { message.to_vec() } else { stray.to_vec() }
            }
            _ => Vec::new(),
        };
    }

    /// A piece of one of the oldest reads.
    fn complete(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let comes = |read: &&mut Read| read.fate != Fate::IsForgotten;
        let count = self.reads.iter_mut().filter(comes).count();
        let at = random.below(count.clamp(1, 4) as u64) as usize;
        let Some(read) = self.reads.iter_mut().filter(comes).nth(at) else { return Vec::new() };
        let cut = 64 * (1 + random.below(2)) - read.address % 64;
        let bytes = read.bytes.min(cut);
        let is_last = bytes == read.bytes;
        let first = read.address / 4 * 4;
        let dwords = (read.address % 4 + bytes).div_ceil(4);
        let mut says = Completion {
            is_poisoned: false,
            class: 0,
            attributes: 0,
            completer: 0x100,
            status: SUCCESS,
            byte_count: read.bytes as u16,
            requester: read.requester,
            tag: read.tag,
            lower: (read.address % 128) as u8,
            dwords: dwords as u16,
        };
        let fate = read.fate;
        let mut cut_off = 0;
        (read.address, read.bytes) = (read.address + bytes, read.bytes - bytes);
        match fate {
            Fate::Comes | Fate::IsForgotten => {}
            Fate::Fails if is_last && random.below(2) == 0 => says.is_poisoned = true,
            Fate::Fails if is_last || random.below(2) == 0 => {
                (says.status, says.dwords, read.bytes) = (UNSUPPORTED, 0, 0);
            }
            Fate::Fails => {}
            Fate::Lies => {
                self.junk += 1;
                match random.below(3) {
                    0 => says.lower ^= 4,
                    1 if !is_last => says.is_poisoned = true,
                    _ => cut_off = 4,
                }
                // Nothing else comes of it.
                (read.fate, read.bytes) = (Fate::IsForgotten, 1);
            }
        }
        self.reads.retain(|read| read.bytes > 0);
        let payload = (first..first + 4 * u64::from(says.dwords)).map(byte);
        let mut bytes = tlp(Header::Completion(says), payload);
        bytes.truncate(bytes.len() - cut_off);
        bytes
    }

    /// A doorbell for a descriptor.
    fn ring(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let function = random.below(FUNCTIONS);
        let bytes = 16 * (1 + random.below(64));
        let address = page(random) + 16 * random.below((4096 - bytes) / 16 + 1);
        let word = bytes << 48 | address;
        self.bells.push_back((function as u8, word));
        let store = Request {
            is_write: true,
            is_poisoned: false,
            class: 0,
            attributes: 0,
            requester: 0,
            tag: 0,
            address: BASE << 16 | function << 12,
            dwords: 2,
            first: 15,
            last: 15,
        };
        tlp(Header::Request(store), word.to_le_bytes().into_iter())
    }

    /// The host reads a DW of the window, or asks for something that is not supported.
    fn ask(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let tag = random.below(256) as u8;
        if self.asked.iter().any(|asked| asked.tag == tag) {
            return Vec::new();
        }
        let dwords = if random.below(4) == 0 { 2 } else { 1 };
        let address = (BASE + random.below(8) / 7) << 16 | 0x8000 | random.below(9) << 2;
        let read = Request {
            is_write: false,
            is_poisoned: false,
            class: random.below(8) as u8,
            attributes: 0,
            requester: 0x0010,
            tag,
            address,
            dwords,
            first: 15,
            last: if dwords == 1 { 0 } else { 15 },
        };
        let mut bytes = tlp(Header::Request(read), std::iter::empty());
        let is_good = dwords == 1 && address >> 16 == BASE && address % 4096 < 4 * REGISTERS as u64;
        let lower = (address % 128) as u8;
        let mut asked = Asked {
            tag,
            status: if is_good { SUCCESS } else { UNSUPPORTED },
            lower,
            count: 4 * dwords,
        };
        if random.below(8) == 0 {
            // A write of I/O space.
            bytes.truncate(12);
            (bytes[0], bytes[3]) = (0x42, 1);
            bytes.extend([1, 2, 3, 4]);
            asked = Asked { status: UNSUPPORTED, lower: 0, count: 4, ..asked };
        }
        self.asked.push(asked);
        bytes
    }
}

/// What a requester has asked for and not got: where it lies, and whether a read of it has failed.
#[derive(Clone, Copy, Debug)]
struct Job {
    function: u8,
    address: u64,
    bytes: u64,
    /// Bytes that were asked for, and beats or words that have left.
    asked: u64,
    left: u64,
    fails: bool,
}

/// The function that data and writes at an address are for, in this test.
fn owner(address: u64) -> u8 {
    (address >> 12) as u8 & 7
}

/// The blocks, connected as in gates, and what is known of their work.
struct Path {
    fetch: DescFetch,
    reorder: DataReorder,
    reads: ReadArb,
    alloc: TagAlloc,
    writes: WriteArb,
    transmit: PcieTx,
    receive: PcieRx,
    decode: BellDecode,
    complete: Completer,
    /// Bytes of completions stand on their lanes.
    is_turned: bool,
    random: Random,
    host: Host,
    /// Doorbells in front of the fetch, as `doorbell_fifo` keeps them.
    bells: VecDeque<(u8, u64)>,
    /// By requester, what it has asked for, oldest first, and the number of its oldest job.
    jobs: [VecDeque<Job>; REQUESTERS],
    first: [u64; REQUESTERS],
    /// The next read of data, by address and bytes.
    wanted: Option<(u64, u64)>,
    /// By tag, the requester and the number of its job since the beginning.
    held: [Option<(usize, u64)>; TAGS],
    /// The write of the upload module that comes, by beats and as a whole; the record that does,
    /// and whether it is offered.
    upload: VecDeque<write_arb::In>,
    uploaded: Option<(u64, Vec<u8>)>,
    event: Option<(u64, [u64; 4])>,
    is_offered: bool,
    /// Writes that were taken and have not come to the host.
    written: VecDeque<(u64, Vec<u8>)>,
    seen: Seen,
}

impl Path {
    fn new(seed: u64) -> Path {
        let mut random = Random::new(seed);
        let host = Host {
            random: random.fork(1),
            reads: Vec::new(),
            asked: Vec::new(),
            comes: Vec::new(),
            leaves: Vec::new(),
            bells: VecDeque::new(),
            junk: 0,
        };
        Path {
            fetch: DescFetch::new(SHAPE),
            reorder: DataReorder::new(32, 8, TAGS),
            reads: ReadArb::new(REQUESTERS, TAGS),
            alloc: TagAlloc::new(TAGS, TIMEOUT),
            writes: WriteArb::default(),
            transmit: PcieTx::new(MOST as usize, MOST as usize),
            receive: PcieRx::new(TAGS, 32),
            decode: BellDecode::new(FUNCTIONS as usize, 32),
            complete: Completer::new(REGISTERS, FUNCTIONS as u16),
            is_turned: true,
            random,
            host,
            bells: VecDeque::new(),
            jobs: Default::default(),
            first: [0; REQUESTERS],
            wanted: None,
            held: [None; TAGS],
            upload: VecDeque::new(),
            uploaded: None,
            event: None,
            is_offered: false,
            written: VecDeque::new(),
            seen: Seen::default(),
        }
    }

    fn push(&mut self, requester: usize, function: u8, address: u64, bytes: u64) {
        let job = Job { function, address, bytes, asked: 0, left: 0, fails: false };
        self.jobs[requester].push_back(job);
    }

    fn end(&mut self, requester: usize) {
        let job = self.jobs[requester].pop_front().expect("it was asked for");
        self.first[requester] += 1;
        let seen = if job.fails { &mut self.seen.failed } else { &mut self.seen.whole };
        seen[requester] += 1;
    }

    /// What the upload module and the rings write next.
    fn fill(&mut self) {
        let random = &mut self.random;
        if self.upload.is_empty() && random.below(16) == 0 {
            let at = random.below(4096);
            let address = page(random) + at;
            let bytes = 1 + random.below(MOST - at % MOST);
            let lead = address % LANES as u64;
            let mut lanes = vec![0; lead as usize];
            lanes.extend((0..bytes).map(|_| random.below(256) as u8));
            self.uploaded = Some((address, lanes[lead as usize..].to_vec()));
            lanes.resize(lanes.len().next_multiple_of(LANES), 0);
            let (beats, _) = lanes.as_chunks::<LANES>();
            self.upload = beats
                .iter()
                .enumerate()
                .map(|(at, beat)| write_arb::In {
                    upload_valid: true,
                    upload_last: at + 1 == beats.len(),
                    upload_function: owner(address),
                    upload_address: address,
                    upload_bytes: bytes as u16,
                    upload_data: Beat { bytes: *beat, k: 0 }.words(),
                    ..Default::default()
                })
                .collect();
        }
    }

    /// One cycle; things begin only if it `works`.
    fn cycle(&mut self, works: bool) -> tag_alloc::Out {
        let tags = self.alloc.out();
        if works {
            self.fill();
        }
        if works && self.random.below(8) == 0 && self.wanted.is_none() {
            let at = self.random.below(4096);
            let bytes = 1 + self.random.below(MOST - at % MOST);
            self.wanted = Some((page(&mut self.random) + at, bytes));
        }

        // What stands at the outputs before anything is taken.
        let told = self.receive.clone().cycle(pcie_rx::In::default());
        let read = self.reads.clone().cycle(read_arb::In::default());
        let write = self.writes.clone().cycle(write_arb::In::default());
        let answer = self.complete.clone().cycle(completer::In::default());
        let mut fetch = desc_fetch::In {
            bell_valid: !self.bells.is_empty(),
            read_tag: tags.tag,
            out_ready: self.random.below(8) > 0,
            ..Default::default()
        };
        if let Some(&(function, word)) = self.bells.front() {
            (fetch.bell_function, fetch.bell_word) = (function, word);
        }
        let (at, bytes) = self.wanted.unwrap_or_default();
        let mut reorder = data_reorder::In {
            read_tag: tags.tag,
            read_lane: (at % LANES as u64) as u8,
            read_bytes: bytes as u16,
            out_ready: self.random.below(8) > 0,
            ..Default::default()
        };
        let asks = self.fetch.clone().cycle(fetch);
        let has_room = self.reorder.clone().cycle(reorder);

        // The host's link: it stalls at times, and has no room for reads at times.
        let transmit = pcie_tx::In {
            device: DEVICE,
            read_valid: read.read_valid,
            read_function: read.read_function,
            read_address: read.read_address,
            read_bytes: read.read_bytes,
            read_tag: read.read_tag,
            read_credit: self.random.below(4) > 0,
            write_valid: write.out_valid,
            write_last: write.out_last,
            write_function: write.out_function,
            write_address: write.out_address,
            write_bytes: write.out_bytes,
            write_data: write.out_data,
            answer_valid: answer.answer_valid,
            answer_function: 0,
            answer_requester: answer.answer_requester,
            answer_tag: answer.answer_tag,
            answer_class: answer.answer_class,
            answer_attributes: answer.answer_attributes,
            answer_status: answer.answer_status,
            answer_count: answer.answer_count,
            answer_lower: answer.answer_lower,
            answer_has_data: answer.answer_has_data,
            answer_data: answer.answer_data,
            out_ready: self.random.below(8) > 0,
        };
        let sent = self.transmit.cycle(transmit);
        assert!(!sent.refused, "no neighbour asks for what cannot be a TLP");
        if sent.out_valid && transmit.out_ready {
            self.arrive(&sent);
        }
        let leaves = transmit.read_valid && sent.read_ready;
        let completed = self.complete.cycle(completer::In {
            value: std::array::from_fn(|register| 0x5eed_0000 + register as u32),
            request_valid: told.request_valid,
            request_is_read: told.request_is_read,
            request_address: told.request_address,
            request_requester: told.request_requester,
            request_tag: told.request_tag,
            request_class: told.request_class,
            request_attributes: told.request_attributes,
            request_count: told.request_count,
            request_lower: told.request_lower,
            answer_ready: sent.answer_ready,
        });

        let mut receive = pcie_rx::In {
            device: DEVICE,
            base: BASE,
            read_valid: leaves,
            read_tag: read.read_tag,
            read_end: ((read.read_address + u64::from(read.read_bytes)) % 128) as u8,
            request_ready: completed.request_ready,
            ..Default::default()
        };
        self.say(works, &mut receive);
        let out = self.receive.cycle(receive);
        if receive.in_valid && out.in_ready {
            let count = self.host.leaves.len().min(LANES);
            self.host.leaves.drain(..count);
        }
        self.seen.dropped += u64::from(out.dropped_valid);
        let mut data = told.out_data;
        if !self.is_turned {
            data = [data[1], data[0]];
        }

        let decoded = self.decode.cycle(bell_decode::In {
            store_valid: told.store_valid,
            store_last: told.out_last,
            store_address: told.store_address,
            store_bytes: told.store_bytes,
            store_data: told.out_data,
        });
        assert!(!decoded.dropped_valid, "each store rings");
        if decoded.bell_valid {
            let bell = (decoded.bell_function, decoded.bell_word);
            assert_eq!(self.host.bells.pop_front(), Some(bell), "it rings as it was stored");
            self.bells.push_back(bell);
        }

        let mut arb = read_arb::In {
            tag_valid: tags.tag_valid,
            tag: tags.tag,
            read_ready: sent.read_ready,
            in_valid: told.completion_valid,
            in_last: told.out_last,
            in_tag: told.completion_tag,
            lost_valid: tags.lost_valid,
            lost_tag: tags.lost_tag,
            ..Default::default()
        };
        let descriptor = (asks.read_address, u64::from(asks.read_bytes));
        let wanted =
            [asks.read_valid.then_some(descriptor), self.wanted.filter(|_| has_room.read_ready)];
        for (requester, wanted) in wanted.iter().enumerate() {
            arb.ask_valid[requester] = wanted.is_some();
            let (address, bytes) = wanted.unwrap_or_default();
            (arb.ask_address[requester], arb.ask_bytes[requester]) = (address, bytes as u16);
        }
        arb.ask_function[DESCRIPTORS] = asks.read_function;
        arb.ask_function[DATA] = owner(arb.ask_address[DATA]);
        arb.free_valid[DESCRIPTORS] = asks.free_valid;
        arb.free_valid[DATA] = has_room.free_valid;
        let served = self.reads.cycle(arb);
        assert!(!served.unexpected, "the host completes only what was asked for");

        fetch.read_ready = served.ask_ready[DESCRIPTORS];
        fetch.in_valid = served.own_valid[DESCRIPTORS];
        (fetch.in_last, fetch.in_tag) = (told.out_last, told.completion_tag);
        (fetch.in_failed, fetch.in_data) = (told.completion_failed, data);
        (fetch.in_bytes, fetch.in_remaining) = (told.completion_bytes, told.completion_remaining);
        fetch.lost_valid = served.own_lost[DESCRIPTORS];
        fetch.lost_tag = tags.lost_tag;
        let fetched = self.fetch.cycle(fetch);
        reorder.read_valid = arb.ask_valid[DATA] && served.ask_ready[DATA];
        reorder.in_valid = served.own_valid[DATA];
        (reorder.in_last, reorder.in_tag) = (told.out_last, told.completion_tag);
        (reorder.in_failed, reorder.in_data) = (told.completion_failed, data);
        (reorder.in_bytes, reorder.in_remaining) =
            (told.completion_bytes, told.completion_remaining);
        reorder.lost_valid = served.own_lost[DATA];
        reorder.lost_tag = tags.lost_tag;
        let ordered = self.reorder.cycle(reorder);

        let mut upload = self.upload.front().copied().unwrap_or_default();
        if works && self.event.is_none() && self.random.below(32) == 0 {
            let at = page(&mut self.random) + 32 * self.random.below(128);
            self.event = Some((at, [(); 4].map(|()| self.random.word())));
        }
        // A record is offered behind the data that was given before, and stays until it is taken.
        self.is_offered |= self.event.is_some() && self.upload.is_empty();
        if let Some((address, record)) = self.event.filter(|_| self.is_offered) {
            upload.event_valid = true;
            upload.event_function = owner(address);
            (upload.event_address, upload.event_record) = (address, record);
        }
        upload.out_ready = sent.write_ready;
        let taken = self.writes.cycle(upload);
        if upload.upload_valid && taken.upload_ready {
            self.upload.pop_front();
            if upload.upload_last {
                self.written.extend(self.uploaded.take());
            }
        }
        if upload.event_valid && taken.event_ready {
            let bytes = upload.event_record.map(u64::to_le_bytes).concat();
            self.written.push_back((upload.event_address, bytes));
            self.event = None;
            self.is_offered = false;
        }

        if fetched.bell_ready && fetch.bell_valid {
            let (function, word) = self.bells.pop_front().expect("it is offered");
            self.push(DESCRIPTORS, function, word & ((1 << 40) - 1), word >> 48);
        }
        if fetched.out_valid && fetch.out_ready {
            self.word(&fetched);
        }
        if ordered.out_valid && reorder.out_ready {
            self.beat(&ordered);
        }
        if served.release_valid {
            self.held[usize::from(served.release_tag)] = None;
        }
        if tags.lost_valid {
            self.seen.lost += 1;
            let at = self.host.reads.iter().position(|read| read.tag == tags.lost_tag);
            let lost = self.host.reads.remove(at.expect("a tag in use is of a read"));
            assert_eq!(lost.fate, Fate::IsForgotten);
            self.held[usize::from(tags.lost_tag)] = None;
        }
        for (requester, read) in wanted.into_iter().enumerate() {
            if let Some(read) = read.filter(|_| served.ask_ready[requester]) {
                self.serve(requester, read, tags.tag);
            }
        }
        self.alloc.cycle(tag_alloc::In {
            tag_ready: served.tag_ready,
            release_valid: served.release_valid,
            release_tag: served.release_tag,
        })
    }

    /// A read of this requester was taken.
    fn serve(&mut self, requester: usize, (address, bytes): (u64, u64), tag: u8) {
        if requester == DATA {
            self.wanted = None;
            self.push(DATA, owner(address), address, bytes);
        }
        let mut jobs = self.jobs[requester].iter_mut().enumerate();
        let (at, job) = jobs.find(|(_, job)| job.asked < job.bytes).expect("a read is of a job");
        assert_eq!(address, job.address + job.asked, "reads keep their order");
        job.asked += bytes;
        let number = self.first[requester] + at as u64;
        assert_eq!(self.held[usize::from(tag)].replace((requester, number)), None);
    }

    /// A beat comes to the host.
    fn arrive(&mut self, sent: &pcie_tx::Out) {
        let count = LANES - 4 * usize::from(sent.out_empty);
        self.host.comes.extend_from_slice(&bytes_of(sent.out_data)[..count]);
        if !sent.out_last {
            return;
        }
        let bytes = std::mem::take(&mut self.host.comes);
        let header = Header::parse(&bytes).expect("the host understands each TLP");
        let payload = &bytes[header.buffer_len()..];
        assert_eq!(payload.len(), 4 * header.payload_dw(), "{header}");
        match header {
            Header::Completion(answer) => self.answer(&answer, payload),
            Header::Request(request) => {
                assert_eq!(request.requester >> 3, DEVICE);
                let span = DwordSpan {
                    address: request.address,
                    length_dw: request.dwords,
                    first_enables: request.first,
                    last_enables: request.last,
                };
                let span = span.to_bytes().expect("it is one run of bytes");
                let (address, bytes) = (span.address(), span.len() as u64);
                assert!(bytes <= MOST && address % 4096 + bytes <= 4096, "{header}");
                if request.is_write {
                    self.seen.writes += 1;
                    let payload = payload[span.lead()..][..span.len()].to_vec();
                    assert_eq!(request.requester as u8 & 7, owner(address), "whose write it is");
                    let expected = self.written.pop_front();
                    assert_eq!(expected, Some((address, payload)), "writes keep their order");
                } else {
                    self.ask(&request, address, bytes);
                }
            }
        }
    }

    /// A read comes to the host, which decides what becomes of it.
    fn ask(&mut self, request: &Request, address: u64, bytes: u64) {
        let fate = match self.random.below(64) {
            0 | 1 => Fate::Fails,
            2 => Fate::Lies,
            3 => Fate::IsForgotten,
            _ => Fate::Comes,
        };
        let tag = request.tag;
        let (requester, number) = self.held[usize::from(tag)].expect("the tag is in use");
        let job = &mut self.jobs[requester][(number - self.first[requester]) as usize];
        assert!((job.address..job.address + job.bytes).contains(&address), "of the tag's job");
        assert_eq!(request.requester as u8 & 7, job.function, "whose read it is");
        job.fails |= fate != Fate::Comes;
        let requester = request.requester;
        self.host.reads.push(Read { tag, requester, address, bytes, fate });
    }

    /// An answer comes to the host.
    fn answer(&mut self, answer: &Completion, payload: &[u8]) {
        let at = self.host.asked.iter().position(|asked| asked.tag == answer.tag);
        let asked = self.host.asked.swap_remove(at.expect("each request is answered once"));
        let told = (answer.status, answer.lower, answer.byte_count, answer.requester);
        assert_eq!(told, (asked.status, asked.lower, asked.count, 0x0010));
        assert_eq!(answer.completer >> 3, DEVICE);
        let value = u32::from_le_bytes(payload.try_into().unwrap_or_default());
        if asked.status == SUCCESS {
            self.seen.answers += 1;
            assert_eq!(value, 0x5eed_0000 + u32::from(asked.lower) / 4, "a register's value");
        } else {
            self.seen.refusals += 1;
            assert!(payload.is_empty());
        }
    }

    /// What the host says in this cycle.
    fn say(&mut self, works: bool, input: &mut pcie_rx::In) {
        if self.host.leaves.is_empty() {
            let rings = self.bells.len() + self.host.bells.len() < 4;
            self.host.begin(works, rings);
        }
        let left = self.host.leaves.len();
        let count = left.min(LANES);
        // The host pauses between beats only, and offers the same one until it is taken.
        if left == 0 || self.random.below(8) == 0 {
            return;
        }
        let mut bytes = [0xa5; LANES];
        bytes[..count].copy_from_slice(&self.host.leaves[..count]);
        input.in_valid = true;
        input.in_last = left == count;
        input.in_empty = ((LANES - count) / 4) as u8;
        input.in_data = Beat { bytes, k: 0 }.words();
    }

    /// A word of a descriptor has left.
    fn word(&mut self, out: &desc_fetch::Out) {
        let job = self.jobs[DESCRIPTORS].front_mut().expect("a word is of a descriptor");
        assert_eq!((out.out_function, out.out_address), (job.function, job.address));
        assert_eq!(out.out_failed, job.fails, "{job:?}");
        let from = job.address + 8 * job.left;
        if !job.fails {
            let expected: Vec<u8> = (from..from + 8).map(byte).collect();
            assert_eq!(out.out_word.to_le_bytes()[..], expected, "the word of the host's memory");
        }
        job.left += 1;
        if out.out_last {
            assert!(job.fails || 8 * job.left == job.bytes, "{job:?}");
            self.end(DESCRIPTORS);
        }
    }

    /// A beat of data has left.
    fn beat(&mut self, out: &data_reorder::Out) {
        let job = self.jobs[DATA].front_mut().expect("a beat is of a read");
        assert!(job.fails || !out.out_failed, "{job:?}");
        if !out.out_failed {
            let from = job.address / LANES as u64 * LANES as u64 + LANES as u64 * job.left;
            let (first, last) = (usize::from(out.out_from), usize::from(out.out_to));
            let expected: Vec<u8> = (from..from + LANES as u64).map(byte).collect();
            let bytes = bytes_of(out.out_data);
            assert_eq!(bytes[first..=last], expected[first..=last], "the host's memory");
        }
        job.left += 1;
        if out.out_last || out.out_failed {
            self.end(DATA);
        }
    }

    /// Runs it, and then lets all that was begun come to its end.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        for _ in 0..20 * TIMEOUT {
            self.cycle(false);
        }
        let in_use = self.cycle(false).in_use;
        assert!(self.jobs.iter().all(VecDeque::is_empty) && in_use == 0, "all comes to its end");
        assert!(self.written.is_empty() && self.host.asked.is_empty() && self.bells.is_empty());
        assert_eq!(self.seen.dropped, self.host.junk, "what must be dropped is, and nothing else");
    }
}

/// Between its neighbours and a host that speaks raw TLPs, the boundary gives each read its own
/// bytes, keeps writes in order, rings doorbells as they were stored, and answers all requests.
/// Whatever the host fails, lies about or forgets ends as failed, and all tags come back.
// shows: C-36
#[test]
fn the_boundary_carries_what_host_and_interface_say() {
    for seed in 1..4 {
        let mut path = Path::new(seed);
        path.run(60_000);
        let Seen { whole, failed, lost, writes, answers, refusals, dropped } = &path.seen;
        let all = whole.iter().chain(failed);
        let all = all.chain([lost, writes, answers, refusals, dropped]);
        assert!(all.into_iter().all(|&count| count > 20), "{:?}", path.seen);
    }
}

/// Canary: completions whose bytes stand on other lanes are noticed.
#[test]
#[should_panic(expected = "the host's memory")]
fn bytes_on_other_lanes_are_noticed() {
    let mut path = Path::new(1);
    path.is_turned = false;
    path.run(2_000);
}
