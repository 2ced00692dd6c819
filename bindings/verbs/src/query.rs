//! Attributes of devices and ports.

use crate::abi::{self, DeviceAttr, GidEntry, PortAttr, ValuesEx};
use crate::context::ContextObject;
use crate::device::DeviceObject;
use crate::errno;
use bellwire_rdma::{GROUPS, LIMITS, MEMBERS, MESSAGE_BYTES};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;

/// `IBV_DEVICE_*`: CURR_QP_STATE_MOD, SYS_IMAGE_GUID, RC_RNR_NAK_GEN, SRQ_RESIZE, MEM_WINDOW,
/// MEM_MGT_EXTENSIONS, MEM_WINDOW_TYPE_2B.
const CAPABILITIES: u32 = 1 << 7 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 21 | 1 << 24;
/// The vendor of no card: an OUI of local administration, as in `HostDevice::guid`.
const VENDOR: u32 = 0x02_6277;
/// `IBV_ATOMIC_HCA`
const ATOMICS: u32 = 1;
/// `IBV_PORT_CM_SUP`, `IBV_PORT_IP_BASED_GIDS`
const PORT_CAPABILITIES: u32 = 1 << 16 | 1 << 26;

pub fn device_attr(device: &DeviceObject) -> DeviceAttr {
    let mut fw_ver = [0; 64];
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    fw_ver[..version.len()].copy_from_slice(version);
    let guid = device.own.guid().to_be();
    let reads = c_int::from(LIMITS.reads);
    let has_groups = device.own.has_multicast();
    DeviceAttr {
        fw_ver,
        node_guid: guid,
        sys_image_guid: guid,
        max_mr_size: 1 << 46,
        page_size_cap: 4096,
        vendor_id: VENDOR,
        vendor_part_id: 1,
        hw_ver: 1,
        max_qp: LIMITS.queue_pairs as c_int,
        max_qp_wr: LIMITS.queue_depth as c_int,
        device_cap_flags: CAPABILITIES,
        max_sge: LIMITS.parts as c_int,
        max_sge_rd: LIMITS.parts as c_int,
        max_cq: LIMITS.completion_queues as c_int,
        max_cqe: LIMITS.completions as c_int,
        max_mr: LIMITS.regions as c_int,
        max_pd: LIMITS.domains as c_int,
        max_qp_rd_atom: reads,
        max_ee_rd_atom: 0,
        max_res_rd_atom: reads * LIMITS.queue_pairs as c_int,
        max_qp_init_rd_atom: reads,
        max_ee_init_rd_atom: 0,
        atomic_cap: ATOMICS,
        max_ee: 0,
        max_rdd: 0,
        max_mw: LIMITS.regions as c_int,
        max_raw_ipv6_qp: 0,
        max_raw_ethy_qp: 0,
        max_mcast_grp: if has_groups { GROUPS as c_int } else { 0 },
        max_mcast_qp_attach: if has_groups { MEMBERS as c_int } else { 0 },
        max_total_mcast_qp_attach: if has_groups { (GROUPS * MEMBERS) as c_int } else { 0 },
        max_ah: 1 << 16,
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: LIMITS.shared_queues as c_int,
        max_srq_wr: LIMITS.queue_depth as c_int,
        max_srq_sge: LIMITS.parts as c_int,
        max_pkeys: 1,
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
    }
}

fn port_attr() -> PortAttr {
    PortAttr {
        state: 4,
        max_mtu: 5,
        active_mtu: 5,
        gid_tbl_len: 1,
        port_cap_flags: PORT_CAPABILITIES,
        max_msg_sz: MESSAGE_BYTES as u32,
        bad_pkey_cntr: 0,
        qkey_viol_cntr: 0,
        pkey_tbl_len: 1,
        lid: 0,
        sm_lid: 0,
        lmc: 0,
        max_vl_num: 1,
        sm_sl: 0,
        subnet_timeout: 0,
        init_type_reply: 0,
        active_width: 2,
        active_speed: 32,
        phys_state: 5,
        link_layer: 2,
        flags: 0,
        port_cap_flags2: 0,
        active_speed_ex: 0,
    }
}

/// Copies as much of `value` as the program has room for.
///
/// # Safety
/// `to` has `room` bytes.
unsafe fn copy_out<T>(value: &T, to: *mut u8, room: usize) {
    let length = room.min(size_of::<T>());
    // SAFETY: the caller's promise; the types have no bytes that must stay secret.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast(), to, length) };
}

pub extern "C" fn query_port(
    _: &abi::Context,
    port: u8,
    attr: *mut PortAttr,
    length: usize,
) -> c_int {
    if port != 1 || attr.is_null() {
        return errno::set(libc::EINVAL);
    }
    // SAFETY: the program's structure has `length` bytes: the header passes its size.
    unsafe { copy_out(&port_attr(), attr.cast(), length) };
    0
}

/// The port for programs that call the exported function: the structure of their time.
pub fn query_port_compat(attr: &mut PortAttr) {
    let length = offset_of!(PortAttr, link_layer);
    // SAFETY: every `struct ibv_port_attr` is at least as long.
    unsafe { copy_out(&port_attr(), std::ptr::from_mut(attr).cast(), length + 2) };
}

/// `struct ibv_device_attr_ex` behind its first member, in words of four bytes.
const EXTENDED_BYTES: usize = 400;

pub extern "C" fn query_device_ex(
    context: &abi::Context,
    _: *const c_void,
    attr: *mut u8,
    length: usize,
) -> c_int {
    if attr.is_null() || length < size_of::<DeviceAttr>() {
        return errno::set(libc::EINVAL);
    }
    #[repr(C)]
    struct Extended {
        orig: DeviceAttr,
        comp_mask: u32,
        odp: [u32; 6],
        timestamp_mask: u64,
        core_clock: u64,
        capabilities: u64,
        unused: [u32; 22],
        max_dm_size: u64,
        atomics_and_odp: [u32; 3],
        ports: u32,
    }
    const _: () = assert!(size_of::<Extended>() == EXTENDED_BYTES);
    let orig = device_attr(ContextObject::of(context).device);
    let capabilities = u64::from(orig.device_cap_flags);
    let value = Extended {
        orig,
        comp_mask: 0,
        odp: [0; 6],
        timestamp_mask: u64::MAX,
        // The clock of completions counts nanoseconds: in kHz.
        core_clock: 1_000_000,
        capabilities,
        unused: [0; 22],
        max_dm_size: crate::dm::BYTES as u64,
        atomics_and_odp: [0; 3],
        ports: 1,
    };
    // SAFETY: the program's structure has `length` bytes: the header passes its size.
    unsafe {
        std::ptr::write_bytes(attr, 0, length);
        copy_out(&value, attr, length);
    }
    0
}

/// The clock of completions, which is `CLOCK_MONOTONIC`.
pub extern "C" fn query_rt_values(_: &abi::Context, values: &mut ValuesEx) -> c_int {
    const RAW_CLOCK: u32 = 1;
    if values.comp_mask != RAW_CLOCK {
        return errno::set(libc::EOPNOTSUPP);
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    values.raw_clock = [now.tv_sec, now.tv_nsec];
    0
}

/// The only entry of the table of GIDs.
pub fn gid_entry(context: &ContextObject) -> GidEntry {
    /// `IBV_GID_TYPE_ROCE_V2`
    const ROCE_V2: u32 = 2;
    GidEntry {
        gid: context.gid,
        gid_index: 0,
        port_num: 1,
        gid_type: ROCE_V2,
        ndev_ifindex: context.device.own.interface.as_ref().map_or(0, |interface| interface.index),
    }
}
