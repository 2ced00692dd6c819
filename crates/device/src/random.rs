//! Unpredictable random numbers: keys, nonces, tokens, probes.

use crate::{Error, Result};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `bytes` from the kernel.
///
/// # Errors
/// [`Error::System`] with what the kernel says.
pub fn fill_random(mut bytes: &mut [u8]) -> Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(count) => bytes = &mut bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => {
                let what = "asking the kernel for random numbers";
                return Err(Error::System { what, cause: error.into() });
            }
        }
    }
    Ok(())
}

/// 64 random bits from the kernel. Panics if the kernel provides none: no secret can be made then.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    fill_random(&mut bytes).expect("the kernel gives random numbers");
    u64::from_ne_bytes(bytes)
}
