//! State of a fabric's parts: queues, ports, virtual channels, sources. Flat records in vectors,
//! found by index.

/// No limit on beats; never counted down.
pub(super) const UNLIMITED: u32 = u32::MAX;
/// The state of an input queue's first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// No packet.
    #[default]
    Empty,
    /// Waits for its tail (store-and-forward).
    Filling,
    /// Waits for a virtual channel of the next input queue.
    WaitsForVc,
    /// Moves; may wait for its turn, credits, or its next beat.
    Moving,
}

/// An input queue: one port, one virtual channel. It is one cache line, so moving a beat touches
/// little else. What depends on the first packet's route is computed once, when the packet reaches
/// the front.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Queue {
    pub head: u32,
    pub tail: u32,
    /// Beats in this queue.
    pub occupied: u32,
    /// The first packet.
    pub packet: u32,
    /// Its output virtual channel, and the queue at the other end.
    pub out_vc: u32,
    pub to: u32,
    /// The virtual channels that it may use.
    pub allowed: u32,
    /// Its output port, and its (input, output) pair.
    pub out: u32,
    pub pair: u32,
    /// The sender's virtual channel, to which this queue returns credits.
    pub back: u32,
    pub router: u32,
    /// Cycles to the next queue.
    pub latency: u16,
    /// Beats of the first packet that are not yet sent.
    pub left: u16,
    pub out_port: u8,
    pub port: u8,
    pub vc: u8,
    pub state: State,
    /// Whether the first packet's head is still here.
    pub head_here: bool,
}

const _: () = assert!(size_of::<Queue>() == 64);

/// The sending side of a virtual channel.
#[derive(Clone, Copy)]
pub(super) struct OutVc {
    pub credits: u32,
    /// The input queue or source lane whose packet holds it.
    pub owner: u32,
    /// Beats sent.
    pub sent: u64,
}

/// Statistics of an input queue, in packets and cycles.
#[derive(Clone, Copy, Default)]
pub(super) struct QueueStats {
    pub inside: u32,
    pub most: u32,
    pub entered: u64,
    pub left: u64,
    pub changed: u64,
    pub area: u64,
    pub stayed: u64,
    /// Cycles in which the first packet waited for a virtual channel, or its next beat for a
    /// credit.
    pub vc_wait: u64,
    pub credit_wait: u64,
    /// The cycle in which the current wait began.
    pub since: u64,
}

/// One port of a router: sending and receiving side.
#[derive(Clone, Copy, Default)]
pub(super) struct Port {
    /// Inputs with a beat that may go to this output.
    pub requests: u64,
    /// Inputs with a packet that waits for a virtual channel of this output.
    pub waiting: u64,
    /// Free virtual channels of this output.
    pub free_vcs: u32,
    /// The port number at the other end; see [`Fabric`](super::Fabric) for the numbering.
    pub to: u32,
    /// Cycles from leaving until a beat can cross the next switch.
    pub latency: u32,
    /// The port that sends to this one.
    pub from: u32,
    /// The router of this port.
    pub router: u32,
    /// Round-robin pointers: as output over inputs, as input over outputs, over virtual channels
    /// for a packet, over waiting heads, over virtual channels with beats.
    pub grant_turn: u8,
    pub accept_turn: u8,
    pub vc_turn: u8,
    pub wait_turn: u8,
    pub pick_turn: u8,
}

#[derive(Clone, Copy)]
pub(super) struct Router {
    pub first_port: u32,
    pub ports: u32,
    /// The first entry of its (input, output) table.
    pub first_pair: u32,
    /// Outputs with requests.
    pub outputs: u64,
    /// Outputs with heads that wait for a virtual channel.
    pub waited: u64,
}

impl Router {
    /// The entry of a pair in the router's (input, output) table.
    #[inline]
    pub fn pair(&self, input: u32, output: u32) -> usize {
        (self.first_pair + input * self.ports + output) as usize
    }
}

/// Pending virtual channels of one (input, output) pair, as bit sets.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    pub ready: u32,
    pub waiting: u32,
}

/// One queue of a terminal's sending side.
#[derive(Clone, Copy, Default)]
pub(super) struct Lane {
    pub head: u32,
    pub tail: u32,
    pub packets: u32,
    /// The first packet, its virtual channel, the queue at the other end, and its beats that are
    /// not yet sent.
    pub packet: u32,
    pub out_vc: u32,
    pub to: u32,
    pub left: u16,
    pub head_here: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Source {
    /// Lanes with packets.
    pub lanes: u32,
    pub turn: u8,
}

impl QueueStats {
    #[inline]
    pub fn enter(&mut self, now: u64) {
        self.area += u64::from(self.inside) * (now - self.changed);
        self.changed = now;
        self.inside += 1;
        self.most = self.most.max(self.inside);
        self.entered += 1;
    }

    #[inline]
    pub fn leave(&mut self, entered: u64, now: u64) {
        self.area += u64::from(self.inside) * (now - self.changed);
        self.changed = now;
        self.inside -= 1;
        self.left += 1;
        self.stayed += now - entered;
    }
}
