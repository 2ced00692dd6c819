//! The check value at the end of every frame: CRC-32C (Castagnoli; RFC 3720, appendix B.4) over all
//! bytes before it.
//!
//! It is end to end: computed where the frame is written into its buffer, checked where it is taken
//! out. Devices between may recompute or drop the Ethernet FCS. Up to 2^31 bits its Hamming
//! distance is 4 (Koopman, DSN 2002), so no three flipped bits of any frame pass.

use crate::WireError;
use core::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the check value.
pub const CHECK_BYTES: usize = 4;

/// Bytes that [`by_table`] takes at once.
const STEP: usize = 16;
/// The polynomial of CRC-32C, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// `TABLES[n][byte]`: the check value's change by `byte` and `n` zero bytes behind it.
static TABLES: [[u32; 256]; STEP] = tables();
/// [`prefer_table`] was called.
static PREFERS_TABLE: AtomicBool = AtomicBool::new(false);

/// CRC-32C of `bytes`, by the processor's instruction where it has one, unless [`prefer_table`] was
/// called.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    // Relaxed: both ways give the same value.
    if PREFERS_TABLE.load(Ordering::Relaxed) { by_table(bytes) } else { by_instruction(bytes) }
}

/// From now on [`crc32c()`] uses tables. For processes that have measured: an emulated processor
/// has the instruction, and takes five times as long by it.
pub fn prefer_table() {
    PREFERS_TABLE.store(true, Ordering::Relaxed);
}

/// CRC-32C of `bytes`, by the processor's instruction where it has one.
#[inline]
pub fn by_instruction(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of `bytes`, by 16 tables ("slicing": Kounavis and Berry, IEEE ISCC 2005).
pub fn by_table(bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let value = steps.iter().fold(!0, |value, step| {
        let word = u128::from_le_bytes(*step) ^ u128::from(value);
        // Two halves, because shifts of one register are quicker.
        let half = |word: u64, tables: &[[u32; 256]]| {
            (0..8).fold(0, |sum, n| sum ^ tables[7 - n][(word >> (8 * n)) as u8 as usize])
        };
        half(word as u64, &TABLES[8..]) ^ half((word >> 64) as u64, &TABLES[..8])
    });
    !rest.iter().fold(value, |value, byte| (value >> 8) ^ TABLES[0][(value as u8 ^ byte) as usize])
}

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < STEP {
        let mut byte = 0;
        while byte < 256 {
            let value = tables[table - 1][byte];
            tables[table][byte] = (value >> 8) ^ tables[0][(value & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Writes the check value of `frame` into its last four bytes.
///
/// # Errors
/// [`WireError::BufferTooSmall`] if the frame has no room for it.
#[inline]
pub fn seal(frame: &mut [u8]) -> Result<(), WireError> {
    let length = frame.len();
    let Some((content, check)) = frame.split_last_chunk_mut::<CHECK_BYTES>() else {
        let (format, needed) = ("check value", CHECK_BYTES);
        return Err(WireError::BufferTooSmall { format, length, needed });
    };
    *check = crc32c(content).to_le_bytes();
    Ok(())
}

/// Whether the last four bytes of `frame` are the check value of the rest.
#[inline]
pub fn is_sound(frame: &[u8]) -> bool {
    frame
        .split_last_chunk::<CHECK_BYTES>()
        .is_some_and(|(content, check)| crc32c(content).to_le_bytes() == *check)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of the tables is what a byte changes that has zeros behind it. The processor
    /// computes the tables here, as the compiler does for [`by_table`].
    #[test]
    fn entries_are_what_a_byte_changes() {
        for (zeros, table) in tables().iter().enumerate() {
            for byte in 0..=255 {
                let mut bytes = [0; STEP];
                let before = by_instruction(&bytes[..=zeros]);
                bytes[0] = byte;
                let change = before ^ by_instruction(&bytes[..=zeros]);
                assert_eq!(table[usize::from(byte)], change, "{byte} before {zeros} zeros");
            }
        }
    }
}
