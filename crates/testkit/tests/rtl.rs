//! The interface in gates does what every device must do. Without the feature `gates` there is no
//! test here: tools/hardware.sh builds the gates, and then runs these.

#![cfg(feature = "gates")]

use bellwire::{Device, DeviceOptions, Result};
use bellwire_testkit::conformance::{Fixture, Named};
use std::path::Path;

/// Hosts of this test alone.
struct Rtl(Named);

impl Fixture for Rtl {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let library = std::env::var("BELLWIRE_RTL").expect("NOT RUN: BELLWIRE_RTL is not set");
        // As many hosts as addresses allow, so that the largest checks find room.
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rtl.toml");
        let options = options.clone().setting("config", config.display());
        self.0.open(&options.setting("library", library))
    }
}

fn rtl() -> Rtl {
    Rtl(Named::new("rtl:chpp"))
}

bellwire_testkit::conformance_tests_of_one_process!(rtl);
