//! `chpp_quad`: four interfaces of cHPP and the crossbar between them (C-01, C-04; cHPP sections
//! 2.3, 3.4 and 4.1), as `hardware/chpp_quad` builds it: what serves four processors.
//!
//! Interface `i` is that of processor `i`, and has port `i` of the crossbar. A packet goes to the
//! port of the processor that it names. Its channel there is that of GETs, or the processor's
//! number modulo the other channels (Dest-Mod, C-42). A packet for the own processor does not
//! leave its interface.
//!
//! Places are counted twice, for each class:
//!
//! * An interface sends a packet if the crossbar has a place for it. It is told of a free one when
//!   a packet of this class has left any channel of its input.
//! * The crossbar lets a packet cross if the interface behind its output has a place. That one says
//!   so by `from_credit`.
//!
//! GETs may not hold up what is behind them (C-27). So what has a place is always taken: a channel
//! has room for as many of the longest packets as there are places, and so has an interface.

use bellwire_wire::header::Header;

use super::chpp_nic::{self, ChppNic};
use super::data_reorder::BEAT_WORDS;
use super::nic_core::{self, CLASSES, Taps};
use super::pcie_rx::BASE_BITS;
use super::pcie_tx::{DEVICE_BITS, EMPTY_BITS};
use super::rx_dispatch::{DATA, GET};
use super::xbar::{self, Xbar};

/// Interfaces, and ports of the crossbar.
pub const PORTS: usize = 4;

crate::ports! {
    /// What enters in a cycle. Elements are those of the interfaces.
    pub struct In {
        /// Bus and device of the interface: the hard block's, as `base` and `read_credit`.
        device: [u16; PORTS] = PORTS * DEVICE_BITS,
        /// The window's address, without the bits of its size.
        base: [u64; PORTS] = PORTS * BASE_BITS,
        /// The host has room for one more read.
        read_credit: [bool; PORTS] = PORTS,
        /// A beat of a TLP comes from the host.
        rx_valid: [bool; PORTS] = PORTS,
        /// It is the last one.
        rx_last: [bool; PORTS] = PORTS,
        /// DWs that it lacks; only the last one may.
        rx_empty: [u8; PORTS] = PORTS * EMPTY_BITS,
        /// The beat: the byte that was sent first is the lowest one.
        rx_data: [[u64; BEAT_WORDS]; PORTS] = PORTS * 64 * BEAT_WORDS,
        /// A beat for the host is taken, if one is offered.
        tx_ready: [bool; PORTS] = PORTS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat from the host is taken.
        rx_ready: [bool; PORTS] = PORTS,
        /// A beat of a TLP is offered to the host.
        tx_valid: [bool; PORTS] = PORTS,
        /// It is the last one.
        tx_last: [bool; PORTS] = PORTS,
        /// DWs that it lacks.
        tx_empty: [u8; PORTS] = PORTS * EMPTY_BITS,
        /// The beat: the byte that is sent first is the lowest one; zero if there is none.
        tx_data: [[u64; BEAT_WORDS]; PORTS] = PORTS * 64 * BEAT_WORDS,
        /// A packet starts to cross from this interface to another one.
        crosses: [bool; PORTS] = PORTS,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Those of each interface.
    pub nic: nic_core::Shape,
    /// Channels of an input of the crossbar that PUTs and NAPs share.
    pub channels: usize,
}

/// A beat that is in the crossbar, whose model carries its number.
#[derive(Clone, Copy, Debug, Default)]
struct Beat {
    data: [u64; BEAT_WORDS],
    to: u8,
}

/// What stands between an interface and its port of the crossbar.
#[derive(Clone, Debug, Default)]
struct Port {
    /// The processor of the packet whose beats come.
    goal: u8,
    /// A packet has begun to come.
    mid: bool,
    /// By class, packets in the channels of the input, with the one that began to come in the cycle
    /// before.
    inside: [u8; CLASSES],
}

/// Four interfaces and a crossbar.
#[derive(Clone, Debug)]
pub struct ChppQuad {
    nics: Vec<ChppNic>,
    xbar: Xbar,
    ports: Vec<Port>,
    channels: usize,
    carried: Vec<Option<Beat>>,
    /// What enters the crossbar in this cycle, so far.
    enters: xbar::In,
    /// What stands at its outputs in this cycle.
    leaves: xbar::Out,
}

impl ChppQuad {
    /// Interfaces without functions that are open.
    ///
    /// # Panics
    /// If a packet that has a place in an interface could find no room there, and as its blocks do.
    pub fn new(shape: Shape) -> ChppQuad {
        let Shape { nic, .. } = shape;
        assert!(nic.depth >= nic.packets, "a channel has as many places as packets come");
        assert!(nic.room >= nic.packets * nic.longest_packet(), "GETs would hold up PUTs");
        ChppQuad::tight(shape)
    }

    /// The same without room for all packets that have a place.
    pub(crate) fn tight(Shape { nic, channels }: Shape) -> ChppQuad {
        assert!((1..xbar::CHANNELS).contains(&channels), "one more channel is that of GETs");
        let beats = nic.longest_packet();
        let crossbar = xbar::Shape {
            ports: PORTS,
            channels: channels + 1,
            classes: CLASSES,
            depth: nic.packets,
            room: nic.packets * beats,
            beats,
            credits: nic.packets,
        };
        let xbar = Xbar::new(crossbar);
        let beats_inside = PORTS * ((channels + 1) * crossbar.room + 4);
        ChppQuad {
            nics: (0..PORTS).map(|_| ChppNic::new(nic)).collect(),
            leaves: xbar.out(),
            xbar,
            ports: vec![Port::default(); PORTS],
            channels,
            carried: vec![None; beats_inside],
            enters: xbar::In::default(),
        }
    }

    /// What has moved between the blocks of an interface's core in the last cycle.
    pub fn taps(&self, at: usize) -> Taps {
        self.nics[at].taps()
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();
        for at in 0..PORTS {
            let host = chpp_nic::In {
                device: input.device[at],
                base: input.base[at],
                read_credit: input.read_credit[at],
                rx_valid: input.rx_valid[at],
                rx_last: input.rx_last[at],
                rx_empty: input.rx_empty[at],
                rx_data: input.rx_data[at],
                tx_ready: input.tx_ready[at],
                ..chpp_nic::In::default()
            };
            let leaves = self.interface(at, host);
            out.rx_ready[at] = leaves.rx_ready;
            out.tx_valid[at] = leaves.tx_valid;
            out.tx_last[at] = leaves.tx_last;
            out.tx_empty[at] = leaves.tx_empty;
            out.tx_data[at] = leaves.tx_data;
        }
        out.crosses = self.clock();
        out
    }

    /// The cycle of one interface, of whose ports those of the host count. A [cycle](Self::cycle)
    /// is that of each, and then the [clock](Self::clock).
    pub fn interface(&mut self, at: usize, host: chpp_nic::In) -> chpp_nic::Out {
        let packets = self.inside(at);
        let sends = self.nics[at].sends();
        let port = &mut self.ports[at];
        if sends.to_valid && !port.mid {
            port.goal = goal(sends.to_data);
        }
        let channel = match usize::from(sends.to_class) {
            GET => self.channels,
            _ => usize::from(port.goal) % self.channels,
        };
        let to_ready = self.leaves.in_ready[at][channel];
        let to_credit = [DATA, GET].map(|class| port.inside[class] != packets[class]);
        let number = self.leaves.out_data[at] as usize;
        let comes = self.carried[number].filter(|_| self.leaves.out_valid[at]).unwrap_or_default();
        let out = self.nics[at].cycle(chpp_nic::In {
            cpu: at as u8,
            cpus: PORTS as u8,
            from_valid: self.leaves.out_valid[at],
            from_class: self.leaves.out_class[at],
            from_last: self.leaves.out_last[at],
            from_to: comes.to,
            from_data: comes.data,
            to_ready,
            to_credit,
            ..host
        });
        let goes = out.to_valid && to_ready;
        let begins = goes && !port.mid;
        for (class, inside) in port.inside.iter_mut().enumerate() {
            let is_one = begins && usize::from(out.to_class) == class;
            *inside = packets[class] + u8::from(is_one);
        }
        if goes {
            port.mid = !out.to_last;
            let free = self.carried.iter().position(Option::is_none);
            let free = free.expect("the crossbar has less room");
            self.carried[free] = Some(Beat { data: out.to_data, to: out.to_to });
            self.enters.in_valid[at] = true;
            self.enters.in_channel[at] = channel as u8;
            self.enters.in_output[at] = port.goal;
            self.enters.in_class[at] = out.to_class;
            self.enters.in_last[at] = out.to_last;
            self.enters.in_data[at] = free as u64;
        }
        self.enters.out_ready[at] = out.from_ready[usize::from(self.leaves.out_class[at])];
        for (place, told) in self.enters.credit[at].iter_mut().zip(out.from_credit) {
            *place = told;
        }
        out
    }

    /// The clock edge of the crossbar, behind those of all interfaces: from which of them a packet
    /// starts to cross.
    pub fn clock(&mut self) -> [bool; PORTS] {
        let enters = std::mem::take(&mut self.enters);
        for at in 0..PORTS {
            if self.leaves.out_valid[at] && enters.out_ready[at] {
                self.carried[self.leaves.out_data[at] as usize] = None;
            }
        }
        let granted = self.xbar.cycle(enters).granted;
        self.leaves = self.xbar.out();
        granted
    }

    /// By class, packets in the channels of an input.
    fn inside(&self, at: usize) -> [u8; CLASSES] {
        let (data, gets) = self.leaves.packets[at].split_at(self.channels);
        [data.iter().sum(), gets[0]]
    }
}

/// The processor that a packet with this first beat is for.
fn goal(beat: [u64; BEAT_WORDS]) -> u8 {
    let bytes = beat.map(u64::to_le_bytes);
    let header = Header::new(bytes.as_flattened()).expect("a beat is as long as a header");
    header.destination().cpu() % PORTS as u8
}

#[cfg(test)]
mod tests;
