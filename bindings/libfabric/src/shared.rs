//! Contexts that endpoints share. A shared receive serves the endpoint that first gets a matching
//! message. A shared transmit context has no function, because endpoints have no transmit resources
//! that could be shared.

use crate::abi::{Fid, FidEp, FidStx, Ops, RxAttr, TxAttr, class, error, flag, not_offered, ops};
use crate::domain::Domain;
use crate::ep::{Ep, NO_ATOMICS, NO_CALLS, NO_COLLECTIVES, NONE, State};
use crate::info::NOT_SHARED;
use crate::library::{Level, log};
use crate::lock::Lock;
use crate::object::{CLOSED_EP, CLOSED_STX, given, object, retire};
use crate::receive::{self, Receive, Receiver, token};
use bellwire_tagged::{
    CompletionKind, Outcome, Refusal, SharedReceives, Sink, Spans, TaggedCompletion,
};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shared receive context.
#[repr(C)]
pub struct Srx {
    fid: FidEp,
    domain: *mut Domain,
    receives: SharedReceives,
    endpoints: Lock<Vec<*mut Ep>>,
    /// Endpoints that are bound to it.
    pub users: AtomicUsize,
}

/// A shared transmit context.
#[repr(C)]
pub struct Stx {
    fid: FidStx,
    domain: *mut Domain,
    /// Endpoints that are bound to it.
    pub users: AtomicUsize,
}

object!(Srx, FidEp, FID, CLOSED_EP);
object!(Stx, FidStx, STX_FID, CLOSED_STX);

/// Most waiting receives of each kind.
const RECEIVES: usize = 65_536;

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static STX_FID: Ops<6> =
    ops![close_stx, not_offered, not_offered, not_offered, not_offered, not_offered];
static EP: Ops<7> = ops![
    receive::cancel::<Srx>,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    crate::ep::room,
    not_offered,
];
static STX: Ops<7> = Ops::new([NONE; 7]);
static MSG: Ops<9> = ops![
    receive::recv::<Srx>,
    receive::recv_parts::<Srx>,
    receive::recv_message::<Srx>,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
];
static TAGGED: Ops<9> = ops![
    receive::tagged::<Srx>,
    receive::tagged_parts::<Srx>,
    receive::tagged_message::<Srx>,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
];

/// `fi_srx_context`.
pub unsafe extern "C" fn open_srx(
    domain: *mut Domain,
    attr: *const RxAttr,
    into: *mut *mut Srx,
    context: *mut c_void,
) -> c_int {
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let wants =
            |attr: &RxAttr| attr.caps & NOT_SHARED != 0 || attr.op_flags & flag::MULTI_RECV != 0;
        if attr.as_ref().is_some_and(wants) {
            log(
                Level::Warn,
                "shared receives are for one message each, from anybody: no FI_MULTI_RECV, no FI_DIRECTED_RECV",
            );
            return -error::EINVAL;
        }
        let fid = Fid { class: class::SRX_CTX, context, ops: &FID };
        let fid = FidEp {
            fid,
            ops: &EP,
            cm: &NO_CALLS,
            msg: &MSG,
            rma: &NO_CALLS,
            tagged: &TAGGED,
            atomic: &NO_ATOMICS,
            collective: &NO_COLLECTIVES,
        };
        let receives = SharedReceives::new(RECEIVES);
        let endpoints = Lock::new((*domain).shared, Vec::new());
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        let users = AtomicUsize::new(0);
        into.write(Box::into_raw(Box::new(Srx { fid, domain, receives, endpoints, users })));
    }
    0
}

/// `fi_stx_context`.
pub unsafe extern "C" fn open_stx(
    domain: *mut Domain,
    _attr: *const TxAttr,
    into: *mut *mut Stx,
    context: *mut c_void,
) -> c_int {
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let fid = Fid { class: class::STX_CTX, context, ops: &STX_FID };
        let fid = FidStx { fid, ops: &STX };
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        into.write(Box::into_raw(Box::new(Stx { fid, domain, users: AtomicUsize::new(0) })));
    }
    0
}

impl Srx {
    /// Adds an endpoint that takes receives from here.
    ///
    /// # Safety
    /// It [leaves](Srx::remove) before it is closed.
    pub unsafe fn add(&self, ep: *mut Ep) {
        self.endpoints.hold().push(ep);
        // SAFETY: the caller's promise.
        let mut state = unsafe { (*ep).hold() };
        state.endpoint.share(&self.receives);
        let State { endpoint, bound, .. } = &mut *state;
        endpoint.match_shared(bound);
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove(&self, ep: *mut Ep) {
        self.endpoints.hold().retain(|&other| other != ep);
    }

    fn each(&self, what: impl Fn(&mut State)) {
        for &ep in self.endpoints.hold().iter() {
            // SAFETY: endpoints leave before they are closed.
            let mut state = unsafe { (*ep).hold() };
            what(&mut state);
        }
    }
}

impl Receiver for Srx {
    unsafe fn post(&self, into: Spans, receive: Receive) -> isize {
        let Receive { tag, context, flags, .. } = receive;
        if flags.unwrap_or(0) & !flag::COMPLETION != 0 {
            return -(error::EBADFLAGS as isize);
        }
        match self.receives.receive(tag, into, token(tag.is_some(), true, context)) {
            Ok(()) => {
                self.each(|state| {
                    let State { endpoint, bound, .. } = state;
                    endpoint.match_shared(bound);
                });
                0
            }
            Err(Refusal::Again) => {
                // Programs that only retry need progress too.
                self.each(|state| _ = state.progress());
                -(error::EAGAIN as isize)
            }
            Err(Refusal::Failed(_) | Refusal::Lost(_)) => -(error::EINVAL as isize),
        }
    }

    /// Like a finished receive, it is reported in the queue of an endpoint: the first one.
    fn take_back(&self, context: *mut c_void) {
        let endpoints = self.endpoints.hold();
        let (Some(&ep), Some(token)) = (endpoints.first(), self.receives.cancel(context as u64))
        else {
            return;
        };
        // SAFETY: as in `each`.
        unsafe { (*ep).hold() }.bound.completed(TaggedCompletion::new(
            token,
            CompletionKind::Received,
            Outcome::Cancelled,
        ));
    }
}

unsafe extern "C" fn close(srx: *mut Srx) -> c_int {
    // SAFETY: made by `open_srx`, and open, and so is its domain.
    unsafe {
        if (*srx).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        (*(*srx).domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(srx);
    }
    0
}

unsafe extern "C" fn control(_srx: *mut Srx, command: c_int, _argument: *mut c_void) -> c_int {
    match command {
        // Contexts are enabled from the start.
        crate::abi::value::CONTROL_ENABLE => 0,
        _ => -error::ENOSYS,
    }
}

unsafe extern "C" fn close_stx(stx: *mut Stx) -> c_int {
    // SAFETY: made by `open_stx`, and open, and so is its domain.
    unsafe {
        if (*stx).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        (*(*stx).domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(stx);
    }
    0
}
