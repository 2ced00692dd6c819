//! The engine does what every device must do, over a cooperative device and over a difficult one.

use bellwire_testkit::conformance::Loopback;
use bellwire_testkit::loopback::FabricOptions;

/// All memory is directly reachable, and there is room.
mod plain {
    fn plain() -> super::Loopback {
        super::Loopback::new(super::FabricOptions::default())
    }
    bellwire_testkit::conformance_tests!(plain);
}

/// No memory is directly reachable, links hold two small packets, every third packet must be
/// retried, and packets that are posted together can be held.
mod stubborn {
    fn stubborn() -> super::Loopback {
        super::Loopback::new(super::FabricOptions {
            packet_bytes: 200,
            link_packets: 2,
            direct_allocated: false,
            direct_brought: false,
            pending_every: 3,
            busy_every: 3,
            holds: true,
            ..super::FabricOptions::default()
        })
    }
    bellwire_testkit::conformance_tests!(stubborn);
}
