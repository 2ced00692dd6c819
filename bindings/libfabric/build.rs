//! Keeps the library in memory until the program ends.

fn main() {
    // libfabric unloads its providers when the program ends, and the thread that watches control
    // sockets still runs then.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
