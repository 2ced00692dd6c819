//! A whole interface of cHPP, and a host that speaks to it by raw TLPs only. To the software and
//! the memory of `core_path` it looks like the interface without its boundary: registers that are
//! written become stores, and reads and writes are what the interface asks for. The host also
//! reads counts, and stores what must be dropped or refused. The lock-step of `hardware/chpp_nic`
//! has this load, too.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bellwire_model::cycle::chpp_nic::{self, ChppNic};
use bellwire_model::cycle::chpp_quad::{self, ChppQuad, PORTS};
use bellwire_model::cycle::line::{Beat, bytes_of};
use bellwire_model::cycle::nic_core::{In, Out, Shape};
use bellwire_model::engine::Random;
use bellwire_wire::pcie::tlp::{Completion, Header, Request, SUCCESS, UNSUPPORTED};
use bellwire_wire::registers::{COUNTS, PAGE, PAGE_SHIFT, RegisterRepr, VERSION};
use bellwire_wire::span::DwordSpan;

use super::core_path::{Fault, Interface, Path};

const LANES: usize = 16;
/// Cycles after which a count has moved for sure.
const QUIET: u64 = 64;
/// What the host does wrong, by the count of it: stores, refusals, doorbells of a wrong form,
/// doorbells of a full FIFO, events of closed rings, and TLPs that are dropped.
const WRONG: [usize; 6] = [1, 2, 3, 4, 5, 8];
/// Doorbells that fill each FIFO.
const MANY: usize = 70;
/// A doorbell for a descriptor of 32 bytes.
const BELL: u64 = 32 << 48;
/// The number of the host's own reads.
const HOST: u16 = 0x0010;

/// What is seen of an interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// What enters in a cycle.
    pub enters: chpp_nic::In,
    /// What leaves.
    pub leaves: chpp_nic::Out,
    /// Answers to the host's reads so far: those with the value of a count, and the others.
    pub answers: [u64; 2],
}

/// What the interface asks of memory.
#[derive(Clone, Debug)]
enum Ask {
    Read { function: u8, address: u64, bytes: u16, tag: u8 },
    Write { function: u8, address: u64, data: Vec<u8>, sent: usize },
}

/// A cycle of an interface.
pub type Cycle = Box<dyn FnMut(chpp_nic::In) -> chpp_nic::Out>;

/// The interface and its host.
pub struct TlpHost {
    nic: Cycle,
    last: Rc<Cell<Seen>>,
    random: Random,
    device: u16,
    base: u64,
    /// TLPs for the interface: posted ones and requests in their order, and completions, which may
    /// overtake them. The one that is on its way.
    posted: VecDeque<Vec<u8>>,
    completions: VecDeque<Vec<u8>>,
    leaves: Vec<u8>,
    /// The TLP that comes from it, and what it asks of memory.
    comes: Vec<u8>,
    asks: VecDeque<Ask>,
    /// By tag, where a read ends, and who asks.
    reads: BTreeMap<u8, (u64, u16)>,
    /// Bytes of the completion that software gives.
    piece: Vec<u8>,
    /// The host's read that waits: where, whether there is a count, and that if it is known.
    asked: Option<(u16, bool, Option<u32>)>,
    /// What counts must be, if that is known, whether one of them still moves, and for how long
    /// none does.
    counts: [Option<u32>; COUNTS.len()],
    moves: bool,
    quiet: u64,
}

impl TlpHost {
    /// A host of this interface. `last` is told what enters and leaves it.
    pub fn new(nic: Cycle, last: Rc<Cell<Seen>>, seed: u64) -> TlpHost {
        let mut random = Random::new(seed);
        let mut counts = [Some(0); COUNTS.len()];
        counts[0] = Some(VERSION);
        // Software does wrong by itself what these two count.
        (counts[6], counts[7]) = (None, None);
        TlpHost {
            nic,
            last,
            device: random.below(1 << 13) as u16,
            // Below or above 4 GiB.
            base: [0xd00d, 0x38_7f21][random.below(2) as usize],
            random,
            posted: VecDeque::new(),
            completions: VecDeque::new(),
            leaves: Vec::new(),
            comes: Vec::new(),
            asks: VecDeque::new(),
            reads: BTreeMap::new(),
            piece: Vec::new(),
            asked: None,
            counts,
            moves: false,
            quiet: 0,
        }
    }

    /// A store or a read of the host. A read has no data.
    fn request(&mut self, place: u16, data: &[u8]) {
        let dwords = (data.len() / 4).max(1) as u16;
        let request = Request {
            is_write: !data.is_empty(),
            is_poisoned: false,
            class: 0,
            attributes: 0,
            requester: HOST,
            tag: self.random.below(256) as u8,
            address: (self.base << 16) + u64::from(place),
            dwords,
            first: 15,
            last: if dwords == 1 { 0 } else { 15 },
        };
        self.posted.push_back(tlp(Header::Request(request), data));
    }

    /// Software sets a register, reports, or rings.
    fn store(&mut self, input: &In) {
        let says = if input.keys_valid && input.keys_window {
            RegisterRepr::Window {
                function: input.keys_function,
                base: input.keys_base,
                pages: input.keys_pages,
            }
        } else if input.keys_valid {
            let key = input.keys_opens.then_some(input.keys_key);
            RegisterRepr::Key { pair: input.keys_pair, key }
        } else if input.rings_valid && input.rings_opens {
            let (ring, entries) = (input.rings_ring, input.rings_count);
            RegisterRepr::Ring { ring, base: input.rings_base, entries }
        } else if input.rings_valid {
            RegisterRepr::RingReport { ring: input.rings_ring, count: input.rings_count }
        } else if input.slots_valid && input.slots_opens {
            let (pair, entries) = (input.slots_pair, input.slots_count);
            RegisterRepr::List { pair, page: input.slots_page, entries }
        } else if input.slots_valid {
            RegisterRepr::ListReport { pair: input.slots_pair, count: input.slots_count }
        } else {
            return;
        };
        let (place, word) = says.emit().expect("software writes what can be");
        self.request(place, &word.to_le_bytes());
    }

    /// The host reads a register, or something that is none.
    fn ask(&mut self) {
        let number = self.random.below(COUNTS.len() as u64 + 1) as u16;
        let is_there = usize::from(number) < COUNTS.len() && self.random.below(8) > 0;
        let page = if is_there { PAGE } else { self.random.below(u64::from(PAGE)) as u16 };
        let place = (page << PAGE_SHIFT) + 4 * number;
        let count = self.counts[usize::from(number).min(COUNTS.len() - 1)];
        self.asked = Some((place, is_there, count));
        self.request(place, &[]);
    }

    /// The host sends what must be dropped or refused.
    fn err(&mut self) {
        (self.moves, self.quiet) = (true, 0);
        let count = WRONG[self.random.below(WRONG.len() as u64) as usize];
        self.counts[count] = match (count, self.counts[count]) {
            // How many are too many, and when a bad descriptor has its event, is the interface's.
            (4 | 5, _) => None,
            (_, known) => known.map(|known| known + 1),
        };
        match count {
            1 => self.request(0x8f00, &[0; 8]),
            2 => {
                let says = [
                    RegisterRepr::Window { function: 7, base: (1 << 28) - 1, pages: 2 },
                    RegisterRepr::RingReport { ring: 63, count: 1 },
                    RegisterRepr::ListReport { pair: 31, count: 1 },
                ];
                let says = says[self.random.below(3) as usize];
                let (place, word) = says.emit().expect("it fits");
                self.request(place, &word.to_le_bytes());
            }
            3 => self.request(0x7000, &[0xff; 4]),
            // Nobody has opened function 7, so each of its descriptors is a bad one without a ring.
            4 => {
                self.counts[5] = None;
                (0..MANY).for_each(|_| self.request(0x7000, &BELL.to_le_bytes()));
            }
            5 => {
                // The one before may wait yet, and the FIFO have one place.
                self.counts[4] = None;
                self.request(0x7000, &BELL.to_le_bytes());
            }
            _ => {
                // A message that wants no answer.
                let message = [0x34, 0, 0, 0, 0, 0, 0, 0x7e, 0, 0, 0, 0, 0, 0, 0, 0];
                self.posted.push_back(message.to_vec());
            }
        }
    }

    /// A beat of a completion that software gives.
    fn complete(&mut self, input: &In) {
        let tag = input.in_tag;
        let (end, requester) = self.reads[&tag];
        let first = end - u64::from(input.in_remaining);
        let from = (first as usize + self.piece.len()) % LANES;
        let lacks = usize::from(input.in_bytes) - self.piece.len();
        let to = (from + lacks).min(LANES);
        self.piece.extend_from_slice(&bytes_of(input.in_data)[from..to]);
        if !input.in_last {
            return;
        }
        let mut data = std::mem::take(&mut self.piece);
        let lead = (first % 4) as usize;
        data.splice(0..0, vec![0xee; lead]);
        data.resize(data.len().next_multiple_of(4), 0xee);
        if input.in_failed {
            data.clear();
        }
        let says = Completion {
            is_poisoned: false,
            class: 0,
            attributes: 0,
            completer: HOST,
            status: if input.in_failed { UNSUPPORTED } else { SUCCESS },
            byte_count: input.in_remaining,
            requester,
            tag,
            lower: (first % 128) as u8,
            dwords: (data.len() / 4) as u16,
        };
        self.completions.push_back(tlp(Header::Completion(says), &data));
    }

    /// A beat comes from the interface.
    fn arrive(&mut self, out: &chpp_nic::Out) {
        let count = LANES - 4 * usize::from(out.tx_empty);
        self.comes.extend_from_slice(&bytes_of(out.tx_data)[..count]);
        if !out.tx_last {
            return;
        }
        let bytes = std::mem::take(&mut self.comes);
        let header = Header::parse(&bytes).expect("the host understands each TLP");
        let payload = &bytes[header.buffer_len()..];
        assert_eq!(payload.len(), 4 * header.payload_dw(), "{header}");
        match header {
            Header::Completion(answer) => {
                let (place, is_there, count) = self.asked.take().expect("it answers once");
                assert_eq!((answer.completer, answer.requester), (self.device << 3, HOST));
                assert_eq!(u16::from(answer.lower), place % 128);
                let told = <[u8; 4]>::try_from(payload).ok().map(u32::from_le_bytes);
                let status = if is_there { SUCCESS } else { UNSUPPORTED };
                assert_eq!((answer.status, told.is_some()), (status, is_there), "at {place:x}");
                let is_right = !is_there || count.is_none_or(|count| told == Some(count));
                assert!(is_right, "count at {place:x}: {told:?}, not {count:?}");
                let mut seen = self.last.get();
                seen.answers[usize::from(!is_there)] += 1;
                self.last.set(seen);
            }
            Header::Request(request) => {
                assert_eq!(request.requester >> 3, self.device);
                let span = DwordSpan {
                    address: request.address,
                    length_dw: request.dwords,
                    first_enables: request.first,
                    last_enables: request.last,
                };
                let span = span.to_bytes().expect("it is one run of bytes");
                let (function, address) = (request.requester as u8 & 7, span.address());
                self.asks.push_back(if request.is_write {
                    let data = payload[span.lead()..][..span.len()].to_vec();
                    Ask::Write { function, address, data, sent: 0 }
                } else {
                    let bytes = span.len() as u16;
                    self.reads.insert(request.tag, (address + u64::from(bytes), request.requester));
                    Ask::Read { function, address, bytes, tag: request.tag }
                });
            }
        }
    }

    /// What the host says in this cycle.
    fn say(&mut self, input: &mut chpp_nic::In) {
        if self.leaves.is_empty() {
            let queues = [&mut self.posted, &mut self.completions];
            let next = queues[self.random.below(2) as usize].pop_front();
            self.leaves = next.unwrap_or_default();
        }
        let left = self.leaves.len();
        let count = left.min(LANES);
        if left == 0 || self.random.below(16) == 0 {
            return;
        }
        let mut bytes = [0xa5; LANES];
        bytes[..count].copy_from_slice(&self.leaves[..count]);
        input.rx_valid = true;
        input.rx_last = left == count;
        input.rx_empty = ((LANES - count) / 4) as u8;
        input.rx_data = Beat { bytes, k: 0 }.words();
    }

    /// What the interface asks of memory, and whether that is taken.
    fn offer(&mut self, input: &In) -> Out {
        let mut out = Out::default();
        match self.asks.front_mut() {
            None => {}
            Some(&mut Ask::Read { function, address, bytes, tag }) => {
                out.read_valid = true;
                (out.read_function, out.read_tag) = (function, tag);
                (out.read_address, out.read_bytes) = (address, bytes);
                if input.read_ready {
                    self.asks.pop_front();
                }
            }
            Some(Ask::Write { function, address, data, sent }) => {
                let lane = (*address as usize + *sent) % LANES;
                let here = (LANES - lane).min(data.len() - *sent);
                let mut beat = [0; LANES];
                beat[lane..lane + here].copy_from_slice(&data[*sent..*sent + here]);
                out.write_valid = true;
                out.write_last = *sent + here == data.len();
                (out.write_function, out.write_address) = (*function, *address);
                out.write_bytes = data.len() as u16;
                out.write_data = Beat { bytes: beat, k: 0 }.words();
                if input.write_ready {
                    *sent += here;
                    if out.write_last {
                        self.asks.pop_front();
                    }
                }
            }
        }
        out
    }
}

impl Interface for TlpHost {
    fn is_told(&self) -> bool {
        self.posted.is_empty() && self.leaves.is_empty()
    }

    fn cycle(&mut self, input: In) -> Out {
        self.store(&input);
        if input.store_valid {
            self.request(input.store_address, &input.store_data[0].to_le_bytes());
        }
        if input.in_valid {
            self.complete(&input);
        }
        let waits = self.asked.is_some();
        self.moves &= !self.posted.is_empty();
        self.quiet = if self.moves { 0 } else { self.quiet + 1 };
        match self.random.below(1024) {
            0..2 if !waits => self.err(),
            2..32 if !waits && self.quiet > QUIET => self.ask(),
            _ => {}
        }
        let mut enters = chpp_nic::In {
            cpu: input.cpu,
            cpus: input.cpus,
            device: self.device,
            base: self.base,
            read_credit: self.random.below(4) > 0,
            tx_ready: self.asks.len() < 4 && self.random.below(8) > 0,
            from_valid: input.from_valid,
            from_class: input.from_class,
            from_last: input.from_last,
            from_to: input.from_to,
            from_data: input.from_data,
            to_ready: input.to_ready,
            to_credit: input.to_credit,
            ..Default::default()
        };
        self.say(&mut enters);
        let leaves = (self.nic)(enters);
        self.last.set(Seen { enters, leaves, ..self.last.get() });
        if enters.rx_valid && leaves.rx_ready {
            self.leaves.drain(..self.leaves.len().min(LANES));
        }
        if leaves.tx_valid && enters.tx_ready {
            self.arrive(&leaves);
        }
        Out {
            from_ready: leaves.from_ready,
            from_credit: leaves.from_credit,
            to_valid: leaves.to_valid,
            to_class: leaves.to_class,
            to_last: leaves.to_last,
            to_to: leaves.to_to,
            to_data: leaves.to_data,
            ..self.offer(&input)
        }
    }
}

/// A TLP as it is sent.
pub fn tlp(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes).expect("all numbers fit");
    bytes.extend_from_slice(payload);
    assert_eq!(bytes.len(), header.buffer_len() + 4 * header.payload_dw());
    bytes
}

/// Two whole interfaces back to back, with hosts that speak TLPs, and what is seen of both.
pub fn back_to_back(shape: Shape, seed: u64, fault: Fault) -> (Path, [Rc<Cell<Seen>>; 2]) {
    let last: [Rc<Cell<Seen>>; 2] = Default::default();
    let interface = |cpu: u8| -> Box<dyn Interface> {
        let (mut nic, last) = (ChppNic::new(shape), Rc::clone(&last[usize::from(cpu)]));
        let cycle = Box::new(move |enters| nic.cycle(enters));
        Box::new(TlpHost::new(cycle, last, 10 * seed + 5 + u64::from(cpu)))
    };
    let path = Path::over(&interface, shape, seed, fault);
    (path, last)
}

/// What is seen of four interfaces and the crossbar between them.
#[derive(Default)]
pub struct QuadSeen {
    /// By interface.
    pub lasts: [Rc<Cell<Seen>>; PORTS],
    /// From which of them a packet starts to cross.
    crosses: Rc<Cell<[bool; PORTS]>>,
}

impl QuadSeen {
    /// What has entered and left all of them in the last cycle.
    pub fn last(&self) -> (chpp_quad::In, chpp_quad::Out) {
        let mut input = chpp_quad::In::default();
        let mut out = chpp_quad::Out { crosses: self.crosses.get(), ..Default::default() };
        for (at, last) in self.lasts.iter().enumerate() {
            let Seen { enters, leaves, .. } = last.get();
            (input.device[at], input.base[at]) = (enters.device, enters.base);
            input.read_credit[at] = enters.read_credit;
            (input.rx_valid[at], input.rx_last[at]) = (enters.rx_valid, enters.rx_last);
            (input.rx_empty[at], input.rx_data[at]) = (enters.rx_empty, enters.rx_data);
            (input.tx_ready[at], out.rx_ready[at]) = (enters.tx_ready, leaves.rx_ready);
            (out.tx_valid[at], out.tx_last[at]) = (leaves.tx_valid, leaves.tx_last);
            (out.tx_empty[at], out.tx_data[at]) = (leaves.tx_empty, leaves.tx_data);
        }
        (input, out)
    }
}

/// Four whole interfaces that a crossbar joins, with hosts that speak TLPs.
pub fn four(shape: chpp_quad::Shape, seed: u64, fault: Fault) -> (Path, QuadSeen) {
    let seen = QuadSeen::default();
    let quad = Rc::new(RefCell::new(ChppQuad::new(shape)));
    let interface = |cpu: u8| -> Box<dyn Interface> {
        let at = usize::from(cpu);
        let (quad, crosses) = (Rc::clone(&quad), Rc::clone(&seen.crosses));
        let nic = move |input| {
            let quad = &mut *quad.borrow_mut();
            let out = quad.interface(at, input);
            if at == PORTS - 1 {
                crosses.set(quad.clock());
            }
            out
        };
        let last = Rc::clone(&seen.lasts[at]);
        Box::new(TlpHost::new(Box::new(nic), last, 10 * seed + 5 + u64::from(cpu)))
    };
    let cpus: [u8; PORTS] = std::array::from_fn(|at| at as u8);
    let path = Path::among(&interface, shape.nic, seed, fault, (&cpus, PORTS as u8));
    (path, seen)
}
