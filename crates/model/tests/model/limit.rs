//! A limit for tests whose loops a fault may keep from ending.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The limit, in nanoseconds of the processor's time: many times what such a test takes.
const LIMIT_NS: u64 = 700_000_000;

/// Runs a test, and fails if it does not end. It counts the processor's time of the test's thread,
/// so other work of the machine does not matter.
pub fn limited(test: fn()) {
    let (tell, told) = channel();
    let runner = std::thread::spawn(move || {
        tell.send(fs::read_link("/proc/thread-self")).expect("somebody listens");
        test();
        drop(tell);
    });
    let thread = told.recv().expect("it begins").expect("Linux names its threads");
    let record = std::path::Path::new("/proc").join(thread).join("schedstat");
    while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(Duration::from_millis(10)) {
        // The record is gone if the thread has just ended.
        let record = fs::read_to_string(&record).unwrap_or_default();
        let spent = record.split(' ').next().and_then(|spent| spent.parse::<u64>().ok());
        assert!(spent.unwrap_or(0) < LIMIT_NS, "the test does not end");
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Canary: a test that does not end fails.
#[test]
fn a_test_without_end_is_noticed() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    fn endless() {
        while !ENDS.load(Relaxed) {
            std::hint::spin_loop();
        }
    }
    let told = std::panic::catch_unwind(|| limited(endless)).expect_err("it is noticed");
    ENDS.store(true, Relaxed);
    assert_eq!(told.downcast_ref(), Some(&"the test does not end"));
}
