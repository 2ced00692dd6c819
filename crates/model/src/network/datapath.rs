//! The path of a beat: in from a link, through the switch, out to the next.

use super::config::Switching;
use super::fabric::{Delivery, Fabric, set, some};
use super::packets::NONE;
use super::parts::{State, UNLIMITED};
use super::routing::Way;

/// Flags in the upper bits of a beat's packet number.
pub(super) const HEAD: u32 = 0x8000_0000;
pub(super) const TAIL: u32 = 0x4000_0000;
pub(super) const NUMBER: u32 = 0x3fff_ffff;

#[derive(Clone, Copy)]
pub(super) struct Beat {
    pub queue: u32,
    /// The packet's number and the flags.
    pub packet: u32,
}

impl Fabric {
    /// Takes in the credits and beats that arrive in this cycle.
    pub(super) fn take_in(&mut self) {
        let credits = self.credits.take(self.cycle);
        for &vc in &credits {
            self.credit(vc);
        }
        self.credits.recycle(self.cycle, credits);
        let beats = self.beats.take(self.cycle);
        for &beat in &beats {
            if (beat.queue as usize) < self.queues.len() {
                self.arrive(beat.queue, beat.packet);
            } else {
                self.deliver(beat);
            }
        }
        self.beats.recycle(self.cycle, beats);
    }

    /// Returns a credit to its sender.
    #[inline]
    fn credit(&mut self, vc: u32) {
        let out = &mut self.out_vcs[vc as usize];
        out.credits += 1;
        let (first, owner) = (out.credits == 1, out.owner);
        let whole = self.config.switching != Switching::Wormhole;
        if vc as usize >= self.queues.len() {
            if first || whole {
                let terminal = (vc >> self.vc_shift) - self.router_ports();
                set(&mut self.active_sources, terminal);
            }
        } else if owner == NONE {
            let port = &self.ports[(vc >> self.vc_shift) as usize];
            if whole && port.waiting != 0 {
                set(&mut self.active_routers, port.router);
            }
        } else if first && self.queues[owner as usize].occupied > 0 {
            let stats = &mut self.stats[owner as usize];
            stats.credit_wait += self.cycle - stats.since;
            self.ready(owner);
        }
    }

    /// Puts an arriving beat into its input queue.
    #[inline]
    fn arrive(&mut self, number: u32, beat: u32) {
        let queue = &mut self.queues[number as usize];
        queue.occupied += 1;
        if beat & HEAD != 0 {
            let packet = beat & NUMBER;
            self.stats[number as usize].enter(self.cycle);
            let first = queue.head == NONE;
            self.packets.append((&mut queue.head, &mut queue.tail), packet, self.cycle);
            if first {
                self.front(number);
                return;
            }
        }
        let queue = &self.queues[number as usize];
        match queue.state {
            State::Moving if queue.occupied == 1 => {
                if self.out_vcs[queue.out_vc as usize].credits > 0 {
                    self.ready(number);
                } else {
                    self.stats[number as usize].since = self.cycle;
                }
            }
            State::Filling if queue.occupied >= u32::from(queue.left) => self.ask_for_vc(number),
            _ => {}
        }
    }

    /// Routes a packet that has reached the front of its input queue.
    fn front(&mut self, number: u32) {
        let queue = &self.queues[number as usize];
        let place = self.packets.place(queue.head);
        let packet = self.packets.packet(place.packet);
        let (router_to, port_to) = self.topology.place(packet.destination as usize);
        let step = self.routes.step(Way {
            router: queue.router,
            came_by: queue.port,
            source_router: self.topology.place(packet.source as usize).0,
            router_to,
            port_to,
            // These bits must stay the same along the route and differ between packets.
            bits: (packet.born as u32 ^ packet.source.rotate_left(16) ^ packet.destination)
                .wrapping_mul(0x9e37_79b1),
        });
        // A terminal reassembles packets from all channels of the class: the dateline does not
        // matter there.
        let allowed = if queue.router == router_to {
            let class = self.config.class(packet.class.into());
            some(class.first_vc.into(), class.vcs.into())
        } else {
            self.allowed(packet, step.dateline_class)
        };
        let (number_of_packet, beats) = (place.packet, packet.beats);
        let router = &self.routers[queue.router as usize];
        let out = router.first_port + u32::from(step.port);
        let latency = self.ports[out as usize].latency as u16;
        let queue = &mut self.queues[number as usize];
        queue.packet = number_of_packet;
        queue.left = beats;
        queue.head_here = true;
        queue.out_port = step.port;
        queue.out = out;
        queue.pair = router.pair(queue.port.into(), step.port.into()) as u32;
        queue.latency = latency;
        queue.allowed = allowed;
        let whole = queue.occupied >= u32::from(beats);
        if self.config.switching == Switching::StoreAndForward && !whole {
            queue.state = State::Filling;
        } else {
            self.ask_for_vc(number);
        }
    }

    fn ask_for_vc(&mut self, number: u32) {
        let queue = &mut self.queues[number as usize];
        queue.state = State::WaitsForVc;
        self.stats[number as usize].since = self.cycle;
        self.routers[queue.router as usize].waited |= 1 << queue.out_port;
        self.pairs[queue.pair as usize].waiting |= 1 << queue.vc;
        self.ports[queue.out as usize].waiting |= 1 << queue.port;
        set(&mut self.active_routers, queue.router);
    }

    /// Marks that an input queue has a beat to send.
    #[inline]
    pub(super) fn ready(&mut self, number: u32) {
        let queue = &self.queues[number as usize];
        let pair = &mut self.pairs[queue.pair as usize];
        if pair.ready == 0 {
            self.routers[queue.router as usize].outputs |= 1 << queue.out_port;
            self.ports[queue.out as usize].requests |= 1 << queue.port;
            set(&mut self.active_routers, queue.router);
        }
        pair.ready |= 1 << queue.vc;
    }

    /// Marks that an input queue has no beat to send.
    #[inline]
    fn unready(&mut self, number: u32) {
        let queue = &self.queues[number as usize];
        let ready = &mut self.pairs[queue.pair as usize].ready;
        *ready &= !(1 << queue.vc);
        if *ready == 0 {
            let port = &mut self.ports[queue.out as usize];
            port.requests &= !(1 << queue.port);
            if port.requests == 0 {
                self.routers[queue.router as usize].outputs &= !(1 << queue.out_port);
            }
        }
    }

    /// Moves a beat from an input queue through the switch.
    #[inline]
    pub(super) fn cross(&mut self, number: u32) {
        let queue = &mut self.queues[number as usize];
        queue.occupied -= 1;
        queue.left -= 1;
        let head = if queue.head_here { HEAD } else { 0 };
        queue.head_here = false;
        let last = queue.left == 0;
        let tail = if last { TAIL } else { 0 };
        let beat = Beat { queue: queue.to, packet: queue.packet | head | tail };
        self.beats.put(self.cycle + u64::from(queue.latency), beat);
        // Its place is free again: a credit goes back.
        if self.config.buffer_beats != 0 {
            self.credits.put(self.cycle + u64::from(self.config.credit_cycles), queue.back);
        }
        self.counters.hops += 1;
        let out = &mut self.out_vcs[queue.out_vc as usize];
        out.sent += 1;
        out.credits -= u32::from(out.credits != UNLIMITED);
        let (empty, no_credit) = (queue.occupied == 0, out.credits == 0);
        if last {
            out.owner = NONE;
            let port = &mut self.ports[queue.out as usize];
            port.free_vcs |= 1 << (queue.out_vc & ((1 << self.vc_shift) - 1));
            if port.waiting != 0 {
                set(&mut self.active_routers, queue.router);
            }
            self.unready(number);
            self.next_packet(number);
        } else if empty {
            self.unready(number);
        } else if no_credit {
            self.stats[number as usize].since = self.cycle;
            self.unready(number);
        }
    }

    fn next_packet(&mut self, number: u32) {
        let queue = &mut self.queues[number as usize];
        let place = self.packets.remove_first(&mut queue.head);
        queue.out_vc = NONE;
        queue.state = State::Empty;
        let more = queue.head != NONE;
        self.stats[number as usize].leave(place.entered, self.cycle);
        if more {
            self.front(number);
        }
    }

    /// Delivers a beat to its terminal.
    fn deliver(&mut self, beat: Beat) {
        if self.config.sink_beats != 0 {
            self.at_sinks += 1;
        }
        if beat.packet & TAIL != 0 {
            let vc = (beat.queue & ((1 << self.vc_shift) - 1)) as u8;
            let packet = self.packets.drop(beat.packet & NUMBER);
            self.counters.packets_out += 1;
            self.counters.beats_out += u64::from(packet.beats);
            self.delivered.push(Delivery { packet, vc, cycle: self.cycle });
        }
    }
}
