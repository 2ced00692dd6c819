//! The header matches the library: sizes, offsets and values that a C compiler finds in `vipl.h`,
//! against those of Rust.

use crate::system::{Folder, Running, compile, here};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use vipl::*;

/// Sizes, offsets and values according to C.
fn seen_by_c(folder: &Path, header: &Path) -> BTreeMap<String, u64> {
    let program = compile(folder, "layout", &[here("tests/c/layout.c")], header);
    let said = Running::start(&program, &[], &[]).succeed();
    let facts = said.lines().map(|line| {
        let (name, number) = line.rsplit_once(' ').expect("a name and a number");
        (name.to_owned(), number.parse().expect("a number"))
    });
    facts.collect()
}

macro_rules! offsets {
    ($facts:ident, $c:literal, $rust:ty, $($name:literal $field:ident),* $(,)?) => {
        $($facts.insert(concat!("at ", $c, ".", $name).to_owned(), offset_of!($rust, $field) as u64);)*
    };
}

macro_rules! values {
    ($facts:ident, $($name:literal $value:expr),* $(,)?) => {
        $($facts.insert(concat!("value ", $name).to_owned(), $value as u64);)*
    };
}

/// Sizes, offsets and values according to Rust.
fn known_to_rust() -> BTreeMap<String, u64> {
    let mut facts = BTreeMap::new();
    for (name, size) in [
        ("VIP_ULONG", size_of::<std::ffi::c_ulong>()),
        ("VIP_BOOLEAN", size_of::<std::ffi::c_int>()),
        ("VIP_RETURN", size_of::<Return>()),
        ("VIP_MEM_HANDLE", size_of::<u32>()),
        ("VIP_NIC_HANDLE", size_of::<*mut std::ffi::c_void>()),
        ("VIP_PVOID64", size_of::<u64>()),
        ("VIP_CONTROL_SEGMENT", size_of::<ControlSegment>()),
        ("VIP_DATA_SEGMENT", size_of::<Segment>()),
        ("VIP_ADDRESS_SEGMENT", size_of::<Segment>()),
        ("VIP_DESCRIPTOR", size_of::<Descriptor>()),
        ("VIP_NIC_ATTRIBUTES", size_of::<NicAttributes>()),
        ("VIP_MEM_ATTRIBUTES", size_of::<MemAttributes>()),
        ("VIP_VI_ATTRIBUTES", size_of::<ViAttributes>()),
        ("VIP_ERROR_DESCRIPTOR", size_of::<ErrorDescriptor>()),
    ] {
        facts.insert(format!("size {name}"), size as u64);
    }
    offsets!(facts, "VIP_CONTROL_SEGMENT", ControlSegment,
        "Next" next, "NextHandle" next_handle, "SegCount" segment_count, "Control" control,
        "Reserved" reserved, "ImmediateData" immediate_data, "Length" length, "Status" status);
    offsets!(facts, "VIP_DATA_SEGMENT", Segment, "Data" data, "Handle" handle, "Length" length);
    offsets!(facts, "VIP_ADDRESS_SEGMENT", Segment, "Data" data, "Handle" handle);
    offsets!(facts, "VIP_DESCRIPTOR", Descriptor,
        "CS" control, "Control" control, "DS" segments, "Data" segments);
    let second = (offset_of!(Descriptor, segments) + size_of::<Segment>()) as u64;
    for name in ["DS[1]", "Data[1]"] {
        facts.insert(format!("at VIP_DESCRIPTOR.{name}"), second);
    }
    offsets!(facts, "VIP_NET_ADDRESS", NetAddress, "HostAddressLen" host_address_len,
        "DiscriminatorLen" discriminator_len, "HostAddress" host_address);
    offsets!(facts, "VIP_NIC_ATTRIBUTES", NicAttributes,
        "Name" name, "HardwareVersion" hardware_version, "ProviderVersion" provider_version,
        "NicAddressLen" nic_address_len, "LocalNicAddress" local_nic_address,
        "ThreadSafe" thread_safe, "MaxDiscriminatorLen" max_discriminator_len,
        "MaxRegisterBytes" max_register_bytes, "MaxRegisterRegions" max_register_regions,
        "MaxRegisterBlockBytes" max_register_block_bytes, "MaxVI" max_vi,
        "MaxDescriptorsPerQueue" max_descriptors_per_queue,
        "MaxSegmentsPerDesc" max_segments_per_desc, "MaxCQ" max_cq,
        "MaxCQEntries" max_cq_entries, "MaxTransferSize" max_transfer_size,
        "NativeMTU" native_mtu, "MaxPtags" max_ptags,
        "ReliabilityLevelSupport" reliability_level_support, "RDMAReadSupport" rdma_read_support);
    offsets!(facts, "VIP_MEM_ATTRIBUTES", MemAttributes, "Ptag" ptag,
        "EnableRdmaWrite" enable_rdma_write, "EnableRdmaRead" enable_rdma_read);
    offsets!(facts, "VIP_VI_ATTRIBUTES", ViAttributes, "ReliabilityLevel" reliability_level,
        "MaxTransferSize" max_transfer_size, "QoS" qos, "Ptag" ptag,
        "EnableRdmaWrite" enable_rdma_write, "EnableRdmaRead" enable_rdma_read);
    offsets!(facts, "VIP_ERROR_DESCRIPTOR", ErrorDescriptor, "NicHandle" nic, "ViHandle" vi,
        "CQHandle" cq, "DescriptorPtr" descriptor, "OpCode" op_code, "ResourceCode" resource,
        "ErrorCode" error);
    values!(facts, "VIP_DESCRIPTOR_ALIGNMENT" DESCRIPTOR_ALIGNMENT,
        "VIP_SUCCESS" Return::Success, "VIP_NOT_DONE" Return::NotDone,
        "VIP_INVALID_PARAMETER" Return::InvalidParameter,
        "VIP_ERROR_RESOURCE" Return::ErrorResource, "VIP_TIMEOUT" Return::Timeout,
        "VIP_REJECT" Return::Reject,
        "VIP_INVALID_RELIABILITY_LEVEL" Return::InvalidReliabilityLevel,
        "VIP_INVALID_MTU" Return::InvalidMtu, "VIP_INVALID_QOS" Return::InvalidQos,
        "VIP_INVALID_PTAG" Return::InvalidPtag, "VIP_INVALID_RDMAREAD" Return::InvalidRdmaRead,
        "VIP_DESCRIPTOR_ERROR" Return::DescriptorError,
        "VIP_INVALID_STATE" Return::InvalidState,
        "VIP_ERROR_NAMESERVICE" Return::ErrorNameService, "VIP_NO_MATCH" Return::NoMatch,
        "VIP_NOT_REACHABLE" Return::NotReachable,
        "VIP_ERROR_NOT_SUPPORTED" Return::ErrorNotSupported, "VIP_ERROR" Return::Error,
        "VIP_STATE_IDLE" ViState::Idle, "VIP_STATE_CONNECTED" ViState::Connected,
        "VIP_STATE_CONNECT_PENDING" ViState::ConnectPending, "VIP_STATE_ERROR" ViState::Error,
        "VIP_RESOURCE_NIC" ResourceCode::Nic, "VIP_RESOURCE_VI" ResourceCode::Vi,
        "VIP_RESOURCE_CQ" ResourceCode::Cq, "VIP_RESOURCE_DESCRIPTOR" ResourceCode::Descriptor,
        "VIP_ERROR_POST_DESC" ErrorCode::PostDesc, "VIP_ERROR_CONN_LOST" ErrorCode::ConnLost,
        "VIP_ERROR_RECVQ_EMPTY" ErrorCode::RecvqEmpty,
        "VIP_ERROR_VI_OVERRUN" ErrorCode::ViOverrun,
        "VIP_ERROR_RDMAW_PROT" ErrorCode::RdmawProt, "VIP_ERROR_RDMAW_DATA" ErrorCode::RdmawData,
        "VIP_ERROR_RDMAW_ABORT" ErrorCode::RdmawAbort,
        "VIP_ERROR_RDMAR_PROT" ErrorCode::RdmarProt, "VIP_ERROR_COMP_PROT" ErrorCode::CompProt,
        "VIP_ERROR_RDMA_TRANSPORT" ErrorCode::RdmaTransport,
        "VIP_ERROR_CATASTROPHIC" ErrorCode::Catastrophic,
        "VIP_SERVICE_UNRELIABLE" UNRELIABLE,
        "VIP_SERVICE_RELIABLE_DELIVERY" RELIABLE_DELIVERY,
        "VIP_SERVICE_RELIABLE_RECEPTION" RELIABLE_RECEPTION,
        "VIP_CONTROL_OP_SENDRECV" 0, "VIP_CONTROL_OP_RDMAWRITE" control::RDMA_WRITE,
        "VIP_CONTROL_OP_RDMAREAD" control::RDMA_READ, "VIP_CONTROL_OP_MASK" control::OP_MASK,
        "VIP_CONTROL_IMMEDIATE" control::IMMEDIATE, "VIP_CONTROL_QFENCE" control::QFENCE,
        "VIP_CONTROL_RESERVED" control::RESERVED, "VIP_STATUS_DONE" status::DONE,
        "VIP_STATUS_FORMAT_ERROR" status::FORMAT_ERROR,
        "VIP_STATUS_PROTECTION_ERROR" status::PROTECTION_ERROR,
        "VIP_STATUS_LENGTH_ERROR" status::LENGTH_ERROR,
        "VIP_STATUS_DESC_FLUSHED_ERROR" status::DESC_FLUSHED_ERROR,
        "VIP_STATUS_TRANSPORT_ERROR" status::TRANSPORT_ERROR,
        "VIP_STATUS_RDMA_PROT_ERROR" status::RDMA_PROT_ERROR,
        "VIP_STATUS_REMOTE_DESC_ERROR" status::REMOTE_DESC_ERROR,
        "VIP_STATUS_ERROR_MASK" status::ERROR_MASK, "VIP_STATUS_OP_SEND" status::OP_SEND,
        "VIP_STATUS_OP_RECEIVE" status::OP_RECEIVE,
        "VIP_STATUS_OP_RDMA_WRITE" status::OP_RDMA_WRITE,
        "VIP_STATUS_OP_REMOTE_RDMA_WRITE" status::OP_REMOTE_RDMA_WRITE,
        "VIP_STATUS_OP_RDMA_READ" status::OP_RDMA_READ,
        "VIP_STATUS_IMMEDIATE" status::IMMEDIATE);
    facts
}

/// Every size, offset and value that C programs see is the library's own.
// shows: M-01
#[test]
fn header_and_library_agree() {
    assert_eq!(seen_by_c(&Folder::new("header"), &here("include")), known_to_rust());
}

/// The check notices a header with two exchanged members, and one with a wrong value.
#[test]
fn a_wrong_header_is_noticed() {
    let header = std::fs::read_to_string(here("include/vipl.h")).expect("the header");
    let faults = [
        ("VIP_UINT16 SegCount; ", "VIP_UINT16 Control_;"),
        ("VIP_REJECT = 5", "VIP_REJECT = 15"),
        ("VIP_CHAR Name[64]", "VIP_CHAR Name[48]"),
    ];
    for (number, (right, wrong)) in faults.into_iter().enumerate() {
        let folder = Folder::new(&format!("canary-{number}"));
        let mut faulty = header.replacen(right, wrong, 1);
        assert_ne!(faulty, header, "{right} is in the header");
        if number == 0 {
            faulty = faulty.replacen("VIP_UINT16 Control; ", "VIP_UINT16 SegCount;", 1).replacen(
                "VIP_UINT16 Control_;",
                "VIP_UINT16 Control; ",
                1,
            );
        }
        std::fs::write(folder.join("vipl.h"), faulty).expect("a copy");
        assert_ne!(seen_by_c(&folder, &folder), known_to_rust(), "fault {number} goes unnoticed");
    }
}
