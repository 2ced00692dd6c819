//! The filter in the kernel: frames for this station and one function, or for all.
//!
//! The filter does not compare the EtherType, because the socket is bound to it. Nor does it
//! compare addresses: the kernel has compared the destination with the interface's current address.

use crate::link_header::{EVERY_FUNCTION, FUNCTION_OFFSET};
use crate::socket;
use std::io;
use std::os::fd::BorrowedFd;

/// Lets frames into the socket only if they are for `function` or all functions, and for this
/// station or broadcast.
pub(super) fn attach(fd: BorrowedFd<'_>, function: u8) -> io::Result<()> {
    let step = |code: u32, yes: u8, no: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: value,
    };
    let load_word = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let load_byte = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let kind = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let mut program = [
        // A promiscuous interface also brings frames for other stations and for groups.
        step(load_word, 0, 0, kind),
        step(equal, 1, 0, u32::from(libc::PACKET_HOST)),
        step(equal, 0, 4, u32::from(libc::PACKET_BROADCAST)),
        step(load_byte, 0, 0, FUNCTION_OFFSET as u32),
        step(equal, 1, 0, u32::from(function)),
        step(equal, 0, 1, u32::from(EVERY_FUNCTION)),
        step(give, 0, 0, u32::MAX),
        step(give, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    socket::set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
