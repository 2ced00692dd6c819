//! Planted faults, which the tests of a stream must notice: `tests/canaries.rs`.

/// Whether the fault of this name is planted.
#[cfg(not(feature = "canaries"))]
#[inline]
pub(crate) fn planted(_: &str) -> bool {
    false
}

#[cfg(feature = "canaries")]
std::thread_local! {
    static PLANTED: std::cell::Cell<&'static str> = const { std::cell::Cell::new("") };
}

/// Whether the fault of this name is planted.
#[cfg(feature = "canaries")]
pub(crate) fn planted(name: &str) -> bool {
    PLANTED.get() == name
}

/// Plants a fault in this thread; an empty name: none.
#[cfg(feature = "canaries")]
pub fn plant(name: &'static str) {
    PLANTED.set(name);
}
