//! A host: a network namespace that only a descriptor names.

use bellwire_ethernet::namespace::Namespace;

/// A network namespace. It vanishes when this is dropped and the last process and socket in it are
/// gone.
#[derive(Debug)]
pub struct Host(Namespace);

impl Host {
    /// Creates a namespace, with loopback up.
    #[track_caller]
    pub fn new() -> Host {
        let made = Namespace::new();
        Host(made.expect("NOT RUN: making a network namespace needs root, and ip of iproute2"))
    }

    /// Runs `what` in it. Sockets and processes that are created there stay there.
    pub fn run<T>(&self, what: impl FnOnce() -> T) -> T {
        self.0.run(what).expect("the right to change namespaces")
    }

    /// Creates a veth pair between interface `name` here and interface `far_name` there.
    pub fn wire(&self, name: &str, far: &Host, far_name: &str) {
        self.0.wire(name, &far.0, far_name).expect("a veth pair");
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}
