//! The engine: everything that is the same on every device.

use bellwire_device::Transport;

/// A transport behind one dynamic call. Every [`Transport`] is one.
pub trait Port: Send {}

impl<T: Transport> Port for T {}
