//! The structures of `rdma/rdma_cma.h`, in the layout of x86-64. `layout.rs` compares them with the
//! installed header. Names are the header's, without the prefix `rdma_`.

use super::channel::CmChannel;
use super::event::EventObject;
use crate::abi::{AhAttr, Context, Opaque};
use crate::channel::Channel;
use crate::cq::Cq;
use crate::pd::Pd;
use crate::qp::Qp;
use crate::srq::Srq;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::{null, null_mut};

/// `struct sockaddr_storage`
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Storage(pub [u8; 128]);

impl Storage {
    pub const NONE: Storage = Storage([0; 128]);
}

/// `struct rdma_addr`, with the address of InfiniBand inside.
#[repr(C)]
pub struct Addr {
    pub src: Cell<Storage>,
    pub dst: Cell<Storage>,
    pub gids: Cell<Gids>,
}

/// `struct rdma_ib_addr`
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct Gids {
    pub sgid: [u8; 16],
    pub dgid: [u8; 16],
    pub pkey: u16,
}

#[repr(C)]
pub struct Route {
    pub addr: Addr,
    pub path_rec: Cell<*mut PathRecord>,
    pub num_paths: Cell<c_int>,
}

/// `struct ibv_sa_path_rec`
#[repr(C, align(8))]
#[derive(Default)]
pub struct PathRecord {
    pub dgid: [u8; 16],
    pub sgid: [u8; 16],
    pub dlid: u16,
    pub slid: u16,
    pub raw_traffic: c_int,
    pub flow_label: u32,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub reversible: c_int,
    pub numb_path: u8,
    pub pkey: u16,
    pub sl: u8,
    pub mtu_selector: u8,
    pub mtu: u8,
    pub rate_selector: u8,
    pub rate: u8,
    pub packet_life_time_selector: u8,
    pub packet_life_time: u8,
    pub preference: u8,
}

/// `struct rdma_cm_id`
#[repr(C)]
pub struct CmId {
    pub verbs: Cell<*const Context>,
    pub channel: Cell<*const CmChannel>,
    pub context: Cell<Opaque>,
    pub qp: Cell<*mut Qp>,
    pub route: Route,
    pub ps: u32,
    pub port_num: Cell<u8>,
    pub event: Cell<*mut EventObject>,
    pub send_cq_channel: Cell<*mut Channel>,
    pub send_cq: Cell<*mut Cq>,
    pub recv_cq_channel: Cell<*mut Channel>,
    pub recv_cq: Cell<*mut Cq>,
    pub srq: Cell<*mut Srq>,
    pub pd: Cell<*const Pd>,
    pub qp_type: u32,
}

impl CmId {
    /// An identifier that is bound to nothing.
    pub fn new(channel: *const CmChannel, context: Opaque, ps: u32, qp_type: u32) -> CmId {
        CmId {
            verbs: Cell::new(null()),
            channel: Cell::new(channel),
            context: Cell::new(context),
            qp: Cell::new(null_mut()),
            route: Route {
                addr: Addr {
                    src: Cell::new(Storage::NONE),
                    dst: Cell::new(Storage::NONE),
                    gids: Cell::default(),
                },
                path_rec: Cell::new(null_mut()),
                num_paths: Cell::new(0),
            },
            ps,
            port_num: Cell::new(0),
            event: Cell::new(null_mut()),
            send_cq_channel: Cell::new(null_mut()),
            send_cq: Cell::new(null_mut()),
            recv_cq_channel: Cell::new(null_mut()),
            recv_cq: Cell::new(null_mut()),
            srq: Cell::new(null_mut()),
            pd: Cell::new(null()),
            qp_type,
        }
    }
}

/// `struct rdma_conn_param`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConnParam {
    pub private_data: *const u8,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

/// `struct rdma_ud_param`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UdParam {
    pub private_data: *const u8,
    pub private_data_len: u8,
    pub ah_attr: AhAttr,
    pub qp_num: u32,
    pub qkey: u32,
}

#[repr(C)]
pub union Param {
    pub conn: ConnParam,
    pub ud: UdParam,
}

/// `struct rdma_cm_event`
#[repr(C)]
pub struct CmEvent {
    pub id: *const super::id::Id,
    pub listen_id: *const super::id::Id,
    pub event: u32,
    pub status: c_int,
    pub param: Param,
}

/// `struct rdma_addrinfo`
#[repr(C)]
pub struct AddrInfo {
    pub flags: c_int,
    pub family: c_int,
    pub qp_type: c_int,
    pub port_space: c_int,
    pub src_len: u32,
    pub dst_len: u32,
    pub src_addr: *const libc::sockaddr,
    pub dst_addr: *const libc::sockaddr,
    pub src_canonname: *const std::ffi::c_char,
    pub dst_canonname: *const std::ffi::c_char,
    pub route_len: usize,
    pub route: Opaque,
    pub connect_len: usize,
    pub connect: *const u8,
    pub next: *const AddrInfo,
}

/// `struct rdma_cm_join_mc_attr_ex`
#[repr(C)]
pub struct JoinAttr {
    pub comp_mask: u32,
    pub join_flags: u32,
    pub addr: *const libc::sockaddr,
}

/// `RDMA_CM_EVENT_*`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    AddrResolved = 0,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    ConnectError = 6,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    MulticastJoin = 12,
    MulticastError = 13,
    TimeWaitExit = 15,
}
