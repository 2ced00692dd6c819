//! The exported calls, in the order of the header. `exports.txt` lists them.

use crate::abi::{
    self, AhAttr, AsyncEvent, Context, DeviceAttr, GidEntry, Grh, Opaque, PortAttr, QpAttr,
    QpInitAttr, SrqAttr, SrqInitAttr, Wc,
};
use crate::ah::{self, Ah};
use crate::cancel;
use crate::channel::Channel;
use crate::context::ContextObject;
use crate::cq::{self, Cq};
use crate::device::{self, DeviceObject};
use crate::errno::{self, answer, object};
use crate::mr::Mr;
use crate::names;
use crate::pd::Pd;
use crate::qp::{self, Qp};
use crate::query;
use crate::srq::{self, Srq};
use bellwire_rdma::{EventKind, Refusal};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

// Devices.

pub extern "C" fn ibv_get_device_list(count: Option<&mut c_int>) -> *mut *const abi::Device {
    device::list(count)
}

pub extern "C" fn ibv_free_device_list(list: *mut *const abi::Device) {
    device::free_list(list);
}

pub extern "C" fn ibv_get_device_name(device: &'static abi::Device) -> *const c_char {
    DeviceObject::of(device).name().as_ptr()
}

pub extern "C" fn ibv_get_device_guid(device: &'static abi::Device) -> u64 {
    DeviceObject::of(device).own.guid().to_be()
}

pub extern "C" fn ibv_get_device_index(device: &'static abi::Device) -> c_int {
    DeviceObject::of(device).index as c_int
}

pub extern "C" fn ibv_open_device(device: &'static abi::Device) -> *mut Context {
    let device = DeviceObject::of(device);
    let opened = device::open_one_at_a_time(|| ContextObject::open(device));
    if let Err(refusal) = &opened {
        // The program's own message says only that it failed.
        eprintln!("bellwire: {} cannot be opened: {refusal}", device.name().to_string_lossy());
    }
    crate::context::publish("ibv_open_device", opened)
}

pub extern "C" fn ibv_close_device(context: Option<NonNull<Context>>) -> c_int {
    let Some(context) = context else { return errno::set(libc::EINVAL) };
    crate::context::close(context);
    0
}

// Attributes.

pub extern "C" fn ibv_query_device(context: &Context, attr: &mut DeviceAttr) -> c_int {
    *attr = query::device_attr(ContextObject::of(context).device);
    0
}

pub extern "C" fn ibv_query_port(_: &Context, port: u8, attr: &mut PortAttr) -> c_int {
    if port != 1 {
        return errno::set(libc::EINVAL);
    }
    query::query_port_compat(attr);
    0
}

pub extern "C" fn ibv_query_gid(
    context: &Context,
    port: u8,
    index: c_int,
    gid: &mut [u8; 16],
) -> c_int {
    if port != 1 || index != 0 {
        errno::set(libc::EINVAL);
        return -1;
    }
    *gid = ContextObject::of(context).gid;
    0
}

pub extern "C" fn _ibv_query_gid_ex(
    context: &Context,
    port: u32,
    index: u32,
    entry: &mut GidEntry,
    flags: u32,
    size: usize,
) -> c_int {
    if flags != 0 || size < size_of::<GidEntry>() {
        return errno::set(libc::EOPNOTSUPP);
    }
    if port != 1 || index != 0 {
        return errno::set(libc::ENODATA);
    }
    *entry = query::gid_entry(ContextObject::of(context));
    0
}

pub extern "C" fn _ibv_query_gid_table(
    context: &Context,
    entries: *mut u8,
    most: usize,
    flags: u32,
    size: usize,
) -> isize {
    if flags != 0 || size < size_of::<GidEntry>() {
        return -(errno::set(libc::EOPNOTSUPP) as isize);
    }
    if most == 0 {
        return -(errno::set(libc::EINVAL) as isize);
    }
    let entry = query::gid_entry(ContextObject::of(context));
    // SAFETY: `most` entries of `size` bytes: ibv_query_gid_table(3).
    unsafe { entries.cast::<GidEntry>().write_unaligned(entry) };
    1
}

pub extern "C" fn ibv_query_gid_type(
    _: &Context,
    port: u8,
    index: u32,
    gid_type: &mut u32,
) -> c_int {
    /// `IBV_GID_TYPE_SYSFS_ROCE_V2`
    const ROCE_V2: u32 = 1;
    if port != 1 || index != 0 {
        errno::set(libc::EINVAL);
        return -1;
    }
    *gid_type = ROCE_V2;
    0
}

pub extern "C" fn ibv_query_pkey(_: &Context, port: u8, index: c_int, pkey: &mut u16) -> c_int {
    if port != 1 || index != 0 {
        errno::set(libc::EINVAL);
        return -1;
    }
    *pkey = u16::MAX;
    0
}

pub extern "C" fn ibv_get_pkey_index(_: &Context, port: u8, pkey: u16) -> c_int {
    if port != 1 || pkey != u16::MAX {
        errno::set(libc::EINVAL);
        return -1;
    }
    0
}

// Protection domains and memory.

pub extern "C" fn ibv_alloc_pd(context: &Context) -> *mut Pd {
    object("ibv_alloc_pd", Pd::new(context))
}

pub extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: null, or a domain of `ibv_alloc_pd`.
    let Some(own) = (unsafe { pd.as_ref() }) else { return errno::set(libc::EINVAL) };
    let ended = own.end();
    if ended.is_ok() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(pd) });
    }
    answer("ibv_dealloc_pd", ended)
}

pub extern "C" fn ibv_reg_mr(pd: &Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr {
    object("ibv_reg_mr", Mr::new(pd, addr, length, addr as u64, access as u32))
}

pub extern "C" fn ibv_reg_mr_iova(
    pd: &Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut Mr {
    object("ibv_reg_mr_iova", Mr::new(pd, addr, length, iova, access as u32))
}

pub extern "C" fn ibv_reg_mr_iova2(
    pd: &Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: u32,
) -> *mut Mr {
    object("ibv_reg_mr_iova2", Mr::new(pd, addr, length, iova, access))
}

pub extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    // SAFETY: null, or a region of `ibv_reg_mr`.
    let Some(own) = (unsafe { mr.as_ref() }) else { return errno::set(libc::EINVAL) };
    let ended = own.end();
    if ended.is_ok() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(mr) });
    }
    answer("ibv_dereg_mr", ended)
}

pub extern "C" fn ibv_rereg_mr(
    mr: &Mr,
    flags: c_int,
    pd: Option<&Pd>,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    /// `IBV_REREG_MR_ERR_INPUT`
    const ERR_INPUT: c_int = -1;
    match mr.change(flags as u32, pd, (addr, length), access as u32) {
        Ok(()) => 0,
        Err(refusal) => {
            answer("ibv_rereg_mr", Err(refusal));
            ERR_INPUT
        }
    }
}

// Completion queues and their channels.

pub extern "C" fn ibv_create_comp_channel(context: &Context) -> *mut Channel {
    object("ibv_create_comp_channel", Channel::new(context).map_err(Refusal::System))
}

pub extern "C" fn ibv_destroy_comp_channel(channel: *mut Channel) -> c_int {
    // SAFETY: null, or a channel of `ibv_create_comp_channel`.
    let Some(own) = (unsafe { channel.as_ref() }) else { return errno::set(libc::EINVAL) };
    if own.count(0) > 0 {
        return errno::set(libc::EBUSY);
    }
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(channel) });
    0
}

pub extern "C" fn ibv_create_cq(
    context: &Context,
    depth: c_int,
    cq_context: Opaque,
    channel: Option<&Channel>,
    vector: c_int,
) -> *mut Cq {
    let made = cq::create(context, depth, cq_context, channel, vector as u32);
    made.unwrap_or_else(|refusal| {
        answer("ibv_create_cq", Err(refusal));
        null_mut()
    })
}

pub extern "C" fn ibv_resize_cq(cq: &Cq, depth: c_int) -> c_int {
    let entries = usize::try_from(depth).unwrap_or(0);
    let result = cq.context().lock().resize_queue(cq.id.get(), entries);
    if result.is_ok() {
        cq.abi.cq.cqe.store(depth, Ordering::Relaxed);
    }
    answer("ibv_resize_cq", result)
}

pub extern "C" fn ibv_destroy_cq(cq: *mut Cq) -> c_int {
    answer("ibv_destroy_cq", cq::destroy(cq))
}

pub extern "C-unwind" fn ibv_get_cq_event(
    channel: &Channel,
    cq: &mut *const Cq,
    cq_context: &mut Opaque,
) -> c_int {
    match cancel::repeat(|| channel.context().next_event(&channel.queue)) {
        Ok(object) => {
            *cq = object as *const Cq;
            // SAFETY: an event is removed before its queue ends.
            let own = unsafe { &**cq };
            own.events.take();
            *cq_context = own.abi.cq.cq_context;
            0
        }
        Err(error) => {
            errno::set(error.raw_os_error().unwrap_or(libc::EIO));
            -1
        }
    }
}

pub extern "C" fn ibv_ack_cq_events(cq: &Cq, count: u32) {
    let completed = cq.events.acknowledge(count);
    cq.abi.cq.comp_events_completed.store(completed, Ordering::Relaxed);
}

// Shared receive queues.

pub extern "C" fn ibv_create_srq(pd: &Pd, attr: &mut SrqInitAttr) -> *mut Srq {
    srq::answer("ibv_create_srq", srq::create(pd, attr.srq_context, &mut attr.attr))
}

pub extern "C" fn ibv_modify_srq(srq: &Srq, attr: &SrqAttr, mask: c_int) -> c_int {
    let depth = (mask & 1 != 0).then_some(attr.max_wr as usize);
    let limit = (mask & 2 != 0).then_some(attr.srq_limit as usize);
    answer("ibv_modify_srq", srq.context().lock().modify_shared(srq.id, depth, limit))
}

pub extern "C" fn ibv_query_srq(srq: &Srq, attr: &mut SrqAttr) -> c_int {
    let result = srq.context().lock().query_shared(srq.id).map(|(depth, parts, limit)| {
        *attr = SrqAttr { max_wr: depth as u32, max_sge: parts as u32, srq_limit: limit as u32 };
    });
    answer("ibv_query_srq", result)
}

pub extern "C" fn ibv_destroy_srq(srq: *mut Srq) -> c_int {
    answer("ibv_destroy_srq", srq::destroy(srq))
}

// Queue pairs.

pub extern "C" fn ibv_create_qp(pd: &Pd, attr: &mut QpInitAttr) -> *mut Qp {
    qp::create_plain(pd, attr)
}

pub extern "C" fn ibv_query_qp(
    qp: &Qp,
    attr: &mut QpAttr,
    _: c_int,
    init: &mut QpInitAttr,
) -> c_int {
    answer("ibv_query_qp", qp::query(qp, attr, init))
}

pub extern "C" fn ibv_modify_qp(qp: &Qp, attr: &QpAttr, mask: c_int) -> c_int {
    answer("ibv_modify_qp", qp::modify(qp, attr, mask as u32))
}

pub extern "C" fn ibv_destroy_qp(qp: *mut Qp) -> c_int {
    answer("ibv_destroy_qp", qp::destroy(qp))
}

/// The LID counts on InfiniBand only.
pub extern "C" fn ibv_attach_mcast(qp: &Qp, gid: &[u8; 16], _lid: u16) -> c_int {
    answer("ibv_attach_mcast", qp::attach(qp, gid))
}

pub extern "C" fn ibv_detach_mcast(qp: &Qp, gid: &[u8; 16], _lid: u16) -> c_int {
    answer("ibv_detach_mcast", qp::detach(qp, gid))
}

pub extern "C" fn ibv_qp_to_qp_ex(qp: *mut Qp) -> *mut Qp {
    // SAFETY: null, or a queue pair of `ibv_create_qp` or `ibv_create_qp_ex`.
    let is_extended = unsafe { qp.as_ref() }.is_some_and(|qp| qp.is_extended);
    if is_extended { qp } else { null_mut() }
}

/// No order within a message is promised.
pub extern "C" fn ibv_query_qp_data_in_order(_: &Qp, _: u32, _: u32) -> c_int {
    0
}

/// There are no options of a vendor.
pub extern "C" fn ibv_query_ece(_: &Qp, ece: &mut [u32; 3]) -> c_int {
    *ece = [0; 3];
    0
}

pub extern "C" fn ibv_set_ece(_: &Qp, ece: &[u32; 3]) -> c_int {
    if *ece == [0; 3] { 0 } else { errno::set(libc::EOPNOTSUPP) }
}

// Address handles.

pub extern "C" fn ibv_create_ah(pd: &Pd, attr: &AhAttr) -> *mut Ah {
    object("ibv_create_ah", Ah::new(pd, attr))
}

pub extern "C" fn ibv_destroy_ah(ah: *mut Ah) -> c_int {
    if ah.is_null() {
        return errno::set(libc::EINVAL);
    }
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(ah) });
    0
}

pub extern "C" fn ibv_init_ah_from_wc(
    _: &Context,
    _: u8,
    wc: &Wc,
    grh: Option<&Grh>,
    attr: &mut AhAttr,
) -> c_int {
    match ah::path_back(wc, grh) {
        Some(path) => {
            *attr = path;
            0
        }
        None => {
            errno::set(libc::EINVAL);
            -1
        }
    }
}

pub extern "C" fn ibv_create_ah_from_wc(pd: &Pd, wc: &Wc, grh: Option<&Grh>, _: u8) -> *mut Ah {
    let path = ah::path_back(wc, grh).ok_or(Refusal::Invalid("the datagram has no route header"));
    object("ibv_create_ah_from_wc", path.and_then(|path| Ah::new(pd, &path)))
}

// Asynchronous events.

/// What the element of an event is.
enum Element {
    Cq,
    Qp,
    Srq,
}

fn element_of(kind: u32) -> Element {
    const SRQ_ERR: u32 = 14;
    match kind {
        kind if kind == EventKind::CompletionQueueError as u32 => Element::Cq,
        kind if kind == EventKind::SharedReceiveLimit as u32 || kind == SRQ_ERR => Element::Srq,
        _ => Element::Qp,
    }
}

/// The count of the events of an element.
fn events_of(event: &AsyncEvent) -> Option<&'static crate::event::Acknowledged> {
    // SAFETY: an event is removed before its object ends, and the program acknowledges it before.
    unsafe {
        match element_of(event.event_type) {
            Element::Cq => (event.element as *const Cq).as_ref().map(|cq| &cq.async_events),
            Element::Qp => (event.element as *const Qp).as_ref().map(|qp| &qp.async_events),
            Element::Srq => (event.element as *const Srq).as_ref().map(|srq| &srq.async_events),
        }
    }
}

pub extern "C-unwind" fn ibv_get_async_event(context: &Context, event: &mut AsyncEvent) -> c_int {
    match cancel::repeat(|| ContextObject::of(context).events.next()) {
        Ok(next) => {
            *event = AsyncEvent { element: next.object, event_type: next.kind as u32 };
            events_of(event).into_iter().for_each(crate::event::Acknowledged::take);
            0
        }
        Err(error) => {
            errno::set(error.raw_os_error().unwrap_or(libc::EIO));
            -1
        }
    }
}

pub extern "C" fn ibv_ack_async_event(event: &AsyncEvent) {
    if let Some(events) = events_of(event) {
        events.acknowledge(1);
    }
}

// Names and rates.

pub extern "C" fn ibv_node_type_str(value: u32) -> *const c_char {
    names::node_type(value).as_ptr()
}

pub extern "C" fn ibv_port_state_str(value: u32) -> *const c_char {
    names::port_state(value).as_ptr()
}

pub extern "C" fn ibv_event_type_str(value: u32) -> *const c_char {
    names::event_type(value).as_ptr()
}

pub extern "C" fn ibv_wc_status_str(value: u32) -> *const c_char {
    names::wc_status(value).as_ptr()
}

pub extern "C" fn ibv_rate_to_mult(rate: u32) -> c_int {
    names::rate_to_mult(rate)
}

pub extern "C" fn mult_to_ibv_rate(mult: c_int) -> u32 {
    names::mult_to_rate(mult)
}

pub extern "C" fn ibv_rate_to_mbps(rate: u32) -> c_int {
    names::rate_to_mbps(rate)
}

pub extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> u32 {
    names::mbps_to_rate(mbps)
}

// Fork.

pub extern "C" fn ibv_fork_init() -> c_int {
    crate::fork::init();
    0
}

pub extern "C" fn ibv_is_fork_initialized() -> c_int {
    crate::fork::is_initialized()
}

pub extern "C" fn ibv_dontfork_range(_: *mut c_void, _: usize) -> c_int {
    0
}

pub extern "C" fn ibv_dofork_range(_: *mut c_void, _: usize) -> c_int {
    0
}

// Sysfs.

pub extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    static PATH: OnceLock<std::ffi::CString> = OnceLock::new();
    PATH.get_or_init(|| std::ffi::CString::new(crate::sysfs::folder()).unwrap_or_default()).as_ptr()
}

/// Writes a text and a zero byte, and returns its length; -1: there is no such text.
fn write_text(text: Option<String>, buffer: *mut u8, size: usize) -> c_int {
    let Some(text) = text.filter(|_| !buffer.is_null() && size > 0) else {
        errno::set(libc::ENOENT);
        return -1;
    };
    let length = text.len().min(size - 1);
    // SAFETY: the program gives `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, length);
        buffer.add(length).write(0);
    }
    length as c_int
}

pub extern "C" fn ibv_read_sysfs_file(
    folder: *const c_char,
    file: *const c_char,
    buffer: *mut u8,
    size: usize,
) -> c_int {
    if folder.is_null() || file.is_null() {
        errno::set(libc::EINVAL);
        return -1;
    }
    // SAFETY: strings for as long as the call lasts.
    let [folder, file] = [folder, file].map(|text| unsafe { CStr::from_ptr(text) });
    let path = format!("{}/{}", folder.to_string_lossy(), file.to_string_lossy());
    let known = device::devices().iter().find_map(|device| {
        let name = device.name().to_string_lossy();
        let below = path.split_once(&format!("/infiniband/{name}/"))?;
        crate::sysfs::attribute(device, below.1)
    });
    let text = known.or_else(|| std::fs::read_to_string(&path).ok());
    write_text(text.map(|text| text.trim_end().to_owned()), buffer, size)
}

pub extern "C" fn ibv_read_ibdev_sysfs_file(
    buffer: *mut u8,
    size: usize,
    device: &'static abi::Device,
    file: *const c_char,
) -> c_int {
    if file.is_null() {
        errno::set(libc::EINVAL);
        return -1;
    }
    // SAFETY: a string for as long as the call lasts. Programs pass it without conversions.
    let file = unsafe { CStr::from_ptr(file) }.to_string_lossy();
    write_text(crate::sysfs::attribute(DeviceObject::of(device), &file), buffer, size)
}
