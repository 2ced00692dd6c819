//! The calls of completion queues.

use crate::abi::{CqCallback, Return};
use crate::callback::Call;
use crate::cq::{Cq, NOTIFICATIONS};
use crate::handle::{Handle, Kind, nic_of};
use crate::nic::{State, call_on, on_nic};
use crate::pointer::{Out, call};
use crate::wait::{timeout_of, wait_on_nic};
use std::ffi::{c_int, c_ulong, c_void};

impl State {
    /// The completion queue that `pointer` names, and its slot.
    fn cq(&mut self, pointer: *mut c_void) -> Result<(u16, &mut Cq), Return> {
        let handle = cq_of(pointer).ok_or(Return::InvalidParameter)?;
        Ok((handle.slot, self.cqs.find(handle).ok_or(Return::InvalidParameter)?))
    }

    /// The slot of the completion queue that `pointer` names; `None` for null.
    pub fn cq_slot_of(&mut self, pointer: *mut c_void) -> Result<Option<u16>, Return> {
        if pointer.is_null() { Ok(None) } else { Ok(Some(self.cq(pointer)?.0)) }
    }

    /// Notes that a work queue has finished a descriptor.
    pub fn note(&mut self, cq: u16, vi: Handle, receives: bool) {
        let nic = self.handle;
        let Some(queue) = self.cqs.at(cq) else { return };
        match queue.handlers.pop_front() {
            Some((handler, context)) => {
                self.due(Call::Cq { handler, context, nic, vi, receives });
            }
            None => queue.entries.push_back((vi, receives)),
        }
    }

    fn pop(&mut self, cq: *mut c_void) -> Result<Option<(Handle, bool)>, Return> {
        Ok(self.cq(cq)?.1.entries.pop_front())
    }
}

fn cq_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Cq)
}

/// Makes a completion queue.
///
/// # Safety
/// `cq` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateCQ(
    nic: *mut c_void,
    size: c_ulong,
    cq: Out<'_, *mut c_void>,
) -> Return {
    call(|| {
        cq.check()?;
        if size == 0 {
            return Err(Return::InvalidParameter);
        }
        let handle = on_nic(nic_of(nic), |state| {
            let new = state.cqs.insert(Cq { size, ..Cq::default() });
            let (slot, generation) = new.map_err(|_| Return::ErrorResource)?;
            Ok(Handle { kind: Kind::Cq, nic: state.handle.nic, slot, generation })
        })?;
        cq.write(handle.to_pointer())
    })
}

/// Destroys a completion queue that no VI uses any more.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyCQ(cq: *mut c_void) -> Return {
    call_on(cq_of(cq), |state| {
        let (slot, queue) = state.cq(cq)?;
        if queue.users > 0 {
            return Err(Return::ErrorResource);
        }
        state.cqs.remove(slot);
        Ok(())
    })
}

/// Changes how many entries the program will need.
#[unsafe(no_mangle)]
pub extern "C" fn VipResizeCQ(cq: *mut c_void, size: c_ulong) -> Return {
    call_on(cq_of(cq), |state| {
        let (_, queue) = state.cq(cq)?;
        match size {
            0 => Err(Return::InvalidParameter),
            size if (size as usize) < queue.entries.len() => Err(Return::ErrorResource),
            size => {
                queue.size = size;
                Ok(())
            }
        }
    })
}

/// The oldest entry, if there is one.
///
/// # Safety
/// `vi` and `receive_queue` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQDone(
    cq: *mut c_void,
    vi: Out<'_, *mut c_void>,
    receive_queue: Out<'_, c_int>,
) -> Return {
    call(|| {
        vi.check()?;
        receive_queue.check()?;
        let (handle, receives) = on_nic(cq_of(cq), |state| {
            if let Some(entry) = state.pop(cq)? {
                return Ok(entry);
            }
            state.drain();
            state.pop(cq)?.ok_or(Return::NotDone)
        })?;
        vi.write(handle.to_pointer())?;
        receive_queue.write(receives.into())
    })
}

/// Waits for the oldest entry.
///
/// # Safety
/// As [`VipCQDone`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQWait(
    cq: *mut c_void,
    timeout_ms: c_ulong,
    vi: Out<'_, *mut c_void>,
    receive_queue: Out<'_, c_int>,
) -> Return {
    call(|| {
        vi.check()?;
        receive_queue.check()?;
        let timeout = timeout_of(timeout_ms);
        let (handle, receives) = wait_on_nic(cq_of(cq), timeout, |state| state.pop(cq))?;
        vi.write(handle.to_pointer())?;
        receive_queue.write(receives.into())
    })
}

/// Has `handler` called with the next entry, once.
#[unsafe(no_mangle)]
pub extern "C" fn VipCQNotify(
    cq: *mut c_void,
    context: *mut c_void,
    handler: Option<CqCallback>,
) -> Return {
    call(|| {
        let handler = handler.ok_or(Return::InvalidParameter)?;
        on_nic(cq_of(cq), |state| {
            let nic = state.handle;
            let (_, queue) = state.cq(cq)?;
            if let Some((vi, receives)) = queue.entries.pop_front() {
                state.due(Call::Cq { handler, context, nic, vi, receives });
                return Ok(());
            }
            if queue.handlers.len() == NOTIFICATIONS {
                return Err(Return::ErrorResource);
            }
            queue.handlers.push_back((handler, context));
            Ok(())
        })
    })
}
