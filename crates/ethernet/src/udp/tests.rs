use super::connected_socket::{Change, ConnectedSocket};
use super::*;
use crate::keyed_io::KeyedIo;
use crate::testing::within_limit;
use bellwire_keys::KeyFile;
use bellwire_wire::frame::check::seal;
use bellwire_wire::frame::header::{FrameKind, HEADER_BYTES};
use bellwire_wire::frame::keyed::{KEYED_HEADER_BYTES, KeyedStep, SEALED_OVERHEAD_BYTES};
use std::time::{Duration, Instant};

fn pair(first: &str, second: &str, mtu: usize) -> [UdpIo; 2] {
    [first, second].map(|address| {
        let any: SocketAddr = address.parse().unwrap();
        let mut io = UdpIo::open(any, mtu).unwrap();
        // SAFETY: zeros are a valid storage of an address.
        let mut native: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_storage>() as u32;
        // SAFETY: the kernel writes at most `length` bytes of an address.
        unsafe { libc::getsockname(io.socket.as_raw_fd(), (&raw mut native).cast(), &mut length) };
        io.address = from_native(&native).unwrap();
        io
    })
}

fn collect(io: &mut UdpIo, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut got = Vec::new();
    let since = Instant::now();
    while got.len() < count {
        io.receive(64, |from, bytes| got.push((from, bytes.to_vec())));
        assert!(since.elapsed() < Duration::from_secs(8), "{} of {count}", got.len());
    }
    got
}

/// Sends a datagram of 40 equal bytes.
fn send(io: &mut UdpIo, to: SocketAddr, what: u8) {
    io.room().expect("room")[..40].fill(what);
    io.stage(to, 40);
    assert!(io.flush());
}

/// The connected socket takes no datagrams of others, and does not give our address to others.
#[test]
fn a_connected_socket_takes_nothing_from_others() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    let [mut c, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    for number in 0..100u8 {
        send(&mut a, b.address, number);
        assert_eq!(collect(&mut b, 1), [(a.address, vec![number; 40])]);
    }
    assert!(b.connected.socket_to(a.address).is_some());
    let again = UdpIo::open(b.address, 1500).err().expect("a second owner");
    assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    for number in 0..50u8 {
        send(&mut c, b.address, number);
        send(&mut a, b.address, number);
        let mut got = collect(&mut b, 2);
        got.sort_by_key(|(from, _)| *from != a.address);
        assert_eq!(got, [(a.address, vec![number; 40]), (c.address, vec![number; 40])]);
        send(&mut b, c.address, number);
        send(&mut b, a.address, number);
        assert_eq!(collect(&mut c, 1), [(b.address, vec![number; 40])]);
        assert_eq!(collect(&mut a, 1), [(b.address, vec![number; 40])]);
    }
    // When the connected peer goes away, only datagrams to it are lost.
    let gone = a.address;
    drop(a);
    for number in 0..50u8 {
        send(&mut b, gone, number);
        send(&mut b, c.address, number);
        assert_eq!(collect(&mut c, 1), [(b.address, vec![number; 40])]);
    }
}

/// A connected peer that is silent is there. One that has gone is reported, to whoever only polls,
/// too.
#[test]
fn only_a_peer_that_has_gone_is_refused() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    (0..100).for_each(|number| insist(&mut a, &mut b, number));
    assert!(b.connected.socket_to(a.address).is_some());
    for _ in 0..100 {
        b.receive(64, |_, _| panic!("nobody sends"));
    }
    assert_eq!(b.take_refused(), None);
    let refuses = |io: &mut UdpIo, gone: SocketAddr| {
        send(io, gone, 1);
        let since = Instant::now();
        loop {
            io.receive(64, |_, _| panic!("nobody sends"));
            if let Some(place) = io.take_refused() {
                return assert_eq!(place, gone);
            }
            assert!(since.elapsed() < Duration::from_secs(8), "it is not told");
        }
    };
    let gone = a.address;
    drop(a);
    refuses(&mut b, gone);
    let [mut c, d] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    let gone = d.address;
    drop(d);
    refuses(&mut c, gone);
}

/// What the connected socket has is received before it closes.
#[test]
fn a_socket_that_closes_is_read_first() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    (0..100).for_each(|number| insist(&mut a, &mut b, number));
    assert!(b.connected.socket_to(a.address).is_some());
    (0..40).for_each(|number| send(&mut a, b.address, number));
    let mut got = 0;
    b.change_connected(Change::Close, &mut |_, _| got += 1);
    assert_eq!((got, b.connected.is_open()), (40, false));
}

/// Sends until the datagram arrives. A change of the connected socket may lose a datagram that
/// the kernel has not assigned to a socket yet; UDP permits that.
fn insist(from: &mut UdpIo, to: &mut UdpIo, what: u8) {
    for _ in 0..10 {
        send(from, to.address, what);
        let since = Instant::now();
        let mut came = false;
        while !came && since.elapsed() < Duration::from_millis(800) {
            to.receive(64, |who, bytes| came |= who == from.address && bytes == [what; 40]);
        }
        if came {
            return;
        }
    }
    panic!("ten of ten were lost");
}

/// The connected socket is closed once others send as much. Once its peer is alone again, it is
/// connected again.
#[test]
fn a_connected_peer_among_many_loses_its_socket() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    let [mut c, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    (0..100).for_each(|number| insist(&mut a, &mut b, number));
    assert!(b.connected.is_open());
    for number in 0..100 {
        insist(&mut a, &mut b, number);
        insist(&mut c, &mut b, number);
    }
    assert!(!b.connected.is_open(), "others sent as much");
    // More datagrams than a new connection needs.
    (0..1200_usize).for_each(|number| insist(&mut a, &mut b, number as u8));
    assert!(b.connected.is_open(), "it is alone again");
}

/// The connected socket separates coalesced frames by the length in the first one, sealed or not.
/// Bytes that are no frame arrive as they were sent.
#[test]
fn a_connected_socket_separates_frames() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    (0..100).for_each(|number| insist(&mut a, &mut b, number));
    assert!(b.connected.socket_to(a.address).is_some());
    let all = [vec![100; 30], vec![1472; 40], vec![700, 700, 40], vec![40], vec![1472]];
    for (lengths, sealed) in all.iter().flat_map(|lengths| [(lengths, false), (lengths, true)]) {
        for (number, &length) in lengths.iter().enumerate() {
            let room = a.room().expect("room");
            let header = FrameHeader::new(FrameKind::Data, 0, 0, number as u64);
            let header = FrameHeader { length: length as u16, ..header };
            header.emit(room).expect("room");
            room[HEADER_BYTES..length].fill(number as u8);
            if sealed {
                let header = KeyedHeader {
                    step: KeyedStep::Sealed,
                    function: 0,
                    from: 0,
                    length: length as u16,
                    tags: 0,
                    session: 1,
                    counter: number as u64,
                };
                room[..KEYED_HEADER_BYTES].copy_from_slice(&header.emit());
            }
            a.stage(b.address, length);
        }
        assert!(a.flush());
        for (number, (from, bytes)) in collect(&mut b, lengths.len()).iter().enumerate() {
            assert_eq!((*from, bytes.len()), (a.address, lengths[number]));
            let told = if sealed {
                let header = KeyedHeader::parse(bytes).expect("a sealed frame");
                (header.length.into(), header.counter)
            } else {
                let header = FrameHeader::parse(bytes).expect("a frame");
                (header.length.into(), header.token)
            };
            assert_eq!(told, (bytes.len(), number as u64));
        }
    }
    assert!(b.counters().frames_coalesced <= a.counters().frames_segmented);
    insist(&mut a, &mut b, 7);
}

/// Frames of many lengths arrive whole, in IPv4 and IPv6: alone, and in batches that the kernel
/// cuts and coalesces.
// shows: H-20
#[test]
fn frames_arrive_as_they_were_sent() {
    for (address, mtu) in [("127.0.0.1:0", 1500), ("127.0.0.1:0", 65536), ("[::1]:0", 1500)] {
        let [mut a, mut b] = pair(address, address, mtu);
        let longest = a.frame_bytes();
        let lengths: Vec<usize> = [1, 2, 63, 64, 1000, longest]
            .into_iter()
            .chain((0..20).map(|_| longest))
            .chain((0..30).map(|_| 200))
            .chain([7, 7, 9, 7])
            .collect();
        for part in lengths.chunks(25) {
            for (number, &length) in part.iter().enumerate() {
                let room = a.room().expect("room");
                room[..length].fill(number as u8);
                a.stage(b.address, length);
            }
            assert!(a.flush());
            let got = collect(&mut b, part.len());
            for (number, (from, bytes)) in got.iter().enumerate() {
                assert_eq!(*from, a.address);
                assert_eq!(bytes[..], vec![number as u8; part[number]][..]);
            }
        }
        let (sent, got) = (a.counters(), b.counters());
        assert_eq!(sent.frames_sent, lengths.len() as u64);
        assert_eq!(got.frames_received, sent.frames_sent);
        assert_eq!(got.bytes_received, sent.bytes_sent);
        assert!(sent.send_calls < sent.frames_sent, "batches save calls: {sent:?}");
    }
}

/// What the kernel refuses for good counts as failed and holds up nothing. If it refuses a
/// batch, segments may be the reason, so from then on frames leave one by one.
#[test]
fn refused_frames_are_counted() {
    within_limit(refuse_frames);
}

fn refuse_frames() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    assert_eq!(a.counters().segments_refused, u64::from(!a.incoming.coalesces));
    let nowhere: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    send(&mut a, b.address, 1);
    assert_eq!((a.counters().send_calls, a.counters().frames_sent), (1, 1));
    send(&mut a, nowhere, 2);
    let one = a.counters();
    assert_eq!((one.send_failed, one.frames_sent, one.send_calls), (1, 1, 2), "{one:?}");
    assert!(a.segments);
    let batch = |a: &mut UdpIo, to: SocketAddr| {
        for what in 0..3 {
            a.room().expect("room")[..40].fill(what);
            a.stage(to, 40);
        }
        assert!(a.flush());
    };
    batch(&mut a, b.address);
    let before = a.counters();
    assert_eq!((before.frames_sent, before.send_calls, before.bytes_sent), (4, 3, 160));
    assert_eq!(before.frames_segmented, if a.segments { 3 } else { 0 });
    batch(&mut a, nowhere);
    let all = a.counters();
    assert_eq!((all.send_failed, all.frames_sent), (4, 4), "{all:?}");
    assert_eq!(all.segments_refused, before.segments_refused + 1);
    assert!(!a.segments);
    batch(&mut a, b.address);
    let last = a.counters();
    assert_eq!(last.frames_segmented, before.frames_segmented);
    assert_eq!((last.frames_sent, last.copies, last.send_full), (7, 7, 0));
    assert_eq!(collect(&mut b, 7).len(), 7);
    let got = b.counters();
    assert_eq!((got.frames_received, got.copies, got.bytes_received), (7, 7, 280));
}

/// Frames fill a datagram as far as another one fits; long ones have one for themselves.
#[test]
fn a_datagram_holds_as_many_frames_as_fit() {
    for (mtu, frame_bytes, full_bytes) in [
        (1500, 1472, LONGEST - 1472),
        (100, 1024, LONGEST - 1024),
        (32_743 + 28, 32_743, LONGEST - 32_743),
        (32_744 + 28, 32_744, usize::MAX),
        (1 << 20, LONGEST, usize::MAX),
    ] {
        let io = UdpIo::open("127.0.0.1:0".parse().expect("an address"), mtu).expect("a port");
        assert_eq!((io.frame_bytes(), io.full_bytes), (frame_bytes, full_bytes), "{mtu}");
    }
    let io = UdpIo::open("[::1]:0".parse().expect("an address"), 1500).expect("a port");
    assert_eq!(io.frame_bytes(), 1452, "the headers of IPv6 are longer");
}

/// A receive asks for as many datagrams as came, and for twice as many if all were there.
#[test]
fn receives_ask_for_what_may_come() {
    let asked = [(1, 1), (16, 16), (9, 9), (8, 3), (8, 0)];
    assert_eq!(asked.map(|(asked, got)| next_ask(asked, got)), [2, 16, 16, 3, 1]);
}

/// Stages frames of these lengths.
fn stage(io: &mut UdpIo, frames: &[(SocketAddr, usize)]) {
    for &(to, length) in frames {
        io.room().expect("room")[..length].fill(1);
        io.stage(to, length);
    }
}

/// One datagram holds frames to one peer that are equally long, but for a shorter one at its end.
#[test]
fn runs_are_as_long_as_a_datagram() {
    let [a, b] = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().expect("an address"));
    let long = vec![(a, 1472); 43];
    let with = |frames: &[(SocketAddr, usize)]| [&long[..], frames].concat();
    for (frames, first, expected) in [
        (vec![(a, 100), (a, 100), (a, 50), (a, 100)], 0, (3, 0, 250, 100)),
        (vec![(a, 100), (a, 100), (a, 50), (a, 50)], 0, (3, 0, 250, 100)),
        (vec![(a, 100), (a, 100), (a, 50), (a, 100)], 3, (1, 250, 100, 100)),
        (vec![(a, 100), (a, 100), (b, 100)], 0, (2, 0, 200, 100)),
        (vec![(a, 100), (b, 100), (a, 100)], 0, (1, 0, 100, 100)),
        (vec![(a, 100), (a, 101)], 0, (1, 0, 100, 100)),
        (with(&[(a, 719)]), 0, (44, 0, LONGEST - 1472, 1472)),
        (with(&[]), 1, (42, 1472, 42 * 1472, 1472)),
    ] {
        let mut io = UdpIo::open("127.0.0.1:0".parse().expect("an address"), 1500).expect("it");
        stage(&mut io, &frames);
        let run = io.run(first);
        assert_eq!((run.frames, run.start, run.length, run.segment), expected, "{frames:?}");
        io.segments = false;
        assert_eq!(io.run(first).frames, 1);
    }
    // The last bytes that fit into a datagram, and one more.
    for (last, count) in [(719, 45), (720, 44)] {
        let mut io = UdpIo::open("127.0.0.1:0".parse().expect("an address"), 1500).expect("it");
        io.full_bytes = usize::MAX;
        stage(&mut io, &with(&[(a, 1472), (a, last)]));
        assert_eq!(io.run(0).frames, count);
    }
}

/// A batch leaves by itself when no further frame fits into its datagram, and not before.
#[test]
fn a_full_datagram_leaves() {
    for (last, leaves) in [(719, false), (720, true)] {
        let [mut a, b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        stage(&mut a, &vec![(b.address, 1472); 43]);
        stage(&mut a, &[(b.address, last)]);
        a.room().expect("room");
        assert_eq!(a.counters().frames_sent, if leaves { 44 } else { 0 });
    }
}

/// A coalesced datagram is cut into its frames. An empty or truncated one is lost.
#[test]
fn datagrams_are_cut_into_frames() {
    let from: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let bytes: Vec<u8> = (0..250).map(|at| at as u8).collect();
    for (bytes, segment, lengths) in [
        (&bytes[..], Some(100), &[100, 100, 50][..]),
        (&bytes[..200], Some(100), &[100, 100]),
        (&bytes[..], None, &[250]),
        (&[], None, &[]),
        (&[], Some(100), &[]),
    ] {
        let (mut got, mut counters) = (Vec::new(), IoCounters::default());
        let take = &mut |who: SocketAddr, frame: &[u8]| {
            assert_eq!(who, from);
            got.push(frame.to_vec());
        };
        let frames = split(bytes, segment, &mut counters, from, take);
        assert_eq!(frames, lengths.len());
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        assert_eq!(got.concat(), bytes);
        let coalesced = if segment.is_some() { lengths.len() as u64 } else { 0 };
        assert_eq!(
            (counters.frames_coalesced, counters.bytes_received),
            (coalesced, bytes.len() as u64)
        );
        assert_eq!(counters.receive_lost, u64::from(bytes.is_empty()));
    }
    let (slot, mut counters) = (Received::new(&mut [0; 8]), IoCounters::default());
    let mut message = empty_header();
    message.msg_flags = libc::MSG_TRUNC;
    let frames =
        slot.frames(&bytes, &message, &mut counters, from, &mut |_, _| panic!("it was cut"));
    assert_eq!((frames, counters.receive_lost, counters.bytes_received), (0, 1, 0));
}

/// The length of frames is read from the control message of that kind, wherever it stands.
#[test]
fn segments_are_read_from_control_messages() {
    let message = |level: i32, kind: i32, value: i32| {
        // A header of 16 bytes, its value of 4, and padding.
        let mut bytes = 20usize.to_ne_bytes().to_vec();
        for word in [level, kind, value, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    };
    let other = message(libc::SOL_SOCKET, libc::UDP_GRO, 7);
    let wrong = message(libc::SOL_UDP, libc::UDP_SEGMENT, 8);
    let right = message(libc::SOL_UDP, libc::UDP_GRO, 1472);
    for (control, length, segment) in [
        (right.clone(), 24, Some(1472)),
        ([&other[..], &right].concat(), 48, Some(1472)),
        ([&wrong[..], &right].concat(), 48, Some(1472)),
        ([&other[..], &right].concat(), 24, None),
        (other.clone(), 24, None),
        (wrong.clone(), 24, None),
        (right.clone(), 16, None),
        (right.clone(), 0, None),
        (message(libc::SOL_UDP, libc::UDP_GRO, 0), 24, None),
        (message(libc::SOL_UDP, libc::UDP_GRO, -1), 24, None),
    ] {
        let mut slot = Received::new(&mut [0; 8]);
        slot.control.0[..control.len()].copy_from_slice(&control);
        let mut header = empty_header();
        header.msg_controllen = length;
        assert_eq!(read_segment(&header, &slot), segment, "{length} of {control:?}");
    }
}

/// While only the connected peer sends, one of some polls reads the common socket, or the next one
/// if that became readable.
#[test]
fn the_common_socket_is_read_now_and_then() {
    let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    assert_eq!((b.receive(64, |_, _| {}), b.incoming.turn), (0, 0));
    assert_eq!((b.wait_fds().len(), b.generation()), (1, Some(0)));
    (0..100).for_each(|number| insist(&mut a, &mut b, number));
    assert!(b.connected.is_open());
    assert_eq!((b.wait_fds().len(), b.generation()), (2, Some(1)));
    b.incoming.turn = 0;
    let calls = |b: &mut UdpIo, turn: u32| {
        let before = b.counters().receive_calls;
        b.incoming.ask = [1; 2];
        assert_eq!(b.receive(64, |_, _| {}), 0);
        assert_eq!(b.incoming.turn, turn);
        b.counters().receive_calls - before
    };
    assert_eq!(calls(&mut b, OTHERS_POLLS), 2, "it reads both");
    assert_eq!(calls(&mut b, OTHERS_POLLS - 1), 1);
    b.wake(1);
    assert_eq!(calls(&mut b, OTHERS_POLLS - 2), 1);
    b.wake(0);
    assert_eq!(calls(&mut b, OTHERS_POLLS), 2);
    // One datagram was asked for and came, so that the next poll asks for two.
    let before = b.counters().receive_calls;
    send(&mut a, b.address, 1);
    let since = Instant::now();
    while !b.is_ready() {
        assert!(since.elapsed() < Duration::from_secs(8), "nothing comes");
    }
    assert_eq!(b.receive(64, |_, _| {}), 1);
    assert_eq!((b.counters().receive_calls - before, b.incoming.ask[1]), (1, 2));
    let header = |from, to| headers(from, to, 7);
    let (own, peer) = (b.address, a.address);
    assert_eq!(b.capture_header(peer, Direction::Sent, &[0; 7]), header(own, peer));
    assert_eq!(b.capture_header(peer, Direction::Received, &[0; 7]), header(peer, own));
    // A key changes no descriptor.
    let plain = [a.generation(), b.generation()];
    assert_ne!(plain[0], plain[1]);
    assert_eq!([a, b].map(|io| KeyedIo::new(io, None).generation()), plain);
}

/// Headers are as on the wire, with the lengths of what follows: RFC 791, RFC 8200, RFC 768.
#[test]
fn headers_are_as_on_the_wire() {
    let at = |text: &str| -> SocketAddr { text.parse().expect("an address") };
    // 7 bytes follow 8 of UDP, and in IPv4 20 of IP count, too.
    let udp = [0x01, 0x02, 0x03, 0x04, 0, 15, 0, 0];
    let v4 = [0x45, 0, 0, 35, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let made = headers(at("10.0.0.1:258"), at("10.0.0.2:772"), 7);
    assert_eq!(made, [&v4[..], &udp].concat());
    let ip = |last: u8| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let v6 = [&[0x60, 0, 0, 0, 0, 15, 17, 64][..], &ip(1), &ip(2), &udp].concat();
    assert_eq!(headers(at("[fd00::1]:258"), at("[fd00::2]:772"), 7), v6);
}

/// A peer gets the connected socket with its 32nd datagram in a row, if the last change is 1,024
/// datagrams ago. It loses the socket when twice the datagrams of others outweigh its own.
#[test]
fn the_busiest_peer_is_connected() {
    let [first, second] = ["127.0.0.1:1", "127.0.0.1:2"].map(|it| it.parse().expect("an address"));
    let all = UdpIo::open("127.0.0.1:0".parse().expect("an address"), 1500).expect("a port");
    let mut own = ConnectedSocket::new();
    let hear = |own: &mut ConnectedSocket, peer: SocketAddr, count: usize| -> Vec<Change> {
        (0..count).map(|_| own.heard_other(peer)).collect()
    };
    assert_eq!(hear(&mut own, first, 31), [Change::Keep; 31]);
    assert_eq!(hear(&mut own, second, 31), [Change::Keep; 31], "each streak begins anew");
    assert_eq!(hear(&mut own, first, 31), [Change::Keep; 31]);
    assert_eq!(own.heard_other(first), Change::Connect(first));
    own.connect(all.socket.as_fd(), all.address, first).expect("a socket");
    assert_eq!(own.get().map(|it| it.1), Some(first));
    // Its score is 64: the 32nd datagram of others takes it away, unless more came of its own.
    assert_eq!(hear(&mut own, second, 30), [Change::Keep; 30]);
    own.heard(1);
    assert_eq!(hear(&mut own, second, 2), [Change::Keep, Change::Keep], "5 - 2 - 2");
    assert_eq!(own.heard_other(second), Change::Close);
    own.connect(all.socket.as_fd(), all.address, first).expect("a socket");
    own.heard(1000);
    let changes = hear(&mut own, second, 32);
    assert_eq!(changes[..31], [Change::Keep; 31], "more than 64 count as 64");
    assert_eq!(changes[31], Change::Close);
    own.close();
    assert!(!own.is_open());
    let quiet = hear(&mut own, second, 1023);
    assert_eq!(quiet, [Change::Keep; 1023], "too soon after the last change");
    assert_eq!(own.heard_other(second), Change::Connect(second));
    // The kernel lets no plain socket send to everybody.
    let everybody = "255.255.255.255:9".parse().expect("an address");
    assert!(own.connect(all.socket.as_fd(), all.address, everybody).is_err());
    assert!(!own.is_open());
}

/// A connected socket reports once that nobody listens there any more. The frame that the kernel
/// did not try then leaves all the same.
#[test]
fn a_report_of_a_refusal_costs_no_frame() {
    within_limit(|| {
        let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        (0..100).for_each(|number| insist(&mut a, &mut b, number));
        assert!(b.connected.socket_to(a.address).is_some());
        let gone = a.address;
        drop(a);
        let before = b.counters();
        (0..4).for_each(|number| send(&mut b, gone, number));
        let after = b.counters();
        assert_eq!(after.frames_sent - before.frames_sent, 4, "{after:?}");
        assert_eq!(after.send_failed, before.send_failed);
        assert!(after.send_calls > before.send_calls + 4, "the kernel reported nothing");
    });
}

/// Frames to several peers are one call. Only those that share a datagram count as segments.
#[test]
fn runs_to_several_peers_are_one_call() {
    within_limit(|| {
        let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        let [mut c, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        // A connected socket leads to its own peer only.
        (0..100).for_each(|number| insist(&mut b, &mut a, number));
        assert!(a.connected.socket_to(b.address).is_some());
        let before = a.counters();
        stage(&mut a, &[(b.address, 50), (b.address, 50), (c.address, 50)]);
        assert!(a.flush());
        assert_eq!(collect(&mut c, 1), [(a.address, vec![1; 50])]);
        assert_eq!(collect(&mut b, 2).len(), 2);
        let after = a.counters();
        assert_eq!(
            (after.frames_sent - before.frames_sent, after.send_calls),
            (3, before.send_calls + 1)
        );
        let segmented = if a.segments { 2 } else { 0 };
        assert_eq!(after.frames_segmented - before.frames_segmented, segmented);
    });
}

/// Places of this host where nobody receives.
fn closed(count: usize) -> Vec<SocketAddr> {
    let open = || std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    // All at once, so that they differ.
    let sockets: Vec<_> = (0..count).map(|_| open()).collect();
    sockets.iter().map(|socket| socket.local_addr().expect("it is bound")).collect()
}

/// A place where nobody receives is told once for all datagrams that go there, by the common
/// socket. Frames to others leave all the same.
#[test]
fn refusals_name_their_places() {
    within_limit(|| {
        let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        for place in closed(3) {
            (0..5).for_each(|number| send(&mut a, place, number));
            while a.refused.is_empty() {
                a.receive(64, |_, _| panic!("nobody sends"));
            }
            send(&mut a, b.address, 7);
            assert_eq!(collect(&mut b, 1), [(a.address, vec![7; 40])]);
            assert_eq!((a.take_refused(), a.take_refused()), (Some(place), None));
        }
        let counters = a.counters();
        assert_eq!((counters.send_failed, counters.frames_sent), (0, 18), "{counters:?}");
    });
}

/// As many places are remembered as are promised, and no more.
#[test]
fn refusals_are_bounded() {
    within_limit(|| {
        let [a, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        let (mut a, places) = (a, closed(REFUSED + 3));
        for _ in 0..2 {
            places.iter().for_each(|&place| a.note_refusal(place));
        }
        let mut a = KeyedIo::new(a, None);
        let told: Vec<SocketAddr> = std::iter::from_fn(|| a.take_refused()).collect();
        assert_eq!(told.len(), REFUSED);
        assert!(told.iter().rev().eq(&places[..REFUSED]));
    });
}

/// A wake-up of the common socket has it read at the next poll, also behind a key.
#[test]
fn a_wake_up_goes_to_its_socket() {
    let [mut a, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
    a.incoming.turn = 5;
    let mut a = KeyedIo::new(a, Some(&KeyFile::Shared([7; 32])));
    a.wake(1);
    assert_eq!(a.carrier().incoming.turn, 5, "the connected one is read anyway");
    a.wake(0);
    assert_eq!(a.carrier().incoming.turn, 0);
}

/// The connected socket tells that its peer has gone, whether frames go there or not.
#[test]
fn a_connected_peer_that_has_gone_is_told() {
    within_limit(|| {
        for sends_on in [true, false] {
            let [mut a, mut b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
            (0..100).for_each(|number| insist(&mut a, &mut b, number));
            assert!(b.connected.socket_to(a.address).is_some());
            let gone = a.address;
            drop(a);
            send(&mut b, gone, 1);
            while b.refused.is_empty() {
                if sends_on {
                    send(&mut b, gone, 2);
                } else {
                    b.receive(64, |_, _| panic!("nobody sends"));
                }
            }
            assert_eq!((b.take_refused(), b.take_refused()), (Some(gone), None));
        }
    });
}

/// With a key a frame arrives sealed, and as it was. One without the key gets nothing through, and
/// each side counts it. The room for a frame is shorter by what a seal takes.
#[test]
fn frames_are_sealed_with_a_key() {
    within_limit(|| {
        let key = KeyFile::Shared([7; 32]);
        let [plain, with_key] = [None, Some(&key)].map(|key| move |io| KeyedIo::new(io, key));
        let [a, b] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        let (to_a, to_b, bytes) = (a.address, b.address, a.frame_bytes());
        let (mut a, mut b) = (with_key(a), with_key(b));
        assert_eq!(a.frame_bytes() + SEALED_OVERHEAD_BYTES, bytes);
        assert!(a.drops_altered());
        let mut frame = vec![9; 60];
        let header = FrameHeader { length: 60, ..FrameHeader::new(FrameKind::Data, 0, 0, 5) };
        header.emit(&mut frame).expect("room");
        seal(&mut frame).expect("room");
        let stage = |io: &mut KeyedIo<UdpIo>, to| {
            io.room().expect("room")[..60].copy_from_slice(&frame);
            io.stage(to, 60);
            assert!(io.flush());
        };
        let mut got = Vec::new();
        let mut take = |io: &mut KeyedIo<UdpIo>| {
            io.receive(64, |from, bytes: &[u8]| got.push((from, bytes.to_vec())))
        };
        let mut received = 0;
        let since = Instant::now();
        while a.key_counters().expect("a key").frames_sealed == 0 {
            stage(&mut a, to_b);
            received += take(&mut b) + take(&mut a);
            assert!(since.elapsed() < Duration::from_secs(6), "no session");
        }
        assert!(received >= 2, "the handshake's frames count as received: {received}");
        let opened = |io: &KeyedIo<UdpIo>| io.key_counters().expect("a key").frames_opened;
        let mut until_opened = |b: &mut KeyedIo<UdpIo>, frames| {
            while opened(b) < frames {
                take(b);
                assert!(since.elapsed() < Duration::from_secs(6), "{} of {frames}", opened(b));
            }
        };
        let sealed = a.key_counters().expect("a key").frames_sealed;
        until_opened(&mut b, sealed);
        // The check value is not sent.
        let end = frame.len() - 4;
        // What lies apart comes with the rest.
        a.room().expect("room")[..40].copy_from_slice(&frame[..40]);
        a.stage_apart(to_b, 60, &frame[40..end]);
        assert!(a.flush());
        until_opened(&mut b, sealed + 1);
        let counters = b.key_counters().expect("a key");
        assert!(got.iter().all(|(from, bytes)| *from == to_a && bytes[..end] == frame[..end]));
        assert_eq!(got.len() as u64, counters.frames_opened);
        let mut rows = Vec::new();
        b.key_rows(&mut rows);
        assert!(
            rows.len() > 3 && rows.contains(&("frames_opened", counters.frames_opened)),
            "{rows:?}"
        );
        let told = b.capture_header(to_a, Direction::Sent, &frame);
        assert_eq!(told, headers(to_b, to_a, 60));

        let [other, _] = pair("127.0.0.1:0", "127.0.0.1:0", 1500);
        let mut other = plain(other);
        assert!(!other.drops_altered() && other.key_counters().is_none());
        assert_eq!(other.frame_bytes(), bytes);
        stage(&mut other, to_b);
        let (before, since) = (counters.frames_plain, Instant::now());
        while b.key_counters().expect("a key").frames_plain == before {
            b.receive(64, |_, _| panic!("it has no key"));
            assert!(since.elapsed() < Duration::from_secs(6), "it is not counted");
        }
    });
}
