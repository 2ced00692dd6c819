//! The calls for atomic operations on a peer's memory.

use crate::abi::{AtomicAttr, Ioc, MsgAtomic, Ops, error, flag, ops};
use crate::domain::Domain;
use crate::ep::{Ep, State};
use crate::info::IOV_LIMIT;
use crate::object::{given, is_memory};
use crate::rma::Access;
use bellwire_tagged::{AtomicOp, AtomicRequest, Datatype, OPERAND_BYTES, Operands, Span, Spans};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

/// Atomics, fetching atomics and compare-atomics.
pub static ATOMIC: Ops<13> = ops![
    write,
    write_parts,
    write_message,
    inject,
    fetch,
    fetch_parts,
    fetch_message,
    compare,
    compare_parts,
    compare_message,
    write_valid,
    fetch_valid,
    compare_valid,
];

/// The three kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Fetch,
    Compare,
}

/// The datatype and operation; `None`: this kind of call does not offer them.
fn known(datatype: c_int, op: c_int, call: Call) -> Option<(Datatype, AtomicOp)> {
    let datatype = Datatype::from_number(u8::try_from(datatype).ok()?)?;
    let op = AtomicOp::from_number(u8::try_from(op).ok()?)?;
    let offered = match call {
        Call::Write => !op.compares() && op != AtomicOp::Read,
        Call::Fetch => !op.compares(),
        Call::Compare => op.compares(),
    };
    (offered && op.is_defined_for(datatype)).then_some((datatype, op))
}

/// The program's buffers of numbers.
#[derive(Clone, Copy)]
struct Numbers {
    parts: *const Ioc,
    count: usize,
}

impl Numbers {
    const NONE: Numbers = Numbers { parts: null(), count: 0 };

    /// The buffers as bytes. `None`: too many buffers, or one that cannot be memory.
    ///
    /// # Safety
    /// There are `count` entries, and their memory stays the program's until the access has ended.
    unsafe fn spans(self, size: usize) -> Option<Spans> {
        if self.count > IOV_LIMIT || self.count > 0 && self.parts.is_null() {
            return None;
        }
        let span = |at: usize| {
            // SAFETY: the caller's promise.
            unsafe {
                let part = &*self.parts.add(at);
                let bytes = part.count.checked_mul(size)?;
                is_memory(part.addr, bytes).then(|| Span::new(part.addr.cast(), bytes))
            }
        };
        Some(match self.count {
            0 => {
                // SAFETY: no bytes at all.
                unsafe { Span::new(null(), 0) }.into()
            }
            1 => span(0)?.into(),
            count => Spans::of(&(0..count).map(span).collect::<Option<Vec<_>>>()?),
        })
    }
}

/// One atomic operation.
struct Asked {
    call: Call,
    datatype: c_int,
    op: c_int,
    operands: Numbers,
    compared: Numbers,
    results: Numbers,
    access: Access,
}

impl State {
    /// # Safety
    /// Operands stay the program's until this returns, results until the access has ended.
    unsafe fn change(&mut self, asked: Asked) -> isize {
        let Asked { call, datatype, op, operands, compared, results, access } = asked;
        let Some((datatype, op)) = known(datatype, op, call) else {
            return -(error::EOPNOTSUPP as isize);
        };
        let size = datatype.size();
        // A read needs no operands, whatever the program passes.
        let operands = if op == AtomicOp::Read { Numbers::NONE } else { operands };
        // SAFETY: the caller's promise.
        let stretches =
            unsafe { (operands.spans(size), compared.spans(size), results.spans(size)) };
        let (Some(operands), Some(compared), Some(results)) = stretches else {
            return -(error::EINVAL as isize);
        };
        let fetch = call != Call::Write;
        let length = if fetch { results.len() } else { operands.len() };
        let kind = if fetch { flag::READ } else { flag::WRITE };
        let (place, token) = match self.admit(access, flag::ATOMIC | kind) {
            Ok(admitted) => admitted,
            Err(error) => return error,
        };
        let request = AtomicRequest { op, datatype, count: length / size, fetch };
        let with = Operands { operands: &operands, compared: &compared };
        let was = fetch.then_some(&results);
        match self.endpoint.atomic(place, request, with, was, token) {
            Ok(()) => 0,
            Err(refusal) => self.refused(refusal),
        }
    }
}

/// A call with one buffer of each kind.
#[allow(clippy::too_many_arguments)]
#[inline]
unsafe fn one(
    ep: *mut Ep,
    call: Call,
    (operand, compared, result): (*const c_void, *const c_void, *mut c_void),
    count: usize,
    (to, offset, key): (u64, u64, u64),
    (datatype, op): (c_int, c_int),
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    let [operand, compared, result] =
        [operand, compared, result.cast_const()].map(|at| Ioc { addr: at.cast_mut(), count });
    let [operands, compared, results] =
        [(&operand, true), (&compared, call == Call::Compare), (&result, call != Call::Write)]
            .map(|(parts, given)| if given { Numbers { parts, count: 1 } } else { Numbers::NONE });
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let flags = flags.unwrap_or_else(|| state.usual());
        let access = Access { to, offset, key, context, flags };
        state.change(Asked { call, datatype, op, operands, compared, results, access })
    }
}

/// A call with several buffers of each kind.
unsafe fn parts(
    ep: *mut Ep,
    call: Call,
    [operands, compared, results]: [Numbers; 3],
    (to, offset, key): (u64, u64, u64),
    (datatype, op): (c_int, c_int),
    context: *mut c_void,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut state = (*ep).hold();
        let flags = state.usual();
        let access = Access { to, offset, key, context, flags };
        state.change(Asked { call, datatype, op, operands, compared, results, access })
    }
}

/// A call with a message structure.
unsafe fn message(
    ep: *mut Ep,
    call: Call,
    message: *const MsgAtomic,
    compared: Numbers,
    results: Numbers,
    flags: u64,
) -> isize {
    given!(message);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let message = &*message;
        if message.rma_iov_count != 1 || message.rma_iov.is_null() {
            return -(error::EINVAL as isize);
        }
        let mut state = (*ep).hold();
        let there = &*message.rma_iov;
        let operands = Numbers { parts: message.iov, count: message.iov_count };
        let access = Access {
            to: message.addr,
            offset: there.addr,
            key: there.key,
            context: message.context,
            flags: state.with(flags),
        };
        let (datatype, op) = (message.datatype, message.op);
        state.change(Asked { call, datatype, op, operands, compared, results, access })
    }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn write(
    ep: *mut Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let given = (operand, null(), null_mut());
    let place = (to, offset, key);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, Call::Write, given, count, place, (datatype, op), context, None) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn write_parts(
    ep: *mut Ep,
    operands: *const Ioc,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let given = [Numbers { parts: operands, count }, Numbers::NONE, Numbers::NONE];
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { parts(ep, Call::Write, given, (to, offset, key), (datatype, op), context) }
}

unsafe extern "C" fn write_message(ep: *mut Ep, what: *const MsgAtomic, flags: u64) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { message(ep, Call::Write, what, Numbers::NONE, Numbers::NONE, flags) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn inject(
    ep: *mut Ep,
    operand: *const c_void,
    count: usize,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
) -> isize {
    let given = (operand, null(), null_mut());
    let (place, flags) = ((to, offset, key), Some(flag::INJECT));
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, Call::Write, given, count, place, (datatype, op), null_mut(), flags) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn fetch(
    ep: *mut Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let (given, place) = ((operand, null(), result), (to, offset, key));
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, Call::Fetch, given, count, place, (datatype, op), context, None) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn fetch_parts(
    ep: *mut Ep,
    operands: *const Ioc,
    _desc: *mut *mut c_void,
    count: usize,
    results: *const Ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let results = Numbers { parts: results, count: result_count };
    let given = [Numbers { parts: operands, count }, Numbers::NONE, results];
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { parts(ep, Call::Fetch, given, (to, offset, key), (datatype, op), context) }
}

unsafe extern "C" fn fetch_message(
    ep: *mut Ep,
    what: *const MsgAtomic,
    results: *const Ioc,
    _result_desc: *mut *mut c_void,
    count: usize,
    flags: u64,
) -> isize {
    let results = Numbers { parts: results, count };
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { message(ep, Call::Fetch, what, Numbers::NONE, results, flags) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn compare(
    ep: *mut Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    compared: *const c_void,
    _compared_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let (given, place) = ((operand, compared, result), (to, offset, key));
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { one(ep, Call::Compare, given, count, place, (datatype, op), context, None) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn compare_parts(
    ep: *mut Ep,
    operands: *const Ioc,
    _desc: *mut *mut c_void,
    count: usize,
    compared: *const Ioc,
    _compared_desc: *mut *mut c_void,
    compared_count: usize,
    results: *const Ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    to: u64,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let given = [(operands, count), (compared, compared_count), (results, result_count)]
        .map(|(parts, count)| Numbers { parts, count });
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { parts(ep, Call::Compare, given, (to, offset, key), (datatype, op), context) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn compare_message(
    ep: *mut Ep,
    what: *const MsgAtomic,
    compared: *const Ioc,
    _compared_desc: *mut *mut c_void,
    compared_count: usize,
    results: *const Ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let compared = Numbers { parts: compared, count: compared_count };
    let results = Numbers { parts: results, count: result_count };
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { message(ep, Call::Compare, what, compared, results, flags) }
}

/// Writes how many numbers one call may have.
unsafe fn valid(datatype: c_int, op: c_int, call: Call, count: *mut usize) -> c_int {
    match known(datatype, op, call) {
        Some((number, _)) => {
            // SAFETY: the interface's contract for pointers, see `lib.rs`.
            if let Some(count) = unsafe { count.as_mut() } {
                *count = OPERAND_BYTES / number.size();
            }
            0
        }
        None => -error::EOPNOTSUPP,
    }
}

unsafe extern "C" fn write_valid(
    _ep: *mut Ep,
    datatype: c_int,
    op: c_int,
    count: *mut usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { valid(datatype, op, Call::Write, count) }
}

unsafe extern "C" fn fetch_valid(
    _ep: *mut Ep,
    datatype: c_int,
    op: c_int,
    count: *mut usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { valid(datatype, op, Call::Fetch, count) }
}

unsafe extern "C" fn compare_valid(
    _ep: *mut Ep,
    datatype: c_int,
    op: c_int,
    count: *mut usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { valid(datatype, op, Call::Compare, count) }
}

/// `fi_query_atomic`.
pub unsafe extern "C" fn query(
    _domain: *mut Domain,
    datatype: c_int,
    op: c_int,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    given!(attr);
    let call = match flags {
        0 => Call::Write,
        flag::FETCH_ATOMIC => Call::Fetch,
        flag::COMPARE_ATOMIC => Call::Compare,
        _ => return -error::EOPNOTSUPP,
    };
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        if let Some((number, _)) = known(datatype, op, call) {
            (*attr).size = number.size();
        }
        valid(datatype, op, call, &raw mut (*attr).count)
    }
}
