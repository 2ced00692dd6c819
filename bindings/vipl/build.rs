//! Gives the shared library the name under which programs look for it, and keeps it in memory until
//! the program ends.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvipl.so.1");
    // The thread that watches control sockets runs until then.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
