//! The messages of coherence units.

use bellwire_wire::link::network::{Class, NetworkHeader};

use crate::smp::network::NetworkPacket;

/// Bytes of a line: 8 DW, the largest power of two that fits a packet of 16 DW with its header
/// (S-32).
pub const LINE_BYTES: usize = 32;

/// A node's number.
pub type Node = u8;

/// A message of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// The line, by its number.
    pub line: u32,
    /// Content of the line, for kinds that carry it.
    pub data: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Cache to home: wants to read.
    GetS,
    /// Cache to home: wants to write.
    GetM,
    /// Cache to home: gives up its only copy; with data.
    Put,
    /// Home to owner: another node wants to read; keep a shared copy.
    Fetch,
    /// Home to owner: another node wants to write; give it up.
    FetchInvalidate,
    /// Home to sharer: another node wants to write; give it up.
    Invalidate,
    /// Home to cache: a shared copy; with data.
    Shared,
    /// Home to cache: the only copy; with data.
    Exclusive,
    /// Home to cache: the Put is done.
    PutDone,
    /// Owner to home: answer to a Fetch or FetchInvalidate; with data.
    Fetched,
    /// Sharer to home: the copy is given up.
    Invalidated,
}

impl Kind {
    /// All kinds, by their codes.
    pub const ALL: [Kind; 11] = [
        Kind::GetS,
        Kind::GetM,
        Kind::Put,
        Kind::Fetch,
        Kind::FetchInvalidate,
        Kind::Invalidate,
        Kind::Shared,
        Kind::Exclusive,
        Kind::PutDone,
        Kind::Fetched,
        Kind::Invalidated,
    ];

    /// Virtual channel: 0 for requests, which may wait at the home, and 1 for everything else
    /// (S-14).
    pub const fn channel(self) -> u8 {
        match self {
            Kind::GetS | Kind::GetM | Kind::Put => 0,
            _ => 1,
        }
    }

    /// Whether it carries the line's content.
    pub const fn has_data(self) -> bool {
        matches!(self, Kind::Put | Kind::Shared | Kind::Exclusive | Kind::Fetched)
    }

    /// Whether it is for the directory, not for a cache.
    pub const fn is_for_home(self) -> bool {
        matches!(self, Kind::GetS | Kind::GetM | Kind::Put | Kind::Fetched | Kind::Invalidated)
    }
}

impl Message {
    /// The packet of the message: 4 DW of header as the paper counts, and 8 DW of line if it has
    /// data.
    pub fn to_packet(self) -> NetworkPacket {
        let operation = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0) as u8;
        let header = NetworkHeader {
            class: Class::Coherence,
            operation,
            target: self.to,
            source: self.from,
            tag: 0,
            address: u64::from(self.line) * LINE_BYTES as u64,
        };
        // A line repeats its content four times, so that damage is visible.
        let data = match self.kind.has_data() {
            true => self.data.to_le_bytes().repeat(LINE_BYTES / 8),
            false => Vec::new(),
        };
        NetworkPacket { header, channel: self.kind.channel(), data }
    }

    /// The message in a packet; `None` if it holds none.
    pub fn from_packet(packet: &NetworkPacket) -> Option<Message> {
        let header = packet.header;
        let kind = *Kind::ALL.get(usize::from(header.operation))?;
        let line = u32::try_from(header.address / LINE_BYTES as u64).ok()?;
        let mut words = packet
            .data
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks have eight bytes")));
        let data = words.next().unwrap_or(0);
        let length = if kind.has_data() { LINE_BYTES } else { 0 };
        let is_whole = packet.data.len() == length && words.all(|word| word == data);
        let is_right = header.class == Class::Coherence
            && header.address.is_multiple_of(LINE_BYTES as u64)
            && packet.channel == kind.channel();
        (is_whole && is_right).then_some(Message {
            kind,
            from: header.source,
            to: header.target,
            line,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::config::Header;
    use crate::smp::network::LONGEST_COHERENCE_DW;

    /// Every message survives a coherence packet unchanged.
    // shows: S-09, S-32
    #[test]
    fn messages_fit_their_packets() {
        for kind in Kind::ALL {
            let data = if kind.has_data() { 0x1234_5678_9abc } else { 0 };
            let message = Message { kind, from: 3, to: 1, line: 77, data };
            let packet = message.to_packet();
            assert!(packet.length_dw() <= LONGEST_COHERENCE_DW);
            let tlp = packet.to_tlp(Header::Optimised).unwrap();
            let back = NetworkPacket::from_tlp(&tlp, Header::Optimised).unwrap();
            assert_eq!(Message::from_packet(&back), Some(message));
        }
    }

    /// Requests go on channel 0 and all else on channel 1. Four kinds carry a line, five are for
    /// the directory.
    #[test]
    fn kinds_have_their_channels() {
        let of = |is: fn(Kind) -> bool| Kind::ALL.into_iter().filter(|kind| is(*kind)).collect();
        let (requests, carriers, for_home): (Vec<_>, Vec<_>, Vec<_>) =
            (of(|kind| kind.channel() == 0), of(Kind::has_data), of(Kind::is_for_home));
        use Kind::*;
        assert_eq!(requests, [GetS, GetM, Put]);
        assert!(Kind::ALL.iter().all(|kind| kind.channel() < 2));
        assert_eq!(carriers, [Put, Shared, Exclusive, Fetched]);
        assert_eq!(for_home, [GetS, GetM, Put, Fetched, Invalidated]);
    }

    /// A packet that is not wholly a message is none: damaged words, a wrong length, class, channel
    /// or address.
    #[test]
    fn other_packets_are_no_messages() {
        let message = Message { kind: Kind::Shared, from: 3, to: 1, line: 77, data: 5 };
        let packet = message.to_packet();
        assert_eq!(Message::from_packet(&packet), Some(message));
        let changes: [fn(&mut NetworkPacket); 8] = [
            |packet| packet.data[8] ^= 1,
            |packet| packet.data[31] ^= 1,
            |packet| packet.data.truncate(24),
            |packet| packet.data.clear(),
            |packet| packet.header.class = Class::Block,
            |packet| packet.header.address += 8,
            |packet| packet.channel = 0,
            |packet| packet.header.operation = 11,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut packet = packet.clone();
            change(&mut packet);
            assert_eq!(Message::from_packet(&packet), None, "change {number}");
        }
        let short = Message { kind: Kind::GetS, data: 0, ..message }.to_packet();
        assert!(Message::from_packet(&short).is_some());
        let long = NetworkPacket { data: vec![0; 32], ..short };
        assert_eq!(Message::from_packet(&long), None);
    }
}
