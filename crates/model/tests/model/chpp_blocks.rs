//! Blocks of the modelled cHPP interface, under load and at their limits.

use crate::chpp_records::read_capture;
use crate::oracle::{Traffic, random_traffic};
use crate::support;
use bellwire_model::chpp::config::{Arbitration, LinkKind, Start};
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post, post_free};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::record::frames::capture;
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::engine::{Policy, Standstill};
use bellwire_model::stats::Watched;
use bellwire_model::units::{Span, Time};
use bellwire_wire::descriptor::DescriptorRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Entry;
use bellwire_wire::event::Status;
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

/// Random traffic of all primitives among all queue pairs is byte-exact, with memory that answers
/// out of order. Each operation gives one send event and one receive event, both sides' counters
/// agree, and Little's law holds on all queues. Canary: an oracle with one wrong byte per operation
/// notices.
// shows: C-04, C-13, C-35, C-37
#[test]
fn random_traffic_is_byte_exact() {
    let mut config = Config::prototype();
    config.host.memory_jitter = Span::from_ns(400);
    for seed in 0..3 {
        let (machine, traffic) = random_traffic(&config, seed, 1500, false);
        assert_eq!((traffic.checked, traffic.mismatches), (1500, 0));
        assert!(traffic.sent.len() == 1500 && traffic.sent.values().all(|events| *events == 1));
        let sum = |count: fn(&bellwire_model::chpp::node::Node) -> u64| {
            machine.nodes().iter().map(count).sum::<u64>()
        };
        let received = sum(|node| {
            node.receiver.counters.naps + node.receiver.counters.puts + node.receiver.counters.gets
        });
        assert_eq!(sum(|node| node.packer.packets), received);
        assert_eq!(sum(|node| node.packer.bytes), sum(|node| node.receiver.counters.bytes));
        assert_eq!(machine.crossbar().crossed.iter().sum::<u64>(), received);
        assert_eq!(
            sum(|node| node.doorbells.overflowed
                + node.receiver.counters.unknown
                + node.receiver.counters.refused),
            0
        );
        assert!(sum(|node| node.data.counters.early) > 100, "completions overtake each other");
        machine.audit().unwrap();
    }
    let (_, traffic) = random_traffic(&config, 0, 200, true);
    assert!(traffic.mismatches > 150);
}

/// The same random traffic is byte-exact in every setting: descriptors stored into the engine by
/// several processors (which then reads none from memory), longer headers, and conversion between
/// protocols.
// shows: B-01, B-04, B-05
#[test]
fn settings_change_times_and_no_bytes() {
    crate::limit::limited(|| {
        let set = |change: fn(&mut Config)| {
            let mut config = Config::prototype();
            config.host.processors = 4;
            change(&mut config);
            let (machine, traffic) = random_traffic(&config, 11, 400, false);
            assert_eq!((traffic.checked, traffic.mismatches), (400, 0));
            machine.audit().unwrap();
            let reads: u64 = machine.nodes().iter().map(|node| node.port.reads_sent[0]).sum();
            (machine.now(), reads)
        };
        let (plain, reads) = set(|_| {});
        assert!(reads >= 400);
        assert_eq!(set(|config| config.nic.submission = Start::Descriptor).1, 0);
        assert_ne!(set(|config| config.nic.packet_header = "94 B".parse().unwrap()).0, plain);
        assert_ne!(set(|config| config.nic.conversion = true).0, plain);
    });
}

/// The same configuration and seed give the same trace hash; another seed gives another.
#[test]
fn a_seed_fixes_the_run() {
    let config = Config::prototype();
    let hash = |seed| random_traffic(&config, seed, 300, false).0.trace_hash();
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

/// Halved clocks double every time: a NAP takes twice as long when cycle, wires, memory and
/// processor do.
#[test]
fn time_scales_with_the_clocks() {
    let config = Config::prototype();
    let mut slow = config.clone();
    slow.nic.clock = "125 MHz".parse().unwrap();
    slow.pcie.transfer_rate = "2500 MHz".parse().unwrap();
    slow.pcie.latency = config.pcie.latency * 2;
    slow.host.cpu_start = config.host.cpu_start * 2;
    slow.host.memory_latency = config.host.memory_latency * 2;
    slow.host.memory_rate = "6.4 GB/s".parse().unwrap();
    for kind in Kind::ALL {
        let at = |config| {
            bellwire_model::chpp::experiments::single::single(config, kind, 777).unwrap().latency
        };
        assert_eq!(at(&slow), at(&config) * 2, "{kind:?}");
        // Canary: a single unchanged time is noticed.
        let mut forgotten = slow.clone();
        forgotten.pcie.latency = config.pcie.latency;
        assert_ne!(at(&forgotten), at(&config) * 2, "{kind:?}");
    }
}

/// GETs in both directions deadlock when GET packets share the PUTs' channel, and the report names
/// the cycle of waits. With a channel of their own the same load completes with the right bytes.
// shows: C-26, C-27, B-02
#[test]
fn opposing_gets_need_their_own_channel() {
    let mut config = Config::prototype();
    config.crossbar.ports = 2;
    config.crossbar.channels = 1;
    config.crossbar.channel_packets = 4;
    let run = |get_channel: bool| {
        let mut config = config.clone();
        config.crossbar.get_channel = get_channel;
        let mut machine = Machine::new(&config, 1).unwrap();
        let mut api = machine.api();
        for node in [0u8, 1] {
            let source = api.free_memory(usize::from(1 - node), 0);
            api.memory_mut(source, 4096).unwrap().fill(0x70 + node);
        }
        for at in 0..32 {
            for node in [0u8, 1] {
                let ends = (endpoint(node), endpoint(1 - node));
                let near = api.free_memory(node.into(), 0) + 8192 + at * 4096;
                let far = api.free_memory((1 - node).into(), 0);
                post(&mut api, Kind::Get, ends, (near, far), 4096).unwrap();
            }
        }
        let outcome = machine.run_to_end(&mut ());
        (machine, outcome)
    };
    let (_, outcome) = run(false);
    let Err(Standstill::Deadlock(cycle)) = outcome else { panic!("no deadlock: {outcome:?}") };
    let told = cycle.to_string();
    assert!(told.contains("receive buffer") && told.contains("room for a packet"), "{told}");
    let (mut machine, outcome) = run(true);
    outcome.unwrap();
    let api = machine.api();
    for node in [0u8, 1] {
        let near = api.free_memory(node.into(), 0) + 8192;
        assert!(api.memory(near, 32 * 4096).unwrap().iter().all(|byte| *byte == 0x70 + node));
    }
}

/// A packet with a wrong key changes no memory, raises no event, and is counted. So is one for a
/// missing queue pair, and one of an unknown type. The right key passes.
// shows: C-09, C-37
#[test]
fn wrong_keys_and_unknown_types_are_dropped() {
    let mut config = Config::prototype();
    (config.nic.functions, config.nic.queue_pairs) = (4, 2);
    let mut machine = Machine::new(&config, 1).unwrap();
    let mut api = machine.api();
    let target = api.free_memory(1, 0);
    let right = api.key(endpoint(1));
    // That of the queue pair behind the last one of function 0.
    let next = api.key(Endpoint::new(1, 1, 0).unwrap());
    let packet = |magic: u8, destination: Endpoint| {
        let header = HeaderRepr {
            primitive: Primitive::Put,
            traffic_class: 0,
            requester_id: 0,
            magic,
            source: endpoint(0),
            destination,
            wants_event: true,
            span: ByteSpan::new(target, 8).unwrap(),
        };
        let packet = PacketRepr { header, payload: b"intruder", tail: Tail::EMPTY };
        let mut bytes = vec![0; packet.buffer_len()];
        packet.emit(&mut bytes).unwrap();
        bytes
    };
    assert!(api.inject(0, 1, &packet(right ^ 0x80, endpoint(1))));
    assert!(api.inject(0, 1, &packet(right, Endpoint::new(1, 7, 0).unwrap())));
    assert!(api.inject(0, 1, &packet(right, Endpoint::new(1, 4, 0).unwrap())));
    assert!(api.inject(0, 1, &packet(next, Endpoint::new(1, 0, 2).unwrap())));
    let mut unknown = packet(right, endpoint(1));
    unknown[2] = 0x10;
    assert!(api.inject(0, 1, &unknown));
    machine.run_to_end(&mut ()).unwrap();
    let counters = machine.nodes()[1].receiver.counters;
    assert_eq!((counters.refused, counters.unknown, counters.events, counters.bytes), (4, 1, 0, 0));
    assert_eq!(machine.api().memory(target, 8).unwrap(), [0; 8]);
}

/// A PUT without data has its event. A GET whose descriptor makes no sense is counted where it
/// comes, and not answered.
#[test]
fn packets_without_data_pass() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    let mut api = machine.api();
    let magic = api.key(endpoint(1));
    api.post(0, 0, &support::put((endpoint(1), magic), &[], &[])).unwrap();
    let mut notices: Vec<Notice> = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    let rings: Vec<RingKind> = notices.iter().map(|notice| notice.ring).collect();
    assert!(rings.contains(&RingKind::Receive) && rings.len() == 2, "{rings:?}");
    assert!(notices.iter().all(|notice| notice.event.status == Status::Success));

    let header = HeaderRepr {
        primitive: Primitive::Get,
        traffic_class: 0,
        requester_id: 0,
        magic,
        source: endpoint(0),
        destination: endpoint(1),
        wants_event: false,
        span: ByteSpan::new(0, 16).unwrap(),
    };
    let packet = PacketRepr { header, payload: &[0xff; 16], tail: Tail::EMPTY };
    let mut bytes = vec![0; packet.buffer_len()];
    packet.emit(&mut bytes).unwrap();
    assert!(machine.api().inject(0, 1, &bytes));
    machine.run_to_end(&mut notices).unwrap();
    let counters = machine.nodes()[1].descriptors.counters;
    assert_eq!((counters.refused, counters.remote_gets, notices.len()), (1, 0, 2));
}

/// A function cannot reach another's descriptors, sources or targets. Each attempt ends with an
/// error or a count and changes nothing in the other function.
// shows: C-39
#[test]
fn functions_are_isolated() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    let mut api = machine.api();
    let (own, foreign) = (api.free_memory(0, 1), api.free_memory(0, 2));
    api.memory_mut(foreign, 64).unwrap().fill(0x99);
    let to = Endpoint::new(1, 1, 0).unwrap();
    let (target, other_target) = (api.free_memory(1, 1), api.free_memory(1, 2));
    let magic = api.key(to);
    let mut put = |from: u64, to_address: u64| {
        let sources = [Entry { address: from, length: 64 }];
        let destinations = [Entry { address: to_address, length: 64 }];
        let descriptor = support::put((to, magic), &sources, &destinations);
        api.post(0, 1, &descriptor).unwrap();
    };
    put(foreign, target);
    put(own, other_target);
    let mut notices: Vec<Notice> = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    assert!(notices.iter().all(|notice| notice.ring == RingKind::Send));
    let mut errors: Vec<Status> = notices.iter().map(|notice| notice.event.status).collect();
    // The second was sent: only its receiver can count that it arrived nowhere.
    errors.sort_by_key(|status| status.code());
    assert_eq!(errors, [Status::Success, Status::SourceFault]);
    assert_eq!(machine.nodes()[0].descriptors.counters.refused, 1);
    assert_eq!(machine.nodes()[1].receiver.counters.outside, 1);
    let api = machine.api();
    assert!(
        api.memory(target, 64)
            .unwrap()
            .iter()
            .chain(api.memory(other_target, 64).unwrap())
            .all(|byte| *byte == 0)
    );
}

/// Size of a NAP slot (C-19).
const SLOT_BYTES: u64 = 2048;

/// Slots outside of the window that are listed: two times as many as the chip holds, so that none
/// is left until more are read.
const OUTSIDE: usize = 64;

/// The prototype with lists that have room for them.
fn many_slots() -> Config {
    let mut config = Config::prototype();
    config.host.slots = 128;
    config
}

/// Sends NAPs to a function whose software lists slots outside of its window: one of another
/// function, the first one behind its window, and one of another node, in turn. It lists the last
/// slot of its window, too. Returns how many were passed over, the events, and whether the next
/// function's window has changed.
fn naps_for_listed_slots() -> (u64, Vec<Notice>, bool) {
    let mut machine = Machine::new(&many_slots(), 1).unwrap();
    let layouts = &machine.nodes()[1].layouts;
    let (own, other) = (layouts[1].clone(), layouts[2].clone());
    let end = own.base + own.length;
    let mut api = machine.api();
    let outside = [other.queue_pairs[0].slots, end, api.free_memory(2, 1)];
    // The first 32 are on the chip from the beginning.
    let outside = outside.into_iter().cycle().take(OUTSIDE);
    for (at, slot) in (33_u64..).zip(outside.chain([end - SLOT_BYTES])) {
        let entry = api.memory_mut(own.queue_pairs[0].slot_list + 8 * at, 8).unwrap();
        entry.copy_from_slice(&slot.to_le_bytes());
    }
    let source = api.free_memory(0, 0);
    api.memory_mut(source, 100).unwrap().fill(0x5a);
    let window = |machine: &mut Machine| {
        machine.api().memory(other.base, other.length as usize).unwrap().to_vec()
    };
    for _ in 0..64 {
        let ends = (endpoint(0), Endpoint::new(1, 1, 0).unwrap());
        post_free(&mut api, Kind::NapIndirect, ends, 100).unwrap();
    }
    let before = window(&mut machine);
    let mut notices: Vec<Notice> = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    machine.audit().unwrap();
    notices.retain(|notice| notice.ring == RingKind::Receive);
    let has_changed = window(&mut machine) != before;
    (machine.nodes()[1].receiver.counters.outside_slots, notices, has_changed)
}

/// Slots outside of the window of their function are passed over and counted. No NAP is lost, and
/// all of them lie in the window, also at its very end.
// shows: C-39
#[test]
fn listed_slots_reach_no_other_function() {
    let (outside, notices, has_changed) = naps_for_listed_slots();
    assert_eq!((outside, notices.len(), has_changed), (OUTSIDE as u64, 64, false));
    let machine = Machine::new(&many_slots(), 1).unwrap();
    let own = &machine.nodes()[1].layouts[1];
    let slots = || notices.iter().map(|notice| notice.event.address);
    assert!(slots().all(|slot| own.holds(slot, SLOT_BYTES)));
    assert!(slots().any(|slot| slot == own.base + own.length - SLOT_BYTES));
}

/// Canary: where nobody looks at slots, a NAP writes into the window of another function.
#[cfg(feature = "canaries")]
#[test]
fn slots_that_nobody_looks_at_reach_other_functions() {
    let _planted = bellwire_protocol::canary::plant("chpp-slot-unchecked");
    let (outside, notices, has_changed) = naps_for_listed_slots();
    assert_eq!((outside, notices.len(), has_changed), (0, 64, true));
}

/// How many events of receive rings there are.
fn received(notices: &[Notice]) -> usize {
    notices.iter().filter(|notice| notice.ring == RingKind::Receive).count()
}

/// While software does not read its receive ring, no event is lost or overwritten, NAPs wait, and
/// the machine names the wait. Once software reads, all of them arrive. The same holds if NAP slots
/// are scarce; slots are refilled in batches, with one read each.
// shows: C-16, C-20, C-21
#[test]
fn rings_and_slots_hold_naps_back() {
    for (ring_entries, slots, scarce) in
        [(16, 64, "record of its receive-completion ring"), (64, 16, "NAP slot")]
    {
        let mut config = Config::prototype();
        config.host.ring_entries = ring_entries;
        config.host.slots = slots;
        config.nic.slot_cache = 16;
        config.nic.slot_batch = 8;
        let mut machine = Machine::new(&config, 1).unwrap();
        let mut api = machine.api();
        api.consumes(1, 0, 0, false);
        for _ in 0..30 {
            post_free(&mut api, Kind::NapIndirect, (endpoint(0), endpoint(1)), 100).unwrap();
        }
        let mut notices = Vec::new();
        let Err(Standstill::Starved(waits)) = machine.run_to_end(&mut notices) else {
            panic!("30 NAPs cannot fit")
        };
        assert!(waits.iter().any(|wait| wait.contains(scarce)), "{waits:?}");
        assert_eq!((received(&notices), machine.nodes()[1].receiver.counters.naps), (0, 16));
        machine.api().consumes(1, 0, 0, true);
        machine.run_to_end(&mut notices).unwrap();
        assert_eq!(received(&notices), 30);
        let node = &machine.nodes()[1];
        let refills: u64 = node.queue_pairs.iter().map(|pair| pair.slots.refills).sum();
        assert!(refills >= 2 && refills == node.port.reads_sent[2], "one read for each batch");
        machine.audit().unwrap();
    }
}

/// Software keeps at most 32 operations per function: the 33rd waits, no doorbell is lost, and
/// another function is not blocked.
// shows: C-32, C-33
#[test]
fn a_33rd_operation_waits() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    let mut api = machine.api();
    for _ in 0..100 {
        post_free(&mut api, Kind::NapIndirect, (endpoint(0), endpoint(1)), 64).unwrap();
    }
    let from = Endpoint::new(0, 3, 1).unwrap();
    let other = post_free(&mut api, Kind::NapIndirect, (from, endpoint(1)), 64).unwrap();
    let mut notices = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    assert_eq!(received(&notices), 101);
    let node = &machine.nodes()[0];
    assert_eq!((node.host.most_outstanding, node.host.held_back), (32, 68));
    assert_eq!(node.doorbells.overflowed, 0);
    assert!(node.doorbells.fifos[0].occupancy().most() <= 32);
    let last_of_first = machine.operations()[99].finished.unwrap();
    assert!(machine.operations()[other as usize].finished.unwrap() < last_of_first);
}

/// With one tag or a few, everything still arrives, and no more tags are in use than exist.
// shows: C-36
#[test]
fn few_tags_suffice() {
    for tags in [1, 2, 5] {
        let mut config = Config::prototype();
        config.nic.tags = tags;
        let (machine, traffic) = random_traffic(&config, 9, 200, false);
        assert_eq!((traffic.checked, traffic.mismatches), (200, 0));
        for node in machine.nodes() {
            assert!(node.port.tags.occupancy.most() <= tags as u64);
            assert!(node.port.tags.refused > 0);
        }
        machine.audit().unwrap();
    }
}

/// Every packet for port d is in channel d mod n, for any n; GET packets have the channel after
/// those.
// shows: C-42
#[test]
fn channels_follow_the_destination() {
    for channels in 1..=4 {
        let mut config = Config::prototype();
        config.crossbar.channels = channels;
        let mut machine = Machine::new(&config, 2).unwrap();
        machine.watch_channels();
        let mut traffic = Traffic::new(&config, 300);
        for _ in 0..50 {
            traffic.post(&mut machine.api());
        }
        machine.run_to_end(&mut traffic).unwrap();
        let seen = machine.controllers().seen.as_deref().unwrap();
        let gets = seen.iter().filter(|(channel, _)| *channel == channels).count();
        assert!(gets > 0 && seen.len() > 300);
        assert!(
            seen.iter()
                .all(|(channel, output)| *channel == output % channels || *channel == channels)
        );
    }
}

/// With a channel per output, an output that takes nothing does not slow the others; with one
/// channel for all, it stops them.
// shows: C-43, B-03
#[test]
fn voq_has_no_head_of_line_blocking() {
    crate::limit::limited(|| {
        let arrived = |channels: usize| {
            let mut config = Config::prototype();
            config.crossbar.channels = channels;
            config.crossbar.channel_packets = 4;
            config.host.ring_entries = 2;
            let mut machine = Machine::new(&config, 1).unwrap();
            let mut api = machine.api();
            // Node 1 does not read its rings: its receive buffer fills with NAPs, and so does the
            // channel to it.
            api.consumes(1, 0, 0, false);
            for node in [1, 2, 3] {
                for _ in 0..8 {
                    let ends = (endpoint(0), endpoint(node));
                    post_free(&mut api, Kind::NapImmediate, ends, 16).unwrap();
                }
            }
            let _ = machine.run_program(&mut (), Time::from_ps(200_000_000));
            machine.nodes()[2..].iter().map(|node| node.receiver.counters.naps).sum::<u64>()
        };
        assert_eq!(arrived(4), 16);
        assert_eq!(arrived(1), 0);
    });
}

/// The prototype's configuration is complete; a wrong one is refused with the name of the faulty
/// parameter.
#[test]
fn configurations_are_checked() {
    use bellwire_model::chpp::config::PROTOTYPE;
    Config::parse(PROTOTYPE).unwrap();
    for (from, to, said) in [
        ("tags = 32", "tags = 257", "`nic.tags` is 257"),
        ("lanes = 8", "lanes = 8\nlains = 4", "lains"),
        ("bus = \"16 B\"", "bus = 16", "unit"),
        ("max_payload = \"128 B\"", "max_payload = \"130 B\"", "power of two"),
    ] {
        assert!(PROTOTYPE.contains(from));
        let error = Config::parse(&PROTOTYPE.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // One line changes one parameter, such as the way of submission or the link (B-21).
    let prototype = Config::prototype();
    assert_eq!(Config::parse("").unwrap(), prototype);
    let mut changed = prototype.clone();
    changed.nic.submission = Start::DamqPd;
    assert_eq!(Config::parse("nic.submission = \"damq-pd\"").unwrap(), changed);
    changed = Config { link: LinkKind::Smp, ..prototype };
    assert_eq!(Config::parse("link = \"smp\"").unwrap(), changed);
}

/// Three nodes flood a fourth. With round-robin they get equal shares of its output, with weights
/// the weighted shares, and with strict priority the first gets the most. The crossbar alone causes
/// this order: all interfaces are alike.
#[test]
fn inputs_share_an_output_as_the_policy_says() {
    let shares = |policy, weights: &[u32]| {
        let mut config = Config::prototype();
        config.crossbar.arbitration = Arbitration { policy, weights: weights.to_vec() };
        // Deep enough that each input always has a packet waiting.
        config.crossbar.receive_packets = 8;
        let mut machine = Machine::new(&config, 1).unwrap();
        let mut api = machine.api();
        let puts: Vec<(u8, u32)> = (1..4)
            .flat_map(|node: u8| (0..20).map(move |_| node))
            .map(|node| {
                let ends = (endpoint(node), endpoint(0));
                (node, post_free(&mut api, Kind::Put, ends, 65536).unwrap())
            })
            .collect();
        machine.run_program(&mut (), Time::ZERO + Span::from_ns(200_000)).unwrap();
        let mut landed = [0.0; 4];
        for (node, put) in puts {
            landed[usize::from(node)] += machine.operations()[put as usize].landed_bytes as f64;
        }
        let all: f64 = landed.iter().sum();
        landed.map(|bytes| bytes / all)
    };
    let near = |got: f64, expected: f64| (got - expected).abs() < 0.03;
    let fair = shares(Policy::RoundRobin, &[]);
    assert!(fair[1..].iter().all(|share| near(*share, 1.0 / 3.0)), "{fair:?}");
    let weighted = shares(Policy::Weighted, &[1, 1, 2, 1]);
    assert!(near(weighted[2], 0.5) && near(weighted[1], 0.25), "{weighted:?}");
    let strict = shares(Policy::Strict, &[]);
    assert!(strict[1] > 0.5 && strict[3] < 0.2, "{strict:?}");
}

/// A packet has the traffic class of its descriptor.
#[test]
fn packets_have_the_class_of_their_descriptor() {
    let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
    machine.capture_frames();
    let mut api = machine.api();
    let sources = [Entry { address: api.free_memory(0, 0), length: 8 }];
    let destinations = [Entry { address: api.free_memory(1, 0), length: 8 }];
    let to = (endpoint(1), api.key(endpoint(1)));
    let descriptor = support::put(to, &sources, &destinations);
    api.post(0, 0, &DescriptorRepr { traffic_class: 5, ..descriptor }).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    let frames = read_capture(&capture(&machine)).unwrap();
    let packets = frames.iter().filter_map(|frame| PacketRepr::parse(&frame.3).ok());
    let is_it = |it: &PacketRepr<'_>| it.header.destination == endpoint(1) && it.payload.len() == 8;
    let classes: Vec<u8> = packets.filter(is_it).map(|it| it.header.traffic_class).collect();
    assert!(!classes.is_empty() && classes.iter().all(|&class| class == 5), "{classes:?}");
}
