//! Poll sets: they tell which of several queues and counters have news.

use crate::abi::{Fid, FidPoll, Ops, PollAttr, class, error, not_offered, ops};
use crate::cntr::Cntr;
use crate::cq::Cq;
use crate::domain::Domain;
use crate::eq::Eq;
use crate::object::{CLOSED_POLL, given, object, object_of, retire};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poll set.
#[repr(C)]
pub struct PollSet {
    fid: FidPoll,
    domain: *mut Domain,
    members: Mutex<Vec<Member>>,
}

object!(PollSet, FidPoll, FID, CLOSED_POLL);

struct Member {
    fid: *mut Fid,
    /// The counter's value at its last report.
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
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
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
    /// Whether a member has news; makes progress.
    ///
    /// # Safety
    /// The member is open.
    unsafe fn is_ready(&mut self) -> bool {
        // SAFETY: the caller's promise; only these classes become members.
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
    // SAFETY: made by `open`, and open, and so are its domain and members.
    unsafe {
        for member in (*set).members().iter() {
            if let Some(users) = users_of(member.fid) {
                users.fetch_sub(1, Ordering::Relaxed);
            }
        }
        (*(*set).domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(set);
    }
    0
}

/// Writes the contexts of members with news; returns their number.
unsafe extern "C" fn poll(set: *mut PollSet, contexts: *mut *mut c_void, count: c_int) -> c_int {
    if count < 0 || count > 0 && contexts.is_null() {
        return -error::EINVAL;
    }
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
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(users) = users_of(fid) else { return -error::EINVAL };
        let mut members = (*set).members();
        if members.iter().all(|member| member.fid != fid) {
            users.fetch_add(1, Ordering::Relaxed);
            members.push(Member { fid, counted: 0 });
        }
    }
    0
}

unsafe extern "C" fn remove(set: *mut PollSet, fid: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    let mut members = unsafe { (*set).members() };
    let before = members.len();
    members.retain(|member| member.fid != fid);
    if members.len() == before {
        return -error::EINVAL;
    }
    // SAFETY: it is a member, and therefore open.
    if let Some(users) = unsafe { users_of(fid) } {
        users.fetch_sub(1, Ordering::Relaxed);
    }
    0
}

/// The user count of an object that can be a member. `None`: it cannot.
///
/// # Safety
/// As for [`object_of`].
unsafe fn users_of<'a>(fid: *mut Fid) -> Option<&'a AtomicUsize> {
    // SAFETY: the caller's promise.
    unsafe {
        let cq = object_of::<Cq>(fid).map(|cq| &cq.users);
        let eq = || object_of::<Eq>(fid).map(|eq| &eq.users);
        let cntr = || object_of::<Cntr>(fid).map(|cntr| &cntr.users);
        cq.or_else(eq).or_else(cntr)
    }
}
