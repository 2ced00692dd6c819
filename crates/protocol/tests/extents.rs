//! The pool of chunks by known answers: runs at the borders of words, refusals and their texts.

use bellwire_protocol::{Extent, ExtentPool, GiveError};

fn extent(first: u16, count: u16) -> Extent {
    Extent { first, count }
}

/// A pool of 200 chunks in which only these are free.
fn pool(free: &[Extent]) -> ExtentPool {
    let mut pool = ExtentPool::new(200);
    assert_eq!(pool.take(200), Some(extent(0, 200)));
    for &extent in free {
        pool.give(extent).unwrap();
    }
    let count: u16 = free.iter().map(|extent| extent.count).sum();
    assert_eq!((pool.free_chunks(), pool.chunks()), (count, 200));
    for chunk in 0..210 {
        let is_free = free.iter().any(|extent| extent.chunks().contains(&chunk));
        assert_eq!(pool.is_free(chunk as u16), is_free, "chunk {chunk}");
    }
    pool
}

/// The lowest run that is long enough is found, within a word, across one border or across two.
/// What is taken is no longer free, and nothing else is touched.
#[test]
fn the_lowest_run_is_taken() {
    let cases: &[(&[Extent], u16, Option<u16>)] = &[
        (&[extent(5, 1)], 1, Some(5)),
        (&[extent(3, 2), extent(9, 4), extent(20, 3)], 3, Some(9)),
        (&[extent(0, 64)], 64, Some(0)),
        (&[extent(0, 64)], 63, Some(0)),
        (&[extent(1, 63)], 63, Some(1)),
        (&[extent(60, 10)], 10, Some(60)),
        (&[extent(60, 10)], 4, Some(60)),
        (&[extent(60, 10)], 11, None),
        (&[extent(60, 3), extent(64, 7)], 7, Some(64)),
        (&[extent(60, 3), extent(64, 7)], 8, None),
        (&[extent(50, 100)], 100, Some(50)),
        (&[extent(50, 100)], 65, Some(50)),
        (&[extent(63, 130)], 130, Some(63)),
        (&[extent(0, 10), extent(128, 72)], 72, Some(128)),
        (&[extent(127, 2), extent(190, 10)], 2, Some(127)),
        (&[extent(127, 2), extent(190, 10)], 3, Some(190)),
        (&[extent(1, 1), extent(3, 1), extent(5, 1)], 2, None),
        (&[extent(64, 5)], 0, None),
        (&[], 1, None),
    ];
    for &(free, count, first) in cases {
        let mut pool = pool(free);
        let before = pool.free_chunks();
        let taken = pool.take(count);
        assert_eq!(taken, first.map(|first| extent(first, count)), "{free:?}: {count}");
        let gone = taken.map_or(0..0, Extent::chunks);
        assert_eq!(pool.free_chunks(), before - gone.len() as u16);
        for chunk in 0..200 {
            let is_free = free.iter().any(|extent| extent.chunks().contains(&chunk));
            let remains = is_free && !gone.contains(&chunk);
            assert_eq!(pool.is_free(chunk as u16), remains, "{free:?}: {chunk}");
        }
    }
}

/// Words that become empty, and later have a free chunk again, are found each time.
#[test]
fn every_single_chunk_is_found() {
    let mut pool = ExtentPool::new(200);
    for first in 0..200 {
        assert_eq!(pool.take(1), Some(extent(first, 1)));
    }
    assert_eq!((pool.take(1), pool.free_chunks()), (None, 0));
    for first in [199, 64, 63, 128] {
        pool.give(extent(first, 1)).unwrap();
        assert_eq!(pool.take(1), Some(extent(first, 1)));
        assert_eq!(pool.take(1), None);
    }
}

/// The largest power of two that is free in one piece is taken, and at most what is asked for.
#[test]
fn powers_of_two_are_taken() {
    let free = [extent(0, 3), extent(10, 9), extent(70, 40)];
    let of = |count| pool(&free).take_up_to(count);
    assert_eq!(of(0), None);
    assert_eq!(of(1), Some(extent(0, 1)));
    assert_eq!(of(3), Some(extent(0, 2)));
    assert_eq!(of(15), Some(extent(10, 8)));
    assert_eq!(of(31), Some(extent(70, 16)));
    assert_eq!(of(200), Some(extent(70, 32)));
    assert_eq!(pool(&[]).take_up_to(5), None);
}

/// What is empty, reaches beyond the pool, or is free in part is refused with its text, and nothing
/// changes. A chunk beyond the pool is not free.
#[test]
fn what_was_not_taken_is_refused() {
    let mut pool = pool(&[extent(60, 10)]);
    for wrong in [extent(5, 0), extent(199, 2), extent(200, 1), extent(u16::MAX, u16::MAX)] {
        let refused = GiveError::Outside { extent: wrong, chunks: 200 };
        assert_eq!(pool.give(wrong), Err(refused));
    }
    for wrong in [extent(69, 2), extent(59, 2), extent(63, 2), extent(0, 200)] {
        assert_eq!(pool.give(wrong), Err(GiveError::DoubleFree { extent: wrong }));
    }
    assert_eq!(pool.free_chunks(), 10);
    assert!(!pool.is_free(200) && !pool.is_free(u16::MAX));
    assert_eq!(
        pool.give(extent(199, 2)).unwrap_err().to_string(),
        "chunks 199..201 are no chunks of a pool of 200; give only what was taken"
    );
    assert_eq!(
        pool.give(extent(63, 2)).unwrap_err().to_string(),
        "chunks 63..65 are free already, in part or all; give each extent once"
    );
}
