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
        let copied = pid > 0 && process.read(&[(address, View::of_mut(&mut word))]);
        (copied && u64::from_le_bytes(word) == value).then_some(process)
    }

    /// Copies from each address there to the view beside it. `false`: nothing or only a part was
    /// copied.
    pub fn read(self, parts: &[Part<'_>]) -> bool {
        self.transfer(parts, libc::process_vm_readv)
    }

    /// Copies each view to the address beside it. `false`: nothing or only a part was copied.
    pub fn write(self, parts: &[Part<'_>]) -> bool {
        self.transfer(parts, libc::process_vm_writev)
    }

    fn transfer(self, parts: &[Part<'_>], call: Transfer) -> bool {
        let vector = |start: *mut libc::c_void, iov_len| libc::iovec { iov_base: start, iov_len };
        let mut done = 0;
        loop {
            let (mut local, mut remote) = (Vec::new(), Vec::new());
            let mut before = done;
            for (address, here) in parts {
                let skip = before.min(here.len());
                before -= skip;
                let rest = here.part(skip, here.len() - skip).expect("skip <= length");
                if !rest.is_empty() {
                    let there = (*address as usize).wrapping_add(skip) as *mut libc::c_void;
                    local.push(vector(rest.as_ptr().cast(), rest.len()));
                    remote.push(vector(there, rest.len()));
                }
            }
            let count = local.len() as libc::c_ulong;
            if count == 0 {
                return true;
            }
            // SAFETY: `local` describes live views. The kernel checks `remote` against the other
            // process's mappings.
            let copied = unsafe { call(self.0, local.as_ptr(), count, remote.as_ptr(), count, 0) };
            if copied <= 0 {
                return false;
            }
            done += copied as usize;
        }
    }
}

/// An address in the other process, and the bytes here.
pub type Part<'a> = (u64, View<'a>);

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
        assert!(process.read(&[(address, View::of_mut(&mut here))]));
        assert_eq!(here, there);
        assert!(
            process.write(&[(address + 9, View::of(b"the")), (address + 12, View::of(b" other"))])
        );
        assert_eq!(&there, b"words of the otherrocess");
        assert!(!process.write(&[(8, View::of(b"nowhere"))]));
        assert!(process.write(&[(8, View::empty())]), "nothing was left to copy");
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
        let all = View::of_mut(&mut here);
        let parts = [0..7, 7..7, 7..24].map(|of: std::ops::Range<usize>| {
            (address + of.start as u64, all.part(of.start, of.len()).expect("inside"))
        });
        assert!(Process(6).transfer(&parts, in_parts));
        assert!(!Process(6).transfer(&parts, in_parts));
        assert_eq!(here, there);
    }
}
