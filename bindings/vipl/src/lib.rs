//! Bellwire for programs of the Virtual Interface Architecture: the C library `libvipl`, with the
//! interface of `vipl.h`.
//!
//! This crate holds no mechanism: VIs are queue pairs; descriptors are sends, puts, gets and
//! receives; memory is registered in place. It adds what the specification requires beyond
//! Bellwire: work queues that complete in order, status words, C handles, protection tags,
//! discriminators, handlers.
//!
//! # A descriptor's walk
//! `post`, `VipPostSend` -> `translate` makes 16 bytes of its 64, by the `table` of
//! registered memory (M-10, M-11) -> `transfer` hands them to `bellwire::Function`, and takes the
//! completion -> `post`, `VipSendDone`.
//!
//! # Threads
//! Each NIC has one lock. `wait` says where threads sleep.
//!
//! # Files
//! The lock guards `nic::State`, which is made of owners: `memory`, `door`, `vi`, `work_queue`,
//! `cq`, `callback`, `waiters`. The files above it (`transfer`, `wait`, `connect`, `names`, `post`
//! and those of calls) say what happens between the owners.

mod abi;
mod callback;
mod connect;
mod cq;
mod cq_calls;
mod directory;
mod door;
mod end_point;
mod greeting;
mod handle;
mod mark;
mod memory;
mod memory_calls;
mod names;
mod nic;
mod nic_calls;
mod physical;
mod pointer;
mod post;
mod table;
mod transfer;
mod translate;
mod vi;
mod vi_calls;
mod wait;
mod waiters;
mod work_queue;

pub use abi::*;
pub use connect::{
    VipConnectAccept, VipConnectPeerDone, VipConnectPeerRequest, VipConnectPeerWait,
    VipConnectReject, VipConnectRequest, VipConnectWait,
};
pub use cq_calls::{VipCQDone, VipCQNotify, VipCQWait, VipCreateCQ, VipDestroyCQ, VipResizeCQ};
pub use memory_calls::{
    VipCreatePtag, VipDeregisterMem, VipDestroyPtag, VipQueryMem, VipRegisterMem,
    VipSetMemAttributes,
};
pub use names::{VipNSGetHostByAddr, VipNSGetHostByName, VipNSInit, VipNSShutdown};
pub use nic_calls::{
    VipCloseNic, VipErrorCallback, VipOpenNic, VipQueryNic, VipQuerySystemManagementInfo,
};
pub use pointer::{In, Out};
pub use post::{
    VipPostRecv, VipPostSend, VipRecvDone, VipRecvNotify, VipRecvWait, VipSendDone, VipSendNotify,
    VipSendWait,
};
pub use vi_calls::{VipCreateVi, VipDestroyVi, VipDisconnect, VipQueryVi, VipSetViAttributes};
