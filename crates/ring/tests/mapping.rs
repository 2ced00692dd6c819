//! Descriptors that are mapped.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bellwire_ring::mapping::map;

const BYTES: usize = 8192;

/// Two mappings of a descriptor are the same memory, each with the rights that were asked for. One
/// that is dropped is gone.
#[test]
#[cfg_attr(miri, ignore = "Miri maps no descriptors")]
fn a_mapping_is_shared_while_it_lives() {
    // SAFETY: the name is a string with an end, and the descriptor that comes back is ours.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"mapped".as_ptr(), 0)) };
    std::fs::File::from(fd.try_clone().expect("a copy")).set_len(BYTES as u64).expect("room");
    assert!(map(fd.as_fd(), 0, true).is_err(), "no bytes");
    let [writer, reader] =
        [true, false].map(|writable| map(fd.as_fd(), BYTES, writable).expect("a mapping"));
    writer.view().write(5000, b"word");
    let mut got = [0; 4];
    reader.view().read(5000, &mut got);
    assert_eq!(&got, b"word");
    let refused = catch_unwind(AssertUnwindSafe(|| reader.view().write(0, b"no")));
    assert!(refused.is_err(), "it is for reading only");
    let start = writer.view().as_ptr() as usize;
    // SAFETY: the call only looks whether these pages are mapped.
    let is_mapped = || unsafe { libc::msync(start as *mut _, BYTES, libc::MS_ASYNC) == 0 };
    assert!(is_mapped());
    drop(writer);
    assert!(!is_mapped());
}
