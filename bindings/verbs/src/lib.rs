//! A `libibverbs.so.1` in user space: programs of RDMA run over Bellwire, without a card, a kernel
//! module or privileges.
//!
//! The library replaces the system's one as a whole (docs/verbs.md). Queue pairs, memory and
//! completions are in `bellwire-rdma`; this crate translates the calls of C.
//!
//! | file | what |
//! |---|---|
//! | `exports.txt`, `build.rs` | every export with its version node |
//! | `abi.rs` | the structures of `infiniband/verbs.h` |
//! | `calls.rs` | the exported calls |
//! | `device.rs`, `context.rs`, `pd.rs`, `mr.rs`, `mw.rs`, `dm.rs` | one object each |
//! | `channel.rs`, `cq.rs`, `cq_ex.rs`, `qp.rs`, `qp_ex.rs`, `srq.rs`, `ah.rs` | likewise |
//! | `post.rs` | the data path: post and poll |
//! | `query.rs`, `event.rs` | attributes of devices and ports; asynchronous events |
//! | `cancel.rs` | calls that wait, in threads that may be cancelled |
//! | `import.rs` | objects that are used a second time |
//! | `names.rs`, `fork.rs`, `sysfs.rs`, `missing.rs` | calls without an object |
//! | `errno.rs`, `log.rs` | errors |
//! | `cm/` | librdmacm: connections by address and port |
//!
//! # Pointers
//! An entry point is an `extern "C" fn` whose parameters say what the manual page says of the
//! pointer: `&T` is an object or structure for as long as the call lasts, `Option<&T>` may be null.
//! Objects are made here and end with their `ibv_destroy_*`; C keeps the pointers until then.

// A test program has no exports, which are the users of all that is here.
#![cfg_attr(test, allow(dead_code))]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the exports are jumps in the assembly of x86-64");

pub mod abi;
mod ah;
mod calls;
mod cancel;
mod channel;
mod cm;
mod context;
mod cq;
mod cq_ex;
mod device;
mod dm;
mod errno;
mod event;
mod fork;
mod import;
mod log;
mod missing;
mod mr;
mod mw;
mod names;
mod pd;
mod post;
mod qp;
mod qp_ex;
mod query;
mod srq;
mod sysfs;

// A test program has no version nodes.
#[cfg(not(test))]
include!(concat!(env!("OUT_DIR"), "/exports.rs"));
