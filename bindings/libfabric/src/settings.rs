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
