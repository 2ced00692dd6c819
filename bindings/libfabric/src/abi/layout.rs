//! The structures of `abi`, as facts for a C compiler.

use super::*;
use bellwire_tagged::{AtomicOp, Datatype};

/// Every size and offset that we rely on: C expressions and our values, for the test that runs a C
/// compiler.
pub fn layout() -> Vec<(String, usize)> {
    use std::mem::offset_of;
    let mut facts = Vec::new();
    /// A structure, its fields under both names, and whether it ends where ours ends.
    macro_rules! structure {
        ($ours:ty, $theirs:literal, $whole:expr, $($field:ident = $name:literal),* $(,)?) => {
            if $whole {
                facts.push((format!("sizeof(struct {})", $theirs), size_of::<$ours>()));
            }
            $(facts.push((
                format!("offsetof(struct {}, {})", $theirs, $name),
                offset_of!($ours, $field),
            ));)*
        };
    }
    structure!(Fid, "fid", true, class = "fclass", context = "context", ops = "ops");
    structure!(FidFabric, "fid_fabric", true, ops = "ops", api_version = "api_version");
    structure!(FidDomain, "fid_domain", true, ops = "ops", mr = "mr");
    structure!(FidAv, "fid_av", true, ops = "ops");
    structure!(FidCq, "fid_cq", true, ops = "ops");
    structure!(FidEq, "fid_eq", true, ops = "ops");
    structure!(FidCntr, "fid_cntr", true, ops = "ops");
    structure!(FidWait, "fid_wait", true, ops = "ops");
    structure!(FidPoll, "fid_poll", true, ops = "ops");
    structure!(FidPep, "fid_pep", true, ops = "ops", cm = "cm");
    structure!(FidStx, "fid_stx", true, ops = "ops");
    structure!(FidMr, "fid_mr", true, descriptor = "mem_desc", key = "key");
    structure!(
        FidEp,
        "fid_ep",
        true,
        ops = "ops",
        cm = "cm",
        msg = "msg",
        rma = "rma",
        tagged = "tagged",
        atomic = "atomic",
        collective = "collective"
    );
    structure!(
        Provider,
        "fi_provider",
        true,
        version = "version",
        fi_version = "fi_version",
        context = "context",
        name = "name",
        getinfo = "getinfo",
        fabric = "fabric",
        cleanup = "cleanup"
    );
    structure!(
        TxAttr,
        "fi_tx_attr",
        true,
        caps = "caps",
        mode = "mode",
        op_flags = "op_flags",
        msg_order = "msg_order",
        comp_order = "comp_order",
        inject_size = "inject_size",
        size = "size",
        iov_limit = "iov_limit",
        rma_iov_limit = "rma_iov_limit",
        tclass = "tclass"
    );
    structure!(
        RxAttr,
        "fi_rx_attr",
        true,
        caps = "caps",
        op_flags = "op_flags",
        msg_order = "msg_order",
        comp_order = "comp_order",
        size = "size",
        iov_limit = "iov_limit"
    );
    structure!(
        EpAttr,
        "fi_ep_attr",
        true,
        kind = "type",
        protocol = "protocol",
        protocol_version = "protocol_version",
        max_msg_size = "max_msg_size",
        msg_prefix_size = "msg_prefix_size",
        mem_tag_format = "mem_tag_format",
        tx_ctx_cnt = "tx_ctx_cnt",
        rx_ctx_cnt = "rx_ctx_cnt",
        auth_key_size = "auth_key_size"
    );
    structure!(
        DomainAttr,
        "fi_domain_attr",
        false,
        name = "name",
        threading = "threading",
        control_progress = "control_progress",
        data_progress = "data_progress",
        resource_mgmt = "resource_mgmt",
        av_type = "av_type",
        mr_mode = "mr_mode",
        mr_key_size = "mr_key_size",
        cq_data_size = "cq_data_size",
        cq_cnt = "cq_cnt",
        ep_cnt = "ep_cnt",
        tx_ctx_cnt = "tx_ctx_cnt",
        rx_ctx_cnt = "rx_ctx_cnt",
        max_ep_tx_ctx = "max_ep_tx_ctx",
        max_ep_rx_ctx = "max_ep_rx_ctx",
        cntr_cnt = "cntr_cnt",
        mr_iov_limit = "mr_iov_limit",
        caps = "caps",
        mode = "mode",
        auth_key_size = "auth_key_size",
        mr_cnt = "mr_cnt",
        tclass = "tclass"
    );
    structure!(
        FabricAttr,
        "fi_fabric_attr",
        true,
        fabric = "fabric",
        name = "name",
        prov_name = "prov_name",
        prov_version = "prov_version",
        api_version = "api_version"
    );
    structure!(
        Info,
        "fi_info",
        true,
        next = "next",
        caps = "caps",
        mode = "mode",
        addr_format = "addr_format",
        src_addrlen = "src_addrlen",
        dest_addrlen = "dest_addrlen",
        src_addr = "src_addr",
        dest_addr = "dest_addr",
        tx_attr = "tx_attr",
        rx_attr = "rx_attr",
        ep_attr = "ep_attr",
        domain_attr = "domain_attr",
        fabric_attr = "fabric_attr",
        nic = "nic"
    );
    structure!(
        AvAttr,
        "fi_av_attr",
        true,
        kind = "type",
        rx_ctx_bits = "rx_ctx_bits",
        count = "count",
        name = "name",
        flags = "flags"
    );
    structure!(
        CqAttr,
        "fi_cq_attr",
        true,
        size = "size",
        flags = "flags",
        format = "format",
        wait_obj = "wait_obj",
        wait_cond = "wait_cond",
        wait_set = "wait_set"
    );
    structure!(
        CqEntry,
        "fi_cq_tagged_entry",
        true,
        context = "op_context",
        flags = "flags",
        len = "len",
        buf = "buf",
        data = "data",
        tag = "tag"
    );
    structure!(
        CqErrEntry,
        "fi_cq_err_entry",
        false,
        entry = "op_context",
        olen = "olen",
        err = "err",
        prov_errno = "prov_errno",
        err_data = "err_data",
        err_data_size = "err_data_size"
    );
    structure!(
        EqAttr,
        "fi_eq_attr",
        true,
        size = "size",
        flags = "flags",
        wait_obj = "wait_obj",
        wait_set = "wait_set"
    );
    structure!(WaitAttr, "fi_wait_attr", true, wait_obj = "wait_obj", flags = "flags");
    structure!(PollAttr, "fi_poll_attr", true, flags = "flags");
    structure!(EqCmEntry, "fi_eq_cm_entry", true, fid = "fid", info = "info");
    structure!(EqEntry, "fi_eq_entry", true, fid = "fid", context = "context", data = "data");
    structure!(EqErrEntry, "fi_eq_err_entry", true, err = "err", err_data = "err_data");
    structure!(
        CntrAttr,
        "fi_cntr_attr",
        true,
        events = "events",
        wait_obj = "wait_obj",
        flags = "flags"
    );
    structure!(
        Msg,
        "fi_msg",
        true,
        iov = "msg_iov",
        iov_count = "iov_count",
        addr = "addr",
        context = "context",
        data = "data"
    );
    structure!(
        MsgTagged,
        "fi_msg_tagged",
        true,
        iov = "msg_iov",
        iov_count = "iov_count",
        addr = "addr",
        tag = "tag",
        ignore = "ignore",
        context = "context",
        data = "data"
    );
    structure!(
        MsgRma,
        "fi_msg_rma",
        true,
        iov = "msg_iov",
        iov_count = "iov_count",
        addr = "addr",
        rma_iov = "rma_iov",
        rma_iov_count = "rma_iov_count",
        context = "context",
        data = "data"
    );
    structure!(RmaIov, "fi_rma_iov", true, addr = "addr", len = "len", key = "key");
    structure!(RmaIoc, "fi_rma_ioc", true, addr = "addr", count = "count", key = "key");
    structure!(Ioc, "fi_ioc", true, addr = "addr", count = "count");
    structure!(
        MsgAtomic,
        "fi_msg_atomic",
        true,
        iov = "msg_iov",
        iov_count = "iov_count",
        addr = "addr",
        rma_iov = "rma_iov",
        rma_iov_count = "rma_iov_count",
        datatype = "datatype",
        op = "op",
        context = "context"
    );
    structure!(AtomicAttr, "fi_atomic_attr", true, count = "count", size = "size");
    structure!(
        MrAttr,
        "fi_mr_attr",
        false,
        iov = "mr_iov",
        count = "iov_count",
        access = "access",
        offset = "offset",
        requested_key = "requested_key",
        context = "context",
        auth_key_size = "auth_key_size"
    );
    // Our numbers of datatypes and operations equal libfabric's.
    for (name, number) in [("FI_INT8", Datatype::I8), ("FI_UINT64", Datatype::U64)]
        .into_iter()
        .chain([("FI_FLOAT", Datatype::F32), ("FI_DOUBLE", Datatype::F64)])
    {
        facts.push((name.to_owned(), number as usize));
    }
    for (name, change) in [
        ("FI_MIN", AtomicOp::Minimum),
        ("FI_PROD", AtomicOp::Product),
        ("FI_BOR", AtomicOp::Or),
        ("FI_BXOR", AtomicOp::Xor),
        ("FI_ATOMIC_WRITE", AtomicOp::Write),
        ("FI_CSWAP", AtomicOp::SwapEqual),
        ("FI_CSWAP_LE", AtomicOp::SwapLessEqual),
        ("FI_CSWAP_GT", AtomicOp::SwapGreater),
        ("FI_MSWAP", AtomicOp::SwapMasked),
    ] {
        facts.push((name.to_owned(), change as usize));
    }
    // The completion formats are prefixes of the longest one.
    for (format, bytes) in [("entry", 8), ("msg_entry", 24), ("data_entry", 40)] {
        facts.push((format!("sizeof(struct fi_cq_{format})"), bytes));
    }
    // Tables: each function must be at our position.
    let slot = |table: &str, function: &str, place: usize| {
        (format!("offsetof(struct fi_ops_{table}, {function})"), 8 * (place + 1))
    };
    for (table, functions) in TABLES {
        let functions = functions.split(' ').enumerate();
        facts.extend(functions.map(|(place, function)| slot(table, function, place)));
    }
    facts.push(("offsetof(struct fi_ops, ops_set)".to_owned(), 48));
    facts.extend([
        ("FI_CLASS_CNTR".to_owned(), class::CNTR),
        ("FI_CLASS_AV".to_owned(), class::AV),
        ("FI_CLASS_SRX_CTX".to_owned(), class::SRX_CTX),
        ("FI_CLASS_STX_CTX".to_owned(), class::STX_CTX),
        ("FI_CLASS_PEP".to_owned(), class::PEP),
        ("FI_CLASS_WAIT".to_owned(), class::WAIT),
        ("FI_CLASS_POLL".to_owned(), class::POLL),
        ("FI_CLASS_CONNREQ".to_owned(), class::CONNREQ),
        ("FI_EP_MSG".to_owned(), value::EP_MSG as usize),
        ("FI_EP_DGRAM".to_owned(), value::EP_DGRAM as usize),
        ("FI_EP_RDM".to_owned(), value::EP_RDM as usize),
        ("FI_SHARED_CONTEXT".to_owned(), value::SHARED_CONTEXT),
        ("FI_WAIT_SET".to_owned(), value::WAIT_SET as usize),
        ("FI_CONNREQ".to_owned(), value::EVENT_CONNREQ as usize),
        ("FI_CONNECTED".to_owned(), value::EVENT_CONNECTED as usize),
        ("FI_SHUTDOWN".to_owned(), value::EVENT_SHUTDOWN as usize),
        ("FI_PROGRESS_MANUAL".to_owned(), value::PROGRESS_MANUAL as usize),
        ("FI_THREAD_COMPLETION".to_owned(), value::THREAD_COMPLETION as usize),
        ("FI_WAIT_YIELD".to_owned(), value::WAIT_YIELD as usize),
        ("FI_GETWAITOBJ".to_owned(), value::CONTROL_GETWAITOBJ as usize),
        ("FI_AV_COMPLETE".to_owned(), value::EVENT_AV_COMPLETE as usize),
        ("FI_FETCH_ATOMIC".to_owned(), flag::FETCH_ATOMIC as usize),
        ("FI_COMPARE_ATOMIC".to_owned(), flag::COMPARE_ATOMIC as usize),
        ("FI_DIRECTED_RECV".to_owned(), flag::DIRECTED_RECV as usize),
        ("FI_MATCH_COMPLETE".to_owned(), flag::MATCH_COMPLETE as usize),
        ("FI_RMA_EVENT".to_owned(), flag::RMA_EVENT as usize),
        ("FI_MULTI_RECV".to_owned(), flag::MULTI_RECV as usize),
        ("FI_ORDER_SAS".to_owned(), order::SAS as usize),
        ("FI_ENOAV".to_owned(), error::ENOAV.number() as usize),
        ("FI_ENOKEY".to_owned(), error::ENOKEY.number() as usize),
        ("FI_CLASS_MR".to_owned(), class::MR),
        (
            "FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW"
                .to_owned(),
            order::ATOMIC as usize,
        ),
    ]);
    facts
}

/// The functions of the tables that we fill with more than refusals, in order.
const TABLES: [(&str, &str); 15] = [
    ("fabric", "domain passive_ep eq_open wait_open trywait domain2"),
    (
        "domain",
        "av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic query_collective endpoint2",
    ),
    ("av", "insert insertsvc insertsym remove lookup straddr av_set"),
    ("cq", "read readfrom readerr sread sreadfrom signal strerror"),
    ("eq", "read readerr write sread strerror"),
    ("cntr", "read readerr add set wait adderr seterr"),
    ("ep", "cancel getopt setopt tx_ctx rx_ctx rx_size_left tx_size_left"),
    ("cm", "setname getname getpeer connect listen accept reject shutdown join"),
    ("msg", "recv recvv recvmsg send sendv sendmsg inject senddata injectdata"),
    ("mr", "reg regv regattr"),
    ("wait", "wait"),
    ("poll", "poll poll_add poll_del"),
    ("rma", "read readv readmsg write writev writemsg inject writedata injectdata"),
    ("tagged", "recv recvv recvmsg send sendv sendmsg inject senddata injectdata"),
    (
        "atomic",
        "write writev writemsg inject readwrite readwritev readwritemsg compwrite compwritev compwritemsg writevalid readwritevalid compwritevalid",
    ),
];
