//! Processor time of the reliable protocol: ns per frame and per packet for sending, writing and
//! receiving. `cargo run --release -p bellwire-protocol --example reliable_cost`

use std::time::{Duration, Instant};

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{Channel, Config, Endpoint, FunctionId, PathId, PeerId, Verdict};

fn main() {
    println!(
        "frame bytes  packet bytes  at once |   send/packet  write/frame  take/frame  write+take/packet"
    );
    for (frame_bytes, packet_bytes, at_once) in [
        (1500, 8, 1),
        (1500, 8, 100),
        (1500, 128, 1),
        (1500, 1196, 1),
        (1500, 1196, 64),
        (9000, 8, 400),
        (9000, 65_536, 1),
        (65_535, 65_000, 1),
    ] {
        measure(frame_bytes, packet_bytes, at_once);
    }
}

fn measure(frame_bytes: usize, packet_bytes: usize, at_once: u64) {
    let config = Config::new(frame_bytes);
    let address = |node| FunctionId { node, function: 0 };
    let mut ends = [
        Endpoint::new(config, address(0), 1, Secret::from_seed(1)).unwrap(),
        Endpoint::new(config, address(1), 1, Secret::from_seed(2)).unwrap(),
    ];
    let path = PathId(0);
    let mut now_ns = 1;
    let peer = ends[0].connect(address(1), path, 1 << 40, now_ns).unwrap();
    let payload = vec![7; packet_bytes];
    let mut buffer = vec![0; 65_536];
    let mut taken = 0;
    let mut sum = 0u64;
    let mut sink = |_: PeerId, _: Channel, words: [u64; 3], payload: &[u8]| {
        taken += 1;
        sum += words[1] + payload.first().copied().unwrap_or(0) as u64;
        Verdict::Taken
    };
    let mut spent = [Duration::ZERO; 3];
    let (mut packets, mut frames) = (0u64, 0u64);
    let rounds = 20_000_000 / (at_once * (packet_bytes as u64 + 200)) + 1000;
    for round in 0..rounds {
        let is_warm = round > rounds / 10;
        now_ns += 10_000;
        let begin = Instant::now();
        let mut queued = 0;
        if ends[0].is_up(peer) {
            for number in 0..at_once {
                let words = [1, 3 | 4 << 32, number];
                let sent = ends[0].send(peer, Channel::Request, words, &[], &payload.as_slice());
                queued += sent.is_ok() as u64;
            }
        }
        if is_warm {
            spent[0] += begin.elapsed();
            packets += queued;
        }
        for from in [0, 1] {
            loop {
                let begin = Instant::now();
                let Some(transmit) = ends[from].poll_transmit(now_ns, &mut buffer) else { break };
                let written = Instant::now();
                ends[1 - from].handle_frame(path, &buffer[..transmit.length], now_ns, &mut sink);
                if is_warm {
                    spent[1] += written - begin;
                    spent[2] += written.elapsed();
                    frames += 1;
                }
            }
        }
    }
    assert!(sum > 0 && taken > 0);
    let per = |time: Duration, count: u64| time.as_nanos() as f64 / count as f64;
    println!(
        "{frame_bytes:11}  {packet_bytes:12}  {at_once:7} | {:12.1} {:12.1} {:11.1} {:18.1}",
        per(spent[0], packets),
        per(spent[1], frames),
        per(spent[2], frames),
        per(spent[1] + spent[2], packets),
    );
}
