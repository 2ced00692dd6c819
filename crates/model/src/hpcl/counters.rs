//! What a node counts.

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a node.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// What was counted since `before`.
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
    /// Interrupts that the processor has taken.
    interrupts,
    /// Times that a waiting process called the interrupt handler itself (H-08).
    reaps,
    /// Times that it did so although a message was waiting: must be 0 (H-09).
    needless_reaps,
    /// Frames taken out of the NIC's ring by a process that reaped.
    frames_reaped,
    /// Frames taken out of it by an interrupt.
    frames_by_interrupt,
    /// Soft interrupts.
    soft_interrupts,
    /// Frames of HPCL that were handed over by a soft interrupt (H-24).
    frames_by_soft_interrupt,
    /// Frames of HPCL handled in the link layer.
    frames_in_link_layer,
    /// Frames that went to the network layer (H-02).
    frames_to_network_layer,
    /// Frames of HPCL for which there was no channel, or no module.
    frames_unclaimed,
    /// Frames that the driver had no descriptors for.
    frames_not_posted,
    /// Messages sent.
    sent,
    /// Messages received by the process.
    received,
    /// Copies from the user into a buffer of the kernel.
    copies_from_user,
    /// Copies from a network buffer into the ring that the user reads (H-21).
    copies_to_ring,
    /// Copies of messages kept by the state machine as the ring was full.
    copies_kept,
    /// Copies from a buffer of the kernel to the user.
    copies_to_user,
    /// Bytes of all these copies.
    bytes_copied,
    /// Buffers made for single messages, sent or received (B-25).
    allocations,
    /// Network buffers that the NIC's driver made for received frames. It is unchanged, so no way of HPCL avoids them.
    network_buffers,
    /// Times that the process slept and was woken.
    wake_ups,
    /// Looks for a message.
    looks,
    /// Looks at single rings for it (B-26).
    checks,
    /// Messages whose content or order was wrong: must be 0.
    mismatches,
    /// Segments of TCP that went with data, and without.
    segments_sent,
    /// Segments of TCP that only acknowledged.
    acknowledgements_sent,
}
