//! Single operations of the modelled cHPP interface: bytes, primitives, stages.

use crate::support::put;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, fill, pattern, post, post_free, single};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::journal::Stage;
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::{Config, Machine};
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Entry;
use bellwire_wire::event::Status;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

/// Records every event, and for a NAP the bytes in its slot.
#[derive(Default)]
struct Recorder {
    notices: Vec<Notice>,
    naps: Vec<Vec<u8>>,
}

impl Recorder {
    fn received(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(|notice| notice.ring == RingKind::Receive)
    }
}

impl Program for Recorder {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        let event = &notice.event;
        if notice.ring == RingKind::Receive && event.primitive == Primitive::Nap {
            assert!(event.address.is_multiple_of(2048), "slots are aligned");
            self.naps.push(api.memory(event.address, event.length as usize).unwrap().to_vec());
        }
        self.notices.push(*notice);
    }
}

fn machine() -> Machine {
    Machine::new(&Config::prototype(), 7).unwrap()
}

/// A PUT of one entry writes its bytes and no others, for any alignment of source and target and
/// any length.
// shows: C-05, C-08, C-22
#[test]
fn put_writes_its_bytes_and_no_others() {
    for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 2), (5, 127), (4095, 4093), (64, 4032)] {
        for bytes in [0u64, 1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 127, 128, 129, 255, 1000, 4096, 5000]
        {
            let mut machine = machine();
            let mut api = machine.api();
            let near = api.free_memory(0, 0) + from;
            let far = api.free_memory(1, 0) + 4096 + to;
            let source = api.memory_mut(near, bytes as usize).unwrap();
            fill(source);
            let expected = source.to_vec();
            api.memory_mut(far - 64, bytes as usize + 128).unwrap().fill(0xee);
            post(&mut api, Kind::Put, (endpoint(0), endpoint(1)), (near, far), bytes).unwrap();
            let mut recorder = Recorder::default();
            machine.run_to_end(&mut recorder).unwrap();
            let api = machine.api();
            let around = api.memory(far - 64, bytes as usize + 128).unwrap();
            assert!(around[..64].iter().all(|byte| *byte == 0xee), "before {to} {bytes}");
            assert!(
                around[64 + bytes as usize..].iter().all(|byte| *byte == 0xee),
                "after {to} {bytes}"
            );
            assert_eq!(&around[64..64 + bytes as usize], expected, "{from} {to} {bytes}");
            assert_eq!(recorder.received().count(), 1);
            machine.audit().unwrap();
        }
    }
}

/// The intervals of an operation are adjacent and add up exactly to its latency, for all primitives
/// and lengths. The stages of a PUT follow the order of the send and receive engines, and each
/// stage has counted its work.
// shows: C-34
#[test]
fn stages_sum_exactly_and_keep_their_order() {
    let config = Config::prototype();
    for kind in Kind::ALL {
        for bytes in [1, 64, 100, 256, 2048, 4096, 100_000] {
            if kind.is_nap() && bytes > 2048 {
                continue;
            }
            let run = single(&config, kind, bytes).unwrap();
            assert_eq!(run.explanation.accounted(), run.latency, "{kind:?} {bytes}");
            assert_eq!(run.explanation.total, run.latency);
        }
    }
    let put = single(&config, Kind::Put, 1).unwrap().explanation;
    let stages: Vec<Stage> = put.intervals.iter().map(|interval| interval.stage).collect();
    assert!(stages.is_sorted(), "{put}");
    for stage in [
        Stage::Doorbell,
        Stage::DescriptorMemory,
        Stage::DataMemory,
        Stage::Packer,
        Stage::EventWrite,
    ] {
        assert!(stages.contains(&stage), "{stage:?}");
    }

    let mut machine = machine();
    post_free(&mut machine.api(), Kind::Put, (endpoint(0), endpoint(1)), 1000).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    let (sender, receiver) = (&machine.nodes()[0], &machine.nodes()[1]);
    assert_eq!((sender.descriptors.counters.doorbells, sender.descriptors.counters.read), (1, 1));
    assert_eq!((sender.data.counters.reads, sender.data.counters.bytes), (8, 1000));
    assert_eq!((sender.packer.packets, sender.packer.bytes), (8, 1000));
    assert_eq!((receiver.receiver.counters.puts, receiver.receiver.counters.bytes), (8, 1000));
}

/// An immediate NAP arrives without any data read, an indirect one with at least one. Both land in
/// aligned slots, with one event each.
// shows: C-14, C-17, C-18, C-19
#[test]
fn naps_arrive_in_slots() {
    for (kind, reads) in [(Kind::NapImmediate, 0), (Kind::NapIndirect, 16)] {
        let mut machine = machine();
        let mut api = machine.api();
        let near = api.free_memory(0, 0);
        fill(api.memory_mut(near, 2049).unwrap());
        post_free(&mut api, kind, (endpoint(0), endpoint(1)), 2048).unwrap();
        assert!(post_free(&mut api, kind, (endpoint(0), endpoint(1)), 2049).is_err());
        let mut recorder = Recorder::default();
        machine.run_to_end(&mut recorder).unwrap();
        assert_eq!(recorder.naps, [(0..2048).map(pattern).collect::<Vec<u8>>()]);
        assert_eq!(machine.nodes()[0].port.reads_sent[1], reads);
        assert_eq!(recorder.received().count(), 1);
    }
}

/// A PUT without the flag gives the receiver no event, but its data arrives. A PUT with the flag
/// carries the software tail bit-exact.
// shows: C-10, C-14
#[test]
fn a_put_gives_an_event_only_if_asked() {
    for wants_event in [false, true] {
        let mut machine = machine();
        let mut api = machine.api();
        let (near, far) = (api.free_memory(0, 0), api.free_memory(1, 0));
        api.memory_mut(near, 300).unwrap().fill(0x5c);
        let sources = [Entry { address: near, length: 300 }];
        let destinations = [Entry { address: far, length: 300 }];
        let tail = Tail::from(0xfeed_beef_0bad_cafe);
        let to = (endpoint(1), api.key(endpoint(1)));
        let descriptor = DescriptorRepr { wants_event, tail, ..put(to, &sources, &destinations) };
        api.post(0, 0, &descriptor).unwrap();
        let mut recorder = Recorder::default();
        machine.run_to_end(&mut recorder).unwrap();
        assert!(machine.api().memory(far, 300).unwrap().iter().all(|byte| *byte == 0x5c));
        assert_eq!(recorder.received().count(), usize::from(wants_event));
        assert!(recorder.received().all(|notice| notice.event.tail == tail));
        // Without an event the operation is over when its last byte has landed, which is earlier.
        let operation = machine.operations()[0];
        let end = operation.finished.or(operation.landed).unwrap().0;
        assert_eq!(operation.latency(), Some(end - operation.started));
    }
}

/// A chain whose lists differ in number and size of entries is read as one descriptor and lands
/// correctly.
// shows: C-28, C-30
#[test]
fn chains_are_recut() {
    crate::limit::limited(|| {
        let mut machine = machine();
        let mut api = machine.api();
        let (near, far) = (api.free_memory(0, 0), api.free_memory(1, 0));
        let lengths = |base: u64, lengths: &[u64]| -> Vec<Entry> {
            lengths
                .iter()
                .enumerate()
                .map(|(at, &length)| Entry { address: base + at as u64 * 8192 + at as u64, length })
                .collect()
        };
        let sources = lengths(near, &[1000, 0, 3, 4096, 901]);
        let destinations = lengths(far, &[1, 2999, 3000]);
        let mut expected = Vec::new();
        for (at, entry) in sources.iter().enumerate() {
            let memory = api.memory_mut(entry.address, entry.length as usize).unwrap();
            (0..)
                .zip(&mut *memory)
                .for_each(|(byte_at, byte)| *byte = pattern(at * 10_000 + byte_at));
            expected.extend_from_slice(memory);
        }
        let to = (endpoint(1), api.key(endpoint(1)));
        let descriptor = DescriptorRepr { queue_pair: 2, ..put(to, &sources, &destinations) };
        api.post(0, 0, &descriptor).unwrap();
        machine.run_to_end(&mut ()).unwrap();
        let api = machine.api();
        let got: Vec<u8> = destinations
            .iter()
            .flat_map(|entry| api.memory(entry.address, entry.length as usize).unwrap().to_vec())
            .collect();
        assert_eq!(got, expected);
        let counters = machine.nodes()[0].descriptors.counters;
        assert_eq!((counters.doorbells, counters.read), (1, 1));
    });
}

/// Lists of unequal totals are refused with an event, and no memory changes.
// shows: C-29
#[test]
fn unequal_sums_are_refused() {
    crate::limit::limited(|| {
        let mut machine = machine();
        let mut api = machine.api();
        let (near, far) = (api.free_memory(0, 0), api.free_memory(1, 0));
        api.memory_mut(near, 200).unwrap().fill(0x11);
        let sources = [Entry { address: near, length: 128 }];
        let destinations = [Entry { address: far, length: 128 }];
        let descriptor = put((endpoint(1), api.key(endpoint(1))), &sources, &destinations);
        let mut bytes = vec![0; descriptor.buffer_len()];
        descriptor.emit(&mut bytes).unwrap();
        // The format refuses to write such a descriptor, so the test patches the source entry's
        // length.
        bytes[16 + 8] = 127;
        api.post_bytes(0, 0, Primitive::Put, 128, bytes);
        let mut recorder = Recorder::default();
        machine.run_to_end(&mut recorder).unwrap();
        assert_eq!(recorder.notices.len(), 1);
        assert_eq!(recorder.notices[0].event.status, Status::UnequalSums);
        assert!(machine.api().memory(far, 200).unwrap().iter().all(|byte| *byte == 0));
    });
}

/// A GET packet carries the descriptor as its payload, the far side answers with PUT packets, and
/// the data is right.
// shows: C-25
#[test]
fn a_get_comes_back_as_puts() {
    let mut machine = machine();
    let mut api = machine.api();
    let (near, far) = (api.free_memory(0, 0), api.free_memory(1, 0));
    fill(api.memory_mut(far, 1000).unwrap());
    post_free(&mut api, Kind::Get, (endpoint(0), endpoint(1)), 1000).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    let got = machine.api().memory(near, 1000).unwrap().to_vec();
    assert_eq!(got, (0..1000).map(pattern).collect::<Vec<u8>>());
    let nodes = machine.nodes();
    assert_eq!(
        (nodes[1].receiver.counters.gets, nodes[1].descriptors.counters.remote_gets),
        (1, 1)
    );
    assert_eq!((nodes[1].packer.packets, nodes[0].receiver.counters.puts), (8, 8));
    assert_eq!(nodes[0].data.counters.reads, 0);
    assert_eq!(nodes[0].descriptors.counters.gets, 1);
}

/// Invalid descriptors have one event and no other effect: random bytes, a missing node, odd
/// lengths. Packets of random bytes are counted and dropped.
#[test]
fn nonsense_is_refused() {
    let mut machine = machine();
    let mut api = machine.api();
    let near = api.free_memory(0, 0);
    let sources = [Entry { address: near, length: 16 }];
    let work = Work::NapIndirect((&sources[..]).into());
    let far = DescriptorRepr { work, ..put((Endpoint::new(9, 0, 0).unwrap(), 0), &[], &[]) };
    api.post(0, 0, &far).unwrap();
    let mut posted = 1;
    for length in [0, 1, 15, 16, 100, 4096, 5000] {
        let bytes = (0..length).map(|at| pattern(at + length)).collect();
        api.post_bytes(0, 0, Primitive::Nap, 0, bytes);
        posted += 1;
    }
    let mut recorder = Recorder::default();
    machine.run_to_end(&mut recorder).unwrap();
    let statuses: Vec<Status> = recorder.notices.iter().map(|notice| notice.event.status).collect();
    assert_eq!(statuses.len(), posted);
    assert_eq!(statuses[0], Status::Unreachable);
    assert!(statuses[1..].iter().all(|status| *status == Status::BadDescriptor), "{statuses:?}");
    let mut injected = 0;
    for length in [0, 1, 16, 40, 200] {
        let bytes: Vec<u8> = (0..length).map(|at| pattern(3 * at + length)).collect();
        injected += u64::from(machine.api().inject(0, 1, &bytes));
    }
    machine.run_to_end(&mut recorder).unwrap();
    assert_eq!(machine.nodes()[1].receiver.counters.unknown, injected);
}

/// The software of a long transfer: a NAP asks for a place, a NAP answers, and a PUT moves the
/// data. When the receiver has its event, it confirms with a NAP.
struct Rendezvous {
    bytes: u64,
    /// The events of each node, in order.
    seen: Vec<(usize, Primitive)>,
    /// The target's memory when the last NAP was read.
    at_the_end: Vec<u8>,
}

impl Rendezvous {
    fn nap(api: &mut HostApi<'_>, from: u8, to: u8, word: u64) {
        let (bytes, to) = (word.to_le_bytes(), (endpoint(to), api.key(endpoint(to))));
        let work = Work::NapImmediate(&bytes);
        let descriptor = DescriptorRepr { work, ..put(to, &[], &[]) };
        api.post(from.into(), 0, &descriptor).unwrap();
    }
}

impl Program for Rendezvous {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring != RingKind::Receive {
            return;
        }
        self.seen.push((notice.node, notice.event.primitive));
        let target = api.free_memory(1, 0) + 12345;
        let word = |api: &HostApi<'_>| {
            let bytes = api.memory(notice.event.address, 8).unwrap();
            u64::from_le_bytes(bytes.try_into().unwrap())
        };
        match self.seen.len() {
            // The receiver is asked for room and names a place.
            1 => {
                assert_eq!(word(api), self.bytes);
                Rendezvous::nap(api, 1, 0, target);
            }
            // The sender knows the place.
            2 => {
                let (near, far) = (api.free_memory(0, 0), word(api));
                post(api, Kind::Put, (endpoint(0), endpoint(1)), (near, far), self.bytes).unwrap();
            }
            // The receiver has all data.
            3 => Rendezvous::nap(api, 1, 0, self.bytes),
            _ => self.at_the_end = api.memory(target, self.bytes as usize).unwrap().to_vec(),
        }
    }
}

/// A long transfer takes two NAPs before it, one in each direction, and one after it. When the last
/// is read, all data of the PUT is in the receiver's memory.
// shows: C-23, C-24
#[test]
fn two_naps_agree_and_one_ends() {
    crate::limit::limited(|| {
        let mut machine = machine();
        let mut api = machine.api();
        let (near, bytes) = (api.free_memory(0, 0), 50_000);
        let source = api.memory_mut(near, bytes).unwrap();
        fill(source);
        let expected = source.to_vec();
        Rendezvous::nap(&mut api, 0, 1, bytes as u64);
        let mut program =
            Rendezvous { bytes: bytes as u64, seen: Vec::new(), at_the_end: Vec::new() };
        machine.run_to_end(&mut program).unwrap();
        let (nap, put) = (Primitive::Nap, Primitive::Put);
        assert_eq!(program.seen, [(1, nap), (0, nap), (1, put), (0, nap)]);
        assert_eq!(program.at_the_end, expected);
    });
}
