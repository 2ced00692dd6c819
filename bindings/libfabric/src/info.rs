//! `fi_getinfo`: describes this provider if it meets the program's hints.

use crate::abi::{Fid, Info, error, flag, order, value};
use crate::address;
use crate::host;
use crate::library::{Level, library, log};
use crate::settings;
use bellwire_tagged::OPERAND_BYTES;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ptr::null_mut;

/// All capabilities of any kind of endpoint. Listed ones work; others are refused.
const CAPS: u64 = TX_CAPS | RX_CAPS | flag::LOCAL_COMM | flag::REMOTE_COMM;
const TX_CAPS: u64 = flag::MSG | flag::TAGGED | flag::SEND | ACCESS_CAPS | flag::READ | flag::WRITE;
const RX_CAPS: u64 = flag::MSG
    | flag::TAGGED
    | flag::RECV
    | flag::MULTI_RECV
    | FROM_ANYBODY
    | ACCESS_CAPS
    | flag::REMOTE_READ
    | flag::REMOTE_WRITE
    | flag::RMA_EVENT;
/// Capabilities that make sense only with several peers.
const FROM_ANYBODY: u64 = flag::DIRECTED_RECV | flag::SOURCE;
/// Capabilities that shared receives do not offer, because they belong to no endpoint's buffers and
/// peers.
pub const NOT_SHARED: u64 = flag::MULTI_RECV | flag::DIRECTED_RECV;

/// A kind of endpoint.
struct Kind {
    value: c_int,
    caps: u64,
    /// Orders that are kept, of messages and of atomics.
    orders: u64,
    /// Longest message, and longest injected one, in bytes.
    message_bytes: usize,
    inject_bytes: usize,
    /// The meaning of 0 in `control_progress`.
    control_progress: c_int,
}

/// All kinds, in the order of the answer.
const KINDS: [Kind; 3] = [
    Kind {
        value: value::EP_RDM,
        caps: CAPS,
        orders: order::SAS | order::ATOMIC,
        message_bytes: MESSAGE_BYTES,
        inject_bytes: INJECT_BYTES,
        control_progress: value::PROGRESS_AUTO,
    },
    Kind {
        value: value::EP_MSG,
        caps: CAPS & !FROM_ANYBODY,
        orders: order::SAS | order::ATOMIC,
        message_bytes: MESSAGE_BYTES,
        inject_bytes: INJECT_BYTES,
        // Connections progress while the program reads an event queue.
        control_progress: value::PROGRESS_MANUAL,
    },
    Kind {
        value: value::EP_DGRAM,
        caps: flag::MSG
            | flag::SEND
            | flag::RECV
            | flag::MULTI_RECV
            | FROM_ANYBODY
            | flag::LOCAL_COMM
            | flag::REMOTE_COMM,
        orders: order::SAS,
        message_bytes: DATAGRAM_BYTES,
        inject_bytes: DATAGRAM_BYTES,
        control_progress: value::PROGRESS_AUTO,
    },
];
/// Capabilities to access peers' memory.
pub const ACCESS_CAPS: u64 = flag::RMA | flag::ATOMIC;
/// Flags that every transmission of an endpoint may have.
const TX_FLAGS: u64 = flag::COMPLETION
    | flag::INJECT
    | flag::INJECT_COMPLETE
    | flag::TRANSMIT_COMPLETE
    | flag::DELIVERY_COMPLETE
    | flag::MATCH_COMPLETE;
const RX_FLAGS: u64 = flag::COMPLETION | flag::MULTI_RECV;
/// Longest injected message, in bytes.
pub const INJECT_BYTES: usize = 16 << 10;
const MESSAGE_BYTES: usize = 1 << 40;
/// Longest datagram in bytes: every device carries it in one piece.
pub const DATAGRAM_BYTES: usize = 8000;
/// The first interface version with bits for memory registration.
pub const VERSION_1_5: u32 = 1 << 16 | 5;
/// Operations, and completions, that can wait.
pub const DEPTH: usize = 4096;
/// Most regions of memory that peers may use.
const REGIONS: usize = 16_384;
/// Most buffers of one message.
pub const IOV_LIMIT: usize = 4;

/// The provider's `getinfo` operation.
///
/// # Safety
/// As `fi_getinfo` describes it.
pub unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    into: *mut *mut Info,
) -> c_int {
    crate::object::given!(into);
    // SAFETY: the program's strings, its hints, and a place for the answer.
    unsafe {
        let text = |text: *const c_char| (!text.is_null()).then(|| CStr::from_ptr(text));
        match find(version, text(node), text(service), flags, hints.as_ref()) {
            Ok(info) => {
                into.write(info);
                0
            }
            Err(error) => -error,
        }
    }
}

/// # Safety
/// The hints' pointers are null or valid.
unsafe fn find(
    version: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Info>,
) -> Result<*mut Info, c_int> {
    let library = library().ok_or(error::ENODATA)?;
    let mut kinds: Vec<&Kind> = KINDS.iter().collect();
    if flags & flag::CORE_PROV_ONLY != 0 {
        // With only the first kind: from the other kinds a utility provider would build the first
        // one again with one more protocol, and hide the real one.
        kinds.retain(|kind| kind.value == value::EP_RDM);
    }
    if let Some(hints) = hints {
        // SAFETY: the caller's promise.
        let wanted = unsafe { hints.ep_attr.as_ref() }.map_or(value::EP_UNSPEC, |ep| ep.kind);
        kinds.retain(|kind| [value::EP_UNSPEC, kind.value].contains(&wanted));
        let mut refused = None;
        // SAFETY: the caller's promise.
        kinds.retain(|kind| match unsafe { check(kind, hints, version) } {
            Ok(()) => true,
            Err(what) => {
                refused.get_or_insert(what);
                false
            }
        });
        if kinds.is_empty() {
            let what = refused.unwrap_or("another kind of endpoint");
            log(Level::Info, &format!("not offered: the program asks for {what}"));
            return Err(error::ENODATA);
        }
    }
    let settings = settings::read(library);
    // SAFETY: the program's addresses have the stated lengths.
    let (source, destination) = unsafe { ends(node, service, flags, hints) }?;
    let mut device = match &settings.device {
        Some(device) => device.clone(),
        None => {
            let own = match (source, destination) {
                (Some(source), _) if !source.ip().is_unspecified() => Some(*source.ip()),
                (_, Some(to)) if settings.interface.is_none() => host::address_towards(*to.ip()),
                _ => host::own_address(settings.interface.as_deref()),
            };
            let Some(own) = own else {
                let name = settings.interface.unwrap_or_default();
                log(
                    Level::Warn,
                    &format!(
                        "FI_BELLWIRE_IFACE={name}: no such interface, or it has no IPv4 address; `ip -4 address` lists them"
                    ),
                );
                return Err(error::ENODATA);
            };
            format!("auto:udp:{own}")
        }
    };
    if let Some(wanted) = hints
        // SAFETY: the hints' pointers are null or valid, and names are strings.
        .and_then(|hints| unsafe { hints.domain_attr.as_ref() })
        .filter(|domain| !domain.name.is_null())
    {
        // SAFETY: as above.
        let wanted = unsafe { CStr::from_ptr(wanted.name) }.to_string_lossy().into_owned();
        if wanted != device && !(settings.device.is_none() && is_ours(&wanted)) {
            return Err(error::ENODATA);
        }
        device = wanted;
    }
    let mut first = null_mut();
    for kind in kinds.iter().rev() {
        // SAFETY: as for `find`; the infos are in a list that the library frees.
        unsafe {
            match answer(kind, hints, version, &device, source, destination) {
                Ok(made) => {
                    (*made).next = first;
                    first = made;
                }
                Err(error) => {
                    library.free_info(first);
                    return Err(error);
                }
            }
        }
    }
    Ok(first)
}

/// The address of a device, if its name contains one; unspecified otherwise.
fn address_of(device: &str) -> SocketAddrV4 {
    let ip = device.rsplit(':').next().and_then(|ip| ip.parse().ok());
    SocketAddrV4::new(ip.unwrap_or(Ipv4Addr::UNSPECIFIED), 0)
}

/// Whether a domain's name could be one of ours.
fn is_ours(name: &str) -> bool {
    name.strip_prefix("auto:udp:").is_some_and(|ip| ip.parse::<Ipv4Addr>().is_ok())
}

/// The hint that endpoints of this kind do not meet; `Ok`: they meet all.
///
/// # Safety
/// The hints' pointers are null or valid.
unsafe fn check(kind: &Kind, hints: &Info, version: u32) -> Result<(), &'static str> {
    let all = |has: u64, wanted: u64, what| if wanted & !has == 0 { Ok(()) } else { Err(what) };
    let one = |good: bool, what| if good { Ok(()) } else { Err(what) };
    // Capabilities of both directions may come without their kinds.
    all(kind.caps, hints.caps, "capabilities that it does not have")?;
    let formats = [0, value::SOCKADDR, value::SOCKADDR_IN];
    one(formats.contains(&hints.addr_format), "another format of addresses than sockaddr_in")?;
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(fabric) = hints.fabric_attr.as_ref() {
            let is = |text: *mut c_char, name: &str| {
                text.is_null() || CStr::from_ptr(text).to_string_lossy().eq_ignore_ascii_case(name)
            };
            one(is(fabric.prov_name, "bellwire"), "another provider")?;
            one(is(fabric.name, "bellwire"), "another fabric")?;
        }
        if let Some(ep) = hints.ep_attr.as_ref() {
            one([0, value::PROTOCOL].contains(&ep.protocol), "another protocol")?;
            one(ep.max_msg_size <= kind.message_bytes, "longer messages")?;
            one(ep.msg_prefix_size == 0, "room before messages")?;
            one(ep.auth_key_size == 0, "authorization keys")?;
            let single = |count: usize| count <= 1 || count == value::SHARED_CONTEXT;
            one(single(ep.tx_ctx_cnt) && single(ep.rx_ctx_cnt), "several contexts of an endpoint")?;
            one(
                ep.rx_ctx_cnt != value::SHARED_CONTEXT || hints.caps & NOT_SHARED == 0,
                "buffers for many messages, or receives from one peer, that endpoints share",
            )?;
            one(
                [ep.max_order_raw_size, ep.max_order_war_size, ep.max_order_waw_size]
                    .iter()
                    .all(|&size| size <= OPERAND_BYTES),
                "an order of longer remote accesses",
            )?;
        }
        if let Some(domain) = hints.domain_attr.as_ref() {
            one((0..=5).contains(&domain.threading), "an unknown level of threads")?;
            for progress in [domain.control_progress, domain.data_progress] {
                one((0..=2).contains(&progress), "an unknown way to make progress")?;
            }
            one(
                (0..=value::AV_TABLE).contains(&domain.av_type),
                "an unknown kind of address vector",
            )?;
            one(domain.cq_data_size <= 8, "more than 8 bytes of remote data")?;
            one(domain.mr_key_size <= 8, "longer keys")?;
            // Without accesses by peers the registration mode does not matter.
            let basic = domain.mr_mode & value::MR_BASIC != 0 && hints.caps & ACCESS_CAPS != 0;
            let known = version < VERSION_1_5 || domain.mr_mode & value::MR_SCALABLE == 0;
            let known = known || domain.mr_mode == value::MR_SCALABLE;
            one(!basic && known, "memory that is registered in the manner of FI_MR_BASIC")?;
            one(domain.mr_cnt <= REGIONS, "more regions of memory")?;
            one(domain.auth_key_size == 0, "authorization keys")?;
            one(
                domain.caps & !(flag::LOCAL_COMM | flag::REMOTE_COMM) == 0,
                "capabilities of a domain",
            )?;
        }
        if let Some(tx) = hints.tx_attr.as_ref() {
            all(kind.caps, tx.caps, "capabilities to send that it does not have")?;
            all(TX_FLAGS, tx.op_flags, "flags to send with that it does not have")?;
            all(kind.orders, tx.msg_order, "an order of messages that it does not keep")?;
            one(tx.comp_order == 0, "an order of completions")?;
            one(tx.inject_size <= kind.inject_bytes, "longer injected messages")?;
            one(tx.size <= DEPTH, "more transmissions that wait")?;
            one(tx.iov_limit <= IOV_LIMIT, "messages of more parts")?;
            one(tx.rma_iov_limit <= 1, "remote accesses of several parts")?;
        }
        if let Some(rx) = hints.rx_attr.as_ref() {
            all(kind.caps, rx.caps, "capabilities to receive that it does not have")?;
            all(RX_FLAGS, rx.op_flags, "flags to receive with that it does not have")?;
            all(kind.orders, rx.msg_order, "an order of messages that it does not keep")?;
            one(rx.comp_order == 0, "an order of completions")?;
            one(rx.size <= 65_536, "more receives that wait")?;
            one(rx.iov_limit <= IOV_LIMIT, "receives of more parts")?;
        }
    }
    Ok(())
}

type Ends = (Option<SocketAddrV4>, Option<SocketAddrV4>);

/// The source and destination that the program names.
///
/// # Safety
/// The hints' addresses are null or have the stated lengths.
unsafe fn ends(
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Info>,
) -> Result<Ends, c_int> {
    let given = |address: *mut c_void, length: usize| {
        if address.is_null() || length < address::BYTES {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { address::read(address) }
    };
    let (mut source, mut destination) = match hints {
        None => (None, None),
        Some(hints) => {
            (given(hints.src_addr, hints.src_addrlen), given(hints.dest_addr, hints.dest_addrlen))
        }
    };
    if flags & flag::PROV_ATTR_ONLY != 0 || (node.is_none() && service.is_none()) {
        return Ok((source, destination));
    }
    let numeric = flags & flag::NUMERICHOST != 0;
    let found = host::look_up(node, service, numeric).ok_or(error::ENODATA)?;
    if flags & flag::SOURCE != 0 {
        source = Some(found);
    } else if node.is_some() {
        destination = Some(found);
    }
    Ok((source, destination))
}

/// Makes the answer.
///
/// # Safety
/// The hints' pointers are null or valid.
unsafe fn answer(
    kind: &Kind,
    hints: Option<&Info>,
    version: u32,
    device: &str,
    source: Option<SocketAddrV4>,
    destination: Option<SocketAddrV4>,
) -> Result<*mut Info, c_int> {
    let made = library().ok_or(error::ENODATA)?.new_info();
    // SAFETY: the library's info has all attributes, with at least the sizes that we know. Pointers
    // of the hints are null or valid.
    unsafe {
        let info = made.as_mut().ok_or(error::ENOMEM)?;
        let hint_domain = hints.and_then(|hints| hints.domain_attr.as_ref());
        let hint_tx = hints.and_then(|hints| hints.tx_attr.as_ref());
        let hint_rx = hints.and_then(|hints| hints.rx_attr.as_ref());
        let hint_ep = hints.and_then(|hints| hints.ep_attr.as_ref());
        let shares = |count: Option<usize>| count == Some(value::SHARED_CONTEXT);
        let shared = shares(hint_ep.map(|hint| hint.rx_ctx_cnt));
        info.caps = match hints.map(|hints| hints.caps) {
            // Capabilities with a cost when unused must be requested.
            None | Some(0) => {
                kind.caps & !flag::RMA_EVENT & if shared { !NOT_SHARED } else { u64::MAX }
            }
            Some(caps) => complete(caps),
        };
        info.handle = hints.map_or(null_mut(), |hints| hints.handle);
        info.addr_format = value::SOCKADDR_IN;
        let source = source.filter(|source| !source.ip().is_unspecified() || source.port() != 0);
        let source = source.unwrap_or_else(|| address_of(device));
        set_address(&mut info.src_addr, &mut info.src_addrlen, Some(source))?;
        set_address(&mut info.dest_addr, &mut info.dest_addrlen, destination)?;

        let tx = &mut *info.tx_attr;
        tx.caps = info.caps & TX_CAPS;
        tx.op_flags = hint_tx.map_or(0, |hint| hint.op_flags);
        tx.msg_order = kind.orders;
        tx.inject_size = kind.inject_bytes;
        tx.size = DEPTH;
        tx.iov_limit = IOV_LIMIT;
        tx.rma_iov_limit = 1;

        let rx = &mut *info.rx_attr;
        rx.caps = info.caps & RX_CAPS;
        rx.op_flags = hint_rx.map_or(0, |hint| hint.op_flags);
        rx.msg_order = kind.orders;
        rx.size = 65_536;
        rx.iov_limit = IOV_LIMIT;

        let ep = &mut *info.ep_attr;
        ep.kind = kind.value;
        ep.protocol = value::PROTOCOL;
        ep.protocol_version = 1;
        ep.max_msg_size = kind.message_bytes;
        ep.mem_tag_format = u64::MAX;
        // Only atomics: other accesses keep no order.
        let ordered = if kind.orders & order::ATOMIC != 0 { OPERAND_BYTES } else { 0 };
        ep.max_order_raw_size = ordered;
        ep.max_order_war_size = ordered;
        ep.max_order_waw_size = ordered;
        let contexts = |shared| if shared { value::SHARED_CONTEXT } else { 1 };
        ep.tx_ctx_cnt = contexts(shares(hint_ep.map(|hint| hint.tx_ctx_cnt)));
        ep.rx_ctx_cnt = contexts(shared);

        let domain = &mut *info.domain_attr;
        let or = |hint: Option<c_int>, ours: c_int| match hint {
            None | Some(0) => ours,
            Some(hint) => hint,
        };
        domain.name = text(device);
        domain.threading = or(hint_domain.map(|hint| hint.threading), value::THREAD_SAFE);
        domain.control_progress =
            or(hint_domain.map(|hint| hint.control_progress), kind.control_progress);
        domain.data_progress =
            or(hint_domain.map(|hint| hint.data_progress), value::PROGRESS_MANUAL);
        domain.resource_mgmt = value::RM_ENABLED;
        domain.av_type = or(hint_domain.map(|hint| hint.av_type), value::AV_TABLE);
        // Versions without mode bits call this mode MR_SCALABLE.
        let scalable = hint_domain.map_or(0, |hint| hint.mr_mode) == value::MR_SCALABLE;
        domain.mr_mode = match version < VERSION_1_5 || scalable {
            true => value::MR_SCALABLE,
            false => 0,
        };
        domain.mr_key_size = 8;
        domain.cq_data_size = 8;
        domain.cq_cnt = 1024;
        domain.ep_cnt = usize::from(address::FUNCTIONS);
        domain.tx_ctx_cnt = usize::from(address::FUNCTIONS);
        domain.rx_ctx_cnt = usize::from(address::FUNCTIONS);
        domain.max_ep_tx_ctx = 1;
        domain.max_ep_rx_ctx = 1;
        domain.max_ep_stx_ctx = usize::from(address::FUNCTIONS);
        domain.max_ep_srx_ctx = usize::from(address::FUNCTIONS);
        domain.cntr_cnt = 1024;
        domain.mr_iov_limit = 1;
        domain.caps = flag::LOCAL_COMM | flag::REMOTE_COMM;
        domain.mr_cnt = REGIONS;

        let fabric = &mut *info.fabric_attr;
        fabric.name = text("bellwire");
        // The library writes the provider's name itself; 1.17 and 2.x differ in whether they
        // replace an existing one.
        fabric.prov_version = crate::VERSION;
        if domain.name.is_null() || fabric.name.is_null() {
            library().expect("found above").free_info(made);
            return Err(error::ENOMEM);
        }
    }
    Ok(made)
}

/// The source address of an info, if it has a port.
///
/// # Safety
/// The info's address is null or has the stated length.
pub unsafe fn source(info: &Info) -> Option<SocketAddrV4> {
    // SAFETY: the caller's promise.
    let read = |address| unsafe { address::read(address) };
    let source = (info.src_addrlen >= address::BYTES).then(|| read(info.src_addr)).flatten();
    source.filter(|source| source.port() != 0)
}

/// The info of a connection request: like the passive endpoint's, with its name as source and the
/// client as destination. `None`: no memory.
///
/// # Safety
/// The passive endpoint's info is valid.
pub unsafe fn of_request(
    listens: *const Info,
    name: SocketAddrV4,
    from: SocketAddrV4,
    handle: *mut Fid,
) -> Option<*mut Info> {
    let library = library()?;
    // SAFETY: the caller's promise; the library frees the addresses with the info.
    unsafe {
        let made = library.copy_info(listens);
        let info = made.as_mut()?;
        libc::free(std::mem::replace(&mut info.src_addr, null_mut()));
        libc::free(std::mem::replace(&mut info.dest_addr, null_mut()));
        info.handle = handle;
        let set = set_address(&mut info.src_addr, &mut info.src_addrlen, Some(name))
            .and_then(|()| set_address(&mut info.dest_addr, &mut info.dest_addrlen, Some(from)));
        if set.is_err() {
            library.free_info(made);
            return None;
        }
        Some(made)
    }
}

/// Completes the requested capabilities: both directions, if none is named.
fn complete(mut caps: u64) -> u64 {
    const DIRECTIONS: u64 = flag::READ | flag::WRITE | flag::REMOTE_READ | flag::REMOTE_WRITE;
    if caps & ACCESS_CAPS != 0 && caps & DIRECTIONS == 0 {
        caps |= DIRECTIONS;
    }
    if caps & (flag::MSG | flag::TAGGED) != 0 && caps & (flag::SEND | flag::RECV) == 0 {
        caps |= flag::SEND | flag::RECV;
    }
    if caps & (flag::LOCAL_COMM | flag::REMOTE_COMM) == 0 {
        caps |= flag::LOCAL_COMM | flag::REMOTE_COMM;
    }
    caps
}

/// A string that the library will free.
fn text(text: &str) -> *mut c_char {
    let Ok(text) = std::ffi::CString::new(text) else { return null_mut() };
    // SAFETY: copies a string.
    unsafe { libc::strdup(text.as_ptr()) }
}

fn set_address(
    place: &mut *mut c_void,
    length: &mut usize,
    address: Option<SocketAddrV4>,
) -> Result<(), c_int> {
    let Some(address) = address else { return Ok(()) };
    // SAFETY: an allocation of the size that is written; the library frees it.
    unsafe {
        let made = libc::calloc(1, address::BYTES).cast::<libc::sockaddr_in>();
        if made.is_null() {
            return Err(error::ENOMEM);
        }
        made.write(address::raw(address));
        (*place, *length) = (made.cast(), address::BYTES);
    }
    Ok(())
}
