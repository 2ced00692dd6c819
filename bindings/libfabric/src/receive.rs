//! The calls that receive.

use crate::abi::{Msg, MsgTagged, error, flag, value};
use crate::bound::WANTED;
use crate::ep::{Ep, State};
use crate::object::{given, is_memory};
use crate::transmit::spans;
use bellwire_tagged::{MatchCriteria, Peek, Refusal, Span, Spans, Token};
use std::ffi::c_void;

/// One receive.
pub struct Receive {
    pub from: u64,
    /// The tag, and the mask of its ignored bits.
    pub tag: Option<(u64, u64)>,
    pub context: *mut c_void,
    /// `None`: the call has no flags.
    pub flags: Option<u64>,
    /// Number of buffers.
    pub parts: usize,
}

/// An object that receives are posted to.
pub trait Receiver {
    /// # Safety
    /// The memory stays the program's until the receive is done.
    unsafe fn post(&self, into: Spans, receive: Receive) -> isize;

    /// Cancels the oldest receive of this context, if there is one.
    fn take_back(&self, context: *mut c_void);
}

impl Receiver for Ep {
    #[inline(always)]
    unsafe fn post(&self, into: Spans, receive: Receive) -> isize {
        let mut state = self.hold();
        let flags = receive.flags.unwrap_or_else(|| {
            let usual = state.bound.rx_flags;
            if receive.tag.is_some() { usual & !flag::MULTI_RECV } else { usual }
        });
        let flags = if state.bound.rx_selective { flags } else { flags | flag::COMPLETION };
        if flags & flag::MULTI_RECV != 0 && (receive.parts != 1 || receive.tag.is_some()) {
            return -(error::EINVAL as isize);
        }
        // SAFETY: the caller's promise.
        unsafe { state.receive(into, receive, flags) }
    }

    fn take_back(&self, context: *mut c_void) {
        let mut state = self.hold();
        let State { endpoint, bound, .. } = &mut *state;
        // A finished or unknown receive cannot be cancelled, which is no error.
        endpoint.cancel(context as u64, bound);
    }
}

impl State {
    /// # Safety
    /// The memory stays the program's until the receive is done.
    #[inline(always)]
    unsafe fn receive(&mut self, into: Spans, receive: Receive, flags: u64) -> isize {
        let Receive { from, tag, context, .. } = receive;
        if !self.is_enabled() {
            return -(error::EOPBADSTATE as isize);
        }
        let from = match from {
            _ if !self.bound.directed => None,
            value::ADDRESS_UNKNOWN => None,
            from => match self.peer(from) {
                Some(peer) => Some(peer),
                None => return -(error::EINVAL as isize),
            },
        };
        let token = token(tag.is_some(), flags & flag::COMPLETION != 0, context);
        let criteria = MatchCriteria { source: from, tag };
        let done = match flags & (flag::PEEK | flag::CLAIM | flag::DISCARD | flag::MULTI_RECV) {
            0 => self.endpoint.receive(criteria, into, token, &mut self.bound),
            special => self.receive_specially(criteria, into, token, special),
        };
        match done {
            Ok(()) => 0,
            Err(refusal) => self.refused(refusal),
        }
    }

    #[cold]
    fn receive_specially(
        &mut self,
        criteria: MatchCriteria,
        into: Spans,
        mut token: Token,
        special: u64,
    ) -> Result<(), Refusal> {
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
        let least = self.bound.least;
        // SAFETY: the one buffer that was passed; its promise continues.
        let span = unsafe { Span::new(into.address() as *const u8, into.len()) };
        self.endpoint.receive_many(criteria, span, least, token, &mut self.bound)
    }
}

/// The token of a receive.
#[inline(always)]
pub fn token(tagged: bool, wanted: bool, context: *mut c_void) -> Token {
    let kind = if tagged { flag::TAGGED } else { flag::MSG } | flag::RECV;
    Token { context: context as u64, note: if wanted { kind | WANTED } else { kind } }
}

#[inline(always)]
unsafe fn one<R: Receiver>(
    receiver: *mut R,
    into: *mut c_void,
    length: usize,
    from: u64,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
) -> isize {
    if !is_memory(into, length) {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let into = Span::new(into.cast(), length).into();
        (*receiver).post(into, Receive { from, tag, context, flags: None, parts: 1 })
    }
}

#[inline(always)]
unsafe fn several<R: Receiver>(
    receiver: *mut R,
    into: *const libc::iovec,
    parts: usize,
    from: u64,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(into) = spans(into, parts) else { return -(error::EINVAL as isize) };
        (*receiver).post(into, Receive { from, tag, context, flags, parts })
    }
}

/// `fi_recv`.
pub unsafe extern "C" fn recv<R: Receiver>(
    receiver: *mut R,
    into: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(receiver, into, length, from, None, context) }
}

/// `fi_recvv`.
pub unsafe extern "C" fn recv_parts<R: Receiver>(
    receiver: *mut R,
    into: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { several(receiver, into, count, from, None, context, None) }
}

/// `fi_recvmsg`.
pub unsafe extern "C" fn recv_message<R: Receiver>(
    receiver: *mut R,
    message: *const Msg,
    flags: u64,
) -> isize {
    given!(message);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Msg { iov, iov_count, addr, context, .. } = *message;
        several(receiver, iov, iov_count, addr, None, context, Some(flags))
    }
}

/// `fi_trecv`.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn tagged<R: Receiver>(
    receiver: *mut R,
    into: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(receiver, into, length, from, Some((tag, ignore)), context) }
}

/// `fi_trecvv`.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn tagged_parts<R: Receiver>(
    receiver: *mut R,
    into: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { several(receiver, into, count, from, Some((tag, ignore)), context, None) }
}

/// `fi_trecvmsg`.
pub unsafe extern "C" fn tagged_message<R: Receiver>(
    receiver: *mut R,
    message: *const MsgTagged,
    flags: u64,
) -> isize {
    given!(message);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let MsgTagged { iov, iov_count, addr, tag, ignore, context, .. } = *message;
        several(receiver, iov, iov_count, addr, Some((tag, ignore)), context, Some(flags))
    }
}

/// `fi_cancel`.
pub unsafe extern "C" fn cancel<R: Receiver>(receiver: *mut R, context: *mut c_void) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*receiver).take_back(context) };
    0
}
