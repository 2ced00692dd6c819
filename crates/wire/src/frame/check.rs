//! The check value at the end of every frame: CRC-32C (Castagnoli; RFC 3720, appendix B.4) over all
//! bytes before it.
//!
//! It is end to end: computed where the frame is written into its buffer, checked where it is taken
//! out. Devices between may recompute or drop the Ethernet FCS. Up to 2^31 bits its Hamming
//! distance is 4 (Koopman, DSN 2002), so no three flipped bits of any frame pass.

use crate::WireError;

/// Bytes of the check value.
pub const CHECK_BYTES: usize = 4;

/// CRC-32C of `bytes`, by the processor's instruction where it has one.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
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
