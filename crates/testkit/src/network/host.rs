//! A host: a network namespace that nothing but a descriptor names.

use bellwire_ethernet::testing::{enter_new_namespace, ip};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A network namespace. It goes when this is dropped and the last process and socket in it are gone.
#[derive(Debug)]
pub struct Host {
    namespace: File,
}

impl Host {
    /// A new one, with loopback up.
    #[track_caller]
    pub fn new() -> Host {
        let back = Return::here();
        enter_new_namespace()
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let namespace = current();
        drop(back);
        Host { namespace }
    }

    /// Runs something in it: sockets that are opened and processes that are started there stay there.
    pub fn run<T>(&self, what: impl FnOnce() -> T) -> T {
        let _back = Return::here();
        enter(&self.namespace).expect("the right to change namespaces");
        what()
    }

    /// A veth pair between interface `name` here and interface `far_name` there.
    pub fn wire(&self, name: &str, far: &Host, far_name: &str) {
        let (process, number) = (std::process::id(), far.namespace.as_raw_fd());
        let there = format!("/proc/{process}/fd/{number}");
        self.run(|| {
            ip(&format!("link add {name} type veth peer name {far_name} netns {there}"))
                .expect("a veth pair")
        });
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

/// Brings this thread back to the namespace that it was in, also if it panics.
struct Return(File);

impl Return {
    fn here() -> Return {
        Return(current())
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        let result = enter(&self.0);
        assert!(result.is_ok() || std::thread::panicking(), "cannot come back: {result:?}");
    }
}

/// The namespace that this thread is in.
fn current() -> File {
    File::open("/proc/thread-self/ns/net").expect("the kernel has network namespaces")
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a system call that changes this thread's network alone; the descriptor is open.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
