//! What connects the interfaces: a switch that takes a beat of each in every cycle, and gives each
//! one. Packets of one source, destination and class wait in a queue of their own, so no packet
//! waits behind one for elsewhere.
//!
//! An interface knows how many packets of each class the switch takes from it: as many as it takes
//! itself. A place is free again when the last beat of its packet has left the switch.

use std::collections::VecDeque;

use bellwire_wire::header::Header;

use crate::cycle::data_reorder::BEAT_WORDS;
use crate::cycle::nic_core::CLASSES;

/// A beat of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketBeat {
    /// The class of the packet.
    pub class: u8,
    /// It is the last one.
    pub last: bool,
    /// The lane of its last byte.
    pub to: u8,
    /// The beat.
    pub data: [u64; BEAT_WORDS],
}

/// What the switch knows of one interface.
#[derive(Clone, Default)]
struct Port {
    /// By class, where the packet goes of which beats come.
    goes_to: [Option<usize>; CLASSES],
    /// By class, places of which the interface has not been told that they are free.
    credits: [u32; CLASSES],
    /// By class, packets that the interface has room for.
    room: [u32; CLASSES],
    /// Source and class of the packet that leaves for it, and of the last one that did.
    serves: Option<(usize, usize)>,
    served: usize,
}

/// The switch.
pub struct Switch {
    ports: Vec<Port>,
    /// Beats, by destination, then source, then class.
    queues: Vec<VecDeque<PacketBeat>>,
    /// Packets for nobody.
    pub misrouted: u64,
}

impl Switch {
    /// An empty switch of `ports` interfaces, which take `packets` packets of each class.
    pub fn new(ports: usize, packets: usize) -> Switch {
        let port = Port { room: [packets as u32; CLASSES], ..Port::default() };
        Switch {
            ports: vec![port; ports],
            queues: vec![VecDeque::new(); ports * ports * CLASSES],
            misrouted: 0,
        }
    }

    fn queue(&mut self, to: usize, from: usize, class: usize) -> &mut VecDeque<PacketBeat> {
        let ports = self.ports.len();
        &mut self.queues[(to * ports + from) * CLASSES + class]
    }

    /// A beat of an interface.
    pub fn take(&mut self, from: usize, beat: PacketBeat) {
        let class = usize::from(beat.class);
        let to = self.ports[from].goes_to[class].unwrap_or_else(|| {
            let bytes = beat.data.map(u64::to_le_bytes);
            let header = Header::new(bytes.as_flattened());
            header.map_or(usize::MAX, |header| header.destination().cpu().into())
        });
        self.ports[from].goes_to[class] = (!beat.last).then_some(to);
        if to < self.ports.len() {
            self.queue(to, from, class).push_back(beat);
        } else if beat.last {
            self.misrouted += 1;
            self.ports[from].credits[class] += 1;
        }
    }

    /// The beat that an interface is offered. It stays the same until it [was taken](Switch::took).
    pub fn beat(&mut self, to: usize) -> Option<PacketBeat> {
        if self.ports[to].serves.is_none() {
            let (ports, served) = (self.ports.len(), self.ports[to].served);
            let choices = ports * CLASSES;
            let next = (1..=choices).map(|step| (served + step) % choices).find(|&choice| {
                let (from, class) = (choice / CLASSES, choice % CLASSES);
                self.ports[to].room[class] > 0 && !self.queue(to, from, class).is_empty()
            })?;
            let (from, class) = (next / CLASSES, next % CLASSES);
            let port = &mut self.ports[to];
            port.room[class] -= 1;
            (port.serves, port.served) = (Some((from, class)), next);
        }
        let (from, class) = self.ports[to].serves?;
        self.queue(to, from, class).front().copied()
    }

    /// The interface has taken it.
    pub fn took(&mut self, to: usize) {
        let Some((from, class)) = self.ports[to].serves else { return };
        if self.queue(to, from, class).pop_front().is_some_and(|beat| beat.last) {
            self.ports[to].serves = None;
            self.ports[from].credits[class] += 1;
        }
    }

    /// By class, whether an interface is told now that a place is free again.
    pub fn credit(&mut self, from: usize) -> [bool; CLASSES] {
        self.ports[from].credits.each_mut().map(|credits| {
            let told = *credits > 0;
            *credits -= u32::from(told);
            told
        })
    }

    /// By class, an interface has a free place again.
    pub fn free(&mut self, to: usize, credit: [bool; CLASSES]) {
        for (room, told) in self.ports[to].room.iter_mut().zip(credit) {
            *room += u32::from(told);
        }
    }
}
