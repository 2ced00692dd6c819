//! A machine in deadlock ends the waits of those who use it, and tells them who waits for whom.

use crate::nic::Nic;
use crate::transport::VirtualTransport;
use crate::world::World;
use bellwire_device::{
    Error, FunctionAddress, LinkId, PacketHeader, Sink, Status, Transport, Verdict,
};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::post;
use bellwire_ring::memory::View;
use bellwire_wire::endpoint::Endpoint;
use std::sync::Arc;
use std::time::Duration;

/// Counts what comes.
#[derive(Default)]
struct Counter(usize);

impl Sink for Counter {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
        self.0 += 1;
        Verdict::Taken
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {}
}

/// Two functions on two hosts of a machine in which others have posted GETs in both directions, which programs of the device never do. With
/// `get_channel`, GETs have a channel of their own.
fn two_functions(get_channel: bool) -> [VirtualTransport; 2] {
    let mut config = Config::prototype();
    config.crossbar.channels = 1;
    config.crossbar.channel_packets = 4;
    config.crossbar.get_channel = get_channel;
    let nic = Nic::new(&config, 1).expect("a machine");
    let world = Arc::new(World::new(nic, 1, 0));
    let functions = [0, 1].map(|node| {
        let address = FunctionAddress { node, function: 0 };
        VirtualTransport::open(world.clone(), node as usize, address).expect("a function")
    });
    let mut state = world.lock();
    let mut desk = state.nic.desk();
    let other = |node| Endpoint::new(node, 1, 0).expect("the second function");
    for at in 0..32 {
        for node in [0u8, 1] {
            let ends = (other(node), other(1 - node));
            let near = desk.free_memory(node.into(), 1) + (1 << 20) + at * 4096;
            let far = desk.free_memory((1 - node).into(), 1);
            post(&mut desk, Kind::Get, ends, (near, far), 4096).expect("a descriptor");
        }
    }
    drop(state);
    functions
}

/// Where GETs share the channel of PUTs and the machine stops, a function that sleeps is woken with the ring of waits; one that spins sees its
/// time pass until its wait is given up, and is told then. With a channel for GETs what is sent arrives, and nobody hears of anything.
// shows: C-26, C-27
#[test]
fn a_deadlock_ends_waits() {
    let hour = Duration::from_secs(3600);
    let [mut spins, mut sleeps] = two_functions(false);
    let slept = sleeps.sleep(Some(hour));
    let Err(Error::Standstill { why }) = slept else { panic!("no standstill: {slept:?}") };
    assert!(why.contains("receive buffer") && why.contains("room for a packet"), "{why}");
    let (since, mut counter) = (spins.now(), Counter::default());
    while spins.now() - since < hour {
        assert_eq!(spins.poll(&mut counter, 8), 0);
    }
    assert!(spins.standstill().is_some());

    let [mut sends, mut receives] = two_functions(true);
    let link = sends.link(receives.address(), hour).expect("a link");
    let header = PacketHeader::new(bellwire_device::Kind::Send, 0, 0, 0);
    sends.send(link, header, &[], View::of(b"behind all")).expect("there is room");
    while receives.poll(&mut counter, 8) == 0 {
        receives.sleep(Some(hour)).expect("it comes");
    }
    assert_eq!((counter.0, receives.standstill().is_none()), (1, true));
}
