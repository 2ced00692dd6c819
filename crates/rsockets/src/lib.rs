//! Sockets over queue pairs: streams and datagrams with the calls of rsocket(7), blocking or not.
//!
//! Connections are made by `bellwire-rdmacm`, and bytes travel over the reliable connections of
//! `bellwire-rdma`. Both sides of a stream are of this crate.
//!
//! # How bytes travel
//! 1. A write goes into a ring of the sender. A short one that finds the ring empty passes it.
//! 2. A message takes a credit: one receive of the peer. Without credit bytes gather in the ring.
//! 3. The peer's device puts the message into a slot. The program reads it from there.
//! 4. A slot that was read is posted again, and its credit goes back with the next message.
//!
//! Both buffers have a size that the program sets. Credit travels apart from data, so two programs
//! that both send go on for as long as both read.
//!
//! # Numbers
//! The number of a socket is a descriptor of the kernel, so it collides with no other. While
//! somebody sleeps there, the kernel says of it what the socket is: `mirror.rs`.
//!
//! # When a peer is gone
//! Each side ends its stream by a message. A connection that breaks without one is reset: what has
//! arrived is read, then `ECONNRESET` follows.
//!
//! # Files
//!
//! | file | what |
//! |---|---|
//! | `c` | the calls of C |
//! | `calls.rs` | calls that wait |
//! | `wait.rs` | waiting for sockets and ordinary descriptors |
//! | `runtime.rs`, `service.rs` | what the sockets of a process share; its thread |
//! | `socket.rs`, `state.rs`, `listener.rs` | a socket, what is behind its lock, what waits at it |
//! | `connection.rs` | a stream on a queue pair |
//! | `stream.rs` | the stream without I/O |
//! | `datagram` | datagrams, on queue pairs for datagrams |
//! | `mirror.rs`, `options.rs`, `device.rs`, `area.rs`, `log.rs` | what they are made of |
//! | `message.rs` | the formats |
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod area;
#[allow(unsafe_code)]
pub mod c;
#[allow(unsafe_code)]
pub mod calls;
pub mod canary;
#[allow(unsafe_code)]
mod connection;
#[allow(unsafe_code)]
pub mod datagram;
#[allow(unsafe_code)]
mod device;
mod listener;
mod log;
pub mod message;
#[allow(unsafe_code)]
mod mirror;
mod options;
#[allow(unsafe_code)]
mod runtime;
#[allow(unsafe_code)]
mod service;
#[allow(unsafe_code)]
mod socket;
mod state;
pub mod stream;
#[allow(unsafe_code)]
mod wait;

pub use log::say;
pub use socket::Socket;
