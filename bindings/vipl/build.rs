//! Gives the shared library the name under which programs look for it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvipl.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
