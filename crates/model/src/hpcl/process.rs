//! The programs of the tests: the calls of a node's process.

use serde::{Deserialize, Serialize};

use super::device::Refused;
use crate::units::{Span, Time};

/// A call of the HPCL library or of the socket layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `hpclSend`: a message to a node.
    Send {
        /// The receiving node.
        to: u16,
        /// Bytes of the message.
        bytes: u32,
    },
    /// `hpclReceive`: the next message from any node.
    Receive,
    /// A write to the connection with a node.
    Write {
        /// The other node.
        to: u16,
        /// Bytes to write.
        bytes: u32,
    },
    /// A read from the connection with a node, until this many bytes have arrived.
    Read {
        /// The other node.
        from: u16,
        /// Bytes to read.
        bytes: u32,
    },
    /// Computes without calls.
    Compute {
        /// The time.
        time: Span,
    },
}

/// The transport of the paper's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// HPCL.
    Hpcl,
    /// TCP/IP.
    Tcp,
}

impl Over {
    fn send(self, to: u16, bytes: u32) -> Call {
        match self {
            Over::Hpcl => Call::Send { to, bytes },
            Over::Tcp => Call::Write { to, bytes },
        }
    }

    fn receive(self, from: u16, bytes: u32) -> Call {
        match self {
            Over::Hpcl => Call::Receive,
            Over::Tcp => Call::Read { from, bytes },
        }
    }
}

/// The paper's pingpong between nodes 0 and 1 (H-28): `rounds` round trips with messages of one
/// length.
pub fn ping_pong(over: Over, bytes: u32, rounds: usize) -> [Vec<Call>; 2] {
    let (near, far) = (
        [over.send(1, bytes), over.receive(1, bytes)],
        [over.receive(0, bytes), over.send(0, bytes)],
    );
    [near.repeat(rounds), far.repeat(rounds)]
}

/// The paper's burst from node 0 to node 1 (H-28): messages one after another, and an answer after
/// the last.
pub fn burst(over: Over, bytes: u32, count: usize) -> [Vec<Call>; 2] {
    const ANSWER_BYTES: u32 = 8;
    let mut near = vec![over.send(1, bytes); count];
    near.push(over.receive(1, ANSWER_BYTES));
    let mut far = match over {
        Over::Hpcl => vec![over.receive(0, bytes); count],
        // A stream has no message boundaries: it is read as one piece.
        Over::Tcp => vec![over.receive(0, bytes * count as u32)],
    };
    far.push(over.send(0, ANSWER_BYTES));
    [near, far]
}

/// An all-to-all exchange (H-30): each node sends `rounds` messages to each other node and receives
/// as many. Sends and receives alternate.
pub fn all_to_all(nodes: u16, bytes: u32, rounds: usize) -> Vec<Vec<Call>> {
    let of = |node: u16| {
        let others = (1..nodes).map(move |step| (node + step) % nodes);
        let turn = others.flat_map(|to| [Call::Send { to, bytes }, Call::Receive]);
        turn.collect::<Vec<_>>().repeat(rounds)
    };
    (0..nodes).map(of).collect()
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub calls: Vec<Call>,
    /// Index of the next call.
    pub at: usize,
    /// Whether it sleeps, and whether it is being woken.
    pub sleeps: bool,
    pub is_woken: bool,
    /// Why it ended early.
    pub refused: Option<Refused>,
    /// When it began, and when each call returned.
    pub began: Option<Time>,
    pub returned: Vec<Time>,
    /// Bytes that the current call has still to write or read.
    pub left: u64,
    /// Messages sent to and received from each node, for the check of contents.
    pub sent_to: Vec<u64>,
    pub received_from: Vec<u64>,
}

impl Process {
    pub fn new(nodes: u16) -> Process {
        let nodes = usize::from(nodes);
        Process { sent_to: vec![0; nodes], received_from: vec![0; nodes], ..Process::default() }
    }

    pub fn call(&self) -> Option<Call> {
        self.calls.get(self.at).copied()
    }

    pub fn is_done(&self) -> bool {
        self.at >= self.calls.len()
    }
}

/// The content of a message: different for each message of a pair of nodes, and any missing or
/// misplaced byte is detectable.
pub(super) fn content(from: u16, to: u16, number: u64, bytes: usize) -> Vec<u8> {
    let mut word = u64::from(from) << 40 ^ u64::from(to) << 20 ^ number;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        word = (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        content.extend_from_slice(&word.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In an exchange each node sends to each other node, beginning with the next one, and receives
    /// after each send.
    #[test]
    fn all_exchange_with_all() {
        let send = |to| Call::Send { to, bytes: 9 };
        let calls = all_to_all(3, 9, 2);
        let of =
            |first, second| [send(first), Call::Receive, send(second), Call::Receive].repeat(2);
        assert_eq!(calls, [of(1, 2), of(2, 0), of(0, 1)]);
    }

    /// A message is words of a generator, whose first state is made of the sender above, the
    /// receiver and the number. Messages of any length begin alike.
    #[test]
    fn contents_are_made_of_their_names() {
        let step =
            |word: u64| (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let first = step(0x0000_0300_0020_0007);
        let words = [first.to_le_bytes(), step(first).to_le_bytes()].concat();
        for bytes in [0, 1, 7, 8, 9, 16] {
            assert_eq!(content(3, 2, 7, bytes), words[..bytes]);
        }
        // Also where the parts of the name overlap.
        let mixed = step(0xffff << 40 ^ 0xffff << 20 ^ 0x0123_4567_89ab);
        assert_eq!(content(0xffff, 0xffff, 0x0123_4567_89ab, 8), mixed.to_le_bytes());
        // A buffer of whole words is not longer than it must be.
        assert_eq!(content(1, 2, 3, 16).len(), 16);
    }
}
