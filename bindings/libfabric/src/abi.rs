//! The structures between a libfabric library and a provider, as far as this provider uses them.
//!
//! Layouts follow `rdma/fabric.h` and its companions; `tests/layout.rs` checks them against the
//! installed headers. Only fields that exist in both 1.17 and 2.x are named. Structures that grow
//! (`fi_domain_attr`, `fi_cq_err_entry`) are allocated by the library, not by us.
#![allow(missing_docs)]

mod layout;

use crate::errno::{Code, Result};
use crate::object::Handle;
use crate::pointer::{Array, Buffer, Text};
use bellwire_tagged::Span;
use std::ffi::{c_char, c_int, c_void};

#[doc(hidden)]
pub use layout::layout;

/// A table of operations: its size in bytes, then the functions in the order of the header. No slot
/// is empty.
#[repr(C)]
pub struct Ops<const N: usize> {
    pub size: usize,
    pub slots: [Slot; N],
}

/// A function of a table.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Slot(pub *const c_void);

// SAFETY: `Slot` holds only the address of a function.
unsafe impl Sync for Slot {}

impl<const N: usize> Ops<N> {
    pub const fn new(slots: [Slot; N]) -> Self {
        Ops { size: size_of::<Self>(), slots }
    }
}

/// Makes a table of functions. Each has the C signature that the header gives its slot, where the
/// types of `pointer.rs` stand for pointers.
macro_rules! ops {
    ($($function:expr),* $(,)?) => {
        $crate::abi::Ops::new([$($crate::abi::Slot($function as *const std::ffi::c_void)),*])
    };
}
pub(crate) use ops;

#[repr(C)]
pub struct Fid {
    pub class: usize,
    pub context: *mut c_void,
    pub ops: *const Ops<6>,
}

// SAFETY: `context` only goes back to the program, and `ops` is a static table.
unsafe impl Send for Fid {}

#[repr(C)]
pub struct FidFabric {
    pub fid: Fid,
    pub ops: *const Ops<6>,
    pub api_version: u32,
}

#[repr(C)]
pub struct FidDomain {
    pub fid: Fid,
    pub ops: *const Ops<11>,
    pub mr: *const Ops<3>,
}

#[repr(C)]
pub struct FidAv {
    pub fid: Fid,
    pub ops: *const Ops<7>,
}

#[repr(C)]
pub struct FidCq {
    pub fid: Fid,
    pub ops: *const Ops<7>,
}

#[repr(C)]
pub struct FidEq {
    pub fid: Fid,
    pub ops: *const Ops<5>,
}

#[repr(C)]
pub struct FidCntr {
    pub fid: Fid,
    pub ops: *const Ops<7>,
}

#[repr(C)]
pub struct FidWait {
    pub fid: Fid,
    pub ops: *const Ops<1>,
}

#[repr(C)]
pub struct FidPoll {
    pub fid: Fid,
    pub ops: *const Ops<3>,
}

#[repr(C)]
pub struct FidPep {
    pub fid: Fid,
    pub ops: *const Ops<7>,
    pub cm: *const Ops<9>,
}

#[repr(C)]
pub struct FidStx {
    pub fid: Fid,
    pub ops: *const Ops<7>,
}

#[repr(C)]
pub struct FidMr {
    pub fid: Fid,
    pub descriptor: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct FidEp {
    pub fid: Fid,
    pub ops: *const Ops<7>,
    pub cm: *const Ops<9>,
    pub msg: *const Ops<9>,
    pub rma: *const Ops<9>,
    pub tagged: *const Ops<9>,
    pub atomic: *const Ops<13>,
    pub collective: *const Ops<11>,
}

#[repr(C)]
pub struct Provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: [*mut c_void; 4],
    pub name: *const c_char,
    pub getinfo: *const c_void,
    pub fabric: *const c_void,
    pub cleanup: *const c_void,
}

#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub auth_key_size: usize,
    pub auth_key: *mut u8,
}

/// The fields that are the same in all versions.
#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut FidDomain,
    pub name: Text,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub max_ep_tx_ctx: usize,
    pub max_ep_rx_ctx: usize,
    pub max_ep_stx_ctx: usize,
    pub max_ep_srx_ctx: usize,
    pub cntr_cnt: usize,
    pub mr_iov_limit: usize,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: usize,
    pub max_err_data: usize,
    pub mr_cnt: usize,
    pub tclass: u32,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut FidFabric,
    pub name: Text,
    pub prov_name: Text,
    pub prov_version: u32,
    pub api_version: u32,
}

/// The attributes are the program's, or the library's own.
#[repr(C)]
pub struct Info<'a> {
    pub next: *mut Info<'a>,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: Buffer,
    pub dest_addr: Buffer,
    pub handle: Handle,
    pub tx_attr: Option<&'a mut TxAttr>,
    pub rx_attr: Option<&'a mut RxAttr>,
    pub ep_attr: Option<&'a mut EpAttr>,
    pub domain_attr: Option<&'a mut DomainAttr>,
    pub fabric_attr: Option<&'a mut FabricAttr>,
    pub nic: *mut c_void,
}

#[repr(C)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: Text,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: Handle,
}

/// The longest form of a completion; shorter forms are prefixes of it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CqEntry {
    pub context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
}

impl CqEntry {
    /// Copies its first `bytes` bytes, which are whole words.
    ///
    /// Copies word by word: most words were stored just now, and wider loads would defeat store
    /// forwarding. Volatile, because the compiler would widen the loads.
    ///
    /// # Safety
    /// `to` has room for `bytes` bytes.
    #[inline(always)]
    pub unsafe fn copy_to(&self, to: *mut u64, bytes: usize) {
        let from = (&raw const *self).cast::<u64>();
        for word in 0..bytes / 8 {
            // SAFETY: an entry is six words, and `to` has room by the promise of the caller.
            unsafe { to.add(word).write(from.add(word).read_volatile()) }
        }
    }
}

/// The fields that are the same in all versions.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CqErrEntry {
    pub entry: CqEntry,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: Buffer,
    pub err_data_size: usize,
}

#[repr(C)]
pub struct EqAttr {
    pub size: usize,
    pub flags: u64,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_set: Handle,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EqEntry {
    pub fid: Handle,
    pub context: *mut c_void,
    pub data: u64,
}

/// A connection event; the private data follow.
#[repr(C)]
pub struct EqCmEntry {
    pub fid: Handle,
    pub info: *mut Info<'static>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EqErrEntry {
    pub entry: EqEntry,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: Buffer,
    pub err_data_size: usize,
}

#[repr(C)]
pub struct WaitAttr {
    pub wait_obj: c_int,
    pub flags: u64,
}

#[repr(C)]
pub struct PollAttr {
    pub flags: u64,
}

#[repr(C)]
pub struct CntrAttr {
    pub events: c_int,
    pub wait_obj: c_int,
    pub wait_set: Handle,
    pub flags: u64,
}

/// `struct iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IoVec {
    pub base: Buffer,
    pub len: usize,
}

impl IoVec {
    /// The memory of an operation.
    ///
    /// # Errors
    /// `EINVAL`: not memory.
    pub fn span(&self) -> Result<Span> {
        self.base.span(self.len)
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Msg {
    pub iov: Array<IoVec>,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct MsgTagged {
    pub iov: Array<IoVec>,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RmaIov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

#[repr(C)]
pub struct MsgRma {
    pub iov: Array<IoVec>,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: Array<RmaIov>,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct Ioc {
    pub addr: Buffer,
    pub count: usize,
}

#[repr(C)]
pub struct RmaIoc {
    pub addr: u64,
    pub count: usize,
    pub key: u64,
}

#[repr(C)]
pub struct MsgAtomic {
    pub iov: Array<Ioc>,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: Array<RmaIoc>,
    pub rma_iov_count: usize,
    pub datatype: c_int,
    pub op: c_int,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct AtomicAttr {
    pub count: usize,
    pub size: usize,
}

/// The fields that we read.
#[repr(C)]
pub struct MrAttr {
    pub iov: Array<IoVec>,
    pub count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
    pub auth_key_size: usize,
}

/// Classes of objects.
pub mod class {
    pub const FABRIC: usize = 1;
    pub const DOMAIN: usize = 2;
    pub const EP: usize = 3;
    pub const SRX_CTX: usize = 6;
    pub const STX_CTX: usize = 8;
    pub const PEP: usize = 9;
    pub const AV: usize = 11;
    pub const MR: usize = 12;
    pub const EQ: usize = 13;
    pub const CQ: usize = 14;
    pub const CNTR: usize = 15;
    pub const WAIT: usize = 16;
    pub const POLL: usize = 17;
    pub const CONNREQ: usize = 18;
}

/// Capabilities and flags.
pub mod flag {
    pub const MSG: u64 = 1 << 1;
    pub const RMA: u64 = 1 << 2;
    pub const TAGGED: u64 = 1 << 3;
    pub const ATOMIC: u64 = 1 << 4;
    pub const READ: u64 = 1 << 8;
    pub const WRITE: u64 = 1 << 9;
    pub const RECV: u64 = 1 << 10;
    pub const SEND: u64 = 1 << 11;
    pub const REMOTE_READ: u64 = 1 << 12;
    pub const REMOTE_WRITE: u64 = 1 << 13;
    pub const MULTI_RECV: u64 = 1 << 16;
    pub const REMOTE_CQ_DATA: u64 = 1 << 17;
    pub const MORE: u64 = 1 << 18;
    pub const PEEK: u64 = 1 << 19;
    pub const COMPLETION: u64 = 1 << 24;
    pub const INJECT: u64 = 1 << 25;
    pub const INJECT_COMPLETE: u64 = 1 << 26;
    pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
    pub const DELIVERY_COMPLETE: u64 = 1 << 28;
    pub const MATCH_COMPLETE: u64 = 1 << 31;
    pub const LOCAL_COMM: u64 = 1 << 51;
    pub const REMOTE_COMM: u64 = 1 << 52;
    pub const PROV_ATTR_ONLY: u64 = 1 << 54;
    pub const NUMERICHOST: u64 = 1 << 55;
    pub const RMA_EVENT: u64 = 1 << 56;
    pub const SOURCE: u64 = 1 << 57;
    pub const DISCARD: u64 = 1 << 58;
    pub const FETCH_ATOMIC: u64 = 1 << 58;
    pub const COMPARE_ATOMIC: u64 = 1 << 59;
    pub const DIRECTED_RECV: u64 = 1 << 59;
    pub const CLAIM: u64 = 1 << 59;
    pub const SELECTIVE_COMPLETION: u64 = 1 << 59;
    pub const EVENT: u64 = COMPLETION;
    /// A flag of the library itself, the same in all versions: a utility provider looks for a core
    /// provider.
    pub const CORE_PROV_ONLY: u64 = 1 << 59;
}

/// Orders of messages.
pub mod order {
    pub const SAS: u64 = 1 << 8;
    /// All of `FI_ORDER_ATOMIC_RAR`, `RAW`, `WAR` and `WAW`.
    pub const ATOMIC: u64 = 0xf << 36;
}

/// Values of enumerations.
pub mod value {
    use std::ffi::c_int;
    pub const EP_UNSPEC: c_int = 0;
    pub const EP_MSG: c_int = 1;
    pub const EP_DGRAM: c_int = 2;
    pub const EP_RDM: c_int = 3;
    /// In place of a number of contexts: endpoints share one.
    pub const SHARED_CONTEXT: usize = usize::MAX;
    pub const SOCKADDR: u32 = 1;
    pub const SOCKADDR_IN: u32 = 2;
    pub const THREAD_SAFE: c_int = 1;
    pub const THREAD_DOMAIN: c_int = 3;
    pub const THREAD_COMPLETION: c_int = 4;
    pub const PROGRESS_UNSPEC: c_int = 0;
    pub const PROGRESS_AUTO: c_int = 1;
    pub const PROGRESS_MANUAL: c_int = 2;
    pub const RM_ENABLED: c_int = 2;
    pub const AV_MAP: c_int = 1;
    pub const AV_TABLE: c_int = 2;
    pub const MR_BASIC: c_int = 1;
    pub const MR_SCALABLE: c_int = 2;
    pub const WAIT_NONE: c_int = 0;
    pub const WAIT_UNSPEC: c_int = 1;
    pub const WAIT_SET: c_int = 2;
    pub const WAIT_FD: c_int = 3;
    pub const WAIT_YIELD: c_int = 5;
    pub const CQ_CONTEXT: c_int = 1;
    pub const CQ_MSG: c_int = 2;
    pub const CQ_DATA: c_int = 3;
    pub const CQ_TAGGED: c_int = 4;
    pub const CONTROL_GETOPSFLAG: c_int = 2;
    pub const CONTROL_SETOPSFLAG: c_int = 3;
    pub const CONTROL_GETWAIT: c_int = 5;
    pub const CONTROL_ENABLE: c_int = 6;
    pub const CONTROL_GETWAITOBJ: c_int = 16;
    pub const OPT_MIN_MULTI_RECV: c_int = 0;
    pub const OPT_CM_DATA_SIZE: c_int = 1;
    pub const EVENT_CONNREQ: u32 = 1;
    pub const EVENT_CONNECTED: u32 = 2;
    pub const EVENT_SHUTDOWN: u32 = 3;
    pub const EVENT_AV_COMPLETE: u32 = 5;
    /// Our protocol number, by which two endpoints recognize each other.
    pub const PROTOCOL: u32 = 0xbe11_0001 | 1 << 31;
    pub const ADDRESS_UNKNOWN: u64 = u64::MAX;
}

/// Error numbers.
pub mod error {
    use crate::errno::Errno;
    pub const EIO: Errno = Errno::new(libc::EIO);
    pub const EAGAIN: Errno = Errno::new(libc::EAGAIN);
    pub const ENOMEM: Errno = Errno::new(libc::ENOMEM);
    pub const EBADF: Errno = Errno::new(libc::EBADF);
    pub const EBUSY: Errno = Errno::new(libc::EBUSY);
    pub const EINVAL: Errno = Errno::new(libc::EINVAL);
    pub const ENOSYS: Errno = Errno::new(libc::ENOSYS);
    pub const ENODATA: Errno = Errno::new(libc::ENODATA);
    pub const ENOMSG: Errno = Errno::new(libc::ENOMSG);
    pub const EACCES: Errno = Errno::new(libc::EACCES);
    pub const EOPNOTSUPP: Errno = Errno::new(libc::EOPNOTSUPP);
    pub const EMSGSIZE: Errno = Errno::new(libc::EMSGSIZE);
    pub const ENOPROTOOPT: Errno = Errno::new(libc::ENOPROTOOPT);
    pub const EADDRINUSE: Errno = Errno::new(libc::EADDRINUSE);
    pub const ECANCELED: Errno = Errno::new(libc::ECANCELED);
    pub const ETIMEDOUT: Errno = Errno::new(libc::ETIMEDOUT);
    pub const EHOSTUNREACH: Errno = Errno::new(libc::EHOSTUNREACH);
    pub const ECONNREFUSED: Errno = Errno::new(libc::ECONNREFUSED);
    pub const EISCONN: Errno = Errno::new(libc::EISCONN);
    pub const ENOTCONN: Errno = Errno::new(libc::ENOTCONN);
    pub const ECONNRESET: Errno = Errno::new(libc::ECONNRESET);
    pub const ENODEV: Errno = Errno::new(libc::ENODEV);
    pub const ETOOSMALL: Errno = Errno::new(257);
    pub const EOPBADSTATE: Errno = Errno::new(258);
    pub const EAVAIL: Errno = Errno::new(259);
    pub const EBADFLAGS: Errno = Errno::new(260);
    pub const ENOEQ: Errno = Errno::new(261);
    pub const ENOCQ: Errno = Errno::new(263);
    pub const ETRUNC: Errno = Errno::new(265);
    pub const ENOKEY: Errno = Errno::new(266);
    pub const ENOAV: Errno = Errno::new(267);
}

/// The function of an operation that we do not offer. It takes any arguments, because it reads
/// none.
pub extern "C" fn enosys() -> isize {
    Code::of_error(error::ENOSYS)
}
