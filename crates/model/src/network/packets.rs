//! Packets under way, and the lists in which they stand.

/// The place of a packet in its fabric's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PacketId(pub(super) u32);

/// What a packet is, from its injection to its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The terminal that it comes from.
    pub source: u32,
    /// The terminal that it goes to.
    pub destination: u32,
    /// Its length.
    pub beats: u16,
    /// Its class of messages, see [`FabricConfig::classes`](super::FabricConfig::classes).
    pub class: u8,
    /// The model's own: a handle, a number.
    pub tag: u64,
    /// The cycle in which it was made.
    pub born: u64,
}

/// One place in a list of packets.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub packet: u32,
    pub next: u32,
    /// The cycle in which it came to this list.
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

    /// How many packets are under way.
    pub fn len(&self) -> usize {
        self.packets.len() - self.unused.len()
    }

    #[inline]
    pub fn place(&self, place: u32) -> &Place {
        &self.places[place as usize]
    }

    /// Appends a packet to a list given by its ends.
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

    /// Takes the first of a list.
    #[inline]
    pub fn remove_first(&mut self, head: &mut u32) -> Place {
        let place = self.places[*head as usize];
        self.free.push(*head);
        *head = place.next;
        place
    }

    /// The places of a list from its head.
    pub fn list(&self, head: u32) -> impl Iterator<Item = &Place> {
        let place = |at: u32| (at != NONE).then(|| &self.places[at as usize]);
        std::iter::successors(place(head), move |at| place(at.next))
    }
}
