//! The modelled cHPP crossbar against queueing theory.

use bellwire_model::chpp::experiments::saturated::throughput;

/// With one channel, and a FIFO of equal packets for random outputs, saturated throughput is that
/// of Karol, Hluchyj and Morgan (1987). It is 0.75, 0.6553 and 0.6184 for 2, 4 and 8 ports, and
/// about 0.601 for 16. Canary: a crossbar without head-of-line blocking (a channel per port) is far
/// from that.
// shows: B-03
#[test]
fn one_channel_has_karols_throughput() {
    for (ports, theory) in [(2, 0.75), (4, 0.6553), (8, 0.6184), (16, 0.601)] {
        let simulated = throughput(ports, 1, 8, true, 20_000, 3).unwrap();
        // Five standard errors of a share over this many slots are below 1 %.
        assert!(
            (simulated / theory - 1.0).abs() < 0.01,
            "{ports} ports: {simulated} against {theory}"
        );
    }
    assert!(throughput(4, 4, 32, true, 20_000, 3).unwrap() > 0.8);
}

/// More channels never saturate lower, and a channel per port saturates highest; the seed hardly
/// matters.
// shows: C-43
#[test]
fn channels_raise_saturation() {
    let at = |channels, seed| throughput(4, channels, 32, true, 20_000, seed).unwrap();
    let reached = [1, 2, 4].map(|channels| at(channels, 1));
    assert!(reached[0] < reached[1] && reached[1] < reached[2], "{reached:?}");
    assert!((at(2, 1) / at(2, 2) - 1.0).abs() < 0.02);
}
