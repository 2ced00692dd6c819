//! The process that crashes: it plays its part in the workout, and the steps in the device crash
//! it.

use super::Scenario;
use super::workout::Workout;
use crate::conformance::Node;
use crate::conformance::Patience;
use crate::conformance::child::{DEVICE, told};
use crate::conformance::patience::limit;
use bellwire::{Address, Device, DeviceOptions, Wait};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// The subject's node number. It is below the survivor's, so that its attempts to connect take
/// precedence.
pub const SUBJECT_NODE: u32 = 3;
/// The survivor's node number.
pub const SURVIVOR_NODE: u32 = 5;
/// The number that both listen on.
pub const LISTENER: u32 = 40;

/// A node with this number.
pub fn open(number: u32) -> Node {
    let options = DeviceOptions::default().node(number);
    let device = Device::open_with(&told(DEVICE), &options).expect("the device");
    Node::of(device, 0, &Default::default())
}

/// The address of a node's listener or queue pair.
pub fn at(node: u32, queue_pair: u32) -> Address {
    Address::new(node, 0, queue_pair)
}

/// Where the survivor listens as soon as it has asked for a link.
pub fn asked() -> SocketAddr {
    named("asked")
}

/// Where the subject listens as soon as it has read the survivor's request.
pub fn crossed() -> SocketAddr {
    named("crossed")
}

fn named(what: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("{} {what}", told(DEVICE))).expect("a short name")
}

/// Whether one of the descriptors of a function has something to read.
fn is_readable(of_function: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(of_function, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).expect("poll") > 0
}

/// The subject's main function.
pub fn play(scenario: Scenario) {
    let mut node = open(SUBJECT_NODE);
    let pair = node.queue_pair;
    let to = match scenario {
        Scenario::Initiator => {
            let there = at(SURVIVOR_NODE, LISTENER);
            node.function.connect(pair, there, b"subject", limit()).expect("accepted");
            None
        }
        Scenario::Target => {
            let listener = node.function.listen(LISTENER).expect("free");
            let request =
                node.function.wait_request(listener, Wait::Block, limit()).expect("a request");
            node.function.accept(request, pair, b"subject").expect("accepted");
            None
        }
        Scenario::Crossing => Some(at(SURVIVOR_NODE, pair.number)),
    };
    let connected = to.is_none();
    let mut has_crossed = None;
    let mut workout = Workout::new(node, to, || false);
    if scenario == Scenario::Crossing {
        // Our request and the survivor's cross: it reads ours only after we have read its own. That
        // is a connection first, and a message later, so its connection alone says nothing.
        workout.after_first_post(|node| {
            let mut patience = Patience::new();
            while UnixStream::connect_addr(&asked()).is_err() {
                patience.spend(|| "the survivor asks for no link".to_owned());
            }
            while is_readable(node.function.wait_fd()) {
                node.function.progress().expect("progress");
                patience.spend(|| "the survivor's request stays unread".to_owned());
            }
            has_crossed = UnixListener::bind_addr(&crossed()).ok();
        });
    }
    workout.run(true).expect("the survivor survives");
    if connected && scenario == Scenario::Initiator {
        workout.node.function.disconnect(pair).expect("connected");
        workout.node.function.progress().expect("progress");
    }
}
