//! Two whole interfaces of cHPP back to back, with hosts that have nothing but memory and TLPs.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use bellwire_model::cycle::chpp_nic::{ChppNic, In};
use bellwire_model::cycle::line::{Beat, bytes_of};
use bellwire_model::cycle::nic_core::{CLASSES, Shape};
use bellwire_model::cycle::packer;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::event::{EVENT_BYTES, EventRepr, Status, phase};
use bellwire_wire::pcie::tlp::{Completion, Header, Request, SUCCESS};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::registers::{COUNTS, PAGE, PAGE_SHIFT, RegisterRepr};
use bellwire_wire::span::DwordSpan;
use bellwire_wire::tail::Tail;

use crate::core_path::{Fault, Seen};
use crate::nic_path::{Cycle, back_to_back, tlp};

/// The sizes of each interface.
const SHAPE: Shape = Shape {
    functions: 8,
    bells: 4,
    tags: 8,
    timeout: 1500,
    beats: 64,
    reads: 8,
    request: 8,
    longest: 32,
    fetches: 4,
    places: 2,
    events: 4,
    gets: 2,
    packer: packer::Shape { beats: 32, packets: 4, payload: 128, longest: 256 },
    packets: 2,
    depth: 4,
    room: 128,
    write: 128,
    slots: 4,
    batch: 2,
};

/// PUTs, both kinds of NAPs and GETs end with their bytes in memory and with their events, and all
/// that hosts do are stores into their windows. What they read there is what was dropped.
// shows: C-31, C-32, C-36
#[test]
fn hosts_move_data_by_stores_into_their_windows() {
    for seed in 1..=2 {
        let (mut path, last) = back_to_back(SHAPE, seed, Fault::None);
        path.run(30_000);
        for (seen, last) in path.seen().iter().zip(last) {
            let &Seen { sent, failed, refused, bad, puts, naps, forgotten } = seen;
            let all = [sent / 100, failed, refused, bad, puts / 30, naps / 30, forgotten];
            assert!(all.iter().all(|&count| count > 0), "{seen:?}");
            let answers = last.get().answers;
            assert!(answers.iter().all(|&count| count > 10), "{answers:?}");
        }
    }
}

/// Canary: a bit of a completion that is turned is noticed.
#[test]
#[should_panic]
fn a_turned_bit_is_noticed_by_hosts() {
    back_to_back(SHAPE, 1, Fault::Turned).0.run(4_000);
}

/// Canary: a network that does not tell of free places stops.
#[test]
#[should_panic(expected = "all comes to its end")]
fn a_silent_network_is_noticed_by_hosts() {
    back_to_back(SHAPE, 1, Fault::Silent).0.run(4_000);
}

const LANES: usize = 16;
const DEVICE: u16 = 0x1d3;
const BASE: u64 = 0x38_7f21;
/// The function and the queue pair that software uses, on both sides, and its key.
pub const FUNCTION: u8 = 5;
const PAIR: u8 = 21;
pub const KEY: u8 = 0x77;
// Its memory: 64 KiB of host memory are its window.
const PAGES: u32 = 16;
const SENT: u64 = 0x1000;
const CAME: u64 = 0x2000;
const LIST: u64 = 0x3000;
pub const DESCRIPTOR: u64 = 0x4000;
pub const SOURCE: u64 = 0x5003;
pub const TARGET: u64 = 0x6009;
pub const SLOT: u64 = 0x8000;
/// Records of a ring.
const ENTRIES: u16 = 4;

/// A machine: memory, and an interface that its processor reaches by TLPs.
pub struct Machine {
    nic: Cycle,
    cpu: u8,
    pub memory: Vec<u8>,
    /// TLPs for the interface, the first one from its next byte on, and the one that comes.
    leaves: VecDeque<Vec<u8>>,
    comes: Vec<u8>,
    /// Whether the host has room for reads.
    has_room: bool,
    /// Values of registers that were read.
    values: Vec<u32>,
    /// By ring, records that were read: what was sent, and what came.
    read: [u64; 2],
    /// Beats from the network, and free places there.
    network: VecDeque<In>,
    credits: [u64; CLASSES],
}

impl Machine {
    fn new(cpu: u8) -> Machine {
        let mut nic = ChppNic::new(SHAPE);
        Machine::over(cpu, Box::new(move |input| nic.cycle(input)))
    }

    /// A machine with this interface.
    pub fn over(cpu: u8, nic: Cycle) -> Machine {
        let mut machine = Machine {
            nic,
            cpu,
            memory: (0..0x1_0000).map(|at: usize| (at / 7 + usize::from(cpu)) as u8).collect(),
            leaves: VecDeque::new(),
            comes: Vec::new(),
            has_room: true,
            values: Vec::new(),
            read: [0; 2],
            network: VecDeque::new(),
            credits: [0; CLASSES],
        };
        machine.open();
        machine
    }

    /// What a driver does before anything is sent: window, rings and list over zeroed memory, and
    /// the key last.
    fn open(&mut self) {
        self.memory[SENT as usize..DESCRIPTOR as usize].fill(0);
        self.memory[LIST as usize..][..8].copy_from_slice(&SLOT.to_le_bytes());
        let ring = |ring, address| RegisterRepr::Ring {
            ring,
            base: address / EVENT_BYTES as u64,
            entries: ENTRIES,
        };
        for says in [
            RegisterRepr::Window { function: FUNCTION, base: 0, pages: PAGES },
            ring(2 * PAIR, SENT),
            ring(2 * PAIR + 1, CAME),
            RegisterRepr::List { pair: PAIR, page: (LIST >> 12) as u32, entries: 4 },
            RegisterRepr::ListReport { pair: PAIR, count: 1 },
            RegisterRepr::Key { pair: PAIR, key: Some(KEY) },
        ] {
            let (place, word) = says.emit().expect("it fits");
            self.store(place, word);
        }
    }

    /// The processor stores a word, or reads a DW, which has no data.
    fn request(&mut self, place: u16, data: &[u8]) {
        let dwords = (data.len() / 4).max(1) as u16;
        let request = Request {
            is_write: !data.is_empty(),
            is_poisoned: false,
            class: 0,
            attributes: 0,
            requester: 0,
            tag: 0,
            address: BASE << 16 | u64::from(place),
            dwords,
            first: 15,
            last: if dwords == 1 { 0 } else { 15 },
        };
        self.leaves.push_back(tlp(Header::Request(request), data));
    }

    fn store(&mut self, place: u16, word: u64) {
        self.request(place, &word.to_le_bytes());
    }

    pub fn ring(&mut self, function: u8, word: u64) {
        self.store(u16::from(function) << PAGE_SHIFT, word);
    }

    /// Puts a descriptor into memory; the doorbell for it.
    pub fn describe(&mut self, magic: u8, work: Work<'_>) -> u64 {
        let repr = DescriptorRepr {
            destination: Endpoint::new(1 - self.cpu, FUNCTION, PAIR % 4).expect("it exists"),
            queue_pair: PAIR % 4,
            traffic_class: 0,
            magic,
            wants_event: true,
            work,
            tail: Tail::new(b"tail").expect("it is short"),
        };
        let length = repr.buffer_len();
        let place = &mut self.memory[DESCRIPTOR as usize..][..length];
        repr.emit(place).expect("it is right");
        DoorbellRepr { address: DESCRIPTOR, length: length as u16 }.emit().expect("it is right")
    }

    /// The next record of a ring, which must be there: 0 is the ring of what was sent. It is
    /// reported as consumed.
    #[track_caller]
    pub fn event(&mut self, ring: usize) -> EventRepr {
        let count = self.read[ring];
        let place = [SENT, CAME][ring] + count % u64::from(ENTRIES) * EVENT_BYTES as u64;
        let record = &self.memory[place as usize..][..EVENT_BYTES];
        let event = EventRepr::parse(record).expect("it is right");
        assert_eq!(event.phase, phase(count, NonZeroU64::new(ENTRIES.into()).expect("four")));
        self.read[ring] += 1;
        let (ring, count) = (2 * PAIR + ring as u8, (count + 1) as u16);
        let (place, word) = RegisterRepr::RingReport { ring, count }.emit().expect("it fits");
        self.store(place, word);
        event
    }

    /// A TLP comes from the interface.
    fn arrive(&mut self, bytes: &[u8]) {
        let header = Header::parse(bytes).expect("the host understands each TLP");
        let payload = &bytes[header.buffer_len()..];
        let request = match header {
            Header::Completion(answer) => {
                assert_eq!((answer.status, answer.completer), (SUCCESS, DEVICE << 3));
                self.values.push(u32::from_le_bytes(payload.try_into().expect("a DW")));
                return;
            }
            Header::Request(request) => request,
        };
        assert_eq!(request.requester, DEVICE << 3 | u16::from(FUNCTION));
        let span = DwordSpan {
            address: request.address,
            length_dw: request.dwords,
            first_enables: request.first,
            last_enables: request.last,
        };
        let bytes = span.to_bytes().expect("it is one run of bytes");
        if request.is_write {
            let place = bytes.address() as usize..bytes.address() as usize + bytes.len();
            self.memory[place].copy_from_slice(&payload[bytes.lead()..][..bytes.len()]);
            return;
        }
        let first = request.address as usize;
        let data = self.memory[first..first + 4 * usize::from(request.dwords)].to_vec();
        let says = Completion {
            is_poisoned: false,
            class: 0,
            attributes: 0,
            completer: 0,
            status: SUCCESS,
            byte_count: bytes.len() as u16,
            requester: request.requester,
            tag: request.tag,
            lower: (bytes.address() % 128) as u8,
            dwords: request.dwords,
        };
        self.leaves.push_back(tlp(Header::Completion(says), &data));
    }

    /// One cycle; the beat for the network, and free places for what comes from there.
    fn cycle(&mut self) -> (Option<In>, [bool; CLASSES]) {
        let mut input = In {
            cpu: self.cpu,
            cpus: 2,
            device: DEVICE,
            base: BASE,
            read_credit: self.has_room,
            tx_ready: true,
            to_ready: true,
            to_credit: self.credits.map(|credits| credits > 0),
            ..self.network.front().copied().unwrap_or_default()
        };
        self.credits = self.credits.map(|credits| credits.saturating_sub(1));
        let mut count = 0;
        if let Some(bytes) = self.leaves.front() {
            count = bytes.len().min(LANES);
            let mut beat = [0; LANES];
            beat[..count].copy_from_slice(&bytes[..count]);
            input.rx_valid = true;
            input.rx_last = count == bytes.len();
            input.rx_empty = ((LANES - count) / 4) as u8;
            input.rx_data = Beat { bytes: beat, k: 0 }.words();
        }
        let out = (self.nic)(input);
        if input.rx_valid && out.rx_ready {
            self.leaves[0].drain(..count);
            self.leaves.retain(|bytes| !bytes.is_empty());
        }
        if out.tx_valid {
            let count = LANES - 4 * usize::from(out.tx_empty);
            self.comes.extend_from_slice(&bytes_of(out.tx_data)[..count]);
            if out.tx_last {
                let bytes = std::mem::take(&mut self.comes);
                self.arrive(&bytes);
            }
        }
        if input.from_valid && out.from_ready[usize::from(input.from_class)] {
            self.network.pop_front();
        }
        let goes = out.to_valid.then_some(In {
            from_valid: true,
            from_class: out.to_class,
            from_last: out.to_last,
            from_to: out.to_to,
            from_data: out.to_data,
            ..In::default()
        });
        (goes, out.from_credit)
    }
}

/// Lets all that was begun come to its end.
pub fn run(machines: &mut [Machine; 2]) {
    for _ in 0..1_000 {
        for at in [0, 1] {
            let (goes, free) = machines[at].cycle();
            let other = &mut machines[1 - at];
            other.network.extend(goes);
            for (credits, free) in other.credits.iter_mut().zip(free) {
                *credits += u64::from(free);
            }
        }
    }
}

/// All counts of a machine.
pub fn counts(machines: &mut [Machine; 2], at: usize) -> Vec<u32> {
    for number in 0..COUNTS.len() as u16 {
        machines[at].request((PAGE << PAGE_SHIFT) + 4 * number, &[]);
    }
    run(machines);
    std::mem::take(&mut machines[at].values)
}

/// Source and destination of 200 bytes.
const FROM: &[Entry] = &[Entry { address: SOURCE, length: 200 }];
const TO: &[Entry] = &[Entry { address: TARGET, length: 200 }];

pub fn chain<'a>(sources: &'a [Entry], destinations: &'a [Entry]) -> Chain<'a> {
    Chain { sources: sources.into(), destinations: destinations.into() }
}

/// A PUT, a NAP and a GET, as the README of the gates tells a programmer to do them: by stores
/// into the window, and by what is in memory.
#[test]
fn a_put_a_nap_and_a_get_by_stores_and_memory() {
    let mut machines = [0, 1].map(Machine::new);
    run(&mut machines);
    let bytes = |machine: &Machine, at: u64| machine.memory[at as usize..][..200].to_vec();
    let source = bytes(&machines[0], SOURCE);

    let word = machines[0].describe(KEY, Work::Put(chain(FROM, TO)));
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    let sent = machines[0].event(0);
    assert_eq!((sent.status, sent.address), (Status::Success, DESCRIPTOR));
    let came = machines[1].event(1);
    assert_eq!((came.primitive, came.tail.as_bytes()), (Primitive::Put, &b"tail"[..]));
    assert_eq!(bytes(&machines[1], TARGET), source);

    let word = machines[0].describe(KEY, Work::NapImmediate(b"in a slot"));
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    assert_eq!(machines[0].event(0).status, Status::Success);
    let came = machines[1].event(1);
    assert_eq!((came.primitive, came.address, came.length), (Primitive::Nap, SLOT, 9));
    assert_eq!(machines[1].memory[SLOT as usize..][..9], b"in a slot"[..]);

    let far = bytes(&machines[1], SOURCE);
    let get = Work::Get { chain: chain(FROM, TO), return_magic: KEY };
    let word = machines[0].describe(KEY, get);
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    assert_eq!(machines[0].event(0).status, Status::Success);
    assert_eq!(machines[0].event(1).primitive, Primitive::Put);
    assert_eq!(bytes(&machines[0], TARGET), far);
    for at in [0, 1] {
        assert_eq!(counts(&mut machines, at), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

/// Each count moves by what it is of, and by nothing else.
#[test]
fn counts_say_what_was_dropped() {
    let mut machines = [0, 1].map(Machine::new);
    run(&mut machines);
    // A wrong key, and a target outside of the window, at the other machine.
    let word = machines[0].describe(KEY + 1, Work::Put(chain(FROM, TO)));
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    let outside = [Entry { address: 0x1_0000, length: 200 }];
    let word = machines[0].describe(KEY, Work::Put(chain(FROM, &outside)));
    (0..2).for_each(|_| machines[0].ring(FUNCTION, word));
    run(&mut machines);
    let [packets, targets] = [6, 7].map(|count| counts(&mut machines, 1)[count]);
    assert_eq!((packets, targets), (2, 4), "two packets of each PUT");
    for _ in 0..3 {
        assert_eq!(machines[0].event(0).status, Status::Success, "nobody tells the sender");
    }
    run(&mut machines);

    // Here: a store into no register, two refusals, three doorbells of a wrong form, four events of
    // a closed ring, and five TLPs that are none of the interface's.
    let machine = &mut machines[0];
    machine.store(0x8f00, 0);
    for ring in [62, 63] {
        let (place, word) = RegisterRepr::RingReport { ring, count: 1 }.emit().expect("it fits");
        machine.store(place, word);
    }
    (0..3).for_each(|_| machine.request(0x3000, &[1; 4]));
    (0..4).for_each(|_| machine.ring(3, word));
    let message = [0x34, 0, 0, 0, 0, 0, 0, 0x7e, 0, 0, 0, 0, 0, 0, 0, 0];
    (0..5).for_each(|_| machine.leaves.push_back(message.to_vec()));
    run(&mut machines);
    assert_eq!(counts(&mut machines, 0), [1, 1, 2, 3, 0, 4, 0, 0, 5, 0]);

    // Without room for reads four doorbells are being fetched, four wait, and others are dropped.
    machines[0].has_room = false;
    (0..20).for_each(|_| machines[0].ring(FUNCTION, word));
    run(&mut machines);
    assert_eq!(counts(&mut machines, 0)[4], 12);
}
