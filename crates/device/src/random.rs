//! Unpredictable random numbers for devices: nonces, tokens, probes.

/// 64 random bits from the kernel. Panics if the kernel provides none: no secret can be made then.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the kernel gives no random numbers: {error}"),
        }
    }
    u64::from_ne_bytes(bytes)
}
