//! Sequences of operations on two endpoints.

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{
    Channel, Config, Endpoint, FunctionId, GateState, PathId, PeerId, Verdict,
};
use bellwire_wire::frame::check::seal;

/// Longest frame of the fuzzed endpoints.
const FRAME_BYTES: usize = 512;
/// Most frames in flight.
const MOST_FRAMES: usize = 64;

/// Two endpoints and the frames between them, driven by bytes: each byte is an operation, and some
/// operations read further bytes.
struct Pair<'a> {
    bytes: &'a [u8],
    now_ns: u64,
    ends: [Endpoint; 2],
    lives: u64,
    frames: Vec<(usize, Vec<u8>)>,
    refuses: [bool; 2],
}

/// Reads the bytes as operations on two endpoints: connect, send, carry, lose, repeat, swap, damage
/// with a right check value, refuse, close, restart, sleep. Nothing may panic, grow without bound
/// or lose count of a packet.
pub fn operate(bytes: &[u8]) {
    let mut pair = Pair {
        bytes,
        now_ns: 1,
        ends: [endpoint(0, 1), endpoint(1, 1)],
        lives: 1,
        frames: Vec::new(),
        refuses: [false; 2],
    };
    while let Some(operation) = pair.byte() {
        pair.apply(operation);
        for end in &pair.ends {
            let counters = end.counters();
            let waiting: u64 = end.peers().map(|peer| end.unacknowledged(peer)).sum();
            let known = counters.packets_acknowledged + counters.packets_failed + waiting;
            assert!(known <= counters.packets_queued, "{counters:?}");
            assert!(end.link_count() <= 4);
        }
    }
}

fn endpoint(node: u32, life: u64) -> Endpoint {
    let config = Config {
        packet_bytes: 1000,
        send_bytes: 4096,
        receive_bytes: 2048,
        window_frames: 8,
        early_frames: 4,
        links: 4,
        queue_pairs: 16,
        ..Config::new(FRAME_BYTES)
    };
    Endpoint::new(config, function(node), life, Secret::from_seed(life ^ (node as u64) << 8))
        .expect("sound settings")
}

fn function(node: u32) -> FunctionId {
    FunctionId { node, function: node as u8 }
}

impl Pair<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// A number below `limit`; 0 at the end of the bytes.
    fn below(&mut self, limit: usize) -> usize {
        self.byte().unwrap_or(0) as usize % limit.max(1)
    }

    fn apply(&mut self, operation: u8) {
        let end = (operation & 1) as usize;
        match operation >> 1 & 15 {
            0 => {
                let peer = function(1 - end as u32);
                let _ = self.ends[end].connect(peer, PathId(0), 1_000_000_000, self.now_ns);
            }
            1 | 2 => self.send(end),
            3..=5 => self.transmit(end),
            6..=8 => self.carry(),
            9 => self.now_ns += 1 << (self.below(36)),
            10 => self.refuses[end] = !self.refuses[end],
            11 => self.damage(),
            12 => {
                let count = self.frames.len();
                let (first, second) = (self.below(count), self.below(count));
                if count > 1 {
                    self.frames.swap(first, second);
                }
            }
            13 => {
                let chosen = self.below(self.frames.len());
                if self.frames.len() < MOST_FRAMES
                    && let Some(frame) = self.frames.get(chosen).cloned()
                {
                    self.frames.push(frame);
                }
            }
            14 => {
                let peers: Vec<PeerId> = self.ends[end].peers().collect();
                match (self.below(4), peers.last()) {
                    (0, Some(&peer)) => self.ends[end].close(peer, self.now_ns),
                    (1, Some(&peer)) => {
                        self.ends[end].gate(peer, 3);
                    }
                    (2, _) => self.ends[end].set_gate(3, GateState::Open),
                    _ => self.ends[end].set_frame_bytes(256),
                }
            }
            _ => {
                self.lives += 1;
                self.ends[end] = endpoint(end as u32, self.lives);
            }
        }
    }

    fn send(&mut self, end: usize) {
        let length = self.below(256) * 4;
        let peers: Vec<PeerId> = self.ends[end].peers().collect();
        let channel = if length & 4 == 0 { Channel::Request } else { Channel::Response };
        for peer in peers {
            let payload = vec![length as u8; length.min(1000)];
            let _ = self.ends[end].send(peer, channel, [1, 2, 3], &[], &payload[..]);
        }
    }

    fn transmit(&mut self, end: usize) {
        let mut buffer = [0; FRAME_BYTES];
        let refuses = self.refuses[end];
        if !refuses {
            self.ends[end].deliver(&mut sink(false));
        }
        while self.frames.len() < MOST_FRAMES
            && let Some(transmit) = self.ends[end].poll_transmit(self.now_ns, &mut buffer)
        {
            self.frames.push((1 - end, buffer[..transmit.length].to_vec()));
        }
        while self.ends[end].poll_event().is_some() {}
    }

    fn carry(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let (to, bytes) = self.frames.remove(0);
        let refuses = self.refuses[to];
        self.ends[to].handle_frame(PathId(0), &bytes, self.now_ns, &mut sink(refuses));
    }

    /// Changes a byte of a frame and corrects its check value, as a lying peer would.
    fn damage(&mut self) {
        let count = self.frames.len();
        let (chosen, at, value) = (self.below(count), self.below(256), self.below(256));
        if let Some((_, bytes)) = self.frames.get_mut(chosen) {
            let at = at % bytes.len();
            bytes[at] = value as u8;
            let length = u16::from_le_bytes([bytes[4], bytes[5]]) as usize;
            let length = length.clamp(36, bytes.len());
            seal(&mut bytes[..length]).expect("there is room");
        }
    }
}

/// A program that takes all packets, or none.
fn sink(refuses: bool) -> impl FnMut(PeerId, Channel, [u64; 3], &[u8]) -> Verdict {
    move |_, _, _, _| if refuses { Verdict::Stalled } else { Verdict::Taken }
}
