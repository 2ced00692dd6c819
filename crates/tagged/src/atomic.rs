//! Atomic operations on numbers in memory: types, operations and requests.
//!
//! Types and operations have libfabric's numbers (`fi_datatype`, `fi_op` of fi_atomic(3)), also on
//! the wire.

/// Maximum size of one operand of an access, in bytes.
pub const OPERAND_BYTES: usize = 2048;

/// Makes an enumeration that has a number for each variant.
macro_rules! numbered {
    ($(#[$doc:meta])* $vis:vis $name:ident {
        $($(#[$of:meta])* $variant:ident = $number:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        $vis enum $name { $($(#[$of])* $variant = $number,)* }

        impl $name {
            /// All variants.
            #[allow(dead_code)] // Some have no other use than tests.
            $vis const ALL: &[$name] = &[$($name::$variant),*];

            /// The variant with this number; `None`: there is none.
            #[inline]
            $vis fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use numbered;

numbered! {
    /// The type of a number, in the byte order of the host.
    pub Datatype {
        /// Signed, 8 bits.
        I8 = 0,
        /// Unsigned, 8 bits.
        U8 = 1,
        /// Signed, 16 bits.
        I16 = 2,
        /// Unsigned, 16 bits.
        U16 = 3,
        /// Signed, 32 bits.
        I32 = 4,
        /// Unsigned, 32 bits.
        U32 = 5,
        /// Signed, 64 bits.
        I64 = 6,
        /// Unsigned, 64 bits.
        U64 = 7,
        /// IEEE 754, 32 bits.
        F32 = 8,
        /// IEEE 754, 64 bits.
        F64 = 9,
    }
}

numbered! {
    /// The new value of a number `old`, given an operand and, in some operations, a value to
    /// compare with.
    pub AtomicOp {
        /// The smaller one.
        Minimum = 0,
        /// The larger one.
        Maximum = 1,
        /// The sum; of integers modulo their range.
        Sum = 2,
        /// The product, likewise.
        Product = 3,
        /// 1 if either is not zero, else 0.
        LogicalOr = 4,
        /// 1 if both are not zero, else 0.
        LogicalAnd = 5,
        /// Bitwise or. The bitwise operations are for integers only.
        Or = 6,
        /// Bitwise and.
        And = 7,
        /// 1 if exactly one is not zero, else 0.
        LogicalXor = 8,
        /// Bitwise exclusive or.
        Xor = 9,
        /// Unchanged; only its value is returned.
        Read = 10,
        /// The operand.
        Write = 11,
        /// The operand, if the compared value equals `old`.
        SwapEqual = 12,
        /// The operand, if the compared value differs from `old`.
        SwapUnequal = 13,
        /// The operand, if the compared value is less than or equal to `old`.
        SwapLessEqual = 14,
        /// The operand, if the compared value is less than `old`.
        SwapLess = 15,
        /// The operand, if the compared value is greater than or equal to `old`.
        SwapGreaterEqual = 16,
        /// The operand, if the compared value is greater than `old`.
        SwapGreater = 17,
        /// The operand's bits where the compared value has ones; integers only.
        SwapMasked = 18,
    }
}

/// A request: the operation, the numbers, and whether their previous values are returned.
///
/// ```
/// use bellwire_tagged::{AtomicOp, AtomicRequest, Datatype};
///
/// let (op, datatype) = (AtomicOp::Sum, Datatype::U64);
/// let request = AtomicRequest { op, datatype, count: 1, fetch: true };
/// assert!(request.op.is_defined_for(request.datatype) && !request.op.compares());
/// ```
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicRequest {
    /// The operation.
    pub op: AtomicOp,
    /// The type of the numbers.
    pub datatype: Datatype,
    /// How many consecutive numbers.
    pub count: usize,
    /// Whether the previous values are returned.
    pub fetch: bool,
}

impl Datatype {
    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Datatype::I8 | Datatype::U8 => 1,
            Datatype::I16 | Datatype::U16 => 2,
            Datatype::I32 | Datatype::U32 | Datatype::F32 => 4,
            Datatype::I64 | Datatype::U64 | Datatype::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Datatype::F32 | Datatype::F64)
    }
}

impl AtomicOp {
    /// Whether it compares, and so has a second operand.
    pub fn compares(self) -> bool {
        self as u8 >= AtomicOp::SwapEqual as u8
    }

    /// Whether the operation is defined for this type.
    pub fn is_defined_for(self, datatype: Datatype) -> bool {
        use AtomicOp::{And, Or, SwapMasked, Xor};
        !(datatype.is_float() && matches!(self, Or | And | Xor | SwapMasked))
    }

    /// The new value of `old`. All values are the bits of a `datatype`.
    pub(crate) fn apply(self, datatype: Datatype, old: u64, operand: u64, compared: u64) -> u64 {
        /// The operation for one type, given its conversions from and to bits.
        macro_rules! numbers {
            ($to:expr, $back:expr, $add:expr, $multiply:expr, $one:literal) => {{
                let (a, b, c) = ($to(old), $to(operand), $to(compared));
                let zero = $to(0);
                let truth = |is: bool| $back(if is { $one } else { zero });
                let swap = |is: bool| if is { operand } else { old };
                match self {
                    AtomicOp::Minimum => swap(b < a),
                    AtomicOp::Maximum => swap(b > a),
                    AtomicOp::Sum => $back($add(a, b)),
                    AtomicOp::Product => $back($multiply(a, b)),
                    AtomicOp::LogicalOr => truth(a != zero || b != zero),
                    AtomicOp::LogicalAnd => truth(a != zero && b != zero),
                    AtomicOp::LogicalXor => truth((a != zero) != (b != zero)),
                    AtomicOp::Read => old,
                    AtomicOp::Write => operand,
                    AtomicOp::SwapEqual => swap(c == a),
                    AtomicOp::SwapUnequal => swap(c != a),
                    AtomicOp::SwapLessEqual => swap(c <= a),
                    AtomicOp::SwapLess => swap(c < a),
                    AtomicOp::SwapGreaterEqual => swap(c >= a),
                    AtomicOp::SwapGreater => swap(c > a),
                    AtomicOp::Or => old | operand,
                    AtomicOp::And => old & operand,
                    AtomicOp::Xor => old ^ operand,
                    AtomicOp::SwapMasked => operand & compared | old & !compared,
                }
            }};
        }
        macro_rules! integers {
            ($type:ty, $unsigned:ty) => {
                numbers!(
                    |bits: u64| bits as $type,
                    |value: $type| u64::from(value as $unsigned),
                    <$type>::wrapping_add,
                    <$type>::wrapping_mul,
                    1
                )
            };
        }
        match datatype {
            Datatype::I8 => integers!(i8, u8),
            Datatype::U8 => integers!(u8, u8),
            Datatype::I16 => integers!(i16, u16),
            Datatype::U16 => integers!(u16, u16),
            Datatype::I32 => integers!(i32, u32),
            Datatype::U32 => integers!(u32, u32),
            Datatype::I64 => integers!(i64, u64),
            Datatype::U64 => integers!(u64, u64),
            Datatype::F32 => numbers!(
                |bits: u64| f32::from_bits(bits as u32),
                |value: f32| u64::from(value.to_bits()),
                |a: f32, b: f32| a + b,
                |a: f32, b: f32| a * b,
                1.0
            ),
            Datatype::F64 => numbers!(
                f64::from_bits,
                f64::to_bits,
                |a: f64, b: f64| a + b,
                |a: f64, b: f64| a * b,
                1.0
            ),
        }
    }
}

impl AtomicRequest {
    /// Size of each operand, in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.count.saturating_mul(self.datatype.size())
    }

    /// Whether it reads the memory.
    pub(crate) fn reads(self) -> bool {
        self.fetch || self.op == AtomicOp::Read
    }

    /// Whether the operation is defined, and the length is possible for an access.
    pub(crate) fn is_valid(self) -> bool {
        self.op.is_defined_for(self.datatype) && self.count > 0 && self.bytes() <= OPERAND_BYTES
    }

    pub(crate) fn to_word(self) -> u64 {
        let low = u64::from(self.op as u8) | u64::from(self.datatype as u8) << 8;
        low | u64::from(self.fetch) << 16 | (self.count as u64) << 32
    }

    /// `None`: the word is not a valid request.
    pub(crate) fn from_word(word: u64) -> Option<AtomicRequest> {
        let request = AtomicRequest {
            op: AtomicOp::from_number(word as u8)?,
            datatype: Datatype::from_number((word >> 8) as u8)?,
            fetch: (word >> 16) as u16 == 1,
            count: (word >> 32) as usize,
        };
        (request.is_valid() && word >> 17 & 0x7fff == 0).then_some(request)
    }
}

/// The bits of number `at` in `bytes`; each number has `size` bytes.
pub(crate) fn bits_of(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[at * size..(at + 1) * size]);
    u64::from_le_bytes(word)
}

// Bits are numbers from the lowest byte on.
const _: () = assert!(cfg!(target_endian = "little"));

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation does what its documentation says, for signed, unsigned and floating-point
    /// numbers, also at the ends of their ranges.
    #[test]
    fn operations_do_what_they_say() {
        use AtomicOp::*;
        let int = |op: AtomicOp, old: i8, operand: i8, compared: i8| {
            let bits = |value: i8| u64::from(value as u8);
            op.apply(Datatype::I8, bits(old), bits(operand), bits(compared)) as u8 as i8
        };
        assert_eq!((int(Minimum, 3, -4, 0), int(Maximum, 3, -4, 0)), (-4, 3));
        assert_eq!((int(Sum, 127, 1, 0), int(Product, -128, -1, 0)), (-128, -128));
        assert_eq!((int(LogicalOr, 0, 8, 0), int(LogicalAnd, 4, 8, 0)), (1, 1));
        assert_eq!((int(LogicalXor, 4, 8, 0), int(LogicalXor, 0, 8, 0)), (0, 1));
        assert_eq!((int(Or, 4, 8, 0), int(And, 12, 8, 0), int(Xor, 12, 8, 0)), (12, 8, 4));
        assert_eq!((int(Read, 4, 8, 0), int(Write, 4, 8, 0)), (4, 8));
        // The number is 5, compared with -1, 5 and 6.
        let taken = |op| [-1, 5, 6].map(|compared| int(op, 5, 9, compared) == 9);
        assert_eq!(taken(SwapEqual), [false, true, false]);
        assert_eq!(taken(SwapUnequal), [true, false, true]);
        assert_eq!(taken(SwapLessEqual), [true, true, false]);
        assert_eq!(taken(SwapLess), [true, false, false]);
        assert_eq!(taken(SwapGreaterEqual), [false, true, true]);
        assert_eq!(taken(SwapGreater), [false, false, true]);
        assert_eq!(int(SwapMasked, 0b1010, 0b0101, 0b0011), 0b1001);
        let unsigned = Datatype::U64;
        assert_eq!(Maximum.apply(unsigned, 1, u64::MAX, 0), u64::MAX);
        assert_eq!(Sum.apply(unsigned, u64::MAX, 2, 0), 1);
        let float = |op: AtomicOp, a: f64, b: f64| {
            f64::from_bits(op.apply(Datatype::F64, a.to_bits(), b.to_bits(), 0))
        };
        assert_eq!((float(Sum, 0.5, 0.25), float(Product, 0.5, 0.5)), (0.75, 0.25));
        assert_eq!((float(Minimum, 0.5, -0.25), float(LogicalAnd, 0.5, -0.0)), (-0.25, 0.0));
        let half = u64::from(0.5_f32.to_bits());
        assert_eq!(Sum.apply(Datatype::F32, half, half, 0), u64::from(1.0_f32.to_bits()));
    }

    /// A request survives encoding. Invalid ones are refused: bitwise operations on floating-point
    /// numbers, and requests that are too long.
    #[test]
    fn requests_survive() {
        for &op in AtomicOp::ALL {
            for &datatype in Datatype::ALL {
                let request = AtomicRequest { op, datatype, count: 3, fetch: true };
                let there = AtomicRequest::from_word(request.to_word());
                assert_eq!(there, op.is_defined_for(datatype).then_some(request));
                assert_eq!((op as u8, datatype as u8), (request.to_word() as u8, datatype as u8));
            }
        }
        let datatype = Datatype::U64;
        let long = AtomicRequest {
            op: AtomicOp::Sum,
            datatype,
            count: OPERAND_BYTES / 8 + 1,
            fetch: false,
        };
        assert_eq!(AtomicRequest::from_word(long.to_word()), None);
        assert_eq!(AtomicRequest::from_word(AtomicRequest { count: 0, ..long }.to_word()), None);
        assert_eq!(AtomicRequest::from_word(1 << 32 | 1 << 20), None);
        assert_eq!((AtomicOp::from_number(19), Datatype::from_number(10)), (None, None));
    }

    /// Four operations are for integers only, and the last seven compare.
    #[test]
    fn operations_have_their_types() {
        let undefined = |datatype| {
            let all = AtomicOp::ALL.iter().copied();
            all.filter(|op| !op.is_defined_for(datatype)).collect::<Vec<_>>()
        };
        use AtomicOp::{And, Or, SwapMasked, Xor};
        for &datatype in Datatype::ALL {
            let is_float = matches!(datatype, Datatype::F32 | Datatype::F64);
            let expected = if is_float { vec![Or, And, Xor, SwapMasked] } else { vec![] };
            assert_eq!(undefined(datatype), expected, "{datatype:?}");
        }
        let compare = AtomicOp::ALL.iter().filter(|op| op.compares()).count();
        assert!(compare == 7 && !AtomicOp::Write.compares());
        let bytes: Vec<u8> = (1..=8).collect();
        assert_eq!(bits_of(&bytes, 3, 2), 0x0807);
        assert_eq!(bits_of(&bytes, 1, 4), 0x0807_0605);
    }
}
