//! Counters of an endpoint over all its links, ended ones included.

crate::counters! {
    /// Counters of an [`Endpoint`](super::Endpoint). Of packets, always: queued = acknowledged +
    /// waiting + failed.
    Counters {
        /// Packets that [`send`](super::Endpoint::send) accepted.
        packets_queued,
        /// Packets whose every byte was acknowledged.
        packets_acknowledged,
        /// Packets that were not acknowledged when their link went down. The peer may have some of
        /// them.
        packets_failed,
        /// Packets handed to the user and taken.
        packets_delivered,
        /// Times the user refused a packet (STOP begins).
        packets_refused,
        /// Data frames sent for the first time.
        frames_sent,
        /// Data frames sent again.
        frames_resent,
        /// Data frames that were taken in order.
        frames_in_order,
        /// Data frames that came while an earlier one was missing, and were kept.
        frames_early,
        /// Data frames that came again.
        frames_repeated,
        /// Data frames that came early and were not kept.
        frames_dropped,
        /// Acknowledge frames sent.
        acknowledgements_sent,
        /// Acknowledge frames received.
        acknowledgements_received,
        /// Gaps reported by peers (LOSE).
        loses_received,
        /// Gaps that we reported.
        loses_sent,
        /// Times a link had packets to send and no credit (STOP).
        stops,
        /// Times such a link got credit again (GO).
        gos,
        /// Timeouts.
        timeouts,
        /// Probes sent to silent peers.
        probes_sent,
        /// Frames whose check value was wrong.
        frames_damaged,
        /// Frames that do not parse, or whose content is impossible.
        frames_malformed,
        /// Frames for a link that is not, or no longer, here.
        frames_unknown,
        /// Handshake frames of an earlier incarnation or an earlier link.
        frames_stale,
        /// Opens without a fresh cookie, answered by a Challenge.
        frames_challenged,
        /// Opens in the name of a peer whose place is another.
        frames_elsewhere,
        /// Links that came up.
        links_up,
        /// Links that went down.
        links_down,
    }
}
