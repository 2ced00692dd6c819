//! The reliable protocol of the devices `eth` and `udp`: packets in order, once and unaltered. The
//! network below may lose, repeat, reorder and damage frames. PROTOCOL.md describes it;
//! `bellwire_wire::frame` has its bytes.
//!
//! It generalises HPCL's protocol (Sec. 3: ACK, LOSE, STOP, GO, timeout), which is one setting of
//! it, [`Config::hpcl`].
//!
//! # How to drive it
//! One [`Endpoint`] is one function with all its peers. It has no clock: `now_ns` is any clock that
//! does not go back.
//!
//! 1. [`Endpoint::connect`] asks for a link. A peer may also ask for one; [`Sink::check_place`] may
//!    object to that.
//! 2. [`Endpoint::send`] queues packets. Nothing goes out yet.
//! 3. [`Endpoint::handle_frame`] takes each frame that came. It offers completed packets to the
//!    [`Sink`] at once, still in the frame's buffer. A packet that the sink refuses is kept, and
//!    offered again by [`Endpoint::deliver`].
//! 4. [`Endpoint::poll_transmit`] until it has nothing: each call writes one frame into a buffer of
//!    the network.
//! 5. [`Endpoint::poll_event`] until it has nothing: links that came up or went down.
//! 6. Do so again when frames come or at [`Endpoint::next_deadline`]. Before a long sleep call
//!    [`Endpoint::flush`], so that no acknowledgement waits to be piggybacked.
//!
//! ```text
//!   send ----> SendStream --cut--> Flight --frame--> network    for requests, responses, news
//!                  ^                 |  ^
//!                  +---- release ----+  +-- acknowledged, lost ------- handle_frame
//!                                                                        |
//!   Sink <---- (Backlog, if refused or in pieces) <---- in order <-------+-- EarlySet, after a gap
//! ```

mod config;
mod counters;
mod endpoint;
mod gates;
mod interface;
mod link;
mod share;

pub use bellwire_wire::frame::FunctionId;
pub use bellwire_wire::frame::record::GateState;
pub use config::{Config, FEATURES, PATHS, Recovery, VERSIONS};
pub use counters::Counters;
pub use endpoint::{Endpoint, is_sound_frame};
pub use interface::{
    Body, Channel, DownReason, Event, PathId, PeerId, PlaceCheck, SendError, Sink, Transmit,
    Verdict,
};
