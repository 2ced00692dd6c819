//! `fi_getinfo`: describes this provider if it meets the program's hints.

use crate::abi::{DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr, error, flag, order, value};
use crate::address;
use crate::errno::{Result, call};
use crate::host;
use crate::library::{Level, Library, OwnedInfo, library, log};
use crate::object::Handle;
use crate::pointer::{Buffer, IOV_LIMIT, Text};
use bellwire_tagged::OPERAND_BYTES;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
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
/// Receives that can wait.
const RECEIVES: usize = 65_536;

/// `fi_getinfo`.
pub extern "C" fn getinfo(
    version: u32,
    node: Text,
    service: Text,
    flags: u64,
    hints: Option<&Info>,
    into: Option<&mut MaybeUninit<*mut Info<'static>>>,
) -> c_int {
    call(|| {
        let into = into.ok_or(error::EINVAL)?;
        into.write(find(version, node.get(), service.get(), flags, hints)?);
        Ok(())
    })
}

/// The list of infos that meet the hints.
fn find(
    version: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Info>,
) -> Result<*mut Info<'static>> {
    let library = library().ok_or(error::ENODATA)?;
    let kinds = kinds(version, flags, hints)?;
    let ends = ends(node, service, flags, hints)?;
    let device = device(library, hints, ends)?;
    let mut list: Option<OwnedInfo> = None;
    for kind in kinds.iter().rev() {
        let mut info = fill(library.new_info()?, kind, hints, version, &device, ends)?;
        info.next = list.take().map_or(null_mut(), OwnedInfo::give_away);
        list = Some(info);
    }
    Ok(list.map_or(null_mut(), OwnedInfo::give_away))
}

/// The kinds of endpoints that meet the hints.
fn kinds(version: u32, flags: u64, hints: Option<&Info>) -> Result<Vec<&'static Kind>> {
    let mut kinds: Vec<&Kind> = KINDS.iter().collect();
    if flags & flag::CORE_PROV_ONLY != 0 {
        // With only the first kind: from the other kinds a utility provider would build the first
        // one again with one more protocol, and hide the real one.
        kinds.retain(|kind| kind.value == value::EP_RDM);
    }
    let Some(hints) = hints else { return Ok(kinds) };
    let wanted = hints.ep_attr.as_deref().map_or(value::EP_UNSPEC, |ep| ep.kind);
    kinds.retain(|kind| [value::EP_UNSPEC, kind.value].contains(&wanted));
    let mut refused = None;
    kinds.retain(|kind| match check(kind, hints, version) {
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
    Ok(kinds)
}

/// The name of the device: that of the settings, or one that fits the addresses, unless the hints
/// name another one of ours.
fn device(library: &Library, hints: Option<&Info>, (source, destination): Ends) -> Result<String> {
    let (chosen, interface) = (library.setting(c"device"), library.setting(c"iface"));
    let (is_chosen, interface) = (chosen.is_some(), interface.as_deref());
    let device = match chosen {
        Some(device) => device,
        None => {
            let own = match (source, destination) {
                (Some(source), _) if !source.ip().is_unspecified() => Some(*source.ip()),
                (_, Some(to)) if interface.is_none() => host::address_towards(*to.ip()),
                _ => host::own_address(interface),
            };
            let Some(own) = own else {
                let line = format!(
                    "FI_BELLWIRE_IFACE={}: no such interface, or it has no IPv4 address; `ip -4 address` lists them",
                    interface.unwrap_or_default(),
                );
                log(Level::Warn, &line);
                return Err(error::ENODATA);
            };
            format!("auto:udp:{own}")
        }
    };
    let wanted = hints.and_then(|hints| hints.domain_attr.as_deref()?.name.get());
    let Some(wanted) = wanted.map(|name| name.to_string_lossy().into_owned()) else {
        return Ok(device);
    };
    if wanted != device && (is_chosen || !is_ours(&wanted)) {
        return Err(error::ENODATA);
    }
    Ok(wanted)
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

/// Whether a hint is met; `Err` says what the program asks for.
type Check = std::result::Result<(), &'static str>;

/// No bit is wanted beyond those that there are.
fn all(has: u64, wanted: u64, what: &'static str) -> Check {
    if wanted & !has == 0 { Ok(()) } else { Err(what) }
}

fn one(met: bool, what: &'static str) -> Check {
    if met { Ok(()) } else { Err(what) }
}

/// Whether endpoints of this kind meet all hints.
fn check(kind: &Kind, hints: &Info, version: u32) -> Check {
    // Capabilities of both directions may come without their kinds.
    all(kind.caps, hints.caps, "capabilities that it does not have")?;
    let formats = [0, value::SOCKADDR, value::SOCKADDR_IN];
    one(formats.contains(&hints.addr_format), "another address format than sockaddr_in")?;
    hints.fabric_attr.as_deref().map_or(Ok(()), check_fabric)?;
    hints.ep_attr.as_deref().map_or(Ok(()), |ep| check_ep(kind, hints.caps, ep))?;
    let domain = hints.domain_attr.as_deref();
    domain.map_or(Ok(()), |domain| check_domain(hints.caps, version, domain))?;
    hints.tx_attr.as_deref().map_or(Ok(()), |tx| check_tx(kind, tx))?;
    hints.rx_attr.as_deref().map_or(Ok(()), |rx| check_rx(kind, rx))
}

fn check_fabric(fabric: &FabricAttr) -> Check {
    let is_ours = |text: Text| {
        text.get().is_none_or(|text| text.to_bytes().eq_ignore_ascii_case(b"bellwire"))
    };
    one(is_ours(fabric.prov_name), "another provider")?;
    one(is_ours(fabric.name), "another fabric")
}

fn check_ep(kind: &Kind, caps: u64, ep: &EpAttr) -> Check {
    one([0, value::PROTOCOL].contains(&ep.protocol), "another protocol")?;
    one(ep.max_msg_size <= kind.message_bytes, "longer messages")?;
    one(ep.msg_prefix_size == 0, "room before messages")?;
    one(ep.auth_key_size == 0, "authorization keys")?;
    let single = |count: usize| count <= 1 || count == value::SHARED_CONTEXT;
    one(single(ep.tx_ctx_cnt) && single(ep.rx_ctx_cnt), "several contexts of an endpoint")?;
    one(
        ep.rx_ctx_cnt != value::SHARED_CONTEXT || caps & NOT_SHARED == 0,
        "FI_MULTI_RECV or FI_DIRECTED_RECV with shared receives",
    )?;
    let ordered = [ep.max_order_raw_size, ep.max_order_war_size, ep.max_order_waw_size];
    one(ordered.iter().all(|&size| size <= OPERAND_BYTES), "an order of longer remote accesses")
}

fn check_domain(caps: u64, version: u32, domain: &DomainAttr) -> Check {
    one((0..=5).contains(&domain.threading), "an unknown threading level")?;
    for progress in [domain.control_progress, domain.data_progress] {
        one((0..=2).contains(&progress), "an unknown progress mode")?;
    }
    one((0..=value::AV_TABLE).contains(&domain.av_type), "an unknown kind of address vector")?;
    one(domain.cq_data_size <= 8, "more than 8 bytes of remote data")?;
    one(domain.mr_key_size <= 8, "longer keys")?;
    // Without accesses by peers the registration mode does not matter.
    let basic = domain.mr_mode & value::MR_BASIC != 0 && caps & ACCESS_CAPS != 0;
    let known = version < VERSION_1_5 || domain.mr_mode & value::MR_SCALABLE == 0;
    let known = known || domain.mr_mode == value::MR_SCALABLE;
    one(!basic && known, "memory registration of mode FI_MR_BASIC")?;
    one(domain.mr_cnt <= REGIONS, "more memory regions")?;
    one(domain.auth_key_size == 0, "authorization keys")?;
    all(flag::LOCAL_COMM | flag::REMOTE_COMM, domain.caps, "capabilities of a domain")
}

fn check_tx(kind: &Kind, tx: &TxAttr) -> Check {
    all(kind.caps, tx.caps, "transmit capabilities that it does not have")?;
    all(TX_FLAGS, tx.op_flags, "transmit flags that it does not have")?;
    all(kind.orders, tx.msg_order, "a message order that it does not keep")?;
    one(tx.comp_order == 0, "a completion order")?;
    one(tx.inject_size <= kind.inject_bytes, "longer injected messages")?;
    one(tx.size <= DEPTH, "more transmissions that wait")?;
    one(tx.iov_limit <= IOV_LIMIT, "messages of more buffers")?;
    one(tx.rma_iov_limit <= 1, "remote accesses of several parts")
}

fn check_rx(kind: &Kind, rx: &RxAttr) -> Check {
    all(kind.caps, rx.caps, "receive capabilities that it does not have")?;
    all(RX_FLAGS, rx.op_flags, "receive flags that it does not have")?;
    all(kind.orders, rx.msg_order, "a message order that it does not keep")?;
    one(rx.comp_order == 0, "a completion order")?;
    one(rx.size <= RECEIVES, "more receives that wait")?;
    one(rx.iov_limit <= IOV_LIMIT, "receives of more buffers")
}

type Ends = (Option<SocketAddrV4>, Option<SocketAddrV4>);

/// The source and destination that the program names.
fn ends(
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Info>,
) -> Result<Ends> {
    let read = |address: Buffer, length| address.elements(length).ok().and_then(address::read);
    let mut source = hints.and_then(|hints| read(hints.src_addr, hints.src_addrlen));
    let mut destination = hints.and_then(|hints| read(hints.dest_addr, hints.dest_addrlen));
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

/// Fills a new info.
fn fill(
    mut made: OwnedInfo,
    kind: &Kind,
    hints: Option<&Info>,
    version: u32,
    device: &str,
    (source, destination): Ends,
) -> Result<OwnedInfo> {
    let info = &mut *made;
    let hint_ep = hints.and_then(|hints| hints.ep_attr.as_deref());
    let shared = hint_ep.is_some_and(|hint| hint.rx_ctx_cnt == value::SHARED_CONTEXT);
    info.caps = match hints.map(|hints| hints.caps) {
        // Capabilities with a cost when unused must be requested.
        None | Some(0) => {
            kind.caps & !flag::RMA_EVENT & if shared { !NOT_SHARED } else { u64::MAX }
        }
        Some(caps) => complete(caps),
    };
    info.handle = hints.map_or(Handle::NULL, |hints| hints.handle);
    info.addr_format = value::SOCKADDR_IN;
    let source = source.filter(|source| !source.ip().is_unspecified() || source.port() != 0);
    let source = source.unwrap_or_else(|| address_of(device));
    (info.src_addr, info.src_addrlen) = allocate_address(source)?;
    if let Some(destination) = destination {
        (info.dest_addr, info.dest_addrlen) = allocate_address(destination)?;
    }
    let caps = info.caps;
    if let Some(tx) = info.tx_attr.as_deref_mut() {
        fill_tx(tx, kind, caps, hints.and_then(|hints| hints.tx_attr.as_deref()));
    }
    if let Some(rx) = info.rx_attr.as_deref_mut() {
        fill_rx(rx, kind, caps, hints.and_then(|hints| hints.rx_attr.as_deref()));
    }
    if let Some(ep) = info.ep_attr.as_deref_mut() {
        fill_ep(ep, kind, hint_ep);
    }
    if let Some(domain) = info.domain_attr.as_deref_mut() {
        domain.name = Text::allocate(device)?;
        fill_domain(domain, kind, version, hints.and_then(|hints| hints.domain_attr.as_deref()));
    }
    if let Some(fabric) = info.fabric_attr.as_deref_mut() {
        // The library writes the provider's name itself; 1.17 and 2.x differ in whether they
        // replace an existing one.
        fabric.name = Text::allocate("bellwire")?;
        fabric.prov_version = crate::VERSION;
    }
    Ok(made)
}

fn fill_tx(tx: &mut TxAttr, kind: &Kind, caps: u64, hint: Option<&TxAttr>) {
    tx.caps = caps & TX_CAPS;
    tx.op_flags = hint.map_or(0, |hint| hint.op_flags);
    tx.msg_order = kind.orders;
    tx.inject_size = kind.inject_bytes;
    tx.size = DEPTH;
    tx.iov_limit = IOV_LIMIT;
    tx.rma_iov_limit = 1;
}

fn fill_rx(rx: &mut RxAttr, kind: &Kind, caps: u64, hint: Option<&RxAttr>) {
    rx.caps = caps & RX_CAPS;
    rx.op_flags = hint.map_or(0, |hint| hint.op_flags);
    rx.msg_order = kind.orders;
    rx.size = RECEIVES;
    rx.iov_limit = IOV_LIMIT;
}

fn fill_ep(ep: &mut EpAttr, kind: &Kind, hint: Option<&EpAttr>) {
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
    let contexts = |hint: Option<usize>| match hint {
        Some(value::SHARED_CONTEXT) => value::SHARED_CONTEXT,
        _ => 1,
    };
    ep.tx_ctx_cnt = contexts(hint.map(|hint| hint.tx_ctx_cnt));
    ep.rx_ctx_cnt = contexts(hint.map(|hint| hint.rx_ctx_cnt));
}

fn fill_domain(domain: &mut DomainAttr, kind: &Kind, version: u32, hint: Option<&DomainAttr>) {
    let or = |hint: Option<c_int>, ours: c_int| hint.filter(|&hint| hint != 0).unwrap_or(ours);
    domain.threading = or(hint.map(|hint| hint.threading), value::THREAD_SAFE);
    domain.control_progress = or(hint.map(|hint| hint.control_progress), kind.control_progress);
    domain.data_progress = or(hint.map(|hint| hint.data_progress), value::PROGRESS_MANUAL);
    domain.resource_mgmt = value::RM_ENABLED;
    domain.av_type = or(hint.map(|hint| hint.av_type), value::AV_TABLE);
    // Versions without mode bits call this mode MR_SCALABLE.
    let scalable = hint.is_some_and(|hint| hint.mr_mode == value::MR_SCALABLE);
    domain.mr_mode = if version < VERSION_1_5 || scalable { value::MR_SCALABLE } else { 0 };
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
}

/// The source address of an info, if it has a port.
pub fn source(info: &Info) -> Option<SocketAddrV4> {
    let source = info.src_addr.elements(info.src_addrlen).ok().and_then(address::read);
    source.filter(|source| source.port() != 0)
}

/// The info of a connection request: like the passive endpoint's, with its name as source and the
/// client as destination, or `ENOMEM`.
pub fn of_request(
    listens: &Info,
    name: SocketAddrV4,
    from: SocketAddrV4,
    handle: Handle,
) -> Result<OwnedInfo> {
    let mut info = library().ok_or(error::ENOMEM)?.copy_info(listens)?;
    info.handle = handle;
    info.replace_addresses(allocate_address(name)?, allocate_address(from)?);
    Ok(info)
}

fn allocate_address(address: SocketAddrV4) -> Result<(Buffer, usize)> {
    Ok((Buffer::allocate(&address::raw(address))?, address::BYTES))
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
