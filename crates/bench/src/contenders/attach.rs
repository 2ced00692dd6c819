//! Limit of one copy between private buffers: the receiver reads out of the sender's memory by
//! cross-memory attach (`process_vm_readv`), where the kernel allows it.

use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};

use super::copy_straight::{LARGEST_STREAM_BYTES, one_copy, stamp};
use super::{Contender, Kind, Start};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{InHouse, Outcome, Party, SharedMemory, Side, spin_until, touched};

/// Cross-memory attach.
pub const CONTENDER: Contender = Contender {
    name: "attach",
    about: "one copy by process_vm_readv",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(&[Op::Stream], |party| Ok(Box::new(Attach::open(party)?)))),
};

/// Control word after those of [`one_copy`].
const SOURCE_ADDRESS: usize = 4;

struct Attach {
    index: usize,
    shared: SharedMemory,
    leader_pid: libc::pid_t,
    private: Vec<u8>,
}

impl Attach {
    /// Opens a side. The receiver tries one real transfer: no other check shows whether it is
    /// allowed.
    fn open(party: &Party) -> Result<Attach> {
        let mut side = Attach {
            index: party.index,
            shared: party.shared,
            leader_pid: party.leader_pid,
            private: touched(STREAM_WINDOW * LARGEST_STREAM_BYTES),
        };
        let address = side.shared.word(SOURCE_ADDRESS);
        if side.index == 0 {
            address.store(side.private.as_ptr().addr() as u64, Ordering::Release);
        } else {
            spin_until(|| address.load(Ordering::Acquire) != 0);
            side.read(0, 8)?;
        }
        Ok(side)
    }

    /// Receiver: reads `len` bytes at `offset` of the leader's buffers into the same place of its
    /// own.
    fn read(&mut self, offset: usize, len: usize) -> Result<()> {
        let target = &mut self.private[offset..offset + len];
        let local = libc::iovec { iov_base: target.as_mut_ptr().cast(), iov_len: len };
        let source = self.shared.word(SOURCE_ADDRESS).load(Ordering::Relaxed) as usize + offset;
        let remote =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(source), iov_len: len };
        // SAFETY: the kernel writes into `target` only, and checks the other process's addresses
        // itself.
        let done = unsafe { libc::process_vm_readv(self.leader_pid, &local, 1, &remote, 1, 0) };
        ensure!(
            done == len as isize,
            "process_vm_readv: {}; it needs CAP_SYS_PTRACE or kernel.yama.ptrace_scope = 0",
            std::io::Error::last_os_error()
        );
        Ok(())
    }
}

impl Side for Attach {
    fn run(&mut self, _op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        one_copy(self.shared, self.index, count, |number| {
            let offset = number as usize % STREAM_WINDOW * bytes;
            if self.index == 0 {
                self.private[offset..offset + 8].copy_from_slice(&number.to_ne_bytes());
            } else {
                self.read(offset, bytes)?;
            }
            Ok(stamp(&self.private[offset..]))
        })
    }
}
