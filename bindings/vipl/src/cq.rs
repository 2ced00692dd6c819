//! Completion queues: they tell which work queue has finished a descriptor.

use crate::abi::{CqCallback, Return};
use crate::callback::Call;
use crate::handle::{Handle, Kind, nic_of};
use crate::nic::{State, on_nic};
use crate::pointer::{Out, call};
use crate::wait::{timeout_of, wait_on_nic};
use std::collections::VecDeque;
use std::ffi::{c_int, c_ulong, c_void};

/// Most handlers that wait for one queue.
pub const NOTIFICATIONS: usize = 1024;

/// A completion queue. It holds an entry for every descriptor that is finished and not fetched, so
/// it cannot overflow. The program's size is only the size that it asked for.
pub struct Cq {
    /// The VI, and whether the entry is of its receive queue.
    entries: VecDeque<(Handle, bool)>,
    size: c_ulong,
    /// Work queues that complete here.
    pub users: u32,
    handlers: VecDeque<(CqCallback, *mut c_void)>,
}

// SAFETY: the contexts are handed back, never dereferenced.
unsafe impl Send for Cq {}

impl State {
    /// The completion queue that `pointer` names; `None` for null.
    pub fn cq_slot_of(&mut self, pointer: *mut c_void) -> Result<Option<u16>, Return> {
        if pointer.is_null() {
            return Ok(None);
        }
        let handle = self.own(Handle::of(pointer, Kind::Cq))?;
        self.cqs.find(handle).ok_or(Return::InvalidParameter)?;
        Ok(Some(handle.slot))
    }

    /// Checks that a handle is of this NIC.
    pub fn own(&self, handle: Option<Handle>) -> Result<Handle, Return> {
        handle.filter(|handle| handle.nic == self.handle.nic).ok_or(Return::InvalidParameter)
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

    /// Drops the entries of a destroyed VI, or one entry of a descriptor that was fetched without
    /// its entry.
    pub fn forget_notes(&mut self, cq: Option<u16>, vi: Handle, receives: Option<bool>) {
        let Some(queue) = cq.and_then(|cq| self.cqs.at(cq)) else { return };
        match receives {
            None => queue.entries.retain(|entry| entry.0 != vi),
            Some(receives) => {
                if let Some(place) = queue.entries.iter().position(|&entry| entry == (vi, receives))
                {
                    queue.entries.remove(place);
                }
            }
        }
    }

    fn pop(&mut self, cq: Handle) -> Result<Option<(Handle, bool)>, Return> {
        Ok(self.cqs.find(cq).ok_or(Return::InvalidParameter)?.entries.pop_front())
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
            let new = Cq { entries: VecDeque::new(), size, users: 0, handlers: VecDeque::new() };
            let (slot, generation) = state.cqs.insert(new).map_err(|_| Return::ErrorResource)?;
            Ok(Handle { kind: Kind::Cq, nic: state.handle.nic, slot, generation })
        })?;
        cq.write(handle.to_pointer())
    })
}

/// Destroys a completion queue that no VI uses any more.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyCQ(cq: *mut c_void) -> Return {
    call(|| {
        on_nic(cq_of(cq), |state| {
            let handle = state.own(cq_of(cq))?;
            let queue = state.cqs.find(handle).ok_or(Return::InvalidParameter)?;
            if queue.users > 0 {
                return Err(Return::ErrorResource);
            }
            state.cqs.remove(handle.slot);
            Ok(())
        })
    })
}

/// Changes how many entries the program will need.
#[unsafe(no_mangle)]
pub extern "C" fn VipResizeCQ(cq: *mut c_void, size: c_ulong) -> Return {
    call(|| {
        on_nic(cq_of(cq), |state| {
            let handle = state.own(cq_of(cq))?;
            let queue = state.cqs.find(handle).ok_or(Return::InvalidParameter)?;
            match size {
                0 => Err(Return::InvalidParameter),
                size if (size as usize) < queue.entries.len() => Err(Return::ErrorResource),
                size => {
                    queue.size = size;
                    Ok(())
                }
            }
        })
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
            let handle = state.own(cq_of(cq))?;
            if let Some(entry) = state.pop(handle)? {
                return Ok(entry);
            }
            state.drain();
            state.pop(handle)?.ok_or(Return::NotDone)
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
        let handle = cq_of(cq);
        let (handle, receives) = wait_on_nic(handle, timeout_of(timeout_ms), |state| {
            let handle = state.own(handle)?;
            state.pop(handle)
        })?;
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
            let handle = state.own(cq_of(cq))?;
            let nic = state.handle;
            let queue = state.cqs.find(handle).ok_or(Return::InvalidParameter)?;
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
