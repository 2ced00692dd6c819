//! What a function has from its opening to its end: an address, memory that its peers map, and a
//! set of watched descriptors.

use crate::control::{Introduction, VERSION};
use crate::epoll::Epoll;
use crate::layout::{self, BOARD_BYTES, GATES, GEOMETRY, POOL_SEGMENT_BYTES, REGIONS};
use crate::mapping::{self, Segment as Mapped, Sharing};
use crate::name::Job;
use crate::{barrier, socket};
use bellwire_device::{Error, FunctionAddress, random};
use bellwire_ring::board::Board;
use bellwire_ring::doorbell::Doorbell;
use bellwire_ring::segment::Segment;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A node of a job.
pub struct Node {
    pub job: Job,
    pub number: u32,
    /// Its name reserves the node's number. A shared number has no owner, and no socket.
    pub _socket: Option<OwnedFd>,
}

/// One open function.
pub struct Local {
    pub node: Arc<Node>,
    pub address: FunctionAddress,
    pub epoll: Epoll,
    introduction: Introduction,
    /// The doorbell's page and the pool, which peers write.
    pool: Mapped,
    /// What peers read.
    board: Mapped,
    /// The word that peers read to probe cross-memory attach.
    _probe: Box<u64>,
}

impl Local {
    pub fn open(node: Arc<Node>, function: u8, weight: u8) -> Result<Local, Error> {
        let pool =
            mapping::create("pool", POOL_SEGMENT_BYTES, POOL_SEGMENT_BYTES, Sharing::ReadWrite)?;
        let board = mapping::create("board", BOARD_BYTES, BOARD_BYTES, Sharing::ReadOnly)?;
        let probe = Box::new(random());
        let introduction = Introduction {
            version: VERSION,
            node: node.number,
            function,
            weight,
            barriers: barrier::available(),
            pool_chunks: GEOMETRY.pool_chunks as u32,
            gates: GATES as u32,
            regions: REGIONS as u32,
            lane: 0,
            probe_address: &raw const *probe as u64,
            probe_value: *probe,
        };
        Ok(Local {
            address: FunctionAddress { node: node.number, function },
            node,
            introduction,
            epoll: Epoll::new()?,
            pool,
            board,
            _probe: probe,
        })
    }

    /// How we introduce ourselves to the peer that rings bit `lane` of our doorbell.
    pub fn introduction(&self, lane: u32) -> Introduction {
        Introduction { lane, ..self.introduction }
    }

    /// The descriptors of the memory that each peer maps: the pool's, the board's.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.pool.fd.as_fd(), self.board.fd.as_fd()]
    }

    pub fn pool(&self) -> Segment {
        layout::pool_of(&self.pool.memory)
    }

    pub fn doorbell(&self) -> Doorbell<Segment> {
        layout::doorbell_of(&self.pool.memory)
    }

    pub fn board(&self) -> Board<Segment> {
        layout::board_of(&self.board.memory)
    }

    /// The user at the other end of a socket.
    ///
    /// # Errors
    /// The job does not admit that process; its user, if the kernel tells.
    pub fn admit(&self, socket: &OwnedFd) -> Result<u32, Option<u32>> {
        let (_, user, group) = socket::credentials(socket).map_err(|_| None)?;
        if self.node.job.admits(user, group) { Ok(user) } else { Err(Some(user)) }
    }

    /// Whether a process that the job admits listens at the address of `peer` now. It costs three
    /// system calls.
    pub fn is_here(&self, peer: FunctionAddress) -> bool {
        socket::connect(&self.node.job.function_socket(peer))
            .is_ok_and(|connection| self.admit(&connection).is_ok())
    }
}
