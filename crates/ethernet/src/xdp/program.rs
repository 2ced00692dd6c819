//! The XDP program: a dispatcher in the link layer (H-02, H-24) of a dozen instructions, assembled by hand.
//!
//! Frames of our EtherType for our function go to the socket of the queue that they came on; all others take their way through
//! the kernel as if there were no program (H-03). It is attached by a link, which the kernel removes with its last descriptor: at
//! exit, and after a crash as well.

use crate::link_header::FUNCTION_OFFSET;
use bellwire_wire::frame::ETHERTYPE;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which hook of the kernel runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// The driver's, before the kernel has made a buffer of its own for the frame.
    Driver,
    /// The link layer's, behind any driver.
    Generic,
}

/// A program that is attached to an interface until this is dropped.
pub(super) struct Attached {
    _link: OwnedFd,
    _program: OwnedFd,
    /// Sockets by queue.
    sockets: OwnedFd,
}

impl Attached {
    /// Attaches the program for `function` to the interface.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN and CAP_BPF; `ResourceBusy` if a program is attached already; what else the
    /// kernel says, for instance that the driver has no hook.
    pub fn attach(interface: u32, queues: u32, function: u8, hook: Hook) -> io::Result<Attached> {
        let sockets = create_map(queues)?;
        let program = load(&instructions(sockets.as_raw_fd(), function))?;
        let link = create_link(&program, interface, hook)?;
        Ok(Attached { _link: link, _program: program, sockets })
    }

    /// From now on frames of `queue` go to `socket`.
    pub fn serve(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd() as u32;
        let update = MapUpdate {
            map: self.sockets.as_raw_fd() as u32,
            _gap: 0,
            key: &raw const queue as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        bpf(BPF_MAP_UPDATE_ELEM, &update).map(drop)
    }
}

const BPF_MAP_CREATE: i32 = 0;
const BPF_MAP_UPDATE_ELEM: i32 = 2;
const BPF_PROG_LOAD: i32 = 5;
const BPF_LINK_CREATE: i32 = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_PASS: i32 = 2;
const BPF_FUNC_REDIRECT_MAP: i32 = 51;

// As the parts of `union bpf_attr` in linux/bpf.h.

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    first: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_kind: u32,
    flags: u32,
}

/// `struct bpf_insn`: operation, registers (source in the high four bits), offset, number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

fn bpf<T>(command: i32, attributes: &T) -> io::Result<i32> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of attributes, and what these point to; callers keep that alive.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            std::mem::size_of::<T>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn descriptor(fd: i32) -> OwnedFd {
    // SAFETY: bpf(2) has just returned it; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn create_map(queues: u32) -> io::Result<OwnedFd> {
    let create = MapCreate {
        kind: BPF_MAP_TYPE_XSKMAP,
        key_bytes: 4,
        value_bytes: 4,
        entries: queues,
        flags: 0,
    };
    bpf(BPF_MAP_CREATE, &create).map(descriptor)
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let load = ProgramLoad {
        kind: BPF_PROG_TYPE_XDP,
        instructions: program.len() as u32,
        first: program.as_ptr() as u64,
        license: c"MIT OR Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"bellwire\0\0\0\0\0\0\0\0",
        interface: 0,
        attach_kind: BPF_XDP,
    };
    bpf(BPF_PROG_LOAD, &load).map(descriptor)
}

fn create_link(program: &OwnedFd, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    let create = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        attach_kind: BPF_XDP,
        flags: match hook {
            Hook::Driver => XDP_FLAGS_DRV_MODE,
            Hook::Generic => XDP_FLAGS_SKB_MODE,
        },
    };
    bpf(BPF_LINK_CREATE, &create).map(descriptor)
}

/// The program, with the map of sockets in it.
fn instructions(map: i32, function: u8) -> [Instruction; 17] {
    let make = |operation: u8, target: u8, source: u8, offset: i16, number: i32| Instruction {
        operation,
        registers: source << 4 | target,
        offset,
        number,
    };
    let [word, half, byte] = [0x61, 0x69, 0x71];
    let (set, copy, add, call, leave) = (0xb7, 0xbf, 0x07, 0x85, 0x95);
    let (if_above, if_not) = (0x2d, 0x55);
    let end = FUNCTION_OFFSET as i32 + 1;
    let ethertype = i32::from(ETHERTYPE.to_be());
    // Offsets of jumps count from the next instruction; the one to pass the frame on is number 15.
    [
        make(word, 2, 1, 0, 0),                      // r2 = context.data
        make(word, 3, 1, 4, 0),                      // r3 = context.data_end
        make(copy, 4, 2, 0, 0),                      // r4 = r2
        make(add, 4, 0, 0, end),                     // r4 += 17
        make(if_above, 4, 3, 10, 0),                 // if r4 > r3, pass it on
        make(half, 5, 2, 12, 0),                     // r5 = EtherType
        make(if_not, 5, 0, 8, ethertype),            // if it is not ours, pass it on
        make(byte, 5, 2, FUNCTION_OFFSET as i16, 0), // r5 = function
        make(if_not, 5, 0, 6, i32::from(function)),  // if it is not ours, pass it on
        make(word, 2, 1, 16, 0),                     // r2 = context.rx_queue_index
        make(0x18, 1, 1, 0, map),                    // r1 = map of sockets, an instruction ...
        make(0, 0, 0, 0, 0),                         // ... of double length
        make(set, 3, 0, 0, XDP_PASS),                // r3 = what to do if the queue has no socket
        make(call, 0, 0, 0, BPF_FUNC_REDIRECT_MAP),  // r0 = redirect to the socket
        make(leave, 0, 0, 0, 0),                     // return r0
        make(set, 0, 0, 0, XDP_PASS),                // r0 = pass it on
        make(leave, 0, 0, 0, 0),                     // return r0
    ]
}
