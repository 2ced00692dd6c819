//! The C interface: the types and constants of `vipl.h`, with the same layout. `tests/header.rs`
//! compares the two.

#![allow(missing_docs)] // The header documents each.

use std::ffi::{c_char, c_int, c_ulong, c_ushort, c_void};

/// What a function returns, in the order of the specification.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    Success,
    NotDone,
    InvalidParameter,
    ErrorResource,
    Timeout,
    Reject,
    InvalidReliabilityLevel,
    InvalidMtu,
    InvalidQos,
    InvalidPtag,
    InvalidRdmaRead,
    DescriptorError,
    InvalidState,
    ErrorNameService,
    NoMatch,
    NotReachable,
    ErrorNotSupported,
    Error,
}

/// The states of a VI, in the order of the specification.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViState {
    Idle,
    Connected,
    ConnectPending,
    Error,
}

/// The object that an asynchronous error is about.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceCode {
    Nic,
    Vi,
    Cq,
    Descriptor,
}

/// The cause of an asynchronous error.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    PostDesc,
    ConnLost,
    RecvqEmpty,
    ViOverrun,
    RdmawProt,
    RdmawData,
    RdmawAbort,
    RdmarProt,
    CompProt,
    RdmaTransport,
    Catastrophic,
}

pub const UNRELIABLE: u16 = 1;
pub const RELIABLE_DELIVERY: u16 = 2;
pub const RELIABLE_RECEPTION: u16 = 4;

pub mod control {
    pub const RDMA_WRITE: u16 = 1;
    pub const RDMA_READ: u16 = 2;
    pub const OP_MASK: u16 = 3;
    pub const IMMEDIATE: u16 = 4;
    pub const QFENCE: u16 = 8;
    pub const RESERVED: u16 = 0xfff0;
}

pub mod status {
    pub const DONE: u32 = 0x1;
    pub const FORMAT_ERROR: u32 = 0x2;
    pub const PROTECTION_ERROR: u32 = 0x4;
    pub const LENGTH_ERROR: u32 = 0x8;
    pub const DESC_FLUSHED_ERROR: u32 = 0x20;
    pub const TRANSPORT_ERROR: u32 = 0x40;
    pub const RDMA_PROT_ERROR: u32 = 0x80;
    pub const REMOTE_DESC_ERROR: u32 = 0x100;
    pub const ERROR_MASK: u32 = 0x1fe;
    pub const OP_SEND: u32 = 0;
    pub const OP_RECEIVE: u32 = 0x1_0000;
    pub const OP_RDMA_WRITE: u32 = 0x2_0000;
    pub const OP_REMOTE_RDMA_WRITE: u32 = 0x3_0000;
    pub const OP_RDMA_READ: u32 = 0x4_0000;
    pub const IMMEDIATE: u32 = 0x8_0000;
}

/// Alignment of a descriptor, in bytes.
pub const DESCRIPTOR_ALIGNMENT: usize = 64;

/// The first 32 bytes of a descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ControlSegment {
    pub next: u64,
    pub next_handle: u32,
    pub segment_count: u16,
    pub control: u16,
    pub reserved: u32,
    pub immediate_data: u32,
    pub length: u32,
    pub status: u32,
}

/// An address segment (`length` is reserved then) or a data segment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Segment {
    pub data: u64,
    pub handle: u32,
    pub length: u32,
}

/// A descriptor; segments beyond the second follow it.
#[repr(C)]
pub struct Descriptor {
    pub control: ControlSegment,
    pub segments: [Segment; 2],
}

const _: () = assert!(size_of::<ControlSegment>() == 32 && size_of::<Segment>() == 16);
const _: () = assert!(size_of::<Descriptor>() == 64);

#[repr(C)]
pub struct NetAddress {
    pub host_address_len: u16,
    pub discriminator_len: u16,
    pub host_address: [u8; 1],
}

#[repr(C)]
pub struct NicAttributes {
    pub name: [c_char; 64],
    pub hardware_version: c_ulong,
    pub provider_version: c_ulong,
    pub nic_address_len: u16,
    pub local_nic_address: *const u8,
    pub thread_safe: c_int,
    pub max_discriminator_len: u16,
    pub max_register_bytes: c_ulong,
    pub max_register_regions: c_ulong,
    pub max_register_block_bytes: c_ulong,
    pub max_vi: c_ulong,
    pub max_descriptors_per_queue: c_ulong,
    pub max_segments_per_desc: c_ulong,
    pub max_cq: c_ulong,
    pub max_cq_entries: c_ulong,
    pub max_transfer_size: c_ulong,
    pub native_mtu: c_ulong,
    pub max_ptags: c_ulong,
    pub reliability_level_support: c_ushort,
    pub rdma_read_support: c_ushort,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemAttributes {
    pub ptag: *mut c_void,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ViAttributes {
    pub reliability_level: c_ushort,
    pub max_transfer_size: c_ulong,
    pub qos: *mut c_void,
    pub ptag: *mut c_void,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

#[repr(C)]
pub struct ErrorDescriptor {
    pub nic: *mut c_void,
    pub vi: *mut c_void,
    pub cq: *mut c_void,
    pub descriptor: *mut Descriptor,
    pub op_code: c_ulong,
    pub resource: ResourceCode,
    pub error: ErrorCode,
}

pub type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);
pub type ViCallback = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut Descriptor);
pub type CqCallback = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, c_int);
