//! Settings: environment variables that `fi_info -e` lists.

use crate::library::Library;

/// Defines all settings.
pub fn define(library: &Library) {
    library.define(
        c"device",
        c"FI_BELLWIRE_DEVICE: the device to use instead of the one that is chosen, for instance shm:myjob (one host only, and a little faster there), auto:udp:10.0.0.1, auto:eth:eth0 (peers on this host by shared memory, others by the network), udp:10.0.0.1, eth:eth0. `bellwire doctor` lists what works here",
    );
    library.define(
        c"iface",
        c"FI_BELLWIRE_IFACE: the network interface whose address is used, for instance eth0; without it, the interface that leads to the peer, or the first that is up and not the loopback",
    );
}

/// The settings in the environment.
pub struct Settings {
    /// The full name of the device.
    pub device: Option<String>,
    /// The interface whose address is used.
    pub interface: Option<String>,
}

/// Reads the settings.
pub fn read(library: &Library) -> Settings {
    Settings { device: library.setting(c"device"), interface: library.setting(c"iface") }
}
