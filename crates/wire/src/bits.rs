//! Bit fields of a word, written `[msb:lsb]` as the diagrams do.

use crate::WireError;

/// A named run of bits inside a word of at most 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    msb: u32,
    lsb: u32,
}

impl Field {
    /// The field at bits `msb` down to `lsb`, both included.
    pub(crate) const fn new(name: &'static str, msb: u32, lsb: u32) -> Self {
        assert!(lsb <= msb && msb < 64, "a field runs from its high bit down to its low bit");
        Self { name, msb, lsb }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Its bits.
    pub const fn width(self) -> u32 {
        self.msb - self.lsb + 1
    }

    /// Largest value that fits.
    pub(crate) const fn limit(self) -> u64 {
        u64::MAX >> (63 - (self.msb - self.lsb))
    }

    /// The field's value in `word`.
    pub const fn of(self, word: u64) -> u64 {
        (word >> self.lsb) & self.limit()
    }

    /// True if any bit of the field is set in `word`.
    pub const fn is_set(self, word: u64) -> bool {
        self.of(word) != 0
    }

    /// A word with `value` in this field and zeros elsewhere, or the refusal of a value that does
    /// not fit.
    pub(crate) const fn place(self, value: u64) -> Result<u64, WireError> {
        if value > self.limit() {
            return Err(WireError::OutOfRange { field: self.name, value, limit: self.limit() });
        }
        Ok(value << self.lsb)
    }

    /// Refuses `word` if this reserved field is not zero in it.
    pub(crate) const fn must_be_zero(self, word: u64) -> Result<(), WireError> {
        match self.of(word) {
            0 => Ok(()),
            value => Err(WireError::Reserved { field: self.name, value }),
        }
    }
}

/// True if the fields cover each of the low `width` bits exactly once, from the highest down: the
/// diagram has no hole and no overlap. Used in compile-time assertions.
pub(crate) const fn tiles(fields: &[Field], width: u32) -> bool {
    let mut top = width;
    let mut index = 0;
    while index < fields.len() {
        if fields[index].msb + 1 != top {
            return false;
        }
        top = fields[index].lsb;
        index += 1;
    }
    top == 0
}

#[cfg(test)]
mod tests {
    use super::{Field, tiles};

    /// A full-width field works. The tiling check, the compile-time guard of every layout, catches
    /// a hole, an overlap and a missing end (its canaries).
    #[test]
    fn tiling_check_catches_planted_layout_faults() {
        let whole = Field::new("whole", 63, 0);
        assert_eq!(whole.limit(), u64::MAX);
        assert_eq!(whole.place(u64::MAX), Ok(u64::MAX));
        let high = Field::new("high", 31, 8);
        assert!(tiles(&[high, Field::new("low", 7, 0)], 32));
        assert!(!tiles(&[high, Field::new("hole", 6, 0)], 32));
        assert!(!tiles(&[high, Field::new("overlap", 8, 0)], 32));
        assert!(!tiles(&[high, Field::new("no end", 7, 1)], 32));
        assert!(!tiles(&[high, Field::new("low", 7, 0)], 64));
    }
}
