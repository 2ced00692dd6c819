//! Packets in flight, and their lists.

/// The index of a packet in its fabric's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PacketId(pub(super) u32);

/// A packet, from injection to delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source terminal.
    pub source: u32,
    /// Destination terminal.
    pub destination: u32,
    /// Length in beats.
    pub beats: u16,
    /// Message class, see [`FabricConfig::classes`](super::FabricConfig::classes).
    pub class: u8,
    /// The caller's value: a handle, a number.
    pub tag: u64,
    /// The cycle in which it was made.
    pub born: u64,
}

/// One place in a list.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub packet: u32,
    pub next: u32,
    /// The cycle in which it entered this list.
    pub entered: u64,
}

pub(super) const NONE: u32 = u32::MAX;

/// Packets and list places, both recycled.
#[derive(Default)]
pub(super) struct Packets {
    packets: Vec<Packet>,
    unused: Vec<u32>,
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Packets {
    pub fn put(&mut self, packet: Packet) -> u32 {
        if let Some(at) = self.unused.pop() {
            self.packets[at as usize] = packet;
            return at;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    pub fn drop(&mut self, packet: u32) -> Packet {
        self.unused.push(packet);
        self.packets[packet as usize]
    }

    #[inline]
    pub fn packet(&self, packet: u32) -> &Packet {
        &self.packets[packet as usize]
    }

    /// Packets in flight.
    pub fn len(&self) -> usize {
        self.packets.len() - self.unused.len()
    }

    #[inline]
    pub fn place(&self, place: u32) -> &Place {
        &self.places[place as usize]
    }

    /// Appends a packet to a list, given by its ends.
    #[inline]
    pub fn append(&mut self, ends: (&mut u32, &mut u32), packet: u32, entered: u64) {
        let new = Place { packet, next: NONE, entered };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = new;
                at
            }
            None => {
                self.places.push(new);
                (self.places.len() - 1) as u32
            }
        };
        let (head, tail) = ends;
        if *head == NONE {
            *head = at;
        } else {
            self.places[*tail as usize].next = at;
        }
        *tail = at;
    }

    /// Removes the first place of a list.
    #[inline]
    pub fn remove_first(&mut self, head: &mut u32) -> Place {
        let place = self.places[*head as usize];
        self.free.push(*head);
        *head = place.next;
        place
    }

    /// The places of a list from its head.
    pub fn list(&self, head: u32) -> Vec<&Place> {
        let place = |at: u32| (at != NONE).then(|| &self.places[at as usize]);
        std::iter::successors(place(head), |at| place(at.next)).collect()
    }
}
