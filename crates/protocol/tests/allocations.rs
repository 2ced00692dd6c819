//! The reliable protocol allocates nothing per packet once it is warm. Alone in its file, as the counter is the program's allocator.

use bellwire_protocol::reliable::{Channel, Config, Endpoint, FunctionId, PathId, PeerId, Verdict};

/// Packets of 8 to 60,000 bytes in both directions, with losses, refusals and timeouts among them: after the first rounds no round
/// allocates or frees anything.
// shows: H-20
#[test]
fn nothing_is_allocated_per_packet() {
    let config = Config { early_frames: 64, ..Config::new(1500) };
    let address = |node| FunctionId { node, function: 0 };
    let mut ends = [1, 2].map(|node| Endpoint::new(config, address(node), 1, node as u64).unwrap());
    let mut now_ns = 1;
    let peer = ends[0].connect(address(2), PathId(0), 1 << 40, now_ns).unwrap();
    let mut back = None;
    let payload = vec![3; 60_000];
    let mut buffer = vec![0; 1500];
    let mut taken = 0u64;
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
                    // One frame in 13 is lost.
                    if (frames + number).is_multiple_of(13) {
                        continue;
                    }
                    let mut sink = |peer: PeerId, _: Channel, _: [u64; 3], _: &[u8]| {
                        back = back.or((from == 0).then_some(peer));
                        taken += 1;
                        if taken.is_multiple_of(29) { Verdict::Stalled } else { Verdict::Taken }
                    };
                    let frame = &buffer[..transmit.length];
                    ends[1 - from].handle_frame(PathId(0), frame, now_ns, &mut sink);
                }
                let mut sink = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
                ends[from].deliver(&mut sink);
                while ends[from].poll_event().is_some() {}
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
    // The counter counts.
    let one = allocation_counter::measure(|| drop(std::hint::black_box(vec![0; 100])));
    assert_eq!(one.count_total, 1);
    let counters = ends[1].counters();
    assert!(counters.packets_delivered > 10_000 && counters.frames_early > 1000, "{counters:?}");
}
