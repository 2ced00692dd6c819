//! The cluster of the HPCL/Ethernet paper: the character device, the dispatcher, and the protocol
//! over the modelled wires with and without losses. Other tests check laws that hold for all
//! parameters. Most programs here are small; `hpcl_experiments` has the paper's.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bellwire_model::hpcl::config::{Buffers, Config, HandOver, Receive, Rings};
use bellwire_model::hpcl::counters::Counters as Counted;
use bellwire_model::hpcl::device::{Channel, Message, Module, Refused, longest_message};
use bellwire_model::hpcl::experiments::measure::{bandwidth, round_trip};
use bellwire_model::hpcl::frame::{ETHERTYPE, Frame, HEADER_BYTES as ETHERNET_BYTES, Payload};
use bellwire_model::hpcl::machine::Machine;
use bellwire_model::hpcl::node::CHANNEL;
use bellwire_model::hpcl::process::{Call, Over, all_to_all, burst, ping_pong};
use bellwire_model::units::{Bytes, Rate, Span, Time};
use bellwire_protocol::reliable::Counters;
use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::record::PacketWords;
use bellwire_wire::frame::section::{Section, SectionKind};

const MOST: Span = Span::from_ns(60_000_000_000);

fn of(nodes: u16) -> Config {
    Config { nodes, ..Config::paper() }
}

/// The protocol's counters on a node.
fn protocol(running: &mut Machine, node: u16) -> Counters {
    let module = running.model.nodes[usize::from(node)].module.as_mut().expect("loaded");
    module.channel(CHANNEL).expect("open").endpoint.counters()
}

/// All programs end, all laws hold, and every message arrives as it was sent.
fn finish(running: &mut Machine) {
    running.finish(MOST).unwrap();
    running.settle(Span::from_ns(500_000_000));
    running.audit().unwrap();
    let nodes = running.model.nodes.iter();
    assert!(nodes.clone().all(|node| node.nic.is_empty() && node.bus.is_idle()));
    let (sent, received) = nodes.fold((0, 0), |(sent, received), node| {
        (sent + node.counters.sent, received + node.counters.received)
    });
    assert_eq!(sent, received);
}

/// Two ends of a channel without a machine between them: the test passes the frames.
struct Pair([Module; 2]);

impl Pair {
    fn new(config: &Config) -> Pair {
        let mut pair = Pair(Default::default());
        for (node, module) in (0..).zip(&mut pair.0) {
            module.open(&config.hpcl, CHANNEL, node, 2, 7 + u64::from(node)).unwrap();
            module.map(CHANNEL).unwrap();
        }
        pair.end(0).connect(1, Time::ZERO);
        pair.exchange();
        pair
    }

    fn end(&mut self, end: usize) -> &mut Channel {
        self.0[end].channel(CHANNEL).unwrap()
    }

    fn exchange(&mut self) {
        loop {
            let frames = [0, 1].map(|end| self.end(end).transmit(Time::ZERO));
            if frames.iter().all(Option::is_none) {
                return;
            }
            for frame in frames.into_iter().flatten() {
                self.end(frame.to.into()).handle(&frame, Time::ZERO);
            }
        }
    }

    fn receive(&mut self, end: usize) -> Option<Message> {
        self.end(end).receive(Time::ZERO).0
    }
}

/// Each operation of the character device (open, mmap, ioctl in both directions, poll, release)
/// works and refuses misuse. The message descriptor has place, length and source of every message.
// shows: H-04, H-10, H-20
#[test]
fn the_operations_of_the_device() {
    let config = of(2);
    let mut module = Module::default();
    assert_eq!(module.map(CHANNEL), Err(Refused::NotOpen));
    assert_eq!(module.poll(CHANNEL), Err(Refused::NotOpen));
    assert_eq!(module.release(CHANNEL), Err(Refused::NotOpen));
    module.open(&config.hpcl, CHANNEL, 0, 2, 1).unwrap();
    assert_eq!(module.open(&config.hpcl, CHANNEL, 0, 2, 1), Err(Refused::Owned));
    assert_eq!(module.channel(CHANNEL).unwrap().send(1, b"unmapped"), Err(Refused::NotMapped));
    let mapping = module.map(CHANNEL).unwrap();
    assert_eq!(mapping.rings, 1);
    assert!(mapping.bytes >= u64::from(config.hpcl.slots) * config.hpcl.frame.count());
    assert_eq!(module.channel(CHANNEL).unwrap().send(1, b"alone"), Err(Refused::NoPeer));
    module.release(CHANNEL).unwrap();
    assert_eq!((module.bytes(), module.poll(CHANNEL)), (0, Err(Refused::NotOpen)));

    let mut pair = Pair::new(&config);
    assert_eq!(pair.0[1].poll(CHANNEL), Ok(false));
    let before = pair.0[1].bytes();
    for number in 0..200u8 {
        let message = vec![number; usize::from(number)];
        pair.end(0).send(1, &message).unwrap();
        pair.exchange();
        assert_eq!(pair.0[1].poll(CHANNEL), Ok(true));
        let came = pair.receive(1).expect("it has come");
        assert_eq!((came.from, came.bytes), (0, message));
        assert_eq!(came.slot, u32::from(number) % u32::from(config.hpcl.slots));
        assert_eq!(pair.0[1].poll(CHANNEL), Ok(false));
    }
    assert_eq!(pair.0[1].bytes(), before, "fixed memory stays as it is");
}

/// A layer above cuts a large message into frames of the largest size and reassembles it; the
/// device refuses a longer frame.
// shows: H-25
#[test]
fn a_large_message_is_cut_above() {
    let config = of(2);
    let longest = longest_message(&config.hpcl);
    let large: Vec<u8> = (0..100_000u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let mut pair = Pair::new(&config);
    assert_eq!(pair.end(0).send(1, &large[..=longest]), Err(Refused::TooLong));
    let mut whole = Vec::new();
    for piece in large.chunks(longest) {
        pair.end(0).send(1, piece).unwrap();
        let frame = pair.end(0).transmit(Time::ZERO).expect("one frame for each piece");
        assert!(frame.payload_bytes() <= 1500);
        assert_eq!(pair.end(0).transmit(Time::ZERO), None);
        pair.end(1).handle(&frame, Time::ZERO);
        pair.exchange();
        whole.extend(pair.receive(1).expect("it has come").bytes);
    }
    assert_eq!(whole, large);
}

/// Processes of one channel number communicate, those of different numbers never do. Frames for an
/// unopened channel are dropped, and a number has one owner.
// shows: H-22
#[test]
fn channels_are_apart() {
    let mut running = Machine::bare(&of(3), 1).unwrap();
    for node in 0..3 {
        running.load(node);
    }
    for (node, channel) in [(0, 1), (1, 1), (2, 2), (1, 3)] {
        running.open(node, channel).unwrap();
    }
    assert_eq!(running.open(1, 1), Err(Refused::Owned));
    for to in [1, 2] {
        running.connect(1, 0, to).unwrap();
    }
    running.settle(Span::from_ns(2_000_000_000));
    let mut peers = |node: usize, channel| {
        running.model.nodes[node].module.as_mut().unwrap().channel(channel).unwrap().peers()
    };
    assert_eq!([peers(0, 1), peers(1, 1), peers(2, 2), peers(1, 3)], [1, 1, 0, 0]);
    assert!(running.model.nodes[2].counters.frames_unclaimed > 0);
    assert_eq!(running.model.nodes[1].counters.frames_unclaimed, 0);
    running.audit().unwrap();
}

/// The dispatcher separates frames: the link layer handles HPCL's, the network layer TCP's. The
/// same nodes use both at once without disturbance.
// shows: H-02, H-03
#[test]
fn both_ways_at_once() {
    crate::limit::limited(|| {
        const ROUNDS: usize = 200;
        let mut running = Machine::new(&of(2), 3).unwrap();
        let program = |peer: u16| {
            let write = Call::Write { to: peer, bytes: 1000 };
            let read = Call::Read { from: peer, bytes: 1000 };
            let send = Call::Send { to: peer, bytes: 500 };
            [write, send, Call::Receive, read].repeat(ROUNDS)
        };
        running.begin([program(1), program(0)]);
        finish(&mut running);
        for node in 0..2 {
            let counted = running.counted(node);
            assert_eq!((counted.sent, counted.received), (2 * ROUNDS as u64, 2 * ROUNDS as u64));
            // Each message and its acknowledgement.
            assert_eq!(counted.frames_in_link_layer, 2 * ROUNDS as u64);
            assert!(counted.frames_to_network_layer >= ROUNDS as u64);
            assert_eq!(counted.frames_unclaimed, 0);
        }
    });
}

/// The module is loaded and unloaded while TCP runs. Without it HPCL's frames are unclaimed and its
/// memory is freed; TCP does not notice. Loaded again, it works as before.
// shows: H-03, H-05
#[test]
fn the_module_comes_and_goes() {
    crate::limit::limited(|| {
        let mut running = Machine::new(&of(2), 4).unwrap();
        let exchange = |running: &mut Machine, over| {
            running.begin(ping_pong(over, 100, 20));
            running.finish(MOST)
        };
        exchange(&mut running, Over::Hpcl).unwrap();
        let bytes = |running: &Machine| {
            running.model.nodes[1].module.as_ref().map_or(0, |module| module.bytes())
        };
        assert!(bytes(&running) > 0);
        running.unload(1);
        assert_eq!(bytes(&running), 0);
        running.connect(CHANNEL, 0, 1).unwrap();
        exchange(&mut running, Over::Tcp).unwrap();
        running.settle(Span::from_ns(3_000_000_000));
        assert!(running.model.nodes[1].counters.frames_unclaimed > 0);

        running.unload(0);
        for node in 0..2 {
            running.load(node);
            running.open(node, CHANNEL).unwrap();
        }
        running.connect(CHANNEL, 0, 1).unwrap();
        running.settle(Span::from_ns(3_000_000_000));
        exchange(&mut running, Over::Hpcl).unwrap();
        exchange(&mut running, Over::Tcp).unwrap();
    });
}

/// A frame captured at the switch is an Ethernet header, the complete protocol header, and the
/// message.
// shows: H-06
#[test]
fn a_caught_frame() {
    crate::limit::limited(|| {
        let mut running = Machine::new(&of(2), 5).unwrap();
        let caught = Rc::new(RefCell::new(Vec::<Frame>::new()));
        let net = caught.clone();
        running.model.switch.lose_if = Some(Box::new(move |frame| {
            net.borrow_mut().push(frame.clone());
            false
        }));
        running.begin(ping_pong(Over::Hpcl, 300, 1));
        finish(&mut running);
        let frames = caught.borrow();
        let data = |frame: &&Frame| match &frame.payload {
            Payload::Hpcl(bytes) => FrameHeader::parse(bytes).unwrap().kind == FrameKind::Data,
            Payload::Ip(_) => false,
        };
        let frame = frames.iter().find(data).expect("a message");
        assert_eq!((frame.from, frame.to), (0, 1));
        let Payload::Hpcl(bytes) = &frame.payload else { unreachable!("it is one of HPCL's") };
        let body = &bytes[HEADER_BYTES..bytes.len() - 4];
        let (section, rest) = Section::split(body).unwrap().expect("a section");
        assert_eq!((section.kind, rest.len()), (SectionKind::Requests, 0));
        let (words, header) = PacketWords::parse(section.bytes).unwrap().expect("a packet");
        assert_eq!((words.payload_bytes(), section.bytes.len() - header), (300, 300));
        assert_eq!(frame.memory_bytes(), ETHERNET_BYTES + FRAME_OVERHEAD_BYTES + 4 + header + 300);
        let ethernet = frame.ethernet_header();
        assert_eq!(ethernet[12..], ETHERTYPE.to_be_bytes());
        assert_ne!(ethernet[..6], ethernet[6..12]);
    });
}

/// The sender of a burst is never more than Nasy messages ahead of the receiver's acknowledgements,
/// for any Nasy. Each message in order brings one acknowledgement, and the window is the same at
/// the end.
// shows: H-12, H-13, H-19
#[test]
fn the_window() {
    for window in [1, 3, 8, 32] {
        let mut config = of(2);
        config.hpcl.window = window;
        let mut running = Machine::new(&config, 6).unwrap();
        let before = protocol(&mut running, 1);
        let (next, acknowledged) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(0)));
        let most = Rc::new(Cell::new(0));
        let (seen, told, ahead) = (next.clone(), acknowledged.clone(), most.clone());
        running.model.switch.lose_if = Some(Box::new(move |frame| {
            let Payload::Hpcl(bytes) = &frame.payload else { return false };
            let header = FrameHeader::parse(bytes).unwrap();
            match frame.from {
                0 if header.kind == FrameKind::Data => {
                    let first = seen.get().unwrap_or_else(|| {
                        told.set(header.sequence);
                        header.sequence
                    });
                    seen.set(Some(first));
                    let sent = header.sequence.wrapping_sub(told.get()) + 1;
                    ahead.set(ahead.get().max(sent));
                }
                1 if seen.get().is_some() => told.set(header.acknowledged),
                _ => {}
            }
            false
        }));
        running.begin(burst(Over::Hpcl, 200, 500));
        finish(&mut running);
        assert!(most.get() <= u32::from(window), "{} of {window}", most.get());
        assert!(window > 3 || most.get() == u32::from(window));
        let after = protocol(&mut running, 1);
        assert_eq!(after.frames_in_order - before.frames_in_order, 500);
        assert_eq!(after.acknowledgements_sent - before.acknowledgements_sent, 500);
        let module = running.model.nodes[0].module.as_mut().unwrap();
        let endpoint = &module.channel(CHANNEL).unwrap().endpoint;
        let peer = endpoint.peers().next().expect("a peer");
        assert_eq!(endpoint.window_frames(peer), u32::from(window));
    }
}

/// A burst of 40 messages; `lost` loses one frame, given the number of data frames so far.
fn burst_without(lost: impl Fn(&Frame, &FrameHeader, u32) -> bool + 'static) -> Machine {
    let mut running = Machine::new(&of(2), 7).unwrap();
    let mut frames = 0;
    let mut is_lost = false;
    running.model.switch.lose_if = Some(Box::new(move |frame| {
        let Payload::Hpcl(bytes) = &frame.payload else { return false };
        let header = FrameHeader::parse(bytes).unwrap();
        frames += u32::from(frame.from == 0 && header.kind == FrameKind::Data);
        let now = !is_lost && lost(frame, &header, frames);
        is_lost |= now;
        now
    }));
    running.begin(burst(Over::Hpcl, 400, 40));
    finish(&mut running);
    assert_eq!(running.model.switch.lost, 1);
    running
}

/// LOSE recovers a message lost in the middle, long before any timeout. The timeout recovers the
/// last message, and an acknowledgement if nothing follows. A message retransmitted for that reason
/// is delivered once.
// shows: H-14, H-17, H-18
#[test]
fn losses_are_made_good() {
    crate::limit::limited(|| {
        let mut middle = burst_without(|frame, _, sent| frame.from == 0 && sent == 20);
        assert_eq!(protocol(&mut middle, 0).timeouts, 0);
        assert!(protocol(&mut middle, 0).loses_received >= 1);
        assert!(protocol(&mut middle, 1).frames_dropped >= 1, "nothing early is kept");

        let mut last = burst_without(|frame, _, sent| frame.from == 0 && sent == 40);
        assert_eq!(protocol(&mut last, 0).timeouts, 1);

        let mut answer = burst_without(|frame, header, sent| {
            frame.from == 1 && sent == 40 && header.kind == FrameKind::Acknowledge
        });
        let sender = protocol(&mut answer, 0);
        assert!(sender.frames_resent <= 8);
        assert_eq!(answer.counted(1).received, 40);

        // After a single message, its acknowledgement is the only one.
        let mut running = Machine::new(&of(2), 8).unwrap();
        let mut is_lost = false;
        running.model.switch.lose_if = Some(Box::new(move |frame| {
            let lost = !is_lost && frame.from == 1;
            is_lost |= lost;
            lost
        }));
        running.begin([vec![Call::Send { to: 1, bytes: 64 }], vec![Call::Receive]]);
        finish(&mut running);
        assert_eq!(protocol(&mut running, 0).timeouts, 1);
        assert_eq!(protocol(&mut running, 1).frames_repeated, 1);
        assert_eq!(running.counted(1).received, 1);
    });
}

/// A receiver that computes lets its ring fill: the sender stops, nothing is lost, and it continues
/// when there is room. Everything also arrives with every twentieth frame lost, STOPs and GOs
/// included.
// shows: H-11, H-15, H-16, H-17
#[test]
fn stop_and_go() {
    for loss in [0.0, 0.05] {
        let mut config = of(2);
        config.hpcl.slots = 4;
        config.hpcl.credit = Bytes::new(4096);
        config.wire.loss = loss;
        let mut running = Machine::new(&config, 9).unwrap();
        let slow = [Call::Compute { time: Span::from_ns(200_000) }, Call::Receive];
        running.begin([vec![Call::Send { to: 1, bytes: 1000 }; 200], slow.repeat(200)]);
        finish(&mut running);
        let sender = protocol(&mut running, 0);
        assert!(sender.stops > 0 && sender.gos > 0, "{sender:?}");
        assert_eq!(running.counted(1).received, 200);
        assert!(running.counted(1).copies_kept > 0);
        assert_eq!(sender.timeouts > 0, loss > 0.0);
        let module = running.model.nodes[1].module.as_mut().unwrap();
        assert!(module.channel(CHANNEL).unwrap().most_waiting() <= 5);
    }
}

/// Fifteen nodes send to one, over a switch whose ports hold three frames: many are dropped, and
/// all messages arrive whole and in order.
// shows: H-11, H-30
#[test]
fn a_switch_that_drops() {
    let mut config = of(16);
    config.wire.port_buffer = Bytes::new(4096);
    let mut running = Machine::new(&config, 10).unwrap();
    let sends = vec![Call::Send { to: 0, bytes: 1196 }; 20];
    let receives = vec![Call::Receive; 15 * 20];
    running.begin([vec![receives], vec![sends; 15]].concat());
    finish(&mut running);
    assert!(running.model.switch.dropped > 0);
    assert_eq!(running.counted(0).received, 15 * 20);
}

/// The first message to arrive is received first, from any sender. A node that waits for two others
/// gets the early one's message while the late one still computes.
// shows: H-23
#[test]
fn one_wait_for_all_peers() {
    let mut running = Machine::new(&of(3), 11).unwrap();
    let late = Call::Compute { time: Span::from_ns(5_000_000) };
    let send = Call::Send { to: 0, bytes: 50 };
    running.begin([vec![Call::Receive; 2], vec![late, send], vec![send]]);
    finish(&mut running);
    let (began, returned) = running.returned(0);
    assert!(returned[0] < began + Span::from_ns(1_000_000));
    assert!(returned[1] > began + Span::from_ns(5_000_000));
}

/// The same seed gives the same history, another seed another.
#[test]
fn the_same_seed_gives_the_same_history() {
    let run = |seed| {
        let mut config = of(5);
        config.wire.loss = 0.02;
        let mut running = Machine::new(&config, seed).unwrap();
        running.begin(all_to_all(5, 700, 10));
        finish(&mut running);
        running.schedule.trace_hash()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// The cost of 300 more bytes from a write to the far NIC, to the picosecond. It is one copy with
/// checksum, one read over the bus, and two lines, because the switch stores and forwards.
#[test]
fn bytes_cost_what_each_stage_says() {
    let arrival = |bytes: u32| {
        let config = of(2);
        let mut running = Machine::bare(&config, 12).unwrap();
        running.begin([vec![Call::Write { to: 1, bytes }], vec![Call::Read { from: 0, bytes }]]);
        while running.model.nodes[1].nic.received == 0 {
            assert!(running.step(Time::NEVER));
        }
        running.schedule.now()
    };
    let config = Config::paper();
    let lines = Span::from_ns(8) * 300 * 2;
    // 154 and 454 bytes in memory.
    let bus = config.pci.clock.period() * (454u64.div_ceil(8) - 154u64.div_ceil(8));
    let copy = config.host.copy_and_sum(400) - config.host.copy_and_sum(100);
    assert_eq!(arrival(400) - arrival(100), lines + bus + copy);
}

/// A window of w carries at most w times the load of a window of 1, more never carries less, and
/// enough fills the line.
#[test]
fn a_window_is_a_credit_loop() {
    let carried = |window| {
        let mut config = of(2);
        config.hpcl.window = window;
        bandwidth(&config, Over::Hpcl, 1196, 1).unwrap()
    };
    let one = carried(1).bytes_per_second;
    let mut last = one;
    for window in [2, 3, 4, 8, 16] {
        let now = carried(window);
        assert!(now.bytes_per_second <= 1.05 * f64::from(window) * one);
        assert!(now.bytes_per_second >= 0.99 * last);
        last = now.bytes_per_second;
    }
    assert!(carried(16).line > 0.95);
}

/// If everything is twice as slow, every time doubles.
#[test]
fn doubling_every_time_doubles_the_result() {
    let fast = of(2);
    let mut slow = fast.clone();
    let half = |rate: Rate| Rate::from_bytes_per_second(rate.bytes_per_second() / 2);
    slow.wire.rate = half(slow.wire.rate);
    slow.host.copy_rate = half(slow.host.copy_rate);
    slow.host.checksum_rate = half(slow.host.checksum_rate);
    slow.pci.clock = "33 MHz".parse().unwrap();
    for span in [
        &mut slow.wire.cable,
        &mut slow.wire.switch_delay,
        &mut slow.nic.interrupt_gap,
        &mut slow.host.driver_frame,
        &mut slow.host.system_call,
        &mut slow.host.system_call_spread,
        &mut slow.host.interrupt,
        &mut slow.host.soft_interrupt,
        &mut slow.host.queue_frame,
        &mut slow.host.wake_up,
        &mut slow.host.context_switch,
        &mut slow.host.allocation,
        &mut slow.host.copy_start,
        &mut slow.hpcl.protocol,
        &mut slow.hpcl.library,
        &mut slow.hpcl.check,
        &mut slow.tcp.input,
        &mut slow.tcp.output,
        &mut slow.tcp.socket,
        &mut slow.tcp.delayed,
    ] {
        *span = *span * 2;
    }
    for over in [Over::Hpcl, Over::Tcp] {
        let [fast, slow] =
            [&fast, &slow].map(|config| round_trip(config, over, 128, 1).unwrap().us);
        assert!((slow / fast / 2.0 - 1.0).abs() < 0.01, "{over:?}: {fast} {slow}");
    }
}

/// Canaries: the audit finds a frame lost in the switch, a buffer that the driver never gets back,
/// a message lost from a ring, and an extra copy.
#[test]
fn planted_faults_are_caught() {
    crate::limit::limited(|| {
        let found = |plant: &mut dyn FnMut(&mut Machine) -> bool, law: &str| {
            let mut running = Machine::new(&of(3), 13).unwrap();
            let sends = |to| vec![Call::Send { to, bytes: 1400 }; 100];
            let receives =
                [Call::Compute { time: Span::from_ns(50_000) }, Call::Receive].repeat(200);
            running.begin([receives, sends(0), sends(0)]);
            while !plant(&mut running) {
                running.audit().unwrap();
                assert!(running.step(Time::NEVER));
            }
            running.settle(Span::from_ns(1_000));
            let error = running.audit().expect_err(law);
            assert!(error.to_string().contains(law), "{error}");
        };
        found(&mut |running| running.model.switch.forget_one(), "found there");
        found(
            &mut |running| {
                running.model.nodes[0].nic.forget_a_buffer();
                true
            },
            "do not make the ring",
        );
        found(
            &mut |running| {
                let module = running.model.nodes[0].module.as_mut().unwrap();
                module.channel(CHANNEL).unwrap().forget_one()
            },
            "found there",
        );
        found(
            &mut |running| {
                running.model.nodes[1].counters.copies_from_user += 1;
                true
            },
            "no copy between user and kernel",
        );
        found(
            &mut |running| {
                running.model.nodes[0].counters.copies_to_ring += 1;
                true
            },
            "one copy into the ring",
        );
    });
}

/// With dynamic buffers each message is copied three times and needs two allocated buffers, sender
/// and receiver together. With fixed buffers it is copied once. The counters confirm it after any
/// traffic.
// shows: H-21, B-25
#[test]
fn copies_are_counted() {
    for (buffers, copies, made) in [(Buffers::Fixed, 1, 0), (Buffers::Dynamic, 3, 2)] {
        let mut config = of(4);
        config.hpcl.buffers = buffers;
        let mut running = Machine::new(&config, 14).unwrap();
        running.begin(all_to_all(4, 900, 10));
        finish(&mut running);
        for node in 0..4 {
            let counted = running.counted(node);
            let all = counted.copies_from_user + counted.copies_to_ring + counted.copies_to_user;
            assert_eq!(all, copies * counted.received);
            assert_eq!(counted.allocations, made * counted.received);
            assert_eq!(counted.bytes_copied, copies * counted.received * 900);
        }
    }
}

/// Impossible parameters are refused with the remedy, a lost TCP segment voids the run with a
/// report, and deadlocked programs are named.
#[test]
fn what_cannot_be_is_told() {
    let text = bellwire_model::hpcl::config::CLUSTER;
    for (from, to, says) in [
        ("nodes = 16", "nodes = 40", "2..=24"),
        ("window = 8", "window = 0", "1..=1024"),
        ("credit = \"16 KiB\"", "credit = \"5 KiB\"", "a power of two"),
        ("tick = \"10 ms\"", "tick = \"10\"", "no unit"),
        ("slots = 64", "slot = 64", "unknown field `slot`"),
    ] {
        let error = Config::read(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(says), "{error}");
    }
    let mut running = Machine::new(&of(2), 15).unwrap();
    let mut frames = 0;
    running.model.switch.lose_if = Some(Box::new(move |_| {
        frames += 1;
        frames == 3
    }));
    running.begin(burst(Over::Tcp, 1000, 50));
    let error = running.finish(Span::from_ns(1_000_000_000)).unwrap_err();
    assert!(error.contains("does not send again"), "{error}");
    let mut running = Machine::new(&of(2), 16).unwrap();
    running.begin([vec![Call::Receive], vec![Call::Receive]]);
    let error = running.finish(Span::from_ns(1_000_000)).unwrap_err();
    assert!(error.contains("node 0 in call 1 of 1: Receive"), "{error}");
}

/// One message of 100 B, or one write, over an idle cluster whose system calls all take the same
/// time.
fn one(change: fn(&mut Config), calls: [Vec<Call>; 2]) -> Machine {
    let mut config = of(2);
    config.host.system_call_spread = Span::ZERO;
    change(&mut config);
    let mut running = Machine::new(&config, 17).unwrap();
    running.settle(Span::from_ns(1_000_000_000));
    running.begin(calls);
    running.settle(Span::from_ns(1_000_000_000));
    running
}

/// All that two nodes count for one message of 100 B. Its frame and the two acknowledgements come
/// by interrupt or to a reaping process, which calls again after each reap. The sender's call takes
/// library (50), system call (450), protocol (400) and driver (700); with dynamic buffers an
/// allocation (300) and a copy (100 and 83.334) besides. A write takes the socket layer (400), a
/// copy with checksum (100, 83.334 and 50), and TCP's output (1200) instead of the protocol.
#[test]
fn all_that_happens_is_counted() {
    crate::limit::limited(|| {
        let message = || [vec![Call::Send { to: 1, bytes: 100 }], vec![Call::Receive]];
        let (to, from, bytes) = (1, 0, 100);
        let stream = || [vec![Call::Write { to, bytes }], vec![Call::Read { from, bytes }]];
        let counters = Counted::default;
        let hpcl = [
            Counted {
                system_calls: 1,
                interrupts: 3,
                frames_by_interrupt: 2,
                frames_in_link_layer: 2,
                sent: 1,
                network_buffers: 2,
                ..counters()
            },
            Counted {
                system_calls: 8,
                interrupts: 2,
                reaps: 8,
                frames_reaped: 1,
                frames_by_interrupt: 1,
                frames_in_link_layer: 2,
                received: 1,
                copies_to_ring: 1,
                bytes_copied: 100,
                network_buffers: 2,
                looks: 16,
                checks: 16,
                ..counters()
            },
        ];
        let dynamic = [
            Counted { copies_from_user: 1, bytes_copied: 100, allocations: 1, ..hpcl[0] },
            Counted { copies_to_user: 1, bytes_copied: 200, allocations: 1, ..hpcl[1] },
        ];
        let interrupted = [
            hpcl[0],
            Counted {
                system_calls: 1,
                interrupts: 3,
                reaps: 0,
                frames_reaped: 0,
                frames_by_interrupt: 2,
                wake_ups: 1,
                looks: 2,
                checks: 2,
                ..hpcl[1]
            },
        ];
        let soft = |it, system_calls, soft_interrupts| Counted {
            system_calls,
            soft_interrupts,
            frames_by_soft_interrupt: 2,
            frames_in_link_layer: 0,
            ..it
        };
        let tcp = Counted {
            system_calls: 1,
            interrupts: 5,
            frames_by_interrupt: 3,
            soft_interrupts: 1,
            frames_in_link_layer: 2,
            frames_to_network_layer: 1,
            bytes_copied: 100,
            network_buffers: 3,
            ..counters()
        };
        let written = [
            Counted { sent: 1, copies_from_user: 1, segments_sent: 1, ..tcp },
            Counted {
                received: 1,
                copies_to_user: 1,
                wake_ups: 1,
                acknowledgements_sent: 1,
                ..tcp
            },
        ];
        let plain: fn(&mut Config) = |_| {};
        for (change, calls, sender_ps, expected) in [
            (plain, message(), 1_600_000, hpcl),
            (|it| it.hpcl.buffers = Buffers::Dynamic, message(), 2_083_334, dynamic),
            (|it| it.hpcl.receive = Receive::Interrupt, message(), 1_600_000, interrupted),
            (
                |it| it.hpcl.hand_over = HandOver::SoftInterrupt,
                message(),
                1_600_000,
                [soft(hpcl[0], 1, 1), soft(hpcl[1], 9, 2)],
            ),
            (plain, stream(), 3_033_334, written),
        ] {
            let running = one(change, calls);
            let (began, returned) = running.returned(0);
            assert_eq!(returned, [began + Span::from_ps(sender_ps)]);
            assert!(running.model.nodes[0].busy() > Span::from_ps(sender_ps));
            assert_eq!([0, 1].map(|node| running.counted(node)), expected);
        }
    });
}

/// A ring for all peers has 64 slots of a frame, and one for each of four nodes four times as
/// many. Beside them stand 8 send buffers, in a power of two of bytes.
#[test]
fn a_mapping_has_its_rings_and_buffers() {
    for (rings, count) in [(Rings::Channel, 1), (Rings::Connection, 4)] {
        let mut config = of(4);
        config.hpcl.rings = rings;
        let mut running = Machine::bare(&config, 18).unwrap();
        running.load(0);
        let mapping = running.open(0, CHANNEL).unwrap();
        let bytes = u64::from(count) * 64 * 1500 + 16_384;
        assert_eq!((mapping.rings, mapping.bytes), (count, bytes));
        assert_eq!(running.model.nodes[0].module.as_ref().unwrap().bytes(), bytes);
    }
    assert_eq!([&[0, 0, 7][..], &[]].map(Module::number_of), [7, 0]);
}

/// With a ring for each connection, a poll looks at those of lower nodes first. Messages of two
/// nodes wait in their own rings, and the peak is the sum of both.
#[test]
fn a_poll_looks_at_rings_in_order() {
    crate::limit::limited(|| {
        for (rings, found, none) in [(Rings::Channel, 1, 1), (Rings::Connection, 3, 4)] {
            let mut config = of(4);
            (config.hpcl.rings, config.host.system_call_spread) = (rings, Span::ZERO);
            let mut running = Machine::new(&config, 19).unwrap();
            let send = Call::Send { to: 0, bytes: 50 };
            running.begin([vec![], vec![], vec![send; 2], vec![send]]);
            let channel = |running: &mut Machine| -> (bool, u64) {
                running.model.nodes[0].module.as_mut().unwrap().channel(CHANNEL).unwrap().poll()
            };
            assert_eq!(channel(&mut running), (false, none));
            finish_without_receiving(&mut running);
            assert_eq!(channel(&mut running), (true, found));
            let module = running.model.nodes[0].module.as_mut().unwrap();
            assert_eq!(module.channel(CHANNEL).unwrap().most_waiting(), 3);
            // A look at a ring takes 60 ns.
            running.begin([vec![Call::Receive], vec![], vec![], vec![]]);
            running.finish(MOST).unwrap();
            let (began, returned) = running.returned(0);
            assert_eq!(returned, [began + Span::from_ns(50 + 450 + 60 * found)]);
        }
    });
}

/// A call without the module ends its program, and the run says why.
#[test]
fn a_call_without_the_module_ends_the_program() {
    crate::limit::limited(|| {
        let mut running = Machine::bare(&of(2), 24).unwrap();
        running.begin([vec![Call::Send { to: 1, bytes: 8 }; 2], vec![]]);
        let error = running.finish(MOST).unwrap_err();
        assert_eq!(error, format!("node 0: {}", Refused::NoModule));
        assert!(running.returned(0).1.is_empty());
    });
}

fn finish_without_receiving(running: &mut Machine) {
    running.finish(MOST).unwrap();
    running.settle(Span::from_ns(500_000_000));
    running.audit().unwrap();
}

/// A message waits for its acknowledgement, is accounted for meanwhile, and has a deadline later
/// than now. Without one there is no deadline in the past.
#[test]
fn unacknowledged_messages_are_accounted_for() {
    let mut pair = Pair::new(&of(2));
    let later = Time::ZERO + Span::from_ns(1_000);
    assert_eq!(pair.end(0).unacknowledged(1), 0);
    pair.end(0).send(1, b"one").unwrap();
    pair.end(0).send(1, b"two").unwrap();
    assert_eq!((pair.end(0).unacknowledged(1), pair.end(0).unacknowledged(3)), (2, 0));
    while pair.end(0).transmit(later).is_some() {}
    assert!(pair.end(0).deadline().unwrap() > later);
    pair.end(0).audit(later).unwrap();
}

/// System calls take up to half of the spread more or less: within 100 ns of the mean, and all over
/// that range. The rest of a send takes 1150 ns.
#[test]
fn system_calls_spread() {
    let mut config = of(2);
    config.host.system_call_spread = Span::from_ns(200);
    let took = |seed| {
        let mut running = Machine::new(&config, seed).unwrap();
        running.settle(Span::from_ns(1_000_000_000));
        running.begin([vec![Call::Send { to: 1, bytes: 8 }], vec![]]);
        running.finish(MOST).unwrap();
        let (began, returned) = running.returned(0);
        (returned[0] - began).ps() / 1_000
    };
    let took: Vec<u64> = (0..24).map(took).collect();
    assert!(took.iter().all(|ns| (1_500..=1_700).contains(ns)), "{took:?}");
    assert!(took.iter().any(|ns| *ns < 1_540) && took.iter().any(|ns| *ns > 1_660), "{took:?}");
}

/// A sender with a window of one sleeps until each acknowledgement, a writer until a third of its
/// buffer is free, and a reader until something has come.
#[test]
fn processes_sleep_until_it_is_their_turn() {
    crate::limit::limited(|| {
        let mut config = of(2);
        (config.hpcl.window, config.hpcl.receive) = (1, Receive::Interrupt);
        let mut running = Machine::new(&config, 21).unwrap();
        running.begin([vec![Call::Send { to: 1, bytes: 100 }; 4], vec![Call::Receive; 4]]);
        finish(&mut running);
        assert_eq!((running.counted(0).wake_ups, running.counted(0).sent), (3, 4));
        let mut running = Machine::new(&of(2), 22).unwrap();
        let bytes = 400_000;
        let late = Call::Compute { time: Span::from_ns(1_000_000) };
        let read = Call::Read { from: 0, bytes };
        running.begin([vec![Call::Write { to: 1, bytes }], vec![late, read]]);
        running.finish(MOST).unwrap();
        let [writer, reader] = [0, 1].map(|node| running.counted(node));
        // Each wake-up brings a copy, and each but the first is of a third at least.
        assert_eq!((writer.copies_from_user, writer.system_calls), (writer.wake_ups + 1, 1));
        let thirds = (400_000 - 65_536) / (65_536 / 3) + 1;
        assert!((7..=1 + thirds).contains(&writer.copies_from_user), "{writer:?}");
        assert_eq!(reader.copies_to_user, reader.wake_ups + 1);
        assert_eq!(reader.system_calls, reader.copies_to_user);
        assert_eq!((writer.bytes_copied, reader.bytes_copied), (400_000, 400_000));
    });
}

/// With fixed buffers a message goes from two places, header and data: its descriptors take two
/// cycles of the bus more than one of a copy in dynamic buffers. That copy takes an allocation
/// (300) and its own time (100 and 83.334).
#[test]
fn a_message_in_place_has_two_descriptors() {
    let arrival = |buffers| {
        let mut config = of(2);
        (config.host.system_call_spread, config.hpcl.buffers) = (Span::ZERO, buffers);
        let mut running = Machine::new(&config, 23).unwrap();
        running.settle(Span::from_ns(1_000_000_000));
        let (before, began) = (running.model.nodes[1].nic.received, running.now());
        running.begin([vec![Call::Send { to: 1, bytes: 100 }], vec![]]);
        while running.model.nodes[1].nic.received == before {
            assert!(running.step(Time::NEVER));
        }
        running.now() - began
    };
    let cycles = Config::paper().pci.clock.period() * 2;
    let copied = Span::from_ps(300_000 + 183_334);
    assert_eq!(arrival(Buffers::Fixed) + copied, arrival(Buffers::Dynamic) + cycles);
}

/// A frame that finds no descriptors is counted, and sent again. A message in place takes both of
/// them, so that of four messages at once only the first is posted.
#[test]
fn a_full_transmit_ring_loses_frames() {
    crate::limit::limited(|| {
        let send = Call::Send { to: 1, bytes: 100 };
        let calls = [vec![send; 4], vec![Call::Receive; 4]];
        let running = one(|config| config.nic.transmit_descriptors = 2, calls);
        let [sender, receiver] = [0, 1].map(|node: usize| &running.model.nodes[node].counters);
        assert!(sender.frames_not_posted > 0);
        assert_eq!((sender.sent, receiver.received), (4, 4));
    });
}

/// A peer that never answers is gone: its link ends, and what waited for it has failed.
#[test]
fn a_silent_peer_is_gone() {
    crate::limit::limited(|| {
        let mut pair = Pair::new(&of(2));
        pair.end(0).send(1, b"lost").unwrap();
        let mut now = Time::ZERO;
        for _ in 0..500 {
            while pair.end(0).transmit(now).is_some() {}
            let Some(due) = pair.end(0).deadline() else { break };
            now = now.max(due);
        }
        // The news is read with the next frame, whatever it is.
        let frame = Frame { from: 1, to: 0, payload: Payload::Hpcl(vec![0; 64].into()) };
        pair.end(0).handle(&frame, now);
        assert_eq!(pair.end(0).send(1, b"more"), Err(Refused::NoPeer));
        assert_eq!(pair.end(0).endpoint.counters().packets_failed, 1);
        pair.end(0).audit(now).unwrap();
    });
}
