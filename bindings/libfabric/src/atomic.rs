//! The calls for atomic operations on a peer's memory.

use crate::abi::{AtomicAttr, Context, Desc, Descs, Ioc, MsgAtomic, calls, error, flag};
use crate::domain::Domain;
use crate::ep::{ActiveEndpoint, State};
use crate::errno::{Result, call};
use crate::pointer::{Array, Buffer, gather};
use crate::rma::Access;
use bellwire_tagged::{AtomicOp, AtomicRequest, Datatype, OPERAND_BYTES, Operands, Spans};
use std::ffi::c_int;
use std::ptr::null_mut;

/// The three kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Fetch,
    Compare,
}

/// The datatype and operation. `EOPNOTSUPP`: this kind of call does not offer them.
fn known(datatype: c_int, op: c_int, call: Call) -> Result<(Datatype, AtomicOp)> {
    find(datatype, op, call).ok_or(error::EOPNOTSUPP)
}

fn find(datatype: c_int, op: c_int, call: Call) -> Option<(Datatype, AtomicOp)> {
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
enum Numbers {
    None,
    One(Buffer, usize),
    Several(Array<Ioc>, usize),
}

impl Numbers {
    /// The buffers as bytes, of numbers of `size` bytes. `EINVAL`: too many buffers, or one that
    /// cannot be memory.
    fn spans(self, size: usize) -> Result<Spans> {
        let span = |part: &Ioc| part.addr.span(part.count.checked_mul(size).ok_or(error::EINVAL)?);
        match self {
            Numbers::None => Ok(Buffer::NULL.span(0)?.into()),
            Numbers::One(addr, count) => Ok(span(&Ioc { addr, count })?.into()),
            Numbers::Several(parts, count) => gather(parts, count, span),
        }
    }
}

impl State {
    fn change(
        &mut self,
        call: Call,
        (datatype, op): (c_int, c_int),
        [operands, compared, results]: [Numbers; 3],
        access: Access,
    ) -> Result {
        let (datatype, op) = known(datatype, op, call)?;
        let size = datatype.size();
        // A read needs no operands, whatever the program passes.
        let operands = if op == AtomicOp::Read { Numbers::None } else { operands };
        let (operands, compared) = (operands.spans(size)?, compared.spans(size)?);
        let results = results.spans(size)?;
        let fetch = call != Call::Write;
        let length = if fetch { results.len() } else { operands.len() };
        let kind = if fetch { flag::READ } else { flag::WRITE };
        let (place, token) = self.admit(access, flag::ATOMIC | kind)?;
        let request = AtomicRequest { op, datatype, count: length / size, fetch };
        let with = Operands { operands: &operands, compared: &compared };
        let was = fetch.then_some(&results);
        let changed = self.endpoint.atomic(place, request, with, was, token);
        changed.map_err(|refusal| self.refused(refusal))
    }
}

/// A call with a target; `flags`: `None` for the usual ones.
fn change(
    ep: &ActiveEndpoint,
    call: Call,
    kind: (c_int, c_int),
    numbers: [Numbers; 3],
    (to, offset, key): (u64, u64, u64),
    context: Context,
    flags: Option<u64>,
) -> Result {
    let mut state = ep.lock();
    let flags = flags.unwrap_or_else(|| state.usual());
    state.change(call, kind, numbers, Access { to, offset, key, context, flags })
}

/// A call with a message structure.
fn message(
    ep: &ActiveEndpoint,
    call: Call,
    message: Option<&MsgAtomic>,
    compared: Numbers,
    results: Numbers,
    flags: u64,
) -> Result {
    let message = message.ok_or(error::EINVAL)?;
    if message.rma_iov_count != 1 {
        return Err(error::EINVAL);
    }
    let there = &message.rma_iov.elements(1)?[0];
    let numbers = [Numbers::Several(message.iov, message.iov_count), compared, results];
    let mut state = ep.lock();
    let flags = state.with(flags);
    let (to, context) = (message.addr, message.context);
    let access = Access { to, offset: there.addr, key: there.key, context, flags };
    state.change(call, (message.datatype, message.op), numbers, access)
}

/// Writes how many numbers one call may have; without a place it only checks.
fn valid(datatype: c_int, op: c_int, call: Call, count: Option<&mut usize>) -> Result {
    let (datatype, _) = known(datatype, op, call)?;
    if let Some(count) = count {
        *count = OPERAND_BYTES / datatype.size();
    }
    Ok(())
}

calls! {
    ep: &ActiveEndpoint;

    /// fi_atomic(3): atomics, fetching atomics and compare-atomics.
    pub static ATOMIC;

    fn write(
        operand: Buffer, count: usize, _desc: Desc,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let numbers = [Numbers::One(operand, count), Numbers::None, Numbers::None];
        change(ep, Call::Write, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn writev(
        operands: Array<Ioc>, _desc: Descs, count: usize,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let numbers = [Numbers::Several(operands, count), Numbers::None, Numbers::None];
        change(ep, Call::Write, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn writemsg(msg: Option<&MsgAtomic>, flags: u64) -> isize {
        message(ep, Call::Write, msg, Numbers::None, Numbers::None, flags)
    }

    fn inject(
        operand: Buffer, count: usize, to: u64, offset: u64, key: u64, datatype: c_int, op: c_int
    ) -> isize {
        let numbers = [Numbers::One(operand, count), Numbers::None, Numbers::None];
        let (target, flags) = ((to, offset, key), Some(flag::INJECT));
        change(ep, Call::Write, (datatype, op), numbers, target, null_mut(), flags)
    }

    fn readwrite(
        operand: Buffer, count: usize, _desc: Desc, result: Buffer, _result_desc: Desc,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let numbers = [Numbers::One(operand, count), Numbers::None, Numbers::One(result, count)];
        change(ep, Call::Fetch, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn readwritev(
        operands: Array<Ioc>, _desc: Descs, count: usize,
        results: Array<Ioc>, _result_desc: Descs, result_count: usize,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let results = Numbers::Several(results, result_count);
        let numbers = [Numbers::Several(operands, count), Numbers::None, results];
        change(ep, Call::Fetch, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn readwritemsg(
        msg: Option<&MsgAtomic>, results: Array<Ioc>, _desc: Descs, count: usize, flags: u64
    ) -> isize {
        message(ep, Call::Fetch, msg, Numbers::None, Numbers::Several(results, count), flags)
    }

    fn compwrite(
        operand: Buffer, count: usize, _desc: Desc,
        compared: Buffer, _compared_desc: Desc, result: Buffer, _result_desc: Desc,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let numbers = [operand, compared, result].map(|buffer| Numbers::One(buffer, count));
        change(ep, Call::Compare, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn compwritev(
        operands: Array<Ioc>, _desc: Descs, count: usize,
        compared: Array<Ioc>, _compared_desc: Descs, compared_count: usize,
        results: Array<Ioc>, _result_desc: Descs, result_count: usize,
        to: u64, offset: u64, key: u64, datatype: c_int, op: c_int, context: Context
    ) -> isize {
        let numbers = [(operands, count), (compared, compared_count), (results, result_count)]
            .map(|(parts, count)| Numbers::Several(parts, count));
        change(ep, Call::Compare, (datatype, op), numbers, (to, offset, key), context, None)
    }

    fn compwritemsg(
        msg: Option<&MsgAtomic>,
        compared: Array<Ioc>, _compared_desc: Descs, compared_count: usize,
        results: Array<Ioc>, _result_desc: Descs, result_count: usize, flags: u64
    ) -> isize {
        let compared = Numbers::Several(compared, compared_count);
        let results = Numbers::Several(results, result_count);
        message(ep, Call::Compare, msg, compared, results, flags)
    }

    fn writevalid(datatype: c_int, op: c_int, count: Option<&mut usize>) -> c_int {
        valid(datatype, op, Call::Write, count)
    }

    fn readwritevalid(datatype: c_int, op: c_int, count: Option<&mut usize>) -> c_int {
        valid(datatype, op, Call::Fetch, count)
    }

    fn compwritevalid(datatype: c_int, op: c_int, count: Option<&mut usize>) -> c_int {
        valid(datatype, op, Call::Compare, count)
    }
}

/// `fi_query_atomic`.
pub extern "C" fn query(
    _domain: &Domain,
    datatype: c_int,
    op: c_int,
    attr: Option<&mut AtomicAttr>,
    flags: u64,
) -> c_int {
    call(|| {
        let attr = attr.ok_or(error::EINVAL)?;
        let call = match flags {
            0 => Call::Write,
            flag::FETCH_ATOMIC => Call::Fetch,
            flag::COMPARE_ATOMIC => Call::Compare,
            _ => return Err(error::EOPNOTSUPP),
        };
        let (datatype, _) = known(datatype, op, call)?;
        (attr.size, attr.count) = (datatype.size(), OPERAND_BYTES / datatype.size());
        Ok(())
    })
}
