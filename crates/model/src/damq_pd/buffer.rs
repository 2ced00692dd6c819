//! The descriptor buffer, cycle by cycle: memory, lists, free addresses, arbiter, and the registers between them.
//!
//! A word that is offered in cycle `t` stands in the input register, is written in `t + 1`, takes part in arbitration in `t + 2`,
//! is read in `t + 3` at the earliest and leaves in `t + 4`. Each stage works every cycle, so that writes go back to back, and so do
//! reads (D-04, D-05). Credits see to it that a word that comes finds room (D-13): the buffer itself has no way to refuse one.

use super::address_queue::AddressQueue;
use super::arbiter::OutputArbiter;
use super::config::Organisation;
use super::data_memory::DataMemory;
use super::free_list::FreeList;
use super::order::Order;
use super::output::Output;
use super::pointers::Pointers;
use super::word::{Read, Way, Write};

/// All blocks of the buffer. The organisation is a setting of the same parts: where free addresses come from, and whether a pointer is late.
#[derive(Clone, Debug)]
pub struct DescriptorBuffer {
    /// The words.
    pub memory: DataMemory,
    /// Where the next word lies.
    pub links: AddressQueue,
    /// Where each list begins and ends.
    pub pointers: Pointers,
    /// Where no word lies.
    pub free: FreeList,
    /// Which list of a port is next.
    pub order: Order,
    /// Which port is next.
    pub arbiter: OutputArbiter,
    /// What is being read.
    pub output: Output,
    /// The word that came in the cycle before, with its ticket.
    input: Option<(Write, u32)>,
    /// DAMQ-PF's pointers are late (B-10).
    late_pointers: bool,
    ports: usize,
    /// Words that came by PIO, and by DMA, and are in the memory.
    pub inside: [usize; 2],
    /// The most words that there ever were, likewise.
    pub peak: [usize; 2],
    /// Words that found no room. Always zero under credits.
    pub overflows: u64,
    /// Cycles so far.
    pub cycles: u64,
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
}

/// Faults that tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A freed address is lost.
    LostAddress,
    /// An address is free again while its word is still there.
    EarlyFree,
    /// A word goes to the front of its list.
    WrongEnd,
    /// A port takes part before its descriptor is whole.
    NotWhole,
    /// PIO goes first, whatever was rung before.
    NoTickets,
    /// The output register is not emptied.
    Twice,
}

impl DescriptorBuffer {
    /// An empty buffer of `depth` words for PIO and `landing` words for DMA, for up to 64 ports. SAMQ gives each port an equal part of `depth`.
    ///
    /// # Panics
    /// If there are no ports or more than 64, no word, or more words than an address of 16 bits reaches.
    pub fn new(organisation: Organisation, ports: usize, depth: usize, landing: usize) -> Self {
        let all = depth + landing;
        assert!(
            (1..=64).contains(&ports) && (1..=1 << 16).contains(&all),
            "a buffer of 1 to 64 ports"
        );
        Self {
            memory: DataMemory::new(all),
            links: AddressQueue::new(all),
            pointers: Pointers::new(ports),
            free: FreeList::new(organisation, ports, depth, landing),
            order: Order::new(all, ports),
            arbiter: OutputArbiter::default(),
            output: Output::default(),
            input: None,
            late_pointers: organisation == Organisation::DamqPf,
            ports,
            inside: [0; 2],
            peak: [0; 2],
            overflows: 0,
            cycles: 0,
            #[cfg(test)]
            fault: None,
        }
    }

    /// One cycle: a word may come in, and one may leave. A new descriptor begins to leave only if the send engine is `ready`.
    ///
    /// # Panics
    /// In debug builds if the word's port is not below the number of ports; in release builds as an index out of bounds.
    #[inline]
    pub fn cycle(&mut self, input: Option<Write>, ready: bool) -> Option<Read> {
        self.cycles += 1;
        let leaves = self.output.register.take();
        #[cfg(test)]
        if self.fault == Some(Fault::Twice) && self.cycles.is_multiple_of(64) {
            self.output.register = leaves;
        }
        // In the order from the output to the input, so that each register still has what the cycle before left there.
        self.read();
        if ready && self.output.run.is_none() {
            self.arbitrate();
        }
        self.write();
        self.input = input.map(|write| (write, self.order.ticket(write.port)));
        leaves
    }

    /// A doorbell of `port` has come, for one descriptor in its host queue: words that come later by PIO go after it.
    pub fn ring(&mut self, port: u8) {
        self.order.rung(port);
    }

    /// Whether nothing is inside and nothing on its way through.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inside == [0; 2] && self.input.is_none() && self.output.register.is_none()
    }

    /// Whether a word stands in the input register.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Takes the next word of the descriptor that is being read.
    #[inline]
    fn read(&mut self) {
        let Some((port, way)) = self.output.run else { return };
        if self.output.pointer_due {
            self.output.pointer_due = false;
            return;
        }
        let list = self.pointers.list_mut(port, way);
        let address = list.head;
        let word = self.memory.read(address);
        list.head = self.links.after(address);
        list.words -= 1;
        let (head, words) = (list.head, list.words);
        #[cfg(test)]
        if self.fault != Some(Fault::LostAddress) || !self.cycles.is_multiple_of(64) {
            self.free.give(port, way, address);
        }
        #[cfg(not(test))]
        self.free.give(port, way, address);
        self.inside[way as usize] -= 1;
        self.output.register = Some(Read { port, way, word });
        self.output.pointer_due = self.late_pointers;
        if word.last {
            self.output.run = None;
            match way {
                Way::Dma => self.order.left(port),
                Way::Pio if words > 0 => self.order.heads(port, head),
                Way::Pio => {}
            }
            self.update(port);
        }
    }

    /// Chooses the descriptor that is read next.
    #[inline]
    fn arbitrate(&mut self) {
        let Some(port) = self.arbiter.grant() else { return };
        let way = self.turn(port);
        self.pointers.list_mut(port, way).whole -= 1;
        self.output.run = Some((port, way));
        // The head pointer is in a register in any case.
        self.output.pointer_due = false;
        self.arbiter.set(port, false);
    }

    /// Puts the word of the input register at the end of its list.
    #[inline]
    fn write(&mut self) {
        let Some((Write { port, way, word }, ticket)) = self.input.take() else { return };
        let Some(address) = self.free.take(port, way) else {
            self.overflows += 1;
            return;
        };
        #[cfg(test)]
        if self.fault == Some(Fault::EarlyFree) && self.cycles.is_multiple_of(64) {
            self.free.give(port, way, address);
        }
        self.memory.write(address, word);
        let list = self.pointers.list_mut(port, way);
        let first = list.words == 0;
        #[cfg(test)]
        let wrong = self.fault == Some(Fault::WrongEnd) && self.cycles.is_multiple_of(64) && !first;
        #[cfg(not(test))]
        let wrong = false;
        if first {
            list.head = address;
            list.tail = address;
        } else if wrong {
            self.links.link(address, list.head);
            list.head = address;
        } else {
            self.links.link(list.tail, address);
            list.tail = address;
        }
        list.words += 1;
        list.whole += u16::from(word.last);
        #[cfg(test)]
        if self.fault == Some(Fault::NotWhole) && list.words == 3 && list.whole == 0 {
            list.whole = 1;
        }
        let inside = &mut self.inside[way as usize];
        *inside += 1;
        let peak = &mut self.peak[way as usize];
        *peak = (*peak).max(*inside);
        if way == Way::Pio {
            self.order.came(port, address, ticket, first);
        }
        if word.last || first {
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
            let pio = self.pointers.list(port, Way::Pio).whole > 0;
            return if pio { Way::Pio } else { Way::Dma };
        }
        self.order.turn(port, self.pointers.list(port, Way::Pio).words)
    }

    /// Lets the port take part in arbitration if the list whose turn it is has a whole descriptor (D-07).
    #[inline]
    fn update(&mut self, port: u8) {
        // A descriptor that is being read decides at its end which list is next.
        let reading = self.output.run.is_some_and(|(reading, _)| reading == port);
        let eligible = !reading && self.pointers.list(port, self.turn(port)).whole > 0;
        self.arbiter.set(port, eligible);
    }

    /// Walks all lists and says what is wrong with the first that is; for tests.
    ///
    /// # Errors
    /// A sentence, if a word is on two lists, or on none and not free, or if counts disagree (D-03).
    pub fn check(&self) -> Result<(), String> {
        if self.overflows > 0 {
            return Err(format!("{} words found no room", self.overflows));
        }
        let mut seen = vec![false; self.memory.depth()];
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
                let list = self.pointers.list(port, way);
                let mut address = list.head;
                for at in 0..list.words {
                    see(address)?;
                    if at + 1 == list.words && address != list.tail {
                        return Err(format!("port {port}: the list does not end at its tail"));
                    }
                    address = self.links.after(address);
                }
                words += usize::from(list.words);
            }
        }
        for address in self.free.addresses() {
            see(address)?;
        }
        let inside = self.inside[0] + self.inside[1];
        if words != inside || words + self.free.free() != self.memory.depth() {
            return Err(format!(
                "{words} words in lists, {inside} counted, {} free",
                self.free.free()
            ));
        }
        Ok(())
    }

    /// Whether words inside and free addresses add up to the whole; cheap enough for every cycle.
    #[inline]
    pub fn is_conserved(&self) -> bool {
        self.inside[0] + self.inside[1] + self.free.free() == self.memory.depth()
            && self.overflows == 0
    }
}
