//! Payloads of the packets between engines: little-endian words of 8 bytes, then bytes.
//!
//! | kind | header: destination, source | argument | words of the payload | then |
//! |---|---|---|---|---|
//! | `Send` | queue pairs | immediate | | bytes |
//! | `Offer` | queue pairs | immediate | operation, total [, key (3 words), offset] | |
//! | `Grant` | - | operation | transfer, from, to | |
//! | `Data` | offset, low and high half | transfer, or operation of a get | | bytes |
//! | `Done` | - | operation | length, value | |
//! | `Put` | event's queue pairs | operation | key, index, offset, end [immediate, total] | bytes |
//! | `Get` | - | operation | key, index, offset, length | |
//! | `Atomic` | - | operation | key, index, offset, operand, expected | |
//! | `Event` | queue pairs | immediate | length | |
//! | `Connect` | listener, queue pair | request | | private data |
//! | `Accept` | queue pairs | request | | private data |
//! | `Reject` | queue pair, listener | request | | private data |
//! | `Disconnect` | queue pairs | - | | |
//!
//! `aux` is the status of a `Done`, the purpose of a `Data`, the number of an `Atomic`'s operation
//! ([`bellwire_device::AtomicOperation::to_packet`]) and the reason of a `Reject`.

use bellwire_device::Status;
use bellwire_ring::memory::View;

/// `Data` of a long message, for the transfer that its receiver granted.
pub(crate) const DATA_TRANSFER: u16 = 0;
/// `Data` that answers a get.
pub(crate) const DATA_REPLY: u16 = 1;
/// Instead of `Data` of a long message: the sender withdrew the message.
pub(crate) const DATA_WITHDRAWN: u16 = 2;

/// `Reject`: the program refused.
pub(crate) const REJECT_BY_PROGRAM: u16 = 0;
/// `Reject`: no listener on this number.
pub(crate) const REJECT_NOBODY: u16 = 1;
/// `Reject`: too many requests wait there.
pub(crate) const REJECT_BUSY: u16 = 2;

/// Most bytes of words before the bytes of a payload.
pub(crate) const HEAD_BYTES: usize = 48;

/// The words before the bytes of a payload, as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES],
    length: u8,
}

impl Head {
    pub(crate) const EMPTY: Head = Head { bytes: [0; HEAD_BYTES], length: 0 };

    /// At most six words.
    pub(crate) fn new(words: &[u64]) -> Head {
        let mut head = Head { length: (words.len() * 8) as u8, ..Head::EMPTY };
        for (place, word) in head.bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        head
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

/// The first `N` words of a payload, read once; `None` if it is shorter.
#[inline]
pub(crate) fn words<const N: usize>(payload: View<'_>) -> Option<[u64; N]> {
    let mut bytes = [0; HEAD_BYTES];
    let bytes = bytes.get_mut(..N * 8)?;
    payload.part(0, bytes.len())?;
    payload.read(0, bytes);
    Some(std::array::from_fn(|word| {
        u64::from_le_bytes(bytes[word * 8..][..8].try_into().expect("8 bytes"))
    }))
}

const STATUSES: [Status; 11] = [
    Status::Success,
    Status::PeerGone,
    Status::Unreachable,
    Status::NoSuchQueuePair,
    Status::WrongKey,
    Status::OutOfBounds,
    Status::NotPermitted,
    Status::Misaligned,
    Status::Truncated,
    Status::Flushed,
    Status::ProtocolViolation,
];

/// The number of a status in a packet.
pub(crate) fn status_number(status: Status) -> u16 {
    STATUSES.iter().position(|&known| known == status).expect("all statuses have a number") as u16
}

/// The status of a peer's number. An unknown number is a protocol violation of the peer.
pub(crate) fn status_of(number: u16) -> Status {
    STATUSES.get(number as usize).copied().unwrap_or(Status::ProtocolViolation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_statuses_survive_the_journey() {
        let head = Head::new(&[1, u64::MAX, 3]);
        assert_eq!(words::<3>(View::of(head.as_slice())), Some([1, u64::MAX, 3]));
        assert_eq!(words::<4>(View::of(head.as_slice())), None, "a short payload is refused");
        for status in STATUSES {
            assert_eq!(status_of(status_number(status)), status);
        }
        assert_eq!(status_of(999), Status::ProtocolViolation);
    }
}
