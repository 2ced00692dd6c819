//! A neighbour that answers questions for other nodes, with wrong places.

use super::WIRE;
use super::host::Host;
use super::socket::PacketSocket;
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::seek::{SEEK_BYTES, SeekBody};
use bellwire_wire::frame::{ETHERTYPE, FRAME_OVERHEAD_BYTES, check};
use std::cell::Cell;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// The function number of all functions of a host.
const EVERY_FUNCTION: u8 = 255;

/// A host that lies.
pub struct Liar {
    socket: PacketSocket,
    /// The nonce of the last question, which an answer must repeat.
    nonce: Cell<u64>,
}

impl Liar {
    /// A liar on a host of an Ethernet.
    pub fn on(host: &Host) -> Liar {
        Liar { socket: host.run(|| PacketSocket::open(WIRE)), nonce: Cell::new(0) }
    }

    /// Tells node `to`, and all stations that receive the frame, that `node` is at the Ethernet
    /// address `place`. It answers the last question for `node`, if there was one, and otherwise
    /// tells it unasked. Returns whether there was a question.
    pub fn tell(&self, to: u32, node: u32, place: [u8; 6]) -> bool {
        self.listen(node);
        let nonce = self.nonce.get();
        let mut frame = [0; ETHERNET_BYTES + FRAME_OVERHEAD_BYTES + SEEK_BYTES];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&place);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        let body = &mut frame[ETHERNET_BYTES..];
        let mut header = FrameHeader::new(FrameKind::Here, EVERY_FUNCTION, 0, 0);
        header.length = body.len() as u16;
        header.emit(body).expect("room for a header");
        let answer = SeekBody { from: node, to, frame_bytes: 1500, nonce };
        body[HEADER_BYTES..HEADER_BYTES + SEEK_BYTES].copy_from_slice(&answer.emit());
        check::seal(body).expect("room for the check value");
        assert!(self.socket.send(&frame), "the liar's frame leaves");
        nonce != 0
    }

    /// Receives broadcast questions for `node`.
    fn listen(&self, node: u32) {
        let mut frame = [0; 2048];
        while let Some(length) = self.socket.receive(&mut frame) {
            let Some(ours) = frame[..length].get(ETHERNET_BYTES..) else { continue };
            let body = ours.get(HEADER_BYTES..HEADER_BYTES + SEEK_BYTES);
            let is_question = FrameHeader::parse(ours)
                .is_ok_and(|header| header.kind == FrameKind::Seek)
                && frame[12..14] == ETHERTYPE.to_be_bytes();
            if let (true, Some(Ok(body))) = (is_question, body.map(SeekBody::parse))
                && body.to == node
            {
                self.nonce.set(body.nonce);
            }
        }
    }
}
