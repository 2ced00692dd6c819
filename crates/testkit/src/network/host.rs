//! A host: a network namespace that nothing but a descriptor names.

use bellwire_ethernet::namespace::Namespace;

/// A network namespace. It goes when this is dropped and the last process and socket in it are gone.
#[derive(Debug)]
pub struct Host(Namespace);

impl Host {
    /// A new one, with loopback up.
    #[track_caller]
    pub fn new() -> Host {
        let made = Namespace::new();
        Host(made.expect("NOT RUN: making a network namespace needs root, and ip of iproute2"))
    }

    /// Runs something in it: sockets that are opened and processes that are started there stay there.
    pub fn run<T>(&self, what: impl FnOnce() -> T) -> T {
        self.0.run(what).expect("the right to change namespaces")
    }

    /// A veth pair between interface `name` here and interface `far_name` there.
    pub fn wire(&self, name: &str, far: &Host, far_name: &str) {
        self.0.wire(name, &far.0, far_name).expect("a veth pair");
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}
