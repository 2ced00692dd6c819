//! Control messages between endpoints: an operation has finished, units were consumed, a peer is
//! still there.

use crate::head::{DATA, Kind, MONITORED, READ, Writer};
use bellwire::Status;

/// A control message to send.
#[derive(Debug)]
pub(crate) enum Control {
    Finished {
        operation: u64,
        /// 0 if it succeeded.
        status: u64,
    },
    Credit,
    Probe,
    Resolve {
        access: u64,
        key: u64,
    },
    Accessed {
        access: u64,
        key: u64,
        data: Option<u64>,
        length: u64,
        read: bool,
    },
    /// `bytes`: as long as the head says in `head.rs`.
    Reply {
        access: u64,
        status: Status,
        bytes: Box<[u8]>,
        /// Every access is to be reported.
        monitored: bool,
    },
    /// `Connect`, `Accept` or `Reject`, with the program's private data.
    Handshake {
        kind: Kind,
        request: u64,
        private_data: Box<[u8]>,
    },
    Disconnect,
}

impl Control {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Control::Finished { .. } => Kind::Finished,
            Control::Credit => Kind::Credit,
            Control::Probe => Kind::Probe,
            Control::Resolve { .. } => Kind::Resolve,
            Control::Accessed { .. } => Kind::Accessed,
            Control::Reply { .. } => Kind::Reply,
            Control::Handshake { kind, .. } => *kind,
            Control::Disconnect => Kind::Disconnect,
        }
    }

    pub(crate) fn flags(&self) -> u8 {
        match self {
            Control::Reply { monitored: true, .. } => MONITORED,
            Control::Accessed { data, read, .. } => {
                (if data.is_some() { DATA } else { 0 }) | if *read { READ } else { 0 }
            }
            _ => 0,
        }
    }

    /// Writes what follows the head.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        let words = match *self {
            Control::Credit | Control::Probe | Control::Disconnect => [None; 4],
            Control::Handshake { request, .. } => [Some(request), None, None, None],
            Control::Finished { operation, status } => [Some(operation), Some(status), None, None],
            Control::Resolve { access, key } => [Some(access), Some(key), None, None],
            Control::Accessed { access, key, data, length, .. } => {
                [access, key, data.unwrap_or_default(), length].map(Some)
            }
            Control::Reply { access, status, .. } => {
                [Some(access), Some(number_of(status)), None, None]
            }
        };
        for word in words.into_iter().flatten() {
            writer.word(word);
        }
        if let Control::Reply { bytes, .. } | Control::Handshake { private_data: bytes, .. } = self
        {
            writer.put(bytes);
        }
    }
}

/// The number of a status in a reply.
fn number_of(status: Status) -> u64 {
    let place = REPLIES.iter().position(|&reply| reply == status);
    place.unwrap_or(REPLIES.len()) as u64
}

/// The status of a number in a reply.
pub(crate) fn status_of(number: u64) -> Status {
    let known = usize::try_from(number).ok().and_then(|number| REPLIES.get(number));
    known.copied().unwrap_or(Status::ProtocolViolation)
}

const REPLIES: [Status; 5] = [
    Status::Success,
    Status::WrongKey,
    Status::OutOfBounds,
    Status::NotPermitted,
    Status::Misaligned,
];
