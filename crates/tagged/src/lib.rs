//! Tagged messages: what MPI and its like need above [`bellwire`]'s messages.
//!
//! An [`Endpoint`] sends messages, with a 64-bit tag or without, to the endpoints of any number of peers, and matches those that come with
//! the receives that were posted, in the order in which they were sent. The memory is the program's and is used where it is. This room stands on the
//! public API of `bellwire` and is shared by all bindings whose programs know tags.
//!
//! # How a message travels
//! - **At once** (eager): up to a packet less a few words, with a header before it. If a receive waits for it, it is copied from the device's
//!   memory to where it belongs; otherwise through a buffer of the endpoint, which is a copy more.
//! - **In pieces**: up to 32 KiB, the same way in several packets. A receive is matched by the first.
//! - **Offered**: longer ones. The sender registers its memory for this one message and sends the key; whoever has a
//!   receive for it fetches the bytes straight into the program's memory and says so.
//!
//! A sender may have only so many bytes at a receiver that no receive was posted for ([`WINDOW_BYTES`]): what was consumed comes back
//! as credit in the header of messages that go the other way, or in one of its own. Beyond that it offers short messages too, so that
//! what is unexpected stays in the sender's memory.
//!
//! # Accesses to a peer's memory
//! A program [exposes](Endpoint::expose) memory under a key of its choice, and peers [write](Endpoint::write), [read](Endpoint::read) and
//! [change](Endpoint::change) it by that key. Who first uses a key asks the owner for the region's own, which cannot be guessed, and
//! remembers it; if that fails later, perhaps because the key means other memory now, the owner is asked once more. Writes and reads are puts and gets of
//! [`bellwire`]; changes are carried out by the owner's [`Endpoint::progress`], each number in one step, those of one peer in order.
//!
//! # Order
//! Messages of one sender are matched in the order in which they were sent, however they travel. Long ones may complete later than short ones that
//! were sent after them.
//!
//! # Connections
//! An endpoint may be [for one peer only](Endpoint::seclude): it [asks](Endpoint::connect) another one that [listens](Endpoint::listen), or
//! [accepts](Endpoint::accept) a request, and hears when its peer ends the connection or is gone. Messages and accesses are the same then.
//!
//! # Life and death
//! A peer that ends fails what waits for it. Messages that counted as sent already, and are lost with a link, are told of when the next one is to go
//! there ([`Refusal::Lost`]). While something waits, its peer is asked now and then whether it is there, and a peer that was
//! started again at the same address is known by its incarnation: what was meant for the former one fails.
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | opening, making progress, and what to do with what has come |
//! | `send.rs` | sending at once, or offering |
//! | `in_place.rs` | messages that find their receive while they are in the device's memory |
//! | `receive.rs` | posted receives meet messages: matching, cancelling, peeking |
//! | `pieces.rs` | messages of several packets |
//! | `shared.rs` | receives that endpoints share |
//! | `transfer.rs` | fetching what was offered |
//! | `access.rs` | writing, reading and changing a peer's memory |
//! | `exposed.rs`, `atomic.rs` | the owner's side of it, and how numbers change |
//! | `connection.rs` | endpoints that speak with one peer only |
//! | `control.rs` | what endpoints say to each other beside messages |
//! | `head.rs` | the layout of all of it |
//! | `peers.rs`, `queue.rs`, `slots.rs`, `memory.rs`, `done.rs` | what these are made of |

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
pub use send::{How, Message, Refusal, Sent};
pub use shared::SharedReceives;
