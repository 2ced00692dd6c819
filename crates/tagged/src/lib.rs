//! Tagged messages: what MPI and similar libraries need above [`bellwire`]'s messages.
//!
//! An [`Endpoint`] sends messages, with a 64-bit tag or without, to the endpoints of any number of
//! peers. It matches incoming messages with posted receives in the order in which they were sent.
//! The memory is the program's and is used where it is. This crate uses only the public API of
//! `bellwire`, and all bindings whose programs know tags share it.
//!
//! # How a message travels
//! - **Eager**: up to a packet less a few words, with a header before it. If it matches a posted
//!   receive, it is copied from the device's memory to where it belongs. Otherwise it goes through
//!   a buffer of the endpoint, which is one more copy.
//! - **Segmented**: up to 128 KiB, the same way in several packets, unless the receiver is two such
//!   messages behind. The first packet matches a receive.
//! - **Offered** (rendezvous): others. The sender registers its memory for this one message
//!   and sends the key. The endpoint with a matching receive fetches the bytes straight into the
//!   program's memory and tells the sender.
//!
//! Short messages that others follow at once ([`Endpoint::send_more`]) wait for them, and travel in
//! one packet where the device gains by it.
//!
//! Credit limits the bytes of a sender that are unexpected at a receiver ([`WINDOW_BYTES`]).
//! Consumed bytes come back as credit in the header of messages in the other direction, or in a
//! message of its own. A credit-starved sender offers short messages too, so that unexpected
//! messages stay in the sender's memory.
//!
//! # Remote memory access
//! A program [exposes](Endpoint::expose) memory under a key of its choice. Peers
//! [write](Endpoint::write), [read](Endpoint::read) and [change](Endpoint::atomic) it by that key.
//! On first use of a key, a peer asks the owner for the region's own unguessable key, and caches
//! it. If the cached key fails later, perhaps because the program's key now names other memory, the
//! owner is asked once more. Writes and reads are puts and gets of [`bellwire`]. The owner's
//! [`Endpoint::progress`] executes atomic operations: each number atomically, and the requests of
//! one peer in order.
//!
//! # Order
//! Messages of one sender are matched in the order in which they were sent, however they travel.
//! Long ones may complete later than short ones that were sent after them.
//!
//! # Connections
//! An endpoint may be [restricted to one peer](Endpoint::restrict_to_peer): it
//! [asks](Endpoint::connect) another one that [listens](Endpoint::listen), or
//! [accepts](Endpoint::accept) a request. It learns when its peer ends the connection or is gone.
//! Messages and accesses are the same then.
//!
//! # When a peer is gone
//! Operations that wait for it fail. A link may lose messages that counted as sent already. The
//! next send to that peer reports the loss ([`PostError::Lost`]). While an operation waits, its
//! peer is probed periodically. The incarnation identifies a peer that was started again at the
//! same address: operations for the previous one fail.
//!
//! # Files
//! Each uses only files below it in this table.
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | the calls of a program, making progress, and dispatching what has come |
//! | `presence.rs` | when to probe peers |
//! | `initiator.rs`, `target.rs` | remote memory access: its two sides |
//! | `send.rs` | sending: eager, segmented, or offered |
//! | `receive.rs` | posted receives meet messages |
//! | `in_place.rs` | messages that match a receive while they are in the device's memory |
//! | `connection.rs` | endpoints that are restricted to one peer |
//! | `fetch.rs` | rendezvous: fetching offered messages |
//! | `transport.rs` | the endpoint's function, and packets to its peers |
//! | `peers.rs` | what is known of peers: credit, cached keys, unfinished messages |
//! | `shared.rs`, `multi_receive.rs` | receives of several endpoints; buffers for many messages |
//! | `segments.rs` | unfinished segmented messages |
//! | `matching.rs` | queues of posted receives and unexpected messages |
//! | `envelope.rs`, `control.rs`, `head.rs` | the layout of packets |
//! | `completion.rs` | what a program gets |
//! | `atomic.rs`, `memory.rs`, `queue.rs`, `slots.rs` | atomic operations, spans, containers |

mod atomic;
mod completion;
mod connection;
mod control;
mod endpoint;
mod envelope;
mod fetch;
mod head;
mod in_place;
#[cfg(test)]
mod in_place_tests;
mod initiator;
mod matching;
mod memory;
mod multi_receive;
mod peers;
mod presence;
mod queue;
mod receive;
mod segments;
mod send;
mod shared;
mod slots;
mod target;
mod transport;

pub use atomic::{AtomicOp, AtomicRequest, Datatype, OPERAND_BYTES};
pub use completion::{
    CompletionKind, ConnectionEvent, ConnectionRequest, MemoryAccess, Outcome, Peer, PostError,
    Sink, TaggedCompletion, Token,
};
pub use connection::CONNECTION_BYTES;
pub use endpoint::{Endpoint, Options};
pub use initiator::{Operands, RemoteAddress};
pub use matching::{MatchCriteria, Peek};
pub use memory::{Span, Spans};
pub use segments::{SEGMENTED_BYTES, WINDOW_BYTES};
pub use send::{SendMode, SendStatus, TaggedMessage};
pub use shared::SharedReceives;
