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
use super::output::{Output, Run};
use super::pointers::{List, Pointers};
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
    /// Words that were written into the memory so far, by the way that they came.
    pub written: [u64; 2],
    /// Words that were read from it, likewise.
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
    /// If there are no ports or more than 64, no word, or more words than there are addresses.
    pub fn new(organisation: Organisation, ports: usize, depth: usize, landing: usize) -> Self {
        let all = depth + landing;
        assert!(
            (1..=64).contains(&ports) && (1..1 << 16).contains(&all),
            "a buffer of 1 to 64 ports"
        );
        Self {
            memory: DataMemory::new(all),
            links: AddressQueue::new(all),
            pointers: Pointers::default(),
            free: FreeList::new(organisation, ports, depth, landing),
            order: Order::new(all),
            arbiter: OutputArbiter::default(),
            output: Output::default(),
            input: None,
            late_pointers: organisation == Organisation::DamqPf,
            ports,
            written: [0; 2],
            read: [0; 2],
            overflows: 0,
            #[cfg(test)]
            fault: None,
        }
    }

    /// One cycle: a word may come in, and one may leave. A new descriptor begins to leave only if the send engine is `ready`.
    ///
    /// # Panics
    /// In debug builds if the word's port is not below the number of ports.
    #[inline]
    pub fn cycle(&mut self, input: Option<Write>, ready: bool) -> Option<Read> {
        let leaves = self.output.register;
        // In the order from the output to the input, so that each register still has what the cycle before left there.
        self.output.register = self.take();
        #[cfg(test)]
        if self.fault == Some(Fault::Twice) && self.output.register.is_none() {
            self.output.register = leaves;
        }
        if ready && self.output.run.is_none() {
            self.arbitrate();
        }
        self.put();
        debug_assert!(
            input.is_none_or(|write| usize::from(write.port) < self.ports),
            "no such port"
        );
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
        self.written == self.read && self.input.is_none() && self.output.register.is_none()
    }

    /// Words that came this way and are in the memory.
    #[inline]
    pub fn inside(&self, way: Way) -> usize {
        (self.written[way as usize] - self.read[way as usize]) as usize
    }

    /// Whether a word stands in the input register.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Takes the next word of the descriptor that is being read.
    #[inline]
    fn take(&mut self) -> Option<Read> {
        let run = self.output.run.as_mut()?;
        if self.late_pointers && !std::mem::replace(&mut self.output.pointer_here, false) {
            self.output.pointer_here = true;
            return None;
        }
        let &mut Run { port, way, address } = run;
        let word = self.memory.read(address);
        run.address = self.links.after(address);
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
        Some(Read { port, way, word })
    }

    /// The last word of a descriptor, which lay at `address`, has been read.
    #[inline]
    fn ends(&mut self, port: u8, way: Way, address: u16) {
        self.output.run = None;
        let list = self.pointers.list_mut(port, way);
        list.head = if address == list.tail { List::NONE } else { self.links.after(address) };
        match way {
            Way::Dma => self.order.left(port),
            Way::Pio if list.is_empty() => {}
            Way::Pio => self.order.heads(port, list.head),
        }
        self.update(port);
    }

    /// Chooses the descriptor that is read next.
    #[inline]
    fn arbitrate(&mut self) {
        let Some((port, way)) = self.arbiter.grant() else { return };
        let list = self.pointers.list_mut(port, way);
        list.whole -= 1;
        self.output.run = Some(Run { port, way, address: list.head });
        // The head pointer is in a register in any case.
        self.output.pointer_here = true;
    }

    /// Puts the word of the input register at the end of its list.
    #[inline]
    fn put(&mut self) {
        let Some((Write { port, way, word }, ticket)) = self.input.take() else { return };
        let Some(address) = self.free.take(port, way) else {
            self.overflows += 1;
            return;
        };
        #[cfg(test)]
        if self.fault == Some(Fault::EarlyFree) && self.written[way as usize] % 64 == 1 {
            self.free.give(port, way, address);
        }
        self.memory.write(address, word);
        let list = self.pointers.list_mut(port, way);
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
            self.links.link(address, list.head);
            list.head = address;
        } else {
            self.links.link(list.tail, address);
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
        // The first word of a list can only take the turn from the port's other list.
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
            let pio = self.pointers.list(port, Way::Pio).whole > 0;
            return if pio { Way::Pio } else { Way::Dma };
        }
        self.order.turn(port, !self.pointers.list(port, Way::Pio).is_empty())
    }

    /// Lets the port take part in arbitration if the list whose turn it is has a whole descriptor (D-07).
    #[inline]
    fn update(&mut self, port: u8) {
        // A descriptor that is being read decides at its end which list is next.
        let reading = self.output.run.is_some_and(|run| run.port == port);
        let way = self.turn(port);
        let eligible = !reading && self.pointers.list(port, way).whole > 0;
        self.arbiter.set(port, way, eligible);
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
                let &List { mut head, tail, .. } = self.pointers.list(port, way);
                if let Some(run) = self.output.run.filter(|run| (run.port, run.way) == (port, way))
                {
                    head = run.address;
                }
                while head != List::NONE {
                    see(head)?;
                    words += 1;
                    head = if head == tail { List::NONE } else { self.links.after(head) };
                }
            }
        }
        for address in self.free.addresses() {
            see(address)?;
        }
        let inside = self.inside(Way::Pio) + self.inside(Way::Dma);
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
        self.inside(Way::Pio) + self.inside(Way::Dma) + self.free.free() == self.memory.depth()
            && self.overflows == 0
    }
}
