//! Poll sets: they tell which of several queues and counters have news.

use crate::abi::{Fid, FidPoll, Ops, PollAttr, calls, class, error, ops};
use crate::domain::Domain;
use crate::errno::Result;
use crate::object::{self, CLOSED_POLL, Close, Handle, Opened, close, object};
use crate::pointer::{Array, Out};
use crate::reference::{Ref, Use};
use crate::wait::Waitable;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poll set.
#[repr(C)]
pub struct PollSet {
    fid: FidPoll,
    _domain: Ref<Domain>,
    members: Mutex<Vec<Member>>,
}

object!(PollSet, FidPoll, FID, CLOSED_POLL);
impl Close for PollSet {}

struct Member {
    handle: Handle,
    _open: Use,
    /// The counter's value at its last report.
    counted: u64,
}

static FID: Ops<6> = ops![close::<PollSet>];

/// `fi_poll_open`.
pub extern "C" fn open(domain: &Domain, attr: Option<&PollAttr>, into: Out<PollSet>) -> c_int {
    object::open(into, || {
        if attr.is_some_and(|attr| attr.flags != 0) {
            return Err(error::EBADFLAGS);
        }
        let fid = Fid { class: class::POLL, context: null_mut(), ops: &FID };
        let fid = FidPoll { fid, ops: &POLL };
        Ok(Opened::new(PollSet { fid, _domain: Ref::to(domain), members: Mutex::default() }))
    })
}

impl PollSet {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// Whether a member has news; makes progress.
    fn is_ready(&mut self) -> bool {
        match Waitable::of(self.handle) {
            Some(Waitable::Completions(cq)) => cq.is_ready(),
            Some(Waitable::Events(eq)) => eq.is_ready(),
            Some(Waitable::Counter(cntr)) => {
                let counted = cntr.total();
                std::mem::replace(&mut self.counted, counted) != counted
            }
            None => false,
        }
    }
}

fn without_flags(flags: u64) -> Result {
    if flags == 0 { Ok(()) } else { Err(error::EBADFLAGS) }
}

calls! {
    set: &PollSet;

    /// fi_poll(3).
    static POLL;

    /// Writes the contexts of members with news; returns their number.
    fn poll(contexts: Array<*mut c_void>, count: c_int) -> c_int {
        let count = usize::try_from(count).map_err(|_| error::EINVAL)?;
        if count == 0 {
            return Ok(0);
        }
        let places = contexts.places(count).ok_or(error::EINVAL)?;
        let mut found = 0;
        for member in set.members().iter_mut() {
            if found == count {
                break;
            }
            if member.is_ready() {
                places[found].write(member.handle.context());
                found += 1;
            }
        }
        Ok(found)
    }

    fn poll_add(handle: Handle, flags: u64) -> c_int {
        without_flags(flags)?;
        let waitable = Waitable::of(handle).ok_or(error::EINVAL)?;
        let mut members = set.members();
        if members.iter().all(|member| member.handle != handle) {
            members.push(Member { handle, _open: waitable.keep(), counted: 0 });
        }
        Ok(())
    }

    fn poll_del(handle: Handle, flags: u64) -> c_int {
        without_flags(flags)?;
        let mut members = set.members();
        let place = members.iter().position(|member| member.handle == handle);
        members.remove(place.ok_or(error::EINVAL)?);
        Ok(())
    }
}
