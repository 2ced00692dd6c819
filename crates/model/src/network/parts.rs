//! The state of a fabric's parts: queues, ports, virtual channels, sources. Flat records in vectors, found by index.

/// Beats without limit; never counted down.
pub(super) const UNLIMITED: u32 = u32::MAX;
/// What the first packet of an input queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// There is no packet.
    Empty,
    /// Its head is there, its tail must come first (store-and-forward).
    Filling,
    /// A virtual channel of the next input queue.
    WaitsForVc,
    /// Its turn, credits, or its next beat.
    Moving,
}

/// An input queue: one port, one virtual channel. One cache line, so that moving a beat touches little else: what depends on
/// the first packet's way is worked out once, when the packet comes to the front.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Queue {
    pub head: u32,
    pub tail: u32,
    /// Beats here.
    pub occupied: u32,
    /// The first packet.
    pub packet: u32,
    /// The virtual channel that it has got on its way out, and the queue that this leads to.
    pub out_vc: u32,
    pub to: u32,
    /// The virtual channels that it may have.
    pub allowed: u32,
    /// The number of its output port, and of its (input, output) pair.
    pub out: u32,
    pub pair: u32,
    /// The virtual channel whose credits this queue's beats hold.
    pub back: u32,
    pub router: u32,
    /// Cycles to the next queue.
    pub latency: u16,
    /// Beats of the first packet that have not been sent on.
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
    /// The input queue or source lane whose packet has it.
    pub owner: u32,
    /// Beats that were sent.
    pub sent: u64,
}

/// What is measured of an input queue; packets and cycles.
#[derive(Clone, Copy, Default)]
pub(super) struct QueueStats {
    pub inside: u32,
    pub most: u32,
    pub entered: u64,
    pub left: u64,
    pub changed: u64,
    pub area: u64,
    pub stayed: u64,
    /// Cycles in which the first packet waited for a virtual channel, or a beat of it for a credit.
    pub vc_wait: u64,
    pub credit_wait: u64,
    /// Since when one of these waits lasts.
    pub since: u64,
}

/// One port of a router, its sending and its receiving side.
#[derive(Clone, Copy)]
pub(super) struct Port {
    /// Inputs that have a beat for this output and may send it.
    pub requests: u64,
    /// Inputs with a packet that waits for a virtual channel of this output.
    pub waiting: u64,
    /// Virtual channels of this output that nobody has.
    pub free_vcs: u32,
    /// The port number at the other end; see [`Fabric`] for how ports are numbered.
    pub to: u32,
    /// Cycles from leaving until it can cross the next switch.
    pub latency: u32,
    /// The port whose beats come in here.
    pub from: u32,
    /// The router that this is a port of.
    pub router: u32,
    /// Whose turn it is: as output among inputs, as input among outputs, among virtual channels, among waiting heads.
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
    /// Where its table of (input, output) begins.
    pub first_pair: u32,
    /// Outputs with requests.
    pub outputs: u64,
    /// Outputs with heads that wait for a virtual channel.
    pub waited: u64,
}

/// What one input has for one output: bit sets of virtual channels.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    pub ready: u32,
    pub waiting: u32,
}

/// One queue of a terminal, before the network.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub head: u32,
    pub tail: u32,
    pub packets: u32,
    /// The first packet, the virtual channel that it has got, the queue that this leads to, and its beats that are still here.
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
