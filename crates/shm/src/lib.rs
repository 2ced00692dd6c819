//! The shared-memory device.
