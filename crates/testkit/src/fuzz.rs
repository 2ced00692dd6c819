//! Fuzz targets for bytes from outside that span several crates (`fuzz/` at the root of the
//! project).

use bellwire::{Address, Device, RemoteKey};
use bellwire_device::AccessMode;
use bellwire_ethernet::link_header::Mac;
use bellwire_shm::name::Job;

/// Feeds the bytes to the parsers of names, addresses and keys, and of strangers' frames. Nothing
/// is opened. What is understood must be the same when it is written and read again.
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
    if Job::new(text, AccessMode::Owner).is_ok() {
        assert!(!text.contains(|c: char| c.is_whitespace() || c == '/' || c == '?'));
    }
}
