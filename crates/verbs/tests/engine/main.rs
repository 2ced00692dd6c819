//! The engine on the in-process loopback device: each operation and its failures, in small
//! scenarios.

mod atomic;
mod channel;
mod chaos;
mod close;
mod connection;
mod eager;
mod flow;
mod fork;
mod get;
mod hostile;
mod memory;
mod put;
mod random;
mod rendezvous;
mod waiting;
mod world;
