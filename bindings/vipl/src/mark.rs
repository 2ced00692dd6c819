//! Marks: a function of a host tells the host's other functions which end point it waits for,
//! across processes.
//!
//! On the cards of 1998 to 2005, all openings and programs of a host shared one address, and
//! discriminators told them apart. Here each opening is a function with an address of its own, and
//! a client that names a host asks the first function. A mark lets that function redirect the
//! client. Over shared memory the client is on the same host and looks for the mark itself.
//!
//! A mark is the name of an abstract Unix socket. It carries no data, and the kernel releases it
//! however its owner ends. The name is `bellwire.vipl/USER/HASH/NODE.FUNCTION`, with a hash of
//! device and end point.

use crate::end_point::EndPoint;
use bellwire::FunctionAddress;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

/// A mark; it ends when this is dropped.
pub struct Mark {
    _socket: OwnedFd,
}

/// The marks of one NIC's device.
pub struct Marks {
    device: String,
    at: FunctionAddress,
    functions: u8,
}

impl Marks {
    /// `device`: the name that the NIC was opened by; `functions`: most functions of a node.
    pub fn new(device: &str, at: FunctionAddress, functions: u8) -> Marks {
        // Nodes of shared memory share the job's name; their options differ.
        let job = device.split('?').next().filter(|job| job.starts_with("shm:"));
        Marks { device: job.unwrap_or(device).to_owned(), at, functions }
    }

    /// Marks that this function waits for requests to `end_point`. `None`: clients find it at its
    /// own address only.
    pub fn set(&self, end_point: &EndPoint) -> Option<Mark> {
        let socket = socket()?;
        rustix::net::bind(&socket, &self.place(end_point, self.at.function)?).ok()?;
        Some(Mark { _socket: socket })
    }

    /// Another function of this node that waits for requests to `end_point`.
    pub fn find(&self, end_point: &EndPoint) -> Option<u8> {
        let socket = socket()?;
        let is_marked = |function: u8| {
            let place = self.place(end_point, function);
            place.is_some_and(|place| rustix::net::connect(&socket, &place).is_ok())
        };
        (0..self.functions).find(|&function| function != self.at.function && is_marked(function))
    }

    /// The first function of any node of this host that waits for requests to `end_point`, except
    /// this one.
    pub fn find_on_host(&self, end_point: &EndPoint) -> Option<FunctionAddress> {
        let sockets = std::fs::read_to_string("/proc/net/unix").ok()?;
        let prefix = format!("@{}", self.prefix(end_point));
        let marked = |line: &str| {
            let (node, function) = line.split_once(&prefix)?.1.split_once('.')?;
            Some(FunctionAddress { node: node.parse().ok()?, function: function.parse().ok()? })
        };
        sockets.lines().filter_map(marked).filter(|&at| at != self.at).min()
    }

    fn prefix(&self, end_point: &EndPoint) -> String {
        let hash = hash(&[self.device.as_bytes(), end_point.as_bytes()]);
        let user = rustix::process::geteuid().as_raw();
        format!("bellwire.vipl/{user}/{hash:016x}/")
    }

    fn place(&self, end_point: &EndPoint, function: u8) -> Option<SocketAddrUnix> {
        let name = format!("{}{}.{function}", self.prefix(end_point), self.at.node);
        SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()
    }
}

/// A socket that can be tried at several names.
fn socket() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).ok()
}

/// FNV-1a (Fowler, Noll, Vo) over `parts` and their lengths. A collision of two end points costs a
/// client one wasted request.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        let length = (part.len() as u32).to_le_bytes();
        for byte in length.iter().chain(part.iter()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn marks(device: &str, node: u32, function: u8) -> Marks {
        Marks::new(device, FunctionAddress { node, function }, 8)
    }

    /// A mark is visible only to other functions of its device and node, only for its end point,
    /// and only while it is kept.
    // shows: M-03
    #[test]
    fn marks_are_seen_by_their_node() {
        let device = format!("shm:marks-{}", std::process::id());
        let (first, third) = (marks(&device, 5, 0), marks(&device, 5, 2));
        let (called, other) = (EndPoint::of_server(b"here"), EndPoint::of_server(b"her"));
        assert_eq!(first.find(&called), None);
        let mark = third.set(&called).expect("a mark");
        assert_eq!(first.find(&called), Some(2));
        assert_eq!(first.find(&other), None);
        assert_eq!(third.find(&called), None, "it is its own");
        assert_eq!(marks(&device, 6, 0).find(&called), None);
        assert_eq!(marks("shm:marks", 5, 0).find(&called), None);
        assert!(third.set(&called).is_none(), "once");
        drop(mark);
        becomes_free(|| first.find(&called).is_none());
    }

    /// A process that another test starts holds copies of all descriptors until it executes its
    /// program.
    fn becomes_free(is_free: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_free() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the mark stays");
            std::thread::yield_now();
        }
    }

    /// A search of the whole host sees the marks of all nodes of its job, except its own, lowest
    /// first.
    // shows: M-03
    #[test]
    fn marks_are_seen_on_the_host() {
        let device = format!("shm:marks-host-{}", std::process::id());
        let called = EndPoint::of_server(b"here");
        let own = marks(&format!("{device}?node=1"), 1, 0);
        assert_eq!(own.find_on_host(&called), None);
        let _own = own.set(&called).expect("a mark");
        assert_eq!(own.find_on_host(&called), None);
        let _late = marks(&device, 10, 3).set(&called).expect("a mark");
        let late = FunctionAddress { node: 10, function: 3 };
        assert_eq!(own.find_on_host(&called), Some(late));
        let _soon = marks(&device, 9, 1).set(&called).expect("a mark");
        let soon = FunctionAddress { node: 9, function: 1 };
        assert_eq!(own.find_on_host(&called), Some(soon));
        assert_eq!(marks("shm:else", 1, 0).find_on_host(&called), None);
    }
}
