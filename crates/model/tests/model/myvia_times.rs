//! Times and counts of single messages on the machine of the MyVIA paper, computed by hand.

use bellwire_model::engine::Ended;
use bellwire_model::myvia::config::Translation;
use bellwire_model::myvia::journal::Use;
use bellwire_model::myvia::pipeline::Step;
use bellwire_model::myvia::programs::{Lengths, PingPong, Places, Window, run_window};
use bellwire_model::myvia::{Completion, HostApi, Machine, Program, Setup, Side};
use bellwire_model::units::{Bytes, Span, Time};

fn paper(name: &str) -> Setup {
    Setup::paper(name).unwrap()
}

/// The machine after `messages` messages of one length from host 0 to host 1, and its journal.
fn after(setup: &Setup, length: u32, messages: u64) -> Machine {
    let mut running = Machine::new(setup, 2, 1).unwrap();
    running.model.journal.open();
    let lengths = Lengths::Fixed(length);
    let mut program = Window::begin(&mut running, lengths, Places::Reused, messages, true).unwrap();
    run_window(running, &mut program).unwrap().0
}

/// When a host did a step, from and to, one after the other.
fn times(running: &Machine, host: u8, step: Step) -> Vec<(Time, Time)> {
    let uses = running.model.journal.uses().iter();
    let uses = uses.filter(|entry| entry.host == host && entry.step == step && entry.job > 0);
    uses.map(|entry| (entry.from, entry.to)).collect()
}

/// How long each of a host's steps took.
fn spans(running: &Machine, host: u8, step: Step) -> Vec<Span> {
    times(running, host, step).iter().map(|(from, to)| to.since(*from)).collect()
}

/// Notes nothing.
struct Silent;

impl Program for Silent {
    fn completed(&mut self, _: &Completion, _: &mut HostApi<'_>) {}
}

fn finish(running: &mut Machine) {
    assert_eq!(running.run_program(&mut Silent, Time::NEVER), Ended::Quiet);
}

/// A lock costs its instructions before the step that needs it. A packet is on the cable for its
/// header, its route of one byte and its data. Programs translate, so firmware that parses a
/// descriptor does not.
#[test]
fn steps_take_their_instructions_and_bytes() {
    let setup = paper("myvia-a");
    let running = after(&setup, 1000, 1);
    let (lock, prepare, launch) = (142, 150, 180);
    let cycles = |count: u64| [setup.nic.clock.period() * count];
    assert_eq!(spans(&running, 0, Step::Prepare), cycles(lock + prepare));
    assert_eq!(spans(&running, 0, Step::Launch), cycles(lock + launch));
    assert_eq!(spans(&running, 0, Step::Transmit), [Span::from_ps(6250 * (16 + 1 + 1000))]);

    let mut setup = paper("berkeley-b");
    let period = setup.nic.clock.period();
    setup.system.translation = Translation::User;
    assert_eq!(spans(&after(&setup, 64, 1), 0, Step::Parse), [period * 150]);
}

/// A translation that the NIC lacks takes an interrupt, the handler's work on an entry, and a write
/// of the entries.
#[test]
fn a_miss_takes_an_interrupt() {
    let setup = paper("berkeley-b");
    let running = after(&setup, 64, 1);
    let (parsed, prepares) = (times(&running, 0, Step::Parse), times(&running, 0, Step::Prepare));
    // 100 cycles at 1.4 GHz are 71 428.57 ps; the bus writes 8 B in one of 1 + 6 cycles.
    let handler = Span::from_ns(5700) + Span::from_ps(71_428) + setup.bus.clock.period() * 7;
    assert_eq!(prepares[0].0.since(parsed[0].1), handler);
    let node = &running.model.nodes[0];
    assert_eq!((node.agent.cache.misses, node.bus.bytes[0]), (1, 2 + 8));

    // A message over two pages: both entries are written. Its pages are those of its place.
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    let (vi, _) = running.model.connect(0, 1);
    let region = running.model.register(0, 16_384).unwrap();
    running.api().send(0, vi, region, 2048, 4096).unwrap();
    finish(&mut running);
    let node = &running.model.nodes[0];
    assert_eq!((node.agent.cache.misses, node.bus.bytes[0]), (2, 2 + 2 * 8));
    running.api().send(0, vi, region, 8192, 100).unwrap();
    finish(&mut running);
    assert_eq!(running.model.nodes[0].agent.cache.misses, 3);
}

/// A message without data needs no translation, and no transfer of data.
#[test]
fn no_data_moves_for_an_empty_message() {
    for name in ["berkeley-b", "myvia-b"] {
        let running = after(&paper(name), 0, 3);
        for node in &running.model.nodes {
            let counts = (node.agent.counts.data_transfers, node.agent.cache.misses);
            assert_eq!(counts, (0, 0), "{name}");
            assert_eq!(node.agent.counts.status_words, 3, "{name}");
        }
    }
}

/// Serial firmware reads the descriptor of a packet before it looks for that of the next.
#[test]
fn serial_firmware_matches_one_packet_at_a_time() {
    let running = after(&paper("berkeley-b"), 64, 20);
    let matched = times(&running, 1, Step::Match);
    let parsed = times(&running, 1, Step::ReceiveParse);
    assert_eq!((matched.len(), parsed.len()), (20, 20));
    for number in 0..19 {
        assert!(parsed[number].1 <= matched[number + 1].0, "{number}");
    }
}

/// With one buffer in each direction no packet takes it before the last has given it back: when the
/// firmware notices the end of the DMA, or, of a frame, when the kernel has copied it.
#[test]
fn a_buffer_is_free_when_its_packet_is_through() {
    // The packet's first step with the buffer at either end, and its last.
    let outgoing = [(Step::Prepare, Step::Transmitted), (Step::Fetch, Step::Transmit)];
    let incoming = [(Step::Arrive, Step::Delivered), (Step::Arrive, Step::Deliver)];
    for (at, name) in ["myvia-a", "m-via-gigabit"].into_iter().enumerate() {
        let mut setup = paper(name);
        (setup.system.send_buffers, setup.system.receive_buffers) = (1, 1);
        let running = after(&setup, 1000, 10);
        let copied = if at == 0 { Span::ZERO } else { setup.software.copy.time(Bytes::new(1000)) };
        for (host, (first, last), more) in
            [(0, outgoing[at], Span::ZERO), (1, incoming[at], copied)]
        {
            let (takes, gives) = (times(&running, host, first), times(&running, host, last));
            assert_eq!((takes.len(), gives.len()), (10, 10), "{name}, host {host}");
            for number in 0..9 {
                let free = gives[number].1 + more;
                assert!(free <= takes[number + 1].0, "{name}, host {host}: packet {number}");
            }
        }
    }
}

/// The limit of messages in the NIC is kept below that of buffers.
#[test]
fn messages_are_limited() {
    let mut setup = paper("myvia-a");
    (setup.system.send_buffers, setup.system.messages) = (4, 1);
    assert_eq!(after(&setup, 1000, 20).model.nodes[0].agent.counts.most_sending, 1);
    setup.system.messages = 2;
    assert_eq!(after(&setup, 1000, 20).model.nodes[0].agent.counts.most_sending, 2);
}

/// Connections with sends take turns. The NIC takes four descriptors ahead, which are all of the
/// first connection. Then each of three sends of the second follows one of the first at most.
#[test]
fn connections_take_turns() {
    struct Order(Vec<u16>);
    impl Program for Order {
        fn completed(&mut self, completion: &Completion, _: &mut HostApi<'_>) {
            if completion.side == Side::Send {
                self.0.push(completion.vi);
            }
        }
    }
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    let vis = [0; 2].map(|_| running.model.connect(0, 1).0);
    let region = running.model.register(0, 65_536).unwrap();
    // The first messages are so long that all others are posted meanwhile.
    for number in 0..13 {
        running.api().send(0, vis[number / 10], region, 0, 60_000).unwrap();
    }
    let mut order = Order(Vec::new());
    assert_eq!(running.run_program(&mut order, Time::NEVER), Ended::Quiet);
    let last_of_second = order.0.iter().rposition(|vi| *vi == vis[1]).unwrap();
    let of_first = order.0[..last_of_second].iter().filter(|vi| **vi == vis[0]).count();
    assert!((5..=7).contains(&of_first), "{:?}", order.0);
}

/// Each packet has a number of its own on a NIC, whichever way it goes.
#[test]
fn jobs_have_numbers_of_their_own() {
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    running.model.journal.open();
    let mut program = PingPong::begin(&mut running, Lengths::Fixed(64), 5).unwrap();
    assert_eq!(running.run_program(&mut program, Time::NEVER), Ended::Quiet);
    for host in 0..2 {
        let uses = running.model.journal.uses().iter().filter(|entry| entry.host == host);
        let mut sides: Vec<(u64, bool)> =
            uses.map(|entry| (entry.job, entry.step.side() == Side::Send)).collect();
        sides.sort_unstable();
        sides.dedup();
        let numbers: Vec<u64> = sides.iter().map(|(job, _)| *job).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<u64>>(), "host {host}");
    }
}

/// One round is one message each way, and ends where it began.
#[test]
fn a_round_is_there_and_back() {
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    let mut program = PingPong::begin(&mut running, Lengths::Fixed(64), 1).unwrap();
    assert_eq!(running.run_program(&mut program, Time::NEVER), Ended::Quiet);
    let sent = [0, 1].map(|host: usize| running.model.nodes[host].agent.counts.packets_sent);
    assert_eq!((sent, program.ended.is_some()), ([1, 1], true));
}

/// A window ends with its last send, even if nobody receives.
#[test]
fn a_window_ends_with_its_last_send() {
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    let lengths = Lengths::Fixed(64);
    let mut program = Window::begin(&mut running, lengths, Places::Reused, 1, false).unwrap();
    let (running, took) = run_window(running, &mut program).unwrap();
    assert!(took > Span::ZERO && took <= running.schedule.now().since(Time::ZERO));
}

/// The descriptor on the NIC has the physical address of the data.
// shows: M-10
#[test]
fn descriptors_have_physical_addresses() {
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    let (_, vi) = running.model.connect(0, 1);
    // Another region lies before it, so that places in the region are no addresses.
    running.model.register(1, 16_384).unwrap();
    let region = running.model.register(1, 16_384).unwrap();
    running.api().receive(1, vi, region, 5000, 64).unwrap();
    finish(&mut running);
    let node = &mut running.model.nodes[1];
    let address = node.memory.extents(region, 5000, 64, 4096)[0].address;
    let descriptor = node.vis[usize::from(vi)].queues[Side::Receive as usize].take().unwrap();
    assert_eq!((descriptor.address, descriptor.length), (address, 64));
}

/// Of a message that is longer than its receive no data is moved to the host.
#[test]
fn nothing_is_moved_that_does_not_fit() {
    let mut running = Machine::new(&paper("myvia-b"), 2, 1).unwrap();
    let (near, far) = running.model.connect(0, 1);
    let regions = [0, 1].map(|host| running.model.register(host, 8192).unwrap());
    running.api().receive(1, far, regions[1], 0, 100).unwrap();
    finish(&mut running);
    running.api().send(0, near, regions[0], 0, 200).unwrap();
    finish(&mut running);
    let moved = [0, 1].map(|host: usize| running.model.nodes[host].agent.counts.data_transfers);
    assert_eq!(moved, [1, 0]);
}

/// A frame takes a trap and a doorbell of its sender, and an interrupt of its receiver. The NIC
/// reads or writes its own descriptor beside the data.
#[test]
fn a_frame_takes_a_trap_and_an_interrupt() {
    let mut running = Machine::new(&paper("m-via-gigabit"), 2, 1).unwrap();
    let (near, far) = running.model.connect(0, 1);
    let regions = [0, 1].map(|host| running.model.register(host, 4096).unwrap());
    for _ in 0..2 {
        running.api().receive(1, far, regions[1], 0, 1000).unwrap();
    }
    finish(&mut running);
    running.api().send(0, near, regions[0], 0, 1000).unwrap();
    finish(&mut running);
    let counts = [0, 1].map(|host: usize| {
        let node = &running.model.nodes[host];
        let counts = &node.processor.counts;
        (counts.traps, counts.doorbells, counts.frame_interrupts, node.bus.bytes)
    });
    // A doorbell is a word of 4 B; a status word has 8 B.
    assert_eq!(counts, [(1, 1, 0, [4, 16 + 1000 + 8]), (2, 0, 1, [0, 1000 + 16])]);
}

/// A frame is handled before programs that wait for the processor.
#[test]
fn a_frame_goes_before_programs() {
    let setup = paper("m-via-gigabit");
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    let (near, far) = running.model.connect(0, 1);
    let regions = [0, 1].map(|host| running.model.register(host, 4096).unwrap());
    // 200 posts with a trap each: 1400 cycles of 733 MHz and more, 380 us in all.
    for _ in 0..200 {
        running.api().receive(1, far, regions[1], 0, 64).unwrap();
    }
    running.api().send(0, near, regions[0], 0, 64).unwrap();
    running.run_program(&mut Silent, Time::from_ps(200_000_000));
    let vi = &running.model.nodes[1].vis[usize::from(far)];
    let counts = vi.queues[Side::Receive as usize].counts;
    assert!(counts.taken == 1 && counts.direct < 150, "{counts:?}");
}

/// A host's memory is as large as its setup says.
#[test]
fn memory_has_the_size_of_the_setup() {
    let mut setup = paper("myvia-b");
    setup.host.memory = Bytes::new(64 << 10);
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    assert!(running.model.register(0, 128 << 10).is_err());
    assert!(running.model.register(0, 32 << 10).is_ok());
}

/// The time in which the small ring is empty and the big one is not: what looks at the rings every
/// 20 ns sees the same, but for one look at either end of each such time.
#[test]
fn a_dry_ring_is_timed() {
    let mut setup = paper("myvia-b");
    (setup.system.small_ring, setup.system.low_mark) = (2, 0);
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    let (near, _) = running.model.connect(0, 1);
    let region = running.model.register(0, 4096).unwrap();
    for _ in 0..30 {
        running.api().send(0, near, region, 0, 64).unwrap();
    }
    let look = Span::from_ns(20);
    let (mut seen, mut times, mut was) = (Span::ZERO, 0, false);
    loop {
        let next = running.schedule.now() + look;
        let ended = running.run_program(&mut Silent, next);
        let queue = &running.model.nodes[0].vis[usize::from(near)].queues[Side::Send as usize];
        let is = queue.small_len() == 0 && queue.big_len() > 0;
        seen += if is { look } else { Span::ZERO };
        times += u64::from(is && !was);
        was = is;
        if ended == Ended::Quiet {
            break;
        }
    }
    let dry = running.model.nodes[0].vis[usize::from(near)].dry;
    let off = if dry > seen { dry - seen } else { seen - dry };
    assert!(times > 0 && off <= look * times, "{dry} and not {seen} in {times}");
}

/// Host 1 of three, to which both others send 20 messages at once.
fn crowded(setup: &Setup, bytes: u32) -> Machine {
    let mut running = Machine::new(setup, 3, 1).unwrap();
    running.model.journal.open();
    let ends = [0, 2].map(|host| (host, running.model.connect(host, 1)));
    let regions = [0, 1, 2].map(|host| running.model.register(host, 4096).unwrap());
    for (_, (_, far)) in ends {
        for _ in 0..20 {
            running.api().receive(1, far, regions[1], 0, bytes).unwrap();
        }
    }
    finish(&mut running);
    for (host, (near, _)) in ends {
        for _ in 0..20 {
            running.api().send(host, near, regions[usize::from(host)], 0, bytes).unwrap();
        }
    }
    finish(&mut running);
    running
}

/// Of a crowd of packets each has a number of its own. Serial firmware looks for the receive of one
/// when it has read that of the one before, and the only buffer of LANai4 is free when the firmware
/// has noticed that its packet is delivered.
#[test]
fn a_crowd_goes_one_by_one() {
    let running = crowded(&paper("berkeley-b"), 8);
    let (matched, parsed) =
        (times(&running, 1, Step::Match), times(&running, 1, Step::ReceiveParse));
    assert_eq!((matched.len(), parsed.len()), (40, 40));
    assert!((0..39).all(|number| parsed[number].1 <= matched[number + 1].0));
    let came = |it: &&Use| it.host == 1 && it.step == Step::Arrive;
    let mut numbers: Vec<u64> =
        running.model.journal.uses().iter().filter(came).map(|it| it.job).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 40);

    let mut setup = paper("myvia-a");
    setup.system.receive_buffers = 1;
    let running = crowded(&setup, 1000);
    let (came, delivered) = (times(&running, 1, Step::Arrive), times(&running, 1, Step::Delivered));
    assert_eq!((came.len(), delivered.len()), (40, 40));
    assert!((0..39).all(|number| delivered[number].1 <= came[number + 1].0));
}
