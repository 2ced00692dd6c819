//! Software of a cHPP host: what it stores into the window of its interface and when, and what the
//! machine tells of it. The times are computed from the prototype: a byte takes 250 ps on the
//! wires, a packet 166 ns more, and a store of 8 bytes has 32 on the wires.

use crate::chpp_records::read_capture;
use bellwire_model::chpp::config::Start;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post_free};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::record::frames::{capture, window_address};
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::engine::Standstill;
use bellwire_model::units::{Span, Time};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::packet::PacketRepr;

/// Stores of a host into the window of its interface: when the first byte leaves in picoseconds,
/// the address, and the bytes.
fn stores(machine: &Machine, node: u8) -> Vec<(u64, u64, Vec<u8>)> {
    let wire = format!("host {node} to interface");
    let frames = read_capture(&capture(machine)).unwrap().into_iter();
    let writes = frames.filter(|(name, _, _, frame)| *name == wire && frame[0] == 0x60);
    writes
        .map(|(_, _, time, frame)| {
            let address = u64::from_be_bytes(frame[8..16].try_into().unwrap());
            (time, address, frame[16..].to_vec())
        })
        .collect()
}

fn at_ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// Four NAPs use a quarter of 16 records and of 16 slots. Software then stores the counts, slots
/// first, each into the place of its queue pair. It lists the slots again in the order of use.
#[test]
fn counts_are_stored_a_quarter_at_a_time() {
    let mut config = Config::prototype();
    (config.host.ring_entries, config.host.slots) = (16, 16);
    (config.nic.slot_cache, config.nic.slot_batch) = (16, 8);
    let mut machine = Machine::new(&config, 1).unwrap();
    machine.capture_frames();
    let places = machine.nodes()[1].layouts[5].queue_pairs[2].clone();
    machine.api().memory_mut(places.slot_list, 8 * 32).unwrap().fill(0);
    let ends = (Endpoint::new(0, 3, 1).unwrap(), Endpoint::new(1, 5, 2).unwrap());
    let mut notices: Vec<Notice> = Vec::new();
    for _ in 0..9 {
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
        machine.run_to_end(&mut notices).unwrap();
    }
    let seen = |ring| notices.iter().filter(move |it| it.ring == ring).map(|it| it.time.ps());
    let (sent, came): (Vec<u64>, Vec<u64>) =
        (seen(RingKind::Send).collect(), seen(RingKind::Receive).collect());
    let count = |count: u64| count.to_le_bytes().to_vec();
    let place = |place| window_address(1, 5, place);
    assert_eq!(
        stores(&machine, 1),
        [
            (came[3], place(0x200 + 8 * 2), count(20)),
            (came[3] + 8_000, place(0x100 + 16 * 2 + 8), count(4)),
            (came[7], place(0x200 + 8 * 2), count(24)),
            (came[7] + 8_000, place(0x100 + 16 * 2 + 8), count(8)),
        ]
    );
    let mut others = stores(&machine, 0);
    others.retain(|(_, address, _)| *address != window_address(0, 3, 0));
    let place = window_address(0, 3, 0x100 + 16);
    assert_eq!(others, [(sent[3], place, count(4)), (sent[7], place, count(8))]);
    let listed = machine.api().memory(places.slot_list, 8 * 32).unwrap().to_vec();
    let listed: Vec<u64> =
        listed.chunks(8).map(|entry| u64::from_le_bytes(entry.try_into().unwrap())).collect();
    let slots = (0..9).map(|at| places.slots + 2048 * at);
    assert_eq!(listed, slots.chain([0; 23]).collect::<Vec<u64>>());
    machine.audit().unwrap();
}

/// A program that stops to poll one queue pair finds no event there, and all of them later. Others
/// go on, and the operations of the silent sender stay outstanding.
// shows: C-16
#[test]
fn a_program_that_does_not_poll_finds_its_events_later() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    let silent = (Endpoint::new(0, 3, 1).unwrap(), Endpoint::new(1, 5, 2).unwrap());
    machine.api().consumes(1, 5, 2, false);
    machine.api().consumes(0, 3, 1, false);
    let mut notices: Vec<Notice> = Vec::new();
    for function in 0..8 {
        for queue_pair in 0..4 {
            let to = Endpoint::new(1, function, queue_pair).unwrap();
            post_free(&mut machine.api(), Kind::NapImmediate, (endpoint(0), to), 16).unwrap();
        }
    }
    machine.run_to_end(&mut notices).unwrap();
    let came = |notices: &[Notice]| {
        let came = notices.iter().filter(|it| it.ring == RingKind::Receive);
        came.map(|it| (it.function, it.queue_pair)).collect::<Vec<_>>()
    };
    let expected: Vec<(usize, usize)> =
        (0..32).map(|at| (at / 4, at % 4)).filter(|it| *it != (5, 2)).collect();
    assert_eq!(came(&notices), expected);
    let unread = |machine: &Machine, node: usize, place: (usize, usize), ring| {
        machine.nodes()[node].host.unread(place.0, place.1, ring)
    };
    let receives: Vec<usize> =
        (0..32).map(|at| unread(&machine, 1, (at / 4, at % 4), RingKind::Receive)).collect();
    let mut left = vec![0; 32];
    left[5 * 4 + 2] = 1;
    assert_eq!((receives, notices.len()), (left, 63));

    for _ in 0..2 {
        post_free(&mut machine.api(), Kind::NapImmediate, silent, 16).unwrap();
    }
    // Nothing waits for anything, but two operations have no end for software yet.
    let Err(Standstill::Starved(waits)) = machine.run_to_end(&mut notices) else {
        panic!("two sends are not over");
    };
    assert_eq!(waits, [""; 0]);
    assert_eq!(machine.nodes()[0].host.outstanding(3), 2);
    assert_eq!(unread(&machine, 0, (3, 1), RingKind::Send), 2);
    assert_eq!(unread(&machine, 1, (5, 2), RingKind::Receive), 3);
    assert_eq!(machine.nodes()[0].host.queues().len(), 8);
    machine.api().consumes(1, 5, 2, true);
    machine.api().consumes(0, 3, 1, true);
    machine.run_to_end(&mut notices).unwrap();
    assert_eq!(came(&notices)[31..], [(5, 2); 3]);
    assert_eq!((notices.len(), machine.nodes()[0].host.outstanding(3)), (63 + 5, 0));
}

/// A function has places for two operations: the third and the fourth are held back, and start
/// when a send event is read.
#[test]
fn places_limit_what_is_outstanding() {
    let mut config = Config::prototype();
    config.nic.doorbell_depth = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    let ends = (Endpoint::new(0, 6, 0).unwrap(), endpoint(1));
    for posted in 0..4 {
        let host = &machine.nodes()[0].host;
        assert_eq!((host.has_place(6), host.outstanding(6)), (posted < 2, posted.min(2)));
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
    }
    let host = &machine.nodes()[0].host;
    assert_eq!((host.held_back, host.waiting(), host.has_place(5)), (2, 2, true));
    let mut notices: Vec<Notice> = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    let sent: Vec<Time> =
        notices.iter().filter(|it| it.ring == RingKind::Send).map(|it| it.time).collect();
    let started: Vec<Time> = machine.operations().iter().map(|it| it.started).collect();
    assert_eq!(
        started,
        [Time::ZERO, at_ns(200), sent[0], sent[1].max(sent[0] + Span::from_ns(200))]
    );
    let host = &machine.nodes()[0].host;
    assert_eq!((host.has_place(6), host.most_outstanding, host.held_back), (true, 2, 2));
    assert_eq!(host.busy(), Span::from_ns(4 * 200));
}

/// Function f has processor f modulo 2. So functions 1 and 3 wait for each other, and 2 does not.
#[test]
fn processors_serve_functions_by_number() {
    let mut config = Config::prototype();
    config.host.processors = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    for function in [1, 2, 3] {
        let ends = (Endpoint::new(0, function, 0).unwrap(), endpoint(1));
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap();
    let started: Vec<Time> = machine.operations().iter().map(|it| it.started).collect();
    assert_eq!(started, [Time::ZERO, Time::ZERO, at_ns(200)]);
}

/// Three descriptors of 32 B, started at once with credits. The first waits for the answer to its
/// request: 24 B up and 28 B down take 13 ns and twice 166. The second finds the processor asking,
/// and waits as long. The third comes later, and all three are stored in one burst each.
#[test]
fn a_processor_that_asks_for_credits_waits_for_them() {
    crate::limit::limited(|| {
        let mut config = Config::prototype();
        config.nic.submission = Start::DamqPd;
        let mut machine = Machine::new(&config, 1).unwrap();
        machine.capture_frames();
        let ends = (Endpoint::new(0, 3, 1).unwrap(), endpoint(1));
        for _ in 0..3 {
            post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
        }
        machine.run_to_end(&mut ()).unwrap();
        let stored: Vec<(u64, u64, usize)> = stores(&machine, 0)
            .into_iter()
            .map(|(time, address, bytes)| (time, address, bytes.len()))
            .collect();
        let place = window_address(0, 3, 0x400);
        // A burst of 32 B has 56 on the wires.
        assert_eq!(stored, [(545_000, place, 32), (559_000, place, 32), (600_000, place, 32)]);
        let submission = &machine.nodes()[0].host.submission;
        assert_eq!((submission.counts, submission.requests), ([3, 0], 1));
        assert_eq!(machine.nodes()[0].port.reads_sent[0], 0, "no descriptor is read");
        let started: Vec<Time> = machine.operations().iter().map(|it| it.started).collect();
        assert_eq!(started, [0, 200, 400].map(at_ns));
    });
}

/// A descriptor of 160 B is stored in lines of 64 B, which take 22 ns each on the wires. At 236 ns
/// an acknowledgement and an update fall due, of 2 ns each, and go before the third. A descriptor
/// that finds too few free words in the ring of its function rings a doorbell.
#[test]
fn long_descriptors_are_stored_in_lines() {
    let mut config = Config::prototype();
    (config.nic.submission, config.nic.descriptor_words) = (Start::Ring, 64);
    let mut machine = Machine::new(&config, 1).unwrap();
    machine.capture_frames();
    let ends = (Endpoint::new(0, 3, 1).unwrap(), endpoint(1));
    for _ in 0..2 {
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 144).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap();
    let stored: Vec<(u64, u64, usize)> = stores(&machine, 0)
        .into_iter()
        .map(|(time, address, bytes)| (time, address, bytes.len()))
        .collect();
    let place = |place| window_address(0, 3, place);
    assert_eq!(
        stored,
        [
            (200_000, place(0x400), 64),
            (222_000, place(0x440), 64),
            (248_000, place(0x480), 32),
            (400_000, place(0), 8),
        ]
    );
    let node = &machine.nodes()[0];
    assert_eq!((node.host.submission.counts, node.port.reads_sent[0]), ([1, 1], 2));
}

/// A descriptor of 48 B under the lock: 20 ns if the processor had it last, 100 if another had,
/// and 4 for each of 6 words. The words go one behind the other to their places.
#[test]
fn a_lock_costs_more_if_another_had_it() {
    let mut config = Config::prototype();
    (config.nic.submission, config.host.processors) = (Start::Descriptor, 2);
    let mut machine = Machine::new(&config, 1).unwrap();
    machine.capture_frames();
    // Functions 0 and 1 have a processor each.
    for function in [0, 1, 0] {
        let ends = (Endpoint::new(0, function, 0).unwrap(), endpoint(1));
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 32).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap();
    // Both are prepared at 200 ns. Processor 0 has the lock until 244, processor 1 until 368.
    // Processor 0 then prepares its next operation until 444, and has the lock until 568.
    let mut expected = Vec::new();
    for (ns, function) in [(244, 0), (368, 1), (568, 0)] {
        for word in 0..6 {
            let place = window_address(0, function, 0x400 + 8 * word);
            expected.push((ns * 1_000 + 8_000 * word, place));
        }
    }
    let stored = stores(&machine, 0).into_iter();
    let stored: Vec<(u64, u64)> = stored.map(|(time, address, _)| (time, address)).collect();
    assert_eq!(stored, expected);
    let started: Vec<Time> = machine.operations().iter().map(|it| it.started).collect();
    assert_eq!(started, [0, 0, 244].map(at_ns));
    let host = &machine.nodes()[0].host;
    assert_eq!(host.lock.waited(), Span::from_ns(44));
}

/// What [`Steps`] saw, and when.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Woken(u32),
    Accessed(u32),
    Notified(RingKind),
}

/// A program that notes what it is told, and when.
#[derive(Default)]
struct Steps {
    seen: Vec<(Time, Seen)>,
}

impl Program for Steps {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        self.seen.push((api.now(), Seen::Notified(notice.ring)));
    }

    fn accessed(&mut self, access: u32, api: &mut HostApi<'_>) {
        self.seen.push((api.now(), Seen::Accessed(access)));
    }

    fn woken(&mut self, token: u32, api: &mut HostApi<'_>) {
        self.seen.push((api.now(), Seen::Woken(token)));
        if token == 7 {
            post_free(api, Kind::NapImmediate, (endpoint(0), endpoint(1)), 16).unwrap();
            // Such a program does nothing with wakes and accesses.
            ().woken(7, api);
        }
    }
}

/// Event by event: a program is woken at its time, posts, and is told of both ends. Then nothing
/// is left, and the time moves to the limit. An operation is known until it is forgotten.
#[test]
fn a_program_is_told_event_by_event() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    machine.forget_operations();
    machine.api().wake(at_ns(50), 7);
    let mut program = Steps::default();
    assert!(!machine.step_program(&mut program, at_ns(49)));
    assert_eq!((machine.now(), program.seen.len()), (at_ns(49), 0));
    assert!(machine.step_program(&mut program, at_ns(50)));
    assert_eq!(program.seen, [(at_ns(50), Seen::Woken(7))]);
    let operation = *machine.operation(0).unwrap();
    assert_eq!((operation.posted, operation.bytes), (at_ns(50), 16));
    assert!(machine.operation(1).is_none());
    while machine.step_program(&mut program, at_ns(100_000)) {}
    assert_eq!(machine.now(), at_ns(100_000));
    let ends: Vec<&Seen> = program.seen.iter().map(|(_, seen)| seen).collect();
    let notified = |ring| Seen::Notified(ring);
    assert_eq!(ends, [&Seen::Woken(7), &notified(RingKind::Send), &notified(RingKind::Receive)]);
    // Records go in batches of 64.
    for _ in 0..130 {
        let mut api = machine.api();
        post_free(&mut api, Kind::NapImmediate, (endpoint(0), endpoint(1)), 16).unwrap();
        machine.run_to_end(&mut program).unwrap();
    }
    assert!(machine.operation(0).is_none() && machine.operations().len() < 130);
    assert_eq!(machine.operation(130).unwrap().bytes, 16);
}

/// A call of the program's interface may raise notices at once, when nothing is scheduled.
#[test]
fn notices_of_a_call_are_passed_on() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    machine.api().consumes(1, 0, 0, false);
    post_free(&mut machine.api(), Kind::NapImmediate, (endpoint(0), endpoint(1)), 16).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    machine.api().consumes(1, 0, 0, true);
    let mut notices: Vec<Notice> = Vec::new();
    machine.tell(&mut notices);
    assert_eq!(notices.len(), 1);
    machine.tell(&mut notices);
    assert_eq!(notices.len(), 1, "once");
}

/// GETs in both directions without a channel of their own are a deadlock as soon as no event is
/// left, and not before. A machine whose packets wait for software is none.
// shows: C-26
#[test]
fn a_deadlock_is_told_when_nothing_moves() {
    let mut config = Config::prototype();
    (config.crossbar.ports, config.crossbar.channels) = (2, 1);
    (config.crossbar.channel_packets, config.crossbar.get_channel) = (4, false);
    let mut machine = Machine::new(&config, 1).unwrap();
    for _ in 0..32 {
        for node in [0, 1] {
            let ends = (endpoint(node), endpoint(1 - node));
            post_free(&mut machine.api(), Kind::Get, ends, 4096).unwrap();
        }
    }
    while machine.step_program(&mut (), Time::NEVER) {
        assert_eq!(machine.deadlock().is_some(), machine.pending() == 0);
    }
    assert!(machine.deadlock().unwrap().to_string().contains("receive buffer"));

    let mut config = Config::prototype();
    config.host.ring_entries = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    assert!(machine.deadlock().is_none());
    machine.api().consumes(1, 0, 0, false);
    for _ in 0..8 {
        post_free(&mut machine.api(), Kind::NapImmediate, (endpoint(0), endpoint(1)), 16).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap_err();
    assert!(machine.deadlock().is_none());
}

/// From the doorbell until its send event is visible, the sending interface is not empty, but while
/// only the packer holds the last packet. The receiving one is not from the first beat until its
/// event is visible. A NAP of 16 B has two beats of 4 ns, and leaves 16 ns after it is packed. A
/// PUT of 64 B has five, and is packed 48 ns before its last. A GET has four, and its data returns.
#[test]
fn an_interface_knows_whether_it_is_empty() {
    for (kind, bytes, changes) in [
        (
            Kind::NapImmediate,
            16,
            [vec![200_000, 980_000, 1_000_000, 1_182_500], vec![996_000, 1_242_500]],
        ),
        (
            Kind::Put,
            64,
            [vec![200_000, 1_548_000, 1_596_000, 1_778_500], vec![1_580_000, 1_850_500]],
        ),
        (
            Kind::Get,
            64,
            [
                vec![200_000, 996_000, 1_024_000, 1_206_500, 1_672_000, 1_942_500],
                vec![1_012_000, 1_640_000],
            ],
        ),
    ] {
        let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
        post_free(&mut machine.api(), kind, (endpoint(0), endpoint(1)), bytes).unwrap();
        let mut notices: Vec<Notice> = Vec::new();
        let (mut seen, mut was) = ([vec![], vec![]], [true; 2]);
        while machine.step_program(&mut notices, at_ns(100_000)) {
            for node in [0, 1] {
                let is = machine.nodes()[node].is_empty();
                if is != was[node] {
                    seen[node].push(machine.now().ps());
                    was[node] = is;
                }
            }
        }
        assert_eq!(seen, changes, "{kind:?}");
        assert!(machine.nodes().iter().all(|node| node.is_idle()));
        let sent = machine.operations()[0].sent.unwrap().ps();
        assert_eq!((sent, notices[0].time.ps()), (seen[0][2], seen[0][3]), "{kind:?}");
        let finished = machine.operations()[0].finished.unwrap().0.ps();
        assert_eq!(finished, *seen[usize::from(kind != Kind::Get)].last().unwrap(), "{kind:?}");
    }
}

/// How long one NAP of 16 B keeps each resource busy, as a share of all the time: the processor for
/// 200 ns, of which there are two; the wires from the host for 32, 52 and 36 B; the internal bus
/// for 3, 4 and 3 cycles; tags for reads of 520 and 512 ns; the wires to the host for two requests
/// and an event, and at node 1 for the data and an event; the crossbar for 3 cycles. All queues on
/// the way are told.
#[test]
fn shares_of_resources_are_told() {
    let mut config = Config::prototype();
    config.host.processors = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    post_free(&mut machine.api(), Kind::NapIndirect, (endpoint(0), endpoint(1)), 16).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    let all = machine.now().ps() as f64;
    let busy: Vec<(String, u64)> = machine
        .busiest()
        .into_iter()
        .map(|busy| (busy.resource, (busy.share * all / 10.0).round() as u64 * 10))
        .filter(|(_, ps)| *ps > 0)
        .collect();
    let expected = [
        ("processors of node 0", 100_000),
        ("internal bus of node 0", 40_000),
        ("tags of node 0", 32_250),
        ("wires from the host of node 0", 30_000),
        ("wires to the host of node 0", 26_000),
        ("wires to the host of node 1", 24_000),
        ("crossbar output of node 1", 12_000),
    ];
    assert_eq!(busy, expected.map(|(name, ps)| (name.to_owned(), ps)));
    let mut used: Vec<(String, u64)> =
        machine.queues().into_iter().map(|queue| (queue.queue, queue.came)).collect();
    // The slots of all queue pairs are listed at the beginning.
    let slots = |(name, _): &(String, u64)| name.starts_with("free NAP slots");
    assert_eq!(used.iter().filter(|it| slots(it)).count(), 4 * 8 * 4);
    assert!(used.contains(&("free NAP slots on the chip of queue pair 3.7.2".to_owned(), 32)));
    used.retain(|it| !slots(it));
    used.sort();
    let expected = [
        ("commands of node 0", 1),
        ("data reads in order of node 0", 1),
        ("descriptors being read of node 0", 1),
        ("dispatch of node 1", 1),
        ("doorbell FIFO of function 0.0", 1),
        ("input 0 channel 1 of crossbar 0", 1),
        ("operations of function 0.0 before software", 1),
        ("packer, last packets of node 0", 1),
        ("receive buffer of node 1", 1),
        ("receive ring of queue pair 1.0.0", 1),
        ("send events without a record of node 0", 1),
        ("send ring of queue pair 0.0.0", 1),
        ("tags of node 0", 2),
        ("what comes over the internal bus of node 0", 2),
        ("writes to memory of node 0", 1),
        ("writes to memory of node 1", 2),
    ];
    assert_eq!(used, expected.map(|(name, came)| (name.to_owned(), came)));
}

/// What the blocks count of one PUT of 1000 B: 8 reads of 128 B at most, a completion for each, as
/// many packets of 128 B at most, and one event. A packet names the function that sent it.
#[test]
fn blocks_count_what_passes() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    machine.capture_frames();
    let ends = (Endpoint::new(2, 3, 0).unwrap(), Endpoint::new(1, 5, 2).unwrap());
    post_free(&mut machine.api(), Kind::Put, ends, 1000).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    let (sender, receiver) = (&machine.nodes()[2], &machine.nodes()[1]);
    let data = sender.data.counters;
    assert_eq!((data.reads, data.completions, data.early, data.bytes), (8, 8, 0, 1000));
    assert_eq!((sender.data.in_use, sender.port.reads_sent), (0, [1, 8, 0]));
    assert_eq!((sender.packer.packets, sender.packer.bytes), (8, 1000));
    let descriptors = sender.descriptors.counters;
    assert_eq!((descriptors.doorbells, descriptors.extracted, descriptors.refused), (1, 1, 0));
    let counters = receiver.receiver.counters;
    assert_eq!((counters.puts, counters.bytes, counters.events), (8, 1000, 1));
    assert_eq!((counters.naps, counters.gets, counters.refused, counters.unknown), (0, 0, 0, 0));
    assert_eq!(machine.operations()[0].landed_bytes, 1000);
    assert_eq!(machine.crossbar().crossed, [0, 8, 0, 0]);
    let frames = read_capture(&capture(&machine)).unwrap();
    let mut requesters: Vec<u16> = frames
        .iter()
        .filter(|(name, ..)| name == "interface 2 to controller")
        .map(|(.., frame)| PacketRepr::parse(frame).unwrap().header.requester_id)
        .collect();
    assert_eq!(requesters.len(), 8);
    requesters.dedup();
    assert_eq!(requesters, [0x0203]);
}

/// Slots are listed again and fetched again, each by its own queue pair: 40 NAPs pass through 16
/// slots of the last queue pair but one. Canary: the software of a ring with a record that is no
/// event counts it.
#[test]
fn slots_come_round() {
    let mut config = Config::prototype();
    (config.host.ring_entries, config.host.slots) = (16, 16);
    (config.nic.slot_cache, config.nic.slot_batch) = (16, 8);
    let mut machine = Machine::new(&config, 1).unwrap();
    let ends = (Endpoint::new(0, 3, 1).unwrap(), Endpoint::new(1, 5, 2).unwrap());
    let mut notices: Vec<Notice> = Vec::new();
    for _ in 0..40 {
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
        machine.run_to_end(&mut notices).unwrap();
    }
    let places = machine.nodes()[1].layouts[5].queue_pairs[2].clone();
    let came = notices.iter().filter(|it| it.ring == RingKind::Receive);
    let slots: Vec<u64> = came.map(|it| it.event.address).collect();
    let expected: Vec<u64> = (0..40).map(|at| places.slots + 2048 * (at % 16)).collect();
    assert_eq!(slots, expected);

    // 40 records fill two laps and a half. The next but one becomes a record of the present lap.
    let record = places.receive_ring + 32 * 9;
    machine.api().memory_mut(record, 32).unwrap().fill(0xff);
    post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
    machine.run_to_end(&mut notices).unwrap();
    assert_eq!(machine.nodes()[1].host.unreadable, 1);
}

/// What a port has under way: the read of the descriptor, besides its completion, and later the
/// write of the event. A doorbell waits elsewhere.
#[test]
fn a_port_counts_what_is_under_way() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    post_free(&mut machine.api(), Kind::NapImmediate, (endpoint(0), endpoint(1)), 16).unwrap();
    let mut seen = [vec![0], vec![0]];
    let mut uploads = Vec::new();
    while machine.step_program(&mut (), at_ns(100_000)) {
        for (node, seen) in seen.iter_mut().enumerate() {
            seen.push(machine.nodes()[node].port.outstanding());
            seen.dedup();
        }
        uploads.push(machine.nodes()[1].receiver.is_uploading());
        uploads.dedup();
    }
    assert_eq!(seen[0], [0, 1, 2, 0, 1, 0]);
    assert_eq!(uploads, [false, true, false]);
}

/// Send events wait while their ring is full, and the interface does not look for ever. Two records
/// are written, and three events wait.
#[test]
fn a_full_send_ring_holds_events_back() {
    crate::limit::limited(|| {
        let mut config = Config::prototype();
        config.host.ring_entries = 2;
        let mut machine = Machine::new(&config, 1).unwrap();
        machine.api().consumes(0, 0, 0, false);
        for _ in 0..5 {
            let ends = (endpoint(0), endpoint(1));
            post_free(&mut machine.api(), Kind::NapImmediate, ends, 16).unwrap();
        }
        machine.run_to_end(&mut ()).unwrap_err();
        assert_eq!(machine.nodes()[0].host.unread(0, 0, RingKind::Send), 2);
        machine.api().consumes(0, 0, 0, true);
        let mut notices: Vec<Notice> = Vec::new();
        machine.run_to_end(&mut notices).unwrap();
        assert_eq!(notices.iter().filter(|it| it.ring == RingKind::Send).count(), 5);
    });
}

/// Queues keep their limits while memory is slow: descriptors being read, commands of either end,
/// and bytes of data on their way.
#[test]
fn queues_keep_their_limits() {
    let mut config = Config::prototype();
    config.host.memory_latency = "5 us".parse().unwrap();
    (config.nic.descriptors_in_flight, config.nic.command_depth) = (2, 1);
    config.nic.reorder = "2048 B".parse().unwrap();
    let mut machine = Machine::new(&config, 1).unwrap();
    for function in 0..6 {
        let ends = (Endpoint::new(0, function, 0).unwrap(), endpoint(1));
        for kind in [Kind::Put, Kind::Get] {
            post_free(&mut machine.api(), kind, ends, 4096).unwrap();
        }
    }
    let (mut descriptors, mut commands, mut reads) = (0, [0; 2], 0);
    while machine.step_program(&mut (), Time::NEVER) {
        let nodes = machine.nodes();
        descriptors = descriptors.max(nodes[0].descriptors.jobs.len());
        commands = [0, 1].map(|node: usize| commands[node].max(nodes[node].data.commands.len()));
        if nodes[0].data.counters.completions == 0 {
            reads = nodes[0].data.counters.reads;
        }
    }
    assert_eq!((descriptors, commands), (2, [1, 1]));
    // 16 reads of 128 B, before the first has come.
    assert_eq!(reads, 16);
}

/// The words of a stored descriptor are free again when it is extracted: of a buffer of 16 words,
/// each of 20 descriptors in a row gets some. One that is longer than the buffer is read, and frees
/// none.
#[test]
fn words_of_descriptors_are_free_again() {
    let mut config = Config::prototype();
    (config.nic.submission, config.nic.descriptor_words) = (Start::DamqPd, 16);
    let mut machine = Machine::new(&config, 1).unwrap();
    for _ in 0..20 {
        for bytes in [60, 1000] {
            let ends = (endpoint(0), endpoint(1));
            post_free(&mut machine.api(), Kind::NapImmediate, ends, bytes).unwrap();
            machine.run_to_end(&mut ()).unwrap();
        }
    }
    assert_eq!(machine.nodes()[0].host.submission.counts, [20, 20]);
}

/// Local descriptors and those of remote GETs are extracted in turns.
#[test]
fn remote_gets_have_their_turns() {
    let mut config = Config::prototype();
    config.nic.descriptor_path = "1 B".parse().unwrap();
    let mut machine = Machine::new(&config, 1).unwrap();
    for _ in 0..12 {
        post_free(&mut machine.api(), Kind::NapImmediate, (endpoint(1), endpoint(0)), 1000)
            .unwrap();
        post_free(&mut machine.api(), Kind::Get, (endpoint(0), endpoint(1)), 8).unwrap();
    }
    let of = |machine: &Machine| machine.nodes()[1].descriptors.counters;
    // How many of the others there are when there are eight of one kind.
    let mut others = [None; 2];
    while machine.step_program(&mut (), Time::NEVER) {
        let (local, remote) = (of(&machine).extracted, of(&machine).remote_gets);
        if local == 8 {
            others[0].get_or_insert(remote);
        }
        if remote == 8 {
            others[1].get_or_insert(local);
        }
    }
    assert!(others.iter().all(|other| other.is_some_and(|count| count >= 3)), "{others:?}");
    assert_eq!((of(&machine).extracted, of(&machine).remote_gets), (12, 12));
}

/// A waiting GET and the packets of a PUT alternate at the crossbar, which has room for one. At
/// first nothing leaves: the receiver is stuck behind a full event ring. Meanwhile the data of the
/// PUT and all descriptors come, so that later each turn is that of a packet that has crossed.
#[test]
fn gets_and_puts_take_turns() {
    let mut config = Config::prototype();
    (config.crossbar.channels, config.crossbar.get_channel) = (1, false);
    (config.crossbar.channel_packets, config.nic.descriptors_in_flight) = (1, 9);
    config.host.ring_entries = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    machine.api().consumes(1, 0, 0, false);
    for _ in 0..3 {
        let ends = (endpoint(2), endpoint(1));
        post_free(&mut machine.api(), Kind::NapImmediate, ends, 8).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap_err();
    let ends = (endpoint(0), endpoint(1));
    for (kind, count, bytes) in [(Kind::Put, 1, 4096), (Kind::Get, 8, 8)] {
        for _ in 0..count {
            post_free(&mut machine.api(), kind, ends, bytes).unwrap();
        }
        machine.run_to_end(&mut ()).unwrap_err();
    }
    let node = &machine.nodes()[0];
    assert_eq!((node.data.counters.bytes, node.descriptors.counters.read), (4096, 9));
    machine.api().consumes(1, 0, 0, true);
    // For each GET that has gone, the packets of the PUT before it.
    let mut before = Vec::new();
    while machine.step_program(&mut (), Time::NEVER) {
        let node = &machine.nodes()[0];
        let gets = node.descriptors.counters.gets;
        if gets > before.len() as u64 {
            before.push(node.packer.packets - gets);
        }
    }
    assert_eq!(before.len(), 8);
    assert!(before.windows(2).all(|two| two[1] == two[0] + 1), "{before:?}");
}
