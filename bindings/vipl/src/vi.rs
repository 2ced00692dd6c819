//! Virtual interfaces: each is a queue pair with two work queues of descriptors (M-01, M-04).

use crate::abi::{Return, UNRELIABLE, ViAttributes, ViState};
use crate::directory::Listed;
use crate::end_point::{EndPoint, NetName, Role};
use crate::greeting::Greeting;
use crate::handle::Handle;
use crate::work_queue::WorkQueue;
use bellwire::{FunctionAddress, QueuePair, RemoteKey, Rights};
use std::collections::HashMap;
use std::time::Instant;

/// A VI.
pub struct Vi {
    pub handle: Handle,
    pub attributes: ViAttributes,
    pub tag: u32,
    pub queue_pair: QueuePair,
    pub state: ViState,
    pub send: WorkQueue,
    pub receive: WorkQueue,
    /// Descriptors at the front of the send queue that were issued or have failed.
    pub issued: usize,
    /// RDMA reads in flight, which a fence waits for.
    pub reads: usize,
    /// The memory handle whose directory entry is being fetched.
    pub looking_up: Option<u32>,
    pub peer: Option<Peer>,
    pub attempt: Option<Attempt>,
}

// SAFETY: the pointers inside are the program's; descriptors are written only while their memory is
// registered.
unsafe impl Send for Vi {}

impl Vi {
    pub fn is_reliable(&self) -> bool {
        self.attributes.reliability_level != UNRELIABLE
    }

    pub fn queue(&mut self, receives: bool) -> &mut WorkQueue {
        if receives { &mut self.receive } else { &mut self.send }
    }

    /// The connection with the speaker of a greeting is made.
    pub fn connect_to(&mut self, greeting: &Greeting) -> ViAttributes {
        let attributes = greeting.attributes();
        self.state = ViState::Connected;
        self.peer = Some(Peer {
            rights: greeting.rights,
            directory: greeting.directory,
            listed: HashMap::new(),
        });
        attributes
    }
}

/// The remote side of a connection.
pub struct Peer {
    /// What its VI lets us do.
    pub rights: Rights,
    pub directory: Option<RemoteKey>,
    /// Its directory entries by memory handle; `None`: no such region.
    pub listed: HashMap<u32, Option<Listed>>,
}

/// A connection that a VI is making.
pub struct Attempt {
    pub side: Side,
    pub outcome: Option<Result<ViAttributes, Return>>,
}

#[derive(Clone)]
pub enum Side {
    Asks(Question),
    /// It waits for a request from exactly this peer.
    IsAsked {
        end_point: EndPoint,
        host: FunctionAddress,
        deadline: Instant,
    },
}

/// State of the side that sends the request.
#[derive(Clone)]
pub struct Question {
    pub role: Role,
    pub own: NetName,
    pub peer: NetName,
    pub deadline: Instant,
    /// The function that must answer.
    pub at: FunctionAddress,
    /// When to ask again at the address that the program named, after "not yet".
    pub again_at: Option<Instant>,
}

impl Question {
    /// The end point that it asks for.
    pub fn end_point(&self) -> EndPoint {
        match self.role {
            Role::Client => EndPoint::of_server(&self.peer.discriminator),
            Role::Peer => EndPoint::of_peer(&self.peer.discriminator, &self.own.discriminator),
        }
    }
}
