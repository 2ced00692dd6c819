//! Tests of the link: counts and times that are computed by hand.

use super::*;

use crate::engine::Waits;
use crate::smp::bench::{BenchEvent, Lengths, Machine};
use crate::smp::network::NetworkPacket;
use bellwire_wire::link::network::{Class, NetworkHeader};

/// A link over which 3 packets of 8 DW went, and none the other way.
fn used() -> Machine {
    let mut running = Machine::new(&Config::recommended(), 1);
    running.stimulate(0, 0, Lengths::Fixed(8), 3);
    running.run(Time::NEVER);
    running
}

/// The TLP of a block packet with so many bytes of data.
fn tlp_of(config: &Config, channel: u8, bytes: usize) -> Vec<u8> {
    let header = NetworkHeader {
        class: Class::Block,
        operation: 0,
        target: 1,
        source: 0,
        tag: 1,
        address: 1,
    };
    let packet = NetworkPacket { header, channel, data: vec![0; bytes] };
    packet.to_tlp(config.header).unwrap()
}

/// Canary: each law of the audit is broken once.
#[test]
fn broken_laws_are_found() {
    let found = |plant: fn(&mut Machine)| {
        let mut running = used();
        running.model.link.audit(running.schedule.now()).unwrap();
        plant(&mut running);
        running.model.link.audit(running.schedule.now()).unwrap_err().to_string()
    };
    let agree = "packets sent and packets received do not agree";
    assert!(found(|it| it.model.link.ends[0].send.sent[0] += 1).contains(agree));
    assert!(found(|it| it.model.link.ends[1].counters.refused = 1).contains(agree));
    assert!(found(|it| it.model.link.config.headers += 1).contains("the capacity"));
    assert!(found(|it| it.model.link.config.data -= 1).contains("the capacity"));
}

/// Each frame and each byte of a TLP is counted at its sender; nothing is repeated. The other
/// end sends an update of credits for each packet, 16 times the last one again, and
/// acknowledges all frames at once.
#[test]
fn ends_count_what_they_send() {
    let running = used();
    let bytes = tlp_of(&Config::recommended(), 0, 16).len() as u64;
    let counted = [0, 1].map(|end| running.model.link.end(end).counters);
    let sent = counted.map(|it| (it.frames, it.repeated, it.tlp_bytes));
    assert_eq!(sent, [(3, 0, 3 * bytes), (0, 0, 0)]);
    assert_eq!(counted.map(|it| it.link_packets), [0, 3 + 16 + 1]);
    assert_eq!(counted.map(|it| (it.damaged, it.refused, it.retrained)), [(0, 0, 0); 2]);
    let config = Config::recommended();
    let full = (config.headers, config.data);
    let link = &running.model.link;
    assert_eq!([link.end(0).credits(0), link.end(1).credits(0)], [full; 2]);
}

/// A link is quiet again when the last packet is acknowledged, and not before.
#[test]
fn a_link_is_quiet_when_all_is_acknowledged() {
    let mut running = Machine::new(&Config::recommended(), 1);
    assert!(running.model.link.is_quiet());
    running.stimulate(0, 0, Lengths::Fixed(8), 3);
    let mut quiet_at = None;
    assert!(!running.model.link.is_quiet());
    while running.step(Time::NEVER) {
        let is_quiet = running.model.link.is_quiet();
        assert!(is_quiet || quiet_at.is_none(), "it was quiet at {quiet_at:?}");
        if is_quiet && quiet_at.is_none() {
            quiet_at = Some(running.now());
            assert_eq!((running.model.compared, running.missing()), (3, 0));
        }
    }
    assert!(quiet_at.unwrap() > running.model.last_arrival);
}

/// An end whose peer takes nothing waits for it, and the other does not.
#[test]
fn a_blocked_end_is_named() {
    let mut running = Machine::new(&Config::recommended(), 1);
    running.block(1, 0, true);
    running.stimulate(0, 0, Lengths::Fixed(8), 500);
    running.run(Time::NEVER);
    assert!(!running.model.link.is_quiet());
    let mut waits = Waits::default();
    running.model.link.waits(["near", "far"], &mut waits);
    let told: Vec<String> = waits.all().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("near") && told[0].contains("far"), "{told:?}");
    running.block(1, 0, false);
    running.run(Time::NEVER);
    assert!(running.model.link.is_quiet() && running.missing() == 0);
}

/// The other end is named where it is the second that waits.
#[test]
fn either_end_may_wait() {
    let mut running = Machine::new(&Config::recommended(), 1);
    running.block(0, 0, true);
    running.stimulate(1, 0, Lengths::Fixed(8), 500);
    running.run(Time::NEVER);
    let mut waits = Waits::default();
    running.model.link.waits(["near", "far"], &mut waits);
    assert!(waits.all()[0].to_string().starts_with("far"), "{:?}", waits.all());
    assert_eq!((waits.all().len(), waits.all()[0].holder.as_str()), (1, "near"));
}

/// Training lasts as long as its 26 ordered sets.
#[test]
fn a_link_is_up_after_its_sets() {
    let config = Config::recommended();
    let mut schedule = Schedule::new(1, config.cycle());
    let port = |role| Port { role, lanes: 0xff, fastest_hz: 5_000_000_000 };
    let ports = [port(Role::Rc), port(Role::Ep)];
    let link = Link::train(&config, ports, 0xff, 0, |_, it| BenchEvent(it), &mut schedule);
    let link = link.unwrap();
    assert_eq!(link.up_at, Time::ZERO + ORDERED_SET * 26);
}

/// Damage is counted once. A frame without its first symbol is no frame: nothing asks for it
/// again. One with another error is asked for.
#[test]
fn damage_is_counted() {
    let mut running = used();
    let sent = running.model.link.end(1).counters.link_packets;
    let (left, took) = (running.now(), Span::from_ns(10));
    for (first, asked) in [(!FIRST_SYMBOL, 0), (FIRST_SYMBOL, 1)] {
        let mut bytes = vec![0; 40];
        bytes[0] = first;
        let before = running.model.link.end(1).counters;
        running.model.link.ends[1].frames.push_back(Flying { bytes, left, took });
        running.model.link.frame_comes(&mut running.schedule, 1);
        running.run(Time::NEVER);
        let after = running.model.link.end(1).counters;
        assert_eq!(after.damaged, before.damaged + 1);
        assert_eq!(after.link_packets, before.link_packets + asked);
    }
    assert_eq!(running.model.link.end(1).counters.link_packets, sent + 1);
    let bytes = [0xff; DLLP_BYTES];
    running.model.link.ends[0].link_packets.push_back((left, bytes));
    running.model.link.link_packet_comes(&mut running.schedule, 0);
    assert_eq!(running.model.link.end(0).counters.damaged, 1);
}

/// A packet is prepared for 16 ns. What its end has to say meanwhile does not wait for it: the
/// update of credits goes out at its time, takes 2 ns of the line, and the packet follows when it
/// is ready.
#[test]
fn updates_do_not_wait_for_a_packet() {
    let begun = || {
        let mut running = Machine::new(&Config::recommended(), 1);
        running.stimulate(0, 0, Lengths::Fixed(8), 1);
        running
    };
    let sent = |running: &Machine| {
        let counters = running.model.link.end(1).counters;
        (counters.link_packets, counters.frames)
    };
    let mut alone = begun();
    while sent(&alone) == (0, 0) {
        assert!(alone.step(Time::NEVER));
    }
    let (due, ns) = (alone.now(), Span::from_ns(1));
    let mut running = begun();
    running.run(due.saturating_sub(ns));
    running.stimulate(1, 0, Lengths::Fixed(8), 1);
    running.run(due);
    assert_eq!(sent(&running), (1, 0));
    running.run(due + ns * 14);
    assert_eq!(sent(&running), (1, 0));
    running.run(due + ns * 15);
    assert_eq!(sent(&running), (1, 1));
}

/// A damaged frame is passed on while it arrives, and dropped at its end, if its channel is in use.
#[test]
fn damage_passes_on_channels_in_use() {
    let config = Config { channels: 1, ..Config::recommended() };
    for (channel, nullified) in [(0, 1), (1, 0)] {
        let mut running = Machine::new(&config, 1);
        let tlp = tlp_of(&config, channel, 64);
        let frame = Llp { sequence: 0, tlp: &tlp };
        let mut bytes = vec![0; frame.buffer_len()];
        frame.emit(&mut bytes).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let flying = Flying { bytes, left: Time::ZERO, took: Span::from_ns(100) };
        running.model.link.ends[1].frames.push_back(flying);
        running.model.link.frame_comes(&mut running.schedule, 1);
        running.run(Time::NEVER);
        assert_eq!(running.model.link.end(1).receive.nullified, nullified, "channel {channel}");
    }
}

/// An event's word in the trace is its kind, and above it the end and the channel.
#[test]
fn events_are_told_apart() {
    let (end, channel) = (1, 1);
    let all = [
        (LinkEvent::Up, 0),
        (LinkEvent::Line { end }, 0x11),
        (LinkEvent::Frame { end: 0 }, 2),
        (LinkEvent::Frame { end }, 0x12),
        (LinkEvent::LinkPacket { end }, 0x13),
        (LinkEvent::Left { end }, 0x14),
        (LinkEvent::Timer { end }, 0x15),
        (LinkEvent::Arrived { end, channel }, 0x36),
        (LinkEvent::Arrived { end: 0, channel }, 0x26),
        (LinkEvent::Room { end, channel: 0 }, 0x17),
        (LinkEvent::Room { end, channel }, 0x37),
    ];
    assert_eq!(all.map(|(event, _)| event.trace()), all.map(|(_, word)| word));
}
