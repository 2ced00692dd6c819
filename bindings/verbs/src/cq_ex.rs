//! Extended completion queues: completions are read one by one, field by field.

use crate::abi::{self, CqEx, CqInitAttrEx};
use crate::cq::{self, Cq};
use crate::errno;
use crate::post::{service_level, wc_flags};
use bellwire_rdma::Refusal;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The fields that can be read: length, immediate value, both numbers, slid, sl, path bits, and the
/// clock.
const OFFERED: u64 = 0x7f | 1 << 7 | 1 << 11;

/// The table of an extended queue.
pub fn table(cq: abi::Cq) -> CqEx {
    CqEx {
        cq,
        comp_mask: 0,
        status: Cell::new(0),
        wr_id: Cell::new(0),
        start_poll,
        next_poll,
        end_poll,
        read_opcode,
        read_vendor_err,
        read_byte_len,
        read_imm_data,
        read_qp_num,
        read_src_qp,
        read_wc_flags,
        read_slid,
        read_sl,
        read_dlid_path_bits,
        read_completion_ts,
        read_cvlan,
        read_flow_tag,
        read_tm_info: nothing,
        read_completion_wallclock_ns,
    }
}

/// Calls that read a field of the current completion.
macro_rules! readers {
    ($($name:ident: $type:ty = |$done:ident| $value:expr;)*) => {$(
        extern "C" fn $name(cq: &Cq) -> $type {
            cq.current.get().map(|$done| $value).unwrap_or_default()
        }
    )*};
}

readers! {
    read_opcode: u32 = |done| done.opcode as u32;
    read_vendor_err: u32 = |done| done.cause as u32;
    read_byte_len: u32 = |done| done.length;
    read_imm_data: u32 = |done| done.word;
    read_qp_num: u32 = |done| done.queue_pair;
    read_src_qp: u32 = |done| done.source;
    read_wc_flags: u32 = |done| wc_flags(&done);
    read_slid: u32 = |_done| 0;
    read_sl: u8 = |done| service_level(&done);
    read_dlid_path_bits: u8 = |_done| 0;
    read_completion_ts: u64 = |_done| nanoseconds(libc::CLOCK_MONOTONIC);
    read_cvlan: u16 = |_done| 0;
    read_flow_tag: u32 = |_done| 0;
    read_completion_wallclock_ns: u64 = |_done| nanoseconds(libc::CLOCK_REALTIME);
}

extern "C" fn nothing(_: &Cq, _: *mut c_void) {}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes `now`.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Takes the next completion. `ENOENT`: there is none.
fn take(cq: &Cq, looks: bool) -> c_int {
    let done = loop {
        let mut adapter = cq.context().lock();
        let done = match looks {
            true => adapter.poll(cq.id.get()),
            false => adapter.next(cq.id.get()),
        };
        drop(adapter);
        if !cq.polled(done.is_some()) {
            break done;
        }
    };
    cq.current.set(done);
    let Some(done) = done else { return libc::ENOENT };
    cq.abi.status.set(done.status as u32);
    cq.abi.wr_id.set(done.id);
    0
}

extern "C" fn start_poll(cq: &Cq, _: *const c_void) -> c_int {
    take(cq, true)
}

extern "C" fn next_poll(cq: &Cq) -> c_int {
    take(cq, false)
}

extern "C" fn end_poll(cq: &Cq) {
    cq.current.set(None);
}

pub extern "C" fn create(context: &abi::Context, attr: &CqInitAttrEx) -> *mut Cq {
    let known = attr.wc_flags & !OFFERED == 0 && attr.comp_mask & !3 == 0 && attr.flags & !3 == 0;
    let made = match known {
        true => {
            let depth = attr.cqe.try_into().unwrap_or(-1);
            cq::create(context, depth, attr.cq_context, attr.channel, attr.comp_vector)
        }
        false => Err(Refusal::Unsupported("a field of the completions that is not offered")),
    };
    made.unwrap_or_else(|refusal| {
        crate::log::refused("ibv_create_cq_ex", &refusal);
        errno::set(errno::of(&refusal));
        null_mut()
    })
}
