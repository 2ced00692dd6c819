//! Queue pairs.

use crate::abi::{self, AhAttr, QpAttr, QpCap, QpEx, QpInitAttr, QpInitAttrEx};
use crate::ah::{group_of, host_of};
use crate::context::ContextObject;
use crate::errno;
use crate::event::Acknowledged;
use crate::pd::Pd;
use crate::qp_ex::{self, Batch};
use bellwire_rdma::{
    Access, Attributes, Capacity, LIMITS, Mask, QpState, QueuePairOptions, Refusal, Service,
};
use std::cell::RefCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// A queue pair; all are extended ones.
#[repr(C)]
pub struct Qp {
    pub abi: QpEx,
    /// Whether the program may use the extended calls.
    pub is_extended: bool,
    /// Requests between `wr_start` and `wr_complete`.
    pub batch: RefCell<Batch>,
    pub async_events: Acknowledged,
}

/// `IBV_QP_INIT_ATTR_*` that are known: PD, CREATE_FLAGS, SEND_OPS_FLAGS.
const KNOWN: u32 = 1 | 1 << 2 | 1 << 6;
const CREATE_FLAGS: u32 = 1 << 2;
const SEND_OPS_FLAGS: u32 = 1 << 6;
/// `IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`: the only flag that is offered.
const IGNORE_OWN: u32 = 1 << 1;
/// `IBV_QP_EX_WITH_*` that are offered: all but TSO, FLUSH and ATOMIC_WRITE.
const OFFERED_OPS: u64 = 0x3ff;
/// Bytes that each queue pair sends inline, whatever was asked for.
const LEAST_INLINE: usize = 64;

impl Qp {
    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.qp.context)
    }

    pub fn number(&self) -> u32 {
        self.abi.qp.qp_num
    }
}

fn service_of(qp_type: u32) -> Result<Service, Refusal> {
    match qp_type {
        2 => Ok(Service::ReliableConnection),
        3 => Ok(Service::UnreliableConnection),
        4 => Ok(Service::Datagram),
        _ => Err(Refusal::Unsupported("a queue pair is RC, UC or UD")),
    }
}

fn create(pd: &Pd, attr: &mut QpInitAttr, operations: Option<u64>) -> Result<*mut Qp, Refusal> {
    let service = service_of(attr.qp_type)?;
    let queues = attr.send_cq.zip(attr.recv_cq);
    let (send_cq, recv_cq) = queues.ok_or(Refusal::Invalid("a queue pair needs both queues"))?;
    let place = Box::new(std::mem::MaybeUninit::<Qp>::uninit());
    let cap = attr.cap;
    // A queue without entries is never used, and a list without parts sends nothing.
    let capacity = Capacity {
        sends: cap.max_send_wr as usize,
        receives: if attr.srq.is_some() { 0 } else { cap.max_recv_wr as usize },
        send_parts: (cap.max_send_sge as usize).max(1),
        receive_parts: (cap.max_recv_sge as usize).max(1),
        // As cards do: programs send a few bytes inline without having asked for room.
        inline_bytes: (cap.max_inline_data as usize).max(LEAST_INLINE),
    };
    let options = QueuePairOptions {
        service,
        domain: pd.domain,
        send_queue: send_cq.id.get(),
        receive_queue: recv_cq.id.get(),
        shared: attr.srq.map(|srq| srq.id),
        capacity,
        signal_all: attr.sq_sig_all != 0,
        object: place.as_ptr() as usize,
    };
    let number = pd.context().lock().create_queue_pair(&options)?;
    (attr.cap.max_send_sge, attr.cap.max_recv_sge) =
        (capacity.send_parts as u32, capacity.receive_parts as u32);
    attr.cap.max_inline_data = capacity.inline_bytes as u32;
    let qp = abi::Qp {
        context: pd.abi_context(),
        qp_context: attr.qp_context,
        pd,
        send_cq,
        recv_cq,
        srq: attr.srq.map_or(std::ptr::null(), std::ptr::from_ref),
        handle: number,
        qp_num: number,
        state: AtomicU32::new(QpState::Reset as u32),
        qp_type: attr.qp_type,
        mutex: abi::Mutex::NEW,
        cond: abi::Cond::NEW,
        events_completed: AtomicU32::new(0),
    };
    Ok(Box::into_raw(Box::write(
        place,
        Qp {
            abi: qp_ex::table(qp),
            is_extended: operations.is_some(),
            batch: RefCell::default(),
            async_events: Acknowledged::default(),
        },
    )))
}

fn answer(what: &str, made: Result<*mut Qp, Refusal>) -> *mut Qp {
    made.unwrap_or_else(|refusal| {
        crate::log::refused(what, &refusal);
        errno::set(errno::of(&refusal));
        null_mut()
    })
}

/// `ibv_create_qp`
pub fn create_plain(pd: &Pd, attr: &mut QpInitAttr) -> *mut Qp {
    answer("ibv_create_qp", create(pd, attr, None))
}

pub extern "C" fn create_ex(_: &abi::Context, attr: &mut QpInitAttrEx) -> *mut Qp {
    let unsupported = |why| Err(Refusal::Unsupported(why));
    let operations = (attr.comp_mask & SEND_OPS_FLAGS != 0).then_some(attr.send_ops_flags);
    let flags = if attr.comp_mask & CREATE_FLAGS != 0 { attr.create_flags } else { 0 };
    let made = if attr.comp_mask & !KNOWN != 0 || flags & !IGNORE_OWN != 0 {
        unsupported("an attribute of ibv_create_qp_ex that is not offered")
    } else if operations.is_some_and(|wanted| wanted & !OFFERED_OPS != 0) {
        unsupported("an operation of ibv_create_qp_ex that is not offered")
    } else {
        match attr.pd.filter(|_| attr.comp_mask & 1 != 0) {
            Some(pd) => {
                let mut base = QpInitAttr {
                    qp_context: attr.qp_context,
                    send_cq: attr.send_cq,
                    recv_cq: attr.recv_cq,
                    srq: attr.srq,
                    cap: attr.cap,
                    qp_type: attr.qp_type,
                    sq_sig_all: attr.sq_sig_all,
                };
                let made = create(pd, &mut base, operations).inspect(|&qp| {
                    if flags & IGNORE_OWN != 0 {
                        // SAFETY: it was made just now.
                        let number = unsafe { (*qp).number() };
                        pd.context().lock().ignore_own(number);
                    }
                });
                attr.cap = base.cap;
                made
            }
            None => Err(Refusal::Invalid("a queue pair needs a protection domain")),
        }
    };
    answer("ibv_create_qp_ex", made)
}

/// The group of a call.
fn group(gid: &[u8; 16]) -> Result<std::net::Ipv4Addr, Refusal> {
    group_of(gid).ok_or(Refusal::Invalid("the GID is not an IPv4-mapped group"))
}

/// `ibv_attach_mcast`
pub fn attach(qp: &Qp, gid: &[u8; 16]) -> Result<(), Refusal> {
    qp.context().lock().attach(qp.number(), group(gid)?)
}

/// `ibv_detach_mcast`
pub fn detach(qp: &Qp, gid: &[u8; 16]) -> Result<(), Refusal> {
    qp.context().lock().detach(qp.number(), group(gid)?)
}

/// Ends a queue pair.
pub fn destroy(qp: *mut Qp) -> Result<(), Refusal> {
    // SAFETY: C gives back a queue pair of `create`.
    let object = unsafe { qp.as_ref() }.ok_or(Refusal::Invalid("no queue pair"))?;
    object.context().lock().destroy_queue_pair(object.number())?;
    object.context().forget_events(qp as usize);
    object.async_events.wait();
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(qp) });
    Ok(())
}

/// Changes attributes.
pub fn modify(qp: &Qp, attr: &QpAttr, mask: u32) -> Result<(), Refusal> {
    let mask = Mask::from_bits_retain(mask);
    let state = QpState::from_value(attr.qp_state).filter(|_| mask.contains(Mask::STATE));
    if mask.contains(Mask::STATE) && state.is_none() {
        return Err(Refusal::Invalid("there is no such state"));
    }
    if mask.contains(Mask::PATH) && (attr.ah_attr.port_num != 1 || attr.ah_attr.grh.sgid_index != 0)
    {
        return Err(Refusal::Invalid("a path has port 1 and GID index 0"));
    }
    let new = Attributes {
        state: state.unwrap_or(QpState::Reset),
        access: Access::from_bits_truncate(attr.qp_access_flags),
        qkey: attr.qkey,
        host: host_of(&attr.ah_attr),
        peer: attr.dest_qp_num,
        mtu: attr.path_mtu,
        timeout: attr.timeout,
        retry_count: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        rnr_timer: attr.min_rnr_timer,
        send_psn: attr.sq_psn,
        receive_psn: attr.rq_psn,
        reads: attr.max_rd_atomic.min(LIMITS.reads),
        peer_reads: attr.max_dest_rd_atomic,
        pkey_index: attr.pkey_index,
        port: attr.port_num,
        drained_event: attr.en_sqd_async_notify != 0,
    };
    if (mask.contains(Mask::READS) && attr.max_rd_atomic > LIMITS.reads)
        || (mask.contains(Mask::PEER_READS) && attr.max_dest_rd_atomic > LIMITS.reads)
    {
        return Err(Refusal::Invalid("more outstanding reads than the device has"));
    }
    qp.context().lock().modify(qp.number(), mask, &new)?;
    if let Some(state) = state {
        qp.abi.qp.state.store(state as u32, Ordering::Relaxed);
    }
    Ok(())
}

/// All attributes.
pub fn query(qp: &Qp, attr: &mut QpAttr, init: &mut QpInitAttr) -> Result<(), Refusal> {
    let adapter = qp.context().lock();
    let (now, options) = adapter.query(qp.number())?;
    let draining = adapter.is_draining(qp.number());
    drop(adapter);
    let capacity = options.capacity;
    let cap = QpCap {
        max_send_wr: capacity.sends as u32,
        max_recv_wr: capacity.receives as u32,
        max_send_sge: capacity.send_parts as u32,
        max_recv_sge: capacity.receive_parts as u32,
        max_inline_data: capacity.inline_bytes as u32,
    };
    let mut path = AhAttr { port_num: 1, ..AhAttr::default() };
    if let Some(host) = now.host {
        path.is_global = 1;
        path.grh.dgid = host.to_ipv6_mapped().octets();
        path.grh.hop_limit = 64;
    }
    *attr = QpAttr {
        qp_state: now.state as u32,
        cur_qp_state: now.state as u32,
        path_mtu: now.mtu,
        qkey: now.qkey,
        rq_psn: now.receive_psn,
        sq_psn: now.send_psn,
        dest_qp_num: now.peer,
        qp_access_flags: now.access.bits(),
        cap,
        ah_attr: path,
        pkey_index: now.pkey_index,
        sq_draining: draining.into(),
        max_rd_atomic: now.reads,
        max_dest_rd_atomic: now.peer_reads,
        min_rnr_timer: now.rnr_timer,
        port_num: now.port,
        timeout: now.timeout,
        retry_cnt: now.retry_count,
        rnr_retry: now.rnr_retry,
        ..QpAttr::default()
    };
    qp.abi.qp.state.store(now.state as u32, Ordering::Relaxed);
    let own = &qp.abi.qp;
    // SAFETY: null, or objects that live as long as the queue pair.
    let (send_cq, recv_cq, srq) =
        unsafe { (own.send_cq.as_ref(), own.recv_cq.as_ref(), own.srq.as_ref()) };
    *init = QpInitAttr {
        qp_context: own.qp_context,
        send_cq,
        recv_cq,
        srq,
        cap,
        qp_type: own.qp_type,
        sq_sig_all: options.signal_all.into(),
    };
    Ok(())
}
