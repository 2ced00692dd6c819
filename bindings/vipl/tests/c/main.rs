//! The library as C programs see it: programs compiled with the system's compiler against `vipl.h`,
//! linked with `libvipl.so`, and run.

mod calls;
mod door;
mod examples;
mod header;
mod install;
mod period;
mod system;
