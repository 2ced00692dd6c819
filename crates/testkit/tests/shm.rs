//! The shared-memory device does what every device must do.

use bellwire_testkit::conformance::Named;

fn shm() -> Named {
    Named::new("shm")
}

bellwire_testkit::conformance_tests!(shm);
bellwire_testkit::conformance_host_tests!(shm);
