//! Bellwire for programs of the Virtual Interface Architecture: the C library `libvipl`, with the
//! interface of `vipl.h`.
//!
//! This crate holds no mechanism: VIs are queue pairs; descriptors are sends, puts, gets and
//! receives; memory is registered in place. It adds what the specification requires beyond
//! Bellwire: work queues that complete in order, status words, C handles, protection tags,
//! discriminators, handlers.
//!
//! # A descriptor's walk
//! `work_queue`, `VipPostSend` -> `translate` makes 16 bytes of its 64, by the `table` of
//! registered memory (M-10, M-11) -> `transfer` hands them to `bellwire::Function`, and takes the
//! completion -> `work_queue`, `VipSendDone`.
//!
//! # Threads
//! Each NIC has one lock. `wait` says where threads sleep.

mod abi;
mod callback;
mod connect;
mod cq;
mod directory;
mod door;
mod end_point;
mod greeting;
mod handle;
mod mark;
mod memory;
mod names;
mod nic;
mod physical;
mod pointer;
mod table;
mod transfer;
mod translate;
mod vi;
mod wait;
mod work_queue;

pub use abi::*;
pub use callback::VipErrorCallback;
pub use connect::{
    VipConnectAccept, VipConnectPeerDone, VipConnectPeerRequest, VipConnectPeerWait,
    VipConnectReject, VipConnectRequest, VipConnectWait,
};
pub use cq::{VipCQDone, VipCQNotify, VipCQWait, VipCreateCQ, VipDestroyCQ, VipResizeCQ};
pub use memory::{
    VipCreatePtag, VipDeregisterMem, VipDestroyPtag, VipQueryMem, VipRegisterMem,
    VipSetMemAttributes,
};
pub use names::{VipNSGetHostByAddr, VipNSGetHostByName, VipNSInit, VipNSShutdown};
pub use nic::{VipCloseNic, VipOpenNic, VipQueryNic, VipQuerySystemManagementInfo};
pub use pointer::{In, Out};
pub use vi::{VipCreateVi, VipDestroyVi, VipDisconnect, VipQueryVi, VipSetViAttributes};
pub use work_queue::{
    VipPostRecv, VipPostSend, VipRecvDone, VipRecvNotify, VipRecvWait, VipSendDone, VipSendNotify,
    VipSendWait,
};
