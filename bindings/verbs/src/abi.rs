//! The structures of `infiniband/verbs.h`, in the layout of x86-64. `abi/layout.rs` compares
//! them with the installed header. Names are the header's, without the prefix `ibv_`.
#![allow(missing_docs)]

#[cfg(test)]
mod layout;

use bellwire_rdma::Sge;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU32};

/// A pointer of C that this library does not read.
pub type Opaque = *mut c_void;
/// An entry of a table of functions that is not offered.
pub type Missing = Option<extern "C" fn()>;

/// `pthread_mutex_t`, which no program and no library of today uses in these structures.
#[repr(C, align(8))]
pub struct Mutex(pub [u8; 40]);
/// `pthread_cond_t`, likewise.
#[repr(C, align(8))]
pub struct Cond(pub [u8; 48]);

impl Mutex {
    pub const NEW: Mutex = Mutex([0; 40]);
}
impl Cond {
    pub const NEW: Cond = Cond([0; 48]);
}

#[repr(C)]
pub struct Device {
    pub ops: [usize; 2],
    pub node_type: u32,
    pub transport_type: u32,
    pub name: [c_char; 64],
    pub dev_name: [c_char; 64],
    pub dev_path: [c_char; 256],
    pub ibdev_path: [c_char; 256],
}

/// `struct ibv_context_ops`. The entries without a type are the header's `_compat_*`.
#[repr(C)]
pub struct ContextOps {
    pub compat_0: [Missing; 7],
    pub alloc_mw: extern "C" fn(&crate::pd::Pd, u32) -> *mut crate::mw::Mw,
    pub bind_mw: extern "C" fn(&crate::qp::Qp, &crate::mw::Mw, &MwBind) -> c_int,
    pub dealloc_mw: extern "C" fn(*mut crate::mw::Mw) -> c_int,
    pub compat_1: Missing,
    pub poll_cq: extern "C" fn(&crate::cq::Cq, c_int, *mut Wc) -> c_int,
    pub req_notify_cq: extern "C" fn(&crate::cq::Cq, c_int) -> c_int,
    pub compat_2: [Missing; 7],
    pub post_srq_recv: extern "C" fn(&crate::srq::Srq, *const RecvWr, *mut *const RecvWr) -> c_int,
    pub compat_3: [Missing; 4],
    pub post_send: extern "C" fn(&crate::qp::Qp, *const SendWr, *mut *const SendWr) -> c_int,
    pub post_recv: extern "C" fn(&crate::qp::Qp, *const RecvWr, *mut *const RecvWr) -> c_int,
    pub compat_4: [Missing; 5],
}

#[repr(C)]
pub struct Context {
    pub device: *const Device,
    pub ops: ContextOps,
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
    pub mutex: Mutex,
    pub abi_compat: usize,
}

/// `struct verbs_context` of rdma-core 65. Programs of older versions count from its end.
#[repr(C)]
pub struct VerbsContext {
    /// free_buf, alloc_buf, dm_export_dmabuf_fd, reg_mr_ex, dealloc_dmah, alloc_dmah
    pub since_60: [Missing; 6],
    pub query_port: extern "C" fn(&Context, u8, *mut PortAttr, usize) -> c_int,
    pub advise_mr: extern "C" fn(&crate::pd::Pd, u32, u32, *const Sge, u32) -> c_int,
    pub alloc_null_mr: Missing,
    pub counters: [Missing; 4],
    pub reg_dm_mr: extern "C" fn(
        &crate::pd::Pd,
        &'static crate::dm::Dm,
        u64,
        usize,
        u32,
    ) -> *mut crate::mr::Mr,
    pub alloc_dm: extern "C" fn(&Context, &AllocDmAttr) -> *mut crate::dm::Dm,
    pub free_dm: extern "C" fn(*mut crate::dm::Dm) -> c_int,
    pub flow_actions: [Missing; 3],
    pub modify_qp_rate_limit: Missing,
    pub alloc_parent_domain: extern "C" fn(&Context, &ParentDomainInitAttr) -> *mut crate::pd::Pd,
    pub dealloc_td: extern "C" fn(*mut crate::pd::Td) -> c_int,
    pub alloc_td: extern "C" fn(&Context, &u32) -> *mut crate::pd::Td,
    pub modify_cq: Missing,
    pub post_srq_ops: Missing,
    pub destroy_rwq_ind_table: Missing,
    pub create_rwq_ind_table: Missing,
    pub destroy_wq: Missing,
    pub modify_wq: Missing,
    pub create_wq: Missing,
    pub query_rt_values: extern "C" fn(&Context, &mut ValuesEx) -> c_int,
    pub create_cq_ex: extern "C" fn(&Context, &CqInitAttrEx) -> *mut crate::cq::Cq,
    pub private: usize,
    pub query_device_ex: extern "C" fn(&Context, *const c_void, *mut u8, usize) -> c_int,
    pub destroy_flow: Missing,
    pub placeholder_2: Missing,
    pub create_flow: Missing,
    pub placeholder_1: Missing,
    pub open_qp: Missing,
    pub create_qp_ex: extern "C" fn(&Context, &mut QpInitAttrEx) -> *mut crate::qp::Qp,
    pub get_srq_num: Missing,
    pub create_srq_ex: extern "C" fn(&Context, &mut SrqInitAttrEx) -> *mut crate::srq::Srq,
    pub open_xrcd: Missing,
    pub close_xrcd: Missing,
    pub placeholder_3: u64,
    pub size: usize,
    pub context: Context,
}

#[repr(C)]
pub struct Pd {
    pub context: *const Context,
    pub handle: u32,
}

#[repr(C)]
pub struct ParentDomainInitAttr {
    pub pd: Option<&'static crate::pd::Pd>,
    pub td: Opaque,
    pub comp_mask: u32,
    pub alloc: Missing,
    pub free: Missing,
    pub pd_context: Opaque,
}

#[repr(C)]
pub struct AllocDmAttr {
    pub length: usize,
    pub log_align_req: u32,
    pub comp_mask: u32,
}

#[repr(C)]
pub struct Dm {
    pub context: *const Context,
    pub memcpy_to_dm: extern "C" fn(&crate::dm::Dm, u64, *const c_void, usize) -> c_int,
    pub memcpy_from_dm: extern "C" fn(*mut c_void, &crate::dm::Dm, u64, usize) -> c_int,
    pub comp_mask: u32,
    pub handle: u32,
}

#[repr(C)]
pub struct Mr {
    pub context: *const Context,
    pub pd: Cell<*const crate::pd::Pd>,
    pub addr: Cell<*mut c_void>,
    pub length: Cell<usize>,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[repr(C)]
pub struct Mw {
    pub context: *const Context,
    pub pd: *const crate::pd::Pd,
    pub rkey: Cell<u32>,
    pub handle: u32,
    pub kind: u32,
}

#[repr(C)]
pub struct MwBindInfo {
    pub mr: *const Mr,
    pub addr: u64,
    pub length: u64,
    pub access: u32,
}

#[repr(C)]
pub struct MwBind {
    pub wr_id: u64,
    pub send_flags: u32,
    pub info: MwBindInfo,
}

#[repr(C)]
pub struct CompChannel {
    pub context: *const Context,
    pub fd: c_int,
    pub refcnt: AtomicI32,
}

#[repr(C)]
pub struct Cq {
    pub context: *const Context,
    pub channel: *const crate::channel::Channel,
    pub cq_context: Opaque,
    pub handle: u32,
    pub cqe: AtomicI32,
    pub mutex: Mutex,
    pub cond: Cond,
    pub comp_events_completed: AtomicU32,
    pub async_events_completed: AtomicU32,
}

pub type Read<T> = extern "C" fn(&crate::cq::Cq) -> T;

#[repr(C)]
pub struct CqEx {
    pub cq: Cq,
    pub comp_mask: u32,
    pub status: Cell<u32>,
    pub wr_id: Cell<u64>,
    pub start_poll: extern "C" fn(&crate::cq::Cq, *const c_void) -> c_int,
    pub next_poll: Read<c_int>,
    pub end_poll: Read<()>,
    pub read_opcode: Read<u32>,
    pub read_vendor_err: Read<u32>,
    pub read_byte_len: Read<u32>,
    pub read_imm_data: Read<u32>,
    pub read_qp_num: Read<u32>,
    pub read_src_qp: Read<u32>,
    pub read_wc_flags: Read<u32>,
    pub read_slid: Read<u32>,
    pub read_sl: Read<u8>,
    pub read_dlid_path_bits: Read<u8>,
    pub read_completion_ts: Read<u64>,
    pub read_cvlan: Read<u16>,
    pub read_flow_tag: Read<u32>,
    pub read_tm_info: extern "C" fn(&crate::cq::Cq, *mut c_void),
    pub read_completion_wallclock_ns: Read<u64>,
}

#[repr(C)]
pub struct CqInitAttrEx {
    pub cqe: u32,
    pub cq_context: Opaque,
    pub channel: Option<&'static crate::channel::Channel>,
    pub comp_vector: u32,
    pub wc_flags: u64,
    pub comp_mask: u32,
    pub flags: u32,
    pub parent_domain: Opaque,
}

#[repr(C)]
pub struct Srq {
    pub context: *const Context,
    pub srq_context: Opaque,
    pub pd: *const crate::pd::Pd,
    pub handle: u32,
    pub mutex: Mutex,
    pub cond: Cond,
    pub events_completed: AtomicU32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct SrqAttr {
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}

#[repr(C)]
pub struct SrqInitAttr {
    pub srq_context: Opaque,
    pub attr: SrqAttr,
}

#[repr(C)]
pub struct SrqInitAttrEx {
    pub srq_context: Opaque,
    pub attr: SrqAttr,
    pub comp_mask: u32,
    pub srq_type: u32,
    pub pd: Option<&'static crate::pd::Pd>,
}

#[repr(C)]
pub struct Qp {
    pub context: *const Context,
    pub qp_context: Opaque,
    pub pd: *const crate::pd::Pd,
    pub send_cq: *const crate::cq::Cq,
    pub recv_cq: *const crate::cq::Cq,
    pub srq: *const crate::srq::Srq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: AtomicU32,
    pub qp_type: u32,
    pub mutex: Mutex,
    pub cond: Cond,
    pub events_completed: AtomicU32,
}

type On = crate::qp::Qp;

/// `struct ibv_qp_ex` of rdma-core 65.
#[repr(C)]
pub struct QpEx {
    pub qp: Qp,
    pub comp_mask: u64,
    pub wr_id: Cell<u64>,
    pub wr_flags: Cell<u32>,
    pub atomic_cmp_swp: extern "C" fn(&On, u32, u64, u64, u64),
    pub atomic_fetch_add: extern "C" fn(&On, u32, u64, u64),
    pub bind_mw: extern "C" fn(&On, &crate::mw::Mw, u32, &MwBindInfo),
    pub local_inv: extern "C" fn(&On, u32),
    pub rdma_read: extern "C" fn(&On, u32, u64),
    pub rdma_write: extern "C" fn(&On, u32, u64),
    pub rdma_write_imm: extern "C" fn(&On, u32, u64, u32),
    pub send: extern "C" fn(&On),
    pub send_imm: extern "C" fn(&On, u32),
    pub send_inv: extern "C" fn(&On, u32),
    pub send_tso: extern "C" fn(&On, *const c_void, u16, u16),
    pub set_ud_addr: extern "C" fn(&On, &crate::ah::Ah, u32, u32),
    pub set_xrc_srqn: extern "C" fn(&On, u32),
    pub set_inline_data: extern "C" fn(&On, *const u8, usize),
    pub set_inline_data_list: extern "C" fn(&On, usize, *const DataBuf),
    pub set_sge: extern "C" fn(&On, u32, u64, u32),
    pub set_sge_list: extern "C" fn(&On, usize, *const Sge),
    pub start: extern "C" fn(&On),
    pub complete: extern "C" fn(&On) -> c_int,
    pub abort: extern "C" fn(&On),
    pub atomic_write: extern "C" fn(&On, u32, u64, *const c_void),
    pub flush: extern "C" fn(&On, u32, u64, usize, u8, u8),
}

#[repr(C)]
pub struct DataBuf {
    pub addr: *const u8,
    pub length: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpCap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
pub struct QpInitAttr {
    pub qp_context: Opaque,
    pub send_cq: Option<&'static crate::cq::Cq>,
    pub recv_cq: Option<&'static crate::cq::Cq>,
    pub srq: Option<&'static crate::srq::Srq>,
    pub cap: QpCap,
    pub qp_type: u32,
    pub sq_sig_all: c_int,
}

#[repr(C)]
pub struct QpInitAttrEx {
    pub qp_context: Opaque,
    pub send_cq: Option<&'static crate::cq::Cq>,
    pub recv_cq: Option<&'static crate::cq::Cq>,
    pub srq: Option<&'static crate::srq::Srq>,
    pub cap: QpCap,
    pub qp_type: u32,
    pub sq_sig_all: c_int,
    pub comp_mask: u32,
    pub pd: Option<&'static crate::pd::Pd>,
    pub xrcd: Opaque,
    pub create_flags: u32,
    pub max_tso_header: u16,
    pub rwq_ind_tbl: Opaque,
    pub rx_hash_conf: [u64; 3],
    pub source_qpn: u32,
    pub send_ops_flags: u64,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct GlobalRoute {
    pub dgid: [u8; 16],
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AhAttr {
    pub grh: GlobalRoute,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpAttr {
    pub qp_state: u32,
    pub cur_qp_state: u32,
    pub path_mtu: u32,
    pub path_mig_state: u32,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: u32,
    pub cap: QpCap,
    pub ah_attr: AhAttr,
    pub alt_ah_attr: AhAttr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}

#[repr(C)]
pub struct Ah {
    pub context: *const Context,
    pub pd: *const crate::pd::Pd,
    pub handle: u32,
}

#[repr(C)]
pub struct Grh {
    pub version_tclass_flow: u32,
    pub paylen: u16,
    pub next_hdr: u8,
    pub hop_limit: u8,
    pub sgid: [u8; 16],
    pub dgid: [u8; 16],
}

/// `struct ibv_send_wr`: `wr` and `tail` are unions.
#[repr(C)]
pub struct SendWr {
    pub wr_id: u64,
    pub next: *const SendWr,
    pub sg_list: *const Sge,
    pub num_sge: c_int,
    pub opcode: u32,
    pub send_flags: u32,
    pub imm_data: u32,
    /// rdma: address, rkey. atomic: address, compare or add, swap, rkey. ud: handle, number, key.
    pub wr: [u64; 4],
    pub qp_type: u64,
    /// bind_mw: window, rkey, then the members of [`MwBindInfo`].
    pub tail: [u64; 6],
}

#[repr(C)]
pub struct RecvWr {
    pub wr_id: u64,
    pub next: *const RecvWr,
    pub sg_list: *const Sge,
    pub num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Wc {
    pub wr_id: u64,
    pub status: u32,
    pub opcode: u32,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: u32,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

#[repr(C)]
pub struct AsyncEvent {
    pub element: usize,
    pub event_type: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct GidEntry {
    pub gid: [u8; 16],
    pub gid_index: u32,
    pub port_num: u32,
    pub gid_type: u32,
    pub ndev_ifindex: u32,
}

#[repr(C)]
pub struct DeviceAttr {
    pub fw_ver: [u8; 64],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: u32,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    pub max_pd: c_int,
    pub max_qp_rd_atom: c_int,
    pub max_ee_rd_atom: c_int,
    pub max_res_rd_atom: c_int,
    pub max_qp_init_rd_atom: c_int,
    pub max_ee_init_rd_atom: c_int,
    pub atomic_cap: u32,
    pub max_ee: c_int,
    pub max_rdd: c_int,
    pub max_mw: c_int,
    pub max_raw_ipv6_qp: c_int,
    pub max_raw_ethy_qp: c_int,
    pub max_mcast_grp: c_int,
    pub max_mcast_qp_attach: c_int,
    pub max_total_mcast_qp_attach: c_int,
    pub max_ah: c_int,
    pub max_fmr: c_int,
    pub max_map_per_fmr: c_int,
    pub max_srq: c_int,
    pub max_srq_wr: c_int,
    pub max_srq_sge: c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

/// `struct ibv_port_attr` of rdma-core 65.
#[repr(C)]
pub struct PortAttr {
    pub state: u32,
    pub max_mtu: u32,
    pub active_mtu: u32,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
    pub active_speed_ex: u32,
}

#[repr(C)]
pub struct ValuesEx {
    pub comp_mask: u32,
    pub raw_clock: [i64; 2],
}

const _: () = {
    assert!(size_of::<Device>() == 664);
    assert!(size_of::<ContextOps>() == 256 && size_of::<Context>() == 328);
    assert!(size_of::<VerbsContext>() == 696);
    assert!(size_of::<Mr>() == 48 && size_of::<CompChannel>() == 16);
    assert!(size_of::<Cq>() == 128 && size_of::<CqEx>() == 288);
    assert!(size_of::<Srq>() == 128 && size_of::<Qp>() == 160 && size_of::<QpEx>() == 360);
    assert!(size_of::<QpInitAttr>() == 64 && size_of::<QpInitAttrEx>() == 136);
    assert!(size_of::<AhAttr>() == 32 && size_of::<QpAttr>() == 144);
    assert!(size_of::<SendWr>() == 128 && size_of::<RecvWr>() == 32 && size_of::<Wc>() == 48);
    assert!(size_of::<DeviceAttr>() == 232 && size_of::<PortAttr>() == 56);
    assert!(size_of::<Grh>() == 40 && size_of::<GidEntry>() == 32 && size_of::<Sge>() == 16);
};
