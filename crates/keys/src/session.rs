//! One session: a key for each direction, from one handshake.

use crate::cipher::{Opener, Sealer, Suite};
use crate::handshake::SessionKeys;
use bellwire_protocol::canary::planted;

/// When a session is followed by the next one, and when it ends. A change of keys takes no pause:
/// the old session serves until the new one does.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Age at which the side that asked asks for the next session, in ns. The other side asks when
    /// half of the time to `end_ns` has passed.
    pub renew_ns: u64,
    /// Age at which a session ends, in ns.
    pub end_ns: u64,
    /// Sealed frames after which the next session is asked for.
    pub renew_frames: u64,
    /// Most frames that are sealed with one key.
    pub end_frames: u64,
    /// A peer that leaves frames unanswered for this time, in ns, may have lost the session: the
    /// next one is asked for.
    pub silence_ns: u64,
}

impl Default for Limits {
    /// The times are WireGuard's (Donenfeld, NDSS 2017, 6.1). AES-GCM keeps its confidentiality for
    /// 2^23 frames of 64 KiB (RFC 9001, appendix B.1).
    fn default() -> Limits {
        Limits {
            renew_ns: 120_000_000_000,
            end_ns: 180_000_000_000,
            renew_frames: 1 << 22,
            end_frames: 1 << 23,
            silence_ns: 400_000_000,
        }
    }
}

/// A session, at one of its sides.
pub(crate) struct Session {
    /// Chosen by us, in frames to us.
    pub index: u64,
    /// Chosen by the peer, in frames to the peer.
    pub peer_index: u64,
    /// The tag of the Hello that began it, by which a repetition is told.
    pub hello: u64,
    pub sealer: Sealer,
    pub opener: Opener,
    renew_ns: u64,
    end_ns: u64,
    renew_frames: u64,
    end_frames: u64,
    /// When the first frame was sealed since one was opened; `u64::MAX`: none was.
    unanswered_ns: u64,
}

/// What is told of a new session.
pub(crate) struct Agreed {
    pub index: u64,
    pub peer_index: u64,
    pub hello: u64,
    pub suite: Suite,
    pub keys: SessionKeys,
}

impl Session {
    /// A session that begins now. `asked`: by our request.
    pub fn new(agreed: Agreed, asked: bool, limits: &Limits, now_ns: u64) -> Session {
        let Agreed { index, peer_index, hello, suite, keys } = agreed;
        let (ours, theirs) = match asked {
            true => (keys.asking, keys.answering),
            false => (keys.answering, keys.asking),
        };
        // One side asks earlier, so that mostly one session follows and not two.
        let later = |renew: u64, end: u64| if asked { renew } else { renew + (end - renew) / 2 };
        Session {
            index,
            peer_index,
            hello,
            sealer: Sealer::new(suite, &ours),
            opener: Opener::new(suite, &theirs),
            renew_ns: now_ns.saturating_add(later(limits.renew_ns, limits.end_ns)),
            end_ns: now_ns.saturating_add(limits.end_ns),
            renew_frames: later(limits.renew_frames, limits.end_frames),
            end_frames: limits.end_frames,
            unanswered_ns: u64::MAX,
        }
    }

    /// Whether its time is over: it opens nothing any more.
    #[inline]
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns && !planted("keys-old-session")
    }

    /// Whether it may seal another frame.
    #[inline]
    pub fn can_seal(&self, now_ns: u64) -> bool {
        now_ns < self.end_ns && self.sealer.count() < self.end_frames
    }

    /// Whether the next session should be asked for.
    #[inline]
    pub fn is_worn(&self, limits: &Limits, now_ns: u64) -> bool {
        let is_used_up = now_ns >= self.renew_ns || self.sealer.count() >= self.renew_frames;
        is_used_up && !planted("keys-no-renewal")
            || now_ns >= self.unanswered_ns.saturating_add(limits.silence_ns)
    }

    /// A frame is sealed now.
    #[inline]
    pub fn sends(&mut self, now_ns: u64) {
        self.unanswered_ns = self.unanswered_ns.min(now_ns);
    }

    /// A frame of the peer was opened.
    #[inline]
    pub fn heard(&mut self) {
        self.unanswered_ns = u64::MAX;
    }

    /// The next session was asked for: wait again before the next request.
    pub fn asks(&mut self, now_ns: u64) {
        if self.unanswered_ns != u64::MAX {
            self.unanswered_ns = now_ns;
        }
    }
}
