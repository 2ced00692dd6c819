//! The calls that read and write a peer's memory.

use crate::abi::{Context, Desc, Descs, IoVec, MsgRma, calls, error, flag};
use crate::bound::WANTED;
use crate::ep::{ActiveEndpoint, State};
use crate::errno::Result;
use crate::info::INJECT_BYTES;
use crate::pointer::{Array, Buffer, gather};
use bellwire_tagged::{RemoteAddress, Spans, Token};
use std::ptr::null_mut;

/// One access: its target, and how it completes.
#[derive(Clone, Copy)]
pub struct Access {
    pub to: u64,
    pub offset: u64,
    pub key: u64,
    pub context: Context,
    pub flags: u64,
}

impl State {
    /// The target and the token of an access of `kind`, or the error that prevents it.
    #[inline]
    pub fn admit(&mut self, access: Access, kind: u64) -> Result<(RemoteAddress, Token)> {
        let Access { to, offset, key, context, flags } = access;
        if !self.is_enabled() {
            return Err(error::EOPBADSTATE);
        }
        let Some(peer) = self.peer(to) else { return Err(self.no_peer()) };
        let wanted = flags & flag::COMPLETION != 0;
        if wanted && !self.bound.tx_has_room() {
            return Err(error::EAGAIN);
        }
        let note = if wanted { kind | WANTED } else { kind };
        Ok((RemoteAddress { peer, key, offset }, Token { context: context as u64, note }))
    }

    fn read(&mut self, into: &Spans, access: Access) -> Result {
        let (place, token) = self.admit(access, flag::RMA | flag::READ)?;
        let read = self.endpoint.read(place, into, token, &mut self.bound);
        read.map_err(|refusal| self.refused(refusal))
    }

    fn write(&mut self, body: &Spans, data: Option<u64>, access: Access) -> Result {
        let copied = access.flags & flag::INJECT != 0;
        if copied && body.len() > INJECT_BYTES {
            return Err(error::EMSGSIZE);
        }
        let (place, token) = self.admit(access, flag::RMA | flag::WRITE)?;
        let written = self.endpoint.write(place, body, data, copied, token, &mut self.bound);
        written.map_err(|refusal| self.refused(refusal))
    }
}

/// The memory of a peer that a call names.
type Target = (u64, u64, u64);

/// Reads into these buffers.
#[inline(always)]
fn read_into(
    ep: &ActiveEndpoint,
    into: &Spans,
    (to, offset, key): Target,
    context: Context,
) -> Result {
    let mut state = ep.lock();
    let flags = state.usual();
    state.read(into, Access { to, offset, key, context, flags })
}

/// Writes these buffers; `flags`: `None` for the usual ones.
#[inline(always)]
fn write_from(
    ep: &ActiveEndpoint,
    body: &Spans,
    data: Option<u64>,
    (to, offset, key): Target,
    context: Context,
    flags: Option<u64>,
) -> Result {
    let mut state = ep.lock();
    let flags = flags.unwrap_or_else(|| state.usual());
    state.write(body, data, Access { to, offset, key, context, flags })
}

/// The buffers of a message and its target. `EINVAL`: null, or not one target of the same length.
fn message_of(message: Option<&MsgRma>, flags: u64) -> Result<(&MsgRma, Spans, Access)> {
    let message = message.ok_or(error::EINVAL)?;
    let &MsgRma { iov, iov_count, addr: to, rma_iov, rma_iov_count, context, .. } = message;
    if rma_iov_count != 1 {
        return Err(error::EINVAL);
    }
    let there = rma_iov.elements(1)?[0];
    let body = gather(iov, iov_count, IoVec::span)?;
    if there.len != body.len() {
        return Err(error::EINVAL);
    }
    Ok((message, body, Access { to, offset: there.addr, key: there.key, context, flags }))
}

calls! {
    ep: &ActiveEndpoint;

    /// fi_rma(3).
    pub static RMA;

    fn read(
        into: Buffer, length: usize, _desc: Desc, from: u64, offset: u64, key: u64, context: Context
    ) -> isize {
        read_into(ep, &into.span(length)?.into(), (from, offset, key), context)
    }

    fn readv(
        into: Array<IoVec>, _desc: Descs, count: usize,
        from: u64, offset: u64, key: u64, context: Context
    ) -> isize {
        read_into(ep, &gather(into, count, IoVec::span)?, (from, offset, key), context)
    }

    fn readmsg(message: Option<&MsgRma>, flags: u64) -> isize {
        let mut state = ep.lock();
        let (_, into, access) = message_of(message, state.with(flags))?;
        state.read(&into, access)
    }

    fn write(
        from: Buffer, length: usize, _desc: Desc, to: u64, offset: u64, key: u64, context: Context
    ) -> isize {
        write_from(ep, &from.span(length)?.into(), None, (to, offset, key), context, None)
    }

    fn writev(
        from: Array<IoVec>, _desc: Descs, count: usize,
        to: u64, offset: u64, key: u64, context: Context
    ) -> isize {
        let body = gather(from, count, IoVec::span)?;
        write_from(ep, &body, None, (to, offset, key), context, None)
    }

    fn writemsg(message: Option<&MsgRma>, flags: u64) -> isize {
        let mut state = ep.lock();
        let (message, body, access) = message_of(message, state.with(flags))?;
        let data = (flags & flag::REMOTE_CQ_DATA != 0).then_some(message.data);
        state.write(&body, data, access)
    }

    fn inject(from: Buffer, length: usize, to: u64, offset: u64, key: u64) -> isize {
        let (body, target) = (from.span(length)?.into(), (to, offset, key));
        write_from(ep, &body, None, target, null_mut(), Some(flag::INJECT))
    }

    fn writedata(
        from: Buffer, length: usize, _desc: Desc, data: u64,
        to: u64, offset: u64, key: u64, context: Context
    ) -> isize {
        write_from(ep, &from.span(length)?.into(), Some(data), (to, offset, key), context, None)
    }

    fn injectdata(from: Buffer, length: usize, data: u64, to: u64, offset: u64, key: u64) -> isize {
        let (body, target) = (from.span(length)?.into(), (to, offset, key));
        write_from(ep, &body, Some(data), target, null_mut(), Some(flag::INJECT))
    }
}
