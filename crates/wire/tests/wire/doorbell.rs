use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::{ADDRESS_LIMIT, WireError};
use proptest::prelude::*;

use crate::values;

/// A doorbell has the bits computed by hand, is never zero, and prints in one line.
// shows: C-31
#[test]
fn golden_doorbell() {
    let doorbell = DoorbellRepr { address: 0x12_3456_7890, length: 48 };
    assert_eq!(doorbell.emit(), Ok(0x0030_0012_3456_7890));
    assert_eq!(DoorbellRepr::parse(0x0030_0012_3456_7890), Ok(doorbell));
    assert_eq!(doorbell.to_string(), "doorbell 0x1234567890, 48 B");
    assert_eq!(doorbell.buffer_len(), 8);
    assert!(DoorbellRepr::parse(0).is_err());
}

/// Addresses and lengths outside their ranges are refused, when written and when read.
// shows: C-31
#[test]
fn ranges_are_checked_both_ways() {
    let refuse = |address, length: u16, error| {
        assert_eq!(DoorbellRepr { address, length }.emit(), Err(error));
        if address < ADDRESS_LIMIT {
            let word = u64::from(length) << 48 | address;
            assert_eq!(DoorbellRepr::parse(word), Err(error));
        }
    };
    let misaligned = |field, value| WireError::Misaligned { field, value, alignment: 16 };
    let outside = |address, length| WireError::AddressOutOfRange { address, length };
    refuse(8, 16, misaligned("descriptor address", 8));
    refuse(0, 24, misaligned("descriptor length", 24));
    refuse(0, 0, WireError::Truncated { format: "descriptor", length: 0, needed: 16 });
    refuse(0, 4112, WireError::OutOfRange { field: "descriptor length", value: 4112, limit: 4096 });
    refuse(ADDRESS_LIMIT - 16, 32, outside(ADDRESS_LIMIT - 16, 32));
    refuse(ADDRESS_LIMIT, 16, outside(ADDRESS_LIMIT, 16));
    refuse(u64::MAX - 15, 16, outside(u64::MAX - 15, 16));
    assert!(DoorbellRepr { address: ADDRESS_LIMIT - 16, length: 16 }.emit().is_ok());
    for bit in 40..48 {
        assert!(matches!(
            DoorbellRepr::parse(16 << 48 | 1 << bit),
            Err(WireError::Reserved { .. })
        ));
    }
}

proptest! {
    /// Any doorbell parses back; any word is refused or comes back.
    // shows: C-31
    #[test]
    fn doorbells_round_trip(doorbell in values::doorbell(), word in any::<u64>()) {
        let emitted = doorbell.emit();
        prop_assert_eq!(emitted.and_then(DoorbellRepr::parse), Ok(doorbell));
        for word in [word, word & 0x1ff0_00ff_ffff_fff0] {
            if let Ok(doorbell) = DoorbellRepr::parse(word) {
                prop_assert_eq!(doorbell.emit(), Ok(word));
            }
        }
    }
}
