//! The interface in gates does what every device must do. `make rtl` builds the gates, and
//! tools/hardware.sh runs these tests.

use bellwire::{Device, DeviceOptions, Result};
use bellwire_testkit::conformance::{self, Fixture, Named};

/// Two hosts of this test alone.
struct Rtl(Named);

impl Fixture for Rtl {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let library = std::env::var("BELLWIRE_RTL").expect("NOT RUN: BELLWIRE_RTL is not set");
        self.0.open(&options.clone().setting("library", library))
    }
}

fn rtl() -> Rtl {
    Rtl(Named::new("rtl:chpp"))
}

bellwire_testkit::conformance_tests_of_one_process!(rtl);
