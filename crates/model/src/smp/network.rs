//! The network layer: packets of the units become TLPs and come back (S-09 to S-12, S-32).

use bellwire_wire::WireError;
use bellwire_wire::link::network::{Class, NetworkHeader, STANDARD_BYTES};
use bellwire_wire::link::tlp::Tlp;
use bellwire_wire::link::{DW_BYTES, MAX_DATA_DW};

use super::config::Header;

/// Length of the network header in DW, in both forms, as the paper counts (4.1).
pub const HEADER_DW: usize = 4;

/// The longest packet of the coherence unit in DW, header counted (S-32; 4.2).
pub const LONGEST_COHERENCE_DW: usize = 16;

/// The longest data of a packet of the block unit, in bytes: 124 DW. With the header it is the
/// paper's longest packet of 128 DW.
pub const LONGEST_BLOCK_BYTES: usize = 496;

/// A packet as the units see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPacket {
    /// Its target and meaning.
    pub header: NetworkHeader,
    /// Requests (0) or responses (1).
    pub channel: u8,
    /// Whole DWs.
    pub data: Vec<u8>,
}

/// Why a packet was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A packet of the coherence unit is too long (S-32).
    #[error("a coherence packet of {length_dw} DW exceeds 16; a line of 32 B fits")]
    CoherenceTooLong {
        /// Its length, header counted.
        length_dw: usize,
    },
    /// A packet exceeds the longest length (4.2).
    #[error("a packet of {length_dw} DW exceeds 128, header counted; cut its data at 496 B")]
    TooLong {
        /// Its length, header counted.
        length_dw: usize,
    },
    /// A field does not fit, or the bytes are not a valid packet.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl NetworkPacket {
    /// Its length in DW; the header counts 4 as in the paper.
    pub fn length_dw(&self) -> usize {
        HEADER_DW + self.data.len().div_ceil(DW_BYTES)
    }

    /// The TLP for this packet.
    ///
    /// # Errors
    /// [`Refused`], if it is longer than its unit may send, or does not fit its fields.
    pub fn to_tlp(&self, form: Header) -> Result<Vec<u8>, Refused> {
        let length_dw = self.length_dw();
        if self.header.class == Class::Coherence && length_dw > LONGEST_COHERENCE_DW {
            return Err(Refused::CoherenceTooLong { length_dw });
        }
        if length_dw > HEADER_DW + MAX_DATA_DW {
            return Err(Refused::TooLong { length_dw });
        }
        let channel = self.channel;
        let bare = |address, payload| Tlp { channel, requester: 0, tag: 0, address, payload };
        let long;
        let tlp = match form {
            Header::Optimised => bare(self.header.emit_optimised()?, &self.data),
            Header::Standard => {
                long = [&self.header.emit_standard()?, self.data.as_slice()].concat();
                bare(0, &long)
            }
        };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes)?;
        Ok(bytes)
    }

    /// The packet in a TLP.
    ///
    /// # Errors
    /// [`Refused::Wire`] if the bytes are not one.
    pub fn from_tlp(bytes: &[u8], form: Header) -> Result<NetworkPacket, Refused> {
        let tlp = Tlp::parse(bytes)?;
        let (header, data) = match form {
            Header::Optimised => (NetworkHeader::parse_optimised(tlp.address)?, tlp.payload),
            Header::Standard => {
                let header = NetworkHeader::parse_standard(tlp.payload)?;
                (header, &tlp.payload[STANDARD_BYTES..])
            }
        };
        Ok(NetworkPacket { header, channel: tlp.channel, data: data.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(class: Class, dwords: usize) -> NetworkPacket {
        let header =
            NetworkHeader { class, operation: 3, target: 2, source: 1, tag: 9, address: 0x1234 };
        NetworkPacket { header, channel: 1, data: vec![0x5a; dwords * DW_BYTES] }
    }

    /// Packets of every length survive both forms unchanged, as TLPs of L + 5 and L + 1 DW.
    // shows: S-09, S-10, S-11
    #[test]
    fn packets_come_back() {
        assert_eq!(HEADER_DW * DW_BYTES, STANDARD_BYTES);
        assert_eq!(LONGEST_BLOCK_BYTES, MAX_DATA_DW * DW_BYTES);
        for dwords in 0..=MAX_DATA_DW {
            let packet = packet(Class::Block, dwords);
            for (form, beyond) in [(Header::Standard, 5), (Header::Optimised, 1)] {
                let bytes = packet.to_tlp(form).unwrap();
                assert_eq!(bytes.len(), (packet.length_dw() + beyond) * DW_BYTES);
                assert_eq!(NetworkPacket::from_tlp(&bytes, form).unwrap(), packet);
            }
        }
    }

    /// A coherence packet of 16 DW is accepted, one of 17 is refused; a block packet may be longer.
    // shows: S-32
    #[test]
    fn coherence_packets_are_short() {
        assert!(packet(Class::Coherence, 12).to_tlp(Header::Optimised).is_ok());
        assert_eq!(
            packet(Class::Coherence, 13).to_tlp(Header::Optimised),
            Err(Refused::CoherenceTooLong { length_dw: 17 })
        );
        assert!(packet(Class::Block, 13).to_tlp(Header::Optimised).is_ok());
        assert!(packet(Class::Block, 125).to_tlp(Header::Optimised).is_err());
    }
}
