//! Poll sets: which of several queues and counters have something to tell.

use crate::abi::{Fid, FidPoll, Ops, PollAttr, class, error, not_offered, ops};
use crate::cntr::Cntr;
use crate::cq::Cq;
use crate::domain::Domain;
use crate::eq::Eq;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poll set.
#[repr(C)]
pub struct PollSet {
    fid: FidPoll,
    domain: *mut Domain,
    members: Mutex<Vec<Member>>,
}

struct Member {
    fid: *mut Fid,
    /// What a counter had counted when it was reported last.
    counted: u64,
}

static FID: Ops<6> = ops![close, not_offered, not_offered, not_offered, not_offered, not_offered];
static POLL: Ops<3> = ops![poll, add, remove];

/// `fi_poll_open`.
pub unsafe extern "C" fn open(
    domain: *mut Domain,
    attr: *const PollAttr,
    into: *mut *mut PollSet,
) -> c_int {
    // SAFETY: the interface's pointers.
    unsafe {
        if attr.as_ref().is_some_and(|attr| attr.flags != 0) {
            return -error::EBADFLAGS;
        }
        let fid = Fid { class: class::POLL, context: std::ptr::null_mut(), ops: &FID };
        let fid = FidPoll { fid, ops: &POLL };
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        into.write(Box::into_raw(Box::new(PollSet { fid, domain, members: Mutex::default() })));
    }
    0
}

impl PollSet {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// Whether it has something to tell; makes progress.
    ///
    /// # Safety
    /// It is open.
    unsafe fn is_ready(&mut self) -> bool {
        // SAFETY: the caller's; only these classes come in.
        unsafe {
            match (*self.fid).class {
                class::CQ => (*self.fid.cast::<Cq>()).is_ready(),
                class::EQ => (*self.fid.cast::<Eq>()).is_ready(),
                _ => {
                    let counted = (*self.fid.cast::<Cntr>()).total();
                    std::mem::replace(&mut self.counted, counted) != counted
                }
            }
        }
    }
}

unsafe extern "C" fn close(set: *mut PollSet) -> c_int {
    // SAFETY: made by `open`, and closed once, before its domain.
    unsafe {
        (*(*set).domain).users.fetch_sub(1, Ordering::Relaxed);
        drop(Box::from_raw(set));
    }
    0
}

/// Writes the contexts of those that have something to tell; returns how many.
unsafe extern "C" fn poll(set: *mut PollSet, contexts: *mut *mut c_void, count: c_int) -> c_int {
    // SAFETY: the interface's pointers; queues leave before they are closed.
    unsafe {
        let mut found = 0;
        for member in (*set).members().iter_mut() {
            if found == count {
                break;
            }
            if member.is_ready() {
                contexts.add(found as usize).write((*member.fid).context);
                found += 1;
            }
        }
        found
    }
}

unsafe extern "C" fn add(set: *mut PollSet, fid: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's pointers.
    unsafe {
        if ![class::CQ, class::EQ, class::CNTR].contains(&(*fid).class) {
            return -error::EINVAL;
        }
        let mut members = (*set).members();
        if members.iter().all(|member| member.fid != fid) {
            members.push(Member { fid, counted: 0 });
        }
    }
    0
}

unsafe extern "C" fn remove(set: *mut PollSet, fid: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's pointers.
    let mut members = unsafe { (*set).members() };
    let before = members.len();
    members.retain(|member| member.fid != fid);
    if members.len() == before { -error::EINVAL } else { 0 }
}
