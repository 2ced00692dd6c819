//! librdmacm: connections by address and port. `bellwire-rdmacm` has the conversations; here are
//! the objects of C. Programs find this library under a second name, `librdmacm.so.1`.
//!
//! | file | what |
//! |---|---|
//! | `abi.rs` | the structures of `rdma/rdma_cma.h` |
//! | `address.rs` | addresses of C |
//! | `device.rs` | the open device of an address |
//! | `channel.rs`, `event.rs`, `id.rs` | one object each |
//! | `queue_pair.rs` | the states of an identifier's queue pair |
//! | `endpoint.rs` | several calls at once: `rdma_create_ep(3)`, `rdma_get_request(3)` |
//! | `addrinfo.rs` | `rdma_getaddrinfo(3)` |
//! | `calls.rs` | the exported calls |

mod abi;
mod address;
mod addrinfo;
pub mod calls;
mod channel;
mod device;
mod endpoint;
mod event;
mod id;
#[cfg(test)]
mod layout;
mod names;
mod queue_pair;

/// An error of a call: a number of `errno`.
type Errno = std::ffi::c_int;

/// The number of an error.
fn errno_of(error: &std::io::Error) -> Errno {
    use std::io::ErrorKind as K;
    error.raw_os_error().unwrap_or(match error.kind() {
        K::ConnectionReset => libc::ECONNRESET,
        K::NotConnected => libc::ENOTCONN,
        _ => libc::EINVAL,
    })
}

/// The result of a call that returns 0, or -1 and `errno`.
fn answer(result: Result<(), Errno>) -> std::ffi::c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            crate::errno::set(errno);
            -1
        }
    }
}
