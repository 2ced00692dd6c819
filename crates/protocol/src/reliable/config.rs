//! The settings of the reliable protocol. HPCL's own variant is one choice: [`Config::hpcl`].

use bellwire_wire::frame::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};

/// Lowest and highest version of the protocol that this code speaks.
pub const VERSIONS: [u8; 2] = [3, 3];

/// Features that this code offers: none is optional yet.
pub const FEATURES: u32 = 0;

/// Most paths of one link (H-29).
pub const PATHS: usize = 4;

/// What happens after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The receiver keeps early frames and reports them; the sender resends what is missing.
    Selective,
    /// The receiver drops early frames; the sender goes back to the missing one and resends all
    /// from there (HPCL, Sec. 3).
    GoBack,
}

/// Settings of an [`Endpoint`](super::Endpoint). All sizes also bound memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Longest frame sent and taken, in bytes, protocol header and check value included: the MTU of
    /// the network.
    pub frame_bytes: usize,
    /// Longest payload of a packet in bytes.
    pub packet_bytes: u32,
    /// N_asy: most unacknowledged frames to one peer (H-12). At most 1024.
    pub window_frames: u16,
    /// Bytes of packets that one channel of a link holds for a user who takes none: the sender's
    /// credit (H-15).
    pub receive_bytes: u32,
    /// Bytes of packets that wait in one channel of a link to be sent or acknowledged.
    pub send_bytes: u32,
    /// Most links at once.
    pub links: u16,
    /// Most early frames kept, of all links together, because an earlier one is missing.
    pub early_frames: u16,
    /// Queue pairs that can have gates are numbered below this, channels from 2^31 on.
    pub queue_pairs: u32,
    /// An acknowledgement is sent at once when this many frames wait for it; 1: each frame (H-13).
    pub acknowledge_every: u16,
    /// An acknowledgement waits at most this long to be piggybacked, in ns.
    pub acknowledge_delay_ns: u64,
    /// What happens after a loss.
    pub recovery: Recovery,
    /// Whether the window follows delay and loss. If not, it is always `window_frames` (H-19).
    pub congestion: bool,
    /// Queueing delay that the congestion window tolerates, beyond the smallest round trip, in ns.
    pub target_delay_ns: u64,
    /// Whether small packets share a frame.
    pub coalesce: bool,
    /// Whether responses have their own credit (C-27). Without it GETs deadlock (C-26); for tests.
    pub separate_channels: bool,
    /// Bounds of the retransmission timeout, in ns. It doubles up to the upper bound while there is
    /// no progress.
    pub timeout_ns: [u64; 2],
    /// The timeout before the first round trip is measured, in ns.
    pub first_timeout_ns: u64,
    /// Timeouts in a row without a sign of life after which the peer is dead.
    pub retries: u32,
    /// A peer that is silent for this long is probed, in ns; then again after each fifth of that.
    pub keep_alive_ns: u64,
    /// Unanswered probes after which the peer is dead.
    pub keep_alive_probes: u32,
    /// Whether frames have a check value. Without it, what carries them must drop altered ones.
    pub has_check: bool,
    /// Versions spoken, lowest and highest. Other than [`VERSIONS`] only in tests.
    pub versions: [u8; 2],
    /// Features offered, and those that we demand.
    pub features: [u32; 2],
}

impl Config {
    /// The production settings for a network whose frames carry `frame_bytes`.
    pub const fn new(frame_bytes: usize) -> Self {
        Config {
            frame_bytes,
            packet_bytes: 1 << 16,
            window_frames: 256,
            receive_bytes: 1 << 19,
            send_bytes: 1 << 19,
            links: 1024,
            early_frames: 512,
            queue_pairs: 4096,
            acknowledge_every: 16,
            acknowledge_delay_ns: 25_000,
            recovery: Recovery::Selective,
            congestion: true,
            target_delay_ns: 500_000,
            coalesce: true,
            separate_channels: true,
            timeout_ns: [2_000_000, 100_000_000],
            first_timeout_ns: 20_000_000,
            retries: 60,
            keep_alive_ns: 1_000_000_000,
            keep_alive_probes: 20,
            has_check: true,
            versions: VERSIONS,
            features: [FEATURES, 0],
        }
    }

    /// HPCL as its paper describes it (Sec. 3): a fixed window, each frame acknowledged at once,
    /// one message in a frame, and go-back recovery. The paper does not say how large N_asy was; it
    /// is 8 here.
    pub const fn hpcl(frame_bytes: usize) -> Self {
        Config {
            window_frames: 8,
            acknowledge_every: 1,
            acknowledge_delay_ns: 0,
            recovery: Recovery::GoBack,
            congestion: false,
            coalesce: false,
            ..Config::new(frame_bytes)
        }
    }

    /// Highest version that both speak, if the peer speaks versions `low` to `high`.
    pub(super) fn common_version(&self, low: u8, high: u8) -> Option<u8> {
        let common = self.versions[1].min(high);
        (self.versions[0].max(low) <= common).then_some(common)
    }

    /// Checks the settings; the error says why they cannot work.
    pub fn check(&self) -> Result<(), &'static str> {
        let power = |bytes: u32| bytes.is_power_of_two() && bytes <= 1 << 28;
        let whole = self.packet_bytes.saturating_add(64);
        if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&self.frame_bytes) {
            return Err("frame_bytes must be 256 to 65535; set the interface's MTU accordingly");
        }
        if !(1..=1024).contains(&self.window_frames) {
            return Err("window_frames must be 1 to 1024");
        }
        if !power(self.send_bytes) || self.send_bytes < whole {
            return Err(
                "send_bytes must be a power of two, at most 2^28, that holds the longest packet and 64 bytes",
            );
        }
        if !power(self.receive_bytes) || self.receive_bytes < whole {
            return Err(
                "receive_bytes must be a power of two, at most 2^28, that holds the longest packet and 64 bytes",
            );
        }
        if self.links == 0 || self.links > 0x8000 {
            return Err("links must be 1 to 32768");
        }
        if self.acknowledge_every == 0 || self.keep_alive_ns == 0 || self.keep_alive_probes == 0 {
            return Err("acknowledge_every, keep_alive_ns and keep_alive_probes must not be 0");
        }
        if self.timeout_ns[0] == 0 || self.timeout_ns[0] > self.timeout_ns[1] {
            return Err("timeout_ns must be a lower and an upper bound, neither 0");
        }
        Ok(())
    }
}
