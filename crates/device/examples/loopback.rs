//! A complete device, as the documentation of `Transport` shows it.

use bellwire_device::{
    Error, FunctionAddress, Gate, LinkId, PacketHeader, Receipt, SendError, Sink, Status,
    Transport, TransportLimits, Verdict, View,
};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A function that reaches only itself, by a queue.
pub struct Loopback {
    address: FunctionAddress,
    gates: HashMap<u32, Gate>,
    packets: VecDeque<([u64; 3], Vec<u8>)>,
    /// Wakes a sleeper. Nobody rings it: packets come only from the function that sleeps.
    bell: (UnixStream, UnixStream),
}

impl Transport for Loopback {
    fn address(&self) -> FunctionAddress {
        self.address
    }
    fn limits(&self) -> TransportLimits {
        TransportLimits { packet_bytes: 4096, queue_pairs: 64, regions: 64, links: 1 }
    }

    fn link(&mut self, peer: FunctionAddress, _: Duration) -> Result<LinkId, Error> {
        let why = Error::BadDestination("this device reaches no other function");
        if peer == self.address { Ok(LinkId(0)) } else { Err(why) }
    }
    fn is_up(&self, _: LinkId) -> bool {
        true
    }
    fn close(&mut self, _: LinkId) {
        self.packets.clear();
    }

    fn watch_gate(&mut self, _: LinkId, queue_pair: u32) -> Option<Gate> {
        Some(self.gates.get(&queue_pair).copied().unwrap_or(Gate::Closed))
    }
    fn set_gate(&mut self, queue_pair: u32, gate: Gate) {
        self.gates.insert(queue_pair, gate);
    }

    fn send(
        &mut self,
        _: LinkId,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Result<Receipt, SendError> {
        if self.packets.len() == 64 {
            return Err(SendError::Busy);
        }
        let mut payload = vec![0; head.len() + body.len()];
        payload[..head.len()].copy_from_slice(head);
        body.read(0, &mut payload[head.len()..]);
        header.length = payload.len() as u32;
        self.packets.push_back((header.to_words(), payload));
        Ok(Receipt::Delivered)
    }

    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        for taken in 0..budget {
            let Some((header, payload)) = self.packets.pop_front() else { return taken };
            match sink.packet(LinkId(0), self.address, header, View::of(&payload)) {
                Verdict::Taken => {}
                Verdict::Stalled => {
                    self.packets.push_front((header, payload));
                    return taken;
                }
                Verdict::Violation => {
                    self.packets.clear();
                    sink.link_down(LinkId(0), self.address, Status::ProtocolViolation);
                }
            }
        }
        budget
    }

    fn wait_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }
    fn arm(&mut self) -> bool {
        self.packets.is_empty()
    }
}

impl Loopback {
    /// Opens the function.
    pub fn new(address: FunctionAddress) -> std::io::Result<Loopback> {
        let (gates, packets, bell) = (HashMap::new(), VecDeque::new(), UnixStream::pair()?);
        Ok(Loopback { address, gates, packets, bell })
    }
}

/// An engine that expects one packet.
struct Expect(&'static [u8]);

impl Sink for Expect {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], bytes: View<'_>) -> Verdict {
        let mut payload = vec![0; bytes.len()];
        bytes.read(0, &mut payload);
        assert_eq!(payload, self.0);
        Verdict::Taken
    }
    fn link_down(&mut self, _: LinkId, _: FunctionAddress, why: Status) {
        panic!("{why}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Loopback::new(FunctionAddress { node: 7, function: 0 })?;
    device.set_gate(1, Gate::Open);
    let link = device.link(device.address(), Duration::from_secs(1))?;
    assert_eq!(device.watch_gate(link, 1), Some(Gate::Open));
    let header = PacketHeader::new(bellwire_device::Kind::Send, 1, 1, 0);
    assert_eq!(device.send(link, header, b"hel", View::of(b"lo")), Ok(Receipt::Delivered));
    assert!(!device.arm(), "something is to be polled before sleep");
    assert_eq!(device.poll(&mut Expect(b"hello"), 16), 1);
    assert!(device.arm(), "now a sleep is allowed");
    Ok(())
}
