//! Counters of an endpoint over all its links, ended ones included.

/// Counters of an [`Endpoint`](super::Endpoint). Of packets, always: queued = acknowledged +
/// waiting + failed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Packets that [`send`](super::Endpoint::send) accepted.
    pub packets_queued: u64,
    /// Packets whose every byte was acknowledged.
    pub packets_acknowledged: u64,
    /// Packets that were not acknowledged when their link went down. The peer may have some of
    /// them.
    pub packets_failed: u64,
    /// Packets handed to the user and taken.
    pub packets_delivered: u64,
    /// Times the user refused a packet (STOP begins).
    pub packets_refused: u64,
    /// Data frames sent for the first time.
    pub frames_sent: u64,
    /// Data frames sent again.
    pub frames_resent: u64,
    /// Data frames that were taken in order.
    pub frames_in_order: u64,
    /// Data frames that came while an earlier one was missing, and were kept.
    pub frames_early: u64,
    /// Data frames that came again.
    pub frames_repeated: u64,
    /// Data frames that came early and were not kept.
    pub frames_dropped: u64,
    /// Acknowledge frames sent.
    pub acknowledgements_sent: u64,
    /// Acknowledge frames received.
    pub acknowledgements_received: u64,
    /// Gaps reported by peers (LOSE).
    pub loses_received: u64,
    /// Gaps that we reported.
    pub loses_sent: u64,
    /// Times a link had packets to send and no credit (STOP).
    pub stops: u64,
    /// Times such a link got credit again (GO).
    pub gos: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Probes sent to silent peers.
    pub probes_sent: u64,
    /// Frames whose check value was wrong.
    pub frames_damaged: u64,
    /// Frames that do not parse, or whose content is impossible.
    pub frames_malformed: u64,
    /// Frames for a link that is not, or no longer, here.
    pub frames_unknown: u64,
    /// Handshake frames of an earlier incarnation or an earlier link.
    pub frames_stale: u64,
    /// Opens without a fresh cookie, answered by a Challenge.
    pub frames_challenged: u64,
    /// Opens in the name of a peer whose place is another.
    pub frames_elsewhere: u64,
    /// Links that came up.
    pub links_up: u64,
    /// Links that went down.
    pub links_down: u64,
}

impl Counters {
    /// All counters by name.
    pub fn entries(&self) -> [(&'static str, u64); 27] {
        [
            ("packets_queued", self.packets_queued),
            ("packets_acknowledged", self.packets_acknowledged),
            ("packets_failed", self.packets_failed),
            ("packets_delivered", self.packets_delivered),
            ("packets_refused", self.packets_refused),
            ("frames_sent", self.frames_sent),
            ("frames_resent", self.frames_resent),
            ("frames_in_order", self.frames_in_order),
            ("frames_early", self.frames_early),
            ("frames_repeated", self.frames_repeated),
            ("frames_dropped", self.frames_dropped),
            ("acknowledgements_sent", self.acknowledgements_sent),
            ("acknowledgements_received", self.acknowledgements_received),
            ("loses_received", self.loses_received),
            ("loses_sent", self.loses_sent),
            ("stops", self.stops),
            ("gos", self.gos),
            ("timeouts", self.timeouts),
            ("probes_sent", self.probes_sent),
            ("frames_damaged", self.frames_damaged),
            ("frames_malformed", self.frames_malformed),
            ("frames_unknown", self.frames_unknown),
            ("frames_stale", self.frames_stale),
            ("frames_challenged", self.frames_challenged),
            ("frames_elsewhere", self.frames_elsewhere),
            ("links_up", self.links_up),
            ("links_down", self.links_down),
        ]
    }
}
