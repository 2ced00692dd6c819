//! A library to be preloaded, for programs of sockets: their streams run over Bellwire.
//! `bellwire run --sockets` sets it.
//!
//! It stands in for the functions of the C library that take a socket. A stream of IPv4 becomes one
//! of `bellwire-rsockets`. An ordinary socket stands beside it until it is connected: it listens at
//! the same port, and takes its place if the other side does not speak this protocol. All other
//! descriptors are the kernel's.
//!
//! What the C library calls within itself is not seen here: stdio on a socket, for instance.
//!
//! | file | what |
//! |---|---|
//! | `next.rs` | the functions that would have been called |
//! | `streams.rs` | sockets: open, bind, listen, accept, connect, close, copies, options |
//! | `data.rs` | read and write |
//! | `waiting.rs` | poll, select, epoll |

#[macro_use]
mod next;
mod data;
mod streams;
mod waiting;

use bellwire_rsockets::{Socket, calls};
use libc::c_int;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Calls of this library that the thread is in. What they call is the kernel's.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether a call comes from this library itself.
fn is_inside() -> bool {
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(true)
}

/// Does work of this library.
fn inside<R>(work: impl FnOnce() -> R) -> R {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
        }
    }
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    let _inside = Inside;
    work()
}

/// The stream of a number, for a call of the program.
fn stream(number: c_int) -> Option<Arc<Socket>> {
    if is_inside() { None } else { calls::stream(number) }
}

/// Whether a call of the program names a stream of the process that forked this one. Its
/// descriptor is here, but what the kernel would read there is not the stream.
fn is_of_parent(number: c_int) -> bool {
    !is_inside() && calls::is_of_parent(number)
}

/// Sets `errno`. Returns -1.
fn fail(number: c_int) -> c_int {
    // SAFETY: the address of this thread's own number.
    unsafe { *libc::__errno_location() = number };
    -1
}

/// The number of the last error.
fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}
