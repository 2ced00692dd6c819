//! Attacks on real functions of `udp` and `eth`, by a station that sends any frames from addresses
//! of its own. It sees none of the victim's traffic with others.
//!
//! | module | the attacker |
//! |---|---|
//! | [`steal`] | goes through a whole handshake in a peer's name |
//! | [`places`] | sends from more addresses than a function has names for |
//! | [`here`] | tells wrong places of nodes, unasked |
//! | [`block`] | keeps a peer from connecting by Opens in its name |
//! | [`amplify`] | has a function answer by more bytes than it gets |
//! | [`flood`] | asks for links in thousands of made-up names |
//! | [`moved`] | none: an honest node moves, or has another host's number |
//!
//! Each attack shows two more things. Honest peers exchange messages before it, meanwhile and
//! afterwards. Counters of the victim grow, so the attacker's frames have reached its protocol.
//!
//! Attacks over UDP use loopback and need nothing. Those over Ethernet make hosts around a bridge,
//! which needs root.

pub mod amplify;
mod assault;
pub mod block;
pub mod flood;
mod frames;
mod ground;
pub mod here;
pub mod moved;
pub mod places;
mod station;
pub mod steal;
mod witness;

pub use station::From;
pub use steal::Numbers;
