//! Sequence numbers of 12 bits, which wrap.

/// How many numbers there are.
const SEQUENCES: u16 = bellwire_wire::link::llp::SEQUENCES;

/// Most frames that may be unacknowledged, so that old numbers differ from new ones.
pub(super) const WINDOW: usize = SEQUENCES as usize / 2;

/// The number `steps` after `sequence`.
pub(super) fn after(sequence: u16, steps: u16) -> u16 {
    (sequence.wrapping_add(steps)) % SEQUENCES
}

/// Steps from `from` to `to`, with wrapping.
pub(super) fn distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % SEQUENCES
}
