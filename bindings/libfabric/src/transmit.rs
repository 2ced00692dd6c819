//! The calls that send, and the tables of the data path.

use crate::abi::{Context, Desc, Descs, IoVec, Msg, MsgTagged, Ops, calls, error, flag, ops};
use crate::bound::{WANTED, errno_of};
use crate::ep::{ActiveEndpoint, State};
use crate::errno::{Errno, Result};
use crate::info::DATAGRAM_BYTES;
use crate::library::{Level, log};
use crate::pointer::{Array, Buffer, gather};
use crate::receive;
use bellwire_tagged::{PostError, SendMode, SendStatus, Spans, TaggedMessage, Token};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// How long a message may keep its sender that counts as sent and has not left, in case the peer
/// makes no progress.
const PATIENCE: Duration = Duration::from_millis(20);

/// fi_msg(3).
pub static MSG: Ops<9> = ops![
    receive::recv::<ActiveEndpoint>,
    receive::recvv::<ActiveEndpoint>,
    receive::recvmsg::<ActiveEndpoint>,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
];

/// fi_tagged(3).
pub static TAGGED: Ops<9> = ops![
    receive::trecv::<ActiveEndpoint>,
    receive::trecvv::<ActiveEndpoint>,
    receive::trecvmsg::<ActiveEndpoint>,
    tsend,
    tsendv,
    tsendmsg,
    tinject,
    tsenddata,
    tinjectdata,
];

/// One transmission.
struct Send {
    /// Others follow at once (`FI_MORE`).
    more: bool,
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: Context,
    flags: u64,
}

impl State {
    #[inline(always)]
    fn send(&mut self, body: &Spans, send: Send) -> Result {
        let Send { more, to, tag, data, context, flags } = send;
        if !self.is_enabled() {
            return Err(error::EOPBADSTATE);
        }
        let Some(to) = self.peer(to) else { return Err(self.no_peer()) };
        if self.bound.datagrams && body.len() > DATAGRAM_BYTES {
            return Err(error::EMSGSIZE);
        }
        let mode = if flags & flag::INJECT != 0 {
            if body.len() > crate::info::INJECT_BYTES {
                return Err(error::EMSGSIZE);
            }
            SendMode::Inject
        } else if flags & (flag::DELIVERY_COMPLETE | flag::MATCH_COMPLETE) != 0 {
            SendMode::Delivery
        } else {
            SendMode::Transmit
        };
        let wanted = flags & flag::COMPLETION != 0;
        if wanted && !self.bound.tx_has_room() {
            return Err(error::EAGAIN);
        }
        let kind = if tag.is_some() { flag::TAGGED } else { flag::MSG } | flag::SEND;
        let note = if wanted { kind | WANTED } else { kind };
        let token = Token { context: context as u64, note };
        // Not one variable for both: it would go through memory.
        let message = || TaggedMessage { to, tag, data, body, token, mode };
        let mut sent = match more {
            true => self.endpoint.send_more(message()),
            false => self.endpoint.send(message()),
        };
        if self.bound.datagrams && matches!(sent, Err(PostError::Lost(_))) {
            // The link was lost, which datagrams allow: try once more.
            sent = self.endpoint.send(message());
        }
        if more {
            // Before the completion that tells of it.
            self.bound.owe();
        }
        if let Some(peer) = self.endpoint.take_first_contact() {
            self.wait_while(|state| state.endpoint.has_unsent_packets(peer));
        }
        if mode == SendMode::Inject && sent.is_ok() && body.len() > self.endpoint.eager_bytes() {
            self.wait_while(|state| !state.endpoint.has_left(to));
        }
        match sent {
            Ok(SendStatus::Pending) if mode != SendMode::Inject => Ok(()),
            Ok(_) => {
                if wanted && !self.endpoint.has_left(to) {
                    // A program that has its completion may make no progress for long.
                    self.bound.owe();
                }
                self.bound.transmitted(note, context, tag.unwrap_or_default());
                Ok(())
            }
            Err(refusal) => Err(self.refused(refusal)),
        }
    }

    /// Makes progress while a message waits that counts as sent, for a limited time: the first one
    /// for a peer, or one of several packets whose memory is the program's again.
    // The program may make no progress for long: ranks of Open MPI 5 that are spawned together wait
    // in PMIx_Connect. Setting up a link needs progress.
    #[cold]
    fn wait_while(&mut self, waits: impl Fn(&State) -> bool) {
        let started = Instant::now();
        while waits(self) && started.elapsed() < PATIENCE {
            if self.progress() == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// The error of a refused operation.
    #[cold]
    pub fn refused(&mut self, refusal: PostError) -> Errno {
        match refusal {
            PostError::Again => {
                // Programs that only retry need progress too.
                let _ = self.progress();
                error::EAGAIN
            }
            PostError::Lost(status) => {
                let what = "earlier messages are lost, and this one was not sent";
                log(Level::Warn, &format!("{what}: {status}"));
                errno_of(status)
            }
            PostError::Failed(error) => {
                log(Level::Warn, &error.to_string());
                match error {
                    bellwire::Error::TooLong { .. } => error::EMSGSIZE,
                    bellwire::Error::Forked => error::EOPBADSTATE,
                    _ => error::EINVAL,
                }
            }
        }
    }

    /// The flags of a call without a flags argument.
    #[inline(always)]
    pub fn usual(&self) -> u64 {
        let flags = self.bound.tx_flags;
        if self.bound.tx_selective { flags } else { flags | flag::COMPLETION }
    }

    /// The flags of a call with a flags argument.
    #[inline(always)]
    pub fn with(&self, flags: u64) -> u64 {
        if self.bound.tx_selective { flags } else { flags | flag::COMPLETION }
    }
}

/// Sends these buffers; `flags`: `None` for the usual ones.
#[inline(always)]
fn post(
    ep: &ActiveEndpoint,
    body: &Spans,
    to: u64,
    (tag, data): (Option<u64>, Option<u64>),
    context: Context,
    flags: Option<u64>,
) -> Result {
    let mut state = ep.lock();
    let flags = flags.unwrap_or_else(|| state.usual());
    state.send(body, Send { more: false, to, tag, data, context, flags })
}

/// Sends a message structure.
fn message(ep: &ActiveEndpoint, message: Msg, tag: Option<u64>, flags: u64) -> Result {
    let Msg { iov, iov_count, addr: to, context, data, .. } = message;
    let data = (flags & flag::REMOTE_CQ_DATA != 0).then_some(data);
    let body = gather(iov, iov_count, IoVec::span)?;
    let mut state = ep.lock();
    let (more, flags) = (flags & flag::MORE != 0, state.with(flags));
    state.send(&body, Send { more, to, tag, data, context, flags })
}

calls! {
    ep: &ActiveEndpoint;

    fn send(from: Buffer, length: usize, _desc: Desc, to: u64, context: Context) -> isize {
        post(ep, &from.span(length)?.into(), to, (None, None), context, None)
    }

    fn senddata(from: Buffer, length: usize, _desc: Desc, data: u64, to: u64, context: Context)
        -> isize
    {
        post(ep, &from.span(length)?.into(), to, (None, Some(data)), context, None)
    }

    fn inject(from: Buffer, length: usize, to: u64) -> isize {
        post(ep, &from.span(length)?.into(), to, (None, None), null_mut(), Some(flag::INJECT))
    }

    fn injectdata(from: Buffer, length: usize, data: u64, to: u64) -> isize {
        post(ep, &from.span(length)?.into(), to, (None, Some(data)), null_mut(), Some(flag::INJECT))
    }

    fn tsend(from: Buffer, length: usize, _desc: Desc, to: u64, tag: u64, context: Context)
        -> isize
    {
        post(ep, &from.span(length)?.into(), to, (Some(tag), None), context, None)
    }

    fn tsenddata(
        from: Buffer, length: usize, _desc: Desc, data: u64, to: u64, tag: u64, context: Context
    ) -> isize {
        post(ep, &from.span(length)?.into(), to, (Some(tag), Some(data)), context, None)
    }

    fn tinject(from: Buffer, length: usize, to: u64, tag: u64) -> isize {
        post(ep, &from.span(length)?.into(), to, (Some(tag), None), null_mut(), Some(flag::INJECT))
    }

    fn tinjectdata(from: Buffer, length: usize, data: u64, to: u64, tag: u64) -> isize {
        let (with, flags) = ((Some(tag), Some(data)), Some(flag::INJECT));
        post(ep, &from.span(length)?.into(), to, with, null_mut(), flags)
    }

    fn sendv(parts: Array<IoVec>, _desc: Descs, count: usize, to: u64, context: Context) -> isize {
        post(ep, &gather(parts, count, IoVec::span)?, to, (None, None), context, None)
    }

    fn tsendv(
        parts: Array<IoVec>, _desc: Descs, count: usize, to: u64, tag: u64, context: Context
    ) -> isize {
        post(ep, &gather(parts, count, IoVec::span)?, to, (Some(tag), None), context, None)
    }

    fn sendmsg(msg: Option<&Msg>, flags: u64) -> isize {
        message(ep, *msg.ok_or(error::EINVAL)?, None, flags)
    }

    fn tsendmsg(msg: Option<&MsgTagged>, flags: u64) -> isize {
        let &MsgTagged { iov, desc, iov_count, addr, tag, context, data, .. } =
            msg.ok_or(error::EINVAL)?;
        message(ep, Msg { iov, desc, iov_count, addr, context, data }, Some(tag), flags)
    }
}
