//! A complete device, as the documentation of `Transport` shows it.

use bellwire_device::{
    Error, FunctionAddress, Gate, LinkId, PacketHeader, Receipt, SendError, Sink, Status,
    Transport, TransportLimits, Verdict, View,
};
use std::collections::VecDeque;
use std::time::Duration;

/// A function that reaches only itself, by a queue.
pub struct Loopback {
    address: FunctionAddress,
    packets: VecDeque<([u64; 3], Vec<u8>)>,
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
        header.length = (head.len() + body.len()) as u32;
        self.packets.push_back((header.to_words(), [head, &body.to_vec()].concat()));
        Ok(Receipt::Delivered)
    }
    fn poll(&mut self, sink: &mut impl Sink, budget: usize) -> usize {
        for taken in 0..budget {
            let Some((header, payload)) = self.packets.front() else { return taken };
            match sink.packet(LinkId(0), self.address, *header, View::of(payload)) {
                Verdict::Taken => drop(self.packets.pop_front()),
                Verdict::Stalled => return taken,
                Verdict::Violation => {
                    self.packets.clear();
                    sink.link_down(LinkId(0), self.address, Status::ProtocolViolation);
                }
            }
        }
        budget
    }
}

impl Loopback {
    /// Opens the function.
    pub fn new(address: FunctionAddress) -> Loopback {
        Loopback { address, packets: VecDeque::new() }
    }
}

/// An engine that expects one packet.
struct Expect(&'static [u8]);

impl Sink for Expect {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], bytes: View<'_>) -> Verdict {
        assert_eq!(bytes.to_vec(), self.0);
        Verdict::Taken
    }
    fn link_down(&mut self, _: LinkId, _: FunctionAddress, why: Status) {
        panic!("{why}");
    }
}

fn main() -> Result<(), Error> {
    let mut device = Loopback::new(FunctionAddress { node: 7, function: 0 });
    let link = device.link(device.address(), Duration::from_secs(1))?;
    assert_eq!(device.watch_gate(link, 1), Some(Gate::Open));
    let header = PacketHeader::new(bellwire_device::Kind::Send, 1, 1, 0);
    assert_eq!(device.send(link, header, b"hel", View::of(b"lo")), Ok(Receipt::Delivered));
    assert!(!device.arm(), "something is to be polled before sleep");
    assert_eq!(device.poll(&mut Expect(b"hello"), 16), 1);
    Ok(())
}
