//! The vocabulary that the API and the devices share, and the Transport trait that a device implements.
#![forbid(unsafe_code)]
