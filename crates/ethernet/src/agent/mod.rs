//! Ethernet for programs without privileges: the agent has them, and hands out sockets.
//!
//! | file | what |
//! |---|---|
//! | `message`, `channel` | one request, one answer, over a Unix socket that knows who asks |
//! | [`server`] | the agent: whom it serves, its limits, its loop |
//! | `owners` | who has which function, asked of the kernel |
//! | `egress` | rules that drop what a program must not send |
//! | `client` | how a program asks |
//!
//! A program gets a packet socket that is bound to its interface and has its filter, which is
//! locked. From then on frames go between program and kernel alone. The agent keeps no descriptor
//! and no state. So programs go on when it ends, and its successor knows as much.
//! docs/threat-model.md says what the kernel lets a program do with such a socket.

mod channel;
mod client;
mod egress;
mod message;
mod owners;
pub mod server;

pub use client::interfaces_of;
pub(crate) use client::{AgentClient, Trouble};
pub(crate) use message::{Request, Want};

/// Where programs look for the agent.
pub const PATH: &str = "/run/bellwire/agent.sock";
/// Sockets that one user may have from the agent at once; root has no limit.
pub const SOCKETS_OF_USER: usize = 32;

#[cfg(test)]
mod tests;
