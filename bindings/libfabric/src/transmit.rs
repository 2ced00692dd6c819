//! The calls that send, and the tables of the data path.

use crate::abi::{Msg, MsgTagged, Ops, error, flag, ops};
use crate::bound::{WANTED, number_of};
use crate::ep::{Ep, State};
use crate::info::{DATAGRAM_BYTES, IOV_LIMIT};
use crate::library::{Level, log};
use crate::object::{given, is_memory};
use crate::receive;
use bellwire_tagged::{Refusal, SendMode, SendStatus, Span, Spans, TaggedMessage, Token};
use std::ffi::c_void;

/// Messages without tags.
pub static MSG: Ops<9> = ops![
    receive::recv::<Ep>,
    receive::recv_parts::<Ep>,
    receive::recv_message::<Ep>,
    send,
    send_parts,
    send_message,
    inject,
    send_data,
    inject_data,
];

/// Messages with tags.
pub static TAGGED: Ops<9> = ops![
    receive::tagged::<Ep>,
    receive::tagged_parts::<Ep>,
    receive::tagged_message::<Ep>,
    tagged,
    tagged_parts,
    tagged_message,
    tagged_inject,
    tagged_data,
    tagged_inject_data,
];

/// One transmission.
struct Send {
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: *mut c_void,
    flags: u64,
}

/// Buffers of the program. `None`: too many, or one that cannot be memory.
///
/// # Safety
/// There are `count` entries. They and their memory stay the program's until the operation is done.
pub unsafe fn spans(parts: *const libc::iovec, count: usize) -> Option<Spans> {
    if count > IOV_LIMIT || count > 0 && parts.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let span = |at: usize| {
            let part = *parts.add(at);
            let good = is_memory(part.iov_base, part.iov_len);
            good.then(|| Span::new(part.iov_base.cast(), part.iov_len))
        };
        Some(match count {
            0 => Span::new(std::ptr::null(), 0).into(),
            1 => span(0)?.into(),
            _ => Spans::of(&(0..count).map(span).collect::<Option<Vec<_>>>()?),
        })
    }
}

impl State {
    #[inline(always)]
    fn send(&mut self, body: &Spans, send: Send) -> isize {
        let Send { to, tag, data, context, flags } = send;
        if !self.is_enabled() {
            return -(error::EOPBADSTATE as isize);
        }
        let Some(to) = self.peer(to) else { return self.no_peer() };
        if self.bound.datagrams && body.len() > DATAGRAM_BYTES {
            return -(error::EMSGSIZE as isize);
        }
        let mode = if flags & flag::INJECT != 0 {
            if body.len() > crate::info::INJECT_BYTES {
                return -(error::EMSGSIZE as isize);
            }
            SendMode::Inject
        } else if flags & (flag::DELIVERY_COMPLETE | flag::MATCH_COMPLETE) != 0 {
            SendMode::Delivery
        } else {
            SendMode::Transmit
        };
        let wanted = flags & flag::COMPLETION != 0;
        // SAFETY: bound objects are closed after the endpoint.
        if wanted && unsafe { self.bound.tx_cq.as_ref() }.is_some_and(|cq| !cq.has_room()) {
            return -(error::EAGAIN as isize);
        }
        let kind = if tag.is_some() { flag::TAGGED } else { flag::MSG } | flag::SEND;
        let note = if wanted { kind | WANTED } else { kind };
        let token = Token { context: context as u64, note };
        let message = TaggedMessage { to, tag, data, body, token, mode };
        let mut sent = self.endpoint.send(message);
        if self.bound.datagrams && matches!(sent, Err(Refusal::Lost(_))) {
            // The link was lost, which datagrams allow: try once more.
            sent = self.endpoint.send(message);
        }
        match sent {
            Ok(SendStatus::Pending) if mode != SendMode::Inject => 0,
            Ok(_) => {
                self.bound.transmitted(note, context, tag.unwrap_or_default());
                0
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// The error of a refused operation.
    #[cold]
    pub fn refused(&mut self, refusal: Refusal) -> isize {
        match refusal {
            Refusal::Again => {
                // Programs that only retry need progress too.
                let _ = self.progress();
                -(error::EAGAIN as isize)
            }
            Refusal::Lost(status) => {
                let what = "messages that had been sent before are lost, and this one was not sent";
                log(Level::Warn, &format!("{what}: {status}"));
                -(number_of(status) as isize)
            }
            Refusal::Failed(error) => {
                log(Level::Warn, &error.to_string());
                -(match error {
                    bellwire::Error::TooLong { .. } => error::EMSGSIZE,
                    bellwire::Error::Forked => error::EOPBADSTATE,
                    _ => error::EINVAL,
                } as isize)
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

/// Sends one buffer.
#[inline(always)]
unsafe fn one(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: *mut c_void,
) -> isize {
    if !is_memory(from, length) {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let flags = state.usual();
        let body = Span::new(from.cast(), length).into();
        state.send(&body, Send { to, tag, data, context, flags })
    }
}

/// Injects one buffer.
#[inline(always)]
unsafe fn copied(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
) -> isize {
    if !is_memory(from, length) {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let body = Span::new(from.cast(), length).into();
        let context = std::ptr::null_mut();
        let send = Send { to, tag, data, context, flags: flag::INJECT };
        (*ep).hold().send(&body, send)
    }
}

unsafe extern "C" fn send(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, from, length, to, None, None, context) }
}

unsafe extern "C" fn send_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, from, length, to, None, Some(data), context) }
}

unsafe extern "C" fn inject(ep: *mut Ep, from: *const c_void, length: usize, to: u64) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { copied(ep, from, length, to, None, None) }
}

unsafe extern "C" fn inject_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    data: u64,
    to: u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { copied(ep, from, length, to, None, Some(data)) }
}

unsafe extern "C" fn tagged(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, from, length, to, Some(tag), None, context) }
}

unsafe extern "C" fn tagged_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, from, length, to, Some(tag), Some(data), context) }
}

unsafe extern "C" fn tagged_inject(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    to: u64,
    tag: u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { copied(ep, from, length, to, Some(tag), None) }
}

unsafe extern "C" fn tagged_inject_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { copied(ep, from, length, to, Some(tag), Some(data)) }
}

/// Sends several buffers.
unsafe fn several(
    ep: *mut Ep,
    parts: *const libc::iovec,
    count: usize,
    to: u64,
    tag: Option<u64>,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(body) = spans(parts, count) else { return -(error::EINVAL as isize) };
        let mut state = (*ep).hold();
        let flags = state.usual();
        state.send(&body, Send { to, tag, data: None, context, flags })
    }
}

unsafe extern "C" fn send_parts(
    ep: *mut Ep,
    parts: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { several(ep, parts, count, to, None, context) }
}

unsafe extern "C" fn tagged_parts(
    ep: *mut Ep,
    parts: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { several(ep, parts, count, to, Some(tag), context) }
}

/// Sends a message structure.
unsafe fn message(ep: *mut Ep, message: Msg, tag: Option<u64>, flags: u64) -> isize {
    let Msg { iov, iov_count, addr: to, context, data, .. } = message;
    let data = (flags & flag::REMOTE_CQ_DATA != 0).then_some(data);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(body) = spans(iov, iov_count) else { return -(error::EINVAL as isize) };
        let mut state = (*ep).hold();
        let flags = state.with(flags);
        state.send(&body, Send { to, tag, data, context, flags })
    }
}

unsafe extern "C" fn send_message(ep: *mut Ep, what: *const Msg, flags: u64) -> isize {
    given!(what);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { message(ep, *what, None, flags) }
}

unsafe extern "C" fn tagged_message(ep: *mut Ep, what: *const MsgTagged, flags: u64) -> isize {
    given!(what);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let MsgTagged { iov, desc, iov_count, addr, tag, context, data, .. } = *what;
        message(ep, Msg { iov, desc, iov_count, addr, context, data }, Some(tag), flags)
    }
}
