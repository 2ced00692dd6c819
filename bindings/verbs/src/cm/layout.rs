//! Compares the structures with those of the installed header.

use super::abi::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

/// Sizes and offsets are those of the header.
#[test]
#[ignore = "needs librdmacm-dev; tools/test-verbs.sh runs it"]
fn layouts_of_connections_are_those_of_the_header() {
    let mut c = String::from("#include <stddef.h>\n#include <rdma/rdma_cma.h>\n");
    macro_rules! same {
        ($($type:ident = $name:literal { $($field:tt = $member:literal),* $(,)? })*) => {$(
            writeln!(c, "_Static_assert(sizeof(struct {}) == {}, \"size of {}\");", $name,
                size_of::<$type>(), $name).unwrap();
            $(writeln!(c, "_Static_assert(offsetof(struct {}, {}) == {}, \"{}\");", $name, $member,
                offset_of!($type, $field), $member).unwrap();)*
        )*};
    }
    same! {
        CmId = "rdma_cm_id" {
            verbs = "verbs", channel = "channel", context = "context", qp = "qp", route = "route",
            ps = "ps", port_num = "port_num", event = "event",
            send_cq_channel = "send_cq_channel", send_cq = "send_cq",
            recv_cq_channel = "recv_cq_channel", recv_cq = "recv_cq", srq = "srq", pd = "pd",
            qp_type = "qp_type",
        }
        Addr = "rdma_addr" { src = "src_addr", dst = "dst_addr", gids = "addr" }
        Gids = "rdma_ib_addr" { sgid = "sgid", dgid = "dgid", pkey = "pkey" }
        Route = "rdma_route" { addr = "addr", path_rec = "path_rec", num_paths = "num_paths" }
        PathRecord = "ibv_sa_path_rec" {
            dgid = "dgid", sgid = "sgid", dlid = "dlid", raw_traffic = "raw_traffic",
            flow_label = "flow_label", hop_limit = "hop_limit", reversible = "reversible",
            numb_path = "numb_path", pkey = "pkey", sl = "sl", mtu = "mtu", rate = "rate",
            packet_life_time = "packet_life_time", preference = "preference",
        }
        ConnParam = "rdma_conn_param" {
            private_data = "private_data", private_data_len = "private_data_len",
            responder_resources = "responder_resources", initiator_depth = "initiator_depth",
            flow_control = "flow_control", retry_count = "retry_count",
            rnr_retry_count = "rnr_retry_count", srq = "srq", qp_num = "qp_num",
        }
        UdParam = "rdma_ud_param" {
            private_data = "private_data", private_data_len = "private_data_len",
            ah_attr = "ah_attr", qp_num = "qp_num", qkey = "qkey",
        }
        CmEvent = "rdma_cm_event" {
            id = "id", listen_id = "listen_id", event = "event", status = "status",
            param = "param",
        }
        AddrInfo = "rdma_addrinfo" {
            flags = "ai_flags", family = "ai_family", qp_type = "ai_qp_type",
            port_space = "ai_port_space", src_len = "ai_src_len", dst_len = "ai_dst_len",
            src_addr = "ai_src_addr", dst_addr = "ai_dst_addr",
            src_canonname = "ai_src_canonname", route_len = "ai_route_len", route = "ai_route",
            connect_len = "ai_connect_len", connect = "ai_connect", next = "ai_next",
        }
        JoinAttr = "rdma_cm_join_mc_attr_ex" {
            comp_mask = "comp_mask", join_flags = "join_flags", addr = "addr",
        }
    }
    for (kind, name) in [
        (Kind::AddrResolved, "ADDR_RESOLVED"),
        (Kind::RouteResolved, "ROUTE_RESOLVED"),
        (Kind::ConnectRequest, "CONNECT_REQUEST"),
        (Kind::ConnectResponse, "CONNECT_RESPONSE"),
        (Kind::ConnectError, "CONNECT_ERROR"),
        (Kind::Unreachable, "UNREACHABLE"),
        (Kind::Rejected, "REJECTED"),
        (Kind::Established, "ESTABLISHED"),
        (Kind::Disconnected, "DISCONNECTED"),
        (Kind::MulticastJoin, "MULTICAST_JOIN"),
        (Kind::MulticastError, "MULTICAST_ERROR"),
        (Kind::TimeWaitExit, "TIMEWAIT_EXIT"),
    ] {
        let number = kind as u32;
        writeln!(c, "_Static_assert(RDMA_CM_EVENT_{name} == {number}, \"{name}\");").unwrap();
    }
    let folder = std::env::temp_dir().join(format!("bellwire-cm-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("layout.c");
    std::fs::write(&file, c).unwrap();
    let done = Command::new("cc").arg("-fsyntax-only").arg(&file).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
