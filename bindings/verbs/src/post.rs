//! The data path: what the header's inline functions call through the context's table.

use crate::abi::{MwBindInfo, RecvWr, SendWr, Wc};
use crate::ah::Ah;
use crate::cq::Cq;
use crate::errno;
use crate::mw::{Mw, binding};
use crate::qp::Qp;
use crate::srq::Srq;
use bellwire_rdma::{
    Bytes, Datagram, LIMITS, Operation, Refusal, SendRequest, Sge, WorkCompletion, work_flag,
};
use std::ffi::c_int;

/// Bits of `send_flags`.
pub mod flag {
    pub const FENCE: u32 = 1;
    pub const SIGNALED: u32 = 2;
    pub const SOLICITED: u32 = 4;
    pub const INLINE: u32 = 8;
}

/// The parts of a request.
///
/// # Safety
/// `parts` has `count` elements during the call.
#[inline]
unsafe fn list<'a>(parts: *const Sge, count: c_int) -> Result<&'a [Sge], Refusal> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(count) if count <= LIMITS.parts && !parts.is_null() => {
            // SAFETY: the caller's promise.
            Ok(unsafe { std::slice::from_raw_parts(parts, count) })
        }
        _ => Err(Refusal::Invalid("a list has no parts, or too many")),
    }
}

/// Bytes of the program that a request copies.
pub struct Copied {
    bytes: [u8; LIMITS.inline_bytes],
    length: usize,
}

impl Copied {
    pub const EMPTY: Copied = Copied { bytes: [0; LIMITS.inline_bytes], length: 0 };

    /// Adds bytes.
    ///
    /// # Safety
    /// `from` has `length` bytes during the call.
    pub unsafe fn add(&mut self, from: *const u8, length: usize) -> Result<(), Refusal> {
        let place = self.bytes.get_mut(self.length..self.length.saturating_add(length));
        let place = place.ok_or(Refusal::Full("too many inline bytes"))?;
        if length > 0 {
            // SAFETY: the caller's promise; the place is as long.
            unsafe { std::ptr::copy_nonoverlapping(from, place.as_mut_ptr(), length) };
        }
        self.length += length;
        Ok(())
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The operation of a request.
fn operation(wr: &SendWr) -> Result<Operation, Refusal> {
    let [address, second, third, fourth] = wr.wr;
    let immediate = Some(wr.imm_data);
    Ok(match wr.opcode {
        0 => Operation::Write { address, key: second as u32, immediate: None },
        1 => Operation::Write { address, key: second as u32, immediate },
        2 => Operation::Send { immediate: None, invalidate: None },
        3 => Operation::Send { immediate, invalidate: None },
        4 => Operation::Read { address, key: second as u32 },
        5 => Operation::CompareSwap { address, key: fourth as u32, expected: second, new: third },
        6 => Operation::FetchAdd { address, key: fourth as u32, operand: second },
        7 => Operation::LocalInvalidate { key: wr.imm_data },
        8 => {
            let [window, key, mr, addr, length, access] = wr.tail;
            // SAFETY: a window that lives during the call: ibv_post_send(3).
            let window = unsafe { (window as *const Mw).as_ref() };
            let window = window.ok_or(Refusal::Invalid("no window to bind"))?.posted_key()?;
            let info = MwBindInfo { mr: mr as *const _, addr, length, access: access as u32 };
            Operation::BindWindow { window, key: key as u32, to: binding(&info)? }
        }
        9 => Operation::Send { immediate: None, invalidate: immediate },
        _ => return Err(Refusal::Invalid("there is no such operation")),
    })
}

#[inline]
fn datagram(qp: &Qp, wr: &SendWr) -> Option<Datagram> {
    const UD: u32 = 4;
    if qp.abi.qp.qp_type != UD {
        return None;
    }
    // SAFETY: null, or a handle that lives during the call: ibv_post_send(3).
    let handle = unsafe { (wr.wr[0] as *const Ah).as_ref() }?;
    Some(Datagram {
        host: handle.host,
        queue_pair: wr.wr[1] as u32 & 0xff_ffff,
        key: (wr.wr[1] >> 32) as u32,
    })
}

/// Posts a request, which starts later.
#[inline]
fn enqueue(adapter: &mut bellwire_rdma::Adapter, qp: &Qp, wr: &SendWr) -> Result<(), Refusal> {
    // The frequent ones apart: their operations are then never in memory, where they would be
    // stored in parts and loaded as a whole.
    match wr.opcode {
        0 => {
            let [address, key, ..] = wr.wr;
            let key = key as u32;
            enqueue_as(Operation::Write { address, key, immediate: None }, adapter, qp, wr)
        }
        2 => enqueue_as(Operation::default(), adapter, qp, wr),
        _ => enqueue_as(operation(wr)?, adapter, qp, wr),
    }
}

#[inline(always)]
fn enqueue_as(
    operation: Operation,
    adapter: &mut bellwire_rdma::Adapter,
    qp: &Qp,
    wr: &SendWr,
) -> Result<(), Refusal> {
    // SAFETY: the list of a request during the call: ibv_post_send(3).
    let parts = unsafe { list(wr.sg_list, wr.num_sge) }?;
    let request = |bytes| SendRequest {
        id: wr.wr_id,
        operation,
        bytes,
        signaled: wr.send_flags & flag::SIGNALED != 0,
        solicited: wr.send_flags & flag::SOLICITED != 0,
        fence: wr.send_flags & flag::FENCE != 0,
        to: datagram(qp, wr),
    };
    let copies = wr.send_flags & flag::INLINE != 0
        && matches!(operation, Operation::Send { .. } | Operation::Write { .. });
    if !copies {
        return adapter.enqueue(qp.number(), &request(Bytes::Listed(parts)));
    }
    if let [part] = parts {
        if part.length as usize > LIMITS.inline_bytes {
            return Err(Refusal::Full("too many inline bytes"));
        }
        let bytes = match part.length as usize {
            0 => &[][..],
            length => {
                // SAFETY: inline bytes are readable during the call: ibv_post_send(3).
                unsafe { std::slice::from_raw_parts(part.address as *const u8, length) }
            }
        };
        return adapter.enqueue(qp.number(), &request(Bytes::Inline(bytes)));
    }
    let mut copied = Copied::EMPTY;
    for part in parts {
        // SAFETY: as above.
        unsafe { copied.add(part.address as *const u8, part.length as usize) }?;
    }
    adapter.enqueue(qp.number(), &request(Bytes::Inline(copied.as_slice())))
}

pub extern "C" fn post_send(qp: &Qp, mut wr: *const SendWr, bad_wr: *mut *const SendWr) -> c_int {
    let mut adapter = qp.context().lock();
    let mut result = Ok(());
    // SAFETY: a list of requests that ends with null: ibv_post_send(3).
    while let Some(request) = unsafe { wr.as_ref() } {
        result = enqueue(&mut adapter, qp, request);
        if result.is_err() {
            // SAFETY: a place for a pointer, or null.
            unsafe { bad_wr.as_mut() }.into_iter().for_each(|bad| *bad = wr);
            break;
        }
        wr = request.next;
    }
    adapter.start(qp.number());
    errno::answer("ibv_post_send", result)
}

/// Posts a list of receives.
fn post_receives(
    what: &str,
    mut wr: *const RecvWr,
    bad_wr: *mut *const RecvWr,
    mut post: impl FnMut(u64, &[Sge]) -> Result<(), Refusal>,
) -> c_int {
    // SAFETY: a list of requests that ends with null: ibv_post_recv(3).
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: the list of a request during the call.
        let parts = unsafe { list(request.sg_list, request.num_sge) };
        if let Err(refusal) = parts.and_then(|parts| post(request.wr_id, parts)) {
            // SAFETY: a place for a pointer, or null.
            unsafe { bad_wr.as_mut() }.into_iter().for_each(|bad| *bad = wr);
            return errno::answer(what, Err(refusal));
        }
        wr = request.next;
    }
    0
}

pub extern "C" fn post_recv(qp: &Qp, wr: *const RecvWr, bad_wr: *mut *const RecvWr) -> c_int {
    let mut adapter = qp.context().lock();
    post_receives("ibv_post_recv", wr, bad_wr, |id, parts| {
        adapter.post_receive(qp.number(), id, parts)
    })
}

pub extern "C" fn post_srq_recv(srq: &Srq, wr: *const RecvWr, bad_wr: *mut *const RecvWr) -> c_int {
    let mut adapter = srq.context().lock();
    post_receives("ibv_post_srq_recv", wr, bad_wr, |id, parts| {
        adapter.post_shared(srq.id, id, parts)
    })
}

/// The bits of `wc_flags`.
pub fn wc_flags(done: &WorkCompletion) -> u32 {
    done.flags
}

/// For a datagram not a service level, but what its route header is: IPv4 (2), below UDP (8). Cards
/// for RoCE have it so, and UCX wants it. Annex A17.4.5.1 asks for such a mark and names no place.
pub fn service_level(done: &WorkCompletion) -> u8 {
    if done.flags & work_flag::GRH != 0 { 8 | 2 } else { 0 }
}

#[inline]
fn translate(done: &WorkCompletion) -> Wc {
    Wc {
        wr_id: done.id,
        status: done.status as u32,
        opcode: done.opcode as u32,
        vendor_err: done.cause as u32,
        byte_len: done.length,
        imm_data: done.word,
        qp_num: done.queue_pair,
        src_qp: done.source,
        wc_flags: wc_flags(done),
        sl: service_level(done),
        ..Wc::default()
    }
}

pub extern "C" fn poll_cq(cq: &Cq, num_entries: c_int, wc: *mut Wc) -> c_int {
    let most = num_entries.max(0) as usize;
    loop {
        let mut adapter = cq.context().lock();
        let count = adapter.poll_each(cq.id.get(), most, |place, done| {
            // SAFETY: the program gives `num_entries` places: ibv_poll_cq(3).
            unsafe { wc.add(place).write(translate(done)) };
        });
        drop(adapter);
        if !cq.polled(count > 0) {
            return count as c_int;
        }
    }
}
