//! The link layer of a point-to-point link: sequence numbers, replay, acknowledgement, credits
//! (S-15 to S-17; SMP paper, section 2).
//!
//! The paper has a replay buffer, a sliding window and credits, and leaves their rules to a thesis
//! that we do not have. The rules here are PCIe's (base specification 2.0, sections 2.6 and 3.5),
//! because the paper's link is a reduced PCIe.
//!
//! ```text
//!   CreditGate -> Transmitter -> frames ->  Receiver -> CreditLedger
//!        ^             ^                        |            |
//!        |             +------ ACK, NAK --------+            |
//!        +----------------------- granted -------------------+
//! ```
//!
//! One [`Transmitter`] and one [`Receiver`] stand at each end of a link, one [`CreditGate`] and one
//! [`CreditLedger`] for each of its virtual channels. Time is a number of ticks of the caller's
//! clock, whatever a tick is.
//!
//! Why this is not [`reliable`](crate::reliable): a network loses, repeats and reorders, so that
//! protocol acknowledges selectively, measures its timers and paces itself. A link does none of
//! this. A damaged frame and all behind it are retransmitted (go back), out of a buffer that
//! hardware can build. Both share the decision when to acknowledge: the reliable protocol's LOSE is
//! the link's NAK.

mod credits;
mod receiver;
mod sequence;
mod transmitter;

pub use credits::{
    Cost, CreditGate, CreditLedger, DATA_CREDIT_BYTES, DATA_MODULUS, Lacking, Overflow,
};
pub use receiver::{Arrival, Receiver};
pub use transmitter::{NotSent, TimedOut, Transmitter};
