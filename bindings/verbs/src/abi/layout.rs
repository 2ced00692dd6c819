//! Compares the structures with those of the installed header.

use super::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

/// Assertions in C about members at the same place in both, and sizes that are equal.
macro_rules! same {
    ($out:ident; $($type:ident = $name:literal { $($field:tt = $member:literal),* $(,)? })*) => {$(
        writeln!($out, "_Static_assert(sizeof(struct {}) == {}, \"size\");", $name,
            size_of::<$type>()).unwrap();
        members!($out; $type = $name { $($field = $member),* });
    )*};
}

/// Assertions in C about members at the same place in both.
macro_rules! members {
    ($out:ident; $type:ident = $name:literal { $($field:tt = $member:literal),* }) => {$(
        writeln!($out, "_Static_assert(offsetof(struct {}, {}) == {}, \"{}\");", $name, $member,
            offset_of!($type, $field), $member).unwrap();
    )*};
}

/// Sizes and offsets are those of the header. Structures that newer releases made longer are
/// compared up to the end of the installed one.
#[test]
#[ignore = "needs libibverbs-dev; tools/test-verbs.sh runs it"]
fn layouts_are_those_of_the_header() {
    let mut c = String::from("#include <stddef.h>\n#include <infiniband/verbs.h>\n");
    same! { c;
        Device = "ibv_device" { node_type = "node_type", name = "name", ibdev_path = "ibdev_path" }
        ContextOps = "ibv_context_ops" {
            alloc_mw = "alloc_mw", bind_mw = "bind_mw", dealloc_mw = "dealloc_mw",
            poll_cq = "poll_cq", req_notify_cq = "req_notify_cq", post_srq_recv = "post_srq_recv",
            post_send = "post_send", post_recv = "post_recv",
        }
        Context = "ibv_context" {
            ops = "ops", cmd_fd = "cmd_fd", async_fd = "async_fd",
            num_comp_vectors = "num_comp_vectors", mutex = "mutex", abi_compat = "abi_compat",
        }
        Pd = "ibv_pd" { context = "context", handle = "handle" }
        ParentDomainInitAttr = "ibv_parent_domain_init_attr" {
            pd = "pd", td = "td", comp_mask = "comp_mask", alloc = "alloc", free = "free",
            pd_context = "pd_context",
        }
        AllocDmAttr = "ibv_alloc_dm_attr" {
            length = "length", log_align_req = "log_align_req", comp_mask = "comp_mask",
        }
        Dm = "ibv_dm" {
            memcpy_to_dm = "memcpy_to_dm", memcpy_from_dm = "memcpy_from_dm",
            comp_mask = "comp_mask", handle = "handle",
        }
        Mr = "ibv_mr" {
            pd = "pd", addr = "addr", length = "length", handle = "handle", lkey = "lkey",
            rkey = "rkey",
        }
        Mw = "ibv_mw" { pd = "pd", rkey = "rkey", handle = "handle", kind = "type" }
        MwBindInfo = "ibv_mw_bind_info" {
            addr = "addr", length = "length", access = "mw_access_flags",
        }
        MwBind = "ibv_mw_bind" { send_flags = "send_flags", info = "bind_info" }
        CompChannel = "ibv_comp_channel" { fd = "fd", refcnt = "refcnt" }
        Cq = "ibv_cq" {
            channel = "channel", cq_context = "cq_context", handle = "handle", cqe = "cqe",
            mutex = "mutex", cond = "cond", comp_events_completed = "comp_events_completed",
            async_events_completed = "async_events_completed",
        }
        CqEx = "ibv_cq_ex" {
            comp_mask = "comp_mask", status = "status", wr_id = "wr_id",
            start_poll = "start_poll", next_poll = "next_poll", end_poll = "end_poll",
            read_opcode = "read_opcode", read_vendor_err = "read_vendor_err",
            read_byte_len = "read_byte_len", read_imm_data = "read_imm_data",
            read_qp_num = "read_qp_num", read_src_qp = "read_src_qp",
            read_wc_flags = "read_wc_flags", read_slid = "read_slid", read_sl = "read_sl",
            read_dlid_path_bits = "read_dlid_path_bits",
            read_completion_ts = "read_completion_ts", read_cvlan = "read_cvlan",
            read_flow_tag = "read_flow_tag", read_tm_info = "read_tm_info",
            read_completion_wallclock_ns = "read_completion_wallclock_ns",
        }
        CqInitAttrEx = "ibv_cq_init_attr_ex" {
            cq_context = "cq_context", channel = "channel", comp_vector = "comp_vector",
            wc_flags = "wc_flags", comp_mask = "comp_mask", flags = "flags",
        }
        Srq = "ibv_srq" {
            srq_context = "srq_context", pd = "pd", handle = "handle",
            events_completed = "events_completed",
        }
        SrqAttr = "ibv_srq_attr" { max_sge = "max_sge", srq_limit = "srq_limit" }
        SrqInitAttr = "ibv_srq_init_attr" { attr = "attr" }
        Qp = "ibv_qp" {
            qp_context = "qp_context", pd = "pd", send_cq = "send_cq", recv_cq = "recv_cq",
            srq = "srq", handle = "handle", qp_num = "qp_num", state = "state",
            qp_type = "qp_type", mutex = "mutex", events_completed = "events_completed",
        }
        QpInitAttr = "ibv_qp_init_attr" {
            send_cq = "send_cq", recv_cq = "recv_cq", srq = "srq", cap = "cap",
            qp_type = "qp_type", sq_sig_all = "sq_sig_all",
        }
        QpInitAttrEx = "ibv_qp_init_attr_ex" {
            comp_mask = "comp_mask", pd = "pd", xrcd = "xrcd", create_flags = "create_flags",
            max_tso_header = "max_tso_header", rwq_ind_tbl = "rwq_ind_tbl",
            rx_hash_conf = "rx_hash_conf", source_qpn = "source_qpn",
            send_ops_flags = "send_ops_flags",
        }
        AhAttr = "ibv_ah_attr" {
            grh = "grh", dlid = "dlid", is_global = "is_global", port_num = "port_num",
        }
        QpAttr = "ibv_qp_attr" {
            path_mtu = "path_mtu", qkey = "qkey", rq_psn = "rq_psn", sq_psn = "sq_psn",
            dest_qp_num = "dest_qp_num", qp_access_flags = "qp_access_flags", cap = "cap",
            ah_attr = "ah_attr", alt_ah_attr = "alt_ah_attr", pkey_index = "pkey_index",
            sq_draining = "sq_draining", max_rd_atomic = "max_rd_atomic",
            max_dest_rd_atomic = "max_dest_rd_atomic", min_rnr_timer = "min_rnr_timer",
            port_num = "port_num", timeout = "timeout", retry_cnt = "retry_cnt",
            rnr_retry = "rnr_retry", rate_limit = "rate_limit",
        }
        Ah = "ibv_ah" { pd = "pd", handle = "handle" }
        Grh = "ibv_grh" { paylen = "paylen", sgid = "sgid", dgid = "dgid" }
        Sge = "ibv_sge" { address = "addr", length = "length", key = "lkey" }
        SendWr = "ibv_send_wr" {
            next = "next", sg_list = "sg_list", num_sge = "num_sge", opcode = "opcode",
            send_flags = "send_flags", imm_data = "imm_data", wr = "wr", qp_type = "qp_type",
            tail = "bind_mw",
        }
        RecvWr = "ibv_recv_wr" { next = "next", sg_list = "sg_list", num_sge = "num_sge" }
        Wc = "ibv_wc" {
            status = "status", opcode = "opcode", vendor_err = "vendor_err",
            byte_len = "byte_len", imm_data = "imm_data", qp_num = "qp_num", src_qp = "src_qp",
            wc_flags = "wc_flags", pkey_index = "pkey_index", slid = "slid", sl = "sl",
            dlid_path_bits = "dlid_path_bits",
        }
        AsyncEvent = "ibv_async_event" { element = "element", event_type = "event_type" }
        GidEntry = "ibv_gid_entry" {
            gid_index = "gid_index", port_num = "port_num", gid_type = "gid_type",
            ndev_ifindex = "ndev_ifindex",
        }
        DeviceAttr = "ibv_device_attr" {
            node_guid = "node_guid", max_mr_size = "max_mr_size", vendor_id = "vendor_id",
            max_qp = "max_qp", device_cap_flags = "device_cap_flags", max_sge = "max_sge",
            max_cqe = "max_cqe", max_qp_rd_atom = "max_qp_rd_atom", atomic_cap = "atomic_cap",
            max_mw = "max_mw", max_srq = "max_srq", max_pkeys = "max_pkeys",
            phys_port_cnt = "phys_port_cnt",
        }
        ValuesEx = "ibv_values_ex" { raw_clock = "raw_clock" }
    }
    members! { c; QpEx = "ibv_qp_ex" {
        comp_mask = "comp_mask", wr_id = "wr_id", wr_flags = "wr_flags",
        atomic_cmp_swp = "wr_atomic_cmp_swp", bind_mw = "wr_bind_mw", send = "wr_send",
        set_ud_addr = "wr_set_ud_addr", set_sge_list = "wr_set_sge_list", start = "wr_start",
        complete = "wr_complete", abort = "wr_abort", atomic_write = "wr_atomic_write"
    }}
    members! { c; PortAttr = "ibv_port_attr" {
        gid_tbl_len = "gid_tbl_len", max_msg_sz = "max_msg_sz", lid = "lid",
        active_width = "active_width", link_layer = "link_layer", flags = "flags",
        port_cap_flags2 = "port_cap_flags2"
    }}
    members! { c; SrqInitAttrEx = "ibv_srq_init_attr_ex" {
        attr = "attr", comp_mask = "comp_mask", srq_type = "srq_type", pd = "pd"
    }}
    // This one grows at its start: offsets count from the end.
    macro_rules! from_end {
        ($($field:ident = $member:literal),* $(,)?) => {$(
            writeln!(c, "_Static_assert(sizeof(struct verbs_context) - offsetof(struct \
                verbs_context, {0}) == {1}, \"{0}\");", $member,
                size_of::<VerbsContext>() - offset_of!(VerbsContext, $field)).unwrap();
        )*};
    }
    from_end! {
        query_port = "query_port", advise_mr = "advise_mr", alloc_null_mr = "alloc_null_mr",
        alloc_dm = "alloc_dm", alloc_parent_domain = "alloc_parent_domain", alloc_td = "alloc_td",
        modify_cq = "modify_cq", create_wq = "create_wq", query_rt_values = "query_rt_values",
        create_cq_ex = "create_cq_ex", private = "priv", query_device_ex = "query_device_ex",
        open_qp = "open_qp", create_qp_ex = "create_qp_ex", get_srq_num = "get_srq_num",
        create_srq_ex = "create_srq_ex", open_xrcd = "open_xrcd", size = "sz",
        context = "context",
    }
    let folder = std::env::temp_dir().join(format!("bellwire-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("layout.c");
    std::fs::write(&file, c).unwrap();
    let done = Command::new("cc").arg("-fsyntax-only").arg(&file).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
