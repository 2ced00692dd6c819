//! The extended calls of a queue pair: requests are built by setters, and posted together.

use crate::abi::{self, DataBuf, MwBindInfo, QpEx};
use crate::ah::Ah;
use crate::errno;
use crate::mw::{Mw, binding};
use crate::post::{Copied, flag};
use crate::qp::Qp;
use bellwire_rdma::{Bytes, Datagram, LIMITS, Operation, Refusal, SendRequest, Sge};
use std::cell::Cell;
use std::ffi::{c_int, c_void};

/// A request that is being built.
struct Built {
    id: u64,
    flags: u32,
    operation: Operation,
    parts: Vec<Sge>,
    inline: Option<Vec<u8>>,
    to: Option<Datagram>,
}

/// Requests between `wr_start` and `wr_complete`.
#[derive(Default)]
pub struct Batch {
    requests: Vec<Built>,
    /// The first error.
    failed: Option<Refusal>,
}

/// The table of an extended queue pair.
pub fn table(qp: abi::Qp) -> QpEx {
    QpEx {
        qp,
        comp_mask: 0,
        wr_id: Cell::new(0),
        wr_flags: Cell::new(0),
        atomic_cmp_swp,
        atomic_fetch_add,
        bind_mw,
        local_inv,
        rdma_read,
        rdma_write,
        rdma_write_imm,
        send,
        send_imm,
        send_inv,
        send_tso,
        set_ud_addr,
        set_xrc_srqn,
        set_inline_data,
        set_inline_data_list,
        set_sge,
        set_sge_list,
        start,
        complete,
        abort,
        atomic_write,
        flush,
    }
}

extern "C" fn start(qp: &Qp) {
    let mut batch = qp.batch.borrow_mut();
    batch.requests.clear();
    batch.failed = None;
}

extern "C" fn abort(qp: &Qp) {
    start(qp);
}

extern "C" fn complete(qp: &Qp) -> c_int {
    let mut batch = qp.batch.borrow_mut();
    if let Some(refusal) = batch.failed.take() {
        batch.requests.clear();
        return errno::answer("ibv_wr_complete", Err(refusal));
    }
    let mut adapter = qp.context().lock();
    for built in batch.requests.drain(..) {
        let request = SendRequest {
            id: built.id,
            operation: built.operation,
            bytes: match &built.inline {
                Some(bytes) => Bytes::Inline(bytes),
                None => Bytes::Listed(&built.parts),
            },
            signaled: built.flags & flag::SIGNALED != 0,
            solicited: built.flags & flag::SOLICITED != 0,
            fence: built.flags & flag::FENCE != 0,
            to: built.to,
        };
        if let Err(refusal) = adapter.post_send(qp.number(), &request) {
            return errno::answer("ibv_wr_complete", Err(refusal));
        }
    }
    0
}

fn begin(qp: &Qp, operation: Operation) {
    let (id, flags) = (qp.abi.wr_id.get(), qp.abi.wr_flags.get());
    let built = Built { id, flags, operation, parts: Vec::new(), inline: None, to: None };
    qp.batch.borrow_mut().requests.push(built);
}

/// Changes the request that was begun last.
fn set(qp: &Qp, change: impl FnOnce(&mut Built) -> Result<(), Refusal>) {
    let mut batch = qp.batch.borrow_mut();
    let begun = batch.requests.last_mut().ok_or(Refusal::Invalid("no request was begun"));
    if let Err(refusal) = begun.and_then(change) {
        batch.failed.get_or_insert(refusal);
    }
}

extern "C" fn send(qp: &Qp) {
    begin(qp, Operation::Send { immediate: None, invalidate: None });
}

extern "C" fn send_imm(qp: &Qp, value: u32) {
    begin(qp, Operation::Send { immediate: Some(value), invalidate: None });
}

extern "C" fn send_inv(qp: &Qp, key: u32) {
    begin(qp, Operation::Send { immediate: None, invalidate: Some(key) });
}

extern "C" fn rdma_read(qp: &Qp, key: u32, address: u64) {
    begin(qp, Operation::Read { address, key });
}

extern "C" fn rdma_write(qp: &Qp, key: u32, address: u64) {
    begin(qp, Operation::Write { address, key, immediate: None });
}

extern "C" fn rdma_write_imm(qp: &Qp, key: u32, address: u64, value: u32) {
    begin(qp, Operation::Write { address, key, immediate: Some(value) });
}

extern "C" fn atomic_cmp_swp(qp: &Qp, key: u32, address: u64, expected: u64, new: u64) {
    begin(qp, Operation::CompareSwap { address, key, expected, new });
}

extern "C" fn atomic_fetch_add(qp: &Qp, key: u32, address: u64, operand: u64) {
    begin(qp, Operation::FetchAdd { address, key, operand });
}

extern "C" fn local_inv(qp: &Qp, key: u32) {
    begin(qp, Operation::LocalInvalidate { key });
}

extern "C" fn bind_mw(qp: &Qp, mw: &Mw, key: u32, info: &MwBindInfo) {
    match binding(info).and_then(|to| Ok((mw.posted_key()?, to))) {
        Ok((window, to)) => begin(qp, Operation::BindWindow { window, key, to }),
        Err(refusal) => refuse(qp, refusal),
    }
}

fn refuse(qp: &Qp, refusal: Refusal) {
    qp.batch.borrow_mut().failed.get_or_insert(refusal);
}

const NOT_OFFERED: &str = "this operation is not offered";

extern "C" fn send_tso(qp: &Qp, _: *const c_void, _: u16, _: u16) {
    refuse(qp, Refusal::Unsupported(NOT_OFFERED));
}

extern "C" fn set_xrc_srqn(qp: &Qp, _: u32) {
    refuse(qp, Refusal::Unsupported(NOT_OFFERED));
}

extern "C" fn atomic_write(qp: &Qp, _: u32, _: u64, _: *const c_void) {
    refuse(qp, Refusal::Unsupported(NOT_OFFERED));
}

extern "C" fn flush(qp: &Qp, _: u32, _: u64, _: usize, _: u8, _: u8) {
    refuse(qp, Refusal::Unsupported(NOT_OFFERED));
}

extern "C" fn set_ud_addr(qp: &Qp, ah: &Ah, number: u32, key: u32) {
    let to = Datagram { host: ah.host, queue_pair: number & 0xff_ffff, key };
    set(qp, |built| {
        built.to = Some(to);
        Ok(())
    });
}

extern "C" fn set_sge(qp: &Qp, key: u32, address: u64, length: u32) {
    set(qp, |built| {
        built.parts = vec![Sge { address, length, key }];
        Ok(())
    });
}

extern "C" fn set_sge_list(qp: &Qp, count: usize, parts: *const Sge) {
    set(qp, |built| {
        if count > LIMITS.parts || (parts.is_null() && count > 0) {
            return Err(Refusal::Invalid("a list has too many parts"));
        }
        // SAFETY: `count` parts during the call: ibv_wr_post(3).
        built.parts = (0..count).map(|part| unsafe { *parts.add(part) }).collect();
        Ok(())
    });
}

extern "C" fn set_inline_data(qp: &Qp, addr: *const u8, length: usize) {
    set_inline_data_list(qp, 1, &DataBuf { addr, length });
}

extern "C" fn set_inline_data_list(qp: &Qp, count: usize, list: *const DataBuf) {
    set(qp, |built| {
        if count > LIMITS.inline_bytes || (list.is_null() && count > 0) {
            return Err(Refusal::Invalid("a list has too many parts"));
        }
        let mut copied = Copied::EMPTY;
        for part in 0..count {
            // SAFETY: `count` buffers of readable bytes during the call: ibv_wr_post(3).
            unsafe {
                let part = &*list.add(part);
                copied.add(part.addr, part.length)?;
            }
        }
        built.inline = Some(copied.as_slice().to_vec());
        Ok(())
    });
}
