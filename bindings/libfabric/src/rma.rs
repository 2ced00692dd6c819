//! The calls that read and write a peer's memory.

use crate::abi::{MsgRma, Ops, error, flag, ops};
use crate::bound::WANTED;
use crate::ep::{Ep, State};
use crate::info::INJECT_BYTES;
use crate::object::{given, is_memory};
use crate::transmit::spans;
use bellwire_tagged::{RemoteAddress, Span, Spans, Token};
use std::ffi::c_void;
use std::ptr::null_mut;

/// The operations table for reads and writes.
pub static RMA: Ops<9> = ops![
    read,
    read_parts,
    read_message,
    write,
    write_parts,
    write_message,
    inject,
    write_data,
    inject_data,
];

/// One access: its target, and how it completes.
#[derive(Clone, Copy)]
pub struct Access {
    pub to: u64,
    pub offset: u64,
    pub key: u64,
    pub context: *mut c_void,
    pub flags: u64,
}

impl State {
    /// The target and the token of an access of `kind`, or the error that prevents it.
    #[inline]
    pub fn admit(&mut self, access: Access, kind: u64) -> Result<(RemoteAddress, Token), isize> {
        let Access { to, offset, key, context, flags } = access;
        if !self.is_enabled() {
            return Err(-(error::EOPBADSTATE as isize));
        }
        let Some(peer) = self.peer(to) else { return Err(self.no_peer()) };
        let wanted = flags & flag::COMPLETION != 0;
        // SAFETY: bound objects are closed after the endpoint.
        if wanted && unsafe { self.bound.tx_cq.as_ref() }.is_some_and(|cq| !cq.has_room()) {
            return Err(-(error::EAGAIN as isize));
        }
        let note = if wanted { kind | WANTED } else { kind };
        Ok((RemoteAddress { peer, key, offset }, Token { context: context as u64, note }))
    }

    fn read(&mut self, into: &Spans, access: Access) -> isize {
        let (place, token) = match self.admit(access, flag::RMA | flag::READ) {
            Ok(admitted) => admitted,
            Err(error) => return error,
        };
        match self.endpoint.read(place, into, token, &mut self.bound) {
            Ok(()) => 0,
            Err(refusal) => self.refused(refusal),
        }
    }

    fn write(&mut self, body: &Spans, data: Option<u64>, access: Access) -> isize {
        let copied = access.flags & flag::INJECT != 0;
        if copied && body.len() > INJECT_BYTES {
            return -(error::EMSGSIZE as isize);
        }
        let (place, token) = match self.admit(access, flag::RMA | flag::WRITE) {
            Ok(admitted) => admitted,
            Err(error) => return error,
        };
        match self.endpoint.write(place, body, data, copied, token, &mut self.bound) {
            Ok(()) => 0,
            Err(refusal) => self.refused(refusal),
        }
    }
}

unsafe extern "C" fn read(
    ep: *mut Ep,
    into: *mut c_void,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    if !is_memory(into, length) {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let flags = state.usual();
        let into = Span::new(into.cast(), length).into();
        state.read(&into, Access { to: from, offset, key, context, flags })
    }
}

unsafe extern "C" fn read_parts(
    ep: *mut Ep,
    into: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(into) = spans(into, count) else { return -(error::EINVAL as isize) };
        let mut state = (*ep).hold();
        let flags = state.usual();
        state.read(&into, Access { to: from, offset, key, context, flags })
    }
}

unsafe extern "C" fn read_message(ep: *mut Ep, message: *const MsgRma, flags: u64) -> isize {
    given!(message);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        match message_of(&*message, state.with(flags)) {
            Some((into, access)) => state.read(&into, access),
            None => -(error::EINVAL as isize),
        }
    }
}

/// The buffers of a message and its target; `None`: we do not offer such a message.
unsafe fn message_of(message: &MsgRma, flags: u64) -> Option<(Spans, Access)> {
    let MsgRma { iov, iov_count, addr: to, rma_iov, rma_iov_count, context, .. } = *message;
    if rma_iov_count != 1 || rma_iov.is_null() {
        return None;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let body = spans(iov, iov_count)?;
        let there = &*rma_iov;
        let access = Access { to, offset: there.addr, key: there.key, context, flags };
        (there.len == body.len()).then_some((body, access))
    }
}

#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn write_one(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    data: Option<u64>,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    if !is_memory(from, length) {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let flags = flags.unwrap_or_else(|| state.usual());
        let body = Span::new(from.cast(), length).into();
        state.write(&body, data, Access { to, offset, key, context, flags })
    }
}

unsafe extern "C" fn write(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { write_one(ep, from, length, None, to, offset, key, context, None) }
}

unsafe extern "C" fn write_parts(
    ep: *mut Ep,
    from: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(body) = spans(from, count) else { return -(error::EINVAL as isize) };
        let mut state = (*ep).hold();
        let flags = state.usual();
        state.write(&body, None, Access { to, offset, key, context, flags })
    }
}

unsafe extern "C" fn write_message(ep: *mut Ep, message: *const MsgRma, flags: u64) -> isize {
    given!(message);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let data = (flags & flag::REMOTE_CQ_DATA != 0).then_some((*message).data);
        match message_of(&*message, state.with(flags)) {
            Some((body, access)) => state.write(&body, data, access),
            None => -(error::EINVAL as isize),
        }
    }
}

unsafe extern "C" fn inject(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    to: u64,
    offset: u64,
    key: u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { write_one(ep, from, length, None, to, offset, key, null_mut(), Some(flag::INJECT)) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn write_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { write_one(ep, from, length, Some(data), to, offset, key, context, None) }
}

unsafe extern "C" fn inject_data(
    ep: *mut Ep,
    from: *const c_void,
    length: usize,
    data: u64,
    to: u64,
    offset: u64,
    key: u64,
) -> isize {
    let flags = Some(flag::INJECT);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { write_one(ep, from, length, Some(data), to, offset, key, null_mut(), flags) }
}
