//! The sending side of terminals: queues of packets, one beat per cycle into the network.

use super::config::Switching;
use super::datapath::{Beat, HEAD, TAIL};
use super::fabric::Fabric;
use super::packets::NONE;
use super::parts::UNLIMITED;
use super::routing::DatelineClass;
use crate::engine::ones;

impl Fabric {
    /// Each terminal sends a beat if it can.
    pub(super) fn send_from_sources(&mut self) {
        for word in 0..self.active_sources.len() {
            for bit in ones(self.active_sources[word]) {
                let terminal = word as u32 * 64 + bit as u32;
                if !self.send_from(terminal) {
                    // A credit or another packet sets it again.
                    self.active_sources[word] &= !(1 << bit);
                }
            }
        }
    }

    fn send_from(&mut self, terminal: u32) -> bool {
        let source = self.sources[terminal as usize];
        let turn = u32::from(source.turn);
        for at in ones(source.lanes.rotate_right(turn).into()) {
            let lane = (at as u32 + turn) % 32;
            if self.send_from_lane(terminal, lane) {
                self.sources[terminal as usize].turn = (lane + 1) as u8;
                return true;
            }
        }
        false
    }

    fn send_from_lane(&mut self, terminal: u32, at: u32) -> bool {
        let number = (terminal * self.lanes_each + at) as usize;
        if self.lanes[number].out_vc == NONE && !self.begin(terminal, number) {
            return false;
        }
        let lane = &mut self.lanes[number];
        let out = &mut self.out_vcs[lane.out_vc as usize];
        if out.credits == 0 {
            return false;
        }
        out.credits -= u32::from(out.credits != UNLIMITED);
        out.sent += 1;
        lane.left -= 1;
        let head = if lane.head_here { HEAD } else { 0 };
        lane.head_here = false;
        let tail = if lane.left == 0 { TAIL } else { 0 };
        let beat = Beat { queue: lane.to, packet: lane.packet | head | tail };
        let latency = self.config.terminal_cycles + self.config.pipeline_cycles;
        self.beats.put(self.cycle + u64::from(latency), beat);
        if tail != 0 {
            self.end(terminal, at);
        }
        true
    }

    /// Allocates a virtual channel to the first packet of a lane, if one is free.
    fn begin(&mut self, terminal: u32, number: usize) -> bool {
        let port = self.router_ports() + terminal;
        let lane = self.lanes[number];
        let packet = self.packets.packet(lane.packet);
        let allowed = self.allowed(packet, DatelineClass::Any) & self.ports[port as usize].free_vcs;
        let Some(vc) = self.choose_vc(port, allowed, lane.left) else { return false };
        self.ports[port as usize].free_vcs &= !(1 << vc);
        let out_vc = port << self.vc_shift | vc;
        self.out_vcs[out_vc as usize].owner = number as u32;
        let lane = &mut self.lanes[number];
        lane.out_vc = out_vc;
        lane.to = self.ports[port as usize].to << self.vc_shift | vc;
        true
    }

    /// Ends the first packet of a lane: it has left.
    fn end(&mut self, terminal: u32, at: u32) {
        let lane = &mut self.lanes[(terminal * self.lanes_each + at) as usize];
        let vc = lane.out_vc & ((1 << self.vc_shift) - 1);
        self.out_vcs[lane.out_vc as usize].owner = NONE;
        self.departed.push(*self.packets.packet(lane.packet));
        lane.out_vc = NONE;
        lane.packets -= 1;
        self.packets.remove_first(&mut lane.head);
        if lane.head == NONE {
            self.sources[terminal as usize].lanes &= !(1 << at);
        } else {
            lane.packet = self.packets.place(lane.head).packet;
            lane.left = self.packets.packet(lane.packet).beats;
            lane.head_here = true;
        }
        let port = self.router_ports() + terminal;
        self.ports[port as usize].free_vcs |= 1 << vc;
    }

    /// A free virtual channel of a port, round-robin. Except for wormhole switching, it must have
    /// room for the whole packet.
    #[inline]
    pub(super) fn choose_vc(&mut self, port: u32, allowed: u32, beats: u16) -> Option<u32> {
        let mut candidates = allowed;
        if self.config.switching != Switching::Wormhole {
            for vc in 0..u32::from(self.config.vcs) {
                let credits = self.out_vcs[(port << self.vc_shift | vc) as usize].credits;
                candidates &= !(u32::from(credits < u32::from(beats)) << vc);
            }
        }
        if candidates == 0 {
            return None;
        }
        let turn = u32::from(self.ports[port as usize].vc_turn);
        let vc = (candidates.rotate_right(turn).trailing_zeros() + turn) % 32;
        self.ports[port as usize].vc_turn = (vc + 1) as u8;
        Some(vc)
    }
}
