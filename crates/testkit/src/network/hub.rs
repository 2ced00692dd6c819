//! A bystander on a link that floods: every frame of the others reaches it, and it must ignore
//! them.

use super::socket::PacketSocket;
use super::traffic::Traffic;
use super::{Carrier, Network, WIRE};
use crate::conformance::{Patience, Stage};
use bellwire_wire::frame::ETHERTYPE;
use std::cell::RefCell;

/// Messages each way between the two talking stations.
const MESSAGES: u64 = 200;
/// Longest message in bytes: several frames.
const LONGEST: usize = 5_000;
/// The station that is not addressed at first.
const BYSTANDER: usize = 2;

/// Bytes before the protocol's part of a frame.
const ETHERNET_BYTES: usize = 14;

/// Two stations on a hub connect and exchange messages, while a third one polls a function of the
/// same number. Panics if the third one receives a frame for another station, or sends any. At the
/// end the others talk to it.
pub fn a_bystander_keeps_out(carrier: Carrier) {
    let network = Network::hub(carrier, 3);
    let hub = RefCell::new(Hub::of(&network));
    let mut stage = network.stage();
    eprintln!("bystander: {}", stage.nodes[BYSTANDER].device.describe());
    let mut talk = Traffic::both_ways(MESSAGES);
    talk.longest = LONGEST;
    let came = network.frames_received(BYSTANDER, WIRE);
    let run = |stage: &mut Stage<'_>, traffic: &mut Traffic| {
        traffic.until(stage, |traffic| {
            hub.borrow_mut().look();
            traffic.is_over()
        });
    };
    run(&mut stage, &mut talk);
    let mut patience = Patience::new();
    loop {
        let taken = device_counter(&mut stage, BYSTANDER, "frames_received");
        let mut hub = hub.borrow_mut();
        hub.look();
        let for_all = hub.ports[0].for_all + hub.ports[1].for_all;
        assert!(taken <= for_all, "{taken} frames taken, and {for_all} were for all: {hub:?}");
        if taken == for_all {
            break;
        }
        patience.spend(|| format!("{taken} frames taken of {for_all} that were for all"));
    }
    assert_eq!(device_counter(&mut stage, BYSTANDER, "links"), 0);
    let others = {
        let hub = hub.borrow();
        assert_eq!((hub.ports[BYSTANDER].for_one, hub.ports[BYSTANDER].for_all), (0, 0), "{hub:?}");
        hub.ports[0].for_one + hub.ports[1].for_one
    };
    // Controls: the frames were there, and the bystander is alive.
    let came = network.frames_received(BYSTANDER, WIRE) - came;
    assert!(others >= MESSAGES && came >= others, "{came} of {others} frames came by");
    let before = device_counter(&mut stage, BYSTANDER, "frames_received");
    let flows = [(0, BYSTANDER), (BYSTANDER, 0), (1, BYSTANDER), (BYSTANDER, 1)];
    let mut talk = Traffic::new(flows, MESSAGES / 10);
    talk.longest = LONGEST;
    run(&mut stage, &mut talk);
    let after = device_counter(&mut stage, BYSTANDER, "frames_received");
    assert!(after > before, "{after} after {before}");
    assert!(hub.borrow().ports[BYSTANDER].for_one > 0);
}

/// The current value of `counter` of node `who`'s device, as `bellwire stat` shows it.
fn device_counter(stage: &mut Stage<'_>, who: usize, counter: &str) -> u64 {
    let (mut patience, mut first) = (Patience::new(), None);
    loop {
        // Progress comes before the first snapshot too: two snapshots later the numbers are newer
        // than the call.
        stage.turn();
        let text = snapshot(stage, who);
        let serial = number(&text, "serial");
        if serial >= *first.get_or_insert(serial) + 2 {
            return number(&text, counter);
        }
        patience.spend(|| format!("no new snapshot: {text}"));
    }
}

/// The newest snapshot of node `who` of this process.
fn snapshot(stage: &Stage<'_>, who: usize) -> String {
    let address = format!("\"address\":\"{}\"", stage.nodes[who].function.address());
    let files = bellwire::stat::files_of(std::process::id()).expect("our own");
    // Parallel tests may close theirs.
    let texts = files.iter().filter_map(|file| bellwire::stat::read(file).ok().flatten());
    let found = texts.into_iter().find(|text| text.contains(&address));
    found.unwrap_or_else(|| panic!("nobody shows {address}"))
}

/// The number behind a name in a snapshot.
fn number(text: &str, name: &str) -> u64 {
    let after = text.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("no {name}"));
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// Received frames of our EtherType at one port of the hub.
#[derive(Clone, Copy, Default, Debug)]
struct Port {
    /// Frames for all stations.
    for_all: u64,
    /// Frames for one other station. A device that measures its ways sends frames to itself, which
    /// are not counted.
    for_one: u64,
}

/// Sees all frames that stations send.
struct Hub {
    sockets: Vec<PacketSocket>,
    ports: Vec<Port>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "by port: {:?}", self.ports)
    }
}

impl Hub {
    fn of(network: &Network) -> Hub {
        let switch = network.switch.as_ref().expect("the hub");
        let count = network.hosts.len();
        let open = || (0..count).map(|number| PacketSocket::open(&format!("p{number}"))).collect();
        Hub { sockets: switch.run(open), ports: vec![Port::default(); count] }
    }

    /// Counts the frames that have come.
    fn look(&mut self) {
        let mut frame = [0; ETHERNET_BYTES];
        for (socket, port) in self.sockets.iter().zip(&mut self.ports) {
            while socket.receive(&mut frame).is_some() {
                if frame[12..14] != ETHERTYPE.to_be_bytes() || frame[..6] == frame[6..12] {
                    continue;
                }
                match frame[..6] == [0xff; 6] {
                    true => port.for_all += 1,
                    false => port.for_one += 1,
                }
            }
        }
    }
}
