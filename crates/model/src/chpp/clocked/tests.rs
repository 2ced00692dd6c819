use super::single::single;
use super::*;
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single as event_driven;
use crate::chpp::journal::Stage;
use crate::cycle::nic_core::Shape;
use bellwire_wire::header::HeaderRepr;

mod beside;
mod quad;

/// Two nodes with blocks of the sizes that the gates have.
fn machine() -> Machine<ChppNic> {
    let blocks = [(); 2].map(|()| ChppNic::new(Shape::PROTOTYPE));
    Machine::new(&Config::prototype(), 1, blocks.into(), Shape::PROTOTYPE.packets)
}

/// Each kind of operation arrives, in about the time that the event-driven machine needs. The two
/// have nothing in common but hosts, wires and formats.
#[test]
fn operations_take_about_as_long_as_in_the_event_driven_machine() {
    let mut machine = machine();
    for kind in Kind::ALL {
        for bytes in [1, 64, 256, 1024, 2048, 65_536] {
            if kind.is_nap() && bytes > 2048 {
                continue;
            }
            let here = single(&mut machine, kind, bytes).unwrap().total.as_ns();
            let there = event_driven::single(&Config::prototype(), kind, bytes).unwrap();
            let ratio = here / there.latency.as_ns();
            assert!((0.85..1.15).contains(&ratio), "{} of {bytes}: {ratio}", kind.name());
        }
    }
}

/// The stages of an operation are those that it goes through, one behind the other, and their times
/// add up.
#[test]
fn stages_tell_where_time_goes() {
    use Stage::*;
    let mut machine = machine();
    let begins = [Processor, DoorbellWrite, Doorbell, Arbiter, DescriptorRead, DescriptorMemory];
    let reads = [DataRead, DataMemory];
    let ends = [DataReorder, Packer, Crossbar, Dispatch, Upload, DataWrite, EventWrite];
    for kind in Kind::ALL {
        let found = single(&mut machine, kind, 128).unwrap();
        let mut expected = begins.to_vec();
        expected.push(DescriptorExtract);
        expected.extend((kind == Kind::Get).then_some(GetTrip));
        expected.extend(reads.iter().filter(|_| kind != Kind::NapImmediate));
        expected.extend(ends);
        let stages: Vec<Stage> = found.intervals.iter().map(|interval| interval.stage).collect();
        assert_eq!(stages, expected, "{}", kind.name());
        assert_eq!(found.accounted(), found.total);
        // Wires, memory and the processor take what the configuration says, as there.
        assert_eq!(found.time_in(Processor), Config::prototype().host.cpu_start);
        let there = event_driven::single(&Config::prototype(), kind, 128).unwrap().explanation;
        for stage in [DoorbellWrite, DescriptorMemory, DataMemory] {
            let [here, there] = [&found, &there].map(|it| it.time_in(stage).as_ns());
            assert!(here >= 0.85 * there && here <= 1.15 * there, "{stage:?}: {here}, {there}");
        }
    }
}

/// A clock that never stands changes nothing but the count of cycles.
#[test]
fn a_standing_clock_changes_nothing() {
    let [stands, goes] = [true, false].map(|stands| {
        let mut machine = machine();
        machine.stands = stands;
        let times = [8, 300].map(|bytes| {
            let span = single(&mut machine, Kind::Put, bytes).unwrap().total;
            // Software does nothing for a while.
            let until = machine.now() + Span::from_ns(20_000);
            while machine.now() < until {
                machine.step(until);
            }
            (span, machine.now())
        });
        (times, machine.trace_hash(), machine.cycles())
    });
    assert_eq!((stands.0, stands.1), (goes.0, goes.1));
    assert!(stands.2 < goes.2, "{} and {} cycles", stands.2, goes.2);
}

/// Queue pairs of all functions have their rings, keys and slots: each sends to each of another
/// node, more than its ring and its list have entries.
#[test]
fn all_queue_pairs_are_open() {
    let mut machine = machine();
    let mut came = 0;
    let rounds = 70;
    for pair in 0..32 {
        let (function, queue_pair) = (pair / 4, pair % 4);
        let [from, to] = [0, 1].map(|node| Endpoint::new(node, function, queue_pair).unwrap());
        [from, to].into_iter().for_each(|end| machine.consumes(end, true));
        for round in 0..if pair % 8 == 0 { rounds } else { 2 } {
            let keys = (machine.key(from), machine.key(to));
            let data = [pair, round];
            let ends = (from, to);
            let posted = event_driven::described(
                Kind::NapImmediate,
                ends,
                (0, 0),
                (2, &data),
                keys,
                |descriptor| machine.post(0, function.into(), descriptor),
            );
            posted.unwrap();
            let until = machine.now() + Span::from_ns(1_000_000);
            while machine.is_pending() && machine.step(until) {}
            while let Some(told) = machine.next_told() {
                if told.ring == RingKind::Receive {
                    assert_eq!(
                        (told.function, told.queue_pair),
                        (function.into(), queue_pair.into())
                    );
                    assert_eq!(machine.memory(told.event.address, 2).unwrap(), data);
                    came += 1;
                }
            }
        }
    }
    assert_eq!(came, 4 * usize::from(rounds) + 28 * 2);
    assert_eq!(machine.fault(), None);
}

/// What is wrong with an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// TLPs have a format that is none.
    Format,
    /// Reads and writes are of another device.
    Device,
    /// Reads and writes are above all memory.
    Address,
    /// Packets are for a node that is not there.
    Destination,
    /// Events have bits where nothing is.
    Event,
}

/// An interface with something wrong, once it has been set up.
struct Broken {
    blocks: ChppNic,
    wrong: Wrong,
    bells: u64,
    /// Beats of the TLP, and of the packet, that have left.
    tlp: usize,
    packet: usize,
}

impl Interface for Broken {
    fn cycle(&mut self, input: In) -> Out {
        let mut out = self.blocks.cycle(input);
        self.bells += u64::from(self.taps().bell);
        let (first, wrong) = (self.tlp == 0, self.wrong);
        if out.tx_valid && self.bells > 0 {
            let mut bytes = out.tx_data.map(u64::to_le_bytes);
            let bytes = bytes.as_flattened_mut();
            match wrong {
                Wrong::Format if first => bytes[0] |= 0x80,
                Wrong::Device if first => bytes[4] ^= 1,
                // Addresses below 4 GiB have a header of 3 DW, and those of node 1 have one of 4.
                Wrong::Address if first && bytes[0] & 0x20 == 0 => bytes[8] |= 0x80,
                // A header of 12 bytes, and a record whose highest bits come last.
                Wrong::Event if out.tx_last && self.tlp == 2 => bytes[11] |= 0x7c,
                _ => {}
            }
            out.tx_data =
                [0, 8].map(|at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        }
        if out.to_valid && self.packet == 0 && wrong == Wrong::Destination {
            let bytes = out.to_data.map(u64::to_le_bytes);
            let mut header = HeaderRepr::parse(bytes.as_flattened()).unwrap();
            header.destination = Endpoint::new(9, 0, 0).unwrap();
            let mut bytes = [0; 16];
            header.emit(&mut bytes).unwrap();
            out.to_data =
                [0, 8].map(|at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        }
        if out.tx_valid && input.tx_ready {
            self.tlp = if out.tx_last { 0 } else { self.tlp + 1 };
        }
        if out.to_valid {
            self.packet = if out.to_last { 0 } else { self.packet + 1 };
        }
        out
    }

    fn taps(&self) -> Taps {
        self.blocks.taps()
    }
}

/// Hosts and switch say what is wrong with an interface, and an operation then fails.
#[test]
fn what_is_wrong_with_an_interface_is_told() {
    for (wrong, says) in [
        (Wrong::Nothing, ""),
        (Wrong::Format, "node 0 has refused"),
        (Wrong::Device, "node 0 has refused"),
        (Wrong::Address, "node 0 has refused"),
        (Wrong::Destination, "packets are for nobody"),
        (Wrong::Event, "cannot be read"),
    ] {
        let blocks = [wrong, Wrong::Nothing].map(|wrong| Broken {
            blocks: ChppNic::new(Shape::PROTOTYPE),
            wrong,
            bells: 0,
            tlp: 0,
            packet: 0,
        });
        let packets = Shape::PROTOTYPE.packets;
        let mut machine = Machine::new(&Config::prototype(), 1, blocks.into(), packets);
        let ended = single(&mut machine, Kind::Put, 40);
        assert_eq!(ended.is_ok(), wrong == Wrong::Nothing, "{says}: {ended:?}");
        let fault = machine.fault().unwrap_or_default();
        assert!(fault.contains(says) && fault.is_empty() == says.is_empty(), "{says}: {fault}");
    }
}

/// Software that does not poll finds its events later. A function has as many operations as its
/// FIFO has doorbells, and another one is not affected.
#[test]
fn events_wait_for_software() {
    let mut machine = machine();
    let (from, to) = (event_driven::endpoint(0), event_driven::endpoint(1));
    let depth = Config::prototype().nic.doorbell_depth;
    for count in 0..depth {
        assert!(machine.has_place(0, 0), "{count}");
        let keys = (machine.key(from), machine.key(to));
        let posted = event_driven::described(
            Kind::NapImmediate,
            (from, to),
            (0, 0),
            (1, &[7]),
            keys,
            |descriptor| machine.post(0, 0, descriptor),
        );
        let started = posted.unwrap();
        assert_eq!(started, machine.now() + Config::prototype().host.cpu_start * count as u64);
    }
    assert!(!machine.has_place(0, 0) && machine.has_place(0, 1) && machine.has_place(1, 0));
    let until = machine.now() + Span::from_ns(1_000_000);
    while machine.is_pending() && machine.step(until) {}
    assert_eq!(machine.unread(from, RingKind::Send), depth);
    assert_eq!(machine.unread(to, RingKind::Receive), depth);
    assert_eq!(
        (machine.unread(from, RingKind::Receive), machine.unread(to, RingKind::Send)),
        (0, 0)
    );
    assert!(machine.next_told().is_none());
    machine.consumes(from, true);
    assert_eq!(std::iter::from_fn(|| machine.next_told()).count(), depth);
    assert!(machine.has_place(0, 0) && machine.unread(from, RingKind::Send) == 0);
    assert_eq!(machine.unread(to, RingKind::Receive), depth);
}

/// The hash of a run is that of another one that does the same, and differs from that of one that
/// does something else.
#[test]
fn equal_hashes_mean_equal_runs() {
    let hashes = [8, 8, 9].map(|bytes| {
        let mut machine = machine();
        let begins = machine.trace_hash();
        single(&mut machine, Kind::Put, bytes).unwrap();
        assert_ne!(machine.trace_hash(), begins);
        machine.trace_hash()
    });
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}

/// Time goes up to the limit of a step and no further, and a cycle at the limit belongs to it.
#[test]
fn a_step_ends_at_its_limit() {
    let mut machine = machine();
    let cycle = Config::prototype().nic.cycle();
    assert!(!machine.step(Time::ZERO + cycle * 2));
    assert_eq!((machine.now(), machine.cycles()), (Time::ZERO + cycle * 2, 3));
    assert!(!machine.step(Time::ZERO + cycle * 2 + Span::from_ps(1)));
    assert_eq!((machine.now().ps(), machine.cycles()), ((cycle * 2).ps() + 1, 3));
}
