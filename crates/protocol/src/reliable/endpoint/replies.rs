//! Replies that belong to no link.

use alloc::collections::VecDeque;

use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::finish::{CloseReason, RefuseBody};

use crate::reliable::PathId;

/// Most queued replies; further ones are dropped.
const REPLIES: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Reply {
    pub path: PathId,
    pub function: u8,
    pub token: u64,
    pub body: ReplyBody,
}

#[derive(Clone, Copy)]
pub(super) enum ReplyBody {
    Unknown,
    Close(CloseReason),
    Refuse(RefuseBody),
    Challenge(ChallengeBody),
}

/// A queue of replies.
pub(super) struct Replies(pub VecDeque<Reply>);

impl Replies {
    pub fn new() -> Self {
        Replies(VecDeque::with_capacity(REPLIES))
    }

    /// Queues a reply, unless the queue is full.
    pub fn push(&mut self, reply: Reply) {
        if self.0.len() < REPLIES {
            self.0.push_back(reply);
        }
    }
}
