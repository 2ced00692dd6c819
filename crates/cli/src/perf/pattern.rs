//! The test pattern: any lost, repeated, moved or altered byte is noticed.

use anyhow::{Result, ensure};

/// Fills `data` with the pattern of message `number`. All words of one message differ, and so do
/// all messages.
pub fn fill(data: &mut [u8], number: u64) {
    for (at, word) in data.chunks_mut(8).enumerate() {
        word.copy_from_slice(&word_of(number, at).to_le_bytes()[..word.len()]);
    }
}

/// Compares every byte of `data` with the pattern of message `number`.
pub fn check(data: &[u8], number: u64) -> Result<()> {
    for (at, word) in data.chunks(8).enumerate() {
        let expected = word_of(number, at).to_le_bytes();
        ensure!(
            *word == expected[..word.len()],
            "message {number} arrived altered: bytes {}.. are {word:02x?} instead of {:02x?}",
            8 * at,
            &expected[..word.len()]
        );
    }
    Ok(())
}

/// Compares the number at the start of a message with the expected one.
#[inline]
pub fn check_stamp(found: u64, due: u64) -> Result<()> {
    ensure!(found == due, "message {due} was due, but one with the stamp {found:#x} arrived");
    Ok(())
}

/// A bijective mix of both numbers (multiplication by an odd constant, and shifts), so that
/// neighbours differ in many bits.
fn word_of(number: u64, at: usize) -> u64 {
    let mixed = (number << 32 ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An intact message passes the check, and every kind of transport fault fails it.
    #[test]
    fn planted_faults_are_caught() {
        let mut message = vec![0; 4099];
        fill(&mut message, 7);
        check(&message, 7).expect("unaltered");
        assert!(check(&message, 8).is_err(), "another message's data");

        for at in [0, 7, 8, 2048, 4098] {
            let mut altered = message.clone();
            altered[at] ^= 1;
            assert!(check(&altered, 7).is_err(), "bit flipped in byte {at}");
        }
        let mut moved = message.clone();
        moved.copy_within(0..64, 64);
        assert!(check(&moved, 7).is_err(), "a line twice");
        let mut torn = message.clone();
        torn[4032..].fill(0);
        assert!(check(&torn, 7).is_err(), "the end is missing");

        assert!(check_stamp(3, 3).is_ok());
        assert!(check_stamp(4, 3).is_err(), "a message was lost");
        assert!(check_stamp(2, 3).is_err(), "a message came twice");
    }
}
