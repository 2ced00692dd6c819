//! Two whole interfaces of cHPP over a link between processors, as gates have them.

use bellwire_model::cycle::chpp_link_nic::Shape;
use bellwire_model::cycle::{nic_core, packer};
use bellwire_wire::descriptor::Work;
use bellwire_wire::entry::Entry;
use bellwire_wire::event::Status;
use bellwire_wire::primitive::Primitive;

use crate::chpp_nic_gates::{FUNCTION, KEY, Machine, SLOT, SOURCE, TARGET, chain, counts, run};
use crate::core_path::{self, Fault};
use crate::link_nic_path::{PORT, Wires, interfaces, linked};

const SHAPE: Shape =
    Shape { nic: nic_core::Shape { timeout: 800, ..core_path::SHAPE }, port: PORT };

/// PUTs, both kinds of NAPs and GETs pass over lanes with skew, and end with their bytes in memory
/// and with their events.
// shows: C-31, S-10, S-19
#[test]
fn operations_pass_over_a_link() {
    let (mut path, seen) = linked(SHAPE, 1, Wires::Sound, Fault::None);
    path.run(6_000);
    for (core, link) in path.seen().iter().zip(seen) {
        let all = [core.sent / 10, core.puts / 3, core.naps / 3];
        assert!(all.iter().all(|&count| count > 0), "{core:?}");
        let link = link.get();
        let all = [link.trained, link.damaged, link.dropped, link.refused];
        assert_eq!(all, [1, 0, 0, 0]);
    }
}

/// The same over lanes that hit symbols, and that die for a while: training loses nothing, and
/// nothing that was hit gets into a memory.
// shows: S-16, S-18
#[test]
fn operations_pass_over_lanes_that_are_hit_and_die() {
    let (mut path, seen) = linked(SHAPE, 2, Wires::Hit, Fault::None);
    path.run(8_000);
    for (core, link) in path.seen().iter().zip(seen) {
        let all = [core.sent / 10, core.puts / 3, core.naps / 3];
        assert!(all.iter().all(|&count| count > 0), "{core:?}");
        let link = link.get();
        assert!(link.trained > 1 && link.damaged > 1, "{} {}", link.trained, link.damaged);
        assert_eq!((link.dropped, link.refused), (0, 0));
    }
}

/// A NAP of 2 KiB passes, which is five TLPs, and behind it a GET of as much, whose answers are
/// PUTs. Both memories hold what was sent.
// shows: C-31, S-10
#[test]
fn a_longest_nap_and_a_get_pass_over_a_link() {
    const BYTES: u64 = 2048;
    let packer = packer::Shape { beats: 256, longest: BYTES as usize, ..SHAPE.nic.packer };
    let shape = Shape { nic: nic_core::Shape { packer, room: 598, ..SHAPE.nic }, ..SHAPE };
    let (cycles, seen) = interfaces(shape, 3, Wires::Sound);
    let mut cpu = 0..;
    let mut machines = cycles.map(|cycle| Machine::over(cpu.next().expect("a number"), cycle));
    let bytes =
        |machine: &Machine, at: u64| machine.memory[at as usize..][..BYTES as usize].to_vec();
    run(&mut machines);

    let from = [Entry { address: SOURCE, length: BYTES }];
    let source = bytes(&machines[0], SOURCE);
    let word = machines[0].describe(KEY, Work::NapIndirect((&from[..]).into()));
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    assert_eq!(machines[0].event(0).status, Status::Success);
    let came = machines[1].event(1);
    assert_eq!((came.primitive, came.address, came.length), (Primitive::Nap, SLOT, BYTES));
    assert_eq!(bytes(&machines[1], SLOT), source);

    let far = bytes(&machines[1], SOURCE);
    let to = [Entry { address: TARGET, length: BYTES }];
    let get = Work::Get { chain: chain(&from, &to), return_magic: KEY };
    let word = machines[0].describe(KEY, get);
    machines[0].ring(FUNCTION, word);
    run(&mut machines);
    assert_eq!(machines[0].event(0).status, Status::Success);
    assert_eq!(machines[0].event(1).primitive, Primitive::Put);
    assert_eq!(bytes(&machines[0], TARGET), far);
    for at in [0, 1] {
        assert_eq!(counts(&mut machines, at), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((seen[at].get().dropped, seen[at].get().refused), (0, 0));
    }
}

/// Canary: over lanes of which one is cut nothing passes, and that is noticed.
#[test]
#[should_panic(expected = "all comes to its end")]
fn a_cut_lane_is_noticed() {
    linked(SHAPE, 1, Wires::Cut, Fault::None).0.run(2_000);
}

/// Canary: a bit of a completion that is turned is noticed behind the link, too.
#[test]
#[should_panic]
fn a_turned_bit_is_noticed_behind_the_link() {
    linked(SHAPE, 1, Wires::Sound, Fault::Turned).0.run(4_000);
}
