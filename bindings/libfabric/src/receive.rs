//! The calls that receive.

use crate::abi::{Context, Desc, Descs, IoVec, Msg, MsgTagged, calls, error, flag, value};
use crate::bound::WANTED;
use crate::ep::{ActiveEndpoint, State};
use crate::errno::Result;
use crate::pointer::{Array, Buffer, gather};
use bellwire_tagged::{MatchCriteria, Peek, PostError, Span, Spans, Token};

/// One receive.
pub struct Receive {
    pub from: u64,
    /// The tag, and the mask of its ignored bits.
    pub tag: Option<(u64, u64)>,
    pub context: Context,
    /// `None`: the call has no flags.
    pub flags: Option<u64>,
    /// Number of buffers.
    pub iov_count: usize,
}

/// An object that receives are posted to.
pub trait Receiver {
    fn post(&self, into: Spans, receive: Receive) -> Result;

    /// Cancels the oldest receive of this context, if there is one.
    fn cancel(&self, context: Context);
}

impl Receiver for ActiveEndpoint {
    #[inline(always)]
    fn post(&self, into: Spans, receive: Receive) -> Result {
        let mut state = self.lock();
        let flags = receive.flags.unwrap_or_else(|| {
            let usual = state.bound.rx_flags;
            if receive.tag.is_some() { usual & !flag::MULTI_RECV } else { usual }
        });
        let flags = if state.bound.rx_selective { flags } else { flags | flag::COMPLETION };
        if flags & flag::MULTI_RECV != 0 && (receive.iov_count != 1 || receive.tag.is_some()) {
            return Err(error::EINVAL);
        }
        state.receive(into, receive, flags)
    }

    fn cancel(&self, context: Context) {
        let mut state = self.lock();
        let State { endpoint, bound, .. } = &mut *state;
        // A finished or unknown receive cannot be cancelled, which is no error.
        endpoint.cancel(context as u64, bound);
    }
}

impl State {
    #[inline(always)]
    fn receive(&mut self, into: Spans, receive: Receive, flags: u64) -> Result {
        let Receive { from, tag, context, .. } = receive;
        if !self.is_enabled() {
            return Err(error::EOPBADSTATE);
        }
        let from = match from {
            _ if !self.bound.directed => None,
            value::ADDRESS_UNKNOWN => None,
            from => Some(self.peer(from).ok_or(error::EINVAL)?),
        };
        let token = token(tag.is_some(), flags & flag::COMPLETION != 0, context);
        let criteria = MatchCriteria { source: from, tag };
        let posted = match flags & (flag::PEEK | flag::CLAIM | flag::DISCARD | flag::MULTI_RECV) {
            0 => self.endpoint.receive(criteria, into, token, &mut self.bound),
            special => self.receive_specially(criteria, into, token, special),
        };
        posted.map_err(|refusal| self.refused(refusal))
    }

    #[cold]
    fn receive_specially(
        &mut self,
        criteria: MatchCriteria,
        into: Spans,
        mut token: Token,
        special: u64,
    ) -> std::result::Result<(), PostError> {
        let has = |flag: u64| special & flag != 0;
        if has(flag::PEEK) {
            let action = match (has(flag::CLAIM), has(flag::DISCARD)) {
                (true, _) => Peek::Claim,
                (false, true) => Peek::Discard,
                (false, false) => Peek::Look,
            };
            // Messages that have arrived but were not polled count as present.
            self.progress();
            token.note |= WANTED;
            self.endpoint.peek(criteria, action, token, &mut self.bound);
            return Ok(());
        }
        if has(flag::CLAIM) {
            let into = (!has(flag::DISCARD)).then_some(into);
            let tagged = criteria.tag.is_some();
            return self.endpoint.receive_claimed(tagged, into, token, &mut self.bound);
        }
        let least = self.bound.min_multi_recv;
        // SAFETY: `into` is one buffer, which the program leaves alone until the completion with
        // FI_MULTI_RECV: fi_msg(3).
        let span = unsafe { Span::new(into.address() as *const u8, into.len()) };
        self.endpoint.receive_many(criteria, span, least, token, &mut self.bound)
    }
}

/// The token of a receive.
#[inline(always)]
pub fn token(tagged: bool, wanted: bool, context: Context) -> Token {
    let kind = if tagged { flag::TAGGED } else { flag::MSG } | flag::RECV;
    Token { context: context as u64, note: if wanted { kind | WANTED } else { kind } }
}

/// Posts a receive into several buffers.
#[inline(always)]
fn several<R: Receiver>(receiver: &R, into: Array<IoVec>, receive: Receive) -> Result {
    receiver.post(gather(into, receive.iov_count, IoVec::span)?, receive)
}

calls! {
    receiver: &R;

    /// `fi_recv`.
    pub fn recv<R: Receiver>(
        into: Buffer, length: usize, _desc: Desc, from: u64, context: Context
    ) -> isize {
        let receive = Receive { from, tag: None, context, flags: None, iov_count: 1 };
        receiver.post(into.span(length)?.into(), receive)
    }

    /// `fi_recvv`.
    pub fn recvv<R: Receiver>(
        into: Array<IoVec>, _desc: Descs, iov_count: usize, from: u64, context: Context
    ) -> isize {
        several(receiver, into, Receive { from, tag: None, context, flags: None, iov_count })
    }

    /// `fi_recvmsg`.
    pub fn recvmsg<R: Receiver>(message: Option<&Msg>, flags: u64) -> isize {
        let &Msg { iov, iov_count, addr: from, context, .. } = message.ok_or(error::EINVAL)?;
        let (tag, flags) = (None, Some(flags));
        several(receiver, iov, Receive { from, tag, context, flags, iov_count })
    }

    /// `fi_trecv`.
    pub fn trecv<R: Receiver>(
        into: Buffer, length: usize, _desc: Desc,
        from: u64, tag: u64, ignore: u64, context: Context
    ) -> isize {
        let tag = Some((tag, ignore));
        let receive = Receive { from, tag, context, flags: None, iov_count: 1 };
        receiver.post(into.span(length)?.into(), receive)
    }

    /// `fi_trecvv`.
    pub fn trecvv<R: Receiver>(
        into: Array<IoVec>, _desc: Descs, iov_count: usize,
        from: u64, tag: u64, ignore: u64, context: Context
    ) -> isize {
        let tag = Some((tag, ignore));
        several(receiver, into, Receive { from, tag, context, flags: None, iov_count })
    }

    /// `fi_trecvmsg`.
    pub fn trecvmsg<R: Receiver>(message: Option<&MsgTagged>, flags: u64) -> isize {
        let &MsgTagged { iov, iov_count, addr: from, tag, ignore, context, .. } =
            message.ok_or(error::EINVAL)?;
        let (tag, flags) = (Some((tag, ignore)), Some(flags));
        several(receiver, iov, Receive { from, tag, context, flags, iov_count })
    }

    /// `fi_cancel`.
    pub fn cancel<R: Receiver>(context: Context) -> isize {
        receiver.cancel(context);
        Ok(())
    }
}
