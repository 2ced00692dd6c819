//! The XDP program: a dispatcher in the link layer (H-02, H-24) of two dozen instructions,
//! assembled by hand.
//!
//! It takes frames of our EtherType for our function, whose destination is our address or
//! broadcast. They go to the socket of the queue that they came on. All others pass through the
//! kernel as if there were no program (H-03). A link that floods, for instance a hub, brings frames
//! for other stations too, and nothing has compared their destination before the program.
//!
//! Our address is the one that the interface had when the program was made.
//!
//! The program is attached by a link, which its owner detaches. The kernel removes it with its last
//! descriptor as well, thus after a crash.

use crate::interface::Interface;
use crate::link_header::{FUNCTION_OFFSET, Mac};
use bellwire_ring::canary::planted;
use bellwire_wire::frame::ETHERTYPE;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which hook of the kernel runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// The driver's hook, before the kernel allocates a buffer for the frame.
    Driver,
    /// The link layer's hook, with any driver.
    Generic,
}

/// A program that is attached to an interface until this is dropped.
pub(super) struct Attached {
    link: OwnedFd,
    _program: OwnedFd,
    /// Sockets by queue.
    sockets: OwnedFd,
    /// The process that attached it.
    process: u32,
}

impl Attached {
    /// Attaches the program for `function` to the interface.
    ///
    /// # Errors
    /// - `PermissionDenied` without CAP_NET_ADMIN and CAP_BPF.
    /// - `ResourceBusy` if a program is attached already.
    /// - What else the kernel says, for instance that the driver has no hook.
    pub fn attach(interface: &Interface, function: u8, hook: Hook) -> io::Result<Attached> {
        let sockets = create_map(interface.queues)?;
        let program = load(&instructions(sockets.as_raw_fd(), function, interface.mac))?;
        let link = create_link(&program, interface.index, hook)?;
        Ok(Attached { link, _program: program, sockets, process: std::process::id() })
    }

    /// Directs frames of `queue` to `socket` from now on.
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

/// The hook is free at once. Closing the descriptor is not enough: a process that another thread
/// starts just now holds a copy until it executes its program.
impl Drop for Attached {
    fn drop(&mut self) {
        // A child that was forked shares the link, and does not own it.
        if self.process == std::process::id() {
            let detach = LinkDetach { link: self.link.as_raw_fd() as u32 };
            // A kernel before 5.9 does not know the call; there the last descriptor has to go.
            let _ = bpf(BPF_LINK_DETACH, &detach);
        }
    }
}

const BPF_MAP_CREATE: i32 = 0;
const BPF_MAP_UPDATE_ELEM: i32 = 2;
const BPF_PROG_LOAD: i32 = 5;
const BPF_LINK_CREATE: i32 = 28;
const BPF_LINK_DETACH: i32 = 34;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_PASS: i32 = 2;
const BPF_FUNC_REDIRECT_MAP: i32 = 51;

// Parts of `union bpf_attr` in linux/bpf.h.

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

#[repr(C)]
struct LinkDetach {
    link: u32,
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
    // SAFETY: the kernel reads `size_of::<T>()` bytes of attributes, and what these point to;
    // callers keep that alive.
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

/// The program for one function of the station `own`. Its map of sockets is `map`.
fn instructions(map: i32, function: u8, own: Mac) -> [Instruction; 23] {
    let make = |operation: u8, target: u8, source: u8, offset: i16, number: i32| Instruction {
        operation,
        registers: source << 4 | target,
        offset,
        number,
    };
    let [word, half, byte] = [0x61, 0x69, 0x71];
    let (set, copy, add, call, leave) = (0xb7, 0xbf, 0x07, 0x85, 0x95);
    // The last one compares 32 bits: the others sign-extend a 32-bit immediate.
    let (if_above, if_not, if_is, if_word_not) = (0x2d, 0x55, 0x15, 0x56);
    let end = FUNCTION_OFFSET as i32 + 1;
    // The canary: no frame matches, so that AF_PACKET receives all of them.
    let ethertype = if planted(NO_FRAME) { 0 } else { i32::from(ETHERTYPE.to_be()) };
    let [a, b, c, d, e, f] = own.0;
    let own_start = i32::from_ne_bytes([a, b, c, d]);
    let own_end = i32::from(u16::from_ne_bytes([e, f]));
    // The canary: no jump for another destination.
    let other = |offset| if planted(EVERY_STATION) { 0 } else { offset };
    // Jump offsets count from the next instruction; instruction 21 passes the frame on.
    [
        make(word, 2, 1, 0, 0),                       // r2 = context.data
        make(word, 3, 1, 4, 0),                       // r3 = context.data_end
        make(copy, 4, 2, 0, 0),                       // r4 = r2
        make(add, 4, 0, 0, end),                      // r4 += 17
        make(if_above, 4, 3, 16, 0),                  // if r4 > r3, pass it on
        make(half, 5, 2, 12, 0),                      // r5 = EtherType
        make(if_not, 5, 0, 14, ethertype),            // if it is not ours, pass it on
        make(byte, 5, 2, FUNCTION_OFFSET as i16, 0),  // r5 = function
        make(if_not, 5, 0, 12, i32::from(function)),  // if it is not ours, pass it on
        make(word, 4, 2, 0, 0),                       // r4 = destination, four bytes
        make(half, 5, 2, 4, 0),                       // r5 = destination, the other two
        make(if_word_not, 4, 0, 1, -1), // if it is not broadcast, compare it with ours
        make(if_is, 5, 0, 2, 0xffff),   // if it is broadcast, take the frame
        make(if_word_not, 4, 0, other(7), own_start), // if it is not ours, pass it on
        make(if_not, 5, 0, other(6), own_end), // if it is not ours, pass it on
        make(word, 2, 1, 16, 0),        // r2 = context.rx_queue_index
        make(0x18, 1, 1, 0, map),       // r1 = map of sockets, an instruction ...
        make(0, 0, 0, 0, 0),            // ... of double length
        make(set, 3, 0, 0, XDP_PASS),   // r3 = what to do if the queue has no socket
        make(call, 0, 0, 0, BPF_FUNC_REDIRECT_MAP), // r0 = redirect to the socket
        make(leave, 0, 0, 0, 0),        // return r0
        make(set, 0, 0, 0, XDP_PASS),   // r0 = pass it on
        make(leave, 0, 0, 0, 0),        // return r0
    ]
}

/// The fault: the program takes frames for other stations.
const EVERY_STATION: &str = "every-station";
/// The fault: the program takes no frame.
const NO_FRAME: &str = "xdp-takes-none";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_header;

    const BPF_PROG_TEST_RUN: i32 = 10;
    const XDP_DROP: i32 = 1;
    /// Indices of instructions: the two jumps for another destination, and the action without a
    /// socket.
    const COMPARES: [usize; 2] = [13, 14];
    const NO_SOCKET: usize = 18;

    impl Attached {
        /// What a process that is started holds for a moment.
        pub fn copies(&self) -> io::Result<[OwnedFd; 3]> {
            Ok([self.link.try_clone()?, self._program.try_clone()?, self.sockets.try_clone()?])
        }
    }

    #[repr(C)]
    struct TestRun {
        program: u32,
        result: u32,
        bytes_in: u32,
        bytes_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration_ns: u32,
    }

    const OWN: Mac = Mac([0x02, 0x80, 0x90, 0xa0, 0xfe, 0xff]);
    const FUNCTION: u8 = 3;

    /// A program that drops frames instead of passing them to a socket, so that the result shows
    /// which it takes.
    fn dropper(change: impl FnOnce(&mut [Instruction])) -> OwnedFd {
        let map = create_map(1).expect("NOT RUN: a map of sockets needs root");
        let mut program = instructions(map.as_raw_fd(), FUNCTION, OWN);
        assert_eq!(program[NO_SOCKET].number, XDP_PASS);
        program[NO_SOCKET].number = XDP_DROP;
        change(&mut program);
        load(&program).expect("the kernel's verifier accepts it")
    }

    /// Whether the program takes a frame.
    fn takes(program: &OwnedFd, frame: &[u8]) -> bool {
        let mut run = TestRun {
            program: program.as_raw_fd() as u32,
            result: u32::MAX,
            bytes_in: frame.len() as u32,
            bytes_out: 0,
            data_in: frame.as_ptr() as u64,
            data_out: 0,
            repeat: 1,
            duration_ns: 0,
        };
        // SAFETY: the kernel reads the attributes and the frame, and writes its result to the
        // attributes, which are ours.
        let done = unsafe {
            let bytes = std::mem::size_of::<TestRun>() as u32;
            libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut run, bytes)
        };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        match run.result as i32 {
            XDP_DROP => true,
            XDP_PASS => false,
            other => panic!("the program says {other}"),
        }
    }

    /// A frame of minimum length.
    fn frame(to: Mac, function: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        link_header::emit(&mut frame, to, Mac([2, 0, 0, 0, 0, 9]));
        frame[FUNCTION_OFFSET] = function;
        frame
    }

    /// Addresses that are neither ours nor broadcast: both with each single bit changed, a group,
    /// zeros.
    fn others() -> Vec<Mac> {
        let changed = |mac: Mac| {
            (0..48).map(move |bit| {
                let mut mac = mac;
                mac.0[bit / 8] ^= 1 << (bit % 8);
                mac
            })
        };
        let [first, second] = [OWN, Mac::BROADCAST];
        // Half of one and half of the other.
        let mixed = [
            Mac([0xff, 0xff, 0xff, 0xff, OWN.0[4], OWN.0[5]]),
            Mac([OWN.0[0], OWN.0[1], OWN.0[2], OWN.0[3], 0xff, 0xff]),
        ];
        let more = [Mac([0x33, 0x33, 0, 0, 0, 1]), Mac([0; 6])];
        changed(first).chain(changed(second)).chain(mixed).chain(more).collect()
    }

    /// The program takes frames of our EtherType, for its function, and for this station or
    /// broadcast. It passes on all others.
    // shows: H-02, H-03
    #[test]
    fn only_frames_for_this_station_are_taken() {
        let program = dropper(|_| ());
        for to in [OWN, Mac::BROADCAST] {
            assert!(takes(&program, &frame(to, FUNCTION)), "{to}");
            for function in (0..=255).filter(|&function| function != FUNCTION) {
                assert!(!takes(&program, &frame(to, function)), "function {function}");
            }
            let mut other = frame(to, FUNCTION);
            other[13] ^= 1;
            assert!(!takes(&program, &other), "another EtherType");
            assert!(takes(&program, &frame(to, FUNCTION)[..FUNCTION_OFFSET + 1]));
            assert!(!takes(&program, &frame(to, FUNCTION)[..FUNCTION_OFFSET]), "too short");
        }
        for to in others() {
            assert!(!takes(&program, &frame(to, FUNCTION)), "{to}");
        }
    }

    /// The canary: the test above notices a program that compares no address, and one that compares
    /// half of it.
    #[test]
    fn a_missing_comparison_is_noticed() {
        let taken = |removed: &[usize]| {
            let program = dropper(|program| {
                for &place in removed {
                    program[place].offset = 0;
                }
            });
            others().into_iter().filter(|&to| takes(&program, &frame(to, FUNCTION))).count()
        };
        assert_eq!(taken(&COMPARES), others().len());
        assert!(COMPARES.iter().all(|place| taken(&[*place]) > 0));
    }
}
