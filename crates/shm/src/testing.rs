//! Access for tests of hostile peers: one end of a link, with every byte and descriptor under the
//! test's control.
//!
//! Nothing here is part of the device; it exists only in tests, and with the feature `steps`.

use crate::control::{Control, Introduction, VERSION};
#[cfg(test)]
use crate::layout::{self, Side};
use crate::layout::{BOARD_BYTES, GATES, GEOMETRY, PAIR_BYTES, POOL_SEGMENT_BYTES, REGIONS};
use crate::mapping::{self, Segment as Mapped, Sharing};
use crate::name::Job;
use crate::socket::{self, Received};
use bellwire_device::{AccessMode, Error, FunctionAddress};
use bellwire_ring::memory::{Memory, View};
#[cfg(test)]
use bellwire_ring::{board::Board, lane::LaneSender, segment::Segment, sync::Fences};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of the segments that come with a Hello, in order: the pair's memory, the pool, the board.
pub const SEGMENT_BYTES: [usize; 3] = [PAIR_BYTES, POOL_SEGMENT_BYTES, BOARD_BYTES];

/// One end of a link, or of the attempt to make one.
pub struct Intruder {
    socket: OwnedFd,
    own: [Mapped; 3],
    /// The peer's pool with its doorbell, once it has welcomed us.
    theirs: Option<Memory>,
}

/// What the other end of the control socket did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Nothing yet.
    Nothing,
    /// It welcomed us, and its memory is mapped.
    Welcome,
    /// It sent something else.
    Other,
    /// It hung up.
    Closed,
}

impl Intruder {
    /// Connects to the function `at` of job `job`, and says nothing. `None`: nobody listens there,
    /// or too many connections wait.
    pub fn connect(job: &str, at: FunctionAddress) -> Result<Option<Intruder>, Error> {
        let job = Job::new(job, AccessMode::Owner).expect("a test's job has a good name");
        let Ok(socket) = socket::connect(&job.function_socket(at)) else { return Ok(None) };
        let make = |bytes| mapping::create("intruder", bytes, bytes, Sharing::ReadWrite);
        let [pair, pool, board] = SEGMENT_BYTES;
        let own = [make(pair)?, make(pool)?, make(board)?];
        Ok(Some(Intruder { socket, own, theirs: None }))
    }

    /// A correct Hello from a function that claims to be `from`.
    pub fn hello(from: FunctionAddress) -> Vec<u8> {
        let introduction = Introduction {
            version: VERSION,
            node: from.node,
            function: from.function,
            weight: 1,
            pool_chunks: GEOMETRY.pool_chunks as u32,
            gates: GATES as u32,
            regions: REGIONS as u32,
            ..Introduction::default()
        };
        let (bytes, length) = Control::Hello(introduction).to_bytes();
        bytes[..length].to_vec()
    }

    /// The control socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The descriptors that belong to a Hello.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.own[0].fd.as_fd(), self.own[1].fd.as_fd(), self.own[2].fd.as_fd()]
    }

    /// Reads one message from the control socket.
    pub fn read(&mut self) -> Reply {
        match socket::receive(&self.socket) {
            Received::Nothing => Reply::Nothing,
            Received::Closed => Reply::Closed,
            Received::Message(Control::Welcome(_), fds) => {
                let pool = fds.first().map(|pool| mapping::adopt(pool, POOL_SEGMENT_BYTES, true));
                self.theirs = pool.and_then(Result::ok);
                if self.theirs.is_some() { Reply::Welcome } else { Reply::Other }
            }
            Received::Message(..) | Received::Garbage => Reply::Other,
        }
    }

    /// The memory that belongs to this link alone: the pair's, and our own that we handed over.
    pub fn own_memory(&self) -> Vec<View<'_>> {
        self.own.iter().map(|segment| segment.memory.view()).collect()
    }

    /// The way of packets to the peer.
    #[cfg(test)]
    pub fn sender(&self) -> Option<LaneSender<Segment>> {
        let pool = layout::pool_of(self.theirs.as_ref()?);
        let lane = layout::lane_memory(&self.own[0].memory, Side::Connecting, pool);
        Some(LaneSender::new(lane, GEOMETRY, Fences::Symmetric, 1))
    }

    /// What we publish.
    #[cfg(test)]
    pub fn board(&self) -> Board<Segment> {
        layout::board_of(&self.own[2].memory)
    }

    /// Rings at the peer for our lane there.
    #[cfg(test)]
    pub fn ring(&self, lane: usize) {
        layout::doorbell_of(self.theirs.as_ref().expect("it has welcomed us")).ring(lane);
    }

    /// The peer's doorbell and pool, which all its senders share.
    pub fn shared_memory(&self) -> Option<View<'_>> {
        self.theirs.as_ref().map(Memory::view)
    }
}

/// The variable that says what an ignored test does in a process of its own.
#[cfg(test)]
const ROLE: &str = "BELLWIRE_SHM_TEST";

/// Starts an ignored test in a process of its own.
#[cfg(test)]
pub fn begin_alone(test: &str, role: &str) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--ignored"]).env(ROLE, role);
    command.stdout(std::process::Stdio::null()).spawn().expect("a process")
}

/// What this process does, if a test has started it.
#[cfg(test)]
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs a test in a child, which has one thread, and fails if it does not end in some seconds.
#[cfg(test)]
pub fn alone(test: fn()) {
    // SAFETY: the child runs the test and ends at once; no other test holds a lock that it takes.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(8);
            let passes = std::panic::catch_unwind(test).is_ok();
            libc::_exit(i32::from(!passes));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "how the child ended, as wait(2) says it");
    }
}
