//! What a program posts to the send side of a queue pair: builders, and the error of a refused
//! post.

use crate::{Address, Buffer, Error, MemoryRegion, RegionSlice, RemoteAt, RemoteKey, RemoteSlice};
use bellwire_device::AtomicOperation;
use bellwire_ring::memory::View;

/// One message (NAP). Up to [`crate::Limits::eager_bytes`] it travels eagerly. A longer one goes by
/// rendezvous: the receiver fetches it as soon as it has a buffer (C-53).
///
/// ```no_run
/// # use bellwire::{Address, Function, Message, QueuePair, Result};
/// # fn example(function: &mut Function, queue_pair: QueuePair, peer: Address) -> Result<()> {
/// let short = Message::inline(b"ready").to(peer).immediate(7).unsignaled();
/// function.post_send(queue_pair, short)?;
/// let long = Message::buffer(vec![1; 1 << 20]).to(peer).context(1);
/// function.post_send(queue_pair, long)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a descriptor does nothing until it is posted"]
pub struct Message<'a> {
    pub(crate) payload: Payload<'a>,
    pub(crate) to: Destination,
    pub(crate) immediate: Option<u64>,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
}

/// The address that a descriptor names, in words without padding. The post reads it in the words in
/// which it was just written, so stores are forwarded. Comparing it takes two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Node in the low half, queue pair in the high half.
    ends: u64,
    function: u32,
}

impl Destination {
    /// No address: the peer of a connected queue pair.
    pub(crate) const NONE: Destination = Destination { ends: 0, function: u32::MAX };

    /// The address, if there is one.
    #[inline(always)]
    pub(crate) fn address(self) -> Option<Address> {
        let Destination { ends, function } = self;
        let address = Address::new(ends as u32, function as u8, (ends >> 32) as u32);
        (function != Destination::NONE.function).then_some(address)
    }
}

impl From<Address> for Destination {
    #[inline(always)]
    fn from(to: Address) -> Self {
        Destination {
            ends: u64::from(to.node) | u64::from(to.queue_pair) << 32,
            function: to.function.into(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Payload<'a> {
    /// Inside the descriptor (C-17).
    Inline(&'a [u8]),
    /// The same, from two places.
    Gathered(&'a [u8], View<'a>),
    /// At a source address (C-18).
    Buffer(Buffer),
}

/// The number that a descriptor's completion returns, and whether a success has a completion.
#[derive(Clone, Copy)]
pub struct Report {
    pub(crate) context: u64,
    pub(crate) signaled: bool,
}

impl<'a> Message<'a> {
    /// Data inside the descriptor. It is copied before the post returns, so no buffer comes back.
    /// At most [`crate::Limits::eager_bytes`].
    #[inline]
    pub fn inline(bytes: &'a [u8]) -> Self {
        Self::new(Payload::Inline(bytes))
    }

    /// As [`Message::inline`], from `head` and then `body`. A library can put its own words before
    /// a program's bytes without joining them first.
    #[doc(hidden)]
    #[inline]
    pub fn gathered(head: &'a [u8], body: View<'a>) -> Self {
        Self::new(Payload::Gathered(head, body))
    }

    /// Data in a buffer, which the completion gives back. Any length up to
    /// [`crate::Limits::message_bytes`].
    ///
    /// A part of a region that is longer than [`crate::Limits::eager_bytes`] is fetched by the
    /// receiver without a copy if the region has [`crate::Rights::REMOTE_READ`]. For that the
    /// receiver learns the region's key. Without that right it travels as packets, with copies.
    #[inline]
    pub fn buffer(buffer: impl Into<Buffer>) -> Self {
        Self::new(Payload::Buffer(buffer.into()))
    }

    #[inline]
    fn new(payload: Payload<'a>) -> Self {
        Message { payload, to: Destination::NONE, immediate: None, context: 0, signaled: true }
    }

    /// A message from inside its descriptor.
    #[inline(always)]
    pub(crate) fn short(bytes: &'a [u8], to: Destination, report: Report) -> Self {
        let Report { context, signaled } = report;
        Message { to, context, signaled, ..Self::inline(bytes) }
    }

    /// The parts of [`Message::short`], or the descriptor if it has others.
    #[inline(always)]
    pub(crate) fn into_short(self) -> Result<(&'a [u8], Destination, Report), Self> {
        match self {
            Message { payload: Payload::Inline(bytes), to, immediate: None, context, signaled } => {
                Ok((bytes, to, Report { context, signaled }))
            }
            _ => Err(self),
        }
    }

    /// The destination. Required on an unconnected queue pair, refused on a connected one.
    #[inline]
    pub fn to(mut self, destination: Address) -> Self {
        self.to = destination.into();
        self
    }

    /// A value for the receiver's completion, beside the data.
    #[inline]
    pub fn immediate(mut self, value: u64) -> Self {
        self.immediate = Some(value);
        self
    }

    /// A number that the completion returns.
    #[inline]
    pub fn context(mut self, context: u64) -> Self {
        self.context = context;
        self
    }

    /// No completion if it succeeds: its buffer is then dropped. One if it fails.
    #[inline]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }

    /// Takes the buffer out, if it is not inline. Leaves an empty payload.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Option<Buffer> {
        // Tested before it is moved: a wide load of a payload that was just stored in words defeats
        // store forwarding. The load would wait until the payload's stores leave the store buffer,
        // behind the packet's stores. Another core still holds the packet's line.
        if !matches!(self.payload, Payload::Buffer(_)) {
            return None;
        }
        match std::mem::replace(&mut self.payload, Payload::Inline(&[])) {
            Payload::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// Bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.payload {
            Payload::Inline(bytes) => bytes.len(),
            Payload::Gathered(head, body) => head.len() + body.len(),
            Payload::Buffer(buffer) => buffer.len(),
        }
    }
}

/// One-sided write: local bytes to a peer's memory, without the peer's program taking part. A chain
/// descriptor (C-28): sources and destinations may differ in number and sizes, but not in their
/// total (C-29).
///
/// ```no_run
/// # use bellwire::{Function, Put, QueuePair, RemoteKey, Result};
/// # fn example(function: &mut Function, queue_pair: QueuePair, key: RemoteKey) -> Result<()> {
/// function.post_put(queue_pair, Put::inline(b"result", key.slice(64, 6)).context(1))?;
/// // Two sources, one destination; the peer sees an event when all bytes are there.
/// let put = Put::new(vec![vec![1; 100], vec![2; 28]], key.slice(0, 128));
/// function.post_put(queue_pair, put.event(3, None))?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a descriptor does nothing until it is posted"]
pub struct Put<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) destinations: RemoteChain,
    pub(crate) event: Option<Event>,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
}

#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// Inside the descriptor (C-17).
    Inline(&'a [u8]),
    /// At source addresses (C-18).
    Chain(LocalChain),
}

/// The S-Flag of a put: the queue pair that gets the event, and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) queue_pair: u32,
    pub(crate) immediate: Option<u64>,
}

impl<'a> Put<'a> {
    /// From local buffers, which the completion returns, to parts of regions of one function.
    #[inline]
    pub fn new(sources: impl Into<LocalChain>, destinations: impl Into<RemoteChain>) -> Self {
        Self::of(Source::Chain(sources.into()), destinations.into())
    }

    /// Data inside the descriptor. It is copied before the post returns, so no buffer comes back.
    /// At most [`crate::Limits::eager_bytes`].
    #[inline]
    pub fn inline(bytes: &'a [u8], destinations: impl Into<RemoteChain>) -> Self {
        Self::of(Source::Inline(bytes), destinations.into())
    }

    #[inline]
    fn of(source: Source<'a>, destinations: RemoteChain) -> Self {
        Put { source, destinations, event: None, context: 0, signaled: true }
    }

    /// A put of bytes inside of the descriptor to one place.
    #[inline(always)]
    pub(crate) fn short(bytes: &'a [u8], to: RemoteSlice, report: Report) -> Self {
        let Report { context, signaled } = report;
        Put { context, signaled, ..Self::inline(bytes, to) }
    }

    /// The parts of [`Put::short`], or the descriptor if it has others.
    #[inline(always)]
    pub(crate) fn into_short(self) -> Result<(&'a [u8], RemoteSlice, Report), Self> {
        match self {
            Put {
                source: Source::Inline(bytes),
                destinations: RemoteChain(Chain::One(to)),
                event: None,
                context,
                signaled,
            } => Ok((bytes, to, Report { context, signaled })),
            _ => Err(self),
        }
    }

    /// A number that the completion returns.
    #[inline]
    pub fn context(mut self, context: u64) -> Self {
        self.context = context;
        self
    }

    /// When all bytes are in memory, a completion [`crate::Operation::RemotePut`] appears at queue
    /// pair `queue_pair` of the target function (S-Flag, C-14, C-23). On a connected queue pair it
    /// must be the peer's.
    #[inline]
    pub fn event(mut self, queue_pair: u32, immediate: Option<u64>) -> Self {
        self.event = Some(Event { queue_pair, immediate });
        self
    }

    /// No completion if it succeeds: its buffers are then dropped. One if it fails.
    #[inline]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }
}

/// One-sided read: a peer's memory into local buffers, without the peer's program taking part. A
/// chain descriptor, as [`Put`].
///
/// ```no_run
/// # use bellwire::{Function, Get, QueuePair, RemoteKey, Result};
/// # fn example(function: &mut Function, queue_pair: QueuePair, key: RemoteKey) -> Result<()> {
/// function.post_get(queue_pair, Get::new(key.slice(0, 4096), vec![0; 4096]).context(1))?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a descriptor does nothing until it is posted"]
pub struct Get {
    pub(crate) sources: RemoteChain,
    pub(crate) destinations: LocalChain,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
}

impl Get {
    /// From parts of regions of one function to local buffers.
    #[inline]
    pub fn new(sources: impl Into<RemoteChain>, destinations: impl Into<LocalChain>) -> Self {
        let (sources, destinations) = (sources.into(), destinations.into());
        Get { sources, destinations, context: 0, signaled: true }
    }

    /// A number that the completion returns.
    #[inline]
    pub fn context(mut self, context: u64) -> Self {
        self.context = context;
        self
    }

    /// No completion if it succeeds: its buffers are then dropped. One if it fails.
    ///
    /// Use parts of a [`MemoryRegion`], because only those keep the bytes that it brings. A later
    /// completion does not tell that this get has finished.
    /// [`posted_sends`](crate::QueuePairState::posted_sends) does when it is 0.
    #[inline]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }
}

/// Changes a peer's word of 8 bytes atomically, without the peer's program taking part. The
/// completion's [`value`](crate::Completion::value) is the word's previous value.
///
/// ```no_run
/// # use bellwire::{Atomic, Function, QueuePair, RemoteKey, Result};
/// # fn example(function: &mut Function, queue_pair: QueuePair, key: RemoteKey) -> Result<()> {
/// function.post_atomic(queue_pair, Atomic::fetch_add(key.at(0), 1).context(1))?;
/// // Takes a lock in the next word, if nobody has it.
/// function.post_atomic(queue_pair, Atomic::compare_swap(key.at(8), 0, 1).context(2))?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a descriptor does nothing until it is posted"]
pub struct Atomic {
    pub(crate) at: RemoteAt,
    pub(crate) operation: AtomicOperation,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
}

impl Atomic {
    /// Adds `operand` to the word; the sum wraps.
    #[inline]
    pub fn fetch_add(at: RemoteAt, operand: u64) -> Self {
        Self::new(at, AtomicOperation::FetchAdd(operand))
    }

    /// Replaces the word by `new` if it equals `expected`.
    #[inline]
    pub fn compare_swap(at: RemoteAt, expected: u64, new: u64) -> Self {
        Self::new(at, AtomicOperation::CompareSwap { expected, new })
    }

    #[inline]
    fn new(at: RemoteAt, operation: AtomicOperation) -> Self {
        Atomic { at, operation, context: 0, signaled: true }
    }

    /// A number that the completion returns.
    #[inline]
    pub fn context(mut self, context: u64) -> Self {
        self.context = context;
        self
    }

    /// No completion if it succeeds: the previous value is then lost. One if it fails.
    #[inline]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }
}

/// One item, or several. A chain of one needs no allocation.
#[derive(Debug)]
pub(crate) enum Chain<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Chain<T> {
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        match self {
            Chain::One(item) => std::slice::from_ref(item),
            Chain::Many(items) => items,
        }
    }

    #[inline]
    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        match self {
            Chain::One(item) => std::slice::from_mut(item),
            Chain::Many(items) => items,
        }
    }

    /// The first item and the others, as a completion returns them.
    #[inline]
    #[allow(clippy::box_collection)] // As `Completion::rest`.
    pub(crate) fn into_parts(self) -> (Option<T>, Option<Box<Vec<T>>>) {
        match self {
            Chain::One(item) => (Some(item), None),
            Chain::Many(items) => {
                let mut items = items.into_iter();
                (items.next(), Some(Box::new(items.collect())))
            }
        }
    }
}

/// Local buffers of a [`Put`] or [`Get`]: made from one buffer (`Vec<u8>`, [`RegionSlice`],
/// `&MemoryRegion`) or a list.
#[derive(Debug)]
pub struct LocalChain(pub(crate) Chain<Buffer>);

/// Parts of a peer's regions: made from one [`RemoteSlice`], a whole [`RemoteKey`], or a list.
#[derive(Debug)]
pub struct RemoteChain(pub(crate) Chain<RemoteSlice>);

/// What a chain is made from.
macro_rules! made_from {
    ($chain:ident: $($from:ty, |$value:ident| $made:expr;)*) => {$(
        impl From<$from> for $chain {
            fn from($value: $from) -> Self {
                $chain($made)
            }
        }
    )*};
}

made_from! { LocalChain:
    Buffer, |buffer| Chain::One(buffer);
    Vec<u8>, |bytes| Chain::One(bytes.into());
    RegionSlice, |slice| Chain::One(slice.into());
    &MemoryRegion, |region| Chain::One(region.into());
    Vec<Buffer>, |buffers| Chain::Many(buffers);
    Vec<RegionSlice>, |slices| Chain::Many(slices.into_iter().map(Buffer::from).collect());
    Vec<Vec<u8>>, |vectors| Chain::Many(vectors.into_iter().map(Buffer::from).collect());
}

made_from! { RemoteChain:
    RemoteSlice, |slice| Chain::One(slice);
    RemoteKey, |key| Chain::One(key.into());
    Vec<RemoteSlice>, |slices| Chain::Many(slices);
}

/// A refused post: the error, and the descriptor, so that nothing is lost. `?` keeps the error and
/// drops the descriptor.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Refused<D> {
    /// Why.
    pub error: Error,
    /// What was posted, unchanged.
    pub descriptor: D,
}

impl<D> Refused<D> {
    pub(crate) fn new(error: Error, descriptor: D) -> Self {
        Refused { error, descriptor }
    }
}

impl<D> From<Refused<D>> for Error {
    fn from(refused: Refused<D>) -> Self {
        refused.error
    }
}

/// The end of [`crate::Function::post_sends`] at a refused message: the error, and the number of
/// messages before it. `?` keeps the error and drops the number.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct PartialPost {
    /// Why.
    pub error: Error,
    /// Messages that are posted. The refused one and all behind it are unchanged.
    pub posted: usize,
}

impl From<PartialPost> for Error {
    fn from(partial: PartialPost) -> Self {
        partial.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_device::RemoteKey;

    /// Short descriptors are taken apart into what they were made of. Others stay whole.
    #[test]
    fn short_descriptors_come_apart() {
        let report = |context, signaled| Report { context, signaled };
        let is =
            |got: &Report, context, signaled| (got.context, got.signaled) == (context, signaled);
        let to = Address::new(1, 2, 3);
        let message = || Message::short(&[1, 2], to.into(), report(7, false));
        assert_eq!(message().len(), 2);
        let Ok(parts) = message().into_short() else { panic!("it is short") };
        assert!(parts.0 == [1, 2] && is(&parts.2, 7, false));
        assert!(message().immediate(3).into_short().is_err());
        let (head, body) = ([0; 5], [0; 9]);
        let gathered = Message::gathered(&head, View::of(&body));
        assert_eq!(gathered.len(), 14);
        assert!(gathered.into_short().is_err());
        let key = RemoteKey { node: 1, function: 2, index: 3, key: 4, length: 50 };
        let put = || Put::short(&[1, 2], key.slice(10, 2), report(8, true));
        let Ok(parts) = put().into_short() else { panic!("it is short") };
        assert!(parts.0 == [1, 2] && parts.1 == key.slice(10, 2) && is(&parts.2, 8, true));
        let unsignaled = Put::short(&[1], key.slice(0, 1), report(9, false));
        assert!(unsignaled.into_short().is_ok_and(|parts| is(&parts.2, 9, false)));
        assert!(put().event(1, None).into_short().is_err());
    }
}
