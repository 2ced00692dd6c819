//! Cross-memory attach: the kernel copies once between this process and another, where it allows
//! that.

use bellwire_ring::memory::View;

/// Another process whose memory is reachable, as a real transfer has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(i32);

/// Whether the kernel lets this process copy from itself. If not, the call is not available at all
/// (seccomp). Only a transfer shows whether a particular process is reachable.
pub fn works_here() -> bool {
    let word = 0x5eed_u64;
    Process::probe(std::process::id() as i32, &raw const word as u64, word).is_some()
}

impl Process {
    /// Tries to read the word at `address` in process `pid`; `None` if the kernel refuses or the
    /// word is not `value`.
    pub fn probe(pid: i32, address: u64, value: u64) -> Option<Process> {
        let mut word = [0; 8];
        let process = Process(pid);
        let copied = pid > 0 && process.read(address, View::of_mut(&mut word));
        (copied && u64::from_le_bytes(word) == value).then_some(process)
    }

    /// Copies from `address` there to `into` here. `false`: nothing or only a part was copied.
    pub fn read(self, address: u64, into: View<'_>) -> bool {
        self.transfer(address, into, libc::process_vm_readv)
    }

    /// Copies `from` here to `address` there. `false`: nothing or only a part was copied.
    pub fn write(self, address: u64, from: View<'_>) -> bool {
        self.transfer(address, from, libc::process_vm_writev)
    }

    fn transfer(self, address: u64, here: View<'_>, call: Transfer) -> bool {
        let mut done = 0;
        while done < here.len() {
            let rest = here.part(done, here.len() - done).expect("done <= length");
            let local = libc::iovec { iov_base: rest.as_ptr().cast(), iov_len: rest.len() };
            let remote =
                libc::iovec { iov_base: (address as usize + done) as *mut _, iov_len: rest.len() };
            // SAFETY: `local` describes a live view. The kernel checks `remote` against the other
            // process's mappings.
            let copied = unsafe { call(self.0, &local, 1, &remote, 1, 0) };
            if copied <= 0 {
                return false;
            }
            done += copied as usize;
        }
        true
    }
}

type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

#[cfg(test)]
mod tests {
    use super::*;

    /// A process is reachable if a word of it reads as expected. Copies have both directions, and
    /// what the process does not have fails.
    #[test]
    fn this_process_reaches_itself() {
        let own = std::process::id() as i32;
        let mut there = *b"words of another process";
        let address = there.as_mut_ptr() as u64;
        let word = u64::from_le_bytes(there[..8].try_into().expect("8 bytes"));
        let process = Process::probe(own, address, word).expect("NOT RUN: the kernel refuses");
        assert!(works_here());
        assert_eq!(Process::probe(own, address, word + 1), None);
        assert_eq!(Process::probe(own, 8, word), None);
        assert_eq!(Process::probe(0, address, word), None);
        assert_eq!(Process::probe(-own, address, word), None);
        let mut here = [0; 24];
        assert!(process.read(address, View::of_mut(&mut here)));
        assert_eq!(here, there);
        assert!(process.write(address + 9, View::of(b"the other")));
        assert_eq!(&there, b"words of the otherrocess");
        assert!(!process.write(8, View::of(b"nowhere")));
        assert!(process.write(8, View::empty()), "nothing was left to copy");
    }

    /// A kernel that copies five bytes at a time, and none any more once it was asked for long.
    unsafe extern "C" fn in_parts(
        calls_left: libc::pid_t,
        local: *const libc::iovec,
        _: libc::c_ulong,
        remote: *const libc::iovec,
        _: libc::c_ulong,
        _: libc::c_ulong,
    ) -> isize {
        static CALLS: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
        if CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= calls_left {
            return -1;
        }
        // SAFETY: both describe live memory of this test, as those of the caller do.
        unsafe {
            let length = (*local).iov_len.min(5);
            assert_eq!((*local).iov_len, (*remote).iov_len);
            std::ptr::copy((*remote).iov_base, (*local).iov_base, length);
            length as isize
        }
    }

    /// A copy that the kernel makes in parts goes on where the last part ended.
    #[test]
    fn partial_copies_go_on() {
        let there = *b"words of another process";
        let address = there.as_ptr() as u64;
        let mut here = [0; 24];
        assert!(Process(5).transfer(address, View::of_mut(&mut here), in_parts));
        assert_eq!(here, there);
        assert!(!Process(5).transfer(address, View::of_mut(&mut here), in_parts));
    }
}
