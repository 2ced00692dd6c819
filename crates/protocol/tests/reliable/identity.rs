//! A peer is identified by its place: what others can do in a peer's name.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bellwire_protocol::reliable::{Config, DownReason, Recovery};
use bellwire_wire::frame::check::seal;
use bellwire_wire::frame::header::FrameKind;

use super::net::{Net, Node, function};

/// Larger than any incarnation that a clock gives.
const LATEST: u64 = (1 << 63) - 1;

/// Node 1 has a link with node 0, and node 2 calls itself node 1.
fn with_impostor() -> Net {
    let mut net = Net::new(&[Config::new(1500); 3], 1);
    net.link(1, 0);
    net.nodes[2] = Node::new(Config::new(1500), 1, LATEST, 99);
    net
}

/// A full handshake in a peer's name, from elsewhere and with a later incarnation, does not touch
/// the peer's link. The link carries packets meanwhile and afterwards, and the impostor never has
/// one.
#[test]
pub fn a_name_from_elsewhere_is_nobodys() {
    let mut net = with_impostor();
    let peer = net.peer_of(1, function(0)).unwrap();
    net.connect(2, 0);
    for number in 0..2_000u32 {
        net.run_for(1_000_000);
        while net.send(1, peer, &number.to_le_bytes()).is_err() {
            assert_eq!((net.down_reason(0), net.down_reason(1)), (None, None));
            net.step();
        }
    }
    net.run_until(|net| net.nodes[0].taken.len() == 2_000);
    assert_eq!((net.down_reason(0), net.down_reason(1)), (None, None));
    assert!(net.nodes[2].events.is_empty(), "{:?}", net.nodes[2].events);
    let counters = net.nodes[0].endpoint.counters();
    assert!(counters.frames_elsewhere > 5, "{counters:?}");
    assert_eq!(counters.links_up, 1);
}

/// A peer that no longer answers at its place is found dead there, and is then believed at its new
/// place.
#[test]
pub fn who_has_moved_is_believed_in_the_end() {
    let mut net = with_impostor();
    net.nodes[1].is_asleep = true;
    let moved = net.connect(2, 0);
    let begin_ns = net.now_ns;
    net.run_until(|net| net.nodes[2].endpoint.is_up(moved));
    assert_eq!(net.down_reason(0), Some(DownReason::Dead));
    assert!(net.now_ns - begin_ns > 3_000_000_000, "the old place is asked first");
    net.send(2, moved, b"here").unwrap();
    net.run_until(|net| net.nodes[0].taken.len() == 1);
}

/// Repeated Opens in a peer's name that are never confirmed do not keep the peer from a link.
#[test]
pub fn requests_in_a_name_do_not_hold_it_up() {
    for latest in [1, LATEST] {
        let mut net = Net::new(&[Config::new(1500); 3], 1);
        // The impostor receives at its address, but sends nothing but Open.
        net.drop_if = Box::new(|_, to, frame| to == 2 && frame[1] & 0xf == FrameKind::Accept as u8);
        net.nodes[2] = Node::new(Config::new(1500), 1, latest, 99);
        net.connect(2, 0);
        net.run_for(1_000_000_000);
        assert!(net.nodes[0].endpoint.link_count() > 0, "he has a link that is half open");
        let peer = net.link(1, 0);
        net.send(1, peer, b"served").unwrap();
        net.run_until(|net| net.nodes[0].taken.len() == 1);
        assert!(net.nodes[2].events.is_empty());
    }
}

/// An impostor that asks meanwhile is not taken for the peer that our user asks for.
#[test]
pub fn who_is_asked_for_is_where_he_is_asked() {
    let mut net = Net::new(&[Config::new(1500); 3], 1);
    net.nodes[2] = Node::new(Config::new(1500), 1, LATEST, 99);
    net.connect(2, 0);
    net.drop_if = Box::new(|from, _, frame| {
        // The impostor's confirmation comes after we have asked ourselves.
        from == 2 && frame[1] & 0xf == FrameKind::Acknowledge as u8
    });
    net.run_for(50_000_000);
    net.drop_if = Box::new(|_, _, _| false);
    let peer = net.connect(0, 1);
    net.run_until(|net| net.nodes[0].endpoint.is_up(peer));
    net.send(0, peer, b"for 1").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 1);
    // The impostor's link is still half open, and it asks for a sign of life.
    net.run_for(1_500_000_000);
    net.send(0, peer, b"for 1, too").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 2);
    assert!(net.nodes[2].taken.is_empty());
    assert_eq!(net.down_reason(0), None);
}

/// A sender that has not proved its address is sent no more bytes than it sent, and nothing is
/// remembered of it. This holds for one unrepeated Open, for thousands, and for Opens with a wrong
/// cookie.
#[test]
pub fn nothing_is_remembered_before_a_proof() {
    let mut net = Net::new(&[Config::new(1500); 3], 1);
    let frames = Rc::new(RefCell::new(Vec::new()));
    let tapped = frames.clone();
    net.tap = Box::new(move |_, from, _, frame| tapped.borrow_mut().push((from, frame.to_vec())));
    // Nothing arrives by itself here.
    net.drop_if = Box::new(|_, _, _| true);
    net.connect(1, 0);
    net.transmit();
    let (_, open) = frames.take().pop().expect("an Open");
    let sent = Rc::new(Cell::new([0; 2]));
    let count = sent.clone();
    net.tap = Box::new(move |_, from, _, frame| {
        let mut bytes = count.get();
        bytes[(from != 0) as usize] += frame.len();
        count.set(bytes);
    });
    let mut came = 0;
    for number in 0..6_000_u64 {
        let mut open = open.clone();
        // Another node, another token, and some cookie.
        open[32 + 16..32 + 20].copy_from_slice(&(number as u32 + 10).to_le_bytes());
        open[32 + 48..32 + 56].copy_from_slice(&(number << 20).max(1).to_le_bytes());
        open[8..16].copy_from_slice(&(number % 3).to_le_bytes());
        seal(&mut open).unwrap();
        net.hand(0, Net::path(1 + number as usize % 50, number as u32 % 4), &open);
        came += open.len();
        if number % 8 == 0 {
            net.transmit();
            net.nodes[1].is_asleep = true;
        }
    }
    net.run_for(3_000_000_000);
    let [to_them, _] = sent.get();
    assert!(to_them > 0 && to_them <= came, "{came} bytes came, {to_them} went");
    assert_eq!(net.nodes[0].endpoint.link_count(), 0);
    assert_eq!(net.nodes[0].endpoint.counters().frames_challenged, 6_000);
}

/// Half-open links make room for new ones, oldest first: a flood from addresses that receive does
/// not keep others out.
#[test]
pub fn half_open_links_make_room() {
    const STRANGERS: usize = 40;
    let config = Config { links: 16, ..Config::new(1500) };
    let mut net = Net::new(&[config; STRANGERS + 2], 1);
    // All but the last ask, and none of them confirms.
    net.drop_if = Box::new(|_, to, frame| {
        (1..=STRANGERS).contains(&to) && frame[1] & 0xf == FrameKind::Accept as u8
    });
    for stranger in 1..=STRANGERS {
        net.connect(stranger, 0);
    }
    net.run_for(20_000_000);
    assert!(net.nodes[0].endpoint.link_count() >= 8);
    net.link(STRANGERS + 1, 0);
    assert!(net.nodes[0].endpoint.link_count() <= 16);
}

/// A peer's frames from a new address do not redirect its stream. That address gets one frame at a
/// time until one is acknowledged.
#[test]
pub fn a_new_address_is_tried_with_care() {
    let mut net = Net::new(&[Config::new(1500); 3], 1);
    let peer = net.link(1, 0);
    net.run_until(Net::is_quiet);
    // An attacker on the path makes the peer's frames come from node 2's address, too.
    let seen = Rc::new(RefCell::new(Vec::new()));
    let tapped = seen.clone();
    let to_stranger = Rc::new(Cell::new(0));
    let count = to_stranger.clone();
    net.tap = Box::new(move |_, _, to, frame| match to {
        0 => tapped.borrow_mut().push(frame.to_vec()),
        2 => count.set(count.get() + 1),
        _ => {}
    });
    net.nodes[2].is_asleep = true;
    let back = net.peer_of(0, function(1)).unwrap();
    net.send(1, peer, &[0; 8]).unwrap();
    net.run_until(Net::is_quiet);
    for frame in seen.take() {
        net.hand(0, Net::path(2, 0), &frame);
    }
    for number in 0..2_000u32 {
        while net.send(0, back, &[number as u8; 1200]).is_err() {
            net.step();
        }
    }
    net.run_until(|net| net.nodes[1].taken.len() == 2_000);
    let strangers = to_stranger.get();
    assert!((1..8).contains(&strangers), "{strangers} frames to a stranger");
}

/// A frame that is acknowledged although it went last to a stranger came by another path: the
/// stranger is tried no sooner for it, by senders of both recoveries.
#[test]
pub fn acknowledgements_that_come_late_prove_nothing() {
    const ROUNDS: usize = 60;
    for recovery in [Recovery::Selective, Recovery::GoBack] {
        let config = Config { recovery, ..Config::new(1500) };
        let mut net = Net::new(&[config; 3], 1);
        let peer = net.link(1, 0);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let tapped = seen.clone();
        let to_stranger = Rc::new(Cell::new(0));
        let count = to_stranger.clone();
        net.tap = Box::new(move |_, _, to, frame| match to {
            0 => tapped.borrow_mut().push(frame.to_vec()),
            2 => count.set(count.get() + 1),
            _ => {}
        });
        net.nodes[2].is_asleep = true;
        let back = net.peer_of(0, function(1)).unwrap();
        net.send(1, peer, &[0; 8]).unwrap();
        net.run_until(Net::is_quiet);
        for frame in seen.take() {
            net.hand(0, Net::path(2, 0), &frame);
        }
        let is_silent = Rc::new(Cell::new(false));
        let silent = is_silent.clone();
        net.drop_if = Box::new(move |_, to, _| to == 0 && silent.get());
        for _ in 0..ROUNDS {
            is_silent.set(true);
            net.send(0, back, &[1; 1200]).unwrap();
            let (before, began_ns) = (to_stranger.get(), net.now_ns);
            net.run_until(|net| to_stranger.get() > before || net.now_ns > began_ns + 20_000_000);
            is_silent.set(false);
            net.send(1, peer, &[0; 8]).unwrap();
            net.run_until(Net::is_quiet);
            net.run_for(100_000_000);
        }
        let strangers = to_stranger.get();
        assert!((1..16).contains(&strangers), "{strangers} frames to a stranger: {recovery:?}");
    }
}

/// A Close of 37 bytes and a repeated Accept of 108 go where the peer was last heard, if as many
/// bytes came from there.
#[test]
pub fn answers_are_not_longer_than_what_came() {
    for (kind, count, to) in [
        (FrameKind::Close, 1, 1),
        (FrameKind::Close, 2, 2),
        (FrameKind::Accept, 2, 1),
        (FrameKind::Accept, 3, 2),
    ] {
        let mut net = Net::new(&[Config::new(1500); 3], 1);
        let frames = Rc::new(RefCell::new(Vec::new()));
        let tapped = frames.clone();
        net.tap = Box::new(move |_, from, to, frame| {
            tapped.borrow_mut().push((from, to, frame.to_vec()));
        });
        net.link(1, 0);
        let back = net.peer_of(0, function(1)).unwrap();
        net.send(0, back, b"to be acknowledged").unwrap();
        net.run_until(Net::is_quiet);
        let seen = frames.take();
        let last = |kind| {
            let is_it = |frame: &[u8]| frame[1] & 0xf == kind as u8;
            let found = seen.iter().rfind(|(from, _, frame)| *from == 1 && is_it(frame));
            &found.expect("one was sent").2
        };
        let (open, acknowledge) = (last(FrameKind::Open), last(FrameKind::Acknowledge));
        assert_eq!((open.len(), acknowledge.len()), (108, 36));
        net.nodes[2].is_asleep = true;
        if kind == FrameKind::Accept {
            net.hand(0, Net::path(1, 0), open);
        }
        for _ in 0..count {
            net.hand(0, Net::path(2, 0), acknowledge);
        }
        if kind == FrameKind::Close {
            net.close(0, back);
        }
        net.run_for(1_000_000);
        let seen = frames.take();
        let of_kind = |it: &&(usize, usize, Vec<u8>)| it.0 == 0 && it.2[1] & 0xf == kind as u8;
        let went = seen.iter().find(of_kind).map(|it| it.1);
        assert_eq!(went, Some(to), "{kind:?} after {count} frames of 36 bytes");
    }
}
