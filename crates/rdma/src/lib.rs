//! Queue pairs of the InfiniBand specification: RC, UC and UD, with completion queues, protection
//! domains, memory regions and windows, by 24-bit queue pair numbers and 32-bit keys.
//!
//! This crate uses the API of `bellwire`, and copies through the views of `bellwire-ring`. Bindings
//! whose programs know verbs share it.
//! Names are those of the specification where `bellwire` has no word of its own.
//!
//! # How a message travels
//! All queue pairs of an [`Adapter`] share one queue pair of the function, the mailbox. Each packet
//! has a head that names two queue pairs.
//! - **Short messages** follow their head. The receiver copies them from the device's memory into
//!   the parts of a posted receive. Those that are posted together share a packet (`list.rs`), and
//!   so do those that are posted while the peer has many to take. They wait for each other until
//!   the next poll at most.
//! - **Long ones** are offered: the sender registers its list for this one message. The receiver
//!   fetches it into the parts of a receive.
//! - **Writes, reads and atomics** are puts, gets and atomics of `bellwire`. At its first use of an
//!   rkey, a queue pair asks the owner. The owner checks domain and access flags, and answers with
//!   the device's own 64-bit key. The device checks that key, the bounds and the right of each
//!   access. The owner ends that key when the queue pair fails.
//!
//! # Order
//! Requests start in the order of posting. A write, read or atomic waits until the messages before
//! it are acknowledged: the device would execute it before the receiver has looked at them. Behind
//! the immediate value of a write, which places no bytes, it waits only if the peer has not
//! promised a receive. Acknowledgements carry that promise.
//!
//! # When a request completes
//! A request completes when its message is in the receive of the peer, as the peer's
//! acknowledgement says. Acknowledgements travel with messages of the other direction, or alone:
//! after 32 messages, or when the receiver has found nothing more for half a microsecond. Once in
//! 32 messages a signaled one asks for an earlier acknowledgement. Requests retire in order.
//!
//! # Without a receive
//! The receiver keeps up to 64 messages of a sender that waits without limit (`rnr_retry` 7). Other
//! senders get an RNR NAK, wait as long as it says, and send again from that message on. Messages
//! with a receive are no such case: up to 1,024 wait behind one that is still fetched.
//!
//! # When a peer is gone
//! While something waits for a peer, it is asked each quarter of a second. The device reports that
//! it is gone. The oldest request completes as [`WorkStatus::RetryExceeded`], all others as
//! flushed.
//!
//! # Groups
//! A datagram to a group is an IP multicast, on the host as well. `multicast/mod.rs` says why.
//!
//! # Files
//! Each uses only files below it in this table.
//!
//! | file | what |
//! |---|---|
//! | `wait.rs` | threads of a program that wait for events |
//! | `looks.rs` | whether such a wait looks before it sleeps |
//! | `context.rs` | an adapter that several threads use, and a thread that makes progress |
//! | `sleep.rs` | a sleep until descriptors are readable |
//! | `attend.rs` | when that thread looks although the program calls now and then |
//! | `adapter.rs` | the calls of a program |
//! | `time.rs` | what is due by the clock, sleep, and the end |
//! | `deliver.rs` | arrivals that need the function: fetches, answers about keys |
//! | `initiate.rs` | requests start, and the device's results |
//! | `arrive.rs` | packets, and acknowledgements |
//! | `acknowledge.rs` | acknowledgements that are owed |
//! | `multicast` | datagrams to groups, by IP multicast |
//! | `state.rs` | all objects, and lists of what is to be done |
//! | `queue_pair.rs`, `completion_queue.rs`, `memory.rs` | one object each |
//! | `send_queue.rs`, `receive_queue.rs`, `remote_keys.rs` | one object each, too |
//! | `peers.rs`, `events.rs` | one object each, too |
//! | `host.rs` | the devices of this host |
//! | `request.rs`, `completion.rs`, `error.rs` | what they are made of |
//! | `list.rs`, `head.rs`, `places.rs`, `slab.rs` | what they are made of |
#![deny(unsafe_code)]

mod acknowledge;
#[allow(unsafe_code)]
mod adapter;
mod arrive;
mod attend;
mod completion;
mod completion_queue;
mod context;
mod deliver;
mod error;
mod events;
mod head;
#[allow(unsafe_code)]
mod host;
mod initiate;
mod list;
mod looks;
#[allow(unsafe_code)]
mod memory;
mod multicast;
mod peers;
mod places;
mod queue_pair;
mod receive_queue;
mod remote_keys;
mod request;
mod send_queue;
mod slab;
#[allow(unsafe_code)]
mod sleep;
mod state;
#[cfg(test)]
#[allow(unsafe_code)]
mod testing;
mod time;
#[allow(unsafe_code)]
mod wait;

/// Reads bytes as a packet and as what may follow its head, for fuzzers. What is read comes back
/// from its bytes.
#[doc(hidden)]
pub fn parse(bytes: &[u8]) {
    let view = bellwire_ring::memory::View::of;
    if let Some((head, body)) = head::Head::split(view(bytes)) {
        let mut again = [0; head::Head::BYTES];
        let length = head.emit(&mut again);
        assert_eq!(head::Head::split(view(&again[..length])).map(|(head, _)| head), Some(head));
        assert_eq!(body.len(), bytes.len() - length);
        list::records(body).for_each(drop);
    }
    if let Some(written) = head::Written::parse(bytes) {
        assert_eq!(written.emit(), bytes);
    }
    if let Some(memory) = memory::RemoteMemory::parse(bytes) {
        assert_eq!(memory::RemoteMemory::parse(&memory.emit()), Some(memory));
        for at in [0, 1, memory.base, u64::MAX] {
            let end = memory.offset(at, 8, Access::REMOTE_READ).ok().map(|at| at.checked_add(8));
            assert!(end.is_none_or(|end| end.is_some_and(|end| end <= memory.key.length)));
        }
    }
}

pub use adapter::{Adapter, AdapterLimits, LIMITS};
pub use bellwire::Error as DeviceError;
pub use completion::{Cause, WorkCompletion, WorkOpcode, WorkStatus, work_flag};
pub use completion_queue::CqId;
pub use context::Context;
pub use error::{Refusal, Result};
pub use events::{AsyncEvent, EventKind, EventQueue};
pub use host::{HostDevice, Interface};
pub use initiate::{DATAGRAM_BYTES, MESSAGE_BYTES};
pub use memory::{Access, Binding, Domain, Sge};
pub use multicast::{GROUP_QUEUE_PAIR, GROUPS, MEMBERS, PORT as MULTICAST_PORT};
pub use queue_pair::{Attributes, Capacity, Mask, QpState, QueuePairOptions, Service};
pub use receive_queue::SrqId;
pub use request::{Bytes, Datagram, Operation, SendRequest};
