//! Peers that die, hang or are cut off, and programs that sleep.

use bellwire_protocol::reliable::{Config, DownReason};

use super::net::{Net, function};

/// A silent peer is reported dead, idle or not, within the configured time; queued packets have
/// failed.
#[test]
pub fn a_dead_peer_is_reported() {
    for queued in [0, 10] {
        let config = Config::new(1500);
        let mut net = Net::new(&[config; 2], 1);
        let peer = net.link(0, 1);
        net.run_until(Net::is_quiet);
        net.nodes[1].is_asleep = true;
        for _ in 0..queued {
            net.send(0, peer, b"into the void").unwrap();
        }
        let begin = net.now_ns;
        net.run_until(|net| net.down_reason(0).is_some());
        assert_eq!(net.down_reason(0), Some(DownReason::Dead));
        let bound = config.keep_alive_ns * (config.keep_alive_probes as u64 / 5 + 2);
        assert!(net.now_ns - begin <= bound, "after {} ns", net.now_ns - begin);
        assert_eq!(net.nodes[0].endpoint.counters().packets_failed, queued);
        assert!(net.send(0, peer, b"x").is_err());
        net.close(0, peer);
        assert_eq!(net.nodes[0].endpoint.link_count(), 0);
        net.check_books();
    }
}

/// A peer whose host says that it has gone is reported dead within two seconds, idle or not. It is
/// not if it shows a sign of life: anybody can say so.
#[test]
pub fn a_refused_peer_is_reported_early() {
    for queued in [0, 10] {
        for is_true in [true, false] {
            let mut net = Net::new(&[Config::new(1500); 2], 1);
            let peer = net.link(0, 1);
            net.run_until(Net::is_quiet);
            net.nodes[1].is_asleep = is_true;
            for _ in 0..queued {
                net.send(0, peer, b"into the void").unwrap();
            }
            for _ in 0..20 {
                let now_ns = net.now_ns;
                net.nodes[0].endpoint.refused(Net::path(1, 0), now_ns);
                net.run_for(100_000_000);
            }
            assert_eq!(net.down_reason(0), is_true.then_some(DownReason::Dead), "{queued} queued");
        }
    }
}

/// Idle links stay up, at the cost of one probe and one answer in each keep-alive interval.
#[test]
pub fn an_idle_link_stays_up() {
    let mut net = Net::new(&[Config::new(1500); 2], 2);
    let peer = net.link(0, 1);
    let before: u64 = net.sent.iter().sum();
    net.run_for(100_000_000_000);
    assert!(net.nodes[0].endpoint.is_up(peer));
    let frames = net.sent.iter().sum::<u64>() - before;
    assert!((100..=420).contains(&frames), "{frames} frames in 100 s");
}

/// A program that its peer gave up while it slept learns so when it wakes. A link survives the
/// sleep of both ends. Its own sleep alone makes it declare no peer dead.
#[test]
pub fn own_sleep_is_not_the_peers_death() {
    let mut net = Net::new(&[Config::new(1500); 2], 3);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    // Both sleep: the clock jumps, and neither could send.
    net.now_ns += 3_600_000_000_000;
    net.run_for(1_000_000_000);
    assert!(net.nodes[0].endpoint.is_up(peer));
    net.send(0, peer, b"awake").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 1);
    // One sleeps for a minute: the other gives it up, and it learns that when it wakes.
    net.nodes[1].is_asleep = true;
    net.run_for(60_000_000_000);
    assert_eq!(net.down_reason(0), Some(DownReason::Dead));
    net.nodes[1].is_asleep = false;
    net.run_until(|net| net.down_reason(1).is_some());
    assert_eq!(net.down_reason(1), Some(DownReason::Restarted));
}

/// A cut that ends within the limit is survived, and everything queued arrives.
// shows: H-17
#[test]
pub fn a_short_cut_is_survived() {
    for one_way in [false, true] {
        let mut net = Net::new(&[Config::new(1500); 2], 4);
        let peer = net.link(0, 1);
        for number in 0..50u32 {
            net.send(0, peer, &vec![number as u8; 900]).unwrap();
        }
        net.drop_if = Box::new(move |from, _, _| !one_way || from == 1);
        net.run_for(2_000_000_000);
        net.drop_if = Box::new(|_, _, _| false);
        net.run_until(Net::is_quiet);
        assert_eq!(net.nodes[1].taken.len(), 50);
        assert_eq!(net.down_reason(0), None);
        assert_eq!(net.nodes[1].taken[7].from, function(0));
    }
}

/// Half of all frames are lost, in both directions: with the production settings everything arrives
/// and no peer is declared dead.
// shows: H-14, H-17
#[test]
pub fn half_of_all_frames_may_be_lost() {
    for seed in 0..20 {
        let mut net = Net::new(&[Config::new(1500); 2], seed);
        net.faults = super::net::Faults { loss: 500, repeat: 50, late: 100, flip: 20 };
        let peer = net.link(0, 1);
        for number in 0..100u32 {
            net.send(0, peer, &[number as u8; 1400]).unwrap();
        }
        net.run_until(Net::is_quiet);
        assert_eq!(net.nodes[1].taken.len(), 100);
        assert_eq!((net.down_reason(0), net.down_reason(1)), (None, None));
    }
}
