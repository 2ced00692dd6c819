//! The queue pair of an identifier, and its states.

use super::Errno;
use super::id::{Id, State, service_of};
use crate::abi::{AhAttr, Opaque, QpAttr, QpInitAttr};
use crate::calls;
use crate::channel::Channel;
use crate::cq::Cq;
use crate::pd::Pd;
use crate::qp::{self, Qp};
use bellwire_rdma::{Access, LIMITS, Mask, QpState};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::ptr::null_mut;

/// `RDMA_UDP_QKEY`
pub const UDP_QKEY: u32 = 0x0123_4567;
/// `IBV_MTU_4096`
pub const MTU_4096: u32 = 5;
/// About a second, unless the program sets another time.
pub const ACK_TIMEOUT: u8 = 18;

/// When a peer without a receive is asked again: after 0.64 ms. The kernel's 0 stands for 655 ms.
const RNR_TIMER: u8 = 12;

/// The path to a port.
pub fn path_to(gid: [u8; 16]) -> AhAttr {
    let mut path = AhAttr { is_global: 1, port_num: 1, ..AhAttr::default() };
    path.grh.dgid = gid;
    path.grh.hop_limit = 64;
    path
}

/// The attributes of a state, as `rdma_init_qp_attr(3)` gives them.
pub fn attributes(id: &Id, state: QpState) -> Result<(QpAttr, Mask), Errno> {
    let mut attr = QpAttr { qp_state: state as u32, port_num: 1, ..QpAttr::default() };
    let mut mask = Mask::STATE;
    let shared = id.state();
    let is_datagrams = id.abi.qp_type == service_of(0x0111);
    match state {
        QpState::Init => {
            mask |= Mask::PKEY_INDEX | Mask::PORT;
            if is_datagrams {
                attr.qkey = UDP_QKEY;
                mask |= Mask::QKEY;
            } else {
                attr.qp_access_flags =
                    (Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).bits();
                mask |= Mask::ACCESS;
            }
        }
        QpState::ReadyToReceive | QpState::ReadyToSend if is_datagrams => {
            if state == QpState::ReadyToSend {
                mask |= Mask::SEND_PSN;
            }
        }
        QpState::ReadyToReceive | QpState::ReadyToSend => {
            let [ready_to_receive, ready_to_send] = connected(&shared)?;
            return Ok(if state == QpState::ReadyToReceive {
                ready_to_receive
            } else {
                ready_to_send
            });
        }
        _ => return Err(libc::EINVAL),
    }
    Ok((attr, mask))
}

/// The attributes of the last two states of a connection. A side that was asked may want them
/// before it answers.
fn connected(state: &State) -> Result<[(QpAttr, Mask); 2], Errno> {
    let peer = state.peer.as_ref().ok_or(libc::EINVAL)?;
    let (responder_resources, initiator_depth) = match &state.own {
        Some(own) => (own.responder_resources, own.initiator_depth),
        None => (peer.initiator_depth, peer.responder_resources),
    };
    let ready_to_receive = QpAttr {
        qp_state: QpState::ReadyToReceive as u32,
        path_mtu: MTU_4096,
        dest_qp_num: peer.queue_pair,
        rq_psn: peer.psn,
        ah_attr: path_to(peer.gid),
        min_rnr_timer: RNR_TIMER,
        max_dest_rd_atomic: responder_resources.min(LIMITS.reads),
        ..QpAttr::default()
    };
    let ready_to_send = QpAttr {
        qp_state: QpState::ReadyToSend as u32,
        sq_psn: state.psn,
        // Each side says how often the other one sends again.
        rnr_retry: peer.rnr_retry_count.min(7),
        retry_cnt: state.retries.min(7),
        timeout: state.ack_timeout,
        max_rd_atomic: initiator_depth.min(LIMITS.reads),
        ..QpAttr::default()
    };
    let first = Mask::STATE
        | Mask::PATH
        | Mask::MTU
        | Mask::PEER
        | Mask::RECEIVE_PSN
        | Mask::PEER_READS
        | Mask::RNR_TIMER;
    let second = Mask::STATE
        | Mask::SEND_PSN
        | Mask::TIMEOUT
        | Mask::RETRY_COUNT
        | Mask::RNR_RETRY
        | Mask::READS;
    Ok([(ready_to_receive, first), (ready_to_send, second)])
}

/// Connects a queue pair with that of the other side.
pub fn connect(qp: &Qp, id: &Id) -> Result<(), Errno> {
    let [first, second] = connected(&id.state())?;
    modify(qp, first)?;
    modify(qp, second)
}

fn modify(qp: &Qp, (attr, mask): (QpAttr, Mask)) -> Result<(), Errno> {
    match crate::errno::answer("a queue pair of an identifier", qp::modify(qp, &attr, mask.bits()))
    {
        0 => Ok(()),
        errno => Err(errno),
    }
}

/// Moves the identifier's queue pair, if it has one, to the state in which all is flushed.
pub fn fail(id: &Id) {
    // SAFETY: null, or a queue pair of `rdma_create_qp`.
    if let Some(qp) = unsafe { id.abi.qp.get().as_ref() } {
        let attr = QpAttr { qp_state: QpState::Error as u32, ..QpAttr::default() };
        // From each state there is a way to this one.
        let _ = modify(qp, (attr, Mask::STATE));
    }
}

/// A completion queue with a channel, for a program that brings none.
fn own_queue(
    id: &Id,
    depth: u32,
    channel: &Cell<*mut Channel>,
    queue: &Cell<*mut Cq>,
) -> Result<&'static Cq, Errno> {
    // SAFETY: the caller has seen that there is a device.
    let context = unsafe { &*id.abi.verbs.get() };
    channel.set(calls::ibv_create_comp_channel(context));
    // SAFETY: null, or made just now; it lives as long as its queue.
    let made = unsafe { channel.get().as_ref() }.ok_or(libc::ENOMEM)?;
    let number: Opaque = std::ptr::from_ref(id).cast_mut().cast();
    queue.set(calls::ibv_create_cq(context, depth.max(1) as i32, number, Some(made), 0));
    // SAFETY: null, or made just now; it lives until the queue pair has ended.
    unsafe { queue.get().as_ref() }.ok_or(libc::ENOMEM)
}

/// Ends the queues that the identifier has for itself.
fn end_queues(id: &Id) {
    let own = &id.abi;
    for (queue, channel) in
        [(&own.send_cq, &own.send_cq_channel), (&own.recv_cq, &own.recv_cq_channel)]
    {
        let (queue, channel) = (queue.replace(null_mut()), channel.replace(null_mut()));
        if !queue.is_null() {
            calls::ibv_destroy_cq(queue);
        }
        if !channel.is_null() {
            calls::ibv_destroy_comp_channel(channel);
        }
    }
}

/// The domain that a new object of the identifier is in.
pub fn domain_of(id: &Id, wanted: Option<&Pd>) -> Result<*const Pd, Errno> {
    // SAFETY: null, or the context of an open device, which is never closed.
    let context = unsafe { id.abi.verbs.get().as_ref() }.ok_or(libc::EINVAL)?;
    match wanted {
        Some(pd) if std::ptr::eq(pd.abi_context(), context) => Ok(pd),
        Some(_) => Err(libc::EINVAL),
        None => Ok(id.abi.pd.get()),
    }
}

/// Makes the identifier's queue pair, by `make` from a domain and attributes.
pub fn create(
    id: &Id,
    pd: Option<&Pd>,
    attr: &mut QpInitAttr,
    make: impl FnOnce(&Pd, &mut QpInitAttr) -> *mut Qp,
) -> Result<(), Errno> {
    if !id.abi.qp.get().is_null() || attr.qp_type != id.abi.qp_type {
        return Err(libc::EINVAL);
    }
    let domain = domain_of(id, pd)?;
    let own = &id.abi;
    let made = (|| {
        if attr.recv_cq.is_none() {
            let depth = attr.cap.max_recv_wr;
            attr.recv_cq = Some(own_queue(id, depth, &own.recv_cq_channel, &own.recv_cq)?);
        }
        if attr.send_cq.is_none() {
            let depth = attr.cap.max_send_wr;
            attr.send_cq = Some(own_queue(id, depth, &own.send_cq_channel, &own.send_cq)?);
        }
        // SAFETY: null, or a queue of `rdma_create_srq`.
        attr.srq = attr.srq.or(unsafe { own.srq.get().as_ref() });
        // SAFETY: a domain of the program, or one that is never ended.
        let made = make(unsafe { &*domain }, attr);
        // SAFETY: null, or made just now.
        let qp = unsafe { made.as_ref() }.ok_or_else(last_errno)?;
        let states: &[QpState] = if own.qp_type == service_of(0x0111) {
            &[QpState::Init, QpState::ReadyToReceive, QpState::ReadyToSend]
        } else {
            &[QpState::Init]
        };
        for &state in states {
            if let Err(errno) = attributes(id, state).and_then(|all| modify(qp, all)) {
                calls::ibv_destroy_qp(made);
                return Err(errno);
            }
        }
        own.qp.set(made);
        own.pd.set(domain);
        Ok(())
    })();
    if made.is_err() {
        end_queues(id);
    }
    made
}

/// What a call has set.
pub fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Attaches the identifier's queue pair, if it has one, to a group. Returns whether it has.
pub fn attach(id: &Id, group: Ipv4Addr) -> Result<bool, Errno> {
    // SAFETY: null, or a queue pair of `rdma_create_qp`.
    let Some(qp) = (unsafe { id.abi.qp.get().as_ref() }) else { return Ok(false) };
    match calls::ibv_attach_mcast(qp, &group.to_ipv6_mapped().octets(), 0) {
        0 => Ok(true),
        errno => Err(errno),
    }
}

/// Detaches the identifier's queue pair from a group.
pub fn detach(id: &Id, group: Ipv4Addr) -> Result<(), Errno> {
    // SAFETY: null, or a queue pair of `rdma_create_qp`.
    let Some(qp) = (unsafe { id.abi.qp.get().as_ref() }) else { return Ok(()) };
    match calls::ibv_detach_mcast(qp, &group.to_ipv6_mapped().octets(), 0) {
        0 => Ok(()),
        errno => Err(errno),
    }
}

/// Ends the identifier's queue pair, and the queues that were made for it.
pub fn destroy(id: &Id) {
    // A queue pair that is attached does not end.
    let attached = id.state().groups.release();
    for group in attached {
        // The program may have detached it by itself.
        let _ = detach(id, group);
    }
    let qp = id.abi.qp.replace(null_mut());
    if !qp.is_null() {
        calls::ibv_destroy_qp(qp);
    }
    end_queues(id);
}
