//! Credits for posted writes of one virtual channel: one for the header, and one for each 4 DW of
//! payload (S-15; SMP paper, sections 2 and 4.2).
//!
//! Both ends count what was granted and what was used since the link came up. The counters wrap:
//! modulo 2^8 for headers and 2^12 for data. So a lost update does no harm: the next one carries
//! the whole sum.

use bellwire_wire::link::dllp::Granted;

use crate::canary::planted;

/// Bytes per data credit: 4 DW.
pub const DATA_CREDIT_BYTES: usize = 16;

/// Data credits are counted modulo this.
pub const DATA_MODULUS: u16 = 1 << 12;

/// Data credits that one packet takes; it also takes one header credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Data credits.
    pub data: u16,
}

impl Cost {
    /// The cost of a packet with this many bytes of payload.
    pub const fn of(payload_bytes: usize) -> Cost {
        Cost { data: payload_bytes.div_ceil(DATA_CREDIT_BYTES) as u16 }
    }
}

/// Which credit is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// A header credit.
    Header,
    /// Data credits.
    Data,
}

/// The sender's side.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreditGate {
    granted: Granted,
    used: Granted,
}

impl CreditGate {
    /// The receiver reports the sum of its grants.
    pub fn handle_granted(&mut self, granted: Granted) {
        self.granted = granted;
    }

    /// Header and data credits left.
    pub fn left(&self) -> (u8, u16) {
        let data = self.granted.data.wrapping_sub(self.used.data) % DATA_MODULUS;
        (self.granted.headers.wrapping_sub(self.used.headers), data)
    }

    /// Whether a packet of this cost may go.
    ///
    /// # Errors
    /// The missing credit; headers are checked first.
    pub fn allows(&self, cost: Cost) -> Result<(), Lacking> {
        let (headers, data) = self.left();
        if planted("link-overdraw") {
            return Ok(());
        }
        if headers == 0 {
            return Err(Lacking::Header);
        }
        if data < cost.data { Err(Lacking::Data) } else { Ok(()) }
    }

    /// A packet goes. Ask [`allows`](Self::allows) first.
    pub fn spend(&mut self, cost: Cost) {
        self.used.headers = self.used.headers.wrapping_add(1);
        self.used.data = (self.used.data + cost.data) % DATA_MODULUS;
    }
}

/// More came than was granted: the sender exceeds its credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more came than credits were granted; the sender does not count right")]
pub struct Overflow;

/// The receiver's side: counts the buffer's content.
#[derive(Clone, Copy, Debug)]
pub struct CreditLedger {
    granted: Granted,
    held_headers: u8,
    held_data: u16,
    headers: u8,
    data: u16,
}

impl CreditLedger {
    /// A buffer for `headers` packets with `data` times 4 DW of payload in all.
    ///
    /// # Panics
    /// Above 127 headers or 2047 data: wrapping counters cannot tell these apart.
    pub fn new(headers: u8, data: u16) -> Self {
        assert!(headers < 128 && data < 2048, "credits end at 127 headers and 2047 data");
        let granted = Granted { headers, data };
        CreditLedger { granted, held_headers: 0, held_data: 0, headers, data }
    }

    /// A packet came into the buffer.
    ///
    /// # Errors
    /// [`Overflow`] if it has no room. The buffer is unchanged then.
    pub fn enter(&mut self, cost: Cost) -> Result<(), Overflow> {
        if self.held_headers == self.headers || self.held_data + cost.data > self.data {
            return Err(Overflow);
        }
        self.held_headers += 1;
        self.held_data += cost.data;
        Ok(())
    }

    /// A packet has left the buffer: its room is granted again.
    pub fn leave(&mut self, cost: Cost) {
        self.held_headers -= 1;
        self.held_data -= cost.data;
        self.granted.headers = self.granted.headers.wrapping_add(1);
        self.granted.data = (self.granted.data + cost.data) % DATA_MODULUS;
    }

    /// The sum of all grants, for the sender.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Packets and data credits in the buffer.
    pub fn held(&self) -> (u8, u16) {
        (self.held_headers, self.held_data)
    }
}
