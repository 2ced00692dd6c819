//! Contexts that endpoints share. A shared receive serves the endpoint that first gets a matching
//! message. A shared transmit context has no function, because endpoints have no transmit resources
//! that could be shared.

use crate::abi::{
    Fid, FidEp, FidStx, Ops, RxAttr, TxAttr, class, control_enabled, enosys, error, flag, ops,
};
use crate::domain::Domain;
use crate::ep::{self, ActiveEndpoint, NO_ATOMICS, NO_CALLS, NO_COLLECTIVES, State};
use crate::errno::Result;
use crate::info::NOT_SHARED;
use crate::library::{Level, log};
use crate::lock::Lock;
use crate::object::{self, CLOSED_EP, CLOSED_STX, Close, Opened, close, object};
use crate::pointer::Out;
use crate::receive::{self, Receive, Receiver, token};
use crate::reference::{Listed, Ref};
use bellwire_tagged::{
    CompletionKind, Outcome, PostError, SharedReceives, Sink, Spans, TaggedCompletion,
};
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// A shared receive context.
#[repr(C)]
pub struct SharedReceiveContext {
    fid: FidEp,
    _domain: Ref<Domain>,
    receives: SharedReceives,
    endpoints: Lock<Vec<Listed<ActiveEndpoint>>>,
    /// Endpoints that are bound to it.
    users: AtomicUsize,
}

/// A shared transmit context.
#[repr(C)]
pub struct SharedTransmitContext {
    fid: FidStx,
    _domain: Ref<Domain>,
    /// Endpoints that are bound to it.
    users: AtomicUsize,
}

object!(SharedReceiveContext, FidEp, FID, CLOSED_EP, users);
object!(SharedTransmitContext, FidStx, STX_FID, CLOSED_STX, users);
impl Close for SharedReceiveContext {}
impl Close for SharedTransmitContext {}

/// Most waiting receives of each kind.
const RECEIVES: usize = 65_536;

static FID: Ops<6> = ops![close::<SharedReceiveContext>, enosys, control_enabled];
static STX_FID: Ops<6> = ops![close::<SharedTransmitContext>];
/// fi_endpoint(3), fi_msg(3) and fi_tagged(3), as far as they receive.
static EP: Ops<7> =
    ops![receive::cancel::<SharedReceiveContext>, enosys, enosys, enosys, enosys, ep::size_left];
static STX: Ops<7> = ops![];
static MSG: Ops<9> = ops![
    receive::recv::<SharedReceiveContext>,
    receive::recvv::<SharedReceiveContext>,
    receive::recvmsg::<SharedReceiveContext>
];
static TAGGED: Ops<9> = ops![
    receive::trecv::<SharedReceiveContext>,
    receive::trecvv::<SharedReceiveContext>,
    receive::trecvmsg::<SharedReceiveContext>
];

/// `fi_srx_context`.
pub extern "C" fn open_receive(
    domain: &Domain,
    attr: Option<&RxAttr>,
    into: Out<SharedReceiveContext>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let unsupported =
            |attr: &RxAttr| attr.caps & NOT_SHARED != 0 || attr.op_flags & flag::MULTI_RECV != 0;
        if attr.is_some_and(unsupported) {
            let what = "FI_MULTI_RECV and FI_DIRECTED_RECV";
            log(Level::Warn, &format!("{what} are not supported with shared receives"));
            return Err(error::EINVAL);
        }
        let fid = FidEp {
            fid: Fid { class: class::SRX_CTX, context, ops: &FID },
            ops: &EP,
            cm: &NO_CALLS,
            msg: &MSG,
            rma: &NO_CALLS,
            tagged: &TAGGED,
            atomic: &NO_ATOMICS,
            collective: &NO_COLLECTIVES,
        };
        Ok(Opened::new(SharedReceiveContext {
            fid,
            _domain: Ref::to(domain),
            receives: SharedReceives::new(RECEIVES),
            endpoints: Lock::new(domain.shared, Vec::new()),
            users: AtomicUsize::new(0),
        }))
    })
}

/// `fi_stx_context`.
pub extern "C" fn open_transmit(
    domain: &Domain,
    _attr: Option<&TxAttr>,
    into: Out<SharedTransmitContext>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let fid = Fid { class: class::STX_CTX, context, ops: &STX_FID };
        let (fid, users) = (FidStx { fid, ops: &STX }, AtomicUsize::new(0));
        Ok(Opened::new(SharedTransmitContext { fid, _domain: Ref::to(domain), users }))
    })
}

impl SharedReceiveContext {
    /// Adds an endpoint that takes receives from here.
    pub fn add(&self, ep: Listed<ActiveEndpoint>) {
        self.endpoints.lock().push(ep);
        let mut state = ep.lock();
        state.endpoint.share(&self.receives);
        let State { endpoint, bound, .. } = &mut *state;
        endpoint.match_shared(bound);
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove(&self, ep: &ActiveEndpoint) {
        self.endpoints.lock().retain(|other| !other.is(ep));
    }

    fn each(&self, what: impl Fn(&mut State)) {
        for ep in self.endpoints.lock().iter() {
            what(&mut ep.lock());
        }
    }
}

impl Receiver for SharedReceiveContext {
    fn post(&self, into: Spans, receive: Receive) -> Result {
        let Receive { tag, context, flags, .. } = receive;
        if flags.unwrap_or(0) & !(flag::COMPLETION | flag::MORE) != 0 {
            return Err(error::EBADFLAGS);
        }
        match self.receives.receive(tag, into, token(tag.is_some(), true, context)) {
            Ok(()) => {
                self.each(|state| {
                    let State { endpoint, bound, .. } = state;
                    endpoint.match_shared(bound);
                });
                Ok(())
            }
            Err(PostError::Again) => {
                // Programs that only retry need progress too.
                self.each(|state| _ = state.progress());
                Err(error::EAGAIN)
            }
            Err(PostError::Failed(_) | PostError::Lost(_)) => Err(error::EINVAL),
        }
    }

    /// Like a finished receive, it is reported in the queue of an endpoint: the first one.
    fn cancel(&self, context: *mut c_void) {
        let endpoints = self.endpoints.lock();
        let (Some(ep), Some(token)) = (endpoints.first(), self.receives.cancel(context as u64))
        else {
            return;
        };
        let (kind, outcome) = (CompletionKind::Received, Outcome::Cancelled);
        ep.lock().bound.completed(TaggedCompletion::new(token, kind, outcome));
    }
}
