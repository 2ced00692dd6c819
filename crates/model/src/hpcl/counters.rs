//! The counters of a node.

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a node.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// The counts since `before`.
            pub fn since(&self, before: &Counters) -> Counters {
                Counters { $($name: self.$name - before.$name,)* }
            }

            /// The sum of both.
            pub fn plus(&self, other: &Counters) -> Counters {
                Counters { $($name: self.$name + other.$name,)* }
            }
        }
    };
}

counters! {
    /// System calls.
    system_calls,
    /// Interrupts taken by the processor.
    interrupts,
    /// Times that a waiting process called the interrupt handler itself (H-08).
    reaps,
    /// Reaps although a message was waiting: must be 0 (H-09).
    needless_reaps,
    /// Frames that a reaping process took from the NIC's ring.
    frames_reaped,
    /// Frames that an interrupt took from the NIC's ring.
    frames_by_interrupt,
    /// Soft interrupts.
    soft_interrupts,
    /// HPCL frames handed over by a soft interrupt (H-24).
    frames_by_soft_interrupt,
    /// HPCL frames handled in the link layer.
    frames_in_link_layer,
    /// Frames that went to the network layer (H-02).
    frames_to_network_layer,
    /// HPCL frames without a channel or a module.
    frames_unclaimed,
    /// Frames for which the driver had no descriptors.
    frames_not_posted,
    /// Messages sent.
    sent,
    /// Messages received by the process.
    received,
    /// Copies from the user into a kernel buffer.
    copies_from_user,
    /// Copies from a network buffer into the ring that the user reads (H-21).
    copies_to_ring,
    /// Copies of messages that the state machine kept because the ring was full.
    copies_kept,
    /// Copies from a kernel buffer to the user.
    copies_to_user,
    /// Bytes of all these copies.
    bytes_copied,
    /// Buffers allocated for single messages, sent or received (B-25).
    allocations,
    /// Network buffers that the NIC's driver allocated for received frames. The driver is
    /// unchanged, so HPCL cannot avoid them.
    network_buffers,
    /// Times that the process slept and was woken.
    wake_ups,
    /// Polls for a message.
    looks,
    /// Rings checked in these polls (B-26).
    checks,
    /// Messages with wrong content or order: must be 0.
    mismatches,
    /// TCP segments sent with data.
    segments_sent,
    /// TCP segments sent without data, only to acknowledge.
    acknowledgements_sent,
}
