//! A libfabric provider: programs that use libfabric, above all MPI, run over Bellwire.
//!
//! The library finds `libbellwire-fi.so` in `FI_PROVIDER_PATH` and calls [`fi_prov_ini`]. Matching,
//! unexpected messages, rendezvous and memory accesses are in `bellwire-tagged`; this crate only
//! translates libfabric's calls.
//!
//! | file | what |
//! |---|---|
//! | `abi.rs`, `library.rs` | the library's structures and functions |
//! | `info.rs`, `host.rs`, `address.rs`, `settings.rs` | what there is, and where |
//! | `fabric.rs`, `domain.rs`, `av.rs`, `ep.rs`, `cq.rs`, `eq.rs`, `cntr.rs` | one object each |
//! | `mr.rs`, `poll.rs`, `waitset.rs`, `passive.rs`, `shared.rs` | one object each, too |
//! | `bound.rs`, `entries.rs` | parts of an endpoint and of a completion queue |
//! | `connection.rs` | what connected endpoints do besides |
//! | `transmit.rs`, `receive.rs`, `rma.rs`, `atomic.rs` | the calls of the data path |
//! | `pointer.rs`, `errno.rs` | what C passes to a call, and what the call returns |
//! | `object.rs`, `reference.rs` | objects: opened, used by others, closed |
//! | `lock.rs`, `wait.rs`, `progress.rs` | threads |
//!
//! An entry point is a safe `extern "C" fn`: the types of its parameters are its manual page's
//! promises about pointers, and all code behind it is safe. `pointer.rs` lists these types;
//! `object.rs` says how wrong and closed objects are answered. Modules with unsafe code are marked.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod abi;
mod address;
mod atomic;
mod av;
mod bound;
mod cntr;
mod connection;
#[allow(unsafe_code)]
mod cq;
mod domain;
mod entries;
#[allow(unsafe_code)]
mod ep;
mod eq;
mod errno;
mod fabric;
#[allow(unsafe_code)]
mod host;
mod info;
#[allow(unsafe_code)]
mod library;
#[allow(unsafe_code)]
mod lock;
#[allow(unsafe_code)]
mod mr;
#[allow(unsafe_code)]
mod object;
#[allow(unsafe_code)]
mod passive;
#[allow(unsafe_code)]
mod pointer;
mod poll;
mod progress;
#[allow(unsafe_code)]
mod receive;
#[allow(unsafe_code)]
mod reference;
mod rma;
mod settings;
mod shared;
mod transmit;
#[allow(unsafe_code)]
mod wait;
mod waitset;

use abi::Provider;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Our provider version.
pub const VERSION: u32 = 1;

/// From its first use on it belongs to the library.
static PROVIDER: OnceLock<AtomicPtr<Provider>> = OnceLock::new();

/// The provider structure for the library.
pub(crate) fn provider() -> *mut Provider {
    let make = || {
        // The library refuses a provider with a newer version than its own. Our service is the same
        // in all versions.
        let version = library::library().map_or(0, library::Library::version);
        AtomicPtr::new(Box::into_raw(Box::new(Provider {
            version: VERSION,
            fi_version: version,
            context: [null_mut(); 4],
            name: c"bellwire".as_ptr(),
            getinfo: info::getinfo as *const _,
            fabric: fabric::open as *const _,
            cleanup: cleanup as *const _,
        })))
    };
    PROVIDER.get_or_init(make).load(Ordering::Relaxed)
}

/// The library calls this once it has loaded us.
// The library looks this name up in our file only.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    let Some(library) = library::library() else { return null_mut() };
    let provider = provider();
    settings::define(library);
    provider
}

/// The library calls this before it unloads us. Nothing is left by then, because objects end with
/// their `close`.
extern "C" fn cleanup() {}
