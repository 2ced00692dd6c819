//! Runs points on threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use crate::{Row, Sweep};

/// Runs points on this many threads, and tells each row, in the order in which they end. `tell` may
/// stop the run.
pub fn run(
    sweep: &Sweep,
    points: &[u64],
    threads: usize,
    mut tell: impl FnMut(Row) -> ControlFlow<()>,
) {
    // No other memory is published by it: the number alone says who runs what.
    let next = AtomicUsize::new(0);
    let (rows, told) = sync_channel(4 * threads);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(points.len()) {
            let (rows, next) = (rows.clone(), &next);
            scope.spawn(move || {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Whoever listens no more wants no more.
                    if rows.send(sweep.run(*point)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(rows);
        for row in told {
            if tell(row).is_break() {
                break;
            }
        }
    });
}
