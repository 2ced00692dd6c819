//! The machine of the MyVIA paper: rings, pipelines, buffers, status, routes and conservation, on
//! all systems.

use bellwire_model::engine::{Ended, Random};
use bellwire_model::myvia::config::{Layout, Queues};
use bellwire_model::myvia::network::Place;
use bellwire_model::myvia::pipeline::{STEPS, Step, Unit};
use bellwire_model::myvia::programs::{Lengths, Places, Window, ping_pong, run_window, window};
use bellwire_model::myvia::{
    Completion, HostApi, Machine, PostError, Program, Setup, Side, Status,
};
use bellwire_model::units::{Frequency, Rate, Span, Time};

const ALL: [&str; 7] =
    ["myvia-a", "berkeley-a", "m-via-100", "m-via-gigabit", "myvia-b", "berkeley-b", "gm-b"];

fn port(switch: u8, port: u8) -> Place {
    Place::Port { switch, port }
}

fn paper(name: &str) -> Setup {
    Setup::paper(name).unwrap()
}

/// A window of messages of one length, whose receives are posted.
fn window_of(running: &mut Machine, length: u32, messages: u64) -> Window {
    Window::begin(running, Lengths::Fixed(length), Places::Reused, messages, true).unwrap()
}

/// Runs until nothing moves.
fn finish(running: &mut Machine, program: &mut impl Program) {
    assert_eq!(running.run_program(program, Time::NEVER), Ended::Quiet);
}

fn fixed(setup: &Setup, length: u32, messages: u64) -> Machine {
    window(setup, Lengths::Fixed(length), Places::Reused, messages, 1).unwrap().running
}

/// Random messages between all VIs of some hosts; each is compared with the sent one: number,
/// length, order.
struct Traffic {
    random: Random,
    vis: Vec<(u8, u16, u8, u16)>,
    regions: Vec<u32>,
    left: u32,
    due: Vec<Vec<(u64, u32)>>,
    came: u32,
    sent: u32,
    mismatches: u32,
    /// A link goes down: messages expected before one that arrives count as lost.
    may_lose: bool,
    /// Canary: the expected length is wrong.
    wrong_oracle: bool,
}

const LONGEST: u32 = 20_000;

impl Traffic {
    fn begin(running: &mut Machine, hosts: u8, messages: u32, seed: u64) -> Traffic {
        let mut vis = Vec::new();
        for one in 0..hosts {
            for other in 0..hosts {
                if one != other {
                    let (near, far) = running.model.connect(one, other);
                    vis.push((one, near, other, far));
                }
            }
        }
        let register = |host| running.model.register(host, u64::from(LONGEST)).unwrap();
        let regions = (0..hosts).map(register).collect();
        let due = vec![Vec::new(); vis.len()];
        let mut traffic = Traffic {
            random: Random::new(seed),
            vis,
            regions,
            left: messages,
            due,
            came: 0,
            sent: 0,
            mismatches: 0,
            may_lose: false,
            wrong_oracle: false,
        };
        for number in 0..traffic.vis.len() {
            for _ in 0..8 {
                traffic.receive(&mut running.api(), number);
            }
        }
        traffic
    }

    /// Posts the first sends, after all receives have been posted.
    fn start(&mut self, running: &mut Machine) {
        finish(running, self);
        for number in 0..self.vis.len() {
            for _ in 0..4 {
                self.send(&mut running.api(), number);
            }
        }
    }

    fn receive(&mut self, api: &mut HostApi<'_>, number: usize) {
        let (_, _, host, vi) = self.vis[number];
        api.receive(host, vi, self.regions[usize::from(host)], 0, LONGEST).unwrap();
    }

    fn send(&mut self, api: &mut HostApi<'_>, number: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let (host, vi, ..) = self.vis[number];
        let length = match self.random.below(3) {
            0 => self.random.below(64),
            1 => self.random.below(4096),
            _ => self.random.below(u64::from(LONGEST)),
        } as u32;
        let offset = self.random.below(u64::from(LONGEST - length));
        let sent = api.send(host, vi, self.regions[usize::from(host)], offset, length).unwrap();
        self.due[number].push((sent, length + u32::from(self.wrong_oracle)));
    }
}

impl Program for Traffic {
    fn completed(&mut self, completion: &Completion, api: &mut HostApi<'_>) {
        assert_eq!(completion.status, Status::Success);
        let is_this = |of: &(u8, u16, u8, u16)| match completion.side {
            Side::Send => (of.0, of.1) == (completion.host, completion.vi),
            Side::Receive => (of.2, of.3) == (completion.host, completion.vi),
        };
        let number = self.vis.iter().position(is_this).unwrap();
        match completion.side {
            Side::Send => {
                self.sent += 1;
                self.send(api, number);
            }
            Side::Receive => {
                let due = &mut self.due[number];
                while self.may_lose && due[0].0 < completion.message {
                    due.remove(0);
                }
                let due = due.remove(0);
                self.mismatches += u32::from(due != (completion.message, completion.length));
                self.came += 1;
                self.receive(api, number);
            }
        }
    }
}

fn traffic(setup: &Setup, hosts: u8, messages: u32, seed: u64) -> (Machine, Traffic) {
    let mut running = Machine::new(setup, hosts, seed).unwrap();
    running.model.journal.open();
    let mut program = Traffic::begin(&mut running, hosts, messages, seed);
    program.start(&mut running);
    finish(&mut running, &mut program);
    (running, program)
}

/// Random messages of all lengths, in both directions, between two hosts on every system and four
/// hosts on Myrinet. Each arrives once, in order and with its length. Pools and queues balance,
/// Little's law holds, and no unit is used twice at one time.
// shows: M-18, B-16, B-17
#[test]
fn random_traffic_is_conserved() {
    for name in ALL {
        let hosts = if name.starts_with("m-via") { 2 } else { 4 };
        for seed in 1..4 {
            let (running, program) = traffic(&paper(name), hosts, 600, seed);
            let audit = running.model.audit(running.schedule.now());
            audit.unwrap_or_else(|law| panic!("{name}: {law}"));
            assert_eq!((program.sent, program.came, program.mismatches), (600, 600, 0), "{name}");
            assert_eq!(running.model.network.under_way(), 0);
            for node in &running.model.nodes {
                let (counts, buffers) = (&node.agent.counts, &node.agent.buffers);
                assert_eq!((node.agent.jobs(), buffers.in_use()), (0, 0), "{name}");
                assert!(counts.packets_sent > 0 && counts.packets_received > 0);
                assert!(buffers.given > 0);
            }
        }
    }
}

/// Each resource of MyVIA's NIC has one owner whose counters match the operations: each of 600
/// messages makes two records in completion queues, each packet takes one buffer at either end and
/// gives it back, and all data that is sent comes, as its receiver says. No unit is used twice at
/// one time: the journal says so.
// shows: M-08
#[test]
fn the_firmware_owns_and_counts_its_resources() {
    for name in ["myvia-a", "myvia-b"] {
        let (running, program) = traffic(&paper(name), 4, 600, 1);
        running.model.journal.check().unwrap();
        assert_eq!((program.sent, program.came, program.mismatches), (600, 600, 0), "{name}");
        assert!(program.due.iter().all(Vec::is_empty), "{name}: data");
        let agents: Vec<_> = running.model.nodes.iter().map(|node| &node.agent).collect();
        let counts = || agents.iter().map(|agent| &agent.counts);
        let sent: u64 = counts().map(|counts| counts.packets_sent).sum();
        let received: u64 = counts().map(|counts| counts.packets_received).sum();
        let given: u64 = agents.iter().map(|agent| agent.buffers.given).sum();
        assert_eq!(sent, received, "{name}: packets");
        assert_eq!(given, sent + received, "{name}: buffers");
        assert!(agents.iter().all(|agent| agent.buffers.in_use() == 0), "{name}: buffers");
        assert_eq!(counts().map(|counts| counts.records).sum::<u64>(), 2 * 600, "{name}");
        assert_eq!(counts().map(|counts| counts.status_words).sum::<u64>(), 2 * 600, "{name}");
        let taken: u64 = counts().map(|counts| counts.descriptors_taken).sum();
        assert!(taken >= 2 * 600, "{name}: {taken} descriptors");
        assert!(counts().all(|counts| counts.descriptors_read == 0 && counts.dma_starts > 0));
    }
}

/// Canaries: a wrong oracle is noticed, and so is a processor that does two things at one time.
#[test]
fn planted_faults_are_caught() {
    let setup = paper("myvia-a");
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    let mut program = Traffic::begin(&mut running, 2, 20, 1);
    program.wrong_oracle = true;
    program.start(&mut running);
    finish(&mut running, &mut program);
    assert_eq!(program.mismatches, 20);
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    running.model.journal.open();
    let mut program = window_of(&mut running, 64, 20);
    running.model.double_use = true;
    let error = run_window(running, &mut program).map(|_| ()).unwrap_err();
    assert!(error.contains("Processor did"), "{error}");
}

/// On LANai4 an outgoing packet passes 7 stages, each with one resource, and an incoming one 5.
/// Stages of different messages overlap, and the processor locks the engines that it starts.
// shows: M-18, M-20
#[test]
fn lanai4_overlaps_seven_and_five_stages() {
    let setup = paper("myvia-a");
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    running.model.journal.open();
    let mut program = window_of(&mut running, 16_384, 50);
    let (running, _) = run_window(running, &mut program).unwrap();
    let journal = &running.model.journal;
    journal.check().unwrap();
    let stages = |host: u8, side: Side| {
        let of =
            journal.uses().iter().filter(|entry| entry.host == host && entry.step.side() == side);
        let mut stages: Vec<u8> = of.map(|entry| entry.step.stage(setup.system.pipeline)).collect();
        stages.sort_unstable();
        stages.dedup();
        stages
    };
    assert_eq!(stages(0, Side::Send), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(stages(1, Side::Receive), [1, 2, 3, 4, 5]);
    // Double buffers: host DMA of message n + 1 while message n goes to the network.
    let uses =
        |step| journal.uses().iter().filter(move |entry| entry.host == 0 && entry.step == step);
    let overlapping = uses(Step::Transmit).filter(|sent| {
        uses(Step::Fetch)
            .any(|fetch| fetch.job > sent.job && fetch.from < sent.to && sent.from < fetch.to)
    });
    assert!(overlapping.count() > 40);
    let counts = &running.model.nodes[0].agent.counts;
    assert!(counts.lock_tries >= 3 * 50 && counts.lock_failures > 0 && counts.most_sending > 2);
    let mut single = setup.clone();
    single.system.send_buffers = 1;
    let slower = window(&single, Lengths::Fixed(4096), Places::Reused, 50, 1).unwrap().took;
    let faster = window(&setup, Lengths::Fixed(4096), Places::Reused, 50, 1).unwrap().took;
    assert!(faster < slower);
}

/// On LANai9 one chain moves the data and writes status and record. There are 2 + 2 stages and no
/// locks.
// shows: M-19, M-25
#[test]
fn lanai9_chains_data_and_status() {
    let setup = paper("myvia-b");
    let running = fixed(&setup, 4096, 100);
    for (node, ours) in running.model.nodes.iter().zip([Step::Fetch, Step::Deliver]) {
        let counts = &node.agent.counts;
        assert_eq!((counts.dma_starts, counts.data_transfers), (100, 100));
        assert_eq!((counts.status_words, counts.records, counts.lock_tries), (100, 100, 0));
        assert_eq!(node.agent.queue(ours).left(), 100);
    }
    let stage = |step: Step| step.stage(setup.system.pipeline);
    assert!(STEPS.into_iter().all(|step| stage(step) <= 2));
}

/// Each operation gives one status word and one record, on every system with a completion queue,
/// also with several packets.
// shows: M-25
#[test]
fn status_and_record_come_once() {
    crate::limit::limited(|| {
        for name in ["myvia-a", "berkeley-a", "myvia-b", "berkeley-b"] {
            let running = fixed(&paper(name), 10_000, 40);
            for node in &running.model.nodes {
                let counts = &node.agent.counts;
                assert_eq!((counts.status_words, counts.records), (40, 40), "{name}");
            }
        }
    });
}

/// Host, send and receive DMA of one NIC are busy at the same time when messages go in both
/// directions.
// shows: M-21
#[test]
fn three_engines_run_at_once() {
    for name in ["myvia-a", "myvia-b"] {
        let (running, _) = traffic(&paper(name), 2, 400, 1);
        let all = [Unit::HostDma, Unit::SendDma, Unit::ReceiveDma];
        let together = running.model.journal.overlap(0, &all);
        let sending = running.model.journal.overlap(0, &all[1..2]);
        assert!(together * 20 > sending, "{name}: {together} of {sending}");
    }
}

/// An operation of MyVIA starts by one write of 16 B into the NIC, without a DMA read of the
/// descriptor. One of Berkeley VIA starts by a doorbell of 2 B and a DMA of 64 B.
// shows: M-12
#[test]
fn a_write_of_the_descriptor_is_the_doorbell() {
    let running = fixed(&paper("myvia-b"), 64, 50);
    let node = &running.model.nodes[0];
    assert_eq!((node.processor.counts.descriptor_writes, node.processor.counts.doorbells), (50, 0));
    assert_eq!((node.agent.counts.descriptors_taken, node.agent.counts.descriptors_read), (50, 0));
    assert_eq!(node.bus.bytes[0], 50 * 16);
    let setup = paper("berkeley-b");
    assert_eq!(setup.system.queues, Queues::HostQueue);
    let running = fixed(&setup, 64, 50);
    let node = &running.model.nodes[0];
    assert_eq!((node.processor.counts.descriptor_writes, node.processor.counts.doorbells), (0, 50));
    assert_eq!(node.agent.counts.descriptors_read, 50);
    let entries = node.agent.cache.misses * 8;
    assert_eq!(node.bus.bytes[0], 50 * 2 + entries);
    assert!(node.processor.counts.miss_interrupts > 0);
}

/// A burst far beyond the small ring loses nothing and keeps its order; interrupts refill the ring,
/// and only when needed.
// shows: M-13, M-14, M-15
#[test]
fn bursts_overflow_into_host_memory() {
    crate::limit::limited(|| {
        let setup = paper("myvia-a");
        let mut running = Machine::new(&setup, 2, 1).unwrap();
        let mut program = window_of(&mut running, 64, 900);
        program.unfinished = 900;
        let (running, _) = run_window(running, &mut program).unwrap();
        assert_eq!((program.received, program.faults), (900, 0));
        let vi = &running.model.nodes[0].vis[0];
        let counts = vi.queues[0].counts;
        assert_eq!((counts.direct + counts.refilled, counts.taken), (900, 900));
        assert!(
            counts.overflowed > 850
                && counts.refilled == counts.overflowed
                && counts.most_big > 800
        );
        // Each handler finds the ring at or below the mark and fills it.
        let room = (setup.system.small_ring - setup.system.low_mark) as u64;
        assert!(counts.interrupts <= counts.refilled / room + 2);
        assert_eq!(vi.dry, Span::ZERO);
        let asked = running.model.nodes[0].processor.counts.refill_interrupts;
        assert!(asked > 0 && asked == counts.interrupts);
        let calm = fixed(&setup, 64, 10);
        assert_eq!(calm.model.nodes[0].processor.counts.interrupts(), 0);
    });
}

/// With a receive posted first, a message is delivered. Without one it is dropped and counted, and
/// the sender continues. A message that is too long ends the receive with that status.
#[test]
fn a_receive_is_posted_first() {
    crate::limit::limited(|| {
        struct Noted(Vec<Completion>);
        impl Program for Noted {
            fn completed(&mut self, completion: &Completion, _: &mut HostApi<'_>) {
                self.0.push(*completion);
            }
        }
        for name in ALL {
            let mut running = Machine::new(&paper(name), 2, 1).unwrap();
            let (near, far) = running.model.connect(0, 1);
            let regions = [0, 1].map(|host| running.model.register(host, 16_384).unwrap());
            let mut program = Noted(Vec::new());
            running.api().send(0, near, regions[0], 0, 1000).unwrap();
            finish(&mut running, &mut program);
            assert_eq!((program.0.len(), program.0[0].side), (1, Side::Send), "{name}");
            let node = &running.model.nodes[1];
            assert_eq!(node.agent.counts.dropped + node.processor.counts.dropped, 1, "{name}");
            running.api().receive(1, far, regions[1], 0, 6000).unwrap();
            running.api().receive(1, far, regions[1], 0, 6000).unwrap();
            finish(&mut running, &mut program);
            running.api().send(0, near, regions[0], 0, 5000).unwrap();
            running.api().send(0, near, regions[0], 0, 7000).unwrap();
            finish(&mut running, &mut program);
            program.0.retain(|one| one.side == Side::Receive);
            program.0.sort_by_key(|one| one.number);
            let ends: Vec<(u64, u32, Status)> =
                program.0.iter().map(|one| (one.message, one.length, one.status)).collect();
            assert_eq!(ends, [(1, 5000, Status::Success), (2, 7000, Status::TooLong)], "{name}");
            running.model.audit(running.schedule.now()).unwrap();
        }
    });
}

/// Invalid posts are refused with a reason and change nothing.
#[test]
fn wrong_posts_are_refused() {
    let setup = paper("myvia-a");
    let mut running = Machine::new(&setup, 2, 1).unwrap();
    let lone = running.model.create_vi(0);
    let (vi, _) = running.model.connect(0, 1);
    let region = running.model.register(0, 4096).unwrap();
    let mut api = running.api();
    assert_eq!(api.send(0, lone, region, 0, 1), Err(PostError::NotConnected(lone)));
    assert_eq!(api.send(0, 77, region, 0, 1), Err(PostError::NotConnected(77)));
    let outside = |end, length| Err(PostError::OutsideRegion { end, length });
    assert_eq!(api.send(0, vi, region, 1, 4096), outside(4097, 4096));
    assert_eq!(api.send(0, vi, 5, 0, 1), outside(1, 0));
    let capacity = setup.system.small_ring + setup.system.big_ring;
    assert!((0..capacity).all(|_| api.receive(0, vi, region, 0, 1).is_ok()));
    assert_eq!(api.receive(0, vi, region, 0, 1), Err(PostError::QueueFull(capacity)));
    running.model.audit(Time::ZERO).unwrap();
    let told = Machine::new(&setup, 17, 1).err().unwrap().to_string();
    assert!(told.contains("`hosts` is 17"), "{told}");
}

/// The same program runs unchanged on LANai4, LANai9 and the baselines; programs see operations,
/// never NICs.
// shows: M-06
#[test]
fn nics_are_exchanged_below_the_program() {
    for name in ALL {
        let (_, program) = traffic(&paper(name), 2, 100, 9);
        assert_eq!((program.came, program.mismatches), (100, 0), "{name}");
        let latency = ping_pong(&paper(name), Lengths::Fixed(64), 10, 1).unwrap();
        assert!(latency > Span::ZERO);
    }
}

/// A message of 120 KB takes one DMA from contiguous memory, and two if it is one byte longer. From
/// scattered pages it takes one per page, which is slower.
// shows: M-22, M-23, B-18
#[test]
fn contiguous_memory_takes_one_dma() {
    for name in ["myvia-a", "myvia-b"] {
        let setup = paper(name);
        let mut pages = setup.clone();
        pages.system.layout = Layout::Pages;
        let transfers = |setup: &Setup, length| {
            fixed(setup, length, 4).model.nodes[0].agent.counts.data_transfers / 4
        };
        let full = 120 << 10;
        assert_eq!(
            (transfers(&setup, full), transfers(&setup, full + 1), transfers(&pages, full)),
            (1, 2, 30)
        );
        let latency = |setup: &Setup| ping_pong(setup, Lengths::Fixed(full), 5, 1).unwrap();
        assert!(latency(&pages) > latency(&setup), "{name}");
        let many = pages.system.layout;
        assert_eq!(many, Layout::Pages);
    }
}

/// Messages of mixed sizes share the NIC's pool, with two buffers in each direction, none larger
/// than necessary.
// shows: M-24
#[test]
fn buffers_have_the_length_of_the_message() {
    crate::limit::limited(|| {
        let flow =
            window(&paper("myvia-a"), Lengths::Mix(Random::new(3), 65_536), Places::Reused, 300, 1)
                .unwrap();
        for node in &flow.running.model.nodes {
            assert_eq!(node.agent.buffers.given, 300);
            assert!(node.agent.buffers.most_bytes <= 2 * 65_536 + 16);
            assert_eq!(node.agent.buffers.used_bytes, 0);
        }
    });
}

/// Packets take the route that their source wrote: by default the shortest over several switches,
/// another if one is set. A route whose port leads nowhere only loses the packet. Two packets for
/// one output wait for each other, and both arrive.
#[test]
fn routes_are_the_sources() {
    let cables = [
        (Place::Node(0), port(0, 0)),
        (Place::Node(1), port(1, 0)),
        (Place::Node(2), port(0, 1)),
        (port(0, 2), port(1, 2)),
        (port(0, 3), port(2, 0)),
        (port(2, 1), port(1, 3)),
    ];
    let setup = paper("myvia-b");
    let mut running = Machine::wired(&setup, 3, &cables, 1).unwrap();
    assert_eq!(running.model.route(0, 1), Some(&[2, 0][..]));
    assert_eq!(running.model.route(1, 0), Some(&[2, 0][..]));
    let mut program = Traffic::begin(&mut running, 3, 200, 1);
    program.start(&mut running);
    finish(&mut running, &mut program);
    assert_eq!((program.came, program.mismatches), (200, 0));
    assert!(running.model.network.blocked > 0);
    // The longer route takes longer; the route to nowhere loses.
    let one_way = |route: Vec<u8>| {
        let mut running = Machine::wired(&setup, 3, &cables, 1).unwrap();
        running.model.set_route(0, 1, route);
        let mut program = window_of(&mut running, 64, 1);
        finish(&mut running, &mut program);
        program.start(&mut running.api());
        finish(&mut running, &mut program);
        (program.received, running.model.network.lost, running.schedule.now())
    };
    let (short, long, lost) = (one_way(vec![2, 0]), one_way(vec![3, 1, 0]), one_way(vec![9]));
    assert_eq!((short.0, short.1, long.0, long.1, lost.0, lost.1), (1, 0, 1, 0, 0, 1));
    assert!(long.2 > short.2);
}

/// Network management lists links with their state, and routes with their ports. Packets for a link
/// that is down are lost and counted, and no others. Recomputed routes avoid the link, and every
/// message arrives. A host without links has no route, and has one again when a link is up.
// shows: M-07
#[test]
fn routes_go_round_a_link_that_is_down() {
    let direct = [port(0, 2), port(1, 2)];
    let cables = [
        (Place::Node(0), port(0, 0)),
        (Place::Node(1), port(1, 0)),
        (direct[0], direct[1]),
        (port(0, 3), port(2, 0)),
        (port(2, 1), port(1, 3)),
    ];
    let mut running = Machine::wired(&paper("myvia-b"), 2, &cables, 1).unwrap();
    let ends: Vec<_> = running.model.network.links().iter().map(|link| link.ends).collect();
    assert_eq!(ends, cables.map(|(one, other)| [one, other]));
    assert!(running.model.network.links().iter().all(|link| link.up));
    let listed = |running: &Machine| -> Vec<(u8, u8, Vec<u8>)> {
        let routes = running.model.routes().into_iter().filter(|(from, to, _)| from != to);
        routes.map(|(from, to, ports)| (from, to, ports.to_vec())).collect()
    };
    assert_eq!(listed(&running), [(0, 1, vec![2, 0]), (1, 0, vec![2, 0])]);

    assert!(
        !running.model.network.set_link([port(0, 0), port(1, 0)], false),
        "there is no such cable"
    );
    // Its ends may be named in either order.
    assert!(running.model.network.set_link([direct[1], direct[0]], false));
    let down: Vec<_> = running.model.network.links().into_iter().filter(|link| !link.up).collect();
    assert_eq!(down.len(), 1);
    assert_eq!(down[0].ends, direct);
    let window = |running: &mut Machine, messages: u64| {
        let mut program = window_of(running, 1024, messages);
        finish(running, &mut program);
        program.start(&mut running.api());
        finish(running, &mut program);
        running.model.audit(running.schedule.now()).unwrap();
        program.received
    };
    assert_eq!((window(&mut running, 20), running.model.network.lost), (0, 20));

    running.model.map_routes();
    assert_eq!(listed(&running), [(0, 1, vec![3, 1, 0]), (1, 0, vec![3, 0, 0])]);
    assert_eq!((window(&mut running, 20), running.model.network.lost), (20, 20));

    let own = [port(1, 0), Place::Node(1)];
    assert!(running.model.network.set_link(own, false));
    running.model.map_routes();
    assert_eq!(listed(&running), []);
    assert_eq!((window(&mut running, 5), running.model.network.lost), (0, 25));
    for ends in [own, direct] {
        assert!(running.model.network.set_link(ends, true));
    }
    running.model.map_routes();
    assert_eq!(listed(&running), [(0, 1, vec![2, 0]), (1, 0, vec![2, 0])]);
    assert_eq!((window(&mut running, 20), running.model.network.lost), (20, 25));
}

/// A link that goes down under traffic loses only packets that reach it from then on. Each message
/// has arrived or counts as lost, and packets that waited for the link do not block later ones.
// shows: M-07
#[test]
fn a_link_that_goes_down_loses_what_comes_to_it() {
    let between = [port(0, 4), port(1, 4)];
    let cables = [
        (Place::Node(0), port(0, 0)),
        (Place::Node(1), port(0, 1)),
        (Place::Node(2), port(1, 0)),
        (Place::Node(3), port(1, 1)),
        (between[0], between[1]),
    ];
    let mut running = Machine::wired(&paper("myvia-b"), 4, &cables, 1).unwrap();
    let mut program = Traffic::begin(&mut running, 4, 400, 1);
    program.start(&mut running);
    // Until packets wait for the only cable between the switches.
    while running.model.network.blocked < 20 {
        let soon = running.schedule.now() + Span::from_ns(1000);
        assert_eq!(running.run_program(&mut program, soon), Ended::TimeUp);
    }
    assert!(running.model.network.under_way() > 0);
    program.may_lose = true;
    assert!(running.model.network.set_link(between, false));
    finish(&mut running, &mut program);
    let lost = running.model.network.lost;
    assert!(lost > 0 && program.came > 0);
    assert_eq!((u64::from(program.came) + lost, program.sent, program.mismatches), (400, 400, 0));
    assert_eq!(running.model.network.under_way(), 0);
}

/// The programs are the paper's: a ping-pong of 1000 round trips, and 2000 messages in one
/// direction whether or not the other host receives.
// shows: M-30
#[test]
fn programs_are_the_papers() {
    let setup = paper("myvia-b");
    let latency = ping_pong(&setup, Lengths::Fixed(4), 1000, 1).unwrap();
    assert!(latency > Span::ZERO);
    for receives in [true, false] {
        let mut running = Machine::new(&setup, 2, 1).unwrap();
        let mut program =
            Window::begin(&mut running, Lengths::Fixed(1024), Places::Reused, 2000, receives)
                .unwrap();
        let (running, _) = run_window(running, &mut program).unwrap();
        let dropped = running.model.nodes[1].agent.counts.dropped;
        assert_eq!(
            (program.sent, program.received, dropped),
            if receives { (2000, 2000, 0) } else { (2000, 0, 2000) }
        );
    }
}

/// The same seed gives the same history on every system; another seed gives another where anything
/// is random.
#[test]
fn a_seed_fixes_the_history() {
    for name in ALL {
        let trace = |seed| {
            let (running, _) = traffic(&paper(name), 2, 100, seed);
            running.schedule.trace_hash()
        };
        assert_eq!(trace(1), trace(1), "{name}");
        assert_ne!(trace(1), trace(2), "{name}");
    }
}

/// Halving every clock and rate of a machine doubles its times (up to the rounding of each step to
/// a picosecond).
#[test]
fn slower_clocks_double_all_times() {
    crate::limit::limited(|| {
        for name in ["myvia-a", "myvia-b", "berkeley-b"] {
            let setup = paper(name);
            let mut slow = setup.clone();
            for clock in [&mut slow.host.clock, &mut slow.bus.clock, &mut slow.nic.clock] {
                *clock = Frequency::from_hz(clock.hz() / 2);
            }
            slow.wire.rate = Rate::from_bytes_per_second(slow.wire.rate.bytes_per_second() / 2);
            let Setup { wire, nic, software, .. } = &mut slow;
            for span in
                [&mut wire.cable, &mut wire.switch, &mut nic.dma_start, &mut software.interrupt]
            {
                *span = *span * 2;
            }
            let time =
                |setup: &Setup| ping_pong(setup, Lengths::Fixed(1000), 10, 1).unwrap().as_ns();
            let ratio = time(&slow) / time(&setup);
            assert!((ratio - 2.0).abs() < 0.001, "{name}: {ratio}");
        }
    });
}
