//! The signals of a block: a struct whose fields have widths in bits.
//!
//! The same list gives the fields in Rust, the packed struct in SystemVerilog, and the names in a
//! waveform or in a difference. So a layout is never typed twice.

/// A signal in the packed form of its block's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its name, in Rust and in SystemVerilog.
    pub name: &'static str,
    /// Its width in bits.
    pub width: usize,
}

/// A struct of signals; made by [`ports!`](crate::ports).
pub trait Ports: Copy {
    /// The signals, from the lowest bit up.
    const SIGNALS: &'static [Signal];

    /// Bits of all signals.
    const BITS: usize;

    /// Words of 64 bits of a packed struct, at least two: simulators then see an array of words,
    /// whatever the block.
    const WORDS: usize;

    /// Writes all signals into `words`, which has [`WORDS`](Self::WORDS) zeros.
    fn pack(&self, words: &mut [u64]);

    /// Reads all signals from [`WORDS`](Self::WORDS) words.
    fn unpack(words: &[u64]) -> Self;
}

/// Writes signals one behind the other.
pub struct Packer<'a> {
    words: &'a mut [u64],
    at: usize,
}

impl<'a> Packer<'a> {
    /// A packer at the lowest bit of `words`.
    pub fn new(words: &'a mut [u64]) -> Packer<'a> {
        Packer { words, at: 0 }
    }

    /// Appends the low `width` bits of `value`; at most 64.
    ///
    /// # Panics
    /// In debug builds if `value` is wider.
    #[inline]
    pub fn push(&mut self, value: u64, width: usize) {
        debug_assert!(width == 64 || value >> width == 0, "{value} is wider than {width} bits");
        let (word, shift) = (self.at / 64, self.at % 64);
        self.words[word] |= value << shift;
        if shift + width > 64 {
            self.words[word + 1] |= value >> (64 - shift);
        }
        self.at += width;
    }
}

/// Reads signals one behind the other.
pub struct Unpacker<'a> {
    words: &'a [u64],
    at: usize,
}

impl<'a> Unpacker<'a> {
    /// An unpacker at the lowest bit of `words`.
    pub fn new(words: &'a [u64]) -> Unpacker<'a> {
        Unpacker { words, at: 0 }
    }

    /// The next `width` bits; 1 to 64.
    #[inline]
    pub fn take(&mut self, width: usize) -> u64 {
        let (word, shift) = (self.at / 64, self.at % 64);
        self.at += width;
        let mut value = self.words[word] >> shift;
        if shift + width > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        value & u64::MAX >> (64 - width)
    }
}

/// A Rust type that can be a signal.
pub trait Value: Copy {
    /// Appends it as `width` bits.
    fn push(self, packer: &mut Packer<'_>, width: usize);

    /// Takes it from the next `width` bits.
    fn take(unpacker: &mut Unpacker<'_>, width: usize) -> Self;
}

impl Value for bool {
    #[inline]
    fn push(self, packer: &mut Packer<'_>, width: usize) {
        packer.push(u64::from(self), width);
    }

    #[inline]
    fn take(unpacker: &mut Unpacker<'_>, width: usize) -> bool {
        unpacker.take(width) != 0
    }
}

macro_rules! unsigned {
    ($($of:ty)*) => { $(
        impl Value for $of {
            #[inline]
            fn push(self, packer: &mut Packer<'_>, width: usize) {
                packer.push(u64::from(self), width);
            }

            #[inline]
            fn take(unpacker: &mut Unpacker<'_>, width: usize) -> $of {
                unpacker.take(width) as $of
            }
        }
    )* };
}

unsigned!(u8 u16 u32 u64);

/// Elements lie one behind the other, each in its share of the width.
impl<T: Value, const N: usize> Value for [T; N] {
    #[inline]
    fn push(self, packer: &mut Packer<'_>, width: usize) {
        debug_assert_eq!(width % N, 0, "each element has the same width");
        for element in self {
            element.push(packer, width / N);
        }
    }

    #[inline]
    fn take(unpacker: &mut Unpacker<'_>, width: usize) -> [T; N] {
        std::array::from_fn(|_| T::take(unpacker, width / N))
    }
}

/// Reads `width` bits from bit `at` on, the highest digit first, as hexadecimal.
pub fn hexadecimal(words: &[u64], at: usize, width: usize) -> String {
    let bit = |index: usize| (words[index / 64] >> (index % 64) & 1) as u32;
    (0..width.div_ceil(4))
        .rev()
        .map(|digit| {
            let low = digit * 4;
            let bits = (low..(low + 4).min(width)).rev();
            let value = bits.fold(0, |value, index| value << 1 | bit(at + index));
            char::from_digit(value, 16).expect("four bits")
        })
        .collect()
}

/// A hash of the names and widths of the signals of some structs, by which two programs know
/// whether they mean the same ones.
pub fn layout_hash(structs: &[&[Signal]]) -> u64 {
    // That of Fowler, Noll and Vo.
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for Signal { name, width } in structs.iter().copied().flatten() {
        for byte in name.bytes().chain((*width as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

/// The packed struct in SystemVerilog: the first signal has the lowest bits.
pub fn packed_struct<P: Ports>(name: &str) -> String {
    let capital = name[..1].to_uppercase() + &name[1..];
    let mut text = format!("  localparam int unsigned {capital}Bits = {};\n", 64 * P::WORDS);
    text += "  typedef struct packed {\n";
    if 64 * P::WORDS > P::BITS {
        text += &format!("    logic [{}:0] padding;\n", 64 * P::WORDS - P::BITS - 1);
    }
    for Signal { name, width } in P::SIGNALS.iter().rev() {
        text += &match width {
            1 => format!("    logic {name};\n"),
            _ => format!("    logic [{}:0] {name};\n", width - 1),
        };
    }
    text + &format!("  }} {name}_t;\n")
}

/// Defines structs of signals: each field has a type and, behind `=`, its width in bits.
#[macro_export]
macro_rules! ports {
    ($($(#[$about:meta])* pub struct $name:ident {
        $($(#[$what:meta])* $field:ident: $of:ty = $width:expr,)*
    })*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$what])* pub $field: $of,)*
        }

        impl $crate::cycle::Ports for $name {
            const SIGNALS: &'static [$crate::cycle::Signal] =
                &[$($crate::cycle::Signal { name: stringify!($field), width: $width },)*];
            const BITS: usize = 0 $(+ $width)*;
            const WORDS: usize = if Self::BITS > 128 { Self::BITS.div_ceil(64) } else { 2 };

            #[inline]
            fn pack(&self, words: &mut [u64]) {
                let mut packer = $crate::cycle::Packer::new(words);
                $($crate::cycle::Value::push(self.$field, &mut packer, $width);)*
            }

            #[inline]
            fn unpack(words: &[u64]) -> $name {
                let mut unpacker = $crate::cycle::Unpacker::new(words);
                $name { $($field: $crate::cycle::Value::take(&mut unpacker, $width),)* }
            }
        }
    )* };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::ports! {
        /// Signals that cross words.
        pub struct Some {
            /// One bit.
            valid: bool = 1,
            /// Crosses into the second word.
            data: u64 = 64,
            /// In the second word.
            port: u8 = 6,
        }
    }

    crate::ports! {
        /// Signals that fill their words.
        pub struct Full {
            /// All of the first word.
            first: u64 = 64,
            /// The others.
            others: [u64; 2] = 128,
        }
    }

    /// Each element of an array has its share of the bits, and so has each of an array in it.
    #[test]
    fn elements_share_the_width() {
        let mut words = [0; 1];
        [[true, false], [false, true]].push(&mut Packer::new(&mut words), 4);
        assert_eq!(words, [0b1001]);
        let mut words = [0; 1];
        [1u8, 2, 3].push(&mut Packer::new(&mut words), 12);
        assert_eq!(words, [0x321]);
        let mut unpacker = Unpacker::new(&words);
        assert_eq!(<[u8; 3]>::take(&mut unpacker, 12), [1, 2, 3]);
        assert_eq!(
            [0b01, 0b10].map(|word| bool::take(&mut Unpacker::new(&[word]), 1)),
            [true, false]
        );
    }

    /// Words that the signals fill have no padding, and what fills a word stays out of the next.
    #[test]
    fn full_words_have_no_padding() {
        assert_eq!((Full::BITS, Full::WORDS), (192, 3));
        let mut words = [0; 3];
        Full { first: u64::MAX, others: [1, 2] }.pack(&mut words);
        assert_eq!(words, [u64::MAX, 1, 2]);
        assert_eq!(Full::unpack(&words), Full { first: u64::MAX, others: [1, 2] });
        let text = "  localparam int unsigned FullBits = 192;\n  typedef struct packed {\n    \
                    logic [127:0] others;\n    logic [63:0] first;\n  } full_t;\n";
        assert_eq!(packed_struct::<Full>("full"), text);
    }

    /// Structs with other names, widths or orders of signals have other hashes.
    #[test]
    fn hashes_tell_layouts_apart() {
        let signal = |name, width| Signal { name, width };
        let one = [signal("valid", 1), signal("data", 64)];
        let others = [
            [signal("valid", 1), signal("data", 65)],
            [signal("valid", 1), signal("date", 64)],
            [signal("data", 64), signal("valid", 1)],
        ];
        let all: Vec<u64> =
            std::iter::once(&one).chain(&others).map(|it| layout_hash(&[it])).collect();
        for (at, hash) in all.iter().enumerate() {
            assert!(!all[..at].contains(hash) && *hash > 1, "{all:x?}");
        }
        assert_eq!(layout_hash(&[&one]), layout_hash(&[&one[..1], &one[1..]]));
    }

    /// Signals lie one behind the other from the lowest bit up, in Rust as in SystemVerilog, and
    /// one that crosses into the next word is whole.
    #[test]
    fn signals_are_packed_from_the_lowest_bit_up() {
        let mut words = [0; Some::WORDS];
        Some { valid: true, data: 0xfedc_ba98_7654_3210, port: 0x2a }.pack(&mut words);
        assert_eq!(words, [0xfdb9_7530_eca8_6421, 0x55]);
        let there = Some::unpack(&words);
        assert_eq!(there, Some { valid: true, data: 0xfedc_ba98_7654_3210, port: 0x2a });
        assert_eq!(hexadecimal(&words, 0, 1), "1");
        assert_eq!(hexadecimal(&words, 1, 64), "fedcba9876543210");
        assert_eq!(hexadecimal(&words, 65, 6), "2a");
        assert_eq!((Some::BITS, Some::WORDS), (71, 2));
        assert_eq!(
            packed_struct::<Some>("some"),
            "  localparam int unsigned SomeBits = 128;\n  typedef struct packed {\n    \
             logic [56:0] padding;\n    logic [5:0] port;\n    logic [63:0] data;\n    \
             logic valid;\n  } some_t;\n"
        );
    }
}
