//! Many senders, one receiver.

use bellwire_protocol::reliable::{Config, PeerId};

use super::net::{Net, function};

/// Sixteen senders into one receiver whose link takes a byte in `ns_per_byte` and whose switch
/// queues `queue_frames`. Returns the used share of the link, its fairness (Jain's index: 1 if all
/// are equal, 1/16 if one has all), and the dropped frames.
///
/// The first sender begins `earlier_ns` before the others.
fn incast(ns_per_byte: f64, queue_frames: usize, earlier_ns: u64) -> (f64, f64, u64) {
    const SENDERS: usize = 16;
    let mut net = Net::new(&[Config::new(1500); SENDERS + 1], 1);
    net.ns_per_byte = ns_per_byte;
    let peers: Vec<_> = (1..=SENDERS).map(|from| net.link(from, 0)).collect();
    net.queue_frames = queue_frames;
    let payload = [9; 1400];
    let early_end = net.now_ns + earlier_ns;
    while net.now_ns < early_end {
        while net.send(1, peers[0], &payload).is_ok() {}
        net.step();
    }
    let begin = net.now_ns;
    let taken_before = net.nodes[0].taken.len();
    while net.now_ns < begin + 30_000_000 {
        for (index, &peer) in peers.iter().enumerate() {
            while net.send(index + 1, peer, &payload).is_ok() {}
        }
        net.step();
    }
    let taken = &net.nodes[0].taken[taken_before..];
    let bytes: Vec<f64> = (1..=SENDERS)
        .map(|from| {
            let from = function(from as u32);
            taken.iter().filter(|packet| packet.from == from).count() as f64 * 1400.0
        })
        .collect();
    let sum: f64 = bytes.iter().sum();
    let fairness =
        sum * sum / (SENDERS as f64 * bytes.iter().map(|bytes| bytes * bytes).sum::<f64>());
    (sum * ns_per_byte / (net.now_ns - begin) as f64, fairness, net.dropped_full)
}

/// Sixteen senders into one receiver share its link fairly and keep it busy without collapse, on
/// slow and fast links with short and long queues.
#[test]
pub fn incast_of_sixteen_is_fair_and_does_not_collapse() {
    for (ns_per_byte, queue_frames) in [(1.0, 16), (1.0, 64), (1.0, 1000), (0.1, 64), (8.0, 64)] {
        let (share, fairness, dropped) = incast(ns_per_byte, queue_frames, 0);
        let result = format!("{share} of the link, fairness {fairness}, {dropped} dropped");
        assert!(share > 0.85, "{ns_per_byte} ns, {queue_frames} frames: {result}");
        assert!(fairness > 0.75, "{ns_per_byte} ns, {queue_frames} frames: {result}");
    }
}

/// A lone sender soon gives fifteen later ones their share, if queues are long enough for delay to
/// show. The windows become equal though nothing is lost.
#[test]
pub fn who_begins_earlier_does_not_keep_more() {
    for (ns_per_byte, queue_frames) in [(1.0, 64), (1.0, 1000), (0.1, 64), (8.0, 64)] {
        let (share, fairness, dropped) = incast(ns_per_byte, queue_frames, 10_000_000);
        let result = format!("{share} of the link, fairness {fairness}, {dropped} dropped");
        assert!(share > 0.85, "{ns_per_byte} ns, {queue_frames} frames: {result}");
        assert!(fairness > 0.75, "{ns_per_byte} ns, {queue_frames} frames: {result}");
    }
}

/// Eight senders from the start, and eight that join one after the other while the path is full, so
/// that they never see it empty. Returns the used share of the link once all are there, and the
/// ratio of the largest share to the least.
fn latecomers(config: Config, ns_per_byte: f64) -> (f64, f64) {
    const SENDERS: usize = 16;
    let mut net = Net::new(&[config; SENDERS + 1], 1);
    net.ns_per_byte = ns_per_byte;
    let payload = [9; 1400];
    // Some thousand frames at any speed: windows settle in round trips, not in seconds.
    let unit_ns = (1_500.0 * ns_per_byte * 1_000.0) as u64;
    let mut peers: Vec<_> = (1..=SENDERS / 2).map(|from| net.link(from, 0)).collect();
    let offer = |net: &mut Net, peers: &[PeerId], until_ns: u64| {
        while net.now_ns < until_ns {
            for (index, &peer) in peers.iter().enumerate() {
                while net.send(index + 1, peer, &payload).is_ok() {}
            }
            net.step();
        }
    };
    while peers.len() < SENDERS {
        let until_ns = net.now_ns + unit_ns;
        offer(&mut net, &peers, until_ns);
        let peer = net.connect(peers.len() + 1, 0);
        peers.push(peer);
    }
    let until_ns = net.now_ns + 10 * unit_ns;
    offer(&mut net, &peers, until_ns);
    let (begin, taken_before) = (net.now_ns, net.nodes[0].taken.len());
    offer(&mut net, &peers, begin + 20 * unit_ns);
    let taken = &net.nodes[0].taken[taken_before..];
    let counts: Vec<usize> = (1..=SENDERS)
        .map(|from| {
            let from = function(from as u32);
            taken.iter().filter(|packet| packet.from == from).count()
        })
        .collect();
    let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    let share = taken.len() as f64 * 1400.0 * ns_per_byte / (net.now_ns - begin) as f64;
    (share, most as f64 / least as f64)
}

/// Senders that join while the path is full get as much as the earlier ones, within a factor of 2,
/// and the link stays busy. With the times of the devices, on links of 1 to 80 Gbit/s.
#[test]
pub fn who_joins_later_gets_no_more() {
    let config = Config {
        target_delay_ns: 10_000_000,
        timeout_ns: [20_000_000, 500_000_000],
        ..Config::new(1500)
    };
    for ns_per_byte in [8.0, 1.0, 0.1] {
        let (share, ratio) = latecomers(config, ns_per_byte);
        let result = format!("{share} of the link, {ratio} to 1");
        assert!(share > 0.8, "{ns_per_byte} ns: {result}");
        assert!(ratio < 2.0, "{ns_per_byte} ns: {result}");
    }
}

/// Peers take turns at a sender, frame by frame: a long queue does not hold up another peer.
#[test]
pub fn peers_take_turns() {
    let mut net = Net::new(&[Config { congestion: false, ..Config::new(1500) }; 3], 2);
    let (long, short) = (net.link(0, 1), net.link(0, 2));
    net.run_until(Net::is_quiet);
    for _ in 0..200 {
        net.send(0, long, &[1; 1400]).unwrap();
    }
    net.send(0, short, b"short").unwrap();
    let mut buffer = vec![0; 1500];
    let order: Vec<_> = std::iter::from_fn(|| {
        net.nodes[0].endpoint.poll_transmit(net.now_ns, &mut buffer).map(|sent| sent.path)
    })
    .take(1000)
    .collect();
    let place = order.iter().position(|&path| path == Net::path(2, 0)).unwrap();
    assert!(place < 2, "the short queue's frame was number {place} of {}", order.len());
}
