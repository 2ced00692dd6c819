//! Four whole interfaces of cHPP and the crossbar between them, with hosts that speak TLPs.

use bellwire_model::cycle::chpp_quad::{ChppQuad, Shape};

use crate::core_path::{Fault, SHAPE, Seen};
use crate::nic_path::four;

const QUAD: Shape = Shape { nic: SHAPE, channels: 2 };

/// PUTs, both kinds of NAPs and GETs between all processors, and of each with itself, end with
/// their bytes in memory. Each operation has one event, and so has each packet that is told.
// shows: C-01, C-04
#[test]
fn four_processors_reach_each_other() {
    let (mut path, _) = four(QUAD, 1, Fault::None);
    path.run(9_000);
    for Seen { sent, puts, naps, .. } in path.seen() {
        assert!(sent > 20 && puts > 3 && naps > 3, "{sent} {puts} {naps}");
    }
    assert!(path.reached_all(), "something goes from each to each");
}

/// Canary: a write that is lost is noticed.
#[test]
#[should_panic]
fn a_lost_write_of_one_of_four_is_noticed() {
    four(QUAD, 1, Fault::Lost).0.run(4_000);
}

/// A cycle is that of each interface, and then that of the crossbar.
#[test]
fn a_cycle_is_that_of_all_interfaces() {
    let (mut path, seen) = four(QUAD, 2, Fault::None);
    let mut quad = ChppQuad::new(QUAD);
    let mut crossed = 0;
    for cycle in 0..4_000 {
        path.cycle(true);
        let (input, out) = seen.last();
        assert_eq!(quad.cycle(input), out, "cycle {cycle}");
        crossed += out.crosses.iter().filter(|crosses| **crosses).count();
    }
    assert!(crossed > 20, "{crossed} packets");
}
