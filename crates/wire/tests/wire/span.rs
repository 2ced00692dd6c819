use bellwire_wire::span::{ByteSpan, DwordSpan, MAX_LENGTH_DW, MAX_PAYLOAD_BYTES};
use bellwire_wire::{ADDRESS_LIMIT, WireError};
use proptest::prelude::*;

use crate::values;

/// The bytes that a DW span means, one by one from the rules of PCIe: the oracle.
fn bytes_meant(span: DwordSpan) -> Vec<u64> {
    let mut bytes = Vec::new();
    for dw in 0..u64::from(span.length_dw) {
        let enables = match dw {
            0 => span.first_enables,
            last if last + 1 == u64::from(span.length_dw) => span.last_enables,
            _ => 0b1111,
        };
        bytes.extend((0..4).filter(|i| enables >> i & 1 == 1).map(|i| span.address + 4 * dw + i));
    }
    bytes
}

/// Every start in a DW with every length up to 40 and around 4096 enables exactly its own bytes.
// shows: C-08
#[test]
fn byte_enables_mean_exactly_the_bytes_asked_for() {
    for lead in 0..4 {
        for length in (0..=40).chain(4085..=4096) {
            let address = 0x12_3456_7000 + lead;
            let Ok(span) = ByteSpan::new(address, length) else {
                assert!(lead as usize + length > MAX_PAYLOAD_BYTES, "{lead} {length}");
                continue;
            };
            let dwords = span.to_dwords();
            assert_eq!(dwords.address, 0x12_3456_7000);
            let wanted: Vec<u64> = (address..address + length as u64).collect();
            assert_eq!(bytes_meant(dwords), wanted, "{dwords:?}");
            assert_eq!(dwords.to_bytes(), Ok(span));
        }
    }
}

/// The special forms of the PCIe rules have the right masks: nothing, part of one DW, two DWs, the
/// longest.
// shows: C-07, C-08
#[test]
fn singled_out_forms_have_the_masks_of_pcie() {
    let dwords = |address, length| {
        let span = ByteSpan::new(address, length).unwrap().to_dwords();
        (span.address, span.length_dw, span.first_enables, span.last_enables)
    };
    assert_eq!(dwords(0x1000, 0), (0x1000, 1, 0, 0));
    assert_eq!(dwords(0x1003, 0), (0x1000, 1, 0, 0));
    assert_eq!(dwords(0x1001, 2), (0x1000, 1, 0b0110, 0));
    assert_eq!(dwords(0x1000, 4), (0x1000, 1, 0b1111, 0));
    assert_eq!(dwords(0x1003, 2), (0x1000, 2, 0b1000, 0b0001));
    assert_eq!(dwords(0x1003, 6), (0x1000, 3, 0b1000, 0b0001));
    assert_eq!(dwords(0x1000, 4096), (0x1000, 1024, 0b1111, 0b1111));
    assert_eq!(dwords(0x1001, 4095), (0x1000, 1024, 0b1110, 0b1111));
}

/// 0 and 4096 bytes pass, 4097 are refused. So is a span that touches 1025 DWs or leaves the
/// address space.
// shows: C-07, C-08
#[test]
fn limits_of_a_span_are_exact() {
    assert_eq!(ByteSpan::new(0, 0).unwrap().len(), 0);
    assert_eq!(ByteSpan::new(0, 4096).unwrap().len(), 4096);
    assert_eq!(
        ByteSpan::new(0, 4097),
        Err(WireError::PayloadTooLong { length: 4097, limit: 4096 })
    );
    assert_eq!(ByteSpan::new(1, 4096), Err(WireError::SpanTooLong { address: 1, length: 4096 }));
    assert!(ByteSpan::new(ADDRESS_LIMIT - 5, 5).is_ok());
    for (address, length) in [(ADDRESS_LIMIT - 5, 6), (ADDRESS_LIMIT, 0), (u64::MAX, 4)] {
        assert_eq!(
            ByteSpan::new(address, length),
            Err(WireError::AddressOutOfRange { address, length: length as u64 })
        );
    }
}

/// Of all mask pairs for one, two and three DWs, only those are accepted that describe one run of
/// bytes in the allowed form.
// shows: C-08
#[test]
fn all_mask_pairs_are_judged_right() {
    for length_dw in 1..=3 {
        for (first, last) in (0..=255).flat_map(|first| (0..=255).map(move |last| (first, last))) {
            let span =
                DwordSpan { address: 0x40, length_dw, first_enables: first, last_enables: last };
            let bytes = bytes_meant(span);
            let is_one_run = bytes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            let is_allowed = match length_dw {
                1 => first < 16 && last == 0,
                _ => first < 16 && last < 16 && first != 0 && last != 0,
            };
            match span.to_bytes() {
                Ok(run) => {
                    assert!(is_one_run && is_allowed, "{span:?}");
                    assert_eq!(run.to_dwords(), span);
                    assert_eq!(run.len(), bytes.len());
                }
                Err(error) => {
                    assert!(!(is_one_run && is_allowed), "{span:?}");
                    assert_eq!(error, WireError::ByteEnables { length_dw, first, last });
                }
            }
        }
    }
}

/// A misaligned DW address, an address beyond 40 bits and a length out of range are refused.
// shows: C-08
#[test]
fn impossible_dword_spans_are_refused() {
    let good = DwordSpan { address: 8, length_dw: 2, first_enables: 15, last_enables: 15 };
    assert_eq!(good.to_bytes(), ByteSpan::new(8, 8));
    assert_eq!(
        DwordSpan { address: 9, ..good }.to_bytes(),
        Err(WireError::Misaligned { field: "DW address", value: 9, alignment: 4 })
    );
    assert_eq!(
        DwordSpan { address: ADDRESS_LIMIT, ..good }.to_bytes(),
        Err(WireError::AddressOutOfRange { address: ADDRESS_LIMIT, length: 0 })
    );
    assert_eq!(
        DwordSpan { address: ADDRESS_LIMIT - 4, ..good }.to_bytes(),
        Err(WireError::AddressOutOfRange { address: ADDRESS_LIMIT - 4, length: 8 })
    );
    for length_dw in [0, MAX_LENGTH_DW + 1] {
        assert_eq!(
            DwordSpan { length_dw, ..good }.to_bytes(),
            Err(WireError::OutOfRange {
                field: "length in DW",
                value: length_dw.into(),
                limit: 1024
            })
        );
    }
}

proptest! {
    /// Any span converts to DWs and back.
    // shows: C-08
    #[test]
    fn spans_round_trip(span in values::span()) {
        prop_assert_eq!(span.to_dwords().to_bytes(), Ok(span));
    }
}
