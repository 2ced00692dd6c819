//! Credits for posted writes of one virtual channel: one for the header, and one for each 4 DW of payload (S-15; SMP paper,
//! sections 2 and 4.2).
//!
//! Both ends count what was granted and what was used since the link came up, and the counters go round: modulo 2^8 for
//! headers and 2^12 for data. So a lost update harms nobody, the next one says it all.

use core::fmt;

use bellwire_wire::link::dllp::Granted;

use crate::canary::planted;

/// Bytes that a data credit stands for: 4 DW.
pub const DATA_CREDIT_BYTES: usize = 16;

/// Data credits are counted modulo this.
const DATA_MODULUS: u16 = 1 << 12;

/// What one packet takes beside its header credit: data credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Data credits.
    pub data: u16,
}

impl Cost {
    /// Of a packet with this many bytes of payload.
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
    /// The receiver says what it has granted in all.
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
    /// What is missing; headers are looked at first.
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

/// More came than was granted: the sender does not keep to its credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more came than credits were granted; the sender does not count right")
    }
}

impl core::error::Error for Overflow {}

/// The receiver's side: the buffer, counted.
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
    /// Above 127 headers and 2047 data, which counters that go round cannot tell apart.
    pub fn new(headers: u8, data: u16) -> Self {
        assert!(headers < 128 && data < 2048, "credits end at 127 headers and 2047 data");
        let granted = Granted { headers, data };
        CreditLedger { granted, held_headers: 0, held_data: 0, headers, data }
    }

    /// A packet came into the buffer.
    ///
    /// # Errors
    /// [`Overflow`] if it has no room. The buffer is as before.
    pub fn enter(&mut self, cost: Cost) -> Result<(), Overflow> {
        if self.held_headers == self.headers || self.held_data + cost.data > self.data {
            return Err(Overflow);
        }
        self.held_headers += 1;
        self.held_data += cost.data;
        Ok(())
    }

    /// A packet has left the buffer: its room is granted anew.
    pub fn leave(&mut self, cost: Cost) {
        self.held_headers -= 1;
        self.held_data -= cost.data;
        self.granted.headers = self.granted.headers.wrapping_add(1);
        self.granted.data = (self.granted.data + cost.data) % DATA_MODULUS;
    }

    /// What was granted in all, for the sender.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Packets and data credits in the buffer.
    pub fn held(&self) -> (u8, u16) {
        (self.held_headers, self.held_data)
    }
}
