//! The simulated device does what every device must do, in virtual time.

use bellwire::{Device, DeviceOptions, Result};
use bellwire_model::chpp::config::PROTOTYPE;
use bellwire_testkit::conformance::{Fixture, Named};

/// A machine of the paper's interfaces with as many hosts as its addresses allow, so that the largest checks find room.
struct Chpp(Named, std::path::PathBuf);

fn chpp() -> Chpp {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("sixteen-hosts.toml");
    let sixteen = PROTOTYPE.replace("ports = 4 ", "ports = 16 ");
    assert_ne!(sixteen, PROTOTYPE);
    // Each test writes the same; a name of its own until it is whole keeps others from reading half of it.
    let own = path.with_extension(format!("{:?}", std::thread::current().id()));
    std::fs::write(&own, sixteen).expect("a place for the configuration");
    std::fs::rename(&own, &path).expect("the same place");
    Chpp(Named::new("model:chpp"), path)
}

impl Fixture for Chpp {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let mut options = options.clone();
        options.config = Some(self.1.clone());
        self.0.open(&options)
    }
}

bellwire_testkit::conformance_tests!(chpp);
