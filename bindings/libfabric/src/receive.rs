//! The calls that receive.

use crate::abi::{Msg, MsgTagged, error, flag, value};
use crate::ep::{Ep, State, WANTED};
use crate::transmit::spans;
use bellwire_tagged::{Peek, Refusal, Selection, Span, Spans, Token};
use std::ffi::c_void;

/// One receive.
struct Receive {
    from: u64,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    flags: u64,
}

impl State {
    /// # Safety
    /// The memory is the program's until the receive is done.
    #[inline(always)]
    unsafe fn receive(&mut self, into: Spans, receive: Receive) -> isize {
        let Receive { from, tag, context, flags } = receive;
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
        let kind = if tag.is_some() { flag::TAGGED } else { flag::MSG } | flag::RECV;
        let note = if flags & flag::COMPLETION != 0 { kind | WANTED } else { kind };
        let (selection, token) = (Selection { from, tag }, Token { context: context as u64, note });
        let done = match flags & (flag::PEEK | flag::CLAIM | flag::DISCARD | flag::MULTI_RECV) {
            0 => self.endpoint.receive(selection, into, token, &mut self.bound),
            special => self.receive_specially(selection, into, token, special),
        };
        match done {
            Ok(()) => 0,
            Err(refusal) => self.refused(refusal),
        }
    }

    #[cold]
    fn receive_specially(
        &mut self,
        selection: Selection,
        into: Spans,
        mut token: Token,
        special: u64,
    ) -> Result<(), Refusal> {
        let has = |flag: u64| special & flag != 0;
        if has(flag::PEEK) {
            let how = match (has(flag::CLAIM), has(flag::DISCARD)) {
                (true, _) => Peek::Claim,
                (false, true) => Peek::Discard,
                (false, false) => Peek::Look,
            };
            // What has come but was not looked at counts as there.
            self.progress();
            token.note |= WANTED;
            self.endpoint.peek(selection, how, token, &mut self.bound);
            return Ok(());
        }
        if has(flag::CLAIM) {
            let into = (!has(flag::DISCARD)).then_some(into);
            let tagged = selection.tag.is_some();
            return self.endpoint.receive_claimed(tagged, into, token, &mut self.bound);
        }
        let least = self.bound.least;
        // SAFETY: the one stretch that was given, whose promise goes on.
        let span = unsafe { Span::new(into.address() as *const u8, into.len()) };
        self.endpoint.receive_many(selection, span, least, token, &mut self.bound)
    }

    #[inline(always)]
    fn usual_receive(&self, flags: u64) -> u64 {
        if self.bound.rx_selective { flags } else { flags | flag::COMPLETION }
    }
}

#[inline(always)]
unsafe fn one(
    ep: *mut Ep,
    into: *mut c_void,
    length: usize,
    from: u64,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let mut state = (*ep).hold();
        let mut flags = state.usual_receive(state.bound.rx_flags);
        if tag.is_some() {
            flags &= !flag::MULTI_RECV;
        }
        let into = Span::new(into.cast(), length).into();
        state.receive(into, Receive { from, tag, context, flags })
    }
}

#[inline(always)]
unsafe fn parts(
    ep: *mut Ep,
    parts: *const libc::iovec,
    count: usize,
    from: u64,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let mut state = (*ep).hold();
        let flags = state.usual_receive(flags.unwrap_or(state.bound.rx_flags));
        if flags & flag::MULTI_RECV != 0 && (count != 1 || tag.is_some()) {
            return -(error::EINVAL as isize);
        }
        state.receive(spans(parts, count), Receive { from, tag, context, flags })
    }
}

/// `fi_recv`.
pub unsafe extern "C" fn recv(
    ep: *mut Ep,
    into: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe { one(ep, into, length, from, None, context) }
}

/// `fi_recvv`.
pub unsafe extern "C" fn recv_parts(
    ep: *mut Ep,
    into: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe { parts(ep, into, count, from, None, context, None) }
}

/// `fi_recvmsg`.
pub unsafe extern "C" fn recv_message(ep: *mut Ep, message: *const Msg, flags: u64) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let Msg { iov, iov_count, addr, context, .. } = *message;
        parts(ep, iov, iov_count, addr, None, context, Some(flags))
    }
}

/// `fi_trecv`.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn tagged(
    ep: *mut Ep,
    into: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe { one(ep, into, length, from, Some((tag, ignore)), context) }
}

/// `fi_trecvv`.
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn tagged_parts(
    ep: *mut Ep,
    into: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe { parts(ep, into, count, from, Some((tag, ignore)), context, None) }
}

/// `fi_trecvmsg`.
pub unsafe extern "C" fn tagged_message(
    ep: *mut Ep,
    message: *const MsgTagged,
    flags: u64,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let MsgTagged { iov, iov_count, addr, tag, ignore, context, .. } = *message;
        parts(ep, iov, iov_count, addr, Some((tag, ignore)), context, Some(flags))
    }
}

/// `fi_cancel`.
pub unsafe extern "C" fn cancel(ep: *mut Ep, context: *mut c_void) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let mut state = (*ep).hold();
        let State { endpoint, bound, .. } = &mut *state;
        // What is done, or unknown, cannot be cancelled, and that is no error.
        endpoint.cancel(context as u64, bound);
    }
    0
}
