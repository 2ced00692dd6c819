//! Sender and receiver: a queue pair of a function of a processor, in 9 bits.
//!
//! ```text
//!   8   7   6   5 | 4   3   2 | 1   0
//!  ---------------+-----------+-------
//!        CPU      |    VF     |  QP
//! ```
//!
//! The paper fixes the order of the fields, and that all seven of DW2 share 24 bits, but not their
//! widths. Eight functions (PF + 7 VF) need 3 bits and four queue pairs 2 bits (C-38). We give the
//! processor 4 bits, because the paper simulates 16 ports (C-44). Two endpoints of 9 bits then
//! leave 6 bits for S-Flag.

use core::fmt;

use crate::WireError;
use crate::bits::{Field, tiles};

const CPU: Field = Field::new("CPU", 8, 5);
const FUNCTION: Field = Field::new("function", 4, 2);
const QUEUE_PAIR: Field = Field::new("queue pair", 1, 0);

const _: () = assert!(tiles(&[CPU, FUNCTION, QUEUE_PAIR], Endpoint::BITS));

/// Address of one queue pair. Always in range: only checked values can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint(u16);

impl Endpoint {
    /// Bits that an endpoint takes.
    pub const BITS: u32 = 9;
    /// Processors that can be named.
    pub const CPUS: u8 = 1 << 4;
    /// Functions of one processor: function 0 is the PF, 1..=7 are VF0..VF6.
    pub const FUNCTIONS: u8 = 1 << 3;
    /// Queue pairs of one function.
    pub const QUEUE_PAIRS: u8 = 1 << 2;

    /// The queue pair of that number; [`WireError::OutOfRange`] names the part that does not fit.
    pub const fn new(cpu: u8, function: u8, queue_pair: u8) -> Result<Self, WireError> {
        match (
            CPU.place(cpu as u64),
            FUNCTION.place(function as u64),
            QUEUE_PAIR.place(queue_pair as u64),
        ) {
            (Ok(cpu), Ok(function), Ok(queue_pair)) => {
                Ok(Self((cpu | function | queue_pair) as u16))
            }
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => Err(error),
        }
    }

    /// Processor, 0..16.
    pub const fn cpu(self) -> u8 {
        CPU.of(self.0 as u64) as u8
    }

    /// Function, 0..8; 0 is the PF.
    pub const fn function(self) -> u8 {
        FUNCTION.of(self.0 as u64) as u8
    }

    /// Queue pair of the function, 0..4.
    pub const fn queue_pair(self) -> u8 {
        QUEUE_PAIR.of(self.0 as u64) as u8
    }

    /// The 9-bit form.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Takes the low 9 bits; each pattern is an endpoint.
    pub(crate) const fn from_low_bits(bits: u64) -> Self {
        Self((bits & ((1 << Self::BITS) - 1)) as u16)
    }
}

impl fmt::Display for Endpoint {
    /// `cpu.function.queue_pair`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.cpu(), self.function(), self.queue_pair())
    }
}
