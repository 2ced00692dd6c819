//! Registers of the interface: what software stores beside doorbells, and counts that it reads
//! (C-09, C-14, C-19, C-32, C-38, C-39; cHPP sections 3.4, 4.1 and 4.2).
//!
//! The window of the interface has a page of 4 KiB for each function, and behind these the page of
//! registers. A function reports in its own page what it has consumed and listed. The address of
//! the store tells which function that is, as with a doorbell. So no function can report for
//! another one. Who may map the page of registers opens rings and lists, sets windows and keys, and
//! reads counts.
//!
//! ```text
//!   page of function f, from f << 12 on:
//!   0x000           doorbell
//!   0x800 + 8 r     report of ring r: two rings of each of 4 queue pairs
//!   0x840 + 8 q     report of the list of queue pair q
//!
//!   page of registers, from 0x8000 on:
//!   0x000 + 4 n     count n, 4 bytes to be read
//!   0x400 + 8 r     ring r of 64
//!   0x600 + 8 q     list of slots of queue pair q of 32
//!   0x700 + 8 q     key of queue pair q of 32
//!   0x800 + 8 f     window of function f of 8
//!
//!   ring            R 63:61, entries 60:48, R 47:40, address in units of 32 bytes 39:5, R 4:0
//!   list            R 63:57, entries 56:48, R 47:40, page 39:12, R 11:0
//!   window          R 63:61, pages 60:32, R 31:28, first page 27:0
//!   key             R 63:9, opens 8, key 7:0, which is 0 if it does not open
//!   report of ring  R 63:13, records consumed since it was opened, modulo 8192 12:0
//!   report of list  R 63:9, entries listed since it was opened, modulo 512 8:0
//! ```
//!
//! A store has 8 bytes, lowest one first, and is whole, so no lock is needed. The number of a queue
//! pair is 4 times its function's, and that of a ring is twice its queue pair's. The odd one is for
//! what is received. A ring, list or window without entries or pages is closed. The paper has none
//! of these layouts. `hardware layouts` writes them as a package in SystemVerilog.

use crate::WireError;
pub use crate::bits::Field;
use crate::bits::tiles;

/// Functions, each with a page in front of that of registers.
pub const FUNCTIONS: u16 = 8;
/// The page of registers.
pub const PAGE: u16 = FUNCTIONS;
/// Bits of the number of a byte in a page.
pub const PAGE_SHIFT: u32 = 12;
/// Bytes of a store.
pub const STORE_BYTES: u16 = 8;
/// Bytes of a count.
pub const COUNT_BYTES: u16 = 4;
/// Where reports begin in a function's page.
pub const REPORTS: u16 = 0x800;

/// Registers of one kind: they lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where the first one lies in its page.
    pub first: u16,
    /// How many there are.
    pub count: u16,
}

impl Block {
    /// The number of the register at this place of its page, if it is one of these.
    pub const fn number(self, place: u16) -> Option<u8> {
        let end = self.first + self.count * STORE_BYTES;
        let is_there = place >= self.first && place < end && place.is_multiple_of(STORE_BYTES);
        if is_there { Some(((place - self.first) / STORE_BYTES) as u8) } else { None }
    }

    /// The place of a register in its page.
    const fn place(self, number: u8) -> Result<u16, WireError> {
        let (value, limit) = (number as u64, self.count as u64 - 1);
        if value > limit {
            return Err(WireError::OutOfRange { field: "number of a register", value, limit });
        }
        Ok(self.first + number as u16 * STORE_BYTES)
    }
}

/// Reports of a function's rings, in its page.
pub const RING_REPORTS: Block = Block { first: REPORTS, count: 8 };
/// Reports of a function's lists, in its page.
pub const LIST_REPORTS: Block = Block { first: 0x840, count: 4 };
/// Rings.
pub const RINGS: Block = Block { first: 0x400, count: 64 };
/// Lists of slots.
pub const LISTS: Block = Block { first: 0x600, count: 32 };
/// Keys.
pub const KEYS: Block = Block { first: 0x700, count: 32 };
/// Windows.
pub const WINDOWS: Block = Block { first: 0x800, count: 8 };

/// Counts that software reads, in their order. All of them wrap.
pub const COUNTS: [&str; 10] = [
    "version of this map: 1",
    "stores into registers and reports that are none",
    "rings, lists, windows, keys and reports that were refused",
    "other stores that were dropped",
    "doorbells of full FIFOs",
    "events of closed rings",
    "packets with a wrong key",
    "targets outside of their window",
    "TLPs of the host that were dropped",
    "requests that made no TLP",
];
/// The version of this map.
pub const VERSION: u32 = 1;

const RING_R_63: Field = Field::new("reserved_63", 63, 61);
const RING_ENTRIES: Field = Field::new("entries", 60, 48);
const RING_R_47: Field = Field::new("reserved_47", 47, 40);
const RING_BASE: Field = Field::new("base", 39, 5);
const RING_R_4: Field = Field::new("reserved_4", 4, 0);
/// A ring.
pub const RING: &[Field] = &[RING_R_63, RING_ENTRIES, RING_R_47, RING_BASE, RING_R_4];

const LIST_R_63: Field = Field::new("reserved_63", 63, 57);
const LIST_ENTRIES: Field = Field::new("entries", 56, 48);
const LIST_R_47: Field = Field::new("reserved_47", 47, 40);
const LIST_PAGE: Field = Field::new("page", 39, 12);
const LIST_R_11: Field = Field::new("reserved_11", 11, 0);
/// A list of slots.
pub const LIST: &[Field] = &[LIST_R_63, LIST_ENTRIES, LIST_R_47, LIST_PAGE, LIST_R_11];

const WINDOW_R_63: Field = Field::new("reserved_63", 63, 61);
const WINDOW_PAGES: Field = Field::new("pages", 60, 32);
const WINDOW_R_31: Field = Field::new("reserved_31", 31, 28);
const WINDOW_BASE: Field = Field::new("base", 27, 0);
/// A window.
pub const WINDOW: &[Field] = &[WINDOW_R_63, WINDOW_PAGES, WINDOW_R_31, WINDOW_BASE];

const KEY_R_63: Field = Field::new("reserved_63", 63, 9);
const KEY_OPENS: Field = Field::new("opens", 8, 8);
const KEY_KEY: Field = Field::new("key", 7, 0);
/// A key.
pub const KEY: &[Field] = &[KEY_R_63, KEY_OPENS, KEY_KEY];

const RING_REPORT_R_63: Field = Field::new("reserved_63", 63, 13);
const RING_REPORT_COUNT: Field = Field::new("count", 12, 0);
/// A report of a ring.
pub const RING_REPORT: &[Field] = &[RING_REPORT_R_63, RING_REPORT_COUNT];

const LIST_REPORT_R_63: Field = Field::new("reserved_63", 63, 9);
const LIST_REPORT_COUNT: Field = Field::new("count", 8, 0);
/// A report of a list.
pub const LIST_REPORT: &[Field] = &[LIST_REPORT_R_63, LIST_REPORT_COUNT];

const _: () = {
    assert!(tiles(RING, u64::BITS));
    assert!(tiles(LIST, u64::BITS));
    assert!(tiles(WINDOW, u64::BITS));
    assert!(tiles(KEY, u64::BITS));
    assert!(tiles(RING_REPORT, u64::BITS));
    assert!(tiles(LIST_REPORT, u64::BITS));
    // No two kinds share a place, and all are in their page.
    assert!(RING_REPORTS.first + STORE_BYTES * RING_REPORTS.count <= LIST_REPORTS.first);
    assert!(COUNTS.len() as u16 * COUNT_BYTES <= RINGS.first);
    assert!(RINGS.first + STORE_BYTES * RINGS.count <= LISTS.first);
    assert!(LISTS.first + STORE_BYTES * LISTS.count <= KEYS.first);
    assert!(KEYS.first + STORE_BYTES * KEYS.count <= WINDOWS.first);
    assert!(RING_REPORTS.count * FUNCTIONS == RINGS.count);
    assert!(LIST_REPORTS.count * FUNCTIONS == LISTS.count);
};

/// What a store says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterRepr {
    /// A ring is opened, or closed without entries.
    Ring {
        /// The ring.
        ring: u8,
        /// Its address, in units of 32 bytes.
        base: u64,
        /// Its records.
        entries: u16,
    },
    /// A list of slots is opened, or closed without entries.
    List {
        /// The queue pair.
        pair: u8,
        /// The page in which it begins.
        page: u32,
        /// Its entries.
        entries: u16,
    },
    /// A function gets a window, or has none without pages.
    Window {
        /// The function.
        function: u8,
        /// The first page.
        base: u32,
        /// How many.
        pages: u32,
    },
    /// A queue pair gets a key, or has none.
    Key {
        /// The queue pair.
        pair: u8,
        /// The key.
        key: Option<u8>,
    },
    /// Records of a ring were consumed.
    RingReport {
        /// The ring.
        ring: u8,
        /// How many since it was opened.
        count: u16,
    },
    /// Slots were listed.
    ListReport {
        /// The queue pair.
        pair: u8,
        /// How many since the list was opened.
        count: u16,
    },
}

impl RegisterRepr {
    /// Reads a store of 8 bytes at this place of the window.
    ///
    /// # Errors
    /// [`WireError::UnknownCode`] for a place that has no register, and [`WireError::Reserved`].
    pub fn parse(address: u16, word: u64) -> Result<Self, WireError> {
        let (page, place) = (address >> PAGE_SHIFT, address % (1 << PAGE_SHIFT));
        let own = |block: Block| block.number(place).filter(|_| page == PAGE);
        let report = |block: Block| {
            let number = block.number(place).filter(|_| page < FUNCTIONS)?;
            Some(page as u8 * block.count as u8 + number)
        };
        let zero = |fields: &[Field]| fields.iter().try_for_each(|field| field.must_be_zero(word));
        if let Some(ring) = own(RINGS) {
            zero(&[RING_R_63, RING_R_47, RING_R_4])?;
            let entries = RING_ENTRIES.of(word) as u16;
            Ok(Self::Ring { ring, base: RING_BASE.of(word), entries })
        } else if let Some(pair) = own(LISTS) {
            zero(&[LIST_R_63, LIST_R_47, LIST_R_11])?;
            let entries = LIST_ENTRIES.of(word) as u16;
            Ok(Self::List { pair, page: LIST_PAGE.of(word) as u32, entries })
        } else if let Some(function) = own(WINDOWS) {
            zero(&[WINDOW_R_63, WINDOW_R_31])?;
            let pages = WINDOW_PAGES.of(word) as u32;
            Ok(Self::Window { function, base: WINDOW_BASE.of(word) as u32, pages })
        } else if let Some(pair) = own(KEYS) {
            zero(&[KEY_R_63])?;
            if !KEY_OPENS.is_set(word) {
                zero(&[KEY_KEY])?;
            }
            let key = KEY_OPENS.is_set(word).then_some(KEY_KEY.of(word) as u8);
            Ok(Self::Key { pair, key })
        } else if let Some(ring) = report(RING_REPORTS) {
            zero(&[RING_REPORT_R_63])?;
            Ok(Self::RingReport { ring, count: RING_REPORT_COUNT.of(word) as u16 })
        } else if let Some(pair) = report(LIST_REPORTS) {
            zero(&[LIST_REPORT_R_63])?;
            Ok(Self::ListReport { pair, count: LIST_REPORT_COUNT.of(word) as u16 })
        } else {
            Err(WireError::UnknownCode { field: "place of a store", code: address.into() })
        }
    }

    /// The place in the window, and the word to store there.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for a number, a count or an address.
    pub fn emit(&self) -> Result<(u16, u64), WireError> {
        let own = |block: Block, number| Ok(PAGE << PAGE_SHIFT | block.place(number)?);
        let report = |block: Block, number: u8| {
            let (function, number) = (number / block.count as u8, number % block.count as u8);
            if u16::from(function) >= FUNCTIONS {
                let (value, limit) = (function.into(), u64::from(FUNCTIONS) - 1);
                return Err(WireError::OutOfRange { field: "function", value, limit });
            }
            Ok(u16::from(function) << PAGE_SHIFT | block.place(number)?)
        };
        Ok(match *self {
            Self::Ring { ring, base, entries } => {
                (own(RINGS, ring)?, RING_BASE.place(base)? | RING_ENTRIES.place(entries.into())?)
            }
            Self::List { pair, page, entries } => {
                let word = LIST_PAGE.place(page.into())? | LIST_ENTRIES.place(entries.into())?;
                (own(LISTS, pair)?, word)
            }
            Self::Window { function, base, pages } => {
                let word = WINDOW_BASE.place(base.into())? | WINDOW_PAGES.place(pages.into())?;
                (own(WINDOWS, function)?, word)
            }
            Self::Key { pair, key } => {
                let opens = KEY_OPENS.place(key.is_some().into())?;
                (own(KEYS, pair)?, opens | KEY_KEY.place(key.unwrap_or(0).into())?)
            }
            Self::RingReport { ring, count } => {
                (report(RING_REPORTS, ring)?, RING_REPORT_COUNT.place(count.into())?)
            }
            Self::ListReport { pair, count } => {
                (report(LIST_REPORTS, pair)?, LIST_REPORT_COUNT.place(count.into())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One store of each kind, with the last number and the highest values.
    const HIGHEST: [RegisterRepr; 6] = [
        RegisterRepr::Ring { ring: 63, base: (1 << 35) - 1, entries: 0x1fff },
        RegisterRepr::List { pair: 31, page: (1 << 28) - 1, entries: 0x1ff },
        RegisterRepr::Window { function: 7, base: (1 << 28) - 1, pages: (1 << 29) - 1 },
        RegisterRepr::Key { pair: 31, key: Some(255) },
        RegisterRepr::RingReport { ring: 63, count: 0x1fff },
        RegisterRepr::ListReport { pair: 31, count: 0x1ff },
    ];

    /// Each kind lies where the map says, with its fields there, and comes back as it was.
    #[test]
    fn stores_lie_where_the_map_says() {
        let expected = [
            (0x85f8, 0x1fff_00ff_ffff_ffe0),
            (0x86f8, 0x01ff_00ff_ffff_f000),
            (0x8838, 0x1fff_ffff_0fff_ffff),
            (0x87f8, 0x1ff),
            (0x7838, 0x1fff),
            (0x7858, 0x1ff),
        ];
        for (repr, expected) in HIGHEST.into_iter().zip(expected) {
            assert_eq!(repr.emit(), Ok(expected), "{repr:?}");
            assert_eq!(RegisterRepr::parse(expected.0, expected.1), Ok(repr));
        }
        let first = RegisterRepr::RingReport { ring: 9, count: 3 };
        assert_eq!(first.emit(), Ok((0x1808, 3)));
        assert_eq!(RegisterRepr::parse(0x8700, 0), Ok(RegisterRepr::Key { pair: 0, key: None }));
    }

    /// All that can be stored comes back as the same word, and nothing else is taken: by places,
    /// and by single bits.
    #[test]
    fn nothing_else_is_taken() {
        let places = (0..=u16::MAX).filter(|&place| RegisterRepr::parse(place, 0).is_ok());
        assert_eq!(places.count(), 64 + 32 + 8 + 32 + 64 + 32);
        for repr in HIGHEST {
            let (place, all) = repr.emit().expect("it fits");
            for bit in 0..64 {
                let word = all ^ 1 << bit;
                match RegisterRepr::parse(place, word) {
                    Ok(other) => assert_eq!(other.emit(), Ok((place, word))),
                    Err(error) => assert!(
                        all & 1 << bit == 0 || (place == 0x87f8 && bit == 8),
                        "{repr:?}, bit {bit}: {error}"
                    ),
                }
            }
            for wrong in 1..8 {
                assert!(RegisterRepr::parse(place + wrong, 0).is_err(), "{repr:?}");
            }
        }
    }

    /// Numbers and values behind the highest ones are refused.
    #[test]
    fn values_that_do_not_fit_are_refused() {
        for repr in [
            RegisterRepr::Ring { ring: 64, base: 0, entries: 0 },
            RegisterRepr::Ring { ring: 0, base: 1 << 35, entries: 0 },
            RegisterRepr::Ring { ring: 0, base: 0, entries: 1 << 13 },
            RegisterRepr::List { pair: 32, page: 0, entries: 0 },
            RegisterRepr::List { pair: 0, page: 1 << 28, entries: 0 },
            RegisterRepr::List { pair: 0, page: 0, entries: 1 << 9 },
            RegisterRepr::Window { function: 8, base: 0, pages: 0 },
            RegisterRepr::Window { function: 0, base: 1 << 28, pages: 0 },
            RegisterRepr::Window { function: 0, base: 0, pages: 1 << 29 },
            RegisterRepr::Key { pair: 32, key: None },
            RegisterRepr::RingReport { ring: 64, count: 0 },
            RegisterRepr::RingReport { ring: 0, count: 1 << 13 },
            RegisterRepr::ListReport { pair: 32, count: 0 },
            RegisterRepr::ListReport { pair: 0, count: 1 << 9 },
        ] {
            assert!(matches!(repr.emit(), Err(WireError::OutOfRange { .. })), "{repr:?}");
        }
        let of = |repr: RegisterRepr| repr.emit().expect_err("it does not fit");
        let refused = |field, value, limit| WireError::OutOfRange { field, value, limit };
        let report = RegisterRepr::RingReport { ring: 67, count: 0 };
        assert_eq!(of(report), refused("function", 8, 7));
        let key = RegisterRepr::Key { pair: 40, key: None };
        assert_eq!(of(key), refused("number of a register", 40, 31));
    }
}
