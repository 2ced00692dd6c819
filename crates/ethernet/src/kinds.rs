//! The settings of `eth` and `udp`, and how their functions are opened by name.

use crate::{EthDevice, EthFunction, EthOptions, IoKind, UdpDevice, UdpOptions};
use bellwire_device::{
    DeviceKind, Error, KEY_VARIABLE, KeySource, Settings, TransportVisitor, refuse_weight,
};
use std::path::PathBuf;

/// Each function has its own socket, perhaps in different processes, and the kernel schedules them.
const NO_WEIGHTS: &str =
    "16, the default, on eth and udp, where the kernel serves all functions alike; shm has weights";

fn capture(settings: &mut Settings) -> Result<Option<PathBuf>, Error> {
    settings.take("pcap", "a capture is a file")
}

/// The key: a setting, or an environment variable, so that programs need no change.
fn key(settings: &mut Settings) -> Result<Option<KeySource>, Error> {
    let variable = || std::env::var_os(KEY_VARIABLE).map(|path| KeySource::File(path.into()));
    Ok(settings.key()?.or_else(variable))
}

impl DeviceKind for EthDevice {
    const NAME: &'static str = "eth";
    const FORMS: &'static [&'static str] = &["eth:INTERFACE"];
    type Options = EthOptions;

    fn options(_: &str, settings: &mut Settings) -> Result<EthOptions, Error> {
        let node = settings.node()?;
        let io = settings.take_by("io", "frames go by xdp or packet", |text| match text {
            "xdp" => Some(IoKind::Xdp),
            "packet" => Some(IoKind::Packet),
            _ => None,
        })?;
        let socket = settings.take("fd", "a descriptor is a number")?;
        let agent = settings.take("agent", "an agent listens at a path")?;
        let key = key(settings)?;
        Ok(EthOptions { node, io, socket, agent, capture: capture(settings)?, key })
    }

    fn open(interface: &str, options: EthOptions) -> Result<Self, Error> {
        EthDevice::open(interface, &options)
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output, Error> {
        refuse_weight(weight, NO_WEIGHTS)?;
        Ok(match self.open_function(function)? {
            EthFunction::Packet(transport) => visitor.visit(*transport),
            EthFunction::Xdp(transport) => visitor.visit(*transport),
            EthFunction::MultiInterface(transport) => visitor.visit(*transport),
        })
    }
}

impl DeviceKind for UdpDevice {
    const NAME: &'static str = "udp";
    const FORMS: &'static [&'static str] = &["udp:ADDRESS"];
    type Options = UdpOptions;

    fn options(_: &str, settings: &mut Settings) -> Result<UdpOptions, Error> {
        let node = settings.node()?;
        let port = settings.take("port", "ports are 0 to 65535")?;
        Ok(UdpOptions { node, port, capture: capture(settings)?, key: key(settings)? })
    }

    fn open(address: &str, options: UdpOptions) -> Result<Self, Error> {
        UdpDevice::open(address, &options)
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output, Error> {
        refuse_weight(weight, NO_WEIGHTS)?;
        Ok(visitor.visit(self.open_function(function)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Settings {
        let mut settings = Settings::new("eth:near");
        settings.parse(text).expect("settings");
        settings
    }

    /// Settings become options, and values that mean nothing are refused.
    #[test]
    fn settings_become_options() {
        let eth = |text: &str| EthDevice::options("near", &mut given(text));
        let all = eth("node=7&io=xdp&fd=9&agent=/run/it&pcap=/tmp/frames").expect("all are known");
        assert_eq!((all.node, all.io, all.socket), (Some(7), Some(IoKind::Xdp), Some(9)));
        assert_eq!(all.capture, Some(PathBuf::from("/tmp/frames")));
        assert_eq!(all.agent, Some(PathBuf::from("/run/it")));
        let packet = eth("io=packet").expect("it is known");
        assert_eq!((packet.io, packet.node), (Some(IoKind::Packet), None));
        assert_eq!((packet.socket, packet.capture), (None, None));
        let with_key = eth("key=/tmp/key").expect("it is known").key;
        assert!(matches!(with_key, Some(KeySource::File(path)) if path.as_os_str() == "/tmp/key"));
        for bad in ["io=udp", "io=", "fd=x", "node=-1"] {
            eth(bad).expect_err(bad);
        }
        let udp = |text: &str| UdpDevice::options("near", &mut given(text));
        let all = udp("node=7&port=5000&pcap=/tmp/frames").expect("all are known");
        assert_eq!((all.node, all.port), (Some(7), Some(5000)));
        assert_eq!(all.capture, Some(PathBuf::from("/tmp/frames")));
        udp("port=65536").expect_err("no such port");
    }
}
