//! Tagged messages: what MPI and similar libraries need above [`bellwire`]'s messages.
//!
//! An [`Endpoint`] sends messages, with a 64-bit tag or without, to the endpoints of any number of
//! peers. It matches incoming messages with posted receives in the order in which they were sent.
//! The memory is the program's and is used where it is. This crate uses only the public API of
//! `bellwire`, and all bindings whose programs know tags share it.
//!
//! # How a message travels
//! - **Eager**: up to a packet less a few words, with a header before it. If a receive waits for
//!   it, it is copied from the device's memory to where it belongs. Otherwise it goes through a
//!   buffer of the endpoint, which is one more copy.
//! - **In pieces**: up to 32 KiB, the same way in several packets. The first one matches a receive.
//! - **Offered** (rendezvous): longer ones. The sender registers its memory for this one message
//!   and sends the key. The endpoint with a matching receive fetches the bytes straight into the
//!   program's memory and tells the sender.
//!
//! Credit limits the bytes of a sender that wait at a receiver without a posted receive
//! ([`WINDOW_BYTES`]). Consumed bytes come back as credit in the header of messages in the other
//! direction, or in a message of its own. A credit-starved sender offers short messages too, so
//! that unexpected messages stay in the sender's memory.
//!
//! # Accesses to a peer's memory
//! A program [exposes](Endpoint::expose) memory under a key of its choice. Peers
//! [write](Endpoint::write), [read](Endpoint::read) and [change](Endpoint::change) it by that key.
//! On first use of a key, a peer asks the owner for the region's own unguessable key, and caches
//! it. If the cached key fails later, perhaps because the program's key now names other memory, the
//! owner is asked once more. Writes and reads are puts and gets of [`bellwire`]. The owner's
//! [`Endpoint::progress`] carries out changes: each number atomically, and those of one peer in
//! order.
//!
//! # Order
//! Messages of one sender are matched in the order in which they were sent, however they travel.
//! Long ones may complete later than short ones that were sent after them.
//!
//! # Connections
//! An endpoint may be [for one peer only](Endpoint::seclude): it [asks](Endpoint::connect) another
//! one that [listens](Endpoint::listen), or [accepts](Endpoint::accept) a request. It learns when
//! its peer ends the connection or is gone. Messages and accesses are the same then.
//!
//! # Life and death
//! When a peer ends, operations that wait for it fail. A link may lose messages that counted as
//! sent already. The next send to that peer reports the loss ([`Refusal::Lost`]). While an
//! operation waits, its peer is asked periodically whether it is there. The incarnation identifies
//! a peer that was started again at the same address: operations for the previous one fail.
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | opening, making progress, and handling what has come |
//! | `send.rs` | sending eagerly, or offering |
//! | `in_place.rs` | messages that find their receive while they are in the device's memory |
//! | `receive.rs` | posted receives meet messages: matching, cancelling, peeking |
//! | `pieces.rs` | messages of several packets |
//! | `shared.rs` | receives that endpoints share |
//! | `transfer.rs` | fetching offered messages |
//! | `access.rs` | writing, reading and changing a peer's memory |
//! | `exposed.rs`, `atomic.rs` | the owner's side of it, and how numbers change |
//! | `connection.rs` | endpoints that speak with one peer only |
//! | `control.rs` | control messages between endpoints |
//! | `head.rs` | the layout of all messages |
//! | `peers.rs`, `queue.rs`, `slots.rs`, `memory.rs`, `done.rs` | the data structures of these |

mod access;
mod atomic;
mod connection;
mod control;
mod done;
mod endpoint;
mod exposed;
mod head;
mod in_place;
mod memory;
mod peers;
mod pieces;
mod queue;
mod receive;
mod send;
mod shared;
mod slots;
mod transfer;

pub use access::{Operands, Place};
pub use atomic::{Change, Form, Number, OPERAND_BYTES};
pub use connection::{CONNECTION_BYTES, ConnectionEvent, Request};
pub use done::{Done, Outcome, Sink, Token, What};
pub use endpoint::{Endpoint, Options};
pub use memory::{Span, Spans};
pub use peers::{Peer, WINDOW_BYTES};
pub use pieces::PIECES_BYTES;
pub use receive::{Peek, Selection};
pub use send::{How, Refusal, Sent, TaggedMessage};
pub use shared::SharedReceives;
