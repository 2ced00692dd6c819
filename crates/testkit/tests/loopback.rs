//! The engine does what every device must do, over a device that helps and over one that makes things hard.

use bellwire_testkit::conformance::Loopback;
use bellwire_testkit::loopback::FabricOptions;

/// Everything can be reached directly, and there is room.
mod plain {
    fn plain() -> super::Loopback {
        super::Loopback::new(super::FabricOptions::default())
    }
    bellwire_testkit::conformance_tests!(plain);
}

/// Nothing can be reached directly, links hold two small packets, and every third packet has to be tried again.
mod stubborn {
    fn stubborn() -> super::Loopback {
        super::Loopback::new(super::FabricOptions {
            packet_bytes: 200,
            link_packets: 2,
            direct_allocated: false,
            direct_brought: false,
            pending_every: 3,
            busy_every: 3,
            ..super::FabricOptions::default()
        })
    }
    bellwire_testkit::conformance_tests!(stubborn);
}
