//! The descriptor buffer, cycle by cycle: memory, lists, free addresses, arbiter, and the registers
//! between them.
//!
//! A word offered in cycle `t` stands in the input register. It is written in `t + 1` and takes
//! part in arbitration in `t + 2`. It is read in `t + 3` at the earliest and leaves in `t + 4`.
//! Each stage works every cycle, so writes go back to back, and so do reads (D-04, D-05). Credits
//! guarantee room for each word (D-13): the buffer itself cannot refuse one.
//!
//! `hardware/damq_pd` has the same in gates, cycle for cycle; `ports` ties both together.

use super::EVERY_PORT;
use super::arbiter::OutputArbiter;
use super::config::Organisation;
use super::free_list::FreeList;
use super::order::Order;
use super::word::{PortWord, Way, Word};

/// One list.
// 8 bytes, so that indexing is a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub struct List {
    /// Address of its first word, or [`NONE`](List::NONE). While a descriptor is read, it stays at
    /// that descriptor's first word.
    pub head: u16,
    /// Address of its last word, or `NONE`.
    pub tail: u16,
    /// Descriptors whose last word is here and that are not being read.
    pub whole: u16,
}

impl List {
    /// The null address.
    pub const NONE: u16 = u16::MAX;

    /// An empty list.
    const EMPTY: List = List { head: Self::NONE, tail: Self::NONE, whole: 0 };

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == Self::NONE
    }
}

/// A descriptor being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its port.
    pub port: u8,
    /// Its list.
    pub way: Way,
    /// The address of its next word. The head of its list stays at its first word until its last
    /// has left.
    pub address: u16,
}

/// All blocks of the buffer. An organisation sets two things: where free addresses come from, and
/// whether pointers are a cycle late.
#[derive(Clone, Debug)]
pub struct DescriptorBuffer {
    /// The data memory: words by address.
    pub words: Box<[Word]>,
    /// The address queue: per word, the address of the next word of its list (D-02).
    ///
    /// DAMQ-PF keeps the same links in its *address buffer*. It registers the output of that memory
    /// before it addresses the next read, so a list yields a word every other cycle. Here the link
    /// drives the address inputs directly, and a list yields a word every cycle (D-05). The paper
    /// describes its own circuit in Section 2, which our copy lacks.
    next: Box<[u16]>,
    /// Two lists for each virtual port, one for PIO and one for DMA (D-02).
    lists: Box<[[List; 2]; EVERY_PORT]>,
    /// The free addresses.
    pub free: FreeList,
    /// Which list of a port is next: order between PIO and DMA.
    pub order: Order,
    /// Which port is next.
    pub arbiter: OutputArbiter,
    /// The descriptor being read.
    pub run: Option<Run>,
    /// Descriptors selected for reading so far.
    pub selected: u64,
    /// The pointer to the next word is there. Used only by DAMQ-PF; elsewhere it is always there.
    pointer_here: bool,
    /// The output register: the word that leaves in the next cycle (D-06).
    register: Option<PortWord>,
    /// The word that came in the previous cycle, with its ticket.
    input: Option<(PortWord, u32)>,
    /// Whether pointers are a cycle late, as in DAMQ-PF (B-10).
    late_pointers: bool,
    /// A port whose PIO list has a new head while the port waits for DMA descriptors. The head's
    /// ticket comes out of the address queue a cycle later, and decides only then.
    undecided: Option<u8>,
    ports: usize,
    /// Words written into the memory, by way of submission.
    pub written: [u64; 2],
    /// Words read from it, by way of submission.
    pub read: [u64; 2],
    /// Words that found no room. Always zero under credits.
    pub overflows: u64,
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
}

/// Faults that tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A freed address is lost.
    LostAddress,
    /// An address becomes free while its word is still there.
    EarlyFree,
    /// A word goes to the front of its list.
    WrongEnd,
    /// A port takes part before its descriptor is whole.
    NotWhole,
    /// PIO goes first, whatever doorbells came before.
    NoTickets,
    /// The output register is not emptied.
    Twice,
}

impl DescriptorBuffer {
    /// An empty buffer with `depth` words for PIO and `landing` words for DMA, for up to 64 ports.
    /// SAMQ gives each port an equal part of `depth`.
    ///
    /// # Panics
    /// If there are no ports or more than 64, no words, or more words than addresses.
    pub fn new(organisation: Organisation, ports: usize, depth: usize, landing: usize) -> Self {
        let all = depth + landing;
        assert!(
            (1..=64).contains(&ports) && (1..1 << 16).contains(&all),
            "a buffer of 1 to 64 ports"
        );
        Self {
            words: vec![Word::default(); all].into(),
            next: vec![0; all].into(),
            lists: Box::new([[List::EMPTY; 2]; EVERY_PORT]),
            free: FreeList::new(organisation, ports, depth, landing),
            order: Order::new(all),
            arbiter: OutputArbiter::default(),
            run: None,
            selected: 0,
            pointer_here: false,
            register: None,
            input: None,
            late_pointers: organisation == Organisation::DamqPf,
            undecided: None,
            ports,
            written: [0; 2],
            read: [0; 2],
            overflows: 0,
            #[cfg(test)]
            fault: None,
        }
    }

    /// One cycle: at most one word enters, and at most one leaves. A new descriptor begins to leave
    /// only if the send engine is `ready`.
    ///
    /// # Panics
    /// In debug builds if the word's port is not below the number of ports.
    #[inline]
    pub fn cycle(&mut self, input: Option<PortWord>, ready: bool) -> Option<PortWord> {
        let leaves = self.register;
        // From output to input, so that each stage sees the register values of the previous cycle.
        let undecided = self.undecided.take();
        self.register = self.take();
        #[cfg(test)]
        if self.fault == Some(Fault::Twice) && self.register.is_none() {
            self.register = leaves;
        }
        if ready && self.run.is_none() {
            self.arbitrate();
        }
        self.put();
        if let Some(port) = undecided {
            self.update(port);
        }
        self.free.clock();
        debug_assert!(
            input.is_none_or(|write| usize::from(write.port) < self.ports),
            "no such port"
        );
        self.input = input.map(|write| (write, self.order.ticket(write.port)));
        leaves
    }

    /// A doorbell of `port` for one descriptor in its host queue. Words that come by PIO after it
    /// are ordered behind that descriptor.
    pub fn ring(&mut self, port: u8) {
        self.order.rung(port);
    }

    /// Whether the memory and all registers are empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.written == self.read && self.input.is_none() && self.register.is_none()
    }

    /// Words in the memory that came this way.
    #[inline]
    pub fn inside(&self, way: Way) -> usize {
        (self.written[way as usize] - self.read[way as usize]) as usize
    }

    /// Whether a word stands in the input register.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Takes the next word of the descriptor being read.
    #[inline]
    fn take(&mut self) -> Option<PortWord> {
        let run = self.run.as_mut()?;
        if self.late_pointers && !std::mem::replace(&mut self.pointer_here, false) {
            self.pointer_here = true;
            return None;
        }
        let &mut Run { port, way, address } = run;
        let word = self.words[usize::from(address)];
        run.address = self.next[usize::from(address)];
        #[cfg(test)]
        if self.fault != Some(Fault::LostAddress) || self.read[way as usize] % 64 != 1 {
            self.free.give(port, way, address);
        }
        #[cfg(not(test))]
        self.free.give(port, way, address);
        self.read[way as usize] += 1;
        if word.is_last() {
            self.ends(port, way, address);
        }
        Some(PortWord { port, way, word })
    }

    /// Ends the read of a descriptor: its last word lay at `address`.
    #[inline]
    fn ends(&mut self, port: u8, way: Way, address: u16) {
        self.run = None;
        let list = &mut self.lists[port as usize][way as usize];
        list.head = if address == list.tail { List::NONE } else { self.next[usize::from(address)] };
        match way {
            Way::Dma => self.order.left(port),
            Way::Pio if list.is_empty() => {}
            Way::Pio => {
                self.order.heads(port, list.head);
                if !self.order.settled(port) {
                    self.undecided = Some(port);
                    return;
                }
            }
        }
        self.update(port);
    }

    /// Selects the next descriptor to read.
    #[inline]
    fn arbitrate(&mut self) {
        let Some((port, way)) = self.arbiter.grant() else { return };
        let list = &mut self.lists[port as usize][way as usize];
        list.whole -= 1;
        self.selected += 1;
        self.run = Some(Run { port, way, address: list.head });
        // The head pointer is always registered, so the first word is never late.
        self.pointer_here = true;
    }

    /// Appends the word of the input register to its list.
    #[inline]
    fn put(&mut self) {
        let Some((PortWord { port, way, word }, ticket)) = self.input.take() else { return };
        let Some(address) = self.free.take(port, way) else {
            self.overflows += 1;
            return;
        };
        #[cfg(test)]
        if self.fault == Some(Fault::EarlyFree) && self.written[way as usize] % 64 == 1 {
            self.free.give(port, way, address);
        }
        self.words[usize::from(address)] = word;
        let list = &mut self.lists[port as usize][way as usize];
        let first = list.is_empty();
        #[cfg(test)]
        let wrong =
            self.fault == Some(Fault::WrongEnd) && self.written[way as usize] % 64 == 1 && !first;
        #[cfg(not(test))]
        let wrong = false;
        if first {
            list.head = address;
            list.tail = address;
        } else if wrong {
            self.next[usize::from(address)] = list.head;
            list.head = address;
        } else {
            self.next[usize::from(list.tail)] = address;
            list.tail = address;
        }
        list.whole += u16::from(word.is_last());
        #[cfg(test)]
        if self.fault == Some(Fault::NotWhole) && !first && list.whole == 0 {
            list.whole = 1;
        }
        self.written[way as usize] += 1;
        if way == Way::Pio {
            self.order.came(port, address, ticket, first);
        }
        // The first word of a list matters only if it takes the turn from the port's other list.
        if word.is_last() || first && self.arbiter.has(port) {
            self.update(port);
        }
        #[cfg(test)]
        if self.fault == Some(Fault::NotWhole) {
            self.update(port);
        }
    }

    #[inline]
    fn turn(&self, port: u8) -> Way {
        #[cfg(test)]
        if self.fault == Some(Fault::NoTickets) {
            let pio = self.lists[port as usize][Way::Pio as usize].whole > 0;
            return if pio { Way::Pio } else { Way::Dma };
        }
        self.order.turn(port, !self.lists[port as usize][Way::Pio as usize].is_empty())
    }

    /// Makes the port eligible if the list whose turn it is has a whole descriptor (D-07).
    #[inline]
    fn update(&mut self, port: u8) {
        // While a descriptor is read, its end decides which list is next.
        let reading = self.run.is_some_and(|run| run.port == port) || self.undecided == Some(port);
        let way = self.turn(port);
        let eligible = !reading && self.lists[port as usize][way as usize].whole > 0;
        self.arbiter.set(port, way, eligible);
    }

    /// Walks all lists and reports the first violation; for tests.
    ///
    /// # Errors
    /// A sentence, if a word is on two lists, or neither on a list nor free, or if counts disagree
    /// (D-03).
    pub fn check(&self) -> Result<(), String> {
        if self.overflows > 0 {
            return Err(format!("{} words found no room", self.overflows));
        }
        let mut seen = vec![false; self.words.len()];
        let mut see = |address: u16| {
            let place = &mut seen[address as usize];
            if std::mem::replace(place, true) {
                Err(format!("address {address} is in use twice"))
            } else {
                Ok(())
            }
        };
        let mut words = 0;
        for port in 0..self.ports as u8 {
            for way in [Way::Pio, Way::Dma] {
                let List { mut head, tail, .. } = self.lists[port as usize][way as usize];
                if let Some(run) = self.run.filter(|run| (run.port, run.way) == (port, way)) {
                    head = run.address;
                }
                while head != List::NONE {
                    see(head)?;
                    words += 1;
                    head = if head == tail { List::NONE } else { self.next[usize::from(head)] };
                }
            }
        }
        for address in self.free.addresses() {
            see(address)?;
        }
        let inside = self.inside(Way::Pio) + self.inside(Way::Dma);
        if words != inside || words + self.free.free() != self.words.len() {
            return Err(format!(
                "{words} words in lists, {inside} counted, {} free",
                self.free.free()
            ));
        }
        Ok(())
    }

    /// Whether words inside and free addresses add up to the total; cheap enough for every cycle.
    #[inline]
    pub fn is_conserved(&self) -> bool {
        self.inside(Way::Pio) + self.inside(Way::Dma) + self.free.free() == self.words.len()
            && self.overflows == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of 4 words into which 5 are written: the last finds no room, and the buffer is
    /// found to be wrong.
    #[test]
    fn words_without_room_are_counted() {
        let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 1, 4, 4);
        let word = PortWord { port: 0, way: Way::Pio, word: Word::new(0, false) };
        for words in 0..5 {
            buffer.cycle(Some(word), false);
            assert_eq!((buffer.has_input(), buffer.inside(Way::Pio)), (true, words));
            assert!(buffer.is_conserved() && buffer.check().is_ok());
        }
        buffer.cycle(None, false);
        assert_eq!((buffer.has_input(), buffer.inside(Way::Pio), buffer.overflows), (false, 4, 1));
        assert!(!buffer.is_conserved());
        assert_eq!(buffer.check(), Err("1 words found no room".to_owned()));
    }

    /// Canary: an address that is neither free nor in use.
    #[test]
    fn a_lost_address_is_found() {
        let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 1, 4, 4);
        assert!(buffer.is_conserved());
        buffer.free.take(0, Way::Pio);
        assert!(!buffer.is_conserved());
        assert!(buffer.check().unwrap_err().contains("0 words in lists, 0 counted, 7 free"));
    }
}
