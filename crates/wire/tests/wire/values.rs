//! Strategies that generate every valid value of each format.

use bellwire_wire::ADDRESS_LIMIT;
use bellwire_wire::descriptor::MAX_IMMEDIATE_BYTES;
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry, MAX_TRANSFER_BYTES};
use bellwire_wire::event::{EventRepr, Status};
use bellwire_wire::header::{HeaderRepr, MAX_NAP_BYTES};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::{ByteSpan, MAX_PAYLOAD_BYTES};
use bellwire_wire::tail::{MAX_TAIL_BYTES, Tail};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The bytes of a value.
macro_rules! emitted {
    ($value:expr) => {{
        let value = $value;
        let mut bytes = vec![0xee; value.buffer_len()];
        value.emit(&mut bytes).unwrap();
        bytes
    }};
}
pub(crate) use emitted;

/// Asserts that no flip of one or two bits of `bytes` passes. Returns the number of flips.
pub fn no_flip_passes(bytes: &[u8], passes: impl Fn(&[u8]) -> bool) -> usize {
    assert!(passes(bytes));
    let (mut damaged, mut flips) = (bytes.to_vec(), 0);
    for one in 0..bytes.len() * 8 {
        damaged[one / 8] ^= 1 << (one % 8);
        assert!(!passes(&damaged), "bit {one}");
        for two in one + 1..bytes.len() * 8 {
            damaged[two / 8] ^= 1 << (two % 8);
            assert!(!passes(&damaged), "bits {one} and {two}");
            damaged[two / 8] ^= 1 << (two % 8);
            flips += 1;
        }
        damaged[one / 8] ^= 1 << (one % 8);
        flips += 1;
    }
    flips
}

/// All items of an iterator, which must be at most `limit`: an endless one fails and does not hang.
pub fn at_most<T>(limit: usize, items: impl Iterator<Item = T>) -> Vec<T> {
    let items: Vec<T> = items.take(limit + 1).collect();
    assert!(items.len() <= limit, "more than {limit}");
    items
}

pub fn endpoint() -> impl Strategy<Value = Endpoint> {
    (0..Endpoint::CPUS, 0..Endpoint::FUNCTIONS, 0..Endpoint::QUEUE_PAIRS)
        .prop_map(|(cpu, function, queue_pair)| Endpoint::new(cpu, function, queue_pair).unwrap())
}

pub fn tail() -> impl Strategy<Value = Tail> {
    vec(any::<u8>(), 0..=MAX_TAIL_BYTES).prop_map(|bytes| Tail::new(&bytes).unwrap())
}

/// Any span that one packet can carry; the ends of the ranges are frequent.
pub fn span() -> impl Strategy<Value = ByteSpan> {
    let length = prop_oneof![0..=9_usize, 0..=MAX_PAYLOAD_BYTES, Just(MAX_PAYLOAD_BYTES)];
    let from_end = prop_oneof![1..=16_u64, 1..=ADDRESS_LIMIT, Just(ADDRESS_LIMIT)];
    (length, from_end).prop_map(|(length, from_end)| {
        let address = (ADDRESS_LIMIT - from_end).min(ADDRESS_LIMIT - length as u64);
        let address = address.min(ADDRESS_LIMIT - 1);
        ByteSpan::new(address, length)
            .unwrap_or_else(|_| ByteSpan::new(address - address % 4, length).unwrap())
    })
}

pub fn header() -> impl Strategy<Value = HeaderRepr> {
    let place = prop_oneof![
        (0..=MAX_NAP_BYTES).prop_map(|length| (Primitive::Nap, ByteSpan::new(0, length).unwrap())),
        span().prop_map(|span| (Primitive::Put, span)),
        (0..=MAX_PAYLOAD_BYTES)
            .prop_map(|length| (Primitive::Get, ByteSpan::new(0, length).unwrap())),
    ];
    (0..8_u8, any::<u16>(), any::<u8>(), endpoint(), endpoint(), any::<bool>(), place).prop_map(
        |(traffic_class, requester_id, magic, source, destination, wants_event, place)| {
            HeaderRepr {
                primitive: place.0,
                traffic_class,
                requester_id,
                magic,
                source,
                destination,
                wants_event,
                span: place.1,
            }
        },
    )
}

pub fn doorbell() -> impl Strategy<Value = DoorbellRepr> {
    (1..=256_u64, prop_oneof![1..=256_u64, 1..=ADDRESS_LIMIT / 16]).prop_map(|(beats, from_end)| {
        let from_end = from_end.max(beats) * 16;
        DoorbellRepr { address: ADDRESS_LIMIT - from_end, length: beats as u16 * 16 }
    })
}

pub fn event() -> impl Strategy<Value = EventRepr> {
    (
        any::<bool>(),
        select(Primitive::ALL),
        select(Status::ALL),
        0..4_u8,
        endpoint(),
        prop_oneof![0..ADDRESS_LIMIT, Just(ADDRESS_LIMIT - 1)],
        prop_oneof![0..=MAX_TRANSFER_BYTES, Just(MAX_TRANSFER_BYTES)],
        tail(),
    )
        .prop_map(|(phase, primitive, status, queue_pair, peer, address, length, tail)| {
            EventRepr { phase, primitive, status, queue_pair, peer, address, length, tail }
        })
}

/// Two lists of lengths with equal sums, up to `most_bytes` per source entry. Empty entries are
/// frequent, empty lists occur, and boundaries of the two lists often coincide.
pub fn length_lists(
    most_bytes: u64,
    most_entries: usize,
) -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    let length = prop_oneof![1 => Just(0), 3 => 0..=most_bytes];
    (vec(length, 0..=most_entries), vec(any::<(u64, bool)>(), 0..most_entries), any::<bool>())
        .prop_map(|(one, cuts, is_swapped)| {
            let boundaries: Vec<u64> = one
                .iter()
                .scan(0, |sum, length| {
                    *sum += length;
                    Some(*sum)
                })
                .collect();
            let total = boundaries.last().copied().unwrap_or(0);
            let mut ends: Vec<u64> = cuts
                .into_iter()
                .map(|(cut, at_boundary)| match boundaries.len() {
                    0 => 0,
                    count if at_boundary => boundaries[cut as usize % count],
                    _ => cut % (total + 1),
                })
                .collect();
            ends.sort_unstable();
            if total > 0 || !ends.is_empty() {
                ends.push(total);
            }
            let mut start = 0;
            let other = ends
                .into_iter()
                .map(|end| {
                    let length = end - start;
                    start = end;
                    length
                })
                .collect();
            if is_swapped { (other, one) } else { (one, other) }
        })
}

/// Operation and data in owned form; [`OwnedWork::borrow`] converts to what the descriptor takes.
#[derive(Clone, Debug)]
pub enum OwnedWork {
    NapImmediate(Vec<u8>),
    NapIndirect(Vec<Entry>),
    Put(Vec<Entry>, Vec<Entry>),
    Get(Vec<Entry>, Vec<Entry>, u8),
}

impl OwnedWork {
    pub fn borrow(&self) -> bellwire_wire::descriptor::Work<'_> {
        use bellwire_wire::descriptor::Work;
        match self {
            Self::NapImmediate(data) => Work::NapImmediate(data),
            Self::NapIndirect(sources) => Work::NapIndirect(sources.as_slice().into()),
            Self::Put(sources, destinations) => Work::Put(chain(sources, destinations)),
            Self::Get(sources, destinations, return_magic) => {
                Work::Get { chain: chain(sources, destinations), return_magic: *return_magic }
            }
        }
    }
}

pub fn chain<'a>(sources: &'a [Entry], destinations: &'a [Entry]) -> Chain<'a> {
    Chain { sources: sources.into(), destinations: destinations.into() }
}

pub fn work() -> impl Strategy<Value = OwnedWork> {
    let lists = || {
        length_lists(MAX_TRANSFER_BYTES / 254, 127).prop_flat_map(|(sources, destinations)| {
            (placed(sources), placed(destinations), any::<u8>())
        })
    };
    prop_oneof![
        vec(any::<u8>(), 0..=MAX_IMMEDIATE_BYTES).prop_map(OwnedWork::NapImmediate),
        vec(0..=8_u64, 0..=254).prop_flat_map(placed).prop_map(OwnedWork::NapIndirect),
        lists().prop_map(|(sources, destinations, _)| OwnedWork::Put(sources, destinations)),
        lists().prop_map(|(sources, destinations, return_magic)| {
            OwnedWork::Get(sources, destinations, return_magic)
        }),
    ]
}

/// Everything of a descriptor: endpoint, queue pair, traffic class, Magic, event, work, tail.
pub fn descriptor_parts() -> impl Strategy<Value = (Endpoint, u8, u8, u8, bool, OwnedWork, Tail)> {
    (endpoint(), 0..4_u8, 0..8_u8, any::<u8>(), any::<bool>(), work(), tail())
}

fn placed(lengths: Vec<u64>) -> impl Strategy<Value = Vec<Entry>> {
    let count = lengths.len();
    vec(any::<u64>(), count).prop_map(move |seeds| {
        let entry =
            |(&length, seed)| Entry { address: seed % (ADDRESS_LIMIT - length + 1), length };
        lengths.iter().zip(seeds).map(entry).collect()
    })
}
