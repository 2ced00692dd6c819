//! `key_window`: the keys of all queue pairs and the windows of all functions (C-09, C-38, C-39;
//! cHPP sections 3.2 and 4.3), as `hardware/key_window` builds them.
//!
//! A packet must carry the key of its queue pair. What a function reads and writes must lie in its
//! window of host memory. Nothing fits before software has set a key or a window.

use bellwire_wire::ADDRESS_BITS;

/// Bits of the number of a function: a physical one and seven virtual ones (C-38).
pub const FUNCTION_BITS: usize = 3;
/// Bits of the number of a queue pair: 4 of each function.
pub const PAIR_BITS: usize = FUNCTION_BITS + 2;
/// Bits of a key (C-09).
pub const KEY_BITS: usize = 8;
/// Bits of the number of a byte in a page of host memory.
pub const PAGE_SHIFT: usize = 12;
/// Bits of the number of a page.
pub const PAGE_BITS: usize = ADDRESS_BITS as usize - PAGE_SHIFT;
/// Pages of all memory.
const ALL_PAGES: u64 = 1 << PAGE_BITS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The host writes.
        host_valid: bool = 1,
        /// It sets a window, or else a key.
        host_window: bool = 1,
        /// The function whose window it is.
        host_function: u8 = FUNCTION_BITS,
        /// The window's first page.
        host_base: u32 = PAGE_BITS,
        /// The window's pages, none to close it.
        host_pages: u32 = PAGE_BITS + 1,
        /// The queue pair whose key it is.
        host_pair: u8 = PAIR_BITS,
        /// The queue pair gets the key, or else it has none from now on.
        host_opens: bool = 1,
        /// The key.
        host_key: u8 = KEY_BITS,
        /// A PUT or a NAP comes.
        packet_valid: bool = 1,
        /// Its queue pair.
        packet_pair: u8 = PAIR_BITS,
        /// The key that it carries.
        packet_key: u8 = KEY_BITS,
        /// A GET comes.
        get_valid: bool = 1,
        /// Its queue pair.
        get_pair: u8 = PAIR_BITS,
        /// The key that it carries.
        get_key: u8 = KEY_BITS,
        /// Bytes shall be written.
        target_valid: bool = 1,
        /// The function that they are for.
        target_function: u8 = FUNCTION_BITS,
        /// Global address of the first byte.
        target_address: u64 = ADDRESS_BITS as usize,
        /// How many.
        target_length: u64 = ADDRESS_BITS as usize,
        /// Bytes shall be read.
        source_valid: bool = 1,
        /// The function that reads them.
        source_function: u8 = FUNCTION_BITS,
        /// Global address of the first byte.
        source_address: u64 = ADDRESS_BITS as usize,
        /// How many.
        source_length: u64 = ADDRESS_BITS as usize,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// What the host wrote in the cycle before cannot be, and changed nothing.
        refused: bool = 1,
        /// The PUT or NAP of the cycle before carries the key of its queue pair.
        packet_fits: bool = 1,
        /// It does not.
        packet_wrong: bool = 1,
        /// The GET of the cycle before carries the key of its queue pair.
        get_fits: bool = 1,
        /// It does not.
        get_wrong: bool = 1,
        /// What shall be written, as the cycle before said, lies in the window.
        target_fits: bool = 1,
        /// It does not.
        target_wrong: bool = 1,
        /// What shall be read, as the cycle before said, lies in the window.
        source_fits: bool = 1,
        /// It does not.
        source_wrong: bool = 1,
        /// Packets with a wrong key since reset, also GETs; behind its highest number comes zero.
        wrong_packets: u32 = 32,
        /// Targets outside of their window since reset, likewise.
        wrong_targets: u32 = 32,
    }
}

/// A window: its first page, and the page behind its last one.
#[derive(Clone, Copy, Debug)]
struct Window {
    base: u64,
    end: u64,
}

impl Window {
    fn holds(&self, address: u64, length: u64) -> bool {
        address >> PAGE_SHIFT >= self.base && address + length <= self.end << PAGE_SHIFT
    }
}

/// The keys and windows of an interface; there are none at first.
///
/// What is asked in cycle `t` is answered in `t + 1`. What the host writes in cycle `t` counts for
/// what is asked from `t + 1` on.
#[derive(Clone, Debug)]
pub struct KeyWindow {
    keys: Vec<Option<u8>>,
    windows: Vec<Option<Window>>,
    /// The highest number that a count can have.
    highest: u32,
    output: Out,
}

impl KeyWindow {
    /// No keys and no windows. The numbers of what is wrong have `count_bits` bits.
    ///
    /// # Panics
    /// Unless there are 2 to 8 functions and 2 to 32 queue pairs, both a power of two, and 1 to 32
    /// bits.
    pub fn new(functions: usize, pairs: usize, count_bits: u32) -> KeyWindow {
        let fits =
            |count: usize, bits| count.is_power_of_two() && (2..=1_usize << bits).contains(&count);
        assert!(fits(functions, FUNCTION_BITS), "2, 4 or 8 functions");
        assert!(fits(pairs, PAIR_BITS), "2, 4, ... 32 queue pairs");
        assert!((1..=32).contains(&count_bits), "1 to 32 bits");
        KeyWindow {
            keys: vec![None; pairs],
            windows: vec![None; functions],
            highest: u32::MAX >> (32 - count_bits),
            output: Out::default(),
        }
    }

    /// One cycle; all numbers of functions and queue pairs are below those that there are.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        let has_key = |pair: u8, key: u8| self.keys[usize::from(pair)] == Some(key);
        let (packet_fits, packet_wrong) =
            answer(input.packet_valid, has_key(input.packet_pair, input.packet_key));
        let (get_fits, get_wrong) = answer(input.get_valid, has_key(input.get_pair, input.get_key));
        let (function, address) = (input.target_function, input.target_address);
        let (target_fits, target_wrong) =
            answer(input.target_valid, self.holds(function, address, input.target_length));
        let (function, address) = (input.source_function, input.source_address);
        let (source_fits, source_wrong) =
            answer(input.source_valid, self.holds(function, address, input.source_length));
        let count = |before: u32, one: bool| before.wrapping_add(one.into()) & self.highest;
        self.output = Out {
            packet_fits,
            packet_wrong,
            get_fits,
            get_wrong,
            target_fits,
            target_wrong,
            source_fits,
            source_wrong,
            wrong_packets: count(count(out.wrong_packets, packet_wrong), get_wrong),
            wrong_targets: count(out.wrong_targets, target_wrong),
            refused: input.host_valid && !self.host(&input),
        };
        out
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    #[inline]
    pub fn out(&self) -> Out {
        self.output
    }

    fn holds(&self, function: u8, address: u64, length: u64) -> bool {
        self.windows[usize::from(function)].is_some_and(|window| window.holds(address, length))
    }

    /// What the host writes; false if it cannot be.
    fn host(&mut self, input: &In) -> bool {
        if !input.host_window {
            let key = input.host_opens.then_some(input.host_key);
            self.keys[usize::from(input.host_pair)] = key;
            return true;
        }
        let (base, pages) = (u64::from(input.host_base), u64::from(input.host_pages));
        let end = base + pages;
        if end > ALL_PAGES {
            return false;
        }
        let window = (pages > 0).then_some(Window { base, end });
        self.windows[usize::from(input.host_function)] = window;
        true
    }
}

/// Whether what is asked fits, and whether it is wrong; neither if nothing is asked.
fn answer(is_asked: bool, fits: bool) -> (bool, bool) {
    (is_asked && fits, is_asked && !fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    fn set_key(host_pair: u8, key: Option<u8>) -> In {
        let (host_opens, host_key) = (key.is_some(), key.unwrap_or(0));
        In { host_valid: true, host_pair, host_opens, host_key, ..In::default() }
    }

    fn set_window(host_function: u8, host_base: u32, host_pages: u32) -> In {
        let host_window = true;
        In { host_valid: true, host_window, host_function, host_base, host_pages, ..In::default() }
    }

    fn packet(packet_pair: u8, packet_key: u8) -> In {
        In { packet_valid: true, packet_pair, packet_key, ..In::default() }
    }

    fn get(get_pair: u8, get_key: u8) -> In {
        In { get_valid: true, get_pair, get_key, ..In::default() }
    }

    fn target(target_function: u8, target_address: u64, target_length: u64) -> In {
        In { target_valid: true, target_function, target_address, target_length, ..In::default() }
    }

    fn source(source_function: u8, source_address: u64, source_length: u64) -> In {
        In { source_valid: true, source_function, source_address, source_length, ..In::default() }
    }

    /// Whether what is asked fits.
    fn fits(block: &mut KeyWindow, input: In) -> bool {
        block.cycle(input);
        let out = block.cycle(In::default());
        let all = [out.packet_fits, out.get_fits, out.target_fits, out.source_fits];
        let wrong = [out.packet_wrong, out.get_wrong, out.target_wrong, out.source_wrong];
        assert_eq!(all.iter().chain(&wrong).filter(|it| **it).count(), 1);
        all.contains(&true)
    }

    /// There is a number for each function and queue pair of the model's interface, and its windows
    /// have whole pages.
    #[test]
    fn all_functions_of_the_model_have_numbers() {
        let config = Config::prototype();
        assert_eq!(config.nic.functions, 1 << FUNCTION_BITS);
        assert_eq!(config.nic.functions * config.nic.queue_pairs, 1 << PAIR_BITS);
        assert!(config.host.window.count().is_multiple_of(1 << PAGE_SHIFT));
        assert_eq!((KEY_BITS, PAGE_BITS), (8, 28));
    }

    /// A packet fits with the key of its queue pair and no other one, and so does a GET. A queue
    /// pair has none at first, and none after it was taken away; then no packet fits, whatever it
    /// carries.
    #[test]
    fn only_the_key_of_a_queue_pair_fits() {
        let mut block = KeyWindow::new(8, 32, 32);
        let all = |block: &mut KeyWindow, pair| -> Vec<u8> {
            let found = [packet, get].map(|asks| -> Vec<u8> {
                (0..=255).filter(|key| fits(block, asks(pair, *key))).collect()
            });
            assert_eq!(found[0], found[1]);
            found[0].clone()
        };
        assert!(all(&mut block, 7).is_empty());
        for (pair, key) in [(7, 0), (31, 255), (0, 0x5a)] {
            block.cycle(set_key(pair, Some(key)));
            assert_eq!(all(&mut block, pair), [key]);
        }
        block.cycle(set_key(7, Some(9)));
        assert_eq!((all(&mut block, 7), all(&mut block, 31)), (vec![9], vec![255]));
        block.cycle(set_key(7, None));
        assert_eq!((all(&mut block, 7), all(&mut block, 6)), (vec![], vec![]));
        assert_eq!(all(&mut block, 0), [0x5a]);
    }

    /// Bytes fit that lie in the window of their function, from the first to the last one. Nothing
    /// fits without a window.
    #[test]
    fn only_what_lies_in_the_window_fits() {
        let mut block = KeyWindow::new(4, 4, 32);
        for ask in [target, source] {
            let mut block = block.clone();
            assert!(!fits(&mut block, ask(1, 0x5000, 0)) && !fits(&mut block, ask(1, 0, 1)));
            block.cycle(set_window(1, 5, 2));
            block.cycle(set_window(2, 7, 1));
            for (address, length, is_inside) in [
                (0x5000, 0x2000, true),
                (0x5000, 0x2001, false),
                (0x4fff, 1, false),
                (0x4fff, 2, false),
                (0x6fff, 1, true),
                (0x6fff, 2, false),
                (0x7000, 0, true),
                (0x7000, 1, false),
                (0x7001, 0, false),
                (0x5800, (1 << ADDRESS_BITS) - 1, false),
                ((1 << ADDRESS_BITS) - 1, (1 << ADDRESS_BITS) - 1, false),
            ] {
                let found = fits(&mut block, ask(1, address, length));
                assert_eq!(found, is_inside, "{address:x}, {length:x}");
            }
            assert!(fits(&mut block, ask(2, 0x7000, 0x1000)));
            assert!(!fits(&mut block, ask(2, 0x6fff, 1)) && !fits(&mut block, ask(3, 0x7000, 1)));
            block.cycle(set_window(1, 5, 0));
            assert!(!fits(&mut block, ask(1, 0x5000, 0)), "a window of no pages is none");
            assert!(!fits(&mut block, ask(1, 0x5000, 1)) && fits(&mut block, ask(2, 0x7fff, 1)));
        }
        // All of memory.
        block.cycle(set_window(0, 0, 1 << PAGE_BITS));
        assert!(fits(&mut block, target(0, 1, (1 << ADDRESS_BITS) - 1)));
    }

    /// A window that goes on behind the last address is refused, and the old one stays.
    #[test]
    fn a_window_ends_with_the_last_address() {
        let mut block = KeyWindow::new(2, 2, 32);
        let (last, most) = ((1 << PAGE_BITS) - 1, (1 << (PAGE_BITS + 1)) - 1);
        let address = u64::from(last) << PAGE_SHIFT;
        block.cycle(set_window(0, last, 1));
        assert!(!block.cycle(In::default()).refused);
        for (base, pages) in [(last, 2), (1, 1 << PAGE_BITS), (0, most), (last, most)] {
            block.cycle(set_window(0, base, pages));
            assert!(block.cycle(In::default()).refused, "{base:x}, {pages:x}");
            assert!(fits(&mut block, target(0, address, 1 << PAGE_SHIFT)));
            assert!(!fits(&mut block, target(0, address - 1, 1)));
        }
        block.cycle(In { host_window: false, ..set_window(0, last, 2) });
        assert!(!block.cycle(In::default()).refused, "a key is no window");
    }

    /// What is wrong is counted: packets and targets, each by themselves. A GET is a packet, and it
    /// counts together with another one. The counts wrap.
    #[test]
    fn what_is_wrong_is_counted() {
        let mut block = KeyWindow::new(2, 2, 2);
        let counts = |block: &mut KeyWindow, input| {
            block.cycle(input);
            let out = block.cycle(In::default());
            (out.wrong_packets, out.wrong_targets)
        };
        assert_eq!(counts(&mut block, packet(0, 0)), (1, 0));
        assert_eq!(counts(&mut block, source(0, 0, 1)), (1, 0));
        assert_eq!(counts(&mut block, target(0, 0, 1)), (1, 1));
        assert_eq!(counts(&mut block, set_key(0, Some(3))), (1, 1));
        assert_eq!(counts(&mut block, packet(0, 3)), (1, 1));
        let wrong = [(); 3].map(|()| counts(&mut block, packet(0, 4)));
        assert_eq!(wrong, [(2, 1), (3, 1), (0, 1)]);
        let wrong = [(); 3].map(|()| counts(&mut block, target(1, 0, 1)));
        assert_eq!(wrong, [(0, 2), (0, 3), (0, 0)]);
        assert_eq!(counts(&mut block, get(0, 3)), (0, 0));
        assert_eq!(counts(&mut block, get(0, 4)), (1, 0));
        let both = In { packet_valid: true, packet_key: 4, ..get(0, 4) };
        let wrong = [(); 2].map(|()| counts(&mut block, both));
        assert_eq!(wrong, [(3, 0), (1, 0)]);
    }

    /// A GET and another packet are answered in one cycle, each by the key of its own queue pair.
    #[test]
    fn two_packets_are_answered_at_once() {
        let mut block = KeyWindow::new(2, 4, 32);
        block.cycle(set_key(1, Some(5)));
        block.cycle(set_key(2, Some(6)));
        for (pair, key, get_pair, get_key, expected) in [
            (1, 5, 2, 6, [true, true]),
            (2, 6, 1, 5, [true, true]),
            (1, 5, 1, 5, [true, true]),
            (1, 6, 2, 6, [false, true]),
            (1, 5, 2, 5, [true, false]),
            (1, 6, 2, 5, [false, false]),
        ] {
            block.cycle(In { get_valid: true, get_pair, get_key, ..packet(pair, key) });
            let out = block.cycle(In::default());
            assert_eq!([out.packet_fits, out.get_fits], expected);
            assert_eq!([out.packet_wrong, out.get_wrong], expected.map(|fits| !fits));
        }
    }

    /// What is asked is answered in the next cycle, and once. What the host writes counts for what
    /// is asked in the next cycle.
    #[test]
    fn a_cycle_is_a_cycle() {
        let mut block = KeyWindow::new(2, 2, 32);
        let all = In { packet_valid: true, packet_key: 5, ..target(0, 0x1000, 1) };
        let all = In { source_valid: true, source_address: 0x1000, source_length: 1, ..all };
        let all = In { get_valid: true, get_key: 5, ..all };
        let answers = |out: Out| {
            let fits = [out.packet_fits, out.get_fits, out.target_fits, out.source_fits];
            (fits, [out.packet_wrong, out.get_wrong, out.target_wrong, out.source_wrong])
        };
        let (none, each) = ([false; 4], [true; 4]);
        let with_key = In { host_valid: true, host_opens: true, host_key: 5, ..all };
        assert_eq!(answers(block.cycle(with_key)), (none, none));
        let with_window =
            In { host_valid: true, host_window: true, host_base: 1, host_pages: 1, ..all };
        assert_eq!(answers(block.cycle(with_window)), (none, each));
        let out = block.cycle(all);
        assert_eq!(answers(out), ([true, true, false, false], [false, false, true, true]));
        assert_eq!(answers(block.cycle(In { host_valid: true, ..all })), (each, none));
        assert_eq!(answers(block.cycle(all)), (each, none));
        let out = block.cycle(In::default());
        assert_eq!(answers(out), ([false, false, true, true], [true, true, false, false]));
        assert_eq!(answers(block.cycle(all)), (none, none));
    }
}
