//! The engine on the in-process loopback device: each operation and its failures, in small
//! scenarios.

/// The post is refused with this error.
macro_rules! refuses {
    ($post:expr, $error:pat) => {{
        let refused = $post.unwrap_err();
        assert!(matches!(refused.error, $error), "{refused}");
    }};
}

mod at_once;
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
mod hostile_transfers;
mod in_turns;
mod inbox;
mod look;
mod memory;
mod put;
mod random;
mod rendezvous;
mod steps;
mod together;
mod waiting;
mod world;
