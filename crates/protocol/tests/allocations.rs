//! The reliable protocol allocates nothing per packet once it is warm. Alone in its file, because
//! the counter is the program's allocator.

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{Channel, Config, Endpoint, FunctionId, PathId, PeerId, Verdict};

/// After the first rounds, packets of 8 to 60,000 bytes in both directions allocate and free
/// nothing, despite losses, refusals and timeouts. Most packets are read in the buffer that the
/// network wrote.
// shows: H-20
#[test]
fn nothing_is_allocated_per_packet() {
    let config = Config { early_frames: 64, ..Config::new(1500) };
    let address = |node| FunctionId { node, function: 0 };
    let mut ends = [1, 2].map(|node| {
        Endpoint::new(config, address(node), 1, Secret::from_seed(node as u64)).unwrap()
    });
    let mut now_ns = 1;
    let peer = ends[0].connect(address(2), PathId(0), 1 << 40, now_ns).unwrap();
    let mut back = None;
    let payload = vec![3; 60_000];
    let mut buffer = vec![0; 1500];
    let (mut taken, mut in_place) = (0u64, 0u64);
    let mut round = |number: u64| {
        for (end, peer) in [(0, Some(peer)), (1, back)] {
            let Some(peer) = peer else { continue };
            for length in [8, 8, 1196, 20_000, 8, if number.is_multiple_of(8) { 60_000 } else { 8 }]
            {
                for channel in [Channel::Request, Channel::Response] {
                    let _ = ends[end].send(peer, channel, [1, 2, 3], &[], &payload[..length]);
                }
            }
        }
        let mut frames = 0u64;
        for _ in 0..6 {
            now_ns += 20_000;
            for from in [0, 1] {
                while let Some(transmit) = ends[from].poll_transmit(now_ns, &mut buffer) {
                    frames += 1;
                    assert!(frames < 10_000, "frames without end");
                    // One frame in 13 is lost.
                    if (frames + number).is_multiple_of(13) {
                        continue;
                    }
                    let inside = buffer.as_ptr_range();
                    let mut sink = |peer: PeerId, _: Channel, _: [u64; 3], payload: &[u8]| {
                        in_place += inside.contains(&payload.as_ptr()) as u64;
                        back = back.or((from == 0).then_some(peer));
                        taken += 1;
                        if taken.is_multiple_of(29) { Verdict::Stalled } else { Verdict::Taken }
                    };
                    let frame = &buffer[..transmit.length];
                    ends[1 - from].handle_frame(PathId(0), frame, now_ns, &mut sink);
                }
                let mut sink = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
                ends[from].deliver(&mut sink);
                let events = std::iter::from_fn(|| ends[from].poll_event()).take(100);
                assert!(events.count() < 100, "events without end");
            }
        }
    };
    for number in 0..2000 {
        round(number);
    }
    let allocated = allocation_counter::measure(|| {
        for number in 0..2000 {
            round(number);
        }
    });
    assert_eq!(allocated.count_total, 0);
    // The counter works.
    let one = allocation_counter::measure(|| drop(std::hint::black_box(vec![0; 100])));
    assert_eq!(one.count_total, 1);
    assert!(in_place * 2 > taken, "{in_place} of {taken} packets were read in place");
    let counters = ends[1].counters();
    assert!(counters.packets_delivered > 10_000 && counters.frames_early > 1000, "{counters:?}");
}

/// A link that has carried nothing holds less than 2 KiB. One that carried a few small packets in
/// both directions holds less than 8 KiB more.
#[test]
fn an_idle_link_is_small() {
    const PEERS: u32 = 100;
    let config = Config::new(1500);
    let address = |node| FunctionId { node, function: 0 };
    let mut hub = Endpoint::new(config, address(0), 1, Secret::from_seed(1)).unwrap();
    let mut others: Vec<_> = (1..=PEERS)
        .map(|node| {
            Endpoint::new(config, address(node), 1, Secret::from_seed(node as u64)).unwrap()
        })
        .collect();
    let mut buffer = vec![0; 1500];
    // Lets frames travel until all queues are empty; returns the bytes that the hub allocated and
    // kept.
    let mut exchange = |hub: &mut Endpoint, others: &mut Vec<Endpoint>, now_ns: u64| {
        let mut sink = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
        let mut kept = 0;
        let mut others_frames = 0;
        for _ in 0..10_000 {
            let mut is_quiet = true;
            for frames in 0.. {
                assert!(frames < 10_000, "frames without end");
                let mut sent = None;
                let used = allocation_counter::measure(|| {
                    sent = hub.poll_transmit(now_ns, &mut buffer);
                });
                kept += used.bytes_current;
                let Some(sent) = sent else { break };
                is_quiet = false;
                others[sent.path.0 as usize - 1].handle_frame(
                    PathId(0),
                    &buffer[..sent.length],
                    now_ns,
                    &mut sink,
                );
            }
            for (index, other) in others.iter_mut().enumerate() {
                while let Some(sent) = other.poll_transmit(now_ns, &mut buffer) {
                    assert!(others_frames < 1_000_000, "frames without end");
                    others_frames += 1;
                    is_quiet = false;
                    let path = PathId(index as u64 + 1);
                    let used = allocation_counter::measure(|| {
                        hub.handle_frame(path, &buffer[..sent.length], now_ns, &mut sink);
                    });
                    kept += used.bytes_current;
                }
            }
            if is_quiet {
                return kept;
            }
        }
        panic!("frames without end");
    };
    for (index, other) in others.iter_mut().enumerate() {
        other.connect(address(0), PathId(0), 1 << 40, 1 + index as u64).unwrap();
    }
    // Some links get their answer only in a later round.
    let rounds = [1_000, 6_000_000, 20_000_000];
    let kept: i64 = rounds.map(|now_ns| exchange(&mut hub, &mut others, now_ns)).iter().sum();
    let per_link = kept / PEERS as i64;
    assert_eq!(hub.peers().count(), PEERS as usize);
    assert!((500..2048).contains(&per_link), "{per_link} bytes");
    let mut queued = 0;
    let peers: Vec<_> = hub.peers().collect();
    for &peer in &peers {
        let used = allocation_counter::measure(|| {
            for _ in 0..10 {
                hub.send(peer, Channel::Request, [1, 2, 3], &[], &[0; 8]).unwrap();
            }
        });
        queued += used.bytes_current;
    }
    let busy = (queued + exchange(&mut hub, &mut others, 30_000_000)) / PEERS as i64;
    assert!((4096..8 * 1024).contains(&busy), "{busy} bytes");
}
