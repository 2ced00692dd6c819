//! One operation between two idle nodes.

use bellwire_wire::WireError;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;
use serde::{Deserialize, Serialize};

use crate::chpp::journal::Explanation;
use crate::chpp::machine::HostApi;
use crate::chpp::{Config, Machine};
use crate::units::Span;

/// The four primitives that the paper measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// NAP with immediate data.
    NapImmediate,
    /// NAP with its data in memory.
    NapIndirect,
    /// PUT.
    Put,
    /// GET: bytes move from the destination to the requester.
    Get,
}

impl Kind {
    /// All four, in the order of Table 3.
    pub const ALL: [Kind; 4] = [Kind::NapImmediate, Kind::NapIndirect, Kind::Put, Kind::Get];

    /// Its name in the paper's table.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NapImmediate => "NAP immediate",
            Kind::NapIndirect => "NAP indirect",
            Kind::Put => "PUT",
            Kind::Get => "GET",
        }
    }

    /// Whether it is a NAP, which carries at most 2 KiB.
    pub fn is_nap(self) -> bool {
        matches!(self, Kind::NapImmediate | Kind::NapIndirect)
    }
}

/// Posts an operation of `kind` from queue pair `from` to queue pair `to`, with an event at the
/// end. `near` is memory of the sender, `far` of the other side. A PUT moves data from near to far,
/// a GET from far to near.
///
/// # Errors
/// [`WireError`] if no descriptor can express it, such as a NAP above 2048 bytes.
pub fn post(
    api: &mut HostApi<'_>,
    kind: Kind,
    (from, to): (Endpoint, Endpoint),
    (near, far): (u64, u64),
    bytes: u64,
) -> Result<u32, WireError> {
    let inside = match kind {
        Kind::NapImmediate => api.memory(near, bytes as usize).unwrap_or_default().to_vec(),
        _ => Vec::new(),
    };
    let keys = (api.key(from), api.key(to));
    described(kind, (from, to), (near, far), (bytes, &inside), keys, |descriptor| {
        api.post(from.cpu().into(), from.function().into(), descriptor)
    })
}

/// Passes the descriptor of such an operation to `then`. `inside` are the bytes of a NAP immediate;
/// both queue pairs have keys.
pub fn described<R>(
    kind: Kind,
    (from, to): (Endpoint, Endpoint),
    (near, far): (u64, u64),
    (bytes, inside): (u64, &[u8]),
    (own_key, key): (u8, u8),
    then: impl FnOnce(&DescriptorRepr<'_>) -> R,
) -> R {
    let near_list = [Entry { address: near, length: bytes }];
    let far_list = [Entry { address: far, length: bytes }];
    let work = match kind {
        Kind::NapImmediate => Work::NapImmediate(inside),
        Kind::NapIndirect => Work::NapIndirect((&near_list[..]).into()),
        Kind::Put => Work::Put(Chain {
            sources: (&near_list[..]).into(),
            destinations: (&far_list[..]).into(),
        }),
        Kind::Get => Work::Get {
            chain: Chain { sources: (&far_list[..]).into(), destinations: (&near_list[..]).into() },
            return_magic: own_key,
        },
    };
    then(&DescriptorRepr {
        destination: to,
        queue_pair: from.queue_pair(),
        traffic_class: 0,
        magic: key,
        wants_event: true,
        work,
        tail: Tail::EMPTY,
    })
}

/// The same between the first free bytes of the two functions.
///
/// # Errors
/// Those of [`post`].
pub fn post_free(
    api: &mut HostApi<'_>,
    kind: Kind,
    ends: (Endpoint, Endpoint),
    bytes: u64,
) -> Result<u32, WireError> {
    let free = |at: Endpoint| api.free_memory(at.cpu().into(), at.function().into());
    let places = (free(ends.0), free(ends.1));
    post(api, kind, ends, places, bytes)
}

/// The measurement of one operation.
#[derive(Clone, Debug)]
pub struct Single {
    /// From the processor's start to the receiver's event.
    pub latency: Span,
    /// Where the time went.
    pub explanation: Explanation,
}

/// The target of an operation from node 0: its neighbour, or with linked controllers, the first
/// node of the second one.
pub fn other(config: &Config) -> u8 {
    let ports = config.crossbar.ports;
    // Machines have 16 nodes at most.
    if config.nodes() > ports { ports as u8 } else { 1 }
}

/// Runs one operation of `kind` from node 0 to the [`other`] node of an idle machine.
///
/// # Errors
/// A sentence, if the machine cannot be built or the operation does not end.
pub fn single(config: &Config, kind: Kind, bytes: u64) -> Result<Single, String> {
    single_on(config, kind, bytes, |_| {}).map(|(single, _)| single)
}

/// The same on a machine that `prepare` has set up, for example with [`Machine::open_journal`];
/// also returns the machine.
///
/// # Errors
/// Those of [`single`].
pub fn single_on(
    config: &Config,
    kind: Kind,
    bytes: u64,
    prepare: impl FnOnce(&mut Machine),
) -> Result<(Single, Machine), String> {
    single_of(config, kind, bytes, 1, prepare)
}

/// The same with a seed, which only orders events of one moment.
///
/// # Errors
/// Those of [`single`].
pub fn single_of(
    config: &Config,
    kind: Kind,
    bytes: u64,
    seed: u64,
    prepare: impl FnOnce(&mut Machine),
) -> Result<(Single, Machine), String> {
    if config.nodes() < 2 {
        return Err(
            "one operation goes from one node to another; give the crossbar at least 2 ports"
                .to_owned(),
        );
    }
    if kind.is_nap() && bytes > 2048 {
        return Err(format!("a NAP carries 2048 bytes at most, not {bytes}; use put or get"));
    }
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    machine.open_journal();
    prepare(&mut machine);
    let mut api = machine.api();
    let other = other(config);
    let (from, to) = (endpoint(0), endpoint(other));
    let (near, far) = (api.free_memory(0, 0), api.free_memory(other.into(), 0));
    let source = if kind == Kind::Get { far } else { near };
    let room = api.window(0, 0) + config.host.window.count() - near;
    let memory = api.memory_mut(source, bytes as usize).filter(|_| bytes <= room).ok_or_else(|| {
        format!("{bytes} bytes have no room in a function's window, of which {room} are free; take fewer, or give `host.window` more")
    })?;
    fill(memory);
    let operation =
        post(&mut api, kind, (from, to), (near, far), bytes).map_err(|error| error.to_string())?;
    machine.run_to_end(&mut ()).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let over = "the operation is not over";
    let latency = machine.operations()[operation as usize].latency().ok_or(over)?;
    let explanation = machine.explain(operation).ok_or(over)?;
    Ok((Single { latency, explanation }, machine))
}

/// Queue pair 0 of function 0 of a node below 16.
pub fn endpoint(node: u8) -> Endpoint {
    Endpoint::new(node, 0, 0).expect("a node below 16")
}

/// Writes the [`pattern`] into memory.
pub fn fill(memory: &mut [u8]) {
    memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern(at));
}

/// A byte that depends on its position.
pub fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8
}
