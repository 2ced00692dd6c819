//! What the fuzzers do with bytes from outside that no crate below can be given alone (`fuzz/` at the root of the project).

use bellwire::{Address, Device, RemoteKey};
use bellwire_ethernet::link_header::Mac;
use bellwire_shm::name::{Access, Job};

/// Gives the bytes to what reads names, addresses and keys, and to what reads frames of strangers. Nothing is opened. What is understood
/// must be the same when it is written and read again.
pub fn parse_outside(bytes: &[u8]) {
    bellwire_ethernet::testing::parse_strangers(bytes);
    if let Some(key) = RemoteKey::from_bytes(bytes) {
        assert_eq!(key.to_bytes()[..], *bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Device::check_settings(text) {
        assert!(error.to_string().contains("names no device"), "{error}");
    }
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
    if let Some(mac) = Mac::parse(text) {
        assert_eq!(Mac::parse(&mac.to_string()), Some(mac));
    }
    if Job::new(text, Access::Owner).is_ok() {
        assert!(!text.contains(|c: char| c.is_whitespace() || c == '/' || c == '?'));
    }
}
