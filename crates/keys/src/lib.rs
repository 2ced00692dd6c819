//! Keys of the devices `eth` and `udp`: who may talk, and frames that nobody else can read or make.
//!
//! Sessions have no I/O, clock or random source: time and randomness are arguments. PROTOCOL.md
//! (*With a key*) says what is promised; `bellwire_wire::frame::keyed` has the bytes. Nothing of
//! cryptography is made here: handshakes are Noise by `snow`, frames are sealed by `aws-lc-rs`.
//!
//! ```text
//!   Endpoint --frame--> Sessions::seal --sealed frame--> network
//!   Endpoint <--frame-- Sessions::open <--any bytes----- network
//!                       Sessions::poll_transmit ---------> network    handshakes
//! ```
//! | module | what |
//! |---|---|
//! | [`KeyFile`], [`Keys`] | what a program knows: a shared key, or its own and its peers' |
//! | `key_store` | key files on disk, the only I/O here |
//! | [`Pairing`] | two programs with a short code agree on a shared key |
//! | `tags` | tags by which handshakes and questions show that their sender knows a key |
//! | `handshake` | two messages of Noise, which make the keys of a session |
//! | `cipher`, `window` | seals frames, and opens each once |
//! | `session`, `peer` | keys of one direction each way, and how one session follows another |
//! | [`Sessions`] | all sessions of a function |
#![forbid(unsafe_code)]

mod cipher;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod key_file;
mod key_store;
mod keys;
mod pairing;
mod peer;
mod session;
mod sessions;
mod tags;
mod window;

pub use cipher::Suite;
pub use key_file::{KeyFile, KeyFileError, parse_key, print_key};
pub use key_store::KeyStoreError;
pub use keys::{KEY_BYTES, Key, Keys, public_of};
pub use pairing::{Code, PAIRING_BYTES, Paired, Pairing, Side};
pub use session::Limits;
pub use sessions::{Counters, Entropy, PEERS, Sessions};
