//! Finding the other side of a command that runs on two hosts, or in two terminals of one.

use crate::command::quoted;
use anyhow::{Result, anyhow, bail, ensure};
use bellwire::{Device, Error};
use std::time::Duration;

/// Whether the device reaches this host only; then each process has a node of its own. On other
/// devices, the processes of a host share a node and use different functions of it.
pub fn is_local(device: &Device) -> bool {
    device.name().starts_with("shm:")
}

/// The node called `name`, whose `function` is open: a node number, or a name that the device
/// resolves. `listen` is the command that the user should have started there.
pub fn node_of(
    device: &Device,
    name: &str,
    function: u8,
    patience: Duration,
    listen: &str,
) -> Result<u32> {
    let node = match name.parse() {
        Ok(node) => node,
        Err(_) if is_local(device) => bail!(
            "\"{name}\" is no node of {}: those have numbers, which {listen} prints. For another host, give a device that reaches it: udp:ADDRESS, with an address of this host",
            device.name()
        ),
        Err(_) => {
            device.lookup(name, function, patience).map_err(|error| asked(error, name, listen))?
        }
    };
    ensure!(
        node != device.node() || !is_local(device),
        "nobody listens: this process itself became node {node} of {}. First, with the same device: {listen}",
        device.name()
    );
    Ok(node)
}

/// The error of a failed request to the host called `name`, where `listen` should be running.
pub fn asked(error: Error, name: &str, listen: &str) -> anyhow::Error {
    match error {
        // An immediate failure is not the other side's fault.
        Error::Unreachable { waited_ms: 1.., .. } => {
            anyhow!("{error}. Is {listen} running on {name}?")
        }
        error => error.into(),
    }
}

/// What the other side's user gives as device and as our name, if we opened `name`.
pub struct Elsewhere {
    /// `In another terminal`, or on another host.
    pub place: &'static str,
    /// Its device, with placeholders in capitals for what we cannot know.
    pub device: String,
    /// Our name on that device.
    pub us: String,
}

impl Elsewhere {
    /// For a peer that wants to reach `device`, which was opened as `name` (with its settings).
    pub fn of(device: &Device, name: &str) -> Elsewhere {
        let node = device.node().to_string();
        let (auto, network) = match device.name().strip_prefix("auto:") {
            Some(network) => ("auto:", network),
            None => ("", device.name()),
        };
        let (kind, own) = network.split_once(':').unwrap_or(("", ""));
        let (other, us) = match kind {
            "udp" => ("ITS-ADDRESS", own.to_owned()),
            "eth" => ("ITS-INTERFACE", node),
            _ => {
                return Elsewhere { place: "In another terminal", device: name.into(), us: node };
            }
        };
        // Both sides must agree on these settings.
        let settings = name.split_once('?').map_or("", |(_, settings)| settings).split('&');
        let agreed: Vec<&str> = settings
            .filter_map(|setting| match setting.split_once('=') {
                Some(("port", _)) => Some(setting),
                Some(("key", _)) => Some("key=ITS-KEY"),
                _ => None,
            })
            .collect();
        let mut device = format!("{auto}{kind}:{other}");
        if !agreed.is_empty() {
            device += &format!("?{}", agreed.join("&"));
        }
        let device = quoted(&device);
        Elsewhere { place: "On the other host", device, us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other side is told what both must agree on, in a form for a shell, and no key file of
    /// this host.
    #[test]
    fn the_other_side_is_told_what_to_agree_on() {
        let device = Device::open("udp:127.0.0.1").expect("loopback is there");
        for (name, other) in [
            ("udp:127.0.0.1", "udp:ITS-ADDRESS"),
            ("udp:127.0.0.1?node=3", "udp:ITS-ADDRESS"),
            ("udp:127.0.0.1?key=a.key&port=50000", "'udp:ITS-ADDRESS?key=ITS-KEY&port=50000'"),
        ] {
            assert_eq!(Elsewhere::of(&device, name).device, other);
        }
    }
}
