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
    /// A table that begins with these functions. Operations without a function are refused.
    pub const fn new<const M: usize>(functions: [Slot; M]) -> Self {
        let mut slots = [Slot(enosys as *const c_void); N];
        let mut at = 0;
        while at < M {
            slots[at] = functions[at];
            at += 1;
        }
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

/// Declares the calls of an object, and with a table's name also the table that has them in this
/// order. Each call is a C function with the object as its first parameter. It returns the code of
/// its result.
macro_rules! calls {
    ($object:ident: &$of:ty; $(#[$doc:meta])* $vis:vis static $table:ident;
        $($(#[$note:meta])* fn $name:ident($($parameters:tt)*) -> $code:ty $body:block)*) => {
        $(#[$doc])*
        $vis static $table: $crate::abi::Ops<{ [$(stringify!($name)),*].len() }> =
            $crate::abi::ops![$($name),*];
        $crate::abi::calls! {
            $object: &$of; $($(#[$note])* fn $name($($parameters)*) -> $code $body)*
        }
    };
    ($object:ident: &$of:ty;
        $($(#[$note:meta])* $vis:vis fn $name:ident $(<$kind:ident: $bound:ident>)?
            ($($parameters:tt)*) -> $code:ty $body:block)*) => {
        $(
            $(#[$note])*
            #[allow(clippy::too_many_arguments)]
            $vis extern "C" fn $name$(<$kind: $bound>)?($object: &$of, $($parameters)*) -> $code {
                let _ = $object;
                let answer = || -> $crate::errno::Result<_> { $body };
                $crate::errno::answer(answer())
            }
        )*
    };
}
pub(crate) use calls;

/// The program's value for an operation, which its completion has.
pub type Context = *mut c_void;
/// The program's descriptor of its memory, which we do not need; and one for each buffer.
pub type Desc = *mut c_void;
pub type Descs = *mut *mut c_void;

/// Declares structures: our name and the header's, then the fields; fields that the header calls
/// otherwise have its name, and those that not all versions have an empty one. A `part` of the
/// header's structure is shorter than that. `structures` lists all sizes and offsets.
macro_rules! structures {
    ($(
        $(#[$meta:meta])*
        $extent:ident $ours:ident $(<$life:lifetime>)? = $theirs:literal {
            $($field:ident $(= $name:literal)?: $type:ty),* $(,)?
        }
    )*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            pub struct $ours $(<$life>)? {
                $(pub $field: $type,)*
            }
        )*

        fn structures() -> Vec<(String, usize)> {
            let mut facts = Vec::new();
            $(
                if stringify!($extent) == "whole" {
                    facts.push((format!("sizeof(struct {})", $theirs), size_of::<$ours>()));
                }
                $(
                    let name = [$($name,)? stringify!($field)][0];
                    if !name.is_empty() {
                        let fact = format!("offsetof(struct {}, {name})", $theirs);
                        facts.push((fact, std::mem::offset_of!($ours, $field)));
                    }
                )*
            )*
            facts
        }
    };
}

structures! {
    whole Fid = "fid" { class = "fclass": usize, context: *mut c_void, ops: *const Ops<6> }
    whole FidFabric = "fid_fabric" { fid: Fid, ops: *const Ops<6>, api_version: u32 }
    whole FidDomain = "fid_domain" { fid: Fid, ops: *const Ops<11>, mr: *const Ops<3> }
    whole FidAv = "fid_av" { fid: Fid, ops: *const Ops<7> }
    whole FidCq = "fid_cq" { fid: Fid, ops: *const Ops<7> }
    whole FidEq = "fid_eq" { fid: Fid, ops: *const Ops<5> }
    whole FidCntr = "fid_cntr" { fid: Fid, ops: *const Ops<7> }
    whole FidWait = "fid_wait" { fid: Fid, ops: *const Ops<1> }
    whole FidPoll = "fid_poll" { fid: Fid, ops: *const Ops<3> }
    whole FidPep = "fid_pep" { fid: Fid, ops: *const Ops<7>, cm: *const Ops<9> }
    whole FidStx = "fid_stx" { fid: Fid, ops: *const Ops<7> }
    whole FidMr = "fid_mr" { fid: Fid, descriptor = "mem_desc": *mut c_void, key: u64 }

    whole FidEp = "fid_ep" {
        fid: Fid,
        ops: *const Ops<7>,
        cm: *const Ops<9>,
        msg: *const Ops<9>,
        rma: *const Ops<9>,
        tagged: *const Ops<9>,
        atomic: *const Ops<13>,
        collective: *const Ops<11>,
    }

    whole Provider = "fi_provider" {
        version: u32,
        fi_version: u32,
        context: [*mut c_void; 4],
        name: *const c_char,
        getinfo: *const c_void,
        fabric: *const c_void,
        cleanup: *const c_void,
    }

    whole TxAttr = "fi_tx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        tclass: u32,
    }

    whole RxAttr = "fi_rx_attr" {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv = "": usize,
        size: usize,
        iov_limit: usize,
    }

    whole EpAttr = "fi_ep_attr" {
        kind = "type": c_int,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
        mem_tag_format: u64,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        auth_key_size: usize,
        auth_key: *mut u8,
    }

    /// The fields that are the same in all versions.
    part DomainAttr = "fi_domain_attr" {
        domain: *mut FidDomain,
        name: Text,
        threading: c_int,
        control_progress: c_int,
        data_progress: c_int,
        resource_mgmt: c_int,
        av_type: c_int,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
        mode: u64,
        auth_key: *mut u8,
        auth_key_size: usize,
        max_err_data: usize,
        mr_cnt: usize,
        tclass: u32,
    }

    whole FabricAttr = "fi_fabric_attr" {
        fabric: *mut FidFabric,
        name: Text,
        prov_name: Text,
        prov_version: u32,
        api_version: u32,
    }

    /// The attributes are the program's, or the library's own.
    whole Info<'a> = "fi_info" {
        next: *mut Info<'a>,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: Buffer,
        dest_addr: Buffer,
        handle: Handle,
        tx_attr: Option<&'a mut TxAttr>,
        rx_attr: Option<&'a mut RxAttr>,
        ep_attr: Option<&'a mut EpAttr>,
        domain_attr: Option<&'a mut DomainAttr>,
        fabric_attr: Option<&'a mut FabricAttr>,
        nic: *mut c_void,
    }

    whole AvAttr = "fi_av_attr" {
        kind = "type": c_int,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: Text,
        map_addr: *mut c_void,
        flags: u64,
    }

    whole CqAttr = "fi_cq_attr" {
        size: usize,
        flags: u64,
        format: c_int,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_cond: c_int,
        wait_set: Handle,
    }

    /// The longest form of a completion; shorter forms are prefixes of it.
    #[derive(Clone, Copy)]
    whole CqEntry = "fi_cq_tagged_entry" {
        context = "op_context": *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
    }

    /// The fields that are the same in all versions.
    #[derive(Clone, Copy)]
    part CqErrEntry = "fi_cq_err_entry" {
        entry = "op_context": CqEntry,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: Buffer,
        err_data_size: usize,
    }

    whole EqAttr = "fi_eq_attr" {
        size: usize,
        flags: u64,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_set: Handle,
    }

    #[derive(Clone, Copy)]
    whole EqEntry = "fi_eq_entry" { fid: Handle, context: *mut c_void, data: u64 }

    /// A connection event; the private data follow.
    whole EqCmEntry = "fi_eq_cm_entry" { fid: Handle, info: *mut Info<'static> }

    #[derive(Clone, Copy)]
    whole EqErrEntry = "fi_eq_err_entry" {
        entry = "fid": EqEntry,
        err: c_int,
        prov_errno: c_int,
        err_data: Buffer,
        err_data_size: usize,
    }

    whole WaitAttr = "fi_wait_attr" { wait_obj: c_int, flags: u64 }
    whole PollAttr = "fi_poll_attr" { flags: u64 }

    whole CntrAttr = "fi_cntr_attr" {
        events: c_int,
        wait_obj: c_int,
        wait_set: Handle,
        flags: u64,
    }

    /// `struct iovec`.
    #[derive(Clone, Copy)]
    whole IoVec = "iovec" { base = "iov_base": Buffer, len = "iov_len": usize }

    #[derive(Clone, Copy)]
    whole Msg = "fi_msg" {
        iov = "msg_iov": Array<IoVec>,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        context: *mut c_void,
        data: u64,
    }

    whole MsgTagged = "fi_msg_tagged" {
        iov = "msg_iov": Array<IoVec>,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        tag: u64,
        ignore: u64,
        context: *mut c_void,
        data: u64,
    }

    #[derive(Clone, Copy)]
    whole RmaIov = "fi_rma_iov" { addr: u64, len: usize, key: u64 }

    whole MsgRma = "fi_msg_rma" {
        iov = "msg_iov": Array<IoVec>,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: Array<RmaIov>,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }

    whole Ioc = "fi_ioc" { addr: Buffer, count: usize }
    whole RmaIoc = "fi_rma_ioc" { addr: u64, count: usize, key: u64 }

    whole MsgAtomic = "fi_msg_atomic" {
        iov = "msg_iov": Array<Ioc>,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: Array<RmaIoc>,
        rma_iov_count: usize,
        datatype: c_int,
        op: c_int,
        context: *mut c_void,
        data: u64,
    }

    whole AtomicAttr = "fi_atomic_attr" { count: usize, size: usize }

    /// The fields that we read.
    part MrAttr = "fi_mr_attr" {
        iov = "mr_iov": Array<IoVec>,
        count = "iov_count": usize,
        access: u64,
        offset: u64,
        requested_key: u64,
        context: *mut c_void,
        auth_key_size: usize,
    }
}

// SAFETY: `context` only goes back to the program, and `ops` is a static table.
unsafe impl Send for Fid {}

/// The words of a completion entry. The shorter formats have the first 1, 3 or 5 of them.
pub type EntryWords = [u64; 6];

impl CqEntry {
    /// The words of an entry that is not in memory yet.
    #[inline(always)]
    pub fn words(self) -> EntryWords {
        let CqEntry { context, flags, len, buf, data, tag } = self;
        [context as u64, flags, len as u64, buf as u64, data, tag]
    }

    /// The words of an entry in memory.
    ///
    /// Most of them were stored just now, and wider loads would defeat store forwarding. Volatile,
    /// because the compiler would widen the loads.
    #[inline(always)]
    pub fn read_words(&self) -> EntryWords {
        let from = (&raw const *self).cast::<u64>();
        // SAFETY: an entry is six words.
        std::array::from_fn(|word| unsafe { from.add(word).read_volatile() })
    }
}

/// Writes an entry of `bytes` bytes, the length of a format.
///
/// # Safety
/// `to` has room for `bytes` bytes.
#[inline(always)]
pub unsafe fn write_entry(to: *mut u64, words: EntryWords, bytes: usize) {
    // SAFETY: `to` has room for the words of the format by the promise of the caller.
    unsafe {
        to.write(words[0]);
        if bytes > 8 {
            to.add(1).write(words[1]);
            to.add(2).write(words[2]);
        }
        if bytes > 24 {
            to.add(3).write(words[3]);
            to.add(4).write(words[4]);
        }
        if bytes > 40 {
            to.add(5).write(words[5]);
        }
    }
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

/// Declares constants: our name, the header's if that is another one, and the value. `constants`
/// lists them under the header's names, which begin with the prefix.
macro_rules! constants {
    ($(
        $(#[$meta:meta])*
        $module:ident $prefix:literal {
            $($(#[$doc:meta])* $ours:ident $(= $name:literal)?: $type:ty = $value:expr;)*
        }
    )*) => {
        $(
            $(#[$meta])*
            pub mod $module {
                $($(#[$doc])* pub const $ours: $type = $value;)*
            }
        )*

        fn constants() -> Vec<(String, usize)> {
            let all = [
                $($(($prefix, [$($name,)? stringify!($ours)][0], $module::$ours as usize),)*)*
            ];
            let named = all.into_iter().filter(|(_, name, _)| !name.is_empty());
            named.map(|(prefix, name, value)| (format!("{prefix}{name}"), value)).collect()
        }
    };
}

constants! {
    /// Classes of objects.
    class "FI_CLASS_" {
        FABRIC: usize = 1;
        DOMAIN: usize = 2;
        EP: usize = 3;
        SRX_CTX: usize = 6;
        STX_CTX: usize = 8;
        PEP: usize = 9;
        AV: usize = 11;
        MR: usize = 12;
        EQ: usize = 13;
        CQ: usize = 14;
        CNTR: usize = 15;
        WAIT: usize = 16;
        POLL: usize = 17;
        CONNREQ: usize = 18;
    }

    /// Capabilities and flags.
    flag "FI_" {
        MSG: u64 = 1 << 1;
        RMA: u64 = 1 << 2;
        TAGGED: u64 = 1 << 3;
        ATOMIC: u64 = 1 << 4;
        READ: u64 = 1 << 8;
        WRITE: u64 = 1 << 9;
        RECV: u64 = 1 << 10;
        SEND: u64 = 1 << 11;
        REMOTE_READ: u64 = 1 << 12;
        REMOTE_WRITE: u64 = 1 << 13;
        MULTI_RECV: u64 = 1 << 16;
        REMOTE_CQ_DATA: u64 = 1 << 17;
        MORE: u64 = 1 << 18;
        PEEK: u64 = 1 << 19;
        COMPLETION: u64 = 1 << 24;
        INJECT: u64 = 1 << 25;
        INJECT_COMPLETE: u64 = 1 << 26;
        TRANSMIT_COMPLETE: u64 = 1 << 27;
        DELIVERY_COMPLETE: u64 = 1 << 28;
        MATCH_COMPLETE: u64 = 1 << 31;
        LOCAL_COMM: u64 = 1 << 51;
        REMOTE_COMM: u64 = 1 << 52;
        PROV_ATTR_ONLY: u64 = 1 << 54;
        NUMERICHOST: u64 = 1 << 55;
        RMA_EVENT: u64 = 1 << 56;
        SOURCE: u64 = 1 << 57;
        DISCARD: u64 = 1 << 58;
        FETCH_ATOMIC: u64 = 1 << 58;
        COMPARE_ATOMIC: u64 = 1 << 59;
        DIRECTED_RECV: u64 = 1 << 59;
        CLAIM: u64 = 1 << 59;
        SELECTIVE_COMPLETION: u64 = 1 << 59;
        EVENT: u64 = 1 << 24;
        /// A flag of the library itself, the same in all versions: a utility provider looks for a
        /// core provider.
        CORE_PROV_ONLY = "": u64 = 1 << 59;
    }

    /// Orders of messages.
    order "FI_ORDER_" {
        SAS: u64 = 1 << 8;
        /// All of `FI_ORDER_ATOMIC_RAR`, `RAW`, `WAR` and `WAW`.
        ATOMIC = "ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW":
            u64 = 0xf << 36;
    }

    /// Values of enumerations.
    value "FI_" {
        EP_UNSPEC: std::ffi::c_int = 0;
        EP_MSG: std::ffi::c_int = 1;
        EP_DGRAM: std::ffi::c_int = 2;
        EP_RDM: std::ffi::c_int = 3;
        /// In place of a number of contexts: endpoints share one.
        SHARED_CONTEXT: usize = usize::MAX;
        SOCKADDR: u32 = 1;
        SOCKADDR_IN: u32 = 2;
        THREAD_SAFE: std::ffi::c_int = 1;
        THREAD_DOMAIN: std::ffi::c_int = 3;
        THREAD_COMPLETION: std::ffi::c_int = 4;
        PROGRESS_UNSPEC: std::ffi::c_int = 0;
        PROGRESS_AUTO: std::ffi::c_int = 1;
        PROGRESS_MANUAL: std::ffi::c_int = 2;
        RM_ENABLED: std::ffi::c_int = 2;
        AV_MAP: std::ffi::c_int = 1;
        AV_TABLE: std::ffi::c_int = 2;
        MR_BASIC: std::ffi::c_int = 1;
        MR_SCALABLE: std::ffi::c_int = 2;
        WAIT_NONE: std::ffi::c_int = 0;
        WAIT_UNSPEC: std::ffi::c_int = 1;
        WAIT_SET: std::ffi::c_int = 2;
        WAIT_FD: std::ffi::c_int = 3;
        WAIT_YIELD: std::ffi::c_int = 5;
        CQ_CONTEXT = "CQ_FORMAT_CONTEXT": std::ffi::c_int = 1;
        CQ_MSG = "CQ_FORMAT_MSG": std::ffi::c_int = 2;
        CQ_DATA = "CQ_FORMAT_DATA": std::ffi::c_int = 3;
        CQ_TAGGED = "CQ_FORMAT_TAGGED": std::ffi::c_int = 4;
        CONTROL_GETOPSFLAG = "GETOPSFLAG": std::ffi::c_int = 2;
        CONTROL_SETOPSFLAG = "SETOPSFLAG": std::ffi::c_int = 3;
        CONTROL_GETWAIT = "GETWAIT": std::ffi::c_int = 5;
        CONTROL_ENABLE = "ENABLE": std::ffi::c_int = 6;
        CONTROL_GETWAITOBJ = "GETWAITOBJ": std::ffi::c_int = 16;
        OPT_MIN_MULTI_RECV: std::ffi::c_int = 0;
        OPT_CM_DATA_SIZE: std::ffi::c_int = 1;
        EVENT_CONNREQ = "CONNREQ": u32 = 1;
        EVENT_CONNECTED = "CONNECTED": u32 = 2;
        EVENT_SHUTDOWN = "SHUTDOWN": u32 = 3;
        EVENT_AV_COMPLETE = "AV_COMPLETE": u32 = 5;
        /// Our protocol number, by which two endpoints recognize each other.
        PROTOCOL = "": u32 = 0xbe11_0001 | 1 << 31;
        ADDRESS_UNKNOWN = "ADDR_UNSPEC": u64 = u64::MAX;
    }
}

/// Error numbers: those of the system, and libfabric's own.
pub mod error {
    use crate::errno::Errno;

    macro_rules! errors {
        ($($system:ident)* ; $($own:ident = $number:literal)*) => {
            $(pub const $system: Errno = Errno::new(libc::$system);)*
            $(pub const $own: Errno = Errno::new($number);)*

            pub(super) fn facts() -> Vec<(String, usize)> {
                let own = [$((stringify!($own), $number)),*];
                own.map(|(name, number)| (format!("FI_{name}"), number)).into()
            }
        };
    }

    errors! {
        EIO EAGAIN ENOMEM EBADF EBUSY EINVAL ENOSYS ENODATA ENOMSG EACCES EOPNOTSUPP EMSGSIZE
        ENOPROTOOPT EADDRINUSE ECANCELED ETIMEDOUT EHOSTUNREACH ECONNREFUSED EISCONN ENOTCONN
        ECONNRESET ENODEV;
        ETOOSMALL = 257 EOPBADSTATE = 258 EAVAIL = 259 EBADFLAGS = 260 ENOEQ = 261 ENOCQ = 263
        ETRUNC = 265 ENOKEY = 266 ENOAV = 267
    }
}

/// The function of an operation that we do not offer. It takes any arguments, because it reads
/// none.
pub extern "C" fn enosys() -> isize {
    Code::of_error(error::ENOSYS)
}

/// `fi_control` of an object that is enabled from the start.
pub extern "C" fn control_enabled(_: &Fid, command: c_int, _argument: *mut c_void) -> c_int {
    if command == value::CONTROL_ENABLE { 0 } else { Code::of_error(error::ENOSYS) }
}
