//! The filter in the kernel: frames of our EtherType, for this station and one function, or for
//! all.
//!
//! Whoever has the socket may bind it to another interface and EtherType. So the filter compares
//! both, which the binding of an honest owner has done before. It does not compare addresses: the
//! kernel has compared the destination with the interface's current address.
//!
//! Its first instruction has no effect. It names the owner's user, for the agent, which reads the
//! filters of all sockets (`agent/owners.rs`).

use crate::link_header::{EVERY_FUNCTION, FUNCTION_OFFSET};
use crate::socket;
use bellwire_wire::frame::ETHERTYPE;
use std::io;
use std::os::fd::BorrowedFd;

/// Instructions of the filter.
pub(crate) const INSTRUCTIONS: usize = 13;

/// An instruction: operation, the two jumps, and the operand.
pub(crate) type Instruction = (u16, u8, u8, u32);

/// The filter of a socket that `user` has for `function` on the interface with number `index`.
pub(crate) fn program(index: u32, function: u8, user: u32) -> [Instruction; INSTRUCTIONS] {
    let step = |code: u32, yes: u8, no: u8, value: u32| (code as u16, yes, no, value);
    let name = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
    let load_word = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let load_byte = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let about = |what: i32| (libc::SKF_AD_OFF + what) as u32;
    [
        step(name, 0, 0, user),
        step(load_word, 0, 0, about(libc::SKF_AD_IFINDEX)),
        step(equal, 0, 9, index),
        step(load_word, 0, 0, about(libc::SKF_AD_PROTOCOL)),
        step(equal, 0, 7, u32::from(ETHERTYPE)),
        // A promiscuous interface also brings frames for other stations and for groups.
        step(load_word, 0, 0, about(libc::SKF_AD_PKTTYPE)),
        step(equal, 1, 0, u32::from(libc::PACKET_HOST)),
        step(equal, 0, 4, u32::from(libc::PACKET_BROADCAST)),
        step(load_byte, 0, 0, FUNCTION_OFFSET as u32),
        step(equal, 1, 0, u32::from(function)),
        step(equal, 0, 1, u32::from(EVERY_FUNCTION)),
        step(give, 0, 0, u32::MAX),
        step(give, 0, 0, 0),
    ]
}

/// Attaches the filter to the socket.
pub(super) fn attach(fd: BorrowedFd<'_>, index: u32, function: u8, user: u32) -> io::Result<()> {
    let mut program = program(index, function, user).map(|(code, jt, jf, k)| libc::sock_filter {
        code,
        jt,
        jf,
        k,
    });
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    socket::set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
