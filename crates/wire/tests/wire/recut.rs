use std::cell::Cell;

use bellwire_wire::WireError;
use bellwire_wire::recut::{Piece, recut};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::values::{at_most, length_lists};

/// Entry and offset of each byte of a list, in order.
fn byte_places(lengths: &[u64]) -> Vec<(usize, u64)> {
    let entries = lengths.iter().enumerate();
    entries.flat_map(|(index, length)| (0..*length).map(move |offset| (index, offset))).collect()
}

/// The oracle: byte by byte, the pieces pair what the two lists pair. None is empty, and no two
/// neighbours could be joined.
fn judge(sources: &[u64], destinations: &[u64], pieces: &[Piece]) -> Result<(), TestCaseError> {
    let mut paired = Vec::new();
    for piece in pieces {
        prop_assert!(piece.length > 0, "empty piece {piece:?}");
        for byte in 0..piece.length {
            paired.push((
                (piece.source_index, piece.source_offset + byte),
                (piece.destination_index, piece.destination_offset + byte),
            ));
        }
    }
    let wanted: Vec<_> = byte_places(sources).into_iter().zip(byte_places(destinations)).collect();
    prop_assert_eq!(paired, wanted);
    for pair in pieces.windows(2) {
        prop_assert!(
            pair[0].source_index != pair[1].source_index
                || pair[0].destination_index != pair[1].destination_index,
            "needless cut between {:?} and {:?}",
            pair[0],
            pair[1]
        );
    }
    Ok(())
}

fn pieces(sources: &[u64], destinations: &[u64]) -> Vec<Piece> {
    let pieces = recut(sources.iter().copied(), destinations.iter().copied()).unwrap();
    at_most(sources.len() + destinations.len(), pieces)
}

/// The picture in the documentation, with an empty entry on either side.
// shows: C-28
#[test]
fn worked_example() {
    let piece = |source_index, source_offset, destination_index, destination_offset, length| {
        Piece { source_index, source_offset, destination_index, destination_offset, length }
    };
    assert_eq!(
        pieces(&[14, 0, 6, 21], &[8, 19, 14, 0]),
        [
            piece(0, 0, 0, 0, 8),
            piece(0, 8, 1, 0, 6),
            piece(2, 0, 1, 6, 6),
            piece(3, 0, 1, 12, 7),
            piece(3, 7, 2, 0, 14),
        ]
    );
    assert_eq!(pieces(&[], &[]), []);
    assert_eq!(pieces(&[0, 0], &[0]), []);
    assert_eq!(pieces(&[0, 3], &[3, 0]), [piece(1, 0, 0, 0, 3)]);
}

/// Unequal sums and sums beyond 64 bits are refused before there is a piece.
// shows: C-29
#[test]
fn unequal_sums_give_no_piece() {
    assert_eq!(
        recut([3, 4], [8]).err(),
        Some(WireError::UnequalSums { sources: 7, destinations: 8 })
    );
    assert_eq!(recut([1], []).err(), Some(WireError::UnequalSums { sources: 1, destinations: 0 }));
    let too_long = Some(WireError::TransferTooLong { limit: u64::MAX });
    assert_eq!(recut([u64::MAX, 1], [0]).err(), too_long);
    assert_eq!(recut([0], [1, u64::MAX]).err(), too_long);
    assert_eq!(pieces(&[u64::MAX, 0], &[u64::MAX - 1, 1]).len(), 2);
}

/// After its end the iterator returns `None` forever.
#[test]
fn recut_is_fused() {
    let mut pieces = recut([2], [1, 1]).unwrap();
    assert_eq!(at_most(2, pieces.by_ref()).len(), 2);
    assert_eq!((pieces.next(), pieces.next()), (None, None));
}

/// Lengths that a hostile program changes between the two walks end the pieces early. No piece
/// leaves the entries seen.
// shows: C-28
#[test]
fn changing_lengths_stay_in_bounds() {
    let walk = Cell::new(0);
    let lengths = |walks: [&'static [u64]; 2]| {
        let walk = &walk;
        (0..3).map(move |index| walks[walk.get()][index])
    };
    let sources = lengths([&[5, 0, 3], &[9, 1, 0]]);
    let destinations = lengths([&[2, 2, 4], &[4, 4, 1]]);
    let pieces = recut(sources, destinations).unwrap();
    walk.set(1);
    let pieces: Vec<Piece> = at_most(6, pieces);
    assert_eq!(pieces.iter().map(|piece| piece.length).sum::<u64>(), 9);
    for piece in pieces {
        assert!(piece.source_offset + piece.length <= [9, 1, 0][piece.source_index]);
        assert!(piece.destination_offset + piece.length <= [4, 4, 1][piece.destination_index]);
    }
}

proptest! {
    #![proptest_config(Config::with_cases(2000))]

    /// Random lists with empty entries and shared boundaries are paired byte for byte.
    // shows: C-28
    #[test]
    fn recut_agrees_with_the_oracle((sources, destinations) in length_lists(12, 10)) {
        judge(&sources, &destinations, &pieces(&sources, &destinations))?;
    }

    /// Long entries are cut exactly at the boundaries of either list, without a gap or an overlap.
    // shows: C-28
    #[test]
    fn long_entries_are_cut_at_boundaries((sources, destinations) in length_lists(1 << 59, 16)) {
        let starts = |lengths: &[u64]| -> Vec<u64> {
            lengths.iter().scan(0, |sum, length| {
                *sum += length;
                Some(*sum - length)
            }).collect()
        };
        let (source_starts, destination_starts) = (starts(&sources), starts(&destinations));
        let mut boundaries: Vec<u64> = source_starts.iter().chain(&destination_starts)
            .copied().chain([sources.iter().sum()]).collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let wanted: Vec<(u64, u64)> =
            boundaries.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect();
        let pieces = pieces(&sources, &destinations);
        let cut = |piece: &Piece| {
            let from_source = source_starts[piece.source_index] + piece.source_offset;
            let from_destination =
                destination_starts[piece.destination_index] + piece.destination_offset;
            (from_source == from_destination).then_some((from_source, piece.length))
        };
        prop_assert_eq!(pieces.iter().map(cut).collect::<Option<Vec<_>>>(), Some(wanted));
        for piece in &pieces {
            prop_assert!(piece.source_offset + piece.length <= sources[piece.source_index]);
            prop_assert!(
                piece.destination_offset + piece.length <= destinations[piece.destination_index]
            );
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    EmptyEntryGivesPiece,
    OffsetKeptAtNextEntry,
    OnlySourceAdvancesAtSharedBoundary,
    LastPieceForgotten,
    CutAtEveryByte,
}

/// A second, plain re-cutter into which one fault can be planted.
fn recut_with(fault: Fault, sources: &[u64], destinations: &[u64]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut s, mut s_offset, mut d, mut d_offset) = (0, 0, 0, 0);
    while s < sources.len() && d < destinations.len() {
        let (s_left, d_left) = (sources[s] - s_offset, destinations[d] - d_offset);
        let mut length = s_left.min(d_left);
        if fault == Fault::CutAtEveryByte {
            length = length.min(1);
        }
        if length > 0 || fault == Fault::EmptyEntryGivesPiece {
            pieces.push(Piece {
                source_index: s,
                source_offset: s_offset,
                destination_index: d,
                destination_offset: d_offset,
                length,
            });
        }
        s_offset += length;
        d_offset += length;
        let (ends_source, mut ends_destination) = (length == s_left, length == d_left);
        if fault == Fault::OnlySourceAdvancesAtSharedBoundary && ends_source && length > 0 {
            // The destination stays at its finished entry and counts it as a fresh one.
            if ends_destination {
                d_offset = 0;
            }
            ends_destination = false;
        }
        if ends_source {
            (s, s_offset) = (s + 1, 0);
        }
        if ends_destination {
            let is_kept = fault == Fault::OffsetKeptAtNextEntry
                && destinations.get(d + 1).is_some_and(|next| *next > d_offset);
            (d, d_offset) = (d + 1, if is_kept { d_offset } else { 0 });
        }
    }
    if fault == Fault::LastPieceForgotten {
        pieces.pop();
    }
    pieces
}

/// The oracle passes a sound re-cutter and catches five planted faults.
// shows: C-28
#[test]
fn canary_oracle_catches_broken_recutters() {
    for fault in [
        Fault::None,
        Fault::EmptyEntryGivesPiece,
        Fault::OffsetKeptAtNextEntry,
        Fault::OnlySourceAdvancesAtSharedBoundary,
        Fault::LastPieceForgotten,
        Fault::CutAtEveryByte,
    ] {
        let config = Config { failure_persistence: None, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let verdict = TestRunner::new_with_rng(config, rng).run(&length_lists(12, 10), |lists| {
            judge(&lists.0, &lists.1, &recut_with(fault, &lists.0, &lists.1))
        });
        assert_eq!(verdict.is_ok(), fault == Fault::None, "{fault:?}");
    }
}
